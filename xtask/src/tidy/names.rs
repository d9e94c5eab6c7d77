//! Names of tests and vectors that a page cites as proof must exist.

use std::collections::BTreeSet;

/// Tests and vectors of the tree.
#[derive(Debug, Default)]
pub(crate) struct Known {
    functions: BTreeSet<String>,
    vectors: BTreeSet<String>,
}

impl Known {
    /// Collects the names from sources and files of vectors.
    pub(crate) fn of<'t>(files: impl Iterator<Item = (&'t str, &'t str)>) -> Known {
        let mut known = Known::default();
        for (path, text) in files {
            if path.ends_with(".rs") {
                let functions = text.lines().filter_map(function);
                known.functions.extend(functions.map(str::to_owned));
            } else if path.starts_with("tests/vectors/") && path.ends_with(".jsonl") {
                let ids = text.lines().filter_map(|line| {
                    let (_, rest) = line.split_once("\"id\":\"")?;
                    Some(rest.split_once('"')?.0.to_owned())
                });
                known.vectors.extend(ids);
            }
        }
        known
    }

    /// Diagnostics about names of a page that do not exist. A paragraph that begins with `Vectors:`
    /// names vectors; text after `Test:` or `Tests:` and the rows of tables name tests. `c05_*`
    /// matches any name with this prefix.
    pub(crate) fn diagnostics(&self, path: &str, text: &str) -> Vec<String> {
        let mut diagnostics = Vec::new();
        let mut vectors = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('|') {
                vectors = false;
            }
            for (n, part) in line.split('`').enumerate() {
                if n % 2 == 0 {
                    let last = |word| part.rfind(word);
                    if last("Vectors:").is_some() || last("Test").is_some() {
                        vectors = last("Vectors:") > last("Test");
                    }
                    continue;
                }
                if self.is_missing(part, vectors) {
                    let what = if vectors { "vector" } else { "test" };
                    diagnostics.push(format!("{path}:{}: no {what} is called {part}", index + 1));
                }
            }
        }
        diagnostics
    }

    fn is_missing(&self, name: &str, is_vector: bool) -> bool {
        if name.contains('/') {
            return false;
        }
        if is_vector {
            return !self.vectors.contains(name);
        }
        match name.strip_suffix('*') {
            Some(start) if start.ends_with('_') => {
                !self.functions.iter().any(|name| name.starts_with(start))
            }
            _ => is_test(name) && !self.functions.contains(name),
        }
    }
}

/// The name of the function that a line begins.
pub(crate) fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split(['(', '<']).next()
}

/// Whether a name looks like that of a test: at least three words, or numbered.
fn is_test(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let words: Vec<&str> = name.split('_').collect();
    let numbered =
        words[0].len() > 1 && words[0][1..].bytes().all(|b| b.is_ascii_digit()) && words.len() > 1;
    name.bytes().all(plain) && !name.starts_with('_') && (words.len() > 3 || numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_exist() {
        let files = [
            (
                "tests/x.rs",
                "    #[test]\n    fn c05_sorting_is_paid() {}\n",
            ),
            (
                "tests/vectors/x.jsonl",
                "{\"id\":\"map-1\",\"title\":\"x\"}\n",
            ),
        ];
        let known = Known::of(files.into_iter());
        let text = "`__proto__` and `D12` are none.\n\nVectors: `map-1`,\n`map-2`. Test:\n\
                    `c05_sorting_is_paid`, `c06_none`.\n\n| C05 | x | `c05_*`, `c07_*` |\n";
        assert_eq!(
            known.diagnostics("docs/decisions.md", text),
            [
                "docs/decisions.md:4: no vector is called map-2",
                "docs/decisions.md:5: no test is called c06_none",
                "docs/decisions.md:7: no test is called c07_*",
            ]
        );
    }
}
