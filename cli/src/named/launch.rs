//! Launcher: starts the daemon of a sandbox and waits until it is ready.

use super::error::LOST;
use super::name::Name;
use super::runtime_dir::RuntimeDir;
use super::spec::Spec;
use crate::local::Refusal;
use a99_frame::WireError;
use serde::Deserialize;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// This binary, even if another was installed in its place meanwhile.
pub(crate) const SELF_EXE: &str = "/proc/self/exe";

/// The daemon's single line on standard output.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Startup {
    Ready(Json),
    Error(WireError),
}

/// Starts a sandbox of that name and waits until it is ready. Returns its status.
///
/// # Errors
/// The reason why it did not start.
pub(crate) fn launch(name: &Name, spec: &Spec) -> Result<Json, Refusal> {
    // Check the folder here too: this process has a terminal for its error.
    let dir = RuntimeDir::of_user()?;
    let failed = |error: std::io::Error| Refusal::io("the sandbox's process", error);
    let mut child = Command::new(SELF_EXE)
        .arg0("a99")
        .args(["sandbox", "keep", name.as_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let settings = serde_json::to_vec(spec).map_err(|error| failed(error.into()))?;
    if let Some(mut input) = child.stdin.take() {
        // A daemon that does not read has failed; it reports why, or ends.
        let _ = input.write_all(&settings);
    }
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output)
            .read_line(&mut line)
            .map_err(failed)?;
    }
    match serde_json::from_str(&line) {
        // The daemon runs on by itself.
        Ok(Startup::Ready(status)) => Ok(status),
        Ok(Startup::Error(error)) => {
            child.wait().map_err(failed)?;
            Err(error.into())
        }
        Err(_) => {
            let status = child.wait().map_err(failed)?;
            let log = dir.log_text(name).unwrap_or_default();
            let text = format!("the sandbox's process ended early: {status}\n{log}");
            Err(Refusal::new(LOST, text.trim()))
        }
    }
}
