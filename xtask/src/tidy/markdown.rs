//! Rules for Markdown: link targets and paths in code spans exist.

use crate::shell::root;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

/// The pages of the tree with their anchors, and its files and folders.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    anchors: HashMap<String, BTreeSet<String>>,
    paths: BTreeSet<String>,
    /// Names of files, without their folders.
    names: BTreeSet<String>,
    /// Names at the top level.
    top: BTreeSet<String>,
}

/// A page about the past, whose paths need not exist any more.
const HISTORY: &str = "CHANGELOG.md";

impl Tree {
    pub(crate) fn of<'t>(files: impl Iterator<Item = (&'t str, &'t str)>) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            if path.ends_with(".md") {
                tree.anchors.insert(path.to_owned(), anchors(text));
            }
            for ancestor in Path::new(path).ancestors() {
                tree.paths.extend(ancestor.to_str().map(str::to_owned));
            }
            tree.names
                .extend(path.rsplit('/').next().map(str::to_owned));
            tree.top.extend(path.split('/').next().map(str::to_owned));
        }
        tree
    }

    /// Diagnostics about a page.
    pub(crate) fn diagnostics(&self, path: &str, text: &str) -> Vec<String> {
        if !path.ends_with(".md") {
            return Vec::new();
        }
        let links = links(text).filter(|link| !self.leads_somewhere(path, link));
        let mut diagnostics: Vec<String> = links
            .map(|link| format!("{path}: broken link: {link}"))
            .collect();
        if path != HISTORY {
            let spans = code_spans(text).filter(|(_, span)| self.is_missing(span));
            diagnostics
                .extend(spans.map(|(line, span)| format!("{path}:{line}: there is no `{span}`")));
        }
        diagnostics
    }

    fn leads_somewhere(&self, path: &str, link: &str) -> bool {
        let (file, anchor) = match link.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (link, None),
        };
        let page = match file {
            "" => path.to_owned(),
            file => {
                let folder = Path::new(path).parent().unwrap_or(Path::new(""));
                plain(&folder.join(file))
            }
        };
        // A generated page may exist and not be tracked yet.
        let is_there = self.paths.contains(&page) || root().join(&page).exists();
        let has_anchor = match (anchor, self.anchors.get(&page)) {
            (Some(anchor), Some(anchors)) => anchors.contains(anchor),
            _ => true,
        };
        is_there && has_anchor
    }

    /// Whether a code span is a missing path of this tree.
    fn is_missing(&self, span: &str) -> bool {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
        if span.is_empty() || !span.chars().all(is_path) {
            return false;
        }
        let span = span.trim_end_matches('/');
        match span.split_once('/') {
            Some((first, _)) if self.top.contains(first) => match span.split_once('*') {
                Some((start, _)) => !self.paths.iter().any(|path| path.starts_with(start)),
                None => !self.paths.contains(span),
            },
            None => span.ends_with(".rs") && !span.contains('*') && !self.names.contains(span),
            Some(_) => false,
        }
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out.to_string_lossy().into_owned()
}

/// Lines outside of code blocks, with their numbers.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!in_code && !fence).then_some((index + 1, line))
    })
}

/// Targets of links, without other sites.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
        .filter(|link| !link.contains(['\n', ' ']) && !link.contains("://"))
        .filter(|link| !link.starts_with("mailto:"))
}

/// Text between back-ticks.
fn code_spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.map(move |span| (number, span))
    })
}

/// The anchors of a page's headings, by GitHub's rules.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = |n: usize| match n {
            0 => anchor.clone(),
            n => format!("{anchor}-{n}"),
        };
        let free = (0..).map(same).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let files = [
            (
                "docs/a.md",
                "# A page\n\n## D12 `x`, and y\n\n## D12 `x`, and y\n",
            ),
            ("docs/b.md", text),
            ("core/src/lib.rs", ""),
        ];
        Tree::of(files.into_iter()).diagnostics("docs/b.md", text)
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let text = "[a](a.md) [b](a.md#d12-x-and-y) [c](a.md#d12-x-and-y-1) [d](#here)\n\
                    [e](../core/src/lib.rs) [f](https://x.test/none) [g](mailto:x@y.test)\n# Here\n";
        assert_eq!(check(text), [""; 0]);
        assert_eq!(
            check("[a](no.md#x) [b](a.md#d13) [c](#gone)\n"),
            [
                "docs/b.md: broken link: no.md#x",
                "docs/b.md: broken link: a.md#d13",
                "docs/b.md: broken link: #gone",
            ]
        );
    }

    #[test]
    fn paths_exist() {
        let text = "`core/src`, `core/src/`, `lib.rs`, `core/src/*.rs`, `and/or`, `a b/c`\n\
                    ```sh\n`core/none`\n```\n";
        assert_eq!(check(text), [""; 0]);
        assert_eq!(
            check("`core/src/none.rs`\n`none.rs`, `core/none/*`\n"),
            [
                "docs/b.md:1: there is no `core/src/none.rs`",
                "docs/b.md:2: there is no `none.rs`",
                "docs/b.md:2: there is no `core/none/*`",
            ]
        );
    }
}
