//! Codes of runs that are answered by hand, suspended and restored.

/// The stable codes of what can go wrong with a run between its steps. A code is never
/// reused for another meaning.
pub mod codes {
    use crate::codes::code_table;

    code_table! {
        /// An answer to a call that the run did not make.
        UNKNOWN_CALL = "call.unknown" help "answer with the `id` of the call";
        /// An answer to a call that was answered, or whose time was up.
        ANSWERED_CALL = "call.answered" help "answer each call once, before its deadline";
        /// The run has ended: it takes no answers and no fuel, and cannot be suspended.
        OVER = "call.run_over" help "refuel a run at a pause or while a call is under way";
        /// The bytes do not begin as a snapshot does.
        NO_SNAPSHOT = "snapshot.no_snapshot" help "make one with `Run::snapshot`";
        /// Another version of the format.
        SNAPSHOT_VERSION = "snapshot.unknown_version"
            help "restore it with the version of Agent99 that made it";
        /// The bytes end too early, or go on after their end.
        SNAPSHOT_LENGTH = "snapshot.wrong_length" help "it is damaged: copy it again";
        /// The content does not have the hash that the header says.
        SNAPSHOT_HASH = "snapshot.wrong_hash" help "it is damaged: copy it again";
        /// The content is none that a run has.
        BAD_SNAPSHOT = "snapshot.bad_content" help "no run makes such a snapshot: start again";
        /// The run was one of another program.
        OTHER_PROGRAM = "snapshot.other_program" help "restore it with the program of its run";
        /// The engine has other atoms, or another instruction set.
        OTHER_ATOMS = "snapshot.other_atoms"
            help "restore it with the atoms and the version of Agent99 of its run";
        /// The options contradict what the run began with.
        OTHER_OPTIONS = "snapshot.other_options"
            help "restore it with the cost model, equality, trace and at least the fuel of its run";
        /// It holds more than the limits of the options allow.
        SNAPSHOT_TOO_LARGE = "snapshot.too_large"
            help "restore it with the limits of its run";
    }
}
