//! Codes of runs that hosts answer by hand, suspend and restore.

/// Stable codes for errors of a suspended or manually answered run. A code is never reused for
/// another meaning.
pub mod codes {
    use crate::codes::code_table;

    code_table! {
        /// The host answered a call that the run did not make.
        UNKNOWN_CALL = "call.unknown" help "answer with the `id` of the call";
        /// The host answered a call that was already answered or timed out.
        ANSWERED_CALL = "call.answered" help "answer each call once, before its deadline";
        /// The run has ended: it takes no answers and no fuel, and cannot be suspended.
        OVER = "call.run_over" help "refuel a run at a pause or while a call is under way";
        /// The bytes do not begin with the magic number of a snapshot.
        NO_SNAPSHOT = "snapshot.no_snapshot" help "make one with `Run::snapshot`";
        /// The snapshot has another version of the format.
        SNAPSHOT_VERSION = "snapshot.unknown_version"
            help "restore it with the version of Agent99 that made it";
        /// The snapshot is truncated, or has extra bytes.
        SNAPSHOT_LENGTH = "snapshot.wrong_length" help "it is damaged: copy it again";
        /// The hash of the content differs from the hash in the header.
        SNAPSHOT_HASH = "snapshot.wrong_hash" help "it is damaged: copy it again";
        /// The content is not a valid run.
        BAD_SNAPSHOT = "snapshot.bad_content" help "no run makes such a snapshot: start again";
        /// The snapshot is of another program.
        OTHER_PROGRAM = "snapshot.other_program" help "restore it with the program of its run";
        /// The engine has other atoms, or another instruction set.
        OTHER_ATOMS = "snapshot.other_atoms"
            help "restore it with the atoms and the version of Agent99 of its run";
        /// The options contradict those of the suspended run.
        OTHER_OPTIONS = "snapshot.other_options"
            help "restore it with the cost model, equality, trace and at least the fuel of its run";
        /// The snapshot exceeds the limits of the options.
        SNAPSHOT_TOO_LARGE = "snapshot.too_large"
            help "restore it with the limits of its run";
    }
}
