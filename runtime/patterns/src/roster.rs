//! Roster tools: methods of a channel's participants as tools of a model.

use crate::codes;
use crate::missed::MAX_RESULT_CHARS;
use crate::text::cut;
use a99_capabilities::ai::{Part, Tool, ToolUse};
use a99_core::value::Value as AiValue;
use a99_runtime::codes::{NO_METHOD, NOBODY, WOULD_DEADLOCK};
use a99_runtime::{AgentError, CallOptions, EventBus, Participant, TurnClient, Uuid};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Maximum characters of a tool's name: what model services accept.
const MAX_NAME: usize = 64;

/// Maximum characters of a tool's description: what model services accept.
const MAX_DESCRIPTION: usize = 1_024;

/// Maximum tools of one roster: what model services accept.
const MAX_TOOLS: usize = 128;

/// A method of a participant as a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct RosterTool {
    /// The tool as the model sees it.
    pub tool: Tool,
    /// The participant's identity.
    pub provider: Uuid,
    /// The participant's handle, without `@`.
    pub handle: String,
    /// The method's name.
    pub method: String,
}

impl RosterTool {
    /// The method's identity for grants: `@handle.method` and the participant. A tool's name
    /// may name another method when the roster has changed; this never does.
    #[must_use]
    pub fn grant_key(&self) -> String {
        format!("@{}.{} ({})", self.handle, self.method, self.provider)
    }
}

/// The tools that a roster offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RosterTools(Vec<RosterTool>);

/// The methods of all participants but `me` as tools, sorted by handle and method, at most 128.
///
/// A name is handle and method with `_` between them and for characters that services do not
/// accept, at most 64 characters. A name that an earlier tool or one of `taken` has gets a
/// number. Equal rosters give equal names.
#[must_use]
pub fn roster_to_tools(roster: &[Participant], me: Uuid, taken: &[&str]) -> RosterTools {
    let mut found: Vec<(&Participant, &Value, &str)> = roster
        .iter()
        .filter(|who| who.id != me)
        .flat_map(|who| {
            let methods = who.methods.as_array().into_iter().flatten();
            methods.filter_map(move |method| Some((who, method, method["name"].as_str()?)))
        })
        .collect();
    found.sort_by_key(|(who, _, name)| (who.handle.as_str(), who.id, *name));
    found.truncate(MAX_TOOLS);
    let mut names: BTreeSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
    let tools = found.into_iter().map(|(who, method, name)| {
        let described = method["description"].as_str().unwrap_or_default();
        let parameters = &method["parameters"];
        let schema = match parameters["type"] == "object" {
            true => AiValue::from(parameters),
            false => AiValue::from(json!({"type": "object", "properties": {}})),
        };
        RosterTool {
            tool: Tool {
                name: unique(&mut names, &format!("{}_{name}", who.handle)),
                description: Some(cut(
                    &format!("@{}: {described}", who.handle),
                    MAX_DESCRIPTION,
                )),
                input_schema: schema,
            },
            provider: who.id,
            handle: who.handle.clone(),
            method: name.to_owned(),
        }
    });
    RosterTools(tools.collect())
}

/// A valid name that is not among `names`, which it joins.
fn unique(names: &mut BTreeSet<String>, wanted: &str) -> String {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fit = wanted.chars().map(|c| if is_fit(c) { c } else { '_' });
    // The characters are ASCII, so bytes are characters.
    let fit: String = fit.take(MAX_NAME).collect();
    let mut name = fit.clone();
    for n in 2u32.. {
        if names.insert(name.clone()) {
            break;
        }
        let end = format!("_{n}");
        name = fit.chars().take(MAX_NAME - end.len()).collect::<String>() + &end;
    }
    name
}

impl RosterTools {
    /// The tools for a request to a model.
    pub fn tools(&self) -> impl Iterator<Item = Tool> + '_ {
        self.0.iter().map(|one| one.tool.clone())
    }

    /// The tool of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&RosterTool> {
        self.0.iter().find(|one| one.tool.name == name)
    }

    /// The tool with this [`RosterTool::grant_key`].
    #[must_use]
    pub fn find_granted(&self, grant_key: &str) -> Option<&RosterTool> {
        self.0.iter().find(|one| one.grant_key() == grant_key)
    }

    /// Executes a model's tool call by calling the method. The outcome is the method's answer
    /// or its error, which the model may mend: `call.unknown_tool` for a tool that was not offered,
    /// `provider-not-found` if the participant has left, or the callee's own.
    ///
    /// # Errors
    /// `turn.over`, and errors of the store, which no model can mend.
    pub async fn call(
        &self,
        client: &TurnClient,
        used: &ToolUse,
    ) -> Result<ToolOutcome, AgentError> {
        let Some(found) = self.find(&used.name) else {
            let message = format!("there is no tool '{}'", cut(&used.name, MAX_NAME));
            return Ok(Err(AgentError::new(codes::UNKNOWN_TOOL, message)));
        };
        // Another participant may have taken the handle.
        let holder = client.participant_by_handle(&found.handle);
        if holder.is_none_or(|who| who.id != found.provider) {
            let message = format!("@{} has left the channel", found.handle);
            return Ok(Err(AgentError::new(NOBODY, message)));
        }
        let (handle, args) = (&found.handle, used.input.to_json());
        let options = CallOptions::default();
        let call = client.call_method(handle, &found.method, args, options);
        let outcome = match call.await {
            Ok(call) => call.result().await,
            Err(error) if [NOBODY, NO_METHOD, WOULD_DEADLOCK].contains(&error.code()) => Err(error),
            Err(error) => return Err(error),
        };
        // The callee chooses the code of its error, so the code does not show whose it is.
        match outcome {
            Err(error) if client.is_over() => Err(error),
            outcome => Ok(outcome),
        }
    }
}

