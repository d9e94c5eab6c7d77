//! Tests that count the resources of a process, each in a separate process.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Marks a process that runs a single test.
const ALONE: &str = "A99_TEST_ALONE";

/// Such tests take turns, for some take a lot of memory.
static TURN: Mutex<()> = Mutex::new(());

/// Whether this process runs only the test. If not, the test has been run in a separate
/// process when this returns.
///
/// `module` is the test's `module_path!()`.
#[track_caller]
#[allow(clippy::print_stdout, reason = "what the test printed")]
pub fn alone(module: &str, test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, module) = module.split_once("::").expect("a module of the binary");
    let binary = std::env::current_exe().expect("a binary");
    let output = Command::new(binary)
        .args(["--exact", "--include-ignored", "--nocapture"])
        .arg(format!("{module}::{test}"))
        .env(ALONE, "1")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{test}, alone: {}\n{said}{errors}", output.status);
    print!("{said}");
    false
}
