//! Co-simulation: random programs on the guest's interpreter and on QEMU, or on the guest's
//! translator.
//!
//! CI runs a short form of both tests; the long form is a task. `cargo test` ignores the first,
//! because it needs QEMU.

use crate::guest::one_test;
use crate::shell::{Failed, cargo, run, works};
use crate::stage::{Outcome, Progress, unless_installable};
use std::process::Command;
use std::time::{Duration, Instant};

/// Names of QEMU's user-mode emulator, on Debian and elsewhere.
const QEMU: [&str; 2] = ["qemu-riscv64-static", "qemu-riscv64"];

/// Default seconds of the long form.
const SECONDS: &str = "600";

/// The tests that compare translated programs, in either mode of the processor.
pub(crate) const TRANSLATE: [&str; 2] = [
    "translate::random_programs_end_the_same",
    "translate::random_programs_of_user_mode_end_the_same",
];

/// Instruction sequences compared with QEMU in one run of the long form, and programs translated in
/// one run.
const SEQUENCES: &str = "200";
const PROGRAMS: &str = "10";

/// Rounds of each translated program in the long form.
const ROUNDS: &str = "20000";

fn has_qemu() -> bool {
    let mut names = QEMU.iter();
    names.any(|name| works(Command::new(name).arg("--version")))
}

fn missing() -> String {
    "needs qemu-riscv64 (Debian: `apt-get install qemu-user-static`)".to_owned()
}

/// The ignored test, run explicitly.
fn test(flags: &[&str]) -> Command {
    let mut test = cargo("test");
    test.args(flags).args(["--package", "a99-sandbox-guest"]);
    test.args(["--test", "cosim", "--", "--include-ignored"]);
    test
}

/// Runs the short form, with the test's default number of sequences. Skipped only if QEMU cannot be
/// installed.
pub(crate) fn short(progress: &Progress) -> Result<Outcome, Failed> {
    if has_qemu() {
        return progress.tests(&mut test(&[])).map(|()| Outcome::Passed);
    }
    unless_installable(missing())
}

/// Compares with QEMU for some time.
pub(crate) fn long(args: &[&str]) -> Result<(), Failed> {
    if !has_qemu() {
        return Err(Failed(missing()));
    }
    for_some_time(args, |seed| {
        let mut test = test(&["--quiet", "--profile", "sandbox"]);
        test.env("A99_COSIM_SEED", seed);
        run(test.env("A99_COSIM_COUNT", SEQUENCES))
    })
}

/// Compares translated programs with interpreted ones for some time.
pub(crate) fn translate(args: &[&str]) -> Result<(), Failed> {
    for_some_time(args, |seed| {
        let [first, second] = TRANSLATE;
        let mut test = one_test(first);
        test.arg(second);
        test.env("A99_TRANSLATE_SEED", seed);
        test.env("A99_TRANSLATE_ROUNDS", ROUNDS);
        run(test.env("A99_TRANSLATE_COUNT", PROGRAMS))
    })
}

/// Runs the test with one seed after another.
fn for_some_time(
    args: &[&str],
    mut compare: impl FnMut(&str) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let (mut seed, mut seconds) = ("1", SECONDS);
    for pair in args.chunks(2) {
        match *pair {
            ["--seed", n] => seed = n,
            ["--seconds", n] => seconds = n,
            _ => return Err(Failed("expected [--seed S] [--seconds N]".to_owned())),
        }
    }
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| Failed(format!("{text} is no number")))
    };
    let (seed, seconds) = (number(seed)?, Duration::from_secs(number(seconds)?));
    let start = Instant::now();
    for seed in seed.. {
        if start.elapsed() >= seconds {
            break;
        }
        eprintln!("==> seed {seed}");
        compare(&seed.to_string())?;
    }
    Ok(())
}
