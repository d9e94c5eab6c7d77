//! Layouts of the format as text, from the tables that encoding and decoding use: for
//! whoever describes it.

use super::sections::{self, KINDS, SectionKind, own_layouts};
use super::wire::{choice_layouts, record_layouts};

/// Whether a file may do without a section, and what it holds.
pub fn sections() -> impl Iterator<Item = (SectionKind, bool, String)> {
    let kinds = KINDS.iter().copied();
    kinds.map(|kind| (kind, kind.is_optional(), sections::layout(kind)))
}

/// The records: name, then name and type of each field.
pub fn records() -> impl Iterator<Item = (&'static str, Vec<(&'static str, String)>)> {
    record_layouts().into_iter().chain(own_layouts())
}

/// The choices: name, then byte, name and field of each variant.
pub fn choices() -> impl Iterator<Item = (&'static str, Vec<(u8, &'static str, String)>)> {
    choice_layouts().into_iter()
}
