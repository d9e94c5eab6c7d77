//! Script of a run's capabilities: the file of `--script FILE`.

use crate::args::Settings;
use crate::failure::Failure;
use crate::input::{Source, parse_value};
use agent99::Engine;
use agent99::capabilities::{self, Capabilities, FixedClock, SeededRandom};
use std::fmt::Display;
use std::sync::Arc;

/// What a script file says; nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Script {
    name: String,
    script: capabilities::Script,
}

impl Script {
    /// Reads a script file.
    pub(crate) fn parse(source: &Source) -> Result<Script, Failure> {
        let name = format!("--script {}", source.name);
        let script = capabilities::Script::new(parse_value(source)?);
        let script = script.map_err(|error| Failure::about(&name, error))?;
        Ok(Script { name, script })
    }

    /// An engine with the time and the randomness of the settings, else the script's.
    pub(crate) fn engine(&self, set: &Settings) -> Result<Engine, Failure> {
        let mut engine = Engine::builder();
        if let Some(clock) = self.clock(set)? {
            engine = engine.clock(Arc::new(clock));
        }
        let random = self.said(self.script.random())?;
        if let Some(random) = set.seed.map(SeededRandom::new).or(random) {
            engine = engine.random(Arc::new(random));
        }
        Ok(engine.build())
    }

    /// The time that stands, of the settings, else the script's.
    pub(crate) fn clock(&self, set: &Settings) -> Result<Option<FixedClock>, Failure> {
        let clock = self.said(self.script.clock())?;
        Ok(set.now.map(FixedClock::new).or(clock))
    }

    /// The capabilities that answer as the script says.
    pub(crate) async fn granted(&self) -> Result<Capabilities, Failure> {
        self.said(self.script.granted().await)
    }

    /// What the script says, or a failure with its name.
    fn said<T>(&self, said: Result<T, impl Display>) -> Result<T, Failure> {
        said.map_err(|error| Failure::about(&self.name, error))
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
        match script.and_then(|script| script.engine(&Settings::default())) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{:?}", other.is_ok()),
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
