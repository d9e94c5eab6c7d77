//! Standard tools: the title of a channel, and a list of work to do.

use crate::roster::ToolOutcome;
use a99_capabilities::ai::{Tool, ToolUse};
use a99_core::value::Value as AiValue;
use a99_runtime::{Agent, AgentError, EventBus, Method, Methods, TurnClient, codes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tool and method that sets the channel's title.
pub const SET_TITLE: &str = "set_title";

/// The tool and method that replaces the list of work to do. Its call publishes an event of
/// this type with the whole list.
pub const WRITE_TASKS: &str = "todo_write";

/// Maximum characters of a title.
pub const MAX_TITLE_CHARS: usize = 200;

/// Maximum entries of a list.
pub const MAX_TASKS: usize = 100;

/// Maximum characters of an entry's texts.
const MAX_TASK_CHARS: usize = 1_000;

/// The status of an entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// It has not begun.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// An entry of a list of work to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What is to be done: "Run the tests".
    pub content: String,
    /// The same while it is being done: "Running the tests".
    #[serde(alias = "activeForm")]
    pub active_form: String,
    /// Its status.
    pub status: TodoStatus,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Title {
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Todos {
    todos: Vec<Todo>,
}

fn descriptions() -> [(&'static str, &'static str, Value); 2] {
    let text = json!({"type": "string", "minLength": 1, "maxLength": MAX_TASK_CHARS});
    let title = json!({
        "type": "object",
        "properties": {"title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE_CHARS}},
        "required": ["title"],
        "additionalProperties": false,
    });
    let todos = json!({
        "type": "object",
        "properties": {"todos": {
            "type": "array",
            "maxItems": MAX_TASKS,
            "items": {
                "type": "object",
                "properties": {
                    "content": text,
                    "active_form": text,
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                },
                "required": ["content", "active_form", "status"],
                "additionalProperties": false,
            },
        }},
        "required": ["todos"],
        "additionalProperties": false,
    });
    [
        (SET_TITLE, "Sets the title of the conversation.", title),
        (
            WRITE_TASKS,
            "Replaces the list of work to do. At most one entry is in_progress.",
            todos,
        ),
    ]
}

/// The standard tools, for a request to a model.
#[must_use]
pub fn standard_tools() -> Vec<Tool> {
    let tools = descriptions().into_iter();
    tools
        .map(|(name, description, schema)| Tool {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            input_schema: AiValue::from(schema),
        })
        .collect()
}

/// Adds the standard tools to an agent's methods, so that others can call them.
#[must_use]
pub fn with_standard_tools<A: Agent>(methods: Methods<A>) -> Methods<A> {
    let add = |methods: Methods<A>, (name, description, schema): (&'static str, _, _)| {
        let method = Method::new(description, move |_: &A, turn, call| {
            Box::pin(async move { run(&turn.client(), name, call.args).await })
        });
        methods.with(name, method.parameters(schema))
    };
    descriptions().into_iter().fold(methods, add)
}

/// Executes a model's call of a standard tool; `None` if the call is not of one. The outcome
/// is the tool's answer, or `validation-error` for an input that does not fit.
///
/// # Errors
/// `turn.over`, and errors of the store.
pub async fn call_standard_tool(
    client: &TurnClient,
    used: &ToolUse,
) -> Result<Option<ToolOutcome>, AgentError> {
    let mut names = [SET_TITLE, WRITE_TASKS].into_iter();
    let Some(name) = names.find(|name| used.name == *name) else {
        return Ok(None);
    };
    match run(client, name, used.input.to_json()).await {
        Err(error) if error.code() != codes::BAD_ARGUMENTS => Err(error),
        outcome => Ok(Some(outcome)),
    }
}

async fn run(client: &TurnClient, name: &str, args: Value) -> Result<Value, AgentError> {
    match name {
        SET_TITLE => {
            let title = title_of(args)?;
            client.set_channel_title(title.clone()).await?;
            Ok(json!({"title": title}))
        }
        _ => {
            let todos = todos_of(args)?;
            let payload = json!({"todos": todos});
            client.publish(WRITE_TASKS, payload, true).await?;
            Ok(json!({"todos": todos.len()}))
        }
    }
}

fn refused(message: String) -> AgentError {
    AgentError::new(codes::BAD_ARGUMENTS, message).fatal()
}

fn title_of(args: Value) -> Result<String, AgentError> {
    let read = serde_json::from_value(args);
    let Title { title } = read.map_err(|error| refused(format!("a title: {error}")))?;
    within("the title", title, MAX_TITLE_CHARS)
}

fn within(what: &str, text: String, most: usize) -> Result<String, AgentError> {
    match text.trim().is_empty() || text.chars().nth(most).is_some() {
        true => Err(refused(format!("{what} has 1 to {most} characters"))),
        false => Ok(text),
    }
}

fn todos_of(args: Value) -> Result<Vec<Todo>, AgentError> {
    let read = serde_json::from_value(args);
    let Todos { mut todos } = read.map_err(|error| refused(format!("work to do: {error}")))?;
    if todos.len() > MAX_TASKS {
        return Err(refused(format!("a list has at most {MAX_TASKS} entries")));
    }
    for todo in &mut todos {
        for text in [&mut todo.content, &mut todo.active_form] {
            *text = within("an entry's text", std::mem::take(text), MAX_TASK_CHARS)?;
        }
    }
    Ok(todos)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TASKS, TodoStatus, standard_tools, title_of, todos_of};
    use a99_capabilities::ai::TextRequest;
    use a99_core::schema::{Schema, validate};
    use a99_core::value::Value as AiValue;
    use serde_json::{Value, json};

    fn todo(status: &str) -> Value {
        json!({"content": "Run", "active_form": "Running", "status": status})
    }

    /// Whether schema and validation accept a tool's input.
    fn accepts(tool: usize, input: &Value) -> [bool; 2] {
        let schema = Schema::parse(&standard_tools()[tool].input_schema);
        let by_schema = validate(&AiValue::from(input), &schema).is_ok();
        let read = match tool {
            0 => title_of(input.clone()).map(drop),
            _ => todos_of(input.clone()).map(drop),
        };
        if let Err(error) = &read {
            assert_eq!(error.code(), "validation-error");
        }
        [by_schema, read.is_ok()]
    }

    #[test]
    fn inputs_are_validated() {
        let long = |n: usize| "ä".repeat(n);
        for (tool, input, is_valid) in [
            (0, json!({"title": "Till"}), true),
            (0, json!({"title": long(200)}), true),
            (0, json!({"title": long(201)}), false),
            (0, json!({"title": ""}), false),
            (0, json!({"title": 7}), false),
            (0, json!({}), false),
            (1, json!({"todos": []}), true),
            (
                1,
                json!({"todos": [todo("pending"), todo("completed")]}),
                true,
            ),
            (1, json!({"todos": [todo("done")]}), false),
            (1, json!({"todos": [{"content": "Run"}]}), false),
            (
                1,
                json!({"todos": vec![todo("pending"); MAX_TASKS + 1]}),
                false,
            ),
        ] {
            assert_eq!(accepts(tool, &input), [is_valid; 2], "{input}");
        }
        // The schema's checker ignores unknown members; the tools do not.
        assert!(title_of(json!({"title": "a", "x": 1})).is_err());
        let old = json!({"todos": [{"content": "a", "activeForm": "b", "status": "in_progress"}]});
        let todos = todos_of(old).expect("the older spelling");
        assert_eq!(todos[0].status, TodoStatus::InProgress);
    }

    #[test]
    fn models_accept_the_tools() {
        let request = TextRequest::new("x");
        let request = standard_tools()
            .into_iter()
            .fold(request, TextRequest::tool);
        request.check().expect("a valid request");
        assert_eq!(request.tools.len(), 2);
    }
}
