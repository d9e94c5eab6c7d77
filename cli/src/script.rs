//! Script of a run's capabilities: the file of `--script FILE`.

use crate::args::Settings;
use crate::failure::Failure;
use crate::input::{Source, parse_value};
use a99_core::diag::excerpt;
use a99_core::json::{Document, Limits};
use agent99::capabilities::{self, Capabilities, FixedClock, SeededRandom};
use agent99::{Engine, EngineBuilder};
use std::fmt::Display;
use std::sync::Arc;

/// A parsed script file; empty by default.
#[derive(Debug, Default)]
pub(crate) struct Script {
    source: Source,
    script: capabilities::Script,
}

/// Help for a member of another form.
const FORMS: &[(&str, &str)] = &[
    (
        "fetch",
        "write an answer for each address: `{\"fetch\": {\"https://...\": REPLY}}`",
    ),
    (
        "agents",
        "write an answer for each agent: `{\"agents\": {\"ID\": REPLY}}`",
    ),
    (
        "turn",
        "write what the agent has: `{\"turn\": {\"state\": {...}}}`",
    ),
    (
        "xml",
        "write an answer for each document: `{\"xml\": {\"<a/>\": REPLY}}`",
    ),
    (
        "transpile",
        "write a program for each text: `{\"transpile\": {\"CODE\": REPLY}}`",
    ),
    (
        "shell",
        "write an output for each command: `{\"shell\": {\"ls\": {\"stdout\": \"...\"}}}`",
    ),
    (
        "llm",
        "write the answers in their order, as a list: `{\"llm\": [REPLY, ...]}`",
    ),
    (
        "llmBattery",
        "write the answers in their order, as a list: `{\"llmBattery\": [REPLY, ...]}`",
    ),
    (
        "store",
        "write a value for each key: `{\"store\": {\"KEY\": VALUE}}`",
    ),
    (
        "vectors",
        "write a list of documents for each collection: `{\"vectors\": {\"NAME\": [{\"embedding\": [...]}]}}`",
    ),
    (
        "embed",
        "write how many numbers an embedding has: `{\"embed\": 8}`",
    ),
    (
        "clock",
        "write milliseconds since 1970, a number: `{\"clock\": 1769860800000}`",
    ),
    ("seed", "write a whole number: `{\"seed\": 5}`"),
];

/// The failure of a script, with its position and help.
fn failure(source: &Source, text: &str) -> Failure {
    let (what, help) = match text.split_once("; ") {
        Some((what, help)) => (what, Some(help.to_owned())),
        None => (text, None),
    };
    // Messages name the member, and the key in it.
    let mut names = what.split('`').skip(1).step_by(2);
    let member = names.next().unwrap_or_default().to_owned();
    let key = names.next().map(str::to_owned);
    let form = FORMS.iter().find(|row| row.0 == member);
    let is_address = member.contains("://");
    let help = match (help, form) {
        _ if is_address => {
            format!(
                "put it into `fetch`: `{{\"fetch\": {{\"{}\": REPLY}}}}`",
                excerpt(&member)
            )
        }
        (Some(help), _) => help,
        (None, Some(form)) => form.1.to_owned(),
        (None, None) => {
            "a script is an object of answers, as in `{\"fetch\": {\"https://...\": REPLY}}`; `a99 \
             run --help` lists its members"
                .to_owned()
        }
    };
    let document = Document::parse(source.bytes.clone(), &Limits::default());
    let place = document.ok().map(|document| {
        let root = document.root();
        let node = document.get(root, &member).unwrap_or(root);
        let inner = key.and_then(|key| document.get(node, &key));
        let node = inner.unwrap_or(node);
        let at = document.span(node).map_or(0, |span| span.start);
        let (line, column) = document.line_col(at);
        match document.pointer(node) {
            pointer if pointer.is_empty() => format!(":{line}:{column}"),
            pointer => format!(":{line}:{column} ({pointer})"),
        }
    });
    let name = format!("{}{}", source.name, place.unwrap_or_default());
    Failure::advised(&name, what, help)
}

impl Script {
    pub(crate) fn parse(source: &Source) -> Result<Script, Failure> {
        let script = capabilities::Script::new(parse_value(source)?);
        let script = script.map_err(|error| failure(source, &error.to_string()))?;
        Ok(Script {
            source: Source {
                name: source.name.clone(),
                bytes: source.bytes.clone(),
            },
            script,
        })
    }

    /// A builder with the time and seed of the settings, else the script's.
    pub(crate) fn engine_builder(&self, set: &Settings) -> Result<EngineBuilder, Failure> {
        let mut engine = Engine::builder();
        if let Some(clock) = self.clock(set)? {
            engine = engine.clock(Arc::new(clock));
        }
        let random = self.said(self.script.random())?;
        if let Some(random) = set.seed.map(SeededRandom::new).or(random) {
            engine = engine.random(Arc::new(random));
        }
        Ok(engine)
    }

    /// The fixed time of the settings, else the script's.
    pub(crate) fn clock(&self, set: &Settings) -> Result<Option<FixedClock>, Failure> {
        let clock = self.said(self.script.clock())?;
        Ok(set.now.map(FixedClock::new).or(clock))
    }

    /// Capabilities that answer from the script, with the settings' clock.
    pub(crate) async fn granted(&self, set: &Settings) -> Result<Capabilities, Failure> {
        let clock = self.clock(set)?;
        self.said(self.script.granted_at(clock).await)
    }

    /// Names the script in a failure.
    fn said<T>(&self, said: Result<T, impl Display>) -> Result<T, Failure> {
        said.map_err(|error| failure(&self.source, &error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(json: &str) -> String {
        let script = Script::parse(&Source {
            name: "s.json".to_owned(),
            bytes: json.as_bytes().to_vec(),
        });
        match script.and_then(|script| script.engine_builder(&Settings::default())) {
            Err(failure) => failure.message(),
            Ok(_) => panic!("it is taken"),
        }
    }

    #[test]
    fn mistakes_name_the_file() {
        let text = mistake(r#"{"fetsh": {}}"#);
        assert!(text.contains("s.json") && text.contains("unknown member `fetsh`"));
        assert!(mistake(r#"{"clock": "now"}"#).contains("`clock` must be"));
        assert!(mistake("{").contains("line 1, column "));
    }
}
