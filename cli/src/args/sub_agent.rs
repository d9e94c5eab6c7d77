//! Sub-agents of a run, as options name them.

use a99_core::diag::suggest;
use agent99::{Fuel, Share};
use std::fmt;
use std::path::{Path, PathBuf};

/// Parameters of an agent after its file.
const MEMBERS: [&str; 3] = ["share", "fuel", "tokens"];

/// A parsed agent: `NAME=FILE[,share=PART][,fuel=N][,tokens=N]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentArg {
    /// The name for `agentRun`.
    pub name: String,
    /// The program or artifact.
    pub file: PathBuf,
    /// Fraction of the caller's fuel that one run may use.
    share: Option<f64>,
    /// Units of the caller's fuel that one run may use.
    fuel: Option<f64>,
    /// Tokens of language models that one run may use.
    pub(crate) tokens: Option<u64>,
}

impl AgentArg {
    /// Parses an agent.
    ///
    /// # Errors
    /// The expected form.
    pub(crate) fn parse(text: &str) -> Result<AgentArg, String> {
        let form = "write NAME=FILE, as in `researcher=researcher.json`";
        let (name, rest) = text.split_once('=').ok_or(form)?;
        let mut agent = AgentArg {
            name: name.trim().to_owned(),
            file: PathBuf::new(),
            share: None,
            fuel: None,
            tokens: None,
        };
        let mut file = rest;
        // From the end: a path may contain commas.
        while let Some((before, last)) = file.rsplit_once(',') {
            let Some((key, value)) = last.split_once('=') else {
                break;
            };
            agent.set(key.trim(), value.trim())?;
            file = before;
        }
        agent.file = PathBuf::from(file.trim());
        if agent.name.is_empty() || agent.file.as_os_str().is_empty() {
            return Err(form.to_owned());
        }
        if agent.share.is_some() && agent.fuel.is_some() {
            return Err("`share` and `fuel` exclude each other".to_owned());
        }
        Ok(agent)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |most: f64| match value.parse::<f64>() {
            Ok(n) if (0.0..=most).contains(&n) => Ok(n),
            _ => Err(format!(
                "`{key}={value}`: expected a number from 0 to {most}"
            )),
        };
        match key {
            "share" => self.share = Some(number(1.0)?),
            "fuel" => self.fuel = Some(number(1e12)?),
            "tokens" => self.tokens = Some(number(1e15)? as u64),
            _ => {
                let near = suggest(key, MEMBERS.into_iter());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let known = MEMBERS.join(", ");
                return Err(format!("there is no `{key}`, known are {known}{near}"));
            }
        }
        Ok(())
    }

    /// Resolves a relative path against this folder.
    pub(crate) fn relative_to(self, folder: &Path) -> AgentArg {
        AgentArg {
            file: folder.join(self.file),
            ..self
        }
    }

    pub(crate) fn share(&self) -> Result<Share, String> {
        Ok(match (self.share, self.fuel) {
            (Some(part), _) => Share::Part(part),
            (_, Some(units)) => {
                Share::AtMost(Fuel::from_decimal(units).map_err(|e| e.to_string())?)
            }
            (None, None) => Share::All,
        })
    }
}

impl fmt::Display for AgentArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.file.display())?;
        let tokens = self.tokens.map(|tokens| tokens as f64);
        for (key, value) in MEMBERS.iter().zip([self.share, self.fuel, tokens]) {
            if let Some(value) = value {
                write!(f, ",{key}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::AgentArg;

    #[test]
    fn agents_have_a_name_a_file_and_shares() {
        for text in [
            "a=a.json",
            "a=a,b.json",
            "writer=x/y.a99b,share=0.5,tokens=100",
            "writer=x/y.ajs,fuel=20",
        ] {
            assert_eq!(AgentArg::parse(text).unwrap().to_string(), text);
        }
        for (text, told) in [
            ("a.json", "NAME=FILE"),
            ("=a.json", "NAME=FILE"),
            ("a=,share=1", "NAME=FILE"),
            ("a=b,share=2", "from 0 to 1"),
            ("a=b,shares=1", "did you mean `share`?"),
            ("a=b,tokens=-1", "from 0"),
            ("a=b,share=0.5,fuel=1", "exclude"),
        ] {
            let why = AgentArg::parse(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
