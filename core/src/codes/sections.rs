//! Sections of codes by origin, with descriptions for people.

use super::Code;
use crate::{artifact, diag, error, suspend, verify};

/// Codes of one origin.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Heading of the section.
    pub title: &'a str,
    /// Description of the codes, in a sentence or two.
    pub about: &'a str,
    /// Rows of the section.
    pub rows: Vec<Code<'a>>,
}

/// The families of findings, which share a table: family, heading, description.
const FINDINGS: &[(&str, &str, &str)] = &[
    (
        "json",
        "Reading",
        "The text is not a valid document. It is rejected before compiling.",
    ),
    (
        "compile",
        "Compiling",
        "The program is rejected. The compiler reports all errors at once.",
    ),
    (
        "builder",
        "Builder",
        "A chain of builder calls does not form a program (language section 4.13).",
    ),
    (
        "lint",
        "Warnings",
        "The program runs, but may fail or do the wrong work at this position.",
    ),
    (
        "link",
        "Linking",
        "A host's atoms do not fit the program, or each other.",
    ),
];

/// This crate's codes by origin, in the order of `docs/errors.md`.
#[must_use]
pub fn sections() -> Vec<Section<'static>> {
    let of = |family| {
        let rows = diag::codes::TABLE.iter().copied();
        rows.filter(move |row| row.family() == family).collect()
    };
    let mut sections: Vec<_> = FINDINGS
        .iter()
        .copied()
        .map(|(family, title, about)| Section {
            title,
            about,
            rows: of(family),
        })
        .collect();
    let tables = [
        (
            "Verifier",
            "A program contradicts itself or does not pay for its work. The compiler never \
             makes such a program: compile it again from a source you trust.",
            verify::codes::TABLE,
        ),
        (
            "Artifacts",
            "A file is not a valid artifact ([the format](a99b.md)).",
            artifact::codes::TABLE,
        ),
        (
            "Runs",
            "A run ended with an error. The program's `try` can catch it, unless fuel, time \
             of the run, memory or a quota is used up, or the run was aborted.",
            error::TABLE,
        ),
        (
            "Calls and snapshots",
            "A host that drives a run made an invalid call, or a snapshot is refused \
             ([runs](run.md), [snapshots](snapshot.md)).",
            suspend::codes::TABLE,
        ),
    ];
    sections.extend(tables.map(|(title, about, table)| Section {
        title,
        about,
        rows: table.to_vec(),
    }));
    sections
}
