//! Citations: a number that a comment or page cites must exist on its page.
//!
//! | cited | as | where it must be |
//! |---|---|---|
//! | a decision | `D12` | a heading of `docs/decisions.md` |
//! | a section | `language section 3.4` | a heading of `docs/language.md` |
//! | a line of attack | `security C05`, also without the word | a row of `docs/security.md` |
//! | a class | `class A4` | a row of the same page |
//!
//! Tests whose name begins with a line or class (`c05_`, `a4_`) have a row there too. Lists are
//! followed: `language sections 2.1, 2.2 and 2.4`. A citation may span the lines of a comment.

use super::names::{Known, function};
use std::collections::BTreeSet;

/// Crates about the language, where readers would take a section without a page for one of the
/// language.
const LANGUAGE: [&str; 8] = [
    "agent99/",
    "atoms/",
    "capabilities/",
    "compiler/",
    "core/",
    "macros/",
    "tests/src/",
    "vm/",
];

/// Pages on which `section 3.4` is one of the language.
const LANGUAGE_PAGES: [&str; 2] = ["docs/decisions.md", "docs/language.md"];

/// Here single letters with numbers mean registers, extensions and constants of the guest's
/// processor.
const OTHER_LETTERS: &str = "sandbox/guest/";

/// Families of lines of attack, and the largest number of one.
const FAMILIES: &str = "BCEFMNPSU";
const MOST_LINES: u32 = 29;

/// The pages of decisions, language and security.
const DECISIONS: &str = "docs/decisions.md";
const SECTIONS: &str = "docs/language.md";
const LINES: &str = "docs/security.md";

/// Numbers that the pages define.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    decisions: BTreeSet<String>,
    sections: BTreeSet<String>,
    /// Lines and classes, the latter as `class A4`.
    lines: BTreeSet<String>,
}

impl Pages {
    pub(crate) fn of<'t>(files: impl Iterator<Item = (&'t str, &'t str)>) -> Pages {
        let mut pages = Pages::default();
        for (path, text) in files {
            let words = |line: &'t str| line.trim_start_matches('#').split_whitespace().next();
            let headings = || text.lines().filter(|line| line.starts_with('#'));
            match path {
                DECISIONS => pages
                    .decisions
                    .extend(headings().filter_map(words).map(str::to_owned)),
                SECTIONS => pages
                    .sections
                    .extend(headings().filter_map(words).map(str::to_owned)),
                LINES => {
                    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
                    let first = rows.filter_map(|row| row.split(" |").next());
                    pages.lines.extend(first.map(str::to_owned));
                }
                _ => {}
            }
        }
        pages
    }
}

/// Diagnostics about citations in a file that no page defines.
pub(crate) fn diagnostics(path: &str, text: &str, pages: &Pages, known: &Known) -> Vec<String> {
    let mut diagnostics = Vec::new();
    for block in blocks(path, text) {
        let words = words(&block.text);
        let context = Context {
            path,
            pages,
            words: &words,
        };
        for (n, word) in words.iter().enumerate() {
            for what in context.missing(n) {
                diagnostics.push(format!("{path}:{}: {what}", block.line(word.at)));
            }
        }
    }
    if path.ends_with(".rs") {
        diagnostics.extend(tests(path, text, pages));
    }
    if path == DECISIONS || path == LINES {
        diagnostics.extend(known.diagnostics(path, text));
    }
    diagnostics
}

/// Diagnostics about tests named after a line or class (`c05_...`, `a4_...`) that the page lacks.
fn tests(path: &str, text: &str, pages: &Pages) -> Vec<String> {
    let mut diagnostics = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(name) = function(line).filter(|name| name.split('_').count() > 2) else {
            continue;
        };
        let first = name.split('_').next().unwrap_or(name).to_ascii_uppercase();
        let is_ours = |(letter, number): &(char, &str)| {
            // Lines have two digits; `b5_` is a report of a bug.
            let is_line = number.len() == 2 && FAMILIES.contains(*letter);
            let family = *letter == 'A' || is_line;
            family && number.parse().is_ok_and(|n: u32| n <= MOST_LINES)
        };
        if coded(&first).filter(is_ours).is_none() {
            continue;
        }
        if !pages.lines.contains(&first) && !pages.lines.contains(&format!("class {first}")) {
            diagnostics.push(format!(
                "{path}:{}: {name} is named after {first}, which {LINES} does not have",
                index + 1
            ));
        }
    }
    diagnostics
}

