//! Scripted replies: by key, by command, or in order. Any reply may fail, and a key may have
//! successive replies.

use crate::script::lock;
use crate::{
    AgentCall, AgentReply, AgentRunner, BoxFuture, CapabilityError, Fetch, Llm, LlmBattery,
    MemoryShell, Reply, ShellCommand, ShellError, ShellErrorKind, ShellOutput, Transpiler, Xml,
};
use a99_core::diag::{excerpt, suggest};
use a99_core::value::{Map, Value};
use std::sync::Mutex;
use std::time::Duration;

/// The member that turns a reply into a failure with this text.
pub(super) const FAILS: &str = "$fails";

/// The member that holds a list of successive replies.
pub(super) const REPLIES: &str = "$replies";

/// Most keys that an unknown key is compared with.
const MOST_NEAR: usize = 100;

/// Answer of a capability: a value, or the text of its failure.
type Answer = Result<Value, CapabilityError>;

/// Successive replies.
#[derive(Debug)]
struct Turns {
    replies: Vec<Value>,
    next: Mutex<usize>,
}

impl Turns {
    fn new(replies: Vec<Value>) -> Turns {
        Turns {
            replies,
            next: Mutex::new(0),
        }
    }

    /// The next reply and its index, counted from the start of the run.
    fn take(&self) -> (usize, Option<&Value>) {
        let mut next = lock(&self.next);
        let at = *next;
        *next += 1;
        (at, self.replies.get(at))
    }
}

/// Converts a reply to an answer.
fn answer(reply: &Value) -> Answer {
    match reply.get(FAILS) {
        Some(Value::String(text)) => Err(CapabilityError::new(text.clone())),
        Some(other) => Err(CapabilityError::new(other.to_json_string())),
        None => Ok(reply.clone()),
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

/// Answers by the first argument of a call.
#[derive(Debug)]
pub(super) struct ByKey {
    entries: Vec<(Value, Turns)>,
    unknown: &'static str,
}

impl ByKey {
    /// Takes the keys of a script's object. Other keys fail with the text `unknown`.
    pub(super) fn new(table: &Map, unknown: &'static str) -> ByKey {
        let entries = table.iter().map(|(key, reply)| {
            let turns = reply.get(REPLIES).and_then(Value::as_array);
            let turns = turns.map_or_else(|| vec![reply.clone()], <[Value]>::to_vec);
            (Value::from(key.clone()), Turns::new(turns))
        });
        ByKey {
            entries: entries.collect(),
            unknown,
        }
    }

    fn answer(&self, key: &Value) -> Answer {
        let turns = self.entries.iter().find(|(known, _)| known == key);
        let Some((_, turns)) = turns else {
            let (Some(asked), true) = (key.as_str(), self.entries.len() <= MOST_NEAR) else {
                return Err(CapabilityError::new(self.unknown));
            };
            let known = self.entries.iter().filter_map(|(known, _)| known.as_str());
            let near = suggest(asked, known).map_or(String::new(), |near| {
                format!("; did you mean `{}`?", excerpt(&near))
            });
            return Err(CapabilityError::new(format!(
                "{}: `{}`{near}",
                self.unknown,
                excerpt(asked)
            )));
        };
        // The last reply repeats.
        match turns.take().1.or(turns.replies.last()) {
            Some(reply) => answer(reply),
            None => Err(CapabilityError::new(
                "the script has an empty list of replies",
            )),
        }
    }
}

impl Fetch for ByKey {
    fn fetch(&self, url: Value, _options: Value) -> Reply<'_> {
        ready(self.answer(&url))
    }

    fn allows(&self, url: &str) -> bool {
        self.entries
            .iter()
            .any(|(known, _)| known.as_str() == Some(url))
    }
}

impl Xml for ByKey {
    fn parse(&self, text: Value) -> Reply<'_> {
        ready(self.answer(&text))
    }
}

impl Transpiler for ByKey {
    fn transpile(&self, code: Value) -> Reply<'_> {
        ready(self.answer(&code))
    }
}

impl AgentRunner for ByKey {
    fn run(
        &self,
        id: Value,
        _input: Value,
        _call: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>> {
        ready(self.answer(&id).map(AgentReply::from))
    }
}

/// Answers in order, then fails.
#[derive(Debug)]
pub(super) struct InOrder(Turns);

impl InOrder {
    /// Takes the replies in order.
    pub(super) fn new(replies: &[Value]) -> InOrder {
        InOrder(Turns::new(replies.to_vec()))
    }

