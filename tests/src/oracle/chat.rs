//! What `llmChat` asks a model, and how its answer looks: a second reading of the forms
//! that the capability `ai` adapts.

use a99_core::diag::excerpt;
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};

type Read<T> = Result<T, String>;

fn wrong<T>(why: String) -> Read<T> {
    Err(format!("Model Error: {why}"))
}

fn absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().filter(|(_, v)| !v.is_undefined());
    Value::Object(members.collect::<Map>())
}

fn text(value: &Value, what: &str) -> Read<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy().into_owned()),
        _ => wrong(format!("{what} must be a text")),
    }
}

fn list<'v>(value: &'v Value, what: &str) -> Read<&'v [Value]> {
    match value {
        Value::Array(items) if items.len() <= 10_000 => Ok(items),
        Value::Array(_) => wrong(format!("{what} has more than 10000 items")),
        _ => wrong(format!("{what} must be a list")),
    }
}

fn part<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or(&Value::Undefined)
}

/// The parts of a message, each `{text}` or `{image}`.
fn content(value: &Value) -> Read<Vec<Value>> {
    let one = |part: Value| Ok(vec![object([("text", part)])]);
    match value {
        Value::Undefined | Value::Null => Ok(Vec::new()),
        Value::Array(parts) => {
            let mut out = Vec::new();
            for piece in parts {
                out.push(match part(piece, "type").as_str() {
                    Some("text") => {
                        let said = text(part(piece, "text"), "the text of a part")?;
                        object([("text", said.into())])
                    }
                    Some("image_url") => {
                        let url = part(piece, "image_url");
                        let url = match url {
                            Value::Object(_) => part(url, "url"),
                            other => other,
                        };
                        object([("image", text(url, "an image")?.into())])
                    }
                    _ => {
                        return wrong(
                            "a part of a message has the type `text`, `image_url`, `file` or `input_audio`".into(),
                        );
                    }
                });
            }
            Ok(out)
        }
        other => one(text(other, "the content of a message")?.into()),
    }
}

/// The texts of parts, one behind the other.
fn said(parts: &[Value], between: &str) -> String {
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_text());
    let texts: Vec<String> = texts.map(|t| t.to_string_lossy().into_owned()).collect();
    texts.join(between)
}

fn tool_use(call: &Value) -> Read<Value> {
    let function = part(call, "function");
    let input = match part(function, "arguments") {
        Value::String(written) => {
            match Document::parse(&*written.to_string_lossy(), &Limits::default()) {
                Ok(doc) => doc.to_value(doc.root()),
                Err(_) => Value::String(written.clone()),
            }
        }
        other => other.clone(),
    };
    let used = object([
        (
            "id",
            text(part(call, "id"), "the `id` of a tool call")?.into(),
        ),
        (
            "name",
            text(part(function, "name"), "the `name` of a tool call")?.into(),
        ),
        ("input", input),
    ]);
    Ok(object([("toolUse", used)]))
}

/// Adds messages to a talk; what systems say goes to the front.
fn messages(value: &Value, system: &mut Option<String>, talk: &mut Vec<Value>) -> Read<()> {
    for message in list(value, "`messages`")? {
        let mut parts = content(part(message, "content"))?;
        let role = match text(part(message, "role"), "the role of a message")?.as_str() {
            "user" => "user",
            "assistant" => {
                if !absent(part(message, "tool_calls")) {
                    for call in list(part(message, "tool_calls"), "`tool_calls`")? {
                        parts.push(tool_use(call)?);
                    }
                }
                "assistant"
            }
            "system" | "developer" => {
                let before = system.take().unwrap_or_default();
                let line = if before.is_empty() { "" } else { "\n" };
                *system = Some(format!("{before}{line}{}", said(&parts, "\n")));
                continue;
            }
            "tool" => {
                let id = part(message, "tool_call_id");
                let result = object([
                    ("id", text(id, "the `tool_call_id` of a message")?.into()),
                    ("content", said(&parts, "").into()),
                    (
                        "isError",
                        (part(message, "isError").as_bool() == Some(true)).into(),
                    ),
                ]);
                parts = vec![object([("toolResult", result)])];
                "user"
            }
            other => {
                return wrong(format!(
                    "no message has the role `{}`; known are user, assistant, system, tool",
                    excerpt(other)
                ));
            }
        };
        if !parts.is_empty() {
            talk.push(object([
                ("role", role.into()),
                ("content", Value::Array(parts)),
            ]));
        }
    }
    Ok(())
}

