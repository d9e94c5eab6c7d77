//! Input: reading programs, arguments and scripts.
//!
//! All input is bounded before it is kept (security P05).

use crate::failure::{Failure, USAGE};
use a99_core::diag::{LineIndex, codes};
use a99_core::json::{Document, Limits};
use agent99::artifact::sign::{TrustedKeys, check};
use agent99::artifact::{DEFAULT_MAX_BYTES, DecodeOptions, MAGIC, codes as artifact_codes};
use agent99::capabilities::{Clock as _, SystemClock};
use agent99::{Agent, Diagnostics, Engine, ErrorCode, Value};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The name that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Bytes that are read at most: one more than a document or artifact may have, so that its reader
/// reports that it is too long.
fn max_bytes() -> u64 {
    Limits::default().max_bytes.max(DEFAULT_MAX_BYTES) as u64 + 1
}

/// Input text with the name to show for it.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The path, or `<stdin>`.
    pub name: String,
    /// At most one byte more than a document may have.
    pub bytes: Vec<u8>,
}

/// Refuses standard input in two places.
pub(crate) fn only_one_stdin<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<(), Failure> {
    match paths.filter(|path| *path == Path::new(STDIN)).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::coded(
            USAGE[0],
            "standard input can be read only once",
            "give one of the two as a file",
        )),
    }
}

/// The name to show for a file, or for standard input.
pub(crate) fn name_of(path: &Path) -> String {
    match path == Path::new(STDIN) {
        true => "<stdin>".to_owned(),
        false => path.display().to_string(),
    }
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    let stdin = path == Path::new(STDIN);
    let name = name_of(path);
    let read = if stdin {
        io::stdin().lock().take(max_bytes()).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(max_bytes()).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(Source { name, bytes }),
        Err(error) => Err(Failure::of_file(&name, path, &error)),
    }
}

/// Reads the file that an option names, which errors name as well.
pub(crate) fn read_for(option: &str, path: &Path) -> Result<Source, Failure> {
    let mut source = read(path).map_err(|failure| match failure {
        Failure::Coded {
            code,
            message,
            help,
        } => Failure::coded(code, format!("{option} {message}"), help),
        Failure::Usage(message) => Failure::usage(format!("{option} {message}")),
        other => other,
    })?;
    source.name = format!("{option} {}", source.name);
    Ok(source)
}

impl Source {
    /// The empty source.
    pub(crate) fn none() -> Source {
        Source {
            name: String::new(),
            bytes: Vec::new(),
        }
    }

    /// Whether it is an artifact, by its first bytes or its name. The artifact reader reports a
    /// header that a transfer as text has damaged.
    pub(crate) fn is_artifact(&self) -> bool {
        self.bytes.starts_with(&MAGIC[..5]) || self.is_named_artifact()
    }

    /// Whether the extension is that of an artifact and the content is not JSON.
    fn is_named_artifact(&self) -> bool {
        let extension = Path::new(&self.name).extension();
        let first = self.bytes.iter().find(|b| !b.is_ascii_whitespace());
        extension.is_some_and(|extension| extension == "a99b") && first != Some(&b'{')
    }

    /// Whether the extension is that of JavaScript, or without one, the content: standard
    /// input has no extension.
    pub(crate) fn is_script(&self) -> bool {
        let path = Path::new(&self.name);
        is_script(path) || (path.extension().is_none() && self.looks_like_script())
    }

    fn looks_like_script(&self) -> bool {
        let text = self.bytes.trim_ascii_start();
        let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
        SCRIPT_STARTS
            .iter()
            .any(|start| text.starts_with(start.as_bytes()))
            && (has(b"function") || has(b"=>"))
    }

    /// Loads the artifact as an agent of this engine.
    pub(crate) fn load(&self, engine: &Engine) -> Result<Agent, Failure> {
        let loaded = engine.load(&self.bytes);
        loaded.map_err(|error| Failure::artifact(&self.name, error))
    }

    /// Refuses an artifact without a signature of one of these keys. Expiry is checked against the
    /// system's time: a script's time must not extend the trust in a key.
    pub(crate) fn check_signature(&self, keys: &TrustedKeys) -> Result<(), Failure> {
        if !self.is_artifact() {
            return Err(Failure::refused(
                &self.name,
                artifact_codes::UNSIGNED,
                "a signature is required, and a program in JSON has none",
                "make an artifact of it with `a99 compile --sign KEYFILE`",
            ));
        }
        let now = (SystemClock.now_ms() / 1000.0) as u64;
        match check(&self.bytes, keys, now, &DecodeOptions::default()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::artifact(&self.name, error)),
        }
    }
}

