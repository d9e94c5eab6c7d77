//! Stable codes: what machines know a failure by, whatever its message says.
//!
//! A code is a family and a name, such as `verify.bad_index`; it never changes
//! and never gets another meaning. Some were published in another form first,
//! such as `A99-V0002`, which stays as an alias. Each list of codes is a table,
//! one row each; `docs/errors.md` is generated from these tables.

mod sections;

pub use sections::{Section, sections};

use crate::value::Map;
use crate::{artifact, diag, error, suspend, verify};
use std::collections::HashSet;

/// A row of a table of codes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Code<'a> {
    /// The code, a family and a name in snake case with a dot between them.
    pub name: &'a str,
    /// The form in which it was published first, if that was another.
    pub alias: Option<&'a str>,
    /// What it means, in one sentence.
    pub meaning: &'a str,
    /// What helps, without a full stop; empty where the message alone can say it.
    pub help: &'a str,
}

impl<'a> Code<'a> {
    /// What stands before the dot.
    #[must_use]
    pub fn family(&self) -> &'a str {
        self.name.split('.').next().unwrap_or_default()
    }
}

/// The tables of this crate.
const TABLES: &[&[Code<'static>]] = &[
    diag::codes::TABLE,
    verify::codes::TABLE,
    artifact::codes::TABLE,
    error::TABLE,
    suspend::codes::TABLE,
];

/// Every code of programs, artifacts and runs.
pub fn all() -> impl Iterator<Item = &'static Code<'static>> {
    TABLES.iter().copied().flatten()
}

/// The row of a code, which may be given by its alias.
#[must_use]
pub fn find(code: &str) -> Option<&'static Code<'static>> {
    all().find(|row| row.name == code || row.alias == Some(code))
}

/// The alias of a code, if it has one.
#[must_use]
pub fn alias(code: &str) -> Option<&'static str> {
    find(code)?.alias
}

/// Puts a code into the JSON form of what carries it: `code`, and `alias` if it
/// has one.
pub fn insert(map: &mut Map, code: &str) {
    map.insert("code", code);
    if let Some(alias) = alias(code) {
        map.insert("alias", alias);
    }
}

/// What is wrong with the codes of this crate and others beside them: form,
/// sentences, names that are taken.
#[must_use]
pub fn faults<'a>(others: impl IntoIterator<Item = &'a Code<'a>>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut faults = Vec::new();
    for row in all() {
        check(row, &mut taken, &mut faults);
    }
    for row in others {
        check(row, &mut taken, &mut faults);
        if !is_taken(row.name) {
            faults.push(format!(
                "{}: its family is missing in OTHER_FAMILIES of core/src/codes.rs",
                row.name
            ));
        }
    }
    faults
}

fn check<'a>(row: &Code<'a>, taken: &mut HashSet<&'a str>, faults: &mut Vec<String>) {
    for text in [Some(row.name), row.alias].into_iter().flatten() {
        if !taken.insert(text) {
            faults.push(format!("{text} is there twice"));
        }
    }
    if !is_dotted(row.name) {
        faults.push(format!("{} is not of the form family.snake_case", row.name));
    }
    if !row.meaning.ends_with('.') || row.help.ends_with('.') {
        faults.push(format!(
            "{}: the meaning is a sentence, the help has no full stop",
            row.name
        ));
    }
}

/// Whether a text is two words in snake case with a dot between them.
pub(crate) const fn is_dotted(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut dots = 0;
    // What stands before the first byte and after the last.
    let mut before = b'.';
    let mut at = 0;
    while at <= bytes.len() {
        let byte = if at < bytes.len() { bytes[at] } else { b'.' };
        let fits = match byte {
            b'a'..=b'z' => true,
            b'0'..=b'9' => before != b'.',
            b'_' => before != b'.' && before != b'_',
            b'.' => {
                dots += 1;
                before != b'.' && before != b'_'
            }
            _ => false,
        };
        if !fits {
            return false;
        }
        before = byte;
        at += 1;
    }
    // One between them, and the one that stands for the end.
    dots == 2
}