fn tool(value: &Value) -> Read<Value> {
    let function = value.get("function").unwrap_or(value);
    let schema = ["parameters", "inputSchema", "input_schema"];
    let schema = schema.iter().find_map(|key| function.get(key));
    let mut schema = match schema.filter(|schema| !absent(schema)) {
        None => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(_) => return wrong("the schema of a tool must be an object".into()),
    };
    if !schema.contains("type") {
        schema.insert("type", "object");
    }
    if !schema.contains("properties") {
        schema.insert("properties", Value::Object(Map::new()));
    }
    let description = match part(function, "description") {
        given if absent(given) => Value::Undefined,
        given => text(given, "the description of a tool")?.into(),
    };
    Ok(object([
        (
            "name",
            text(part(function, "name"), "the name of a tool")?.into(),
        ),
        ("description", description),
        ("inputSchema", Value::Object(schema)),
    ]))
}

fn choice(value: &Value) -> Read<Value> {
    if absent(value) {
        return Ok(Value::Undefined);
    }
    let named = value.get("function").unwrap_or(value);
    let name = named.get("name").unwrap_or(named);
    Ok(match text(name, "`toolChoice`")?.as_str() {
        "auto" => Value::Undefined,
        "any" => "required".into(),
        name => name.into(),
    })
}

fn format(value: &Value) -> Read<Value> {
    const TYPES: [&str; 7] = [
        "object", "array", "string", "number", "integer", "boolean", "null",
    ];
    if absent(value) {
        return Ok(Value::Undefined);
    }
    let kind = part(value, "type");
    let is_schema = match kind.as_str() {
        Some(kind) => TYPES.contains(&kind),
        None => {
            let has = |key: &str| value.get(key).is_some();
            matches!(kind, Value::Array(_)) || has("anyOf") || has("properties")
        }
    };
    if is_schema {
        return Ok(object([
            ("name", "answer".into()),
            ("schema", value.clone()),
        ]));
    }
    match text(kind, "the type of `responseFormat`")?.as_str() {
        "text" => Ok(Value::Undefined),
        "json_object" => Ok("json".into()),
        "json_schema" => {
            let inner = value.get("json_schema").unwrap_or(value);
            match inner.get("schema") {
                Some(schema @ Value::Object(_)) => {
                    let name = match inner.get("name") {
                        Some(name) => text(name, "the name of a schema")?,
                        None => "answer".into(),
                    };
                    Ok(object([("name", name.into()), ("schema", schema.clone())]))
                }
                _ => wrong("`responseFormat` needs `json_schema: {name, schema}`".into()),
            }
        }
        other => wrong(format!(
            "no `responseFormat` has the type `{}`; known are text, json_object, json_schema, \
             and those of JSON Schema",
            excerpt(other)
        )),
    }
}

fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// What no service takes.
fn refused(request: &Value) -> Option<String> {
    let talk = part(request, "messages").as_array().unwrap_or_default();
    if talk.is_empty() {
        return Some("a request needs a message".into());
    }
    let tools = part(request, "tools").as_array().unwrap_or_default();
    let names = tools.iter().map(|tool| part(tool, "name").as_str());
    let names: Vec<&str> = names.map(Option::unwrap_or_default).collect();
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Some(format!(
                "`{}` is no name of a tool: use 1 to 64 of A-Z, a-z, 0-9, _ and -",
                excerpt(name)
            ));
        }
        if names[..at].contains(name) {
            return Some(format!("two tools are called `{name}`"));
        }
    }
    match part(request, "toolChoice").as_str() {
        None | Some("none") => {}
        Some("required") if names.is_empty() => {
            return Some("a tool is to be called and none is offered".into());
        }
        Some("required") => {}
        Some(name) if !names.contains(&name) => {
            return Some(format!(
                "`{}` is to be called and no tool that is offered",
                excerpt(name)
            ));
        }
        Some(_) => {}
    }
    let heat = part(request, "temperature").as_f64();
    if heat.is_some_and(|heat| heat > 100.0) {
        return Some("the temperature is a number from 0 on".into());
    }
    let name = part(part(request, "format"), "name").as_str();
    let name = name.filter(|name| !is_name(name))?;
    Some(format!(
        "`{}` is no name of a schema: use 1 to 64 of A-Z, a-z, 0-9, _ and -",
        excerpt(name)
    ))
}