/// A unit of prose in a file: a comment, a page, a note.
struct Block {
    text: String,
    /// Where each line begins in the text, with its line in the file.
    lines: Vec<(usize, usize)>,
}

impl Block {
    fn new() -> Block {
        Block {
            text: String::new(),
            lines: Vec::new(),
        }
    }

    fn push(&mut self, number: usize, line: &str) {
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn line(&self, at: usize) -> usize {
        let before = self.lines.iter().rev().find(|(start, _)| *start <= at);
        before.map_or(0, |(_, number)| *number)
    }
}

/// The prose of a file.
fn blocks(path: &str, text: &str) -> Vec<Block> {
    let read: fn(&str) -> Option<String> = match path.rsplit('.').next() {
        Some("rs") => rust_prose,
        Some("md") => |line| Some(line.to_owned()),
        Some("toml" | "yml" | "sh") => |line| hash_comment(line),
        Some("jsonl") if path.starts_with("tests/") => jsonl_prose,
        _ => return Vec::new(),
    };
    let mut blocks = Vec::new();
    let mut block = Block::new();
    for (index, line) in text.lines().enumerate() {
        match read(line) {
            Some(prose) => block.push(index + 1, &prose),
            None if block.lines.is_empty() => {}
            None => blocks.push(std::mem::replace(&mut block, Block::new())),
        }
    }
    blocks.push(block);
    blocks
}

/// A comment in a line of Rust, or the text of a doc attribute.
fn rust_prose(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(comment) = line.strip_prefix("//") {
        return Some(comment.trim_start_matches(['/', '!']).to_owned());
    }
    if let Some(doc) = line.strip_prefix("#[doc = ") {
        return Some(doc.to_owned());
    }
    let (_, comment) = line.rsplit_once(" // ")?;
    Some(comment.to_owned())
}

fn hash_comment(line: &str) -> Option<String> {
    line.trim_start().strip_prefix('#').map(str::to_owned)
}

/// The note of a vector or a listed deviation.
fn jsonl_prose(line: &str) -> Option<String> {
    // Most lines have neither, and are large.
    if !line.contains("\"decision\"") && !line.contains("\"note\"") {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let said = ["decision", "note"].into_iter().filter_map(|key| {
        let text = value.get(key)?.as_str()?;
        Some(text.to_owned())
    });
    Some(said.collect::<Vec<_>>().join(" "))
}

/// A word of prose: letters, digits, and dots between digits.
#[derive(Copy, Clone, Debug)]
struct Word<'t> {
    at: usize,
    text: &'t str,
    /// Text between the previous word and this one.
    gap: &'t str,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let within = |at: usize| match bytes[at] {
        b'.' => at > 0 && is_digit(at - 1) && is_digit(at + 1),
        byte => byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80,
    };
    let mut words = Vec::new();
    let (mut at, mut end) = (0, 0);
    while at < bytes.len() {
        if !within(at) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && within(at) {
            at += 1;
        }
        words.push(Word {
            at: start,
            text: &text[start..at],
            gap: &text[end..start],
        });
        end = at;
    }
    words
}

/// A capital letter and a number of one or two digits.
fn coded(word: &str) -> Option<(char, &str)> {
    let letter = word.chars().next().filter(char::is_ascii_uppercase)?;
    let number = &word[1..];
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && number.len() <= 2).then_some((letter, number))
}

struct Context<'t> {
    path: &'t str,
    pages: &'t Pages,
    words: &'t [Word<'t>],
}

