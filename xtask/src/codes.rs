//! Codes of crates that xtask does not depend on, parsed from their source: `docs/errors.md` lists
//! them beside those of `a99-core`.
//!
//! A list is an enum with a sentence above each variant and a `match` with
//! `Variant => "family.name"`, or constants with a sentence above each. A second
//! string on the line is the alias.

use crate::shell::{Failed, failed, root};
use a99_core::codes::{Code, Section, faults};
use std::collections::HashMap;
use std::fs;

/// A list: its file, and its enum or an empty name for constants.
type List = (&'static str, &'static str);

/// The sections: heading, description, lists.
const SECTIONS: &[(&str, &str, &[List])] = &[
    (
        "Command",
        "The command `a99` found an error.",
        &[("cli/src/failure.rs", ""), ("cli/src/config.rs", "")],
    ),
    (
        "Hosts of agents",
        "The command `a99 agent` found an error; stores and agents have their own codes.",
        &[("cli/src/live/error.rs", "")],
    ),
    (
        "Packages for TypeScript and Python",
        "A package refused a call or an option of its host, or cannot do it; the message has the fix.",
        &[("bindings/core/src/codes.rs", "")],
    ),
    (
        "Source form",
        "A program in JavaScript is wrong, or outside the subset ([source](source.md)).",
        &[("compiler/source/src/codes.rs", "")],
    ),
    (
        "Shells",
        "A computer that the host granted refused a request or failed. Programs see the message.",
        &[("capabilities/src/shell/mod.rs", "ShellErrorKind")],
    ),
    (
        "Programs of agents",
        "A turn of a program that handles events failed.",
        &[("runtime/driver/src/program/error.rs", "ProgramCode")],
    ),
    (
        "Turns of agents",
        "A handler of an agent failed, an operation of its turn was refused, or a turn became \
         a dead letter ([runtime](runtime.md)).",
        &[
            ("runtime/driver/src/error.rs", ""),
            ("runtime/engine/src/codes.rs", ""),
            ("runtime/driver/src/program/journal.rs", ""),
            ("runtime/patterns/src/codes.rs", ""),
        ],
    ),
    (
        "States of agents",
        "An agent does not start with its stored state.",
        &[("runtime/engine/src/migrate.rs", "StateError")],
    ),
    (
        "Fetches",
        "`HttpFetch` returned no response. Programs see the message.",
        &[("host/http/src/error.rs", "FetchCode")],
    ),
    (
        "Models",
        "A language model gave no complete answer. Programs see the message.",
        &[("capabilities/src/ai/error.rs", "AiCode")],
    ),
    (
        "Configurations of models",
        "A configuration of `a99-models` is invalid; the message has the position.",
        &[("host/models/src/error.rs", "ModelCode")],
    ),
    (
        "Embeddings",
        "A text could not be embedded, or a model could not be imported or loaded. Programs see \
         the message about texts.",
        &[("host/embed/src/error.rs", "EmbedCode")],
    ),
    (
        "Stores in a file",
        "A store's file cannot be opened, or refuses an operation. Programs see the message if \
         their request is the cause, and otherwise only that the store does not work.",
        &[("host/sqlite/src/error.rs", "SqliteCode")],
    ),
    (
        "Stores on a server",
        "A PostgreSQL server cannot be used, or refuses an operation. Programs see the message \
         if their request is the cause, and otherwise only that the store does not work, or when \
         to retry.",
        &[("host/postgres/src/error.rs", "PostgresCode")],
    ),
    (
        "Stores of agents",
        "A store of agents and channels refused or failed a request.",
        &[("runtime/engine/src/store/error.rs", "StoreCode")],
    ),
    (
        "Channels of a server",
        "A channel server refused a request, or a client cannot reach it \
         ([channels](channels.md)).",
        &[("server/channels/src/codes.rs", "")],
    ),
    (
        "Pushed events",
        "A receiver refused a request of a pusher, or a pusher cannot use a registration \
         ([push](push.md)).",
        &[("server/push/src/codes.rs", "")],
    ),
    (
        "Listeners",
        "A listener cannot start, refuses a request, or a token is not valid. Responses have it \
         as `error` with `code`, `message` and `help`.",
        &[("server/http/src/error.rs", "ServerCode")],
    ),
    (
        "XML",
        "`XmlParser` could not read a document. Programs see the message.",
        &[("host/xml/src/error.rs", "XmlCode")],
    ),
    (
        "Sandboxes",
        "A guest, or its background process, failed ([sandbox](sandbox.md)).",
        &[
            ("sandbox/runner/src/error.rs", "VmCode"),
            ("cli/src/named/error.rs", ""),
        ],
    ),
    (
        "Images",
        "A guest's image could not be built, exported or imported. \
         `a99 sandbox doctor` lists missing parts.",
        &[("sandbox/cache/src/error.rs", "ErrorCode")],
    ),
    (
        "Container images",
        "An archive or a registry has no image for guests, or is hostile ([sandbox](sandbox.md)).",
        &[("sandbox/oci/src/error.rs", "OciCode")],
    ),
    (
        "Mounts",
        "Files cannot be shared with a guest; the message has the fix.",
        &[("sandbox/p9/src/mount.rs", "MountCode")],
    ),
    (
        "Networks",
        "A guest's gateway cannot start.",
        &[("sandbox/net/src/error.rs", "NetCode")],
    ),
    (
        "Network policies",
        "The text of a policy is wrong; the message has the position.",
        &[("core/egress/src/error.rs", "PolicyCode")],
    ),
];

/// A parsed row.
#[derive(Debug, PartialEq, Eq)]
struct CodeRow {
    name: String,
    alias: Option<String>,
    meaning: String,
}