/// Extensions of programs in the source form.
pub(crate) const SCRIPTS: [&str; 4] = ["ajs", "js", "mjs", "ts"];

/// Beginnings of a source. `{` begins JSON, and other text is an answer of a model.
const SCRIPT_STARTS: [&str; 9] = [
    "export ",
    "async ",
    "function",
    "const ",
    "let ",
    "interface ",
    "type ",
    "/*",
    "//",
];

/// Whether a file of this name is a program in the source form.
pub(crate) fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| SCRIPTS.contains(&extension))
}

/// Reads a file of public keys.
pub(crate) fn trusted_keys(path: &Path) -> Result<TrustedKeys, Failure> {
    let file = read_for("--require-signed", path)?;
    TrustedKeys::from_json(&file.bytes).map_err(|error| {
        let help = "name the NAME.pub.json that `a99 keys new NAME` made, or a list of such";
        Failure::advised(&file.name, error, help)
    })
}

/// Reads a program and compiles it, or loads it if it is an artifact.
pub(crate) fn agent(engine: &Engine, path: &Path) -> Result<(Agent, Source), Failure> {
    let source = read(path)?;
    agent_of(engine, source)
}

/// Compiles or loads a program that was read before.
pub(crate) fn agent_of(engine: &Engine, source: Source) -> Result<(Agent, Source), Failure> {
    if source.is_artifact() {
        return Ok((source.load(engine)?, source));
    }
    if source.is_script() {
        return compiled(engine.compile_source(source.bytes.clone()), source);
    }
    compiled(engine.compile(source.bytes.clone()), source)
}

/// Compiles or loads a program. With `lenient` it may stand inside a model's answer; otherwise the
/// error points out the program inside.
pub(crate) fn agent_in(
    engine: &Engine,
    source: Source,
    lenient: bool,
) -> Result<(Agent, Source), Failure> {
    if source.is_artifact() {
        return Ok((source.load(engine)?, source));
    }
    if source.is_script() {
        let agent = match lenient {
            true => engine.compile_source_answer(source.bytes.clone()),
            false => engine.compile_source(source.bytes.clone()),
        };
        return compiled(agent, source);
    }
    let answer = || engine.compile_answer(source.bytes.clone());
    if lenient {
        return compiled(answer(), source);
    }
    let mut agent = engine.compile(source.bytes.clone());
    if let Err(found) = &mut agent
        && let Some(first) = found.0.iter_mut().find(|d| d.code == codes::JSON_SYNTAX)
        && answer().is_ok()
    {
        let help = "`--lenient` takes the program that stands in this text";
        first.help = Some(match &first.help {
            Some(said) if !said.contains("--lenient") => format!("{said}; {help}"),
            _ => help.to_owned(),
        });
    }
    compiled(agent, source)
}

fn compiled(agent: Result<Agent, Diagnostics>, source: Source) -> Result<(Agent, Source), Failure> {
    match agent {
        Ok(agent) => Ok((agent, source)),
        Err(diagnostics) => Err(Failure::Rejected {
            diagnostics,
            name: source.name,
            source: source.bytes,
        }),
    }
}

/// A value given on the command line: JSON text, or `@` and the file (`@-`:
/// standard input) that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonArg {
    Text(String),
    File(PathBuf),
}

impl JsonArg {
    /// Splits the argument into its kind and text; the JSON is read later.
    pub(crate) fn parse(text: &str) -> Result<JsonArg, String> {
        match text.strip_prefix('@') {
            Some("") => Err("a file name must follow `@`".to_owned()),
            Some(path) => Ok(JsonArg::File(path.into())),
            None => Ok(JsonArg::Text(text.to_owned())),
        }
    }

