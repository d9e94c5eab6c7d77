//! `llmChat` and `llmToolLoop` (language section 2.11): a talk with a model, whose tools
//! are calls as those of `callAll`.

use super::chat;
use super::json;
use super::machine::{Flow, Machine, Scope, ScopeRef};
use super::meter::{pay, pay_crossing, settle};
use super::schemas;
use super::steps::{Node, binding};
use super::tools::{Kind, Tool, tool_for};
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, from_value, from_wtf8, js, lossy, to_wtf8};
use a99_core::costs::{PARSE, READ, Sizes, WRITTEN, data_nodes};
use a99_core::sig::{Binding, Params};
use a99_core::value::{Map, Value};

/// The inputs of `llmChat`, in the order in which they are resolved.
const CHAT: [&str; 15] = [
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
    "topP",
    "effort",
    "repair",
];

/// What the model is shown of a tool's answer, in bytes.
const SHOWN: usize = 65_536;

/// Tools that are called in a round.
const CALLED: usize = 64;

/// What the model asks for: the tool or why there is none.
struct Asked {
    id: OVal,
    name: OVal,
    input: OVal,
    tool: Result<usize, OVal>,
}

pub(super) fn absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

pub(super) fn member(value: &OVal, key: &str) -> OVal {
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
    pay(WRITTEN, Sizes::default().out_units(text.len()))?;
    Ok(OVal::str(text))
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
                    let literal = matches!(
                        (binding, &value),
                        (None | Some(Binding::Literal), _)
                            | (Some(Binding::TextOrValue), OVal::Str(_))
                    );
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