/// Families of crates above this one, which have no code of a host either;
/// [`faults`] names one that is missing here.
const OTHER_FAMILIES: &[&str] = &[
    "agent.",
    "ai.",
    "boundary.",
    "call.",
    "cli.",
    "config.",
    "egress.",
    "embed.",
    "fetch.",
    "host.",
    "image.",
    "models.",
    "mount.",
    "net.",
    "postgres.",
    "process.",
    "sandbox.",
    "shell.",
    "source.",
    "sqlite.",
    "state.",
    "step.",
    "storage.",
    "store.",
    "timer.",
    "turn.",
    "xml.",
];

/// Whether a code's family is one of ours.
pub(crate) const fn is_taken(code: &str) -> bool {
    let mut at = 0;
    while at < TABLES.len() {
        let mut row = 0;
        while row < TABLES[at].len() {
            if same_family(code, TABLES[at][row].name) {
                return true;
            }
            row += 1;
        }
        at += 1;
    }
    is_of_capability(code)
}

/// Whether a code's family is one of the crates around the engine.
pub(crate) const fn is_of_capability(code: &str) -> bool {
    let mut other = 0;
    while other < OTHER_FAMILIES.len() {
        if same_family(code, OTHER_FAMILIES[other]) {
            return true;
        }
        other += 1;
    }
    false
}

/// Whether two codes are the same up to their dot.
const fn same_family(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        if a[at] == b'.' {
            return true;
        }
        at += 1;
    }
    false
}

/// The row of a code that has sentence, alias and help as a table gives them.
macro_rules! code_row {
    ([$($doc:literal)+] $code:literal [$($alias:literal)?] [$($help:literal)?]) => {
        $crate::codes::Code {
            name: $code,
            alias: {
                let alias: &[&str] = &[$($alias)?];
                alias.first().copied()
            },
            meaning: concat!($($doc),+).trim_ascii(),
            help: concat!($($help)?),
        }
    };
}
pub(crate) use code_row;

/// A table of codes as constants: sentence, name of the constant, code, alias,
/// and what helps.
macro_rules! code_table {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $code:literal $(alias $alias:literal)? $(help $help:literal)?;
    )*) => {
        $( $(#[doc = $doc])+ pub const $name: &str = $code; )*

        /// The table of these codes.
        pub const TABLE: &[$crate::codes::Code<'static>] = &[
            $( $crate::codes::code_row!([$($doc)+] $code [$($alias)?] [$($help)?]), )*
        ];
    };
}
pub(crate) use code_table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_of_one_form_and_distinct() {
        assert_eq!(faults([]), Vec::<String>::new());
        // Families belong to one table, so that codes tell where they are from.
        for (at, table) in TABLES.iter().enumerate() {
            for other in &TABLES[at + 1..] {
                let shared = |a: &&Code<'_>| other.iter().any(|b| a.family() == b.family());
                assert_eq!(table.iter().find(shared), None);
            }
        }
    }

    #[test]
    fn published_numbers_stay() {
        let numbers = |letter: &str| {
            let start = format!("A99-{letter}");
            let found = all().filter(|row| row.alias.is_some_and(|a| a.starts_with(&start)));
            found.count()
        };
        let counts = ["E", "W", "L", "V", "B"].map(numbers);
        assert_eq!(counts, [16, 10, 4, 17, 14]);
        let row = find("A99-V0002").unwrap();
        assert_eq!((row.name, row.family()), ("verify.bad_index", "verify"));
        assert_eq!(find("verify.bad_index"), Some(row));
        assert_eq!(alias("verify.bad_index"), Some("A99-V0002"));
        assert_eq!((alias("fuel.exhausted"), find("A99-V9999")), (None, None));
    }

    #[test]
    fn faults_are_told() {
        let row = |name, alias, meaning, help| Code {
            name,
            alias,
            meaning,
            help,
        };
        let bad = [
            row("net.b", Some("X1"), "One.", ""),
            row("net.b", Some("X1"), "Two.", ""),
            row("cli", None, "Three.", ""),
            row("net.noCamel", None, "Four.", ""),
            row("net.b.c", None, "Five.", ""),
            row("net.c_", None, "Six.", ""),
            row("net.d", None, "seven", ""),
            row("net.e", None, "Eight.", "do it."),
            row("new.f", None, "Nine.", ""),
        ];
        // A code without a dot has no family either.
        assert_eq!(faults(&bad).len(), 10);
        assert_eq!(faults(&bad[..1]).len(), 0);
    }
}