    /// The file, if the value comes from one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            JsonArg::File(path) => Some(path),
            JsonArg::Text(_) => None,
        }
    }

    /// Reads the value, which must be an object; `option` names the argument in
    /// errors.
    pub(crate) fn object(&self, option: &str) -> Result<Value, Failure> {
        let value = self.value(option)?;
        match value {
            Value::Object(_) => Ok(value),
            other => Err(Failure::coded(
                match option {
                    "--args" => ErrorCode::ArgsInvalid.as_str(),
                    _ => USAGE[0],
                },
                format!("{option}: expected a JSON object, found {}", kind(&other)),
                format!("write `{option} '{{\"name\": VALUE}}'`, or `{option} @FILE`"),
            )),
        }
    }

    /// Reads the value; `option` names the argument in errors.
    pub(crate) fn value(&self, option: &str) -> Result<Value, Failure> {
        let source = match self {
            JsonArg::Text(text) if is_file_name(text) => {
                return Err(Failure::advised(
                    option,
                    format!("`{text}` is no JSON"),
                    format!("for a file write `{option} @{text}`"),
                ));
            }
            JsonArg::Text(text) => Source {
                name: option.to_owned(),
                bytes: text.clone().into_bytes(),
            },
            JsonArg::File(path) => read_for(option, path)?,
        };
        parse_value(&source)
    }
}

/// Whether a text looks like a file name and not like JSON.
fn is_file_name(text: &str) -> bool {
    let is_name = !text.contains(['{', '[', '"']) && !text.contains(char::is_whitespace);
    is_name && text.ends_with(".json")
}

/// The kind of a value, in two words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Undefined => "nothing",
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads JSON; a failure has the position.
pub(crate) fn parse_value(source: &Source) -> Result<Value, Failure> {
    match Document::parse(source.bytes.clone(), &Limits::default()) {
        Ok(document) => Ok(document.to_value(document.root())),
        Err(diagnostics) => {
            let index = LineIndex::new(&source.bytes);
            let found = diagnostics.iter().map(|diagnostic| {
                let at = diagnostic.span.as_ref().map_or(0, |span| span.start);
                let (line, column) = index.line_col(&source.bytes, at);
                format!("line {line}, column {column}: {}", diagnostic.message)
            });
            let found: Vec<String> = found.take(MAX_DIAGNOSTICS).collect();
            let help = diagnostics.iter().find_map(|one| one.help.clone());
            let text = String::from_utf8_lossy(&source.bytes);
            let inner = text
                .trim()
                .strip_prefix('\'')
                .and_then(|t| t.strip_suffix('\''));
            let inner = inner.filter(|inner| inner.starts_with('{'));
            let help = match pairs(&text) {
                _ if inner.is_some() => {
                    format!(
                        "leave out the quotes around it: {}",
                        inner.unwrap_or_default()
                    )
                }
                Some(object) => format!("write a JSON object: `'{object}'`"),
                None => help.unwrap_or_else(|| "write JSON".to_owned()),
            };
            Err(Failure::advised(&source.name, found.join("; "), help))
        }
    }
}

/// The object meant by `n=1`, `n=1,b=x` or `n: 1`.
fn pairs(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(['{', '[', '"', '\n']) {
        return None;
    }
    let pairs = text.split([',', '&', ';']).map(|pair| {
        let (name, value) = pair.split_once(['=', ':'])?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let value = value.trim_matches('\'');
        let is_json = value.parse::<f64>().is_ok() || matches!(value, "true" | "false" | "null");
        let value = match is_json {
            true => value.to_owned(),
            false => format!("\"{value}\""),
        };
        is_name.then(|| format!("\"{name}\": {value}"))
    });
    let pairs: Vec<String> = pairs.collect::<Option<_>>()?;
    Some(format!("{{{}}}", pairs.join(", ")))
}

/// Diagnostics about an argument that are shown; later ones follow from these.
const MAX_DIAGNOSTICS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_arguments() {
        assert_eq!(JsonArg::parse("{}"), Ok(JsonArg::Text("{}".to_owned())));
        assert_eq!(
            JsonArg::parse("@a.json"),
            Ok(JsonArg::File("a.json".into()))
        );
        assert!(JsonArg::parse("@").is_err());
        let value = JsonArg::Text("[1]".to_owned()).value("--args").unwrap();
        assert_eq!(value.to_json_string(), "[1]");
    }

    #[test]
    fn errors_say_where() {
        let failure = JsonArg::Text("{\n \"a\": x}".to_owned()).value("--args");
        let text = failure.expect_err("no JSON").message();
        assert!(text.starts_with("--args: line 2, column 7: "), "{text}");
    }

    #[test]
    fn pairs_are_told_as_an_object() {
        assert_eq!(pairs("n=1"), Some("{\"n\": 1}".to_owned()));
        assert_eq!(
            pairs("a=x, b: true"),
            Some("{\"a\": \"x\", \"b\": true}".to_owned())
        );
        assert_eq!(pairs("{n: 1}"), None);
        assert_eq!(pairs("hello"), None);
    }
}
