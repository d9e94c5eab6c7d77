//! The tables of `docs/proofs.md`: slow tasks with their last run, and unsafe code with its proof.
//!
//! The second table is also the allow-list of files with unsafe code.

use super::purity::tokens;
use super::tables::table;

const PAGE: &str = "docs/proofs.md";

const TASKS: &str = "## Slow tasks";
const TASK_COLUMNS: [&str; 5] = ["task", "proves", "short form in CI", "last run", "figures"];

const UNSAFE: &str = "## Unsafe code";
const UNSAFE_COLUMNS: [&str; 3] = ["file", "what is unsafe", "proved by"];

/// Entries for a task without a date.
const NEVER: [&str; 2] = ["not run", "not checked"];

/// Inputs of a test that are never compiled into a product.
const NO_CODE: &str = "macros/tests/ui/";

/// Compares the page with the files and with the tasks of `help`.
pub(crate) fn diagnostics<'t>(
    files: impl Iterator<Item = (&'t str, &'t str)>,
    help: &str,
) -> Vec<String> {
    let (mut page, mut with_unsafe) = (None, Vec::new());
    for (path, text) in files {
        if path == PAGE {
            page = Some(text);
        }
        if !path.ends_with(".rs") || path.starts_with(NO_CODE) {
            continue;
        }
        with_unsafe.extend(first_unsafe(text).map(|line| (path, line)));
    }
    let Some(page) = page else {
        return vec![format!("{PAGE}: is missing")];
    };
    let mut found = tasks(page, help);
    found.extend(proven(page, &with_unsafe));
    found
}

/// The first line that contains or allows unsafe code.
fn first_unsafe(text: &str) -> Option<usize> {
    let mut tokens = tokens(text).into_iter();
    let found = tokens.find(|(_, token)| matches!(*token, "unsafe" | "unsafe_code"));
    found.map(|(line, _)| line)
}

/// Checks that each row is a task of `cargo xtask`, and that its last run is a date or [`NEVER`].
fn tasks(page: &str, help: &str) -> Vec<String> {
    let rows = match table(PAGE, page, TASKS, &TASK_COLUMNS) {
        Ok(rows) => rows,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    for row in rows {
        let line = row.line;
        for span in row.spans(0) {
            let name = span.strip_prefix("cargo xtask ");
            let name = name.and_then(|rest| rest.split(' ').next());
            let known = |name| {
                let mut tasks = help.lines().filter_map(|line| line.strip_prefix("  "));
                tasks.any(|task| task.split(' ').next() == Some(name))
            };
            if !name.is_some_and(known) {
                found.push(format!("{PAGE}:{line}: there is no task `{span}`"));
            }
        }
        let (run, figures) = (row.cell(3), row.cell(4));
        let is_date = run.len() == 10 && run.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        if !is_date && !NEVER.contains(&run) {
            found.push(format!("{PAGE}:{line}: `{run}` is no day; write `not run`"));
        }
        if is_date && figures.is_empty() {
            found.push(format!("{PAGE}:{line}: a run without figures"));
        }
    }
    found
}

/// Checks that each file with unsafe code has a row with its proof.
fn proven(page: &str, with_unsafe: &[(&str, usize)]) -> Vec<String> {
    let rows = match table(PAGE, page, UNSAFE, &UNSAFE_COLUMNS) {
        Ok(rows) => rows,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    for (path, line) in with_unsafe {
        if !rows
            .iter()
            .any(|row| row.spans(0).any(|file| file == *path))
        {
            found.push(format!(
                "{path}:{line}: unsafe code without a row below `{UNSAFE}` of {PAGE}"
            ));
        }
    }
    for row in &rows {
        let line = row.line;
        for file in row.spans(0) {
            if !with_unsafe.iter().any(|(path, _)| *path == file) {
                found.push(format!("{PAGE}:{line}: {file} has no unsafe code"));
            }
        }
        if row.cell(1).is_empty() || row.cell(2).is_empty() {
            found.push(format!("{PAGE}:{line}: a row that says nothing"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage\n\n  mutate [--count N]   change artifacts\n  soak   load\n";

    fn check(task: &str, file: &str, code: &str) -> Vec<String> {
        let page = format!(
            "{TASKS}\n\n| task | proves | short form in CI | last run | figures |\n|---|---|---|---|---|\n\
             {task}\n\n{UNSAFE}\n\n| file | what is unsafe | proved by |\n|---|---|---|\n{file}\n"
        );
        diagnostics([(PAGE, &*page), ("x/src/y.rs", code)].into_iter(), HELP)
    }

    const TASK: &str = "| `cargo xtask soak` | load | 5 s | 2026-01-31 | 3 |";
    const FILE: &str = "| `x/src/y.rs` | a call | a test |";
    const CODE: &str = "fn f() {\n    unsafe { g() }\n}\n";

    #[test]
    fn a_true_page_has_no_diagnostic() {
        assert_eq!(check(TASK, FILE, CODE), [""; 0]);
        let lint = "#![allow(\n    unsafe_code,\n    reason = \"imports\"\n)]\n";
        assert_eq!(check(TASK, FILE, lint), [""; 0]);
    }

    #[test]
    fn unsafe_code_and_rows_belong_together() {
        let found = check(TASK, "", CODE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("x/src/y.rs:2: unsafe code"),
            "{found:?}"
        );
        let safe = "// unsafe\nlet unsafety = 1;\n";
        let found = check(TASK, FILE, safe);
        assert_eq!(found, ["docs/proofs.md:11: x/src/y.rs has no unsafe code"]);
        assert_eq!(check(TASK, "| `x/src/y.rs` | a call | |", CODE).len(), 1);
    }

    #[test]
    fn tasks_exist_and_have_a_day() {
        let unknown = "| `cargo xtask rest` | load | 5 s | 2026-01-31 | 3 |";
        assert_eq!(check(unknown, FILE, CODE).len(), 1);
        let vague = "| `cargo xtask mutate --count 9` | load | 5 s | lately | 3 |";
        assert_eq!(check(vague, FILE, CODE).len(), 1);
        let empty = "| `cargo xtask soak` | load | 5 s | 2026-01-31 | |";
        assert_eq!(check(empty, FILE, CODE).len(), 1);
        let never = "| `cargo xtask soak` | load | 5 s | not run | |";
        assert_eq!(check(never, FILE, CODE), [""; 0]);
    }
}
