//! Sizes of crates: the limit on lines of code of each crate.
//!
//! Only code that a reader of the crate must know counts: the lines of the Rust files below its
//! `src`, without blank lines, comments, tests and generated files. Larger crates have a row in a
//! table of `xtask/rules.md` with a limit and a reason. A row that is unneeded or too generous is
//! reported, too, so that the table stays accurate.

use super::tables::{Row, table};
use std::collections::{BTreeMap, BTreeSet};

/// The page with the table.
const PAGE: &str = "xtask/rules.md";
const HEADING: &str = "## Sizes";
const COLUMNS: [&str; 3] = ["crate", "lines of code, at most", "why it is one crate"];

/// Most lines of code of a crate: what one person can know by heart.
const MAX_LINES: usize = 12_000;

/// Largest allowed difference between a row's limit and the crate's size.
const ROOM: usize = 1_000;

/// Diagnostics about the sizes of all crates.
pub(crate) fn diagnostics<'f>(
    files: impl Iterator<Item = (&'f str, &'f str)> + Clone,
) -> Vec<String> {
    let page = files.clone().find(|(path, _)| *path == PAGE);
    match table(PAGE, page.map_or("", |(_, text)| text), HEADING, &COLUMNS) {
        Ok(rows) => compare(&rows, &sizes(files)),
        Err(error) => vec![error],
    }
}

/// Non-blank lines of a crate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Code of the product.
    pub code: usize,
    pub comments: usize,
    /// Code below `src` that only tests, suites and fuzz targets compile.
    pub tests: usize,
}

/// All crates with their sizes.
pub(crate) fn sizes<'f>(
    files: impl Iterator<Item = (&'f str, &'f str)> + Clone,
) -> BTreeMap<String, Size> {
    let folder = |path: &'f str| path.strip_suffix("Cargo.toml");
    let manifests = files.clone().filter_map(|(path, text)| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((format!("{}src/", folder(path)?), name.trim_matches('"')))
    });
    let crates: BTreeMap<String, &str> = manifests.collect();
    let rust = || files.clone().filter(|(path, _)| path.ends_with(".rs"));
    let tests: BTreeSet<String> = rust().flat_map(test_modules).collect();
    let is_test = |path: &str| tests.iter().any(|module| path.starts_with(module.as_str()));
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for (path, text) in rust() {
        let above = crates
            .iter()
            .filter(|(folder, _)| path.starts_with(*folder));
        let Some((_, name)) = above.max_by_key(|(folder, _)| folder.len()) else {
            continue;
        };
        let size = sizes.entry((*name).to_owned()).or_default();
        let lines = count(text);
        size.comments += lines.comments;
        match is_test(path) {
            true => size.tests += lines.code + lines.tests,
            false => {
                size.code += lines.code;
                size.tests += lines.tests;
            }
        }
    }
    sizes
}

fn compare(rows: &[Row], sizes: &BTreeMap<String, Size>) -> Vec<String> {
    let mut found = Vec::new();
    let lines = sizes.iter().map(|(name, size)| (name, size.code));
    for (name, lines) in lines.filter(|(_, lines)| *lines > MAX_LINES) {
        if !rows.iter().any(|row| row.spans(0).any(|of| of == name)) {
            found.push(format!(
                "{PAGE}: {name} has {lines} lines of code, more than {MAX_LINES}: move a part \
                 with a duty of its own into another crate, or add a row below `{HEADING}`"
            ));
        }
    }
    for row in rows {
        let place = format!("{PAGE}:{}", row.line);
        let name = row.spans(0).next().unwrap_or_default();
        let limit: Option<usize> = row.cell(1).replace(',', "").parse().ok();
        let fault = match (sizes.get(name).map(|size| size.code), limit) {
            (None, _) => format!("no crate is called `{name}`"),
            (_, None) => format!("`{}` is no number of lines", row.cell(1)),
            _ if row.cell(2).is_empty() => format!("{name} has no reason"),
            (Some(lines), Some(limit)) if lines > limit => format!(
                "{name} has {lines} lines of code, more than {limit}: move a part with a duty \
                 of its own into another crate, or say why not"
            ),
            (Some(lines), _) if lines <= MAX_LINES => {
                format!("{name} has {lines} lines of code: remove the row")
            }
            (Some(lines), Some(limit)) if lines + ROOM < limit => {
                format!("{name} has {lines} lines of code: lower the limit")
            }
            _ => continue,
        };
        found.push(format!("{place}: {fault}"));
    }
    found
}

/// Path prefixes of modules that a file declares for tests only.
pub(super) fn test_modules((path, text): (&str, &str)) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let own = match name {
        "mod.rs" | "lib.rs" | "main.rs" => format!("{folder}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    };
    let mut modules = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !TEST.contains(&line) {
            continue;
        }
        let declared = lines.next().unwrap_or_default().strip_suffix(';');
        if let Some((_, module)) = declared.and_then(|line| line.rsplit_once("mod ")) {
            modules.extend([".rs", "/"].map(|end| format!("{own}{module}{end}")));
        }
    }
    modules
}

