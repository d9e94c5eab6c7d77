//! Facts about atoms, builtin functions and methods stand in one sheet: their signatures and
//! rows. A list of their names as text elsewhere is a copy of such a fact.
//!
//! What counts as a list is an array of string literals or a `matches!` of them, of which at
//! least three, and half, are registered names. An arm of a `match` says what is done for single
//! names, and may.

use a99_core::builtins::{FUNCTIONS, METHODS};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Where the sheet is, with the code and the builders of its rows.
const SHEET: [&str; 5] = [
    "atoms/src/",
    "core/builder/src/",
    "core/src/builtins/",
    "core/src/grammar.rs",
    "vm/src/builtins/",
];

/// Files that may have lists, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "agent99/src/declarations.rs",
        "functions that the library of TypeScript declares",
    ),
    (
        "agent99/src/replay/mod.rs",
        "the atoms of a turn that act on others",
    ),
    (
        "compiler/cost/src/atoms.rs",
        "atoms whose bodies have a bound that is modelled",
    ),
    ("agent99/src/prompt/rules.rs", "what a prompt speaks of"),
    ("agent99/src/prompt/source.rs", "what a prompt speaks of"),
    (
        "cli/lsp/src/complete.rs",
        "methods that write HTML, which are not proposed",
    ),
    (
        "compiler/lint/src/code_text.rs",
        "functions of other languages",
    ),
    ("compiler/src/advice/ops.rs", "functions of other languages"),
    ("compiler/lint/src/ranges.rs", "advice for single methods"),
    (
        "compiler/lint/src/source_help.rs",
        "words of other languages",
    ),
    (
        "compiler/source/src/atom.rs",
        "atoms that are syntax of JavaScript",
    ),
    (
        "compiler/source/src/bits.rs",
        "functions that are operators of JavaScript",
    ),
    (
        "compiler/source/src/closures/calls.rs",
        "what methods do with functions in lists, which no row says",
    ),
    (
        "compiler/source/src/closures/expr.rs",
        "builtin functions that are values in JavaScript",
    ),
    (
        "compiler/source/src/desugar/calls.rs",
        "functions and methods that JavaScript can call by `call` and `apply`",
    ),
    (
        "compiler/source/src/defined.rs",
        "decides which steps a source becomes, so that no method is added",
    ),
    ("compiler/source/src/guard.rs", "keywords of JavaScript"),
    (
        "compiler/source/src/indexes.rs",
        "methods whose function takes no item first in JavaScript",
    ),
    (
        "compiler/source/src/print/loops.rs",
        "steps that are statements of JavaScript",
    ),
    (
        "compiler/source/src/provided.rs",
        "methods that take regular expressions in JavaScript",
    ),
];

/// Crates that are no product: their lists judge the product's.
const WORKSHOP: [&str; 4] = ["tests/", "benches/", "fuzz/", "xtask/"];

/// The fewest names of a list.
const FEWEST: usize = 3;

/// The names of all atoms that programs may name, methods and functions; those of schemas are
/// words of JSON Schema, too, and no facts.
static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let atoms = a99_atoms::all_atoms();
    let atoms = atoms.iter().map(|atom| atom.sig.name.to_string());
    let functions = FUNCTIONS.iter().filter(|row| row.ns != "Schema");
    let builtins = METHODS.iter().map(|row| row.name);
    let builtins = builtins.chain(functions.map(|row| row.name));
    let names = atoms.chain(builtins.map(str::to_owned));
    names.filter(|name| !a99_atoms::is_internal(name)).collect()
});

/// What is wrong in a file.
pub(super) fn diagnostics(path: &str, text: &str) -> Vec<String> {
    let is_source = path.ends_with(".rs") && path.contains("src/") && !path.ends_with("/tests.rs");
    let is_test = path.contains("/tests/") || WORKSHOP.iter().any(|dir| path.starts_with(dir));
    let is_known = SHEET.iter().any(|dir| path.starts_with(dir))
        || EXCEPTIONS.iter().any(|(file, _)| *file == path);
    if !is_source || is_test || is_known {
        return Vec::new();
    }
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lists = lists(product);
    let copies = lists.into_iter().filter(|(_, list)| is_copy(list));
    copies
        .map(|(at, list)| {
            let line = product[..at].matches('\n').count() + 1;
            format!(
                "{path}:{line}: a list of names ({}, ...): make it a fact of `AtomSig` or of a \
                 row of core/src/builtins, or name the file in xtask/src/tidy/sheet.rs",
                list.iter()
                    .take(FEWEST)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        })
        .collect()
}

fn is_copy(list: &[&str]) -> bool {
    let known: BTreeSet<&&str> = list.iter().filter(|name| NAMES.contains(**name)).collect();
    known.len() >= FEWEST && 2 * known.len() >= list.len()
}

/// The literals of each array and each `matches!`, with the place where it begins.
fn lists(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut lists = Vec::new();
    // Brackets that are open: the place, and whether literals in it are items of a list.
    let mut open: Vec<(usize, bool, Vec<&str>)> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
            }
            b'\'' if text[at..].starts_with("'\"'") => at += 2,
            b'\'' if text[at..].starts_with("'\\") => at += 3,
            b'"' => {
                let start = at + 1;
                at = start;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                let item = text.get(start..at).unwrap_or_default();
                if let Some((_, _, list)) = open.iter_mut().rev().find(|(_, is_list, _)| *is_list) {
                    list.push(item);
                }
            }
            b'[' => open.push((at, !text[..at].ends_with('#'), Vec::new())),
            b'(' => open.push((at, text[..at].ends_with("matches!"), Vec::new())),
            b'{' => open.push((at, false, Vec::new())),
            b']' | b')' | b'}' => {
                if let Some((place, true, list)) = open.pop() {
                    lists.push((place, list));
                }
            }
            _ => {}
        }
        at += 1;
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        diagnostics("cli/src/some.rs", text)
    }

    #[test]
    fn lists_of_names_are_found() {
        for text in [
            "const READS: &[&str] = &[\"storeGet\", \"storeList\", \"httpFetch\"];",
            "const M: &[(&str, &str)] = &[(\"storeGet\", \"a\"), (\"split\", \"b\"), (\"join\", \"c\")];",
            "fn f() {\n    matches!(op, \"push\" | \"pop\" | \"shift\")\n}",
            "const M: &[&[u8]] = &[b\"push\", b\"pop\", b\"shift\"];",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        assert!(
            found("\n['\"', \"push\", \"pop\", \"map\"]")[0].starts_with("cli/src/some.rs:2: ")
        );
    }

    #[test]
    fn other_texts_are_no_lists() {
        for text in [
            "[\"push\", \"pop\"]",
            "[\"push\", \"pop\", \"map\", \"a\", \"b\", \"c\", \"d\"]",
            "match op { \"push\" | \"pop\" | \"shift\" => 1, _ => 2 }",
            "// [\"push\", \"pop\", \"map\"]",
            "[guard(\"a\")];\n#[cfg(test)]\nmod tests { [\"push\", \"pop\", \"map\"] }",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn exceptions_are_needed() {
        for (path, _) in EXCEPTIONS {
            let text = std::fs::read_to_string(crate::shell::root().join(path));
            let lists = text.as_deref().map(lists).unwrap_or_default();
            assert!(lists.iter().any(|(_, list)| is_copy(list)), "{path}");
        }
    }
}
