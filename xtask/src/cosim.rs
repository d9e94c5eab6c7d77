//! Co-simulation: random instruction sequences on the guest's hart and on QEMU's.
//!
//! The test that compares is ignored by `cargo test`, because it needs QEMU; it
//! is run from here, in a short form for CI and a long one by name.

use crate::shell::{Failed, cargo, run, works};
use crate::stage::{Outcome, Progress};
use std::process::Command;
use std::time::{Duration, Instant};

/// Names of QEMU's emulator of programs, as Debian and others install it.
const QEMU: [&str; 2] = ["qemu-riscv64-static", "qemu-riscv64"];

/// Seconds of the long form unless told otherwise.
const SECONDS: &str = "600";

/// Sequences of instructions that are compared in one go of the long form.
const COUNT: &str = "200";

fn has_qemu() -> bool {
    let mut names = QEMU.iter();
    names.any(|name| works(Command::new(name).arg("--version")))
}

fn missing() -> String {
    "needs qemu-riscv64 (Debian: `apt-get install qemu-user-static`)".to_owned()
}

/// The test, run though it is ignored.
fn test(flags: &[&str]) -> Command {
    let mut test = cargo("test");
    test.args(flags).args(["--package", "a99-guest"]);
    test.args(["--test", "cosim", "--", "--include-ignored"]);
    test
}

/// The short form: as many sequences as the test has by itself. Skipped only
/// where QEMU cannot be installed.
pub(crate) fn short(progress: &Progress) -> Result<Outcome, Failed> {
    if has_qemu() {
        return progress.tests(&mut test(&[])).map(|()| Outcome::Passed);
    }
    match works(Command::new("apt-get").arg("--version")) {
        true => Err(Failed(missing())),
        false => Ok(Outcome::Skipped(missing())),
    }
}

/// Seed after seed, for some time.
pub(crate) fn long(args: &[&str]) -> Result<(), Failed> {
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
    let (mut seed, seconds) = (number(seed)?, Duration::from_secs(number(seconds)?));
    if !has_qemu() {
        return Err(Failed(missing()));
    }
    let start = Instant::now();
    while start.elapsed() < seconds {
        eprintln!("==> seed {seed}, {COUNT} sequences");
        let mut test = test(&["--quiet", "--release"]);
        test.env("A99_COSIM_SEED", seed.to_string());
        run(test.env("A99_COSIM_COUNT", COUNT))?;
        seed += 1;
    }
    Ok(())
}
