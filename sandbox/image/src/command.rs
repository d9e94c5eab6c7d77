//! Child processes: runs other programs.
//!
//! Every program runs in the C locale, because their messages are parsed here, and without
//! the variables of a surrounding `make`.

use super::error::{At, ErrorCode, ImageError, disk_full};
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Lines of a failed program's output to show.
const SHOWN_LINES: usize = 15;

/// Variables of a surrounding build that must not leak into this one.
const FOREIGN: [&str; 7] = [
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "ARCH",
    "CROSS_COMPILE",
    "KCFLAGS",
    "KBUILD_OUTPUT",
];

/// The wrapper that starts the program of [`lasting`], and the end of its options.
const SETPRIV: &str = "setpriv";
const END_OF_OPTIONS: &str = "--";

/// Prepares a program to run.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    for name in FOREIGN {
        command.env_remove(name);
    }
    command
}

/// Prepares a program that runs for minutes. It ends with the thread that started it, so
/// that a killed build leaves no process behind.
pub(crate) fn lasting(name: &str) -> Command {
    let mut command = program(SETPRIV);
    command.args(["--pdeathsig", "TERM", END_OF_OPTIONS, name]);
    command
}

/// Output of a program that ended.
#[derive(Debug)]
pub(crate) struct Printed {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

/// Runs a program to its end, successful or not.
pub(crate) fn finish(command: &mut Command) -> Result<Printed, ImageError> {
    let done = command
        .output()
        .map_err(|error| cannot_start(command, &error))?;
    Ok(Printed {
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        status: done.status,
    })
}

/// Runs a program that must succeed; returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String, ImageError> {
    let printed = finish(command)?;
    match printed.status.success() {
        true => Ok(printed.stdout),
        false => Err(failed(command, printed.status, &printed.stderr)),
    }
}

/// Runs a program that must succeed and prints a lot; its output goes to a file.
pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<(), ImageError> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .at(log)?;
    let errors = file.try_clone().at(log)?;
    let status = command
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    if status.success() {
        return Ok(());
    }
    let text = std::fs::read(log).at(log)?;
    Err(failed(command, status, &String::from_utf8_lossy(&text)))
}

fn cannot_start(command: &Command, error: &std::io::Error) -> ImageError {
    ImageError::new(ErrorCode::StepFailed, describe(command), error.to_string())
}

fn failed(command: &Command, status: ExitStatus, messages: &str) -> ImageError {
    if messages.contains("No space left on device") || messages.contains("Disk quota exceeded") {
        return disk_full(describe(command));
    }
    let reason = format!("{status}\n{}", tail(messages));
    ImageError::new(ErrorCode::StepFailed, describe(command), reason)
}

/// Returns the last lines of a text.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.collect();
    // The program of `lasting` follows its wrapper.
    let inner = words.iter().position(|word| *word == END_OF_OPTIONS);
    let skipped = match command.get_program() == SETPRIV {
        true => inner.map_or(0, |at| at + 1),
        false => 0,
    };
    let mut words = words.into_iter().skip(skipped);
    let name = words.next().unwrap_or_default();
    let name = Path::new(name).file_name().unwrap_or(name);
    let first = words.next().unwrap_or_default();
    format!("{} {}", name.to_string_lossy(), first.to_string_lossy())
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_show_the_end_of_what_was_said() {
        let error = output(program("sh").args(["-c", "echo sad >&2; exit 3"])).unwrap_err();
        assert_eq!(error.code, ErrorCode::StepFailed);
        assert!(
            error.reason.contains('3') && error.reason.ends_with("sad"),
            "{error}"
        );
        let full = "echo 'write: No space left on device' >&2; exit 1";
        let error = output(program("sh").args(["-c", full])).unwrap_err();
        assert_eq!(error.code, ErrorCode::DiskFull);
        let error = output(&mut program("no-such-program-of-this-name")).unwrap_err();
        assert_eq!(error.code, ErrorCode::StepFailed);
    }

    #[test]
    fn logs_are_kept_and_their_end_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        logged(program("sh").args(["-c", "echo one"]), &log).unwrap();
        let error = logged(program("sh").args(["-c", "seq 100; exit 1"]), &log).unwrap_err();
        assert!(error.reason.ends_with("99\n100"), "{error}");
        assert!(!error.reason.contains("\n80\n"));
        assert!(
            std::fs::read_to_string(&log)
                .unwrap()
                .starts_with("one\n1\n")
        );
    }

    #[test]
    fn s7_what_lasts_ends_with_whom_started_it() {
        let started = std::thread::spawn(|| {
            let child = lasting("sleep").arg("60").spawn().unwrap();
            let comm = format!("/proc/{}/comm", child.id());
            while std::fs::read_to_string(&comm).unwrap() != "sleep\n" {
                std::thread::yield_now();
            }
            child
        });
        let status = started.join().unwrap().wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(15)
        );
        assert_eq!(describe(lasting("make").arg("-C")), "make -C");
        let error = output(lasting("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.subject.starts_with("sh -c"), "{error}");
    }

    /// Waits until a condition holds, for some seconds.
    fn wait_for(mut holds: impl FnMut() -> bool) -> bool {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !holds() {
            if std::time::Instant::now() > end {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        true
    }

    /// A build that was killed leaves neither `make` nor what it runs, several levels deep.
    #[test]
    fn make_and_its_children_end_with_the_build() {
        if super::super::tools::in_path("make").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let recipes = "all:\n\t@$(MAKE) -f Makefile below\n\
                       below:\n\t@nice > nice; echo $$$$ > pid; exec sleep 60\n";
        std::fs::write(path("Makefile"), recipes).unwrap();
        let (of, pid) = (folder.path().to_owned(), path("pid"));
        let started = std::thread::spawn(move || {
            let mut make = lasting("make");
            let child = make.arg("-C").arg(of).stdout(Stdio::null()).spawn();
            let child = child.unwrap();
            let read = || std::fs::read_to_string(&pid).unwrap_or_default();
            assert!(wait_for(|| read().ends_with('\n')), "the recipe runs");
            (child, read().trim().to_owned())
        });
        let (mut make, sleep) = started.join().unwrap();
        assert!(!make.wait().unwrap().success());
        let status = format!("/proc/{sleep}/stat");
        // A zombie has ended, too.
        let runs = || std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z"));
        assert!(wait_for(|| !runs()), "{sleep} goes on");
        // Nothing here lowers the priority.
        let nice = output(&mut program("nice")).unwrap();
        assert_eq!(std::fs::read_to_string(path("nice")).unwrap(), nice);
    }

    #[test]
    fn a_surrounding_make_is_not_heard() {
        let command = program("make");
        let removed = |name: &str| command.get_envs().any(|(k, v)| k == name && v.is_none());
        assert!(removed("MAKEFLAGS") && removed("ARCH"));
    }
}
