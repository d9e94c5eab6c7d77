//! The tools of `llmToolLoop`, and what a model asks for held to them.

use super::machine::Machine;
use super::meter::{pay, settle};
use super::schemas;
use super::steps::{Node, binding};
use super::tool_loop::{absent, member};
use super::value::{JsStr, OVal, Obj, Res, fail, js, lossy, to_wtf8};
use a99_core::costs::{READ, Sizes};
use a99_core::diag::excerpt;
use a99_core::value::{Map, Value};
use std::rc::Rc;

/// A tool of a loop.
pub(super) struct Tool<'v> {
    pub(super) written: &'v Value,
    pub(super) told: Value,
    pub(super) kind: Kind<'v>,
}

pub(super) enum Kind<'v> {
    Call(&'v Value, JsStr),
    Atom(String),
    Agent(&'v str),
}

impl Tool<'_> {
    fn schema(&self) -> &Value {
        self.told.get("inputSchema").unwrap_or(&Value::Undefined)
    }

    fn is_checked_as_told(&self) -> bool {
        alternatives(self.schema()) == *self.schema()
    }

    /// The tool as inputs are checked against it.
    pub(super) fn checked(&self) -> Value {
        if self.is_checked_as_told() {
            return self.told.clone();
        }
        let mut map = Map::new();
        map.insert(
            "name",
            self.told.get("name").cloned().unwrap_or(Value::Null),
        );
        map.insert("inputSchema", alternatives(self.schema()));
        Value::Object(map)
    }
}

/// A schema in which a list of types is a choice of schemas, one for each.
fn alternatives(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let inner = |key: &str, value: &Value| match (key, value) {
        ("properties", Value::Object(all)) => {
            let all = all.iter().map(|(k, v)| (k.clone(), alternatives(v)));
            Value::Object(all.collect())
        }
        ("items" | "additionalProperties", Value::Object(_)) => alternatives(value),
        ("items" | "anyOf", Value::Array(list)) => {
            Value::Array(list.iter().map(alternatives).collect())
        }
        _ => value.clone(),
    };
    let members: Vec<(String, Value)> = map
        .iter()
        .map(|(k, v)| {
            let key = k.to_string_lossy().into_owned();
            let value = inner(&key, v);
            (key, value)
        })
        .collect();
    let types = match map.get("type") {
        Some(Value::Array(types)) => types.clone(),
        _ => return Value::Object(members.into_iter().collect()),
    };
    let names = types.iter().filter_map(Value::as_str);
    let (nulls, names): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == "null");
    let typed = |name: &str| match nulls.is_empty() {
        true => Value::from(name),
        false => Value::Array(vec![name.into(), "null".into()]),
    };
    let one = |name: &str| {
        let mut out = Map::new();
        for (key, value) in &members {
            let of_object = matches!(
                key.as_str(),
                "properties"
                    | "required"
                    | "additionalProperties"
                    | "minProperties"
                    | "maxProperties"
            );
            let of_list = matches!(key.as_str(), "items" | "minItems" | "maxItems");
            let fits = (!of_object || name == "object") && (!of_list || name == "array");
            if key == "type" {
                out.insert("type", typed(name));
            } else if names.len() == 1 || fits && key != "description" {
                out.insert(key.as_str(), value.clone());
            }
        }
        Value::Object(out)
    };
    match names.as_slice() {
        [name] => one(name),
        names => {
            let mut any = Map::new();
            let choices: Vec<Value> = names.iter().map(|name| one(name)).collect();
            any.insert("anyOf", choices);
            Value::Object(any)
        }
    }
}

fn shown(text: &[u16]) -> String {
    excerpt(&lossy(text))
}

fn kind_of(value: &OVal) -> &'static str {
    match value {
        OVal::Null => "null",
        OVal::Bool(_) => "a boolean",
        OVal::Num(_) => "a number",
        OVal::Str(_) => "a text",
        OVal::Arr(_) => "a list",
        OVal::Undef | OVal::Fn(_) => "nothing",
        _ => "an object",
    }
}

fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(32)];
    match (names.len(), names.len() - shown.len()) {
        (0, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        (_, more) => format!("{} and {more} others", shown.join(", ")),
    }
}

/// What a schema complains of, with what was found.
fn complaint(input: &OVal, why: &str) -> String {
    let (place, message) = why.split_once(": ").unwrap_or(("root", why));
    if !message.starts_with("Expected ") && message != "Union mismatch" {
        return format!("does not fit: {why}");
    }
    let mut at = input.clone();
    if place != "root" {
        for key in place.split('.') {
            at = match &at {
                OVal::Arr(items) => {
                    let index: usize = key.parse().unwrap_or(usize::MAX);
                    items.borrow().get(index).cloned().unwrap_or(OVal::Undef)
                }
                other => member(other, key),
            };
        }
    }
    format!("does not fit: {why}, found {}", kind_of(&at))
}

