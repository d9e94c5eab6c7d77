//! Words of other tools: commands and options that are called otherwise here.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// What others call a command.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["lint", "validate", "test", "analyze", "typecheck"],
        "check",
    ),
    (&["build", "bundle", "make", "pack"], "compile"),
    (&["exec", "execute", "start", "eval", "call"], "run"),
    (&["init", "create", "scaffold"], "new"),
    (&["format", "pretty"], "fmt"),
    (&["disasm", "dump", "bytecode"], "inspect"),
    (&["shell", "console", "interactive"], "repl"),
    (&["errors", "code"], "explain"),
];

/// What others call an option, and how it is written.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &[
            "--input", "--arg", "--param", "--params", "--data", "--vars", "-a",
        ],
        "--args '{\"name\": VALUE}'",
    ),
    (
        &["--mem", "--memory-limit", "--max-memory", "--ram"],
        "--memory 64M",
    ),
    (
        &["--time-limit", "--deadline", "--time", "--timeout-ms"],
        "--timeout 5s",
    ),
    (&["--gas", "--budget", "--limit", "--steps"], "--fuel 100"),
    (
        &["--strict", "--werror", "--fail-on-warnings"],
        "--deny-warnings",
    ),
];

/// What is meant by a word of another tool.
fn meant(rows: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    let row = rows.iter().find(|row| row.0.contains(&word));
    row.map(|row| row.1)
}

/// Puts what works here in place of what the error suggests by itself.
pub(crate) fn advise(error: &mut clap::Error) {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let command = given(ContextKind::InvalidSubcommand);
    let option = given(ContextKind::InvalidArg);
    let help = match (command, option) {
        (Some(word), _) => meant(COMMANDS, &word),
        (_, Some(word)) => meant(OPTIONS, word.split(['=', ' ']).next().unwrap_or_default()),
        _ => None,
    };
    if let Some(help) = help {
        let tip = StyledStr::from(format!("here that is `{help}`"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}
