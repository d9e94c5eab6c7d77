//! Conformance suite of [`Shell`].
//!
//! The commands exist on any Unix; the paths are in one folder.

use super::{Shell, ShellErrorKind, ShellOutput, ShellRequest};
use crate::error::{SuiteResult, ensure};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// A script with both outputs and an exit code, which the suite runs by `sh -c`.
pub const APART: &str = "printf out; printf err >&2; exit 3";

/// The computer's folder for the suite.
const FOLDER: &str = "/tmp";

/// Time limit of a command that must time out.
const SHORT: Duration = Duration::from_millis(200);

/// The laws of commands, the session and files.
///
/// # Errors
/// The first violated law.
pub async fn conformance(shell: &dyn Shell) -> SuiteResult {
    commands(shell).await?;
    limits(shell).await?;
    session(shell).await?;
    files(shell).await
}

async fn ran(shell: &dyn Shell, request: ShellRequest) -> Result<ShellOutput, String> {
    let what = format!("{:?} runs", request.command);
    let done = shell.exec(request).await;
    done.map_err(|error| format!("{what}: {error}"))
}

fn has_line(output: &ShellOutput, line: &[u8]) -> bool {
    output
        .stdout
        .split(|byte| *byte == b'\n')
        .any(|l| l == line)
}

async fn refuses(shell: &dyn Shell, request: ShellRequest, kind: ShellErrorKind) -> SuiteResult {
    let what = format!("{:?} is {}", request.command, kind.as_str());
    match shell.exec(request).await {
        Ok(_) => Err(what),
        Err(error) => {
            ensure(!error.message.is_empty(), "an error has a text")?;
            ensure(error.kind == kind, &format!("{what}, not {error}"))
        }
    }
}

async fn commands(shell: &dyn Shell) -> SuiteResult {
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let mut cat = ShellRequest::argv(&["cat"]);
    cat.stdin.clone_from(&bytes);
    let output = ran(shell, cat).await?;
    ensure(output.stdout == bytes, "bytes go through unchanged")?;
    ensure(
        output.exit_code == 0 && output.signal.is_none() && !output.session_reset,
        "a command that ends well says so",
    )?;
    let output = ran(shell, ShellRequest::argv(&["sh", "-c", APART])).await?;
    ensure(
        (output.stdout.as_slice(), output.stderr.as_slice()) == (b"out", b"err"),
        "the outputs are apart and untrimmed",
    )?;
    ensure(output.exit_code == 3, "an exit code is a result")?;
    let mut pwd = ShellRequest::argv(&["pwd"]);
    pwd.cwd = Some("/tmp".to_owned());
    let output = ran(shell, pwd).await?;
    ensure(output.stdout == b"/tmp\n", "a command runs where it should")?;
    let mut env = ShellRequest::argv(&["env"]);
    env.env.push(("A99_SUITE".to_owned(), "a b".to_owned()));
    let output = ran(shell, env).await?;
    ensure(
        has_line(&output, b"A99_SUITE=a b"),
        "a command gets its variables",
    )?;
    let none = ShellErrorKind::NotFound;
    refuses(shell, ShellRequest::argv(&["a99-suite-none"]), none).await?;
    for argv in [&[][..], &[""], &["echo", "\0"]] {
        refuses(shell, ShellRequest::argv(argv), ShellErrorKind::Invalid).await?;
    }
    Ok(())
}

async fn limits(shell: &dyn Shell) -> SuiteResult {
    for mut request in [
        ShellRequest::argv(&["sleep", "1000"]),
        ShellRequest::script("sleep 1000"),
    ] {
        request.timeout = Some(SHORT);
        match shell.exec(request.clone()).await {
            Err(error) if error.kind == ShellErrorKind::TimedOut => {
                ensure(error.elapsed >= SHORT, "a timeout tells the time it took")?;
            }
            other => return Err(format!("a command ends with its time, not {other:?}")),
        }
    }
    let mut cat = ShellRequest::argv(&["cat"]);
    cat.stdin = vec![b'x'; 1_000];
    cat.output_limit = 999;
    refuses(shell, cat.clone(), ShellErrorKind::OutputLimit).await?;
    cat.output_limit = 1_000;
    ran(shell, cat).await?;
    for request in [
        ShellRequest::script("sleep 1000"),
        ShellRequest::argv(&["sleep", "1000"]),
    ] {
        begin_and_drop(shell.exec(request)).await;
    }
    let output = ran(shell, ShellRequest::script("echo on")).await?;
    ensure(output.stdout == b"on\n", "a dropped call ends its command")
}

