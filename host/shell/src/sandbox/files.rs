//! Files of the guest, read and written by small scripts that run in it.

use super::guest::exec;
use a99_capabilities::{
    MODE_BITS, ShellCommand, ShellError, ShellErrorKind, ShellRequest, check_path,
};
use a99_sandbox::Sandbox;
use std::time::Duration;

/// Writes standard input to a file beside `$1`, gives it the mode `$2` and renames it to `$1`:
/// the file appears whole or not at all.
const WRITE: &str = r#"
[ -d "$1" ] && exit 91
dir=${1%/*}/
[ -d "$dir" ] || exit 90
[ -w "$dir" ] || exit 92
new=$dir.a99-$$
trap 'rm -f "$new"' EXIT
umask 077
cat >"$new" && chmod "$2" "$new" && mv -f "$new" "$1""#;

/// Writes at most `$2` bytes of the file `$1` to standard output.
const READ: &str = r#"
[ -e "$1" ] || exit 90
[ -f "$1" ] || exit 91
[ -r "$1" ] || exit 92
exec head -c "$2" "$1""#;

/// Exit codes of the scripts: missing, not a file, not allowed.
const NOT_FOUND: u8 = 90;
const NO_FILE: u8 = 91;
const DENIED: u8 = 92;

/// Timeout of a copy: far longer than the largest file needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a script's output in addition to the file.
const REMARKS: usize = 4_096;

/// Runs a script on a path.
async fn run(
    sandbox: &Sandbox,
    script: &str,
    [path, option]: [&str; 2],
    stdin: Vec<u8>,
    most: usize,
) -> Result<Vec<u8>, ShellError> {
    check_path(path)?;
    let argv = ["/bin/sh", "-c", script, "sh", path, option].map(str::to_owned);
    let request = ShellRequest {
        stdin,
        timeout: Some(PATIENCE),
        output_limit: most.saturating_add(REMARKS),
        ..ShellRequest::new(ShellCommand::Argv(argv.to_vec()))
    };
    let done = exec(sandbox, request).await?;
    let failed = |kind, text: &str| Err(ShellError::new(kind, format!("{path}: {text}")));
    match done.exit_code {
        0 => Ok(done.stdout),
        NOT_FOUND => failed(ShellErrorKind::NotFound, "no such file or directory"),
        NO_FILE => failed(ShellErrorKind::Failed, "not a file"),
        DENIED => failed(ShellErrorKind::Denied, "permission denied"),
        _ => {
            let text = String::from_utf8_lossy(&done.stderr);
            failed(ShellErrorKind::Failed, text.trim())
        }
    }
}

/// Writes a file whole.
pub(super) async fn write(
    sandbox: &Sandbox,
    path: &str,
    bytes: Vec<u8>,
    mode: u32,
) -> Result<(), ShellError> {
    let mode = format!("{:o}", mode & MODE_BITS);
    run(sandbox, WRITE, [path, &mode], bytes, 0).await.map(drop)
}

/// Reads a file whole, unless it is larger than the limit.
pub(super) async fn read(
    sandbox: &Sandbox,
    path: &str,
    limit: usize,
) -> Result<Vec<u8>, ShellError> {
    // One byte more detects a file that is too large.
    let most = limit.saturating_add(1);
    let count = most.to_string();
    let bytes = run(sandbox, READ, [path, &count], Vec::new(), most).await?;
    match bytes.len() > limit {
        true => Err(ShellError::file_limit(path, limit)),
        false => Ok(bytes),
    }
}