/// Attributes above an item that is compiled for tests only.
const TEST: [&str; 4] = [
    "#[cfg(test)]",
    "#[cfg(feature = \"testing\")]",
    "#[cfg(any(test, feature = \"testing\"))]",
    "#[cfg(any(test, feature = \"fuzzing\"))]",
];

/// Counts the lines of a file. Generated files count as empty.
fn count(text: &str) -> Size {
    let mut size = Size::default();
    if text.starts_with("// Generated by ") {
        return size;
    }
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line.trim() {
            "" => {}
            test if TEST.contains(&test) => size.tests += skip_item(indent(line), &mut lines),
            code if code.starts_with("//") => size.comments += 1,
            _ => size.code += 1,
        }
    }
    size
}

/// The code of a file without comments and tests.
pub(super) fn product(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line.trim() {
            test if TEST.contains(&test) => {
                skip_item(indent(line), &mut lines);
            }
            comment if comment.starts_with("//") => {}
            _ => code.extend([line, "\n"]),
        }
    }
    code
}

/// Skips an item, which ends on its first line or with its closing bracket. Returns its lines.
fn skip_item<'t>(depth: usize, lines: &mut impl Iterator<Item = &'t str>) -> usize {
    let mut is_first = true;
    let mut count = 1;
    for line in lines {
        count += usize::from(!line.trim().is_empty());
        let ends = match line.trim_start() {
            attribute if is_first && attribute.starts_with("#[") => continue,
            end if !is_first => indent(line) == depth && matches!(end, "}" | "};" | ");" | "];"),
            first => first.ends_with(';') || first.ends_with('}'),
        };
        if ends {
            break;
        }
        is_first = false;
    }
    count
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("core/Cargo.toml", "[package]\nname = \"a99-core\"\n");

    fn page(rows: &str) -> String {
        let columns = COLUMNS.join(" | ");
        format!("{HEADING}\n\n| {columns} |\n|---|---|---|\n{rows}")
    }

    /// Diagnostics for a crate of this size with these rows.
    fn told(rows: &str, lines: usize) -> Vec<String> {
        let (page, code) = (page(rows), "a();\n".repeat(lines));
        let files = [(PAGE, &*page), MANIFEST, ("core/src/lib.rs", &*code)];
        diagnostics(files.into_iter())
    }

    #[test]
    fn a_large_crate_needs_a_row() {
        assert!(told("", MAX_LINES).is_empty());
        let found = told("", MAX_LINES + 1);
        assert!(found[0].contains("a99-core has 12001 lines"), "{found:?}");
        assert!(told("| `a99-core` | 12,500 | it is one |\n", MAX_LINES + 1).is_empty());
    }

    #[test]
    fn a_row_says_what_is_true() {
        let row = "| `a99-core` | 13,500 | it is one |\n";
        for (rows, lines, what) in [
            (row, 13_501, "more than 13500"),
            (row, 12_000, "remove the row"),
            (row, 12_499, "lower the limit"),
            ("| `a99-none` | 13,000 | x |\n", 1, "no crate"),
            ("| `a99-core` | many | x |\n", 12_001, "no number"),
            ("| `a99-core` | 12,500 | |\n", 12_001, "no reason"),
        ] {
            let found = told(rows, lines);
            assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
            assert!(found[0].starts_with("xtask/rules.md:5: "), "{found:?}");
        }
        assert!(diagnostics([(PAGE, "")].into_iter())[0].contains("no table"));
    }

    #[test]
    fn code_is_what_is_counted() {
        let text = "//! Doc.\n\nuse x;\n\n#[cfg(test)]\nuse y::{\n    a,\n};\n\nfn f() {\n    \
                    // why\n    g();\n    #[cfg(test)]\n    h();\n}\n\n#[cfg(test)]\n#[allow(x)]\n\
                    mod tests {\n    fn t() {\n    }\n}\n\nfn last() {}\n";
        let size = Size {
            code: 5,
            comments: 2,
            tests: 12,
        };
        assert_eq!(count(text), size);
        let generated = format!("// Generated by logos\n{text}");
        assert_eq!(count(&generated), Size::default());
    }

    #[test]
    fn modules_of_tests_are_not_counted() {
        let files = [
            MANIFEST,
            (
                "core/src/lib.rs",
                "mod a;\n#[cfg(test)]\npub(crate) mod samples;\n",
            ),
            ("core/src/samples.rs", "a();\n"),
            ("core/src/samples/more.rs", "a();\n"),
            ("core/src/a.rs", "a();\n#[cfg(test)]\nmod tests;\n"),
            ("core/src/a/tests.rs", "a();\n"),
            ("core/tests/it.rs", "a();\n"),
            ("core/macros/Cargo.toml", "name = \"a99-macros\"\n"),
            ("core/macros/src/lib.rs", "a();\n"),
        ];
        let sizes = sizes(files.into_iter());
        let of = |name: &str| (sizes[name].code, sizes[name].tests);
        assert_eq!(of("a99-core"), (2, 7));
        assert_eq!(of("a99-macros"), (1, 0));
    }
}