impl Context<'_> {
    /// Citations at a word that do not exist.
    fn missing(&self, at: usize) -> Vec<String> {
        let word = self.words[at];
        match word.text {
            "section" | "sections" => return self.sections(at),
            "class" | "classes" | "Class" => return self.classes(at),
            "seed" => return self.seeds(at),
            _ => {}
        }
        // `A99-E01`, `x-D12`, `%D3`: parts of longer names.
        let alone = !word.gap.ends_with(['-', '%', '\\', '+', '#']);
        let Some((letter, number)) = coded(word.text).filter(|_| alone) else {
            return Vec::new();
        };
        let is_here = !self.path.starts_with(OTHER_LETTERS);
        let is_line = FAMILIES.contains(letter)
            && number.len() == 2
            && number.parse().is_ok_and(|n: u32| n > 0 && n <= MOST_LINES);
        let page = match letter {
            'D' if is_here && !number.starts_with('0') => (DECISIONS, &self.pages.decisions),
            _ if is_here && is_line && !self.is_class(at) => (LINES, &self.pages.lines),
            _ => return Vec::new(),
        };
        missing(word.text, page)
    }

    /// Whether the word is part of `class S10` or `classes S4 and S10`.
    fn is_class(&self, at: usize) -> bool {
        let mut at = at;
        while at > 0 {
            at -= 1;
            match self.words[at].text {
                "class" | "classes" | "Class" => return true,
                "and" | "to" => {}
                word if coded(word).is_some() => {}
                _ => return false,
            }
        }
        false
    }

    /// Diagnostics about the project's founding papers, which are not part of it.
    fn seeds(&self, at: usize) -> Vec<String> {
        let is_paper = |word: &&Word<'_>| {
            word.gap == " " && word.text.len() == 3 && word.text.starts_with("00")
        };
        let paper = self.words.get(at + 1).filter(is_paper);
        let cited = paper.map(|word| format!("cites seed {}, which is not here", word.text));
        cited.into_iter().collect()
    }

    fn classes(&self, at: usize) -> Vec<String> {
        let items = self.list(at, |word| coded(word).is_some());
        let named = items.into_iter().map(|word| format!("class {word}"));
        named
            .flat_map(|name| missing(&name, (LINES, &self.pages.lines)))
            .collect()
    }

    fn sections(&self, at: usize) -> Vec<String> {
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let items = self.list(at, is_number);
        let before = at.checked_sub(1).map(|at| self.words[at]);
        let of_language = before.is_some_and(|word| word.text == "language");
        let (Some(first), true) = (items.first(), self.is_plain(at)) else {
            return Vec::new();
        };
        if of_language || LANGUAGE_PAGES.contains(&self.path) {
            let page = (SECTIONS, &self.pages.sections);
            return items.iter().flat_map(|word| missing(word, page)).collect();
        }
        // The word before names a standard: `RFC 4648 section 4`, `virtio 1.2 section`.
        let of_standard = before.is_some_and(|word| is_number(word.text));
        let in_language = LANGUAGE.iter().any(|place| self.path.starts_with(place));
        if in_language && !of_standard && first.contains('.') {
            return vec![format!("cites section {first} of no page")];
        }
        Vec::new()
    }

    /// Whether only a space stands between the word and its number, and no bracket or cell border.
    fn is_plain(&self, at: usize) -> bool {
        let next = self.words.get(at + 1);
        next.is_some_and(|word| word.gap.trim().is_empty())
    }

    /// The items after a word: `2.1, 2.2 and 2.4`.
    fn list(&self, at: usize, is_item: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut items = Vec::new();
        for word in &self.words[at + 1..] {
            let goes_on = matches!(word.gap.trim(), "" | ",");
            match word.text {
                "and" | "to" if goes_on => {}
                text if goes_on && is_item(text) => items.push(text),
                _ => break,
            }
        }
        items
    }
}

