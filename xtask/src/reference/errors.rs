//! Reference page of the codes, generated from their tables: `docs/errors.md`.

use super::{GENERATED, cell};
use a99_core::codes::{Code, Section, sections};
use std::fmt::Write as _;

const HEAD: &str = "\
# Error codes

Each failure and each finding has a code: a family and a name. A code never changes
its meaning. `--json` prints it as `code`, text output as `error[verify.bad_index]` or
`warning[lint.unknown_atom]`. Messages of runs are part of the language, because
programs can compare them; the wording of other messages may change.

Some codes were first published in another form, mostly as numbers. That form is still
valid: the `alias` in JSON and below, which `a99_core::codes::find` also accepts.

A host can define codes for failures of its atoms (`HostCode`); JSON has them as
`hostCode`, together with `code`. Host codes cannot use the families of this page.

";

/// The rows of sections as tab-separated lines: heading, description, code, alias and meaning.
pub(crate) fn code_lines(sections: &[Section<'_>]) -> String {
    let mut out = String::new();
    for section in sections {
        for row in &section.rows {
            let alias = row.alias.unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{}\t{}\t{}\t{alias}\t{}",
                section.title, section.about, row.name, row.meaning
            );
        }
    }
    out
}

/// The text of `docs/errors.md`: the codes of `a99-core`, then others.
pub(crate) fn errors_markdown(others: &[Section<'_>]) -> String {
    let mut out = String::from(GENERATED);
    out.push_str(HEAD);
    let mut own = sections();
    own.extend_from_slice(others);
    for section in &own {
        // Writing to a String cannot fail, here and below.
        let _ = write!(out, "## {}\n\n{}\n\n", section.title, section.about);
        write_rows(&mut out, &section.rows);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A table without columns that would be empty.
fn write_rows(out: &mut String, rows: &[Code<'_>]) {
    let aliases = rows.iter().any(|row| row.alias.is_some());
    let helps = rows.iter().any(|row| !row.help.is_empty());
    let mut columns = vec!["code"];
    columns.extend(aliases.then_some("alias"));
    columns.push("meaning");
    columns.extend(helps.then_some("fix"));
    let _ = writeln!(out, "| {} |", columns.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(columns.len()));
    let none = || "-".to_owned();
    for row in rows {
        let mut cells = vec![format!("`{}`", row.name)];
        if aliases {
            cells.push(row.alias.map_or_else(none, |alias| format!("`{alias}`")));
        }
        cells.push(cell(row.meaning));
        if helps {
            cells.push(match row.help {
                "" => none(),
                help => cell(help),
            });
        }
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_shown() {
        let text = errors_markdown(&[Section {
            title: "Others",
            about: "None.",
            rows: vec![Code {
                name: "other.code",
                alias: None,
                meaning: "A | b.",
                help: "",
            }],
        }]);
        for row in a99_core::codes::all() {
            assert!(
                text.contains(&format!("| `{}` |", row.name)),
                "{}",
                row.name
            );
        }
        assert!(
            text.contains("| `verify.bad_index` | `A99-V0002` | An index lies outside its table"),
            "{text}"
        );
        let end = "| code | meaning |\n|---|---|\n| `other.code` | A \\| b. |\n";
        assert!(text.ends_with(end), "{text}");
    }
}