/// Why an input does not fit a tool.
fn unfit(input: &OVal, schema: &OVal) -> Res<Option<String>> {
    let obj = match input {
        OVal::Obj(obj) => obj,
        OVal::Str(text) => return Ok(Some(format!("is no JSON object: {}", shown(text)))),
        other => return Ok(Some(format!("must be an object, found {}", kind_of(other)))),
    };
    schemas::owe_reading(schema);
    settle()?;
    let checked = schemas::validate(input, schema, "");
    settle()?;
    if let Err(why) = checked {
        return Ok(Some(complaint(input, &why)));
    }
    if !matches!(member(schema, "additionalProperties"), OVal::Bool(false)) {
        return Ok(None);
    }
    pay(READ, Sizes::elements(obj.len()))?;
    let known = match member(schema, "properties") {
        OVal::Obj(known) => known,
        _ => Rc::new(Obj::new()),
    };
    let Some(unknown) = obj.keys().find(|key| !known.contains_key(key)) else {
        return Ok(None);
    };
    let names: Vec<String> = known.keys().map(|key| shown(&key)).collect();
    Ok(Some(format!(
        "has no member \"{}\". It may have: {}",
        shown(&unknown),
        listed(&names)
    )))
}

impl Machine<'_> {
    /// The tools of a loop.
    pub(super) fn tools<'v>(&self, node: Node<'v>) -> Res<Vec<Tool<'v>>> {
        let Some(list) = node.get("tools").as_array() else {
            return fail("llmToolLoop: tools is not an array");
        };
        let mut tools = Vec::new();
        for (at, written) in list.iter().enumerate() {
            let tool = self.tool(written);
            tools.push(tool.or_else(|why| fail(format!("llmToolLoop: tool {at} {why}")))?);
        }
        Ok(tools)
    }

    fn tool<'v>(&self, written: &'v Value) -> Result<Tool<'v>, String> {
        let Some(map) = written.as_object() else {
            return Err("must be an object".into());
        };
        let given = |key: &str| map.get(key).filter(|value| !absent(value));
        let callable = |op: &str| {
            if !self.knows_atom(op) {
                return Err(format!("names an unknown atom: {op}"));
            }
            let custom = self.opts.custom.iter().any(|a| a.op == op);
            match !custom && super::call_all::FORMS.contains(&op) {
                true => Err(format!("names '{op}', which runs in the program itself")),
                false => Ok(op.to_owned()),
            }
        };
        let kind = match (given("call"), given("atom"), given("agent")) {
            (Some(call), None, None) => {
                let name = given("as").map_or_else(|| js("input"), binding);
                Kind::Call(call, name)
            }
            (None, Some(atom), None) => Kind::Atom(callable(&lossy(&binding(atom)))?),
            (None, None, Some(agent)) => match agent.as_str().filter(|id| !id.is_empty()) {
                Some(id) => Kind::Agent(id),
                None => return Err("needs the id of its `agent`".into()),
            },
            _ => return Err("needs one of `call`, `atom` and `agent`".into()),
        };
        let name = match (given("name"), &kind) {
            (Some(name), _) => match name.as_text() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => return Err("needs a text as its `name`".into()),
            },
            (None, Kind::Atom(op)) => op.clone(),
            (None, Kind::Agent(id)) => (*id).to_owned(),
            (None, Kind::Call(..)) => return Err("needs a `name`".into()),
        };
        let (docs, schema) = match &kind {
            Kind::Atom(op) => self.described(op),
            _ => (None, object_schema()),
        };
        let mut told = Map::new();
        told.insert("name", name);
        if let Some(description) = given("description").cloned().or(docs) {
            told.insert("description", description);
        }
        let schema = given("inputSchema").cloned().unwrap_or(schema);
        told.insert("inputSchema", schema);
        Ok(Tool {
            written,
            told: Value::Object(told),
            kind,
        })
    }

    /// What the signature of an atom says of it.
    fn described(&self, op: &str) -> (Option<Value>, Value) {
        if self.opts.custom.iter().any(|a| a.op == op) {
            let mut schema = Map::new();
            schema.insert("type", "object");
            schema.insert("properties", Value::Object(Map::new()));
            schema.insert("required", Value::Array(Vec::new()));
            schema.insert("additionalProperties", Value::Object(Map::new()));
            return (Some("An atom of the host.".into()), Value::Object(schema));
        }
        let atoms = agent99::all_atoms();
        match atoms.get(op) {
            Some(atom) => {
                let schema = Value::from(atom.sig.described_schema());
                (Some(Value::from(&*atom.sig.docs)), schema)
            }
            None => (None, object_schema()),
        }
    }
}

fn object_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("type", "object");
    Value::Object(schema)
}

pub(super) fn tool_for(name: &OVal, input: &OVal, tools: &[OVal]) -> Res<Result<usize, String>> {
    let called = match name {
        OVal::Str(name) => name.clone(),
        _ => js(""),
    };
    let own = |tool: &OVal| member(tool, "name");
    let is_it = |tool: &OVal| matches!(own(tool), OVal::Str(own) if own == called);
    let short = matches!(name, OVal::Str(_)) && to_wtf8(&called).len() <= 64;
    let Some(at) = tools.iter().position(is_it).filter(|_| short) else {
        let names = tools.iter().filter_map(|tool| match own(tool) {
            OVal::Str(name) => Some(shown(&name)),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        return Ok(Err(format!(
            "No tool is called \"{}\". The tools are: {}.",
            shown(&called),
            listed(&names)
        )));
    };
    let why = unfit(input, &member(&tools[at], "inputSchema"))?;
    Ok(match why {
        None => Ok(at),
        Some(why) => Err(format!("The input of \"{}\" {why}.", shown(&called))),
    })
}