/// The answer of a tool, or its error, which the model sees.
pub type ToolOutcome = Result<Value, AgentError>;

/// The outcome of a tool call as a part of the next request. Long texts are cut.
#[must_use]
pub fn tool_result(used: &ToolUse, outcome: ToolOutcome) -> Part {
    let is_error = outcome.is_err();
    let content = match outcome {
        Ok(Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    Part::ToolResult {
        id: used.id.clone(),
        content: cut(&content, MAX_RESULT_CHARS),
        is_error,
    }
}

#[cfg(test)]
mod tests {
    use super::{roster_to_tools, tool_result};
    use a99_capabilities::ai::{Part, TextRequest, ToolUse};
    use a99_core::value::Value as AiValue;
    use a99_runtime::{AgentError, Participant, Uuid};
    use serde_json::{Map, Value, json};

    fn who(id: u128, handle: &str, methods: &[&str]) -> Participant {
        let method = |name: &&str| json!({"name": name, "description": "Does it."});
        Participant {
            id: Uuid::from_u128(id),
            handle: handle.to_owned(),
            name: handle.to_owned(),
            kind: "agent".to_owned(),
            methods: methods.iter().map(method).collect(),
            agent: None,
            metadata: Map::new(),
        }
    }

    #[test]
    fn names_are_valid_unique_and_stable() {
        let long = "m".repeat(100);
        let roster = [
            who(1, "me", &["own"]),
            who(2, "a_b", &["c"]),
            who(3, "a", &["b_c", "grüße", &long, &format!("{long}2")]),
            who(4, "set", &["title"]),
        ];
        let me = Uuid::from_u128(1);
        let tools = roster_to_tools(&roster, me, &["set_title"]);
        let names: Vec<String> = tools.tools().map(|tool| tool.name).collect();
        let cut = format!("a_{}", "m".repeat(62));
        let cut2 = format!("a_{}_2", "m".repeat(60));
        let expected = ["a_b_c", "a_gr__e", &cut, &cut2, "a_b_c_2", "set_title_2"];
        assert_eq!(names, expected);
        // The name leads to its own method.
        let found = tools.find("a_b_c_2").expect("a tool");
        assert_eq!((found.handle.as_str(), found.method.as_str()), ("a_b", "c"));
        let first = tools.find("a_b_c").expect("a tool");
        assert_ne!(first.grant_key(), found.grant_key());
        let mut reversed = roster.to_vec();
        reversed.reverse();
        assert_eq!(roster_to_tools(&reversed, me, &["set_title"]), tools);
        let request = TextRequest::new("x");
        let request = tools.tools().fold(request, TextRequest::tool);
        request.check().expect("services accept it");
    }

    #[test]
    fn a_large_roster_is_bounded() {
        let names: Vec<String> = (0..300).map(|n| format!("m{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let tools = roster_to_tools(&[who(2, "a", &names)], Uuid::from_u128(1), &[]);
        assert_eq!(tools.tools().count(), 128);
    }

    #[test]
    fn models_see_outcomes() {
        let used = ToolUse {
            id: "u1".to_owned(),
            name: "a_b".to_owned(),
            input: AiValue::Null,
        };
        let failed = Err(AgentError::new("execution-error", "no money"));
        let long = Value::from("x".repeat(30_000));
        for (outcome, said, is_bad) in [
            (Ok(json!({"a": 1})), "{\"a\":1}".to_owned(), false),
            (failed, "execution-error: no money".to_owned(), true),
            (Ok(long), "x".repeat(19_999) + "…", false),
        ] {
            let part = Part::ToolResult {
                id: "u1".to_owned(),
                content: said,
                is_error: is_bad,
            };
            assert_eq!(tool_result(&used, outcome), part);
        }
    }
}