fn missing(name: &str, (page, defined): (&str, &BTreeSet<String>)) -> Vec<String> {
    match defined.contains(name) {
        true => Vec::new(),
        false => vec![format!("cites {name}, which {page} does not have")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let files = [
            (
                DECISIONS,
                "# Decisions\n\n## D12 A rule\n\n## D13 Another\n",
            ),
            (SECTIONS, "## 3 Expressions\n\n### 3.4 Members\n"),
            (
                LINES,
                "| line | what |\n|---|---|\n| C05 | sorting |\n| class A4 | code |\n| class S10 | locks |\n",
            ),
        ];
        Pages::of(files.into_iter())
    }

    fn check(path: &str, text: &str) -> Vec<String> {
        diagnostics(path, text, &pages(), &Known::default())
    }

    #[test]
    fn what_stands_on_its_page_may_be_cited() {
        let code = "//! Members (language section 3.4, D12) of\n//! expressions (language sections\n\
                    //! 3 and 3.4), sorted (security C05; class A4, classes A4 and S10).\n\
                    let s = \"D99\"; // decision D13\n";
        assert_eq!(check("vm/src/x.rs", code), [""; 0]);
    }

    #[test]
    fn what_does_not_is_told_with_its_line() {
        let code = "fn f() {}\n/// A rule (decision\n/// D14), as language sections 3.4\n/// and 3.5 have it.\n";
        assert_eq!(
            check("vm/src/x.rs", code),
            [
                "vm/src/x.rs:3: cites D14, which docs/decisions.md does not have",
                "vm/src/x.rs:3: cites 3.5, which docs/language.md does not have",
            ]
        );
        assert_eq!(check("xtask/src/x.rs", "// (C06)\n").len(), 1);
        assert_eq!(
            check("sandbox/src/x.rs", "// class A5, class S10\n").len(),
            1
        );
        assert_eq!(check("README.md", "See D15.\n").len(), 1);
        assert_eq!(check("atoms/clippy.toml", "# security N01\n").len(), 1);
        let vector = r#"{"id":"x","ast":{"note":"D98"},"note":"D99. fuel: 0.1"}"#;
        assert_eq!(check("tests/vectors/x.jsonl", vector).len(), 1);
    }

    #[test]
    fn sections_belong_to_a_page() {
        assert_eq!(check("vm/src/x.rs", "// (section 3.4)\n").len(), 1);
        assert_eq!(check("docs/decisions.md", "(section 3.4)\n"), [""; 0]);
        assert_eq!(check("docs/decisions.md", "(section 3.9)\n").len(), 1);
        let standards = "// RFC 4648 section 4, virtio 1.2 section 5.2.4\n";
        assert_eq!(check("atoms/src/x.rs", standards), [""; 0]);
        assert_eq!(
            check("sandbox/guest/src/x.rs", "// (section 5.2.4)\n"),
            [""; 0]
        );
    }

    #[test]
    fn tests_have_a_line() {
        let code = "fn c05_sorting_is_paid() {}\nfn a4_code_is_bounded() {}\nfn s10_locks_stay() {}\n\
                    fn u16_at() {}\nfn e2e_all_of_it() {}\nfn f32_of_all() {}\n\n";
        let found = check("tests/tests/x.rs", code);
        assert_eq!(found, [""; 0]);
        assert_eq!(
            check("vm/src/x.rs", "fn a5_what_is_compiled() {}\n").len(),
            1
        );
        assert_eq!(check("vm/src/x.rs", "// (seed 001)\n").len(), 1);
        assert_eq!(check("vm/src/x.rs", "// from seed 7\n"), [""; 0]);
    }

    #[test]
    fn other_things_look_alike() {
        let code = "/// `A99-E0104`, U+00A0, x-D7, D800, 0xD1, M32 and class `D`; F64.\n";
        assert_eq!(check("core/src/x.rs", code), [""; 0]);
        assert_eq!(
            check("sandbox/guest/src/x.rs", "// registers S10, extension D2\n"),
            [""; 0]
        );
        assert_eq!(check("core/src/x.rs", "let d = \"D99\";\n"), [""; 0]);
    }
}
