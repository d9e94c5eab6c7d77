//! Stages of a task: each has a number, a name and a time, and reports progress while it runs.

use crate::shell::{Failed, describe, failed, works};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a running stage prints a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Bytes of the output of failed tests that the end of a run repeats, for each stage.
const REPEATED: usize = 4_000;

/// The stages of one run.
pub(crate) struct Stages {
    count: usize,
    ended: Vec<Ended>,
    start: Instant,
}

/// A finished stage.
struct Ended {
    name: String,
    verdict: Verdict,
    seconds: u64,
    /// What its failed tests printed.
    printed: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "ok",
            Verdict::Failed => "FAILED",
            Verdict::Skipped => "SKIPPED",
        }
    }
}

/// Outcome of a stage without an error.
pub(crate) enum Outcome {
    Passed,
    /// This machine cannot run it, for this reason.
    Skipped(String),
}

/// Outcome of a stage that lacks a program: a failure where apt-get can install it, else skipped.
pub(crate) fn unless_installable(missing: String) -> Result<Outcome, Failed> {
    match works(Command::new("apt-get").arg("--version")) {
        true => Err(Failed(missing)),
        false => Ok(Outcome::Skipped(missing)),
    }
}

impl Stages {
    /// Starts a run of `count` stages.
    pub(crate) fn of(count: usize) -> Stages {
        Stages {
            count,
            ended: Vec::new(),
            start: Instant::now(),
        }
    }

    /// Runs a stage; a failure is kept for [`Stages::end`].
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce(&Progress) -> Result<(), Failed>) {
        self.attempt(name, |progress| work(progress).map(|()| Outcome::Passed));
    }

    /// Runs a stage that not every machine can run; returns whether it ran and passed. Prints the
    /// reason of a skipped stage.
    pub(crate) fn attempt(
        &mut self,
        name: &str,
        work: impl FnOnce(&Progress) -> Result<Outcome, Failed>,
    ) -> bool {
        let at = self.ended.len() + 1;
        let shown = format!("==> [{at}/{}] {name}", self.count);
        eprintln!("{shown}");
        let (start, progress) = (Instant::now(), Progress::default());
        let (ended, end) = channel::<()>();
        let done = thread::scope(|threads| {
            let (shown, progress) = (&shown, &progress);
            threads.spawn(move || {
                while end.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("{shown}: {}", progress.after(start.elapsed()));
                }
            });
            let done = work(progress);
            drop(ended);
            done
        });
        let (verdict, reason) = match done {
            Ok(Outcome::Passed) => (Verdict::Passed, String::new()),
            Ok(Outcome::Skipped(reason)) => (Verdict::Skipped, reason),
            Err(Failed(reason)) => (Verdict::Failed, reason),
        };
        if !reason.is_empty() {
            eprintln!("{shown}: {reason}");
        }
        let (verdict_name, after) = (verdict.name(), progress.after(start.elapsed()));
        eprintln!("{shown}: {verdict_name}, {after}");
        self.ended.push(Ended {
            name: name.to_owned(),
            verdict,
            seconds: start.elapsed().as_secs(),
            printed: progress.0.into_inner().unwrap_or_default().printed,
        });
        verdict == Verdict::Passed
    }

    /// One line for each stage: seconds, verdict, name.
    fn table(&self) -> String {
        let line = |stage: &Ended| {
            let (seconds, verdict) = (stage.seconds, stage.verdict.name());
            format!("{seconds:>7} s  {verdict:<7}  {}\n", stage.name)
        };
        self.ended.iter().map(line).collect()
    }

    /// Prints the verdict on all stages, below the time of each and what failed tests printed.
    ///
    /// # Errors
    /// The names of failed stages.
    pub(crate) fn end(self) -> Result<(), Failed> {
        let (seconds, begun) = (self.start.elapsed().as_secs(), self.ended.len());
        for stage in self.ended.iter().filter(|stage| !stage.printed.is_empty()) {
            eprintln!("==> {}:\n{}", stage.name, stage.printed);
        }
        eprint!("{}", self.table());
        let of = |verdict| {
            let stages = self
                .ended
                .iter()
                .filter(move |stage| stage.verdict == verdict);
            stages.map(|stage| stage.name.as_str()).collect::<Vec<_>>()
        };
        let (failed, skipped) = (of(Verdict::Failed), of(Verdict::Skipped));
        if failed.is_empty() {
            match skipped.is_empty() {
                true => eprintln!("==> all {begun} stages passed, {seconds} s"),
                false => eprintln!(
                    "==> {} of {begun} stages passed, {seconds} s; SKIPPED: {}",
                    begun - skipped.len(),
                    skipped.join(", ")
                ),
            }
            return Ok(());
        }
        Err(Failed(format!(
            "{} of {begun} stages failed after {seconds} s: {}",
            failed.len(),
            failed.join(", ")
        )))
    }
}