/// Calls `f` with the sections of other crates, after checking the form and uniqueness of all
/// codes.
pub(crate) fn with_sections(f: impl FnOnce(&[Section<'_>]) -> String) -> Result<String, Failed> {
    let mut found = Vec::new();
    for (title, about, lists) in SECTIONS.iter().copied() {
        let mut rows = Vec::new();
        for (path, of) in lists {
            let text =
                fs::read_to_string(root().join(path)).map_err(|error| failed(path, error))?;
            rows.extend(scan(&text, of).map_err(|error| failed(path, error))?);
        }
        found.push((title, about, rows));
    }
    let sections: Vec<Section<'_>> = found
        .iter()
        .map(|&(title, about, ref rows)| Section {
            title,
            about,
            rows: rows.iter().map(code).collect(),
        })
        .collect();
    let others = sections.iter().flat_map(|section| &section.rows);
    match faults(others).as_slice() {
        [] => Ok(f(&sections)),
        faults => Err(failed("codes", faults.join("; "))),
    }
}

fn code(row: &CodeRow) -> Code<'_> {
    Code {
        name: &row.name,
        alias: row.alias.as_deref(),
        meaning: &row.meaning,
        help: "",
    }
}

/// The rows of a list: all variants of the enum, or all constants that are codes.
fn scan(text: &str, of: &str) -> Result<Vec<CodeRow>, String> {
    let start = format!("pub enum {of} {{");
    let (mut docs, mut in_enum) = (String::new(), false);
    let (mut variants, mut names) = (Vec::new(), HashMap::new());
    let mut rows = Vec::new();
    for line in text.lines() {
        let code = line.trim();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push_str(doc);
        } else if code.starts_with("//") {
            // Comments may stand between a sentence and its item.
        } else {
            let sentence = plain(&std::mem::take(&mut docs));
            if line == start {
                in_enum = true;
            } else if line == "}" {
                in_enum = false;
            } else if in_enum && is_variant(line) {
                variants.push((word(code), sentence));
            } else if of.is_empty() && is_const(code) {
                rows.extend(codes(code).map(|(name, alias)| CodeRow {
                    name,
                    alias,
                    meaning: sentence,
                }));
            } else if let Some((variant, value)) = arm(code, of)
                && let Some(found) = codes(value)
            {
                names.insert(variant, found);
            }
        }
    }
    for (variant, meaning) in variants {
        let (name, alias) = names
            .remove(variant)
            .ok_or_else(|| format!("{of}::{variant} has no code"))?;
        rows.push(CodeRow {
            name,
            alias,
            meaning,
        });
    }
    match rows.is_empty() {
        true => Err("no codes found".to_owned()),
        false => Ok(rows),
    }
}

/// A doc comment without the brackets of links.
fn plain(docs: &str) -> String {
    docs.trim().replace("[`", "`").replace("`]", "`")
}

/// The first word of a line.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}

/// Whether a line of an enum begins a variant, by its indentation.
fn is_variant(line: &str) -> bool {
    let inner = line.strip_prefix("    ");
    inner.is_some_and(|inner| inner.starts_with(char::is_alphabetic))
}

fn is_const(line: &str) -> bool {
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let line = line.strip_prefix("pub ").unwrap_or(line);
    line.starts_with("const ")
}

/// Variant and value of an arm of a `match` on the enum.
fn arm<'l>(line: &'l str, of: &str) -> Option<(&'l str, &'l str)> {
    let (pattern, value) = line.split_once(" => ")?;
    let (name, variant) = pattern.split_once("::")?;
    (name == "Self" || name == of).then(|| (word(variant), value))
}

/// The code in a line with its alias, if any.
fn codes(line: &str) -> Option<(String, Option<String>)> {
    let mut texts = line.split('"').skip(1).step_by(2);
    let name = texts.next()?;
    if !name.contains('.') || name.contains(' ') {
        return None;
    }
    let alias = texts.next().filter(|alias| *alias != name);
    Some((name.to_owned(), alias.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, alias: Option<&str>, meaning: &str) -> CodeRow {
        CodeRow {
            name: name.to_owned(),
            alias: alias.map(str::to_owned),
            meaning: meaning.to_owned(),
        }
    }

    #[test]
    fn lists_are_read() {
        let text = "/// The kind.\npub enum K {\n    /// One of\n    /// [`x`].\n    One {\n        /// A member.\n        x: u8,\n    },\n    \
                    /// Two.\n    Two(P),\n}\nimpl K {\n    match self {\n        \
                    Self::One => (\"a.one\", \"a.One\"),\n        K::Two(_) => \"a.two\",\n        \
                    Self::One => \"not. a code\",\n    }\n}\n";
        let found = scan(text, "K").unwrap();
        let rows = [
            row("a.one", Some("a.One"), "One of `x`."),
            row("a.two", None, "Two."),
        ];
        assert_eq!(found, rows);
        let missing = text.replace("a.two", "two");
        assert_eq!(scan(&missing, "K"), Err("K::Two has no code".to_owned()));
        let text = "/// A.\npub(crate) const A: &str = \"c.a\";\n/// B.\n// With its alias.\n\
                    const B: [&str; 2] = [\"c.b\", \"b\"];\n/// C.\nconst C: u8 = 1;\n";
        let rows = [row("c.a", None, "A."), row("c.b", Some("b"), "B.")];
        assert_eq!(scan(text, "").unwrap(), rows);
        assert!(scan("", "").is_err());
    }

    #[test]
    fn codes_of_the_product_are_distinct() {
        let shown = with_sections(|sections| {
            let rows = sections.iter().map(|section| section.rows.len());
            rows.sum::<usize>().to_string()
        });
        let count: usize = shown.map_or_else(|e| panic!("{}", e.0), |n| n.parse().unwrap());
        assert!(count > 70, "{count}");
    }
}
