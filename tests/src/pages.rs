//! Reader of the code blocks in Markdown pages, with their line numbers.
//!
//! The first word after a fence gives the expectation of the page tests; `docs/README.md` lists
//! the words.

use std::path::{Path, PathBuf};

/// A code block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The page, from the root of the project.
    pub page: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// The word after the fence, such as `json` or `runs`; may be empty.
    pub kind: String,
    /// The next word: the name of a file, or empty.
    pub name: String,
    /// The text between the fences.
    pub text: String,
}

impl Fence {
    /// The place of the block, as `docs/language.md:12`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The code blocks of a page's text, in order.
#[must_use]
pub fn fences(page: &str, text: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut open: Option<(Fence, usize)> = None;
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        match (&mut open, bare.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let fence = Fence {
                    page: page.to_owned(),
                    line: index + 1,
                    kind: words.next().unwrap_or_default(),
                    name: words.next().unwrap_or_default(),
                    text: String::new(),
                };
                open = Some((fence, indent));
            }
            (Some(_), Some("")) => found.extend(open.take().map(|(fence, _)| fence)),
            (Some((fence, indent)), _) => {
                let margin = line.len().min(*indent);
                let inside = line.get(margin..).unwrap_or(bare);
                fence.text.push_str(inside);
                fence.text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// The pages for readers: those at the root, of `docs` and of `examples`.
///
/// # Errors
/// A folder or page that cannot be read, with its name.
pub fn pages(root: &Path) -> Result<Vec<Vec<Fence>>, String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["", "docs", "examples"] {
        let folder = root.join(folder);
        let entries = std::fs::read_dir(&folder);
        for entry in entries.map_err(|e| format!("{}: {e}", folder.display()))? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.extension().is_some_and(|e| e == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(path);
        Ok(fences(&name.to_string_lossy(), &text))
    };
    paths.iter().map(read).collect()
}
