//! Pairs of modules that import each other, in the crates of a table of `xtask/rules.md`.
//!
//! A module is a file or folder directly below `src`. Only paths that begin with `crate::` count,
//! outside of tests.

use super::sizes::{product, test_modules};
use super::tables::{Row, table};
use std::collections::BTreeSet;

/// The page with the table.
const PAGE: &str = "xtask/rules.md";
const HEADING: &str = "## Pairs of modules";
const COLUMNS: [&str; 3] = ["folder", "pairs that import each other", "why"];

/// Pairs that the table does not allow, and those that are no pairs any more.
pub(crate) fn diagnostics<'f>(
    files: impl Iterator<Item = (&'f str, &'f str)> + Clone,
) -> Vec<String> {
    let page = files.clone().find(|(path, _)| *path == PAGE);
    match table(PAGE, page.map_or("", |(_, text)| text), HEADING, &COLUMNS) {
        Ok(rows) => (rows.iter())
            .flat_map(|row| {
                compare(
                    row,
                    &pairs(row.spans(0).next().unwrap_or(""), files.clone()),
                )
            })
            .collect(),
        Err(error) => vec![error],
    }
}

fn compare(row: &Row, found: &BTreeSet<String>) -> Vec<String> {
    let (folder, line) = (row.cell(0), row.line);
    let allowed: BTreeSet<String> = row.spans(1).map(str::to_owned).collect();
    let more = found.difference(&allowed).map(|pair| {
        format!("{PAGE}:{line}: modules of {folder} import each other: `{pair}`; move an item down")
    });
    let less = allowed.difference(found).map(|pair| {
        format!("{PAGE}:{line}: `{pair}` of {folder} do not import each other; remove the pair")
    });
    more.chain(less).collect()
}

/// The pairs of a crate, each as two names in order.
fn pairs<'f>(
    folder: &str,
    files: impl Iterator<Item = (&'f str, &'f str)> + Clone,
) -> BTreeSet<String> {
    let src = format!("{folder}/src/");
    let rust = files.filter(|(path, _)| path.starts_with(&src) && path.ends_with(".rs"));
    let tests: BTreeSet<String> = rust.clone().flat_map(test_modules).collect();
    let is_test = |path: &str| tests.iter().any(|module| path.starts_with(module.as_str()));
    let mut arrows = BTreeSet::new();
    for (path, text) in rust.filter(|(path, _)| !is_test(path)) {
        let inner = path[src.len()..].trim_end_matches(".rs");
        let from = inner.split_once('/').map_or(inner, |(first, _)| first);
        let to = imports(&product(text));
        arrows.extend(to.into_iter().map(|to| (from.to_owned(), to)));
    }
    let back = |from: &String, to: &String| arrows.contains(&(to.clone(), from.clone()));
    let both = arrows.iter().filter(|(a, b)| a < b && back(a, b));
    both.map(|(a, b)| format!("{a} {b}")).collect()
}

/// First names of the paths behind `crate::`, also those of a group.
fn imports(code: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = |text: &str| text.split(|c| !is_name(c)).next().unwrap_or("").to_owned();
    let mut found = BTreeSet::new();
    for behind in code.split("crate::").skip(1) {
        let Some(group) = behind.strip_prefix('{') else {
            found.insert(name(behind));
            continue;
        };
        let (mut depth, mut start) = (1, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {}
                _ => continue,
            }
            if depth < 2 && c != '{' {
                found.insert(name(group[start..at].trim_start()));
                start = at + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pairs: &str, code: &str) -> Vec<String> {
        let page = format!(
            "{HEADING}\n\n| folder | pairs that import each other | why |\n|---|---|---|\n\
             | `vm` | {pairs} | so |\n"
        );
        let files = [
            (PAGE, &*page),
            ("vm/src/a.rs", "use crate::b::X;\n"),
            ("vm/src/b/mod.rs", code),
            ("core/src/a.rs", "use crate::b;\n"),
            ("core/src/b.rs", "use crate::a;\n"),
        ];
        diagnostics(files.into_iter())
    }

    #[test]
    fn a_pair_needs_an_entry() {
        for code in [
            "use crate::a::Y;\n",
            "use crate::{c::{D, E}, a};\n",
            "fn f() {\n    crate::a::g();\n}\n",
        ] {
            assert_eq!(told("", code).len(), 1, "{code}");
            assert!(told("`a b`", code).is_empty(), "{code}");
        }
    }

    #[test]
    fn an_entry_needs_a_pair() {
        for code in [
            "use crate::{c::{a, E}, d};\n",
            "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
            "// crate::a\n",
        ] {
            assert!(told("", code).is_empty(), "{code}");
            assert_eq!(told("`a b`", code).len(), 1, "{code}");
        }
    }
}