    fn answer(&self) -> Answer {
        match self.0.take() {
            (_, Some(reply)) => answer(reply),
            (count, None) => Err(CapabilityError::new(format!(
                "the script has no reply for call {} of the model",
                count + 1
            ))),
        }
    }
}

impl Llm for InOrder {
    fn predict(&self, _prompt: Value, _options: Value) -> Reply<'_> {
        ready(self.answer())
    }
}

impl LlmBattery for InOrder {
    fn predict(&self, _system: Value, _user: Value, _tools: Value, _format: Value) -> Reply<'_> {
        ready(self.answer())
    }
}

/// Creates an in-memory computer with a script's commands. A command matches the script of that
/// text and the program with these words.
pub(super) fn shell(table: &Map) -> Result<MemoryShell, String> {
    let mut shell = MemoryShell::new();
    for (command, reply) in table.iter() {
        let text = command.to_string_lossy().into_owned();
        let words = text.split(' ').map(str::to_owned).collect();
        let about = |what: String| format!("`shell` for `{text}`: {what}");
        super::forms::output(reply).map_err(about)?;
        for command in [
            ShellCommand::Argv(words),
            ShellCommand::Script(text.clone()),
        ] {
            shell = match reply.get(FAILS) {
                Some(message) => {
                    let message = message.as_str().unwrap_or_default();
                    let error = ShellError::new(ShellErrorKind::Failed, message);
                    shell.fails(command, error)
                }
                None => {
                    let (output, files) = command_output(reply).map_err(about)?;
                    shell.on_writing(command, output, files)
                }
            };
        }
    }
    Ok(shell)
}

/// Files by path.
type Files = Vec<(String, Vec<u8>)>;

/// Output and files of a scripted command.
fn command_output(reply: &Value) -> Result<(ShellOutput, Files), String> {
    let bytes = |value: &Value| value.as_str().map(|text| text.as_bytes().to_vec());
    let stream = |name: &str| match reply.get(name) {
        None => Ok(Vec::new()),
        Some(value) => bytes(value).ok_or_else(|| format!("`{name}` must be a text")),
    };
    let number = |name: &str, most: f64| match reply.get(name).map(Value::as_f64) {
        None => Ok(0.0),
        Some(Some(n)) if (0.0..=most).contains(&n) => Ok(n),
        Some(_) => Err(format!("`{name}` must be a number from 0 to {most}")),
    };
    let mut files = Files::new();
    let table = reply.get("files").and_then(Value::as_object);
    for (path, content) in table.into_iter().flat_map(Map::iter) {
        let content = bytes(content).ok_or_else(|| format!("the file `{path}` must be a text"))?;
        files.push((path.to_string_lossy().into_owned(), content));
    }
    let output = ShellOutput {
        stdout: stream("stdout")?,
        stderr: stream("stderr")?,
        // In range; the cast drops a fraction.
        exit_code: number("exitCode", 255.0)? as u8,
        elapsed: Duration::from_secs_f64(number("elapsedMs", MAX_ELAPSED_MS)? / 1_000.0),
        ..ShellOutput::default()
    };
    Ok((output, files))
}

/// Longest time that a scripted command may claim: a day.
const MAX_ELAPSED_MS: f64 = 86_400_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value;

    #[test]
    fn by_key() {
        let table = value(r#"{"a": 1, "b": {"$replies": [{"$fails": "down"}, 2]}}"#);
        let replies = ByKey::new(table.as_object().expect("an object"), "unknown");
        let ask = |key: &str| {
            let answer = replies.answer(&key.into());
            answer.map_err(|error| error.to_string())
        };
        assert_eq!(ask("a"), Ok(1.into()));
        assert_eq!(ask("a"), Ok(1.into()));
        assert_eq!(ask("b"), Err("down".to_owned()));
        assert_eq!(ask("b"), Ok(2.into()));
        assert_eq!(ask("b"), Ok(2.into()));
        assert_eq!(ask("c"), Err("unknown: `c`".to_owned()));
        let near = ByKey::new(
            value(r#"{"billing": 1}"#).as_object().expect("an object"),
            "unknown",
        );
        let told = near
            .answer(&"biling".into())
            .map_err(|error| error.to_string());
        assert_eq!(
            told,
            Err("unknown: `biling`; did you mean `billing`?".to_owned())
        );
    }

    #[test]
    fn in_order() {
        let list = value(r#"["x", {"$fails": "tired"}]"#);
        let replies = InOrder::new(list.as_array().expect("an array"));
        assert_eq!(replies.answer(), Ok("x".into()));
        assert_eq!(
            replies.answer().expect_err("a failure").to_string(),
            "tired"
        );
        let spent = replies.answer().expect_err("a failure").to_string();
        assert_eq!(spent, "the script has no reply for call 3 of the model");
    }
}
