//! `llmChat` and `llmToolLoop` (language section 2.11): a talk with a model, whose tools
//! are calls as those of `callAll`.

use super::chat;
use super::json;
use super::machine::{Flow, Machine, Scope, ScopeRef};
use super::meter::{pay, pay_crossing, settle};
use super::schemas;
use super::steps::{Node, binding};
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, from_value, from_wtf8, js, lossy, to_wtf8};
use a99_core::costs::{PARSE, READ, Sizes, WRITTEN, data_nodes};
use a99_core::diag::excerpt;
use a99_core::sig::{Binding, Params};
use a99_core::value::{Map, Value};
use std::rc::Rc;

/// The inputs of `llmChat`, in the order in which they are resolved.
const CHAT: [&str; 12] = [
    "prompt",
    "messages",
    "tools",
    "system",
    "toolChoice",
    "responseFormat",
    "model",
    "role",
    "maxTokens",
    "temperature",
    "seed",
    "stop",
];

/// What the model is shown of a tool's answer, in bytes.
const SHOWN: usize = 65_536;

/// Tools that are called in a round.
const CALLED: usize = 64;

/// A tool of a loop.
struct Tool<'v> {
    written: &'v Value,
    told: Value,
    kind: Kind<'v>,
}

enum Kind<'v> {
    Call(&'v Value, JsStr),
    Atom(String),
    Agent(&'v str),
}

/// What the model asks for: the tool or why there is none.
struct Asked {
    id: OVal,
    name: OVal,
    input: OVal,
    tool: Result<usize, OVal>,
}

impl Tool<'_> {
    fn schema(&self) -> &Value {
        self.told.get("inputSchema").unwrap_or(&Value::Undefined)
    }

    fn is_checked_as_told(&self) -> bool {
        alternatives(self.schema()) == *self.schema()
    }

    /// The tool as inputs are checked against it.
    fn checked(&self) -> Value {
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

fn absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

fn member(value: &OVal, key: &str) -> OVal {
    match value {
        OVal::Obj(obj) => obj.member(&js(key)),
        _ => OVal::Undef,
    }
}

fn number(value: &OVal) -> f64 {
    match value {
        OVal::Num(n) if n.is_finite() => *n,
        _ => 0.0,
    }
}

fn object<const N: usize>(members: [(&str, OVal); N]) -> OVal {
    let members = members.map(|(key, value)| (js(key), value));
    OVal::object(Obj::from(members))
}

fn out_elements(n: usize) -> Res<()> {
    pay(WRITTEN, Sizes::default().out_elements(n))
}

fn written(text: &str) -> Res<OVal> {
    let units = text.encode_utf16().count();
    pay(WRITTEN, Sizes::default().out_units(units))?;
    Ok(OVal::str(text))
}

fn shown(text: &[u16]) -> String {
    excerpt(&lossy(text))
}

fn whole(value: &OVal, name: &str, default: f64) -> Res<f64> {
    match value {
        OVal::Undef | OVal::Null => Ok(default),
        OVal::Num(n) if n.fract() == 0.0 && (1.0..=64.0).contains(n) => Ok(*n),
        _ => fail(format!(
            "llmToolLoop: {name} must be a whole number from 1 to 64"
        )),
    }
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

/// The text of a tool's answer for the model, cut where it is long.
fn cut(text: &JsStr) -> Res<OVal> {
    let bytes = to_wtf8(text);
    if bytes.len() <= SHOWN {
        return Ok(OVal::Str(text.clone()));
    }
    pay(WRITTEN, Sizes::default().out_units(SHOWN))?;
    let mut end = SHOWN;
    while bytes[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    let mut shown = from_wtf8(&bytes[..end]).to_vec();
    shown.extend(js(&format!(" [cut: {end} of {} bytes]", bytes.len())).iter());
    Ok(OVal::units(shown))
}

fn nodes_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            data_nodes(false, items.len()) + items.iter().map(nodes_of).sum::<usize>()
        }
        Value::Object(map) => {
            data_nodes(true, map.len()) + map.values().map(nodes_of).sum::<usize>()
        }
        _ => 0,
    }
}

impl Machine<'_> {
    /// `llmChat`.
    pub(super) fn llm_chat(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let args = self.inputs(&CHAT, node, scope)?;
        self.chat_with(args)
    }

    /// Asks the model with inputs that are paid.
    fn chat_with(&mut self, args: Vec<OVal>) -> Res<OVal> {
        let args = args
            .iter()
            .map(|v| self.export(v))
            .collect::<Res<Vec<_>>>()?;
        let args = self.hold(args)?;
        if !self.host.provides("ai.generate") {
            return Err(self.missing("Capability 'ai' missing"));
        }
        let named = CHAT.iter().zip(args).collect::<Vec<_>>();
        let part = |key: &str| {
            let found = named.iter().find(|(name, _)| **name == key);
            found.map_or(Value::Undefined, |(_, value)| value.clone())
        };
        let request = chat::request(&part).map_err(Fail::new)?;
        let answer = self.host.call("ai.generate", vec![request]);
        let said = self.wait("llmChat", answer).map_err(|e| match e.code {
            a99_core::error::ErrorCode::Program => {
                Fail::new(format!("Model Error: {}", lossy(&e.message)))
            }
            _ => e,
        })?;
        Ok(from_value(&chat::answer(&said)))
    }

    pub(super) fn tool_loop(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let tools = self.tools(node)?;
        let bounds = ["prompt", "messages", "limit", "maxRounds"];
        let mut given = Vec::new();
        for key in bounds {
            given.push(self.resolve(node.get(key), scope)?);
        }
        let budget = self.resolve_vars(node.get("budget"), scope)?;
        let limit = whole(&given[2], "limit", 8.0)? as usize;
        let most = whole(&given[3], "maxRounds", 8.0)?;
        let tokens = match (&budget, member(&budget, "tokens")) {
            (OVal::Undef | OVal::Null, _) => None,
            (_, OVal::Num(n)) if n.fract() == 0.0 && n >= 1.0 => Some(n),
            _ => return fail("llmToolLoop: budget must be {tokens}, a whole number from 1 on"),
        };
        let mut messages = match (&given[1], &given[0]) {
            (OVal::Undef | OVal::Null, OVal::Undef | OVal::Null) => {
                return fail("llmToolLoop: prompt or messages is needed");
            }
            (OVal::Undef | OVal::Null, _) => Vec::new(),
            (OVal::Arr(list), _) => list.borrow().clone(),
            _ => return fail("llmToolLoop: messages must be a list"),
        };
        out_elements(messages.len() + 1)?;
        match &given[0] {
            OVal::Undef | OVal::Null => {}
            OVal::Str(_) => messages.push(object([
                ("role", OVal::str("user")),
                ("content", given[0].clone()),
            ])),
            _ => return fail("llmToolLoop: prompt must be a text"),
        }
        let mut options = Vec::new();
        for key in &CHAT[3..] {
            options.push(self.resolve(node.get(key), scope)?);
        }
        let told = Value::Array(tools.iter().map(|tool| tool.told.clone()).collect());
        super::expr::pay_nodes(nodes_of(&told))?;
        let checked = Value::Array(tools.iter().map(Tool::checked).collect());
        if checked != told {
            super::expr::pay_nodes(nodes_of(&checked))?;
        }
        let checked = from_value(&checked);
        let told = from_value(&told);
        let mut calls: Vec<OVal> = Vec::new();
        let (mut rounds, mut used) = (0.0, [0.0, 0.0]);
        let (text, reason) = loop {
            let answer = self.round(node, scope, &messages, &told, &options)?;
            let message = member(&answer, "message");
            if !matches!(message, OVal::Obj(_)) {
                return fail("llmToolLoop: llmChat gave no {text, toolCalls, message}");
            }
            let mut asked = match member(&answer, "toolCalls") {
                OVal::Arr(list) => list.borrow().clone(),
                _ => Vec::new(),
            };
            let left = asked.len().saturating_sub(CALLED);
            asked.truncate(CALLED);
            let message = match left {
                0 => message,
                _ => fewer_calls(message)?,
            };
            out_elements(messages.len() + 1)?;
            messages.push(message);
            let note = match left {
                0 => None,
                left => Some(written(&format!(
                    "{left} other tools were not called: {CALLED} are in a round."
                ))?),
            };
            let text = match member(&answer, "text") {
                text @ OVal::Str(_) => text,
                _ => OVal::str(""),
            };
            rounds += 1.0;
            let usage = member(&answer, "usage");
            used[0] += number(&member(&usage, "inputTokens"));
            used[1] += number(&member(&usage, "outputTokens"));
            if asked.is_empty() {
                let reason = match member(&answer, "stopReason") {
                    OVal::Str(reason) if lossy(&reason) == "end_turn" => OVal::str("end"),
                    OVal::Str(reason) if !reason.is_empty() => OVal::Str(reason),
                    _ => OVal::str("end"),
                };
                break (text, reason);
            }
            let asked = self.asked(&asked, &checked)?;
            let answers = self.call_tools(&tools, &asked, limit, scope)?;
            out_elements(messages.len() + asked.len() + 1)?;
            out_elements(calls.len() + asked.len())?;
            let mut of_round = Vec::new();
            for (call, answer) in asked.iter().zip(&answers) {
                let (message, record) = self.told_answer(call, answer, rounds)?;
                messages.push(message);
                of_round.push(record);
            }
            calls.extend(of_round.iter().cloned());
            if let Some(note) = note {
                messages.push(object([("role", OVal::str("user")), ("content", note)]));
            }
            let over = match tokens {
                Some(tokens) if used[0] + used[1] >= tokens => Some("budget"),
                _ if rounds >= most => Some("max_rounds"),
                _ => None,
            };
            if !absent(node.get("stopWhen")) {
                let child = Scope::new(Some(scope));
                let name = match node.get("as") {
                    name if absent(name) => js("round"),
                    name => binding(name),
                };
                let round = object([
                    ("number", OVal::Num(rounds)),
                    ("text", text.clone()),
                    ("calls", OVal::array(of_round)),
                ]);
                child.bind(&name, round)?;
                let mut test = Map::new();
                test.insert("condition", node.get("stopWhen").clone());
                if self.condition(Node::Step(&test), &child)?.truthy() {
                    break (text, OVal::str("stop_when"));
                }
            }
            if let Some(over) = over {
                break (text, OVal::str(over));
            }
        };
        let format = &options[2];
        let out = Obj::from([(js("text"), text.clone())]);
        if let Some(schema) = wanted(format) {
            match value_of(&text, &schema)? {
                Ok(value) => out.insert(js("value"), value),
                Err(why) => {
                    out.insert(js("value"), OVal::Null);
                    out.insert(js("valueError"), written(&why)?);
                }
            }
        }
        out.insert(js("rounds"), OVal::Num(rounds));
        out.insert(js("stopReason"), reason);
        out.insert(js("messages"), OVal::array(messages));
        let usage = object([
            ("inputTokens", OVal::Num(used[0])),
            ("outputTokens", OVal::Num(used[1])),
        ]);
        out.insert(js("usage"), usage);
        out.insert(js("calls"), OVal::array(calls));
        Ok(OVal::object(out))
    }

    /// One answer of the model, as a step of `llmChat`.
    fn round(
        &mut self,
        node: Node<'_>,
        scope: &ScopeRef,
        messages: &[OVal],
        told: &OVal,
        options: &[OVal],
    ) -> Res<OVal> {
        self.check_time()?;
        let messages = OVal::array(messages.to_vec());
        let mut answer = OVal::Undef;
        self.stepped("llmChat", node, scope, |machine, result| {
            let value = if machine.opts.custom.iter().any(|a| a.op == "llmChat") {
                let input = Obj::from([
                    (js("messages"), messages.clone()),
                    (js("tools"), told.clone()),
                ]);
                for (key, option) in CHAT[3..].iter().zip(options) {
                    if !matches!(node.get(key), Value::Undefined) {
                        input.insert(js(key), option.clone());
                    }
                }
                let input = OVal::object(input);
                pay_crossing(&input)?;
                let input = machine.export(&input)?;
                let answer = machine.host.atom("llmChat", input);
                from_value(&machine.wait("llmChat", answer)?)
            } else {
                let mut args = vec![OVal::Undef, messages.clone(), told.clone()];
                args.extend(options.iter().cloned());
                args.iter().try_for_each(pay_crossing)?;
                machine.chat_with(args)?
            };
            pay_crossing(&value)?;
            *result = value.clone();
            answer = value;
            Ok(Flow::Next)
        })?;
        Ok(answer)
    }

    /// What the model asks for, each with its tool.
    fn asked(&mut self, asked: &[OVal], told: &OVal) -> Res<Vec<Asked>> {
        out_elements(asked.len())?;
        let tools = match told {
            OVal::Arr(tools) => tools.borrow().clone(),
            _ => Vec::new(),
        };
        let mut calls = Vec::new();
        for call in asked {
            let (name, input) = (member(call, "name"), member(call, "input"));
            pay(READ, Sizes::elements(tools.len()))?;
            let tool = match tool_for(&name, &input, &tools)? {
                Ok(tool) => Ok(tool),
                Err(why) => Err(written(&why)?),
            };
            calls.push(Asked {
                id: member(call, "id"),
                name,
                input,
                tool,
            });
        }
        Ok(calls)
    }

    /// Calls what the model asked for; `{value}` or `{error}` for each.
    fn call_tools(
        &mut self,
        tools: &[Tool<'_>],
        asked: &[Asked],
        limit: usize,
        scope: &ScopeRef,
    ) -> Res<Vec<OVal>> {
        // Calls that no program wrote, and the scopes of all.
        let mut calls = Vec::new();
        for call in asked {
            self.check_time()?;
            calls.push(match &call.tool {
                Ok(tool) => Some(self.tool_call(&tools[*tool], call, scope)?),
                Err(_) => None,
            });
        }
        let mut prepared = Vec::new();
        for (call, made) in asked.iter().zip(&calls) {
            prepared.push(match (&call.tool, made) {
                (Ok(tool), Some((value, child))) => {
                    let tool = &tools[*tool];
                    match tool.kind {
                        Kind::Call(written, _) => {
                            self.prepare(written, written, "llmToolLoop", child)?
                        }
                        _ => self.prepare(value, tool.written, "llmToolLoop", child)?,
                    }
                }
                (Err(why), _) => {
                    super::call_all::Prepared::Answer(object([("error", why.clone())]))
                }
                (Ok(_), None) => return fail("a call that was not made"),
            });
        }
        self.make_all(prepared, limit)
    }

    /// The call of a tool as a step would write it, and the scope that it is resolved in.
    fn tool_call(
        &mut self,
        tool: &Tool<'_>,
        call: &Asked,
        scope: &ScopeRef,
    ) -> Res<(Value, ScopeRef)> {
        let child = Scope::new(Some(scope));
        let mut step = Map::new();
        match &tool.kind {
            Kind::Call(_, name) => child.bind(name, call.input.clone())?,
            Kind::Agent(id) => {
                child.bind(&js("input"), call.input.clone())?;
                child.bind(&js("id"), OVal::str(id))?;
                step.insert("op", "agentRun");
                step.insert("agentId", "id");
                step.insert("input", "input");
            }
            Kind::Atom(op) => {
                child.bind(&js("input"), call.input.clone())?;
                step.insert("op", op.as_str());
                let OVal::Obj(input) = &call.input else {
                    return fail("an input that is no object");
                };
                let custom = self.opts.custom.iter().any(|a| a.op == *op);
                let atoms = agent99::all_atoms();
                let params = atoms.get(op).map(|atom| &atom.sig.params);
                for (key, value) in input.iter() {
                    let name = lossy(&key);
                    let binding = match params {
                        Some(Params::Named(params)) if !custom => {
                            let param = params.iter().find(|param| param.name == name);
                            let Some(param) = param else { continue };
                            Some(param.binding)
                        }
                        _ => None,
                    };
                    let literal = match (binding, &value) {
                        (None | Some(Binding::Literal), _) => true,
                        (Some(Binding::TextOrValue), OVal::Str(_)) => true,
                        _ => false,
                    };
                    match literal {
                        true => step.insert(name, self.export(&value)?),
                        false => step.insert(name.clone(), format!("input.{name}")),
                    };
                }
            }
        }
        Ok((Value::Object(step), child))
    }

    /// The message that tells the model of an answer, and what the program sees of it.
    fn told_answer(&mut self, call: &Asked, answer: &OVal, rounds: f64) -> Res<(OVal, OVal)> {
        let (outcome, content) = match member(answer, "error") {
            OVal::Undef => {
                let value = member(answer, "value");
                match &value {
                    OVal::Str(text) => (("value", value.clone()), text.clone()),
                    other => match json::stringify_paid(other) {
                        Ok(text) => {
                            let text = text.map_or_else(|| js("null"), JsStr::from);
                            let units = match other.is_undef() {
                                true => 0,
                                false => text.len(),
                            };
                            pay(WRITTEN, Sizes::default().out_units(units))?;
                            (("value", value.clone()), text)
                        }
                        Err(e) if e.code.is_catchable() => {
                            (("error", OVal::Str(e.message.clone())), e.message)
                        }
                        Err(e) => return Err(e),
                    },
                }
            }
            error => match &error {
                OVal::Str(text) => (("error", error.clone()), text.clone()),
                _ => (("error", error.clone()), js("")),
            },
        };
        let message = Obj::from([
            (js("role"), OVal::str("tool")),
            (js("tool_call_id"), call.id.clone()),
            (js("content"), cut(&content)?),
        ]);
        if outcome.0 == "error" {
            message.insert(js("isError"), OVal::Bool(true));
        }
        let record = object([
            ("round", OVal::Num(rounds)),
            ("name", call.name.clone()),
            ("input", call.input.clone()),
            outcome,
        ]);
        Ok((OVal::object(message), record))
    }

    /// The tools of a loop.
    fn tools<'v>(&self, node: Node<'v>) -> Res<Vec<Tool<'v>>> {
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

/// A message with as many calls as a round has.
fn fewer_calls(message: OVal) -> Res<OVal> {
    let (OVal::Obj(obj), OVal::Arr(calls)) = (&message, member(&message, "tool_calls")) else {
        return Ok(message);
    };
    let mut calls = calls.borrow().clone();
    calls.truncate(CALLED);
    out_elements(calls.len() + obj.len())?;
    let out = Obj::new();
    for (key, value) in obj.iter() {
        let value = match key == js("tool_calls") {
            true => OVal::array(calls.clone()),
            false => value,
        };
        out.insert(key, value);
    }
    Ok(OVal::object(out))
}

fn tool_for(name: &OVal, input: &OVal, tools: &[OVal]) -> Res<Result<usize, String>> {
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

/// The schema of an answer that is to be JSON.
fn wanted(format: &OVal) -> Option<OVal> {
    if !matches!(format, OVal::Obj(_)) {
        return None;
    }
    let kind = match member(format, "type") {
        OVal::Str(kind) => lossy(&kind),
        _ => String::new(),
    };
    match kind.as_str() {
        "text" => None,
        "json_object" => Some(OVal::Undef),
        "json_schema" => Some(match member(format, "json_schema") {
            inner @ OVal::Obj(_) => member(&inner, "schema"),
            _ => member(format, "schema"),
        }),
        _ => Some(format.clone()),
    }
}

fn value_of(text: &OVal, schema: &OVal) -> Res<Result<OVal, String>> {
    let OVal::Str(text) = text else {
        return Ok(Err("the answer is no JSON".into()));
    };
    pay(PARSE, Sizes::units(text.len()))?;
    let value = match json::parse(text) {
        Ok(value) => value,
        Err(e) if e.code.is_catchable() => return Ok(Err("the answer is no JSON".into())),
        Err(e) => return Err(e),
    };
    let (units, elements) = super::meter::size(&value);
    let sizes = Sizes::default().out_units(units as usize);
    pay(WRITTEN, sizes.out_elements(elements as usize))?;
    schemas::owe_reading(schema);
    settle()?;
    let checked = schemas::validate(&value, schema, "");
    settle()?;
    Ok(match checked {
        Ok(()) => Ok(value),
        Err(why) => Err(format!("the answer does not fit: {why}")),
    })
}
