//! `a99 explain`: meaning and fix of a code, from the code tables.

use crate::args::ExplainArgs;
use crate::failure::{Exit, Failure, USAGE};
use crate::output;
use a99_core::codes::{self, Code, Section};
use a99_core::diag::{excerpt, suggest};
use agent99::{Map, Value};
use std::fmt::Write as _;

/// Codes of crates that this binary may lack: section, its subject, code, alias, meaning.
const OTHERS: &str = include_str!("../codes.tsv");

const PAGE: &str = "docs/errors.md";

/// All codes, in the order of the page.
fn sections() -> Vec<Section<'static>> {
    let mut sections = codes::sections();
    for line in OTHERS.lines() {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (title, about) = (cell(), cell());
        let row = Code {
            name: cell(),
            alias: Some(cell()).filter(|alias| !alias.is_empty()),
            meaning: cell(),
            help: "",
        };
        match sections.last_mut() {
            Some(last) if last.title == title => last.rows.push(row),
            _ => sections.push(Section {
                title,
                about,
                rows: vec![row],
            }),
        }
    }
    sections
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit, Failure> {
    let sections = sections();
    let Some(wanted) = args.code.as_deref().map(bare) else {
        list(&sections, args.json);
        return Ok(Exit::Ok);
    };
    let rows = sections
        .iter()
        .flat_map(|section| section.rows.iter().map(move |row| (section, row)));
    let is_meant = |name: &str| name.eq_ignore_ascii_case(wanted);
    let found = rows
        .clone()
        .find(|(_, row)| is_meant(row.name) || row.alias.is_some_and(is_meant));
    let Some((section, row)) = found else {
        let mut names: Vec<&str> = rows.clone().map(|(_, row)| row.name).collect();
        names.extend(rows.filter_map(|(_, row)| row.alias));
        let message = format!("there is no code `{}`", excerpt(wanted));
        return Err(Failure::coded(USAGE[0], message, unknown(wanted, &names)));
    };
    if args.json {
        output::json(&Value::Object(to_json(section, row)));
    } else {
        output::out(&to_text(section, row));
    }
    Ok(Exit::Ok)
}

/// Extracts the code from a copied message, such as `error[a.b]`.
fn bare(text: &str) -> &str {
    let text = text.trim();
    match text.split_once('[') {
        Some((_, rest)) => rest.split(']').next().unwrap_or(rest),
        None => text,
    }
}

/// Suggests the code most similar to an unknown one, by the whole text or the part after the dot.
fn unknown(wanted: &str, names: &[&str]) -> String {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let begins = |name: &&&str| wanted.contains('.') && name.starts_with(wanted);
    let begun = names.iter().find(begins).map(|name| (*name).to_owned());
    let near = || {
        suggest(wanted, names.iter().copied()).or_else(|| {
            let lasts: Vec<String> = names.iter().map(|name| last(name)).collect();
            let near = suggest(&last(wanted), lasts.iter().map(String::as_str))?;
            let at = lasts.iter().position(|name| *name == near)?;
            Some(names[at].to_owned())
        })
    };
    match begun.or_else(near) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`a99 explain` lists all".to_owned(),
    }
}

fn to_text(section: &Section<'_>, row: &Code<'_>) -> String {
    let mut out = row.name.to_owned();
    // Writing to a String cannot fail, here and below.
    if let Some(alias) = row.alias {
        let _ = write!(out, " (also {alias})");
    }
    let _ = writeln!(out, "\n\n{}", plain(row.meaning));
    if !row.help.is_empty() {
        let _ = writeln!(out, "Fix: {}.", plain(row.help));
    }
    let _ = writeln!(out, "\n{}: {}", section.title, plain(section.about));
    let _ = writeln!(out, "All codes: {PAGE}");
    out
}

/// Strips Markdown from a page's text: links become their text, emphasis is removed. Code in
/// backticks stays.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '`', '*']) {
        let (before, mark) = rest.split_at(at);
        out += before;
        let inner = &mark[1..];
        rest = match mark.as_bytes()[0] {
            b'[' => match inner.split_once(']') {
                Some((label, behind)) => {
                    out += label;
                    let target = behind.strip_prefix('(').and_then(|to| to.split_once(')'));
                    target.map_or(behind, |(_, behind)| behind)
                }
                None => {
                    out.push('[');
                    inner
                }
            },
            b'`' => match inner.split_once('`') {
                Some((code, behind)) => {
                    let _ = write!(out, "`{code}`");
                    behind
                }
                None => {
                    out.push('`');
                    inner
                }
            },
            _ => inner,
        };
    }
    out + rest
}

fn to_json(section: &Section<'_>, row: &Code<'_>) -> Map {
    let mut map = Map::new();
    map.insert("code", row.name);
    if let Some(alias) = row.alias {
        map.insert("alias", alias);
    }
    map.insert("meaning", row.meaning);
    if !row.help.is_empty() {
        map.insert("help", row.help);
    }
    map.insert("section", section.title);
    map.insert("about", section.about);
    map.insert("page", PAGE);
    map
}

fn list(sections: &[Section<'_>], json: bool) {
    if json {
        let rows = sections
            .iter()
            .flat_map(|section| section.rows.iter().map(|row| to_json(section, row)));
        output::json(&Value::Array(rows.map(Value::Object).collect()));
        return;
    }
    let rows = sections.iter().flat_map(|section| &section.rows);
    let width = rows.map(|row| row.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for section in sections {
        let _ = writeln!(out, "{}: {}", section.title, plain(section.about));
        for row in &section.rows {
            let _ = writeln!(out, "  {:width$}  {}", row.name, plain(row.meaning));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len() + 1);
    output::out(&out);
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn u7_markdown_is_plain_text() {
        assert_eq!(
            plain("see [codes](errors.md), [`Engine::run`] and *all* of `a[0] * 2`"),
            "see codes, `Engine::run` and all of `a[0] * 2`"
        );
        assert_eq!(plain("a [b c"), "a [b c");
    }
}
