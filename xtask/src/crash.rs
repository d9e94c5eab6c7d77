//! Long test of long-lived agents: their host processes are killed again and again.

use crate::shell::{Failed, cargo, set_options};
use crate::stage::Progress;

/// Options with the test's variables.
const OPTIONS: [(&str, &str); 6] = [
    ("--kills", "A99_CRASH_KILLS"),
    ("--mode", "A99_CRASH_MODE"),
    ("--programs", "A99_CRASH_PROGRAMS"),
    ("--seconds", "A99_CRASH_SECONDS"),
    ("--seed", "A99_CRASH_SEED"),
    ("--store", "A99_CRASH_STORE"),
];

pub(crate) fn test(args: &[&str], progress: &Progress) -> Result<(), Failed> {
    let mut test = cargo("test");
    // Agents on several hosts, with the server of their channels.
    let is_network = args.windows(2).any(|pair| pair == ["--mode", "network"]);
    let (package, target) = match is_network {
        true => ("a99-channels", "kills"),
        false => ("a99-runtime", "crash"),
    };
    test.args(["--package", package, "--profile", "bench"]);
    if args.contains(&"--store") {
        // Stores on a PostgreSQL server, each in a schema that the test makes.
        test.args(["--features", "cluster"]);
    }
    test.args(["--test", target, "--", "--ignored", "long_"]);
    test.args(["--nocapture", "--test-threads=1"]);
    let usage = "[--kills N] [--programs N] [--mode MODE] [--seconds N] [--seed S] [--store URL]";
    set_options(&mut test, args, &OPTIONS, usage)?;
    progress.tests(&mut test)
}