/// The request that a model gets, in one form, whatever the program wrote.
pub(super) fn request(given: &dyn Fn(&str) -> Value) -> Read<Value> {
    let mut system = match given("system") {
        value if absent(&value) => None,
        value => Some(text(&value, "`system`")?),
    };
    let mut talk = Vec::new();
    let (prompt, before) = (given("prompt"), given("messages"));
    if !absent(&before) {
        messages(&before, &mut system, &mut talk)?;
    }
    if !absent(&prompt) {
        let said = object([("text", text(&prompt, "`prompt`")?.into())]);
        talk.push(object([
            ("role", "user".into()),
            ("content", Value::Array(vec![said])),
        ]));
    }
    if absent(&prompt) && absent(&before) {
        return wrong("`prompt` or `messages` is needed".into());
    }
    let tools = match given("tools") {
        value if absent(&value) => Vec::new(),
        value => {
            let tools = list(&value, "`tools`")?.iter().map(tool);
            tools.collect::<Read<_>>()?
        }
    };
    let choice = choice(&given("toolChoice"))?;
    let format = format(&given("responseFormat"))?;
    let number = |key: &str| match given(key) {
        value if absent(&value) => Ok(Value::Undefined),
        Value::Number(n) if n.is_finite() && n >= 0.0 => Ok(Value::Number(n)),
        _ => wrong(format!("`{key}` must be a number from 0 on")),
    };
    let named = |key: &str| -> Read<Value> {
        match given(key) {
            value if absent(&value) => Ok(Value::Undefined),
            value => Ok(text(&value, &format!("`{key}`"))?.into()),
        }
    };
    let (model, role) = (named("model")?, named("role")?);
    let most = number("maxTokens")?;
    if most
        .as_f64()
        .is_some_and(|n| n.fract() != 0.0 || !(1.0..=4_294_967_295.0).contains(&n))
    {
        return wrong("`maxTokens` must be a whole number from 1 on".into());
    }
    let temperature = number("temperature")?;
    let top_p = number("topP")?;
    if let Some(n) = top_p.as_f64().filter(|n| *n > 1.0) {
        return wrong(format!("`topP` must be a number from 0 to 1, not {n}"));
    }
    let effort = named("effort")?;
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    if let Some(name) = effort.as_str().filter(|name| !efforts.contains(name)) {
        let near = a99_core::diag::suggest(name, efforts.into_iter());
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let known = efforts.join(", ");
        return wrong(format!(
            "`effort` is `{}`; {near}known are {known}",
            excerpt(name)
        ));
    }
    let seed = number("seed")?;
    if seed
        .as_f64()
        .is_some_and(|n| n.fract() != 0.0 || n > 9_007_199_254_740_991.0)
    {
        return wrong("`seed` must be a whole number from 0 to 2^53 - 1".into());
    }
    let stop = match given("stop") {
        value if absent(&value) => Value::Undefined,
        Value::Array(texts) => {
            let texts = list(&given("stop"), "`stop`")
                .map(|_| texts)?
                .into_iter()
                .map(|one| text(&one, "`stop`").map(Value::from));
            Value::Array(texts.collect::<Read<_>>()?)
        }
        value => Value::Array(vec![text(&value, "`stop`")?.into()]),
    };
    let request = object([
        ("system", system.map_or(Value::Undefined, Value::from)),
        ("messages", Value::Array(talk)),
        ("tools", Value::Array(tools)),
        ("toolChoice", choice),
        ("format", format),
        ("model", model),
        ("role", role),
        ("maxTokens", most),
        ("temperature", temperature),
        ("topP", top_p),
        ("effort", effort),
        ("seed", seed),
        ("stop", stop),
    ]);
    match refused(&request) {
        Some(why) => wrong(why),
        None => Ok(request),
    }
}

/// The answer as programs see it, of one that a script gives.
pub(super) fn answer(said: &Value) -> Value {
    let text = part(said, "text").as_text().cloned().unwrap_or_default();
    let calls = part(said, "toolCalls").as_array().unwrap_or_default();
    let mut message = Map::new();
    message.insert("role", "assistant");
    match text.as_bytes().is_empty() && !calls.is_empty() {
        true => message.insert("content", Value::Null),
        false => message.insert("content", Value::String(text.clone())),
    };
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let arguments = match part(call, "input") {
                Value::String(written) => Value::String(written.clone()),
                other => other.to_json_string().into(),
            };
            let function = object([
                ("name", part(call, "name").clone()),
                ("arguments", arguments),
            ]);
            object([
                ("id", part(call, "id").clone()),
                ("type", "function".into()),
                ("function", function),
            ])
        });
        message.insert("tool_calls", calls.collect::<Vec<Value>>());
    }
    let fits = match calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    };
    let reason = part(said, "stopReason").as_str().unwrap_or(fits);
    let usage = part(said, "usage");
    let tokens = |key: &str| Value::Number(part(usage, key).as_f64().unwrap_or(0.0));
    object([
        ("text", Value::String(text)),
        ("toolCalls", Value::Array(calls.to_vec())),
        ("stopReason", reason.into()),
        ("message", Value::Object(message)),
        (
            "usage",
            object([
                ("inputTokens", tokens("inputTokens")),
                ("outputTokens", tokens("outputTokens")),
            ]),
        ),
    ])
}