/// Starts a call, then cancels it.
async fn begin_and_drop(mut call: super::ShellReply<'_, ShellOutput>) {
    poll_fn(|context| {
        let _ = call.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

async fn session(shell: &dyn Shell) -> SuiteResult {
    ran(shell, ShellRequest::script("cd /tmp")).await?;
    ran(shell, ShellRequest::script("export A99_SUITE=kept")).await?;
    let output = ran(shell, ShellRequest::script("pwd")).await?;
    ensure(output.stdout == b"/tmp\n", "the session has a directory")?;
    let mut apart = ShellRequest::script("cd /");
    apart.cwd = Some("/".to_owned());
    ran(shell, apart).await?;
    let output = ran(shell, ShellRequest::script("pwd")).await?;
    ensure(
        output.stdout == b"/tmp\n",
        "a script with surroundings of its own is not in the session",
    )?;
    let mut cat = ShellRequest::script("cat");
    cat.stdin = b"in".to_vec();
    let output = ran(shell, cat).await?;
    ensure(output.stdout == b"in", "a script can have input")?;
    let output = ran(shell, ShellRequest::script("exit 5")).await?;
    ensure(
        output.exit_code == 5 && output.session_reset,
        "a script may end the session's shell",
    )?;
    let output = ran(shell, ShellRequest::script("env")).await?;
    ensure(
        has_line(&output, b"A99_SUITE=kept"),
        "a new shell has the variables of the old one",
    )
}

async fn files(shell: &dyn Shell) -> SuiteResult {
    let in_folder = |name: &str| format!("{FOLDER}/{name}");
    let path = in_folder("a99-suite ö'$x");
    let fails = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let long: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for bytes in [&long[..], b"", b"no newline", b"\0\xFF\xED\xA0\x80\n"] {
        let written = shell.write_file(path.clone(), bytes.to_vec(), 0o600);
        written.await.map_err(|e| fails("a file is written", &e))?;
        let back = shell.read_file(path.clone(), bytes.len()).await;
        let back = back.map_err(|e| fails("a file is read", &e))?;
        ensure(back == bytes, "a file has the bytes last written")?;
    }
    let cat = ran(shell, ShellRequest::argv(&["cat", &path])).await?;
    let last = b"\0\xFF\xED\xA0\x80\n";
    ensure(cat.stdout == last, "commands see the same files")?;
    let kind = |read: Result<Vec<u8>, super::ShellError>| read.err().map(|error| error.kind);
    let short = shell.read_file(path.clone(), last.len() - 1).await;
    ensure(
        kind(short) == Some(ShellErrorKind::OutputLimit),
        "a file larger than the limit is refused",
    )?;
    let missing = shell.read_file(in_folder("a99-suite-none"), 1).await;
    ensure(
        kind(missing) == Some(ShellErrorKind::NotFound),
        "a file that is not there is not found",
    )?;
    let nul = in_folder("nul\0");
    for path in ["", "relative", "/", &nul] {
        let read = shell.read_file(path.to_owned(), 1).await;
        ensure(
            kind(read) == Some(ShellErrorKind::Invalid),
            "a path is absolute",
        )?;
        let written = shell.write_file(path.to_owned(), Vec::new(), 0o600).await;
        ensure(
            written.is_err_and(|e| e.kind == ShellErrorKind::Invalid),
            "a path is absolute, for writing too",
        )?;
    }
    Ok(())
}