/// Progress of a running stage.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Tests>);

/// Finished tests, and finished test programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
    programs: u64,
    /// The output of failed tests, and whether the next line belongs to it.
    printed: String,
    is_printing: bool,
}

impl Tests {
    /// Counts from a line of a test program's output.
    fn count(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.is_printing = true;
        } else if line == "failures:" {
            self.is_printing = false;
        }
        if self.is_printing && self.printed.len() + line.len() < REPEATED {
            self.printed.push_str(line);
            self.printed.push('\n');
        }
        let verdict = line
            .strip_prefix("test ")
            .and_then(|l| l.rsplit_once(" ... "));
        match verdict.map(|(_, verdict)| verdict.trim_end()) {
            Some("ok") => self.passed += 1,
            Some("FAILED") => self.failed += 1,
            Some(verdict) if verdict.starts_with("ignored") => self.ignored += 1,
            _ => self.programs += u64::from(line.starts_with("test result: ")),
        }
    }
}

impl Progress {
    fn tests_so_far(&self) -> Tests {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn after(&self, time: Duration) -> String {
        let seconds = time.as_secs();
        let tests = self.tests_so_far();
        if tests == Tests::default() {
            return format!("{seconds} s");
        }
        let Tests {
            passed,
            failed,
            ignored,
            programs,
            ..
        } = tests;
        format!(
            "{seconds} s, {passed} tests passed, {failed} failed, {ignored} ignored in {programs} programs"
        )
    }

    /// Runs `cargo test` and counts its reports. Passed tests are not printed.
    pub(crate) fn tests(&self, command: &mut Command) -> Result<(), Failed> {
        let name = describe(command);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&name, error))?;
        if let Some(stdout) = child.stdout.take() {
            let mut lines = BufReader::new(stdout);
            // Lines of one program are printed together, because others run in parallel.
            let mut shown = Vec::new();
            let mut line = Vec::new();
            // Tests may print invalid UTF-8.
            while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end();
                self.0.lock().unwrap_or_else(|e| e.into_inner()).count(text);
                if !(text.starts_with("test ") && text.ends_with(" ... ok")) {
                    shown.extend_from_slice(&line);
                }
                let is_slow = text.contains("has been running for over");
                if is_slow || text.starts_with("test result: ") {
                    print(&mut shown);
                }
                line.clear();
            }
            print(&mut shown);
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(name, status)),
            Err(error) => Err(failed(name, error)),
        }
    }
}

/// Prints and clears lines. The reader may have closed the pipe.
fn print(lines: &mut Vec<u8>) {
    let _ = std::io::stdout().lock().write_all(lines);
    lines.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_counted() {
        let mut tests = Tests::default();
        for line in [
            "running 4 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test a::d ... ignored, needs the image",
            "test a - should panic ... ok",
            "failures:",
            "",
            "---- a::c stdout ----",
            "why",
            "",
            "failures:",
            "    a::c",
            "test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out",
        ] {
            tests.count(line);
        }
        let wanted = Tests {
            passed: 2,
            failed: 1,
            ignored: 1,
            programs: 1,
            printed: "---- a::c stdout ----\nwhy\n\n".to_owned(),
            is_printing: false,
        };
        assert_eq!(tests, wanted);
    }

    #[test]
    fn a_failed_stage_stops_no_other() {
        let mut stages = Stages::of(3);
        let mut ran = Vec::new();
        stages.run("one", |_| Ok(()));
        stages.run("two", |_| Err(Failed("why".to_owned())));
        stages.run("three", |_| {
            ran.push(3);
            Ok(())
        });
        assert_eq!(ran, [3]);
        let Err(Failed(text)) = stages.end() else {
            panic!("a stage failed");
        };
        assert!(text.starts_with("1 of 3 stages failed") && text.ends_with(": two"));
    }

    #[test]
    fn a_skipped_stage_is_in_the_table() {
        let mut stages = Stages::of(2);
        assert!(!stages.attempt("one", |_| Ok(Outcome::Skipped("no qemu".to_owned()))));
        assert!(stages.attempt("two", |_| Ok(Outcome::Passed)));
        let table = stages.table();
        let lines: Vec<&str> = table.lines().map(str::trim).collect();
        assert_eq!(lines, ["0 s  SKIPPED  one", "0 s  ok       two"]);
        assert!(stages.end().is_ok());
    }
}
