//! Long test of long-lived agents: their host processes are killed again and again.

use crate::shell::{Failed, cargo, set_options};
use crate::stage::Progress;

/// Options with the test's variables.
const OPTIONS: [(&str, &str); 5] = [
    ("--kills", "A99_CRASH_KILLS"),
    ("--mode", "A99_CRASH_MODE"),
    ("--programs", "A99_CRASH_PROGRAMS"),
    ("--seconds", "A99_CRASH_SECONDS"),
    ("--seed", "A99_CRASH_SEED"),
];

pub(crate) fn test(args: &[&str], progress: &Progress) -> Result<(), Failed> {
    let mut test = cargo("test");
    test.args(["--package", "a99-runtime", "--profile", "bench"]);
    test.args(["--test", "crash", "--", "--ignored", "long_"]);
    test.args(["--nocapture", "--test-threads=1"]);
    let usage = "[--kills N] [--programs N] [--mode MODE] [--seconds N] [--seed S]";
    set_options(&mut test, args, &OPTIONS, usage)?;
    progress.tests(&mut test)
}
