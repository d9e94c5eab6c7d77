//! Stable error codes: machines identify a failure by its code, independent of the message.
//!
//! A code is a family and a name, such as `verify.bad_index`. It never changes and is never reused.
//! Codes that were first published in another form, such as `A99-V0002`, keep that form as an
//! alias. Each list of codes is a table with one row per code; `docs/errors.md` is generated from
//! these tables.

mod sections;

pub use sections::{Section, sections};

use crate::value::Map;
use crate::{artifact, diag, error, suspend, verify};
use std::collections::HashSet;

/// A row of a table of codes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Code<'a> {
    /// The code: a family and a name in snake case with a dot between them.
    pub name: &'a str,
    /// The form in which the code was first published, if it differs.
    pub alias: Option<&'a str>,
    /// Meaning of the code, in one sentence.
    pub meaning: &'a str,
    /// Advice without a full stop; empty if the message gives it.
    pub help: &'a str,
}

impl<'a> Code<'a> {
    /// The part before the dot.
    #[must_use]
    pub fn family(&self) -> &'a str {
        self.name.split('.').next().unwrap_or_default()
    }
}

/// The code tables of this crate.
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

/// The row of a code or an alias.
#[must_use]
pub fn find(code: &str) -> Option<&'static Code<'static>> {
    all().find(|row| row.name == code || row.alias == Some(code))
}

/// The alias of a code.
#[must_use]
pub fn alias(code: &str) -> Option<&'static str> {
    find(code)?.alias
}

/// Adds a code to a JSON form: `code`, and `alias` if the code has one.
pub fn insert(map: &mut Map, code: &str) {
    map.insert("code", code);
    if let Some(alias) = alias(code) {
        map.insert("alias", alias);
    }
}

/// Faults of the codes of this crate and of `others`: wrong form, malformed sentences, duplicate
/// names.
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

/// True if a text is two snake-case words with a dot between them.
pub(crate) const fn is_dotted(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut dots = 0;
    // The positions before the first byte and after the last count as dots.
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
    // The dot between the words and the one that stands for the end.
    dots == 2
}

/// Families of crates above this one, which hosts may not use either. [`faults`] names a family
/// that is missing here.
const OTHER_FAMILIES: &[&str] = &[
    "agent.",
    "ai.",
    "binding.",
    "boundary.",
    "call.",
    "channels.",
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
    "oci.",
    "postgres.",
    "process.",
    "push.",
    "sandbox.",
    "server.",
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

/// True if the code's family belongs to the engine.
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

/// True if the code's family belongs to a capability of the engine.
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

/// True if two codes are equal up to their dot.
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

/// The row of a code with the sentence, alias and help of a table entry.
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

/// A table of codes as constants: sentence, name of the constant, code, alias, help.
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
        // Each family belongs to one table, so a code identifies its table.
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
        // A code without a dot has no known family either.
        assert_eq!(faults(&bad).len(), 10);
        assert_eq!(faults(&bad[..1]).len(), 0);
    }
}
