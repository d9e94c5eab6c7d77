//! Layouts of the format as text for its documentation, from the tables that encoding and decoding
//! use.

use super::sections::{self, KINDS, SectionKind, own_layouts};
use super::wire::{choice_layouts, record_layouts};

/// Each section: kind, whether it is optional, and layout of its content.
pub fn sections() -> impl Iterator<Item = (SectionKind, bool, String)> {
    let kinds = KINDS.iter().copied();
    kinds.map(|kind| (kind, kind.is_optional(), sections::layout(kind)))
}

/// Each record: name, then name and type of each field.
pub fn records() -> impl Iterator<Item = (&'static str, Vec<(&'static str, String)>)> {
    record_layouts().into_iter().chain(own_layouts())
}

/// Each choice: name, then byte, name and field of each variant.
pub fn choices() -> impl Iterator<Item = (&'static str, Vec<(u8, &'static str, String)>)> {
    choice_layouts().into_iter()
}
