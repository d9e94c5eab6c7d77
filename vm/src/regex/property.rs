//! Unicode properties of `\p{...}` (ECMA-262 §22.2.2.9.6). The tables are those of
//! `regex-syntax`; its names are matched loosely, those of JavaScript exactly.

use regex_syntax::hir::{Class, HirKind};

/// The names that JavaScript knows: general categories, scripts and binary properties.
const NAMES: &str = include_str!("properties.txt");

const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// The code points of a property, sorted; `None` if there is no such property.
pub(super) fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let mut names = NAMES.lines();
    let (categories, scripts, binary) = (names.next()?, names.next()?, names.next()?);
    let lists = |names: &str, name: &str| names.split(' ').any(|known| known == name);
    let (category, query) = match text.split_once('=') {
        Some(("General_Category" | "gc", name)) => (lists(categories, name).then_some(name)?, name),
        Some(("Script" | "sc" | "Script_Extensions" | "scx", name)) => {
            ("", lists(scripts, name).then_some(text)?)
        }
        Some(_) => return None,
        None if lists(categories, text) => (text, text),
        None => ("", lists(binary, text).then_some(text)?),
    };
    let mut found = match category {
        "Cs" | "Surrogate" => Vec::new(),
        _ => table(query)?,
    };
    // The tables are of characters, which surrogates are not.
    if matches!(category, "Cs" | "Surrogate" | "C" | "Other") || matches!(query, "Any" | "Assigned")
    {
        found.push(SURROGATES);
        found.sort_unstable();
    }
    Some(found)
}

/// The characters of a property.
fn table(query: &str) -> Option<Vec<(u32, u32)>> {
    let hir = regex_syntax::parse(&format!("\\p{{{query}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.iter();
            Some(ranges.map(|r| (r.start().into(), r.end().into())).collect())
        }
        // One character.
        HirKind::Literal(text) => {
            let c = std::str::from_utf8(&text.0).ok()?.chars().next()?;
            Some(vec![(c.into(), c.into())])
        }
        _ => None,
    }
}
