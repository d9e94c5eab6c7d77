//! Reads the entries of `a99 repl`: with line editing, history and completion from a terminal, as
//! plain lines otherwise.

use super::entry::is_json;
use crate::failure::Failure;
use a99_core::builtins::{CONSTANTS, FUNCTIONS, METHODS};
use agent99::{Engine, outline};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;

/// Most bytes of an entry.
const MAX_BYTES: u64 = 1 << 20;

/// Entries that the history keeps.
const MAX_HISTORY: usize = 1000;

/// Words of the language that are offered for completion.
const WORDS: [&str; 14] = [
    "async",
    "await",
    "const",
    "context(",
    "false",
    "for",
    "function",
    "if",
    "let",
    "null",
    "return",
    "true",
    "typeof",
    "undefined",
];

/// Source of entries.
pub(super) enum Reader {
    Terminal {
        editor: Box<Editor<Completions, FileHistory>>,
        history: Option<PathBuf>,
    },
    Plain,
}

impl Reader {
    /// A reader for standard input, which edits lines if a person types.
    pub(super) fn new(interactive: bool, engine: &Engine) -> Result<Reader, Failure> {
        if !interactive {
            return Ok(Reader::Plain);
        }
        let failed = |error| Failure::about("<stdin>", error);
        let config = Config::builder().max_history_size(MAX_HISTORY);
        let config = config.map_err(failed)?.auto_add_history(true).build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Completions::new(engine)));
        let history = history_file();
        if let Some(path) = &history {
            // The first session has no file.
            let _ = editor.load_history(path);
        }
        Ok(Reader::Terminal {
            editor: Box::new(editor),
            history,
        })
    }

    /// Reads the next entry: a line, or several until its brackets are closed. `variables` are
    /// offered for completion.
    pub(super) fn next(
        &mut self,
        variables: impl Iterator<Item = String>,
    ) -> Result<Option<String>, Failure> {
        let (editor, history) = match self {
            Reader::Plain => return plain(),
            Reader::Terminal { editor, history } => (editor, history),
        };
        if let Some(helper) = editor.helper_mut() {
            helper.variables = variables.collect();
        }
        loop {
            match editor.readline("> ") {
                Ok(entry) => {
                    if let Some(path) = history {
                        // A session goes on without a history file.
                        let _ = editor.append_history(path);
                    }
                    return Ok(Some(entry));
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(Failure::about("<stdin>", error)),
            }
        }
    }
}

/// `$XDG_STATE_HOME/a99/repl-history`, in a folder that only the user can read.
fn history_file() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let folder = state
        .filter(|path| path.is_absolute())
        .or_else(home)?
        .join("a99");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("repl-history"))
}

fn plain() -> Result<Option<String>, Failure> {
    let mut entry = String::new();
    loop {
        let Some(line) = line(MAX_BYTES - entry.len() as u64)? else {
            return Ok(Some(entry).filter(|entry| !entry.is_empty()));
        };
        entry.push_str(&line);
        if !is_open(&entry) {
            return Ok(Some(entry));
        }
    }
}

fn line(most: u64) -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(most + 1)
        .read_until(b'\n', &mut bytes);
    read.map_err(|error| Failure::about("<stdin>", error))?;
    if bytes.len() as u64 > most {
        let text = format!("an entry has more than {MAX_BYTES} bytes");
        return Err(Failure::about("<stdin>", text));
    }
    let text = String::from_utf8(bytes).map_err(|error| Failure::about("<stdin>", error))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Whether the entry continues on the next line.
fn is_open(text: &str) -> bool {
    match is_json(text) {
        true => is_open_json(text),
        false => !text.trim().is_empty() && !text.starts_with(':') && outline(text).is_open,
    }
}

fn is_open_json(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0i64, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// Names that complete what is typed.
pub(super) struct Completions {
    /// Atoms, functions, constants and words.
    global: BTreeSet<String>,
    /// Methods, which follow a dot.
    methods: BTreeSet<String>,
    variables: BTreeSet<String>,
}

impl Completions {
    fn new(engine: &Engine) -> Completions {
        let mut global: BTreeSet<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        global.extend(
            engine
                .atoms()
                .iter()
                .map(|atom| format!("{}({{ ", atom.sig.name)),
        );
        global.extend(
            FUNCTIONS
                .iter()
                .map(|function| format!("{}(", function.full_name())),
        );
        global.extend(CONSTANTS.iter().map(|(of, name, _)| format!("{of}.{name}")));
        Completions {
            global,
            methods: METHODS
                .iter()
                .map(|method| format!("{}(", method.name))
                .collect(),
            variables: BTreeSet::new(),
        }
    }

    /// The names that continue the text before the cursor, and where they begin.
    fn of(&self, before: &str) -> (usize, Vec<String>) {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let start = before.rfind(|c| !is_part(c)).map_or(0, |at| {
            at + before[at..].chars().next().map_or(0, char::len_utf8)
        });
        let word = &before[start..];
        let starting = |names: &BTreeSet<String>, word: &str| -> Vec<String> {
            let found = names.range(word.to_owned()..);
            found
                .take_while(|name| name.starts_with(word))
                .cloned()
                .collect()
        };
        let mut found = starting(&self.global, word);
        found.extend(starting(&self.variables, word));
        if let (true, Some((receiver, method))) = (found.is_empty(), word.rsplit_once('.')) {
            return (start + receiver.len() + 1, starting(&self.methods, method));
        }
        (start, found)
    }
}

impl Completer for Completions {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.of(line.get(..at).unwrap_or_default()))
    }
}

impl Validator for Completions {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for Completions {
    type Hint = String;
}

impl Highlighter for Completions {}

impl Helper for Completions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_complete_a_word() {
        let mut names = Completions::new(&Engine::new());
        names.variables.insert("total".to_owned());
        for (before, at, name) in [
            ("1 + to", 4, "total"),
            ("Math.ro", 0, "Math.round("),
            ("await httpF", 6, "httpFetch({ "),
            ("total.toFix", 6, "toFixed("),
            ("é.toUpperC", 3, "toUpperCase("),
        ] {
            let (start, found) = names.of(before);
            assert_eq!(
                (start, found.contains(&name.to_owned())),
                (at, true),
                "{before}: {found:?}"
            );
        }
        assert!(names.of("nothingLikeIt").1.is_empty());
    }

    #[test]
    fn open_entries() {
        for text in ["{\"op\": [", "[1,", "f((x) => {", "`a"] {
            assert!(is_open(text), "{text}");
        }
        for text in ["{\"op\": \"[\"}", "a[1", ":help (", "", "f()"] {
            assert_eq!(is_open(text), text == "a[1", "{text}");
        }
    }
}
