//! `llmToolLoop` (language section 2.11): its signature, and what the code that it is
//! lowered to calls between the rounds.
//!
//! A round is a call of `llmChat`, the tools of a round are calls as those of `callAll`:
//! the compiler makes both. The atoms here do what lies between, on values of the run:
//! they read an answer, check what the model wants to be called, and write what the tools
//! gave into the talk. None changes a value that is there.

use crate::def::{Adjust, Input, Kind, TENTH, form, native, opt, req};
use a99_core::costs::{PARSE, READ, Sizes, WRITTEN};
use a99_core::diag::excerpt;
use a99_core::pointer;
use a99_core::sig::{Binding, Form, Gives, JsonKinds, MAX_CALLS_UNDER_WAY};
use a99_core::text::wtf8_to_string_lossy;
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::convert::{BoundaryLimits, cut};
use a99_vm::heap::{Ref, Str, Val};
use a99_vm::json::{self, Replacer};
use a99_vm::native::{Cx, Fault};
use a99_vm::schema::mismatch;

/// Rounds of a loop, at most.
const MAX_ROUNDS: f64 = 64.0;

/// Rounds unless the program says otherwise.
const DEFAULT_ROUNDS: f64 = 8.0;

/// Calls under way at once unless the program says otherwise.
const DEFAULT_LIMIT: f64 = 8.0;

/// Tools that are called in a round; the model is told how many are not.
const MAX_TOOL_CALLS: usize = 64;

/// Bytes of what a tool gave that the model is shown.
const MAX_TOOL_TEXT: usize = 64 << 10;

/// Names that an answer to the model lists.
const SHOWN_NAMES: usize = 32;

/// The longest name that a tool may have.
const MAX_NAME: usize = 64;

const PROMPT: Input = opt(
    "prompt",
    Kind::Text,
    "What the model is asked; with `messages` it follows them. One of the two is needed.",
);
const MESSAGES: Input = opt(
    "messages",
    Kind::List,
    "The talk so far, as OpenAI's chat completions have it: `{role, content}`.",
);

/// What `llmChat` takes beside talk and tools, in its order.
pub(crate) const MODEL_OPTIONS: [Input; 9] = [
    opt("system", Kind::Text, "What the model is told first."),
    opt(
        "toolChoice",
        Kind::Any,
        "Whether the model has to ask for a tool: `auto`, `none`, `required`, or the name of the \
         tool; by default `auto`.",
    )
    .told(Kind::TextOrRecord),
    opt(
        "responseFormat",
        Kind::Any,
        "Form of the answer's text: a JSON Schema, or OpenAI's `response_format`; by default any \
         text.",
    )
    .told(Kind::Record),
    opt(
        "model",
        Kind::Text,
        "Name of a model of the host's; by default the one of `role`.",
    ),
    opt(
        "role",
        Kind::Text,
        "What the model is for, such as `fast`, `smart` or `code`; by default `default`.",
    ),
    opt("maxTokens", Kind::Number, "Tokens of an answer, at most."),
    opt(
        "temperature",
        Kind::Number,
        "How freely the model chooses, from 0 on.",
    ),
    opt(
        "seed",
        Kind::Number,
        "The same seed asks for the same answer, where the model can.",
    ),
    opt("stop", Kind::Any, "Texts that end an answer.").told(Kind::TextOrTexts),
];

/// The inputs of `llmChat`.
pub(crate) fn chat_inputs() -> Vec<Input> {
    let tools = opt(
        "tools",
        Kind::List,
        "Tools that the model may ask for, each `{name, description, inputSchema}`.",
    )
    .told(Kind::Records);
    let mut inputs = vec![PROMPT, MESSAGES, tools];
    inputs.extend(MODEL_OPTIONS);
    inputs
}

pub(crate) fn atoms() -> Vec<AtomDef> {
    const STATE: Input = req("state", Kind::Record, "What is known so far.");
    const PLAN: Input = req("plan", Kind::Record, "The bounds of the loop.");
    let internal = |name, docs, inputs: &[Input], body| native(name, docs, 0, inputs, body);
    let mut all = vec![tool_loop()];
    all.extend([
        internal(
            "llmToolLoop:begin",
            "The bounds of a loop, and its state before the first round.",
            &[
                PROMPT,
                MESSAGES,
                opt("limit", Kind::Number, "As of `llmToolLoop`."),
                opt("maxRounds", Kind::Number, "As of `llmToolLoop`."),
                opt("budget", Kind::Record, "As of `llmToolLoop`."),
            ],
            begin,
        )
        .metered(WRITTEN),
        internal(
            "llmToolLoop:read",
            "The state after an answer of the model, and the calls that it asks for.",
            &[
                STATE,
                req("answer", Kind::Record, "The answer of `llmChat`."),
                req("tools", Kind::Records, "The tools of the loop."),
            ],
            read,
        )
        .metered(WRITTEN),
        internal(
            "llmToolLoop:answer",
            "The state after the tools of a round, and the round.",
            &[
                STATE,
                PLAN,
                req("calls", Kind::Records, "What the model asked for."),
                req("answers", Kind::Records, "What came of it."),
            ],
            answer,
        )
        .metered(WRITTEN),
        internal(
            "llmToolLoop:end",
            "The result of a loop.",
            &[
                STATE,
                opt(
                    "reason",
                    Kind::Text,
                    "Why it ends, if the state does not say.",
                ),
                opt("responseFormat", Kind::Any, "As of `llmToolLoop`."),
            ],
            end,
        )
        .metered(PARSE),
    ]);
    all
}

fn tool_loop() -> AtomDef {
    let mut inputs = vec![
        PROMPT,
        MESSAGES,
        req(
            "tools",
            Kind::List,
            "Tools that the model may ask for: `{name, description, inputSchema, as, call}` with \
             a call of an atom that may read the variable `as`, `{atom, name?, description?}`, or \
             `{agent, description, name?, inputSchema?}`.",
        )
        .told(Kind::Records)
        .literal(),
        opt(
            "limit",
            Kind::Number,
            "How many calls of a round are under way at once, from 1 to 64.",
        )
        .default("8"),
        opt(
            "maxRounds",
            Kind::Number,
            "Rounds at most, from 1 to 64: a round is an answer of the model and the calls that \
             it asks for.",
        )
        .default("8"),
        opt(
            "budget",
            Kind::Record,
            "`{tokens}`: no further round begins once so many are used.",
        )
        .bound(Binding::Vars),
        opt(
            "stopWhen",
            Kind::Any,
            "Expression over the round and the variables (`round.number >= 3`), as text or node; \
             no further round begins once it is truthy.",
        )
        .told(Kind::Condition),
        opt(
            "as",
            Kind::Text,
            "Name of the variable that holds the round in `stopWhen`: `{number, text, calls}`.",
        )
        .literal()
        .default("\"round\""),
    ];
    inputs.extend(MODEL_OPTIONS);
    form(
        Form::ToolLoop,
        "llmToolLoop",
        "Asks a chat model, calls the tools that it asks for, tells it what they gave, and goes on \
         until it answers: `{text, rounds, stopReason, messages, usage, calls}`.",
        TENTH,
        &inputs,
    )
    .gives(Gives::always(JsonKinds::OBJECT))
}

/// An object of these members.
fn object(cx: &mut Cx<'_>, members: &[(&str, Val)]) -> Result<Val, Fault> {
    let mut keys = Vec::with_capacity(members.len());
    let mut vals = Vec::with_capacity(members.len());
    for (key, val) in members {
        keys.push(cx.heap.intern(key.as_bytes())?);
        vals.push(*val);
    }
    Ok(Val::Obj(cx.object(&keys, &vals)?))
}

/// A member of an object; `undefined` of anything else.
fn member(cx: &Cx<'_>, of: Val, key: &str) -> Val {
    match of {
        Val::Obj(r) => cx
            .heap
            .get_text(r, key.as_bytes())
            .unwrap_or(Val::Undefined),
        _ => Val::Undefined,
    }
}

fn number(val: Val) -> f64 {
    match val {
        Val::Num(n) if n.is_finite() => n,
        _ => 0.0,
    }
}

fn list_of(val: Val) -> Option<Ref> {
    match val {
        Val::Arr(r) => Some(r),
        _ => None,
    }
}

/// A text that is made here, paid by its length.
fn text(cx: &mut Cx<'_>, text: &str) -> Result<Val, Fault> {
    let units = Sizes::default().out_units(text.encode_utf16().count());
    cx.charge(WRITTEN, units)?;
    cx.str(text.as_bytes())
}

fn shown(cx: &Cx<'_>, text: Str) -> String {
    excerpt(&wtf8_to_string_lossy(cx.bytes(text)))
}

/// What kind of value this is, for the model.
fn kind(val: Val) -> &'static str {
    match val {
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::Str(_) => "a text",
        Val::Arr(_) => "a list",
        Val::Undefined | Val::Unbound | Val::Builtin(_) => "nothing",
        Val::Obj(_) | Val::Set(_) | Val::Date(_) => "an object",
    }
}

/// A copy of a list with room for so many more.
fn longer(cx: &mut Cx<'_>, list: Ref, more: usize) -> Result<Ref, Fault> {
    let len = cx.heap.len(list);
    cx.charge(WRITTEN, Sizes::default().out_elements(len + more))?;
    let copy = cx.list_with_room(len + more)?;
    for at in 0..len {
        cx.work(4)?;
        let item = cx.heap.items(list)[at];
        cx.push(copy, item)?;
    }
    Ok(copy)
}

/// A whole number in a range, or what stands for a missing one.
fn whole(val: Val, name: &str, default: f64, most: f64) -> Result<Val, Fault> {
    match val {
        Val::Undefined | Val::Null => Ok(Val::Num(default)),
        Val::Num(n) if n.fract() == 0.0 && (1.0..=most).contains(&n) => Ok(val),
        _ => Err(Fault::throw(format!(
            "llmToolLoop: {name} must be a whole number from 1 to {most}"
        ))),
    }
}

/// The bounds of a loop and its state: `{limit, maxRounds, tokens, state}`.
fn begin(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let limit = whole(args[2], "limit", DEFAULT_LIMIT, MAX_CALLS_UNDER_WAY)?;
    let rounds = whole(args[3], "maxRounds", DEFAULT_ROUNDS, MAX_ROUNDS)?;
    let tokens = match args[4] {
        Val::Undefined | Val::Null => Val::Null,
        budget => match member(cx, budget, "tokens") {
            Val::Num(n) if n.fract() == 0.0 && n >= 1.0 => Val::Num(n),
            _ => {
                let text = "llmToolLoop: budget must be {tokens}, a whole number from 1 on";
                return Err(Fault::throw(text));
            }
        },
    };
    let messages = match (args[1], args[0]) {
        (Val::Undefined | Val::Null, Val::Undefined | Val::Null) => {
            return Err(Fault::throw("llmToolLoop: prompt or messages is needed"));
        }
        (Val::Undefined | Val::Null, _) => cx.list(&[])?,
        (Val::Arr(list), _) => list,
        _ => return Err(Fault::throw("llmToolLoop: messages must be a list")),
    };
    let messages = longer(cx, messages, 1)?;
    match args[0] {
        Val::Undefined | Val::Null => {}
        prompt @ Val::Str(_) => {
            let role = cx.str(b"user")?;
            let message = object(cx, &[("role", role), ("content", prompt)])?;
            cx.push(messages, message)?;
        }
        _ => return Err(Fault::throw("llmToolLoop: prompt must be a text")),
    }
    let none = Val::Num(0.0);
    let usage = object(cx, &[("inputTokens", none), ("outputTokens", none)])?;
    let calls = Val::Arr(cx.list(&[])?);
    let state = State {
        text: Val::Str(Str::EMPTY),
        rounds: none,
        reason: Val::Str(Str::EMPTY),
        messages: Val::Arr(messages),
        usage,
        calls,
        note: Val::Null,
    };
    let state = state.write(cx)?;
    let plan = [
        ("limit", limit),
        ("maxRounds", rounds),
        ("tokens", tokens),
        ("state", state),
    ];
    object(cx, &plan)
}

/// What is known of a loop between its rounds.
#[derive(Copy, Clone)]
struct State {
    text: Val,
    rounds: Val,
    reason: Val,
    messages: Val,
    usage: Val,
    calls: Val,
    /// What the model is told after the calls of a round, if there is something.
    note: Val,
}

impl State {
    fn of(cx: &Cx<'_>, val: Val) -> State {
        State {
            text: member(cx, val, "text"),
            rounds: member(cx, val, "rounds"),
            reason: member(cx, val, "stopReason"),
            messages: member(cx, val, "messages"),
            usage: member(cx, val, "usage"),
            calls: member(cx, val, "calls"),
            note: member(cx, val, "note"),
        }
    }

    fn write(self, cx: &mut Cx<'_>) -> Result<Val, Fault> {
        let members = [
            ("text", self.text),
            ("rounds", self.rounds),
            ("stopReason", self.reason),
            ("messages", self.messages),
            ("usage", self.usage),
            ("calls", self.calls),
            ("note", self.note),
        ];
        object(cx, &members)
    }

    /// A list of the state; of code that was not compiled here it may be none.
    fn list(cx: &mut Cx<'_>, val: Val) -> Result<Ref, Fault> {
        match val {
            Val::Arr(r) => Ok(r),
            _ => cx.list(&[]).map_err(Fault::from),
        }
    }
}

/// The state after an answer, and its calls: `{state, calls}`; without calls the loop ends.
fn read(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut state = State::of(cx, args[0]);
    let answer = args[1];
    let message = member(cx, answer, "message");
    if !matches!(message, Val::Obj(_)) {
        let text = "llmToolLoop: llmChat gave no {text, toolCalls, message}";
        return Err(Fault::throw(text));
    }
    let asked = list_of(member(cx, answer, "toolCalls")).filter(|r| !cx.heap.is_empty(*r));
    let left = asked.map_or(0, |asked| cx.heap.len(asked).saturating_sub(MAX_TOOL_CALLS));
    let message = match left {
        0 => message,
        _ => with_fewer_calls(cx, message)?,
    };
    let messages = State::list(cx, state.messages)?;
    let messages = longer(cx, messages, 1)?;
    cx.push(messages, message)?;
    state.messages = Val::Arr(messages);
    state.note = match left {
        0 => Val::Null,
        left => text(
            cx,
            &format!("{left} other tools were not called: {MAX_TOOL_CALLS} are in a round."),
        )?,
    };
    state.text = match member(cx, answer, "text") {
        text @ Val::Str(_) => text,
        _ => Val::Str(Str::EMPTY),
    };
    state.rounds = Val::Num(number(state.rounds) + 1.0);
    let used = member(cx, answer, "usage");
    let mut usage = [("inputTokens", Val::Null), ("outputTokens", Val::Null)];
    for (key, sum) in &mut usage {
        let before = number(member(cx, state.usage, key));
        *sum = Val::Num(before + number(member(cx, used, key)));
    }
    state.usage = object(cx, &usage)?;
    let calls = match asked {
        Some(asked) => Val::Arr(checked(cx, asked, args[2])?),
        None => {
            state.reason = match member(cx, answer, "stopReason") {
                Val::Str(reason) if cx.bytes(reason) == b"end_turn" => cx.str(b"end")?,
                Val::Str(reason) if !reason.is_empty() => Val::Str(reason),
                _ => cx.str(b"end")?,
            };
            Val::Null
        }
    };
    let state = state.write(cx)?;
    object(cx, &[("state", state), ("calls", calls)])
}

/// A message of the model with as many calls as a round has.
fn with_fewer_calls(cx: &mut Cx<'_>, message: Val) -> Result<Val, Fault> {
    let (Val::Obj(r), Some(calls)) = (message, list_of(member(cx, message, "tool_calls"))) else {
        return Ok(message);
    };
    let n = cx.heap.len(calls).min(MAX_TOOL_CALLS);
    let members = cx.members(r)?;
    cx.charge(WRITTEN, Sizes::default().out_elements(n + members.len()))?;
    let kept = cx.heap.items(calls)[..n].to_vec();
    let kept = Val::Arr(cx.list(&kept)?);
    let tool_calls = cx.heap.intern(b"tool_calls")?;
    let keys: Vec<_> = members.iter().map(|(key, _)| *key).collect();
    let vals = members.iter().map(|(key, val)| match *key == tool_calls {
        true => kept,
        false => *val,
    });
    let vals: Vec<Val> = vals.collect();
    Ok(Val::Obj(cx.object(&keys, &vals)?))
}

/// The calls that the model asks for: `{id, name, input}` with the number of the `tool`, or
/// the `error` that is its answer.
fn checked(cx: &mut Cx<'_>, asked: Ref, tools: Val) -> Result<Ref, Fault> {
    let n = cx.heap.len(asked).min(MAX_TOOL_CALLS);
    cx.charge(WRITTEN, Sizes::default().out_elements(n))?;
    let calls = cx.list_with_room(n)?;
    for at in 0..n {
        cx.work(64)?;
        let call = cx.heap.items(asked)[at];
        let (id, name) = (member(cx, call, "id"), member(cx, call, "name"));
        let input = member(cx, call, "input");
        let answer = match tool_for(cx, name, input, tools)? {
            Ok(tool) => ("tool", Val::Num(tool as f64)),
            Err(why) => ("error", text(cx, &why)?),
        };
        let call = [("id", id), ("name", name), ("input", input), answer];
        let call = object(cx, &call)?;
        cx.push(calls, call)?;
    }
    Ok(calls)
}

/// The number of the tool that takes this input, or what the model is told.
fn tool_for(
    cx: &mut Cx<'_>,
    name: Val,
    input: Val,
    tools: Val,
) -> Result<Result<usize, String>, Fault> {
    let tools = State::list(cx, tools)?;
    let n = cx.heap.len(tools);
    cx.charge(READ, Sizes::elements(n))?;
    let found = match name {
        Val::Str(name) if name.len_bytes() <= MAX_NAME => (0..n).find(|at| {
            let tool = cx.heap.items(tools)[*at];
            matches!(member(cx, tool, "name"), Val::Str(own) if cx.bytes(own) == cx.bytes(name))
        }),
        _ => None,
    };
    let called = match name {
        Val::Str(name) => shown(cx, name),
        _ => String::new(),
    };
    let Some(at) = found else {
        let names = (0..n).map(|at| member(cx, cx.heap.items(tools)[at], "name"));
        let names = names.filter_map(|name| match name {
            Val::Str(name) => Some(shown(cx, name)),
            _ => None,
        });
        let known = listed(names.collect());
        return Ok(Err(format!(
            "No tool is called \"{called}\". The tools are: {known}."
        )));
    };
    let schema = member(cx, cx.heap.items(tools)[at], "inputSchema");
    Ok(fits(cx, input, schema)?.map_or(Ok(at), |why| {
        Err(format!("The input of \"{called}\" {why}."))
    }))
}

/// Names in a row, the first of them.
fn listed(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(SHOWN_NAMES);
    let mut shown = names;
    shown.truncate(SHOWN_NAMES);
    let shown = match shown.is_empty() {
        true => "none".to_owned(),
        false => shown.join(", "),
    };
    match more {
        0 => shown,
        more => format!("{shown} and {more} others"),
    }
}

/// Why an input does not fit the schema of its tool.
fn fits(cx: &mut Cx<'_>, input: Val, schema: Val) -> Result<Option<String>, Fault> {
    let members = match input {
        Val::Obj(r) => r,
        Val::Str(written) => {
            let written = shown(cx, written);
            return Ok(Some(format!("is no JSON object: {written}")));
        }
        other => return Ok(Some(format!("must be an object, found {}", kind(other)))),
    };
    if let Some(mismatch) = mismatch(cx, input, schema)? {
        let found = found_at(cx, input, &mismatch.pointer);
        let message = &mismatch.message;
        let of_kind = message.starts_with("Expected ") || message == "Union mismatch";
        return Ok(Some(match of_kind {
            true => format!("does not fit: {mismatch}, found {}", kind(found)),
            false => format!("does not fit: {mismatch}"),
        }));
    }
    if !matches!(member(cx, schema, "additionalProperties"), Val::Bool(false)) {
        return Ok(None);
    }
    let n = cx.heap.len(members);
    cx.charge(READ, Sizes::elements(n))?;
    cx.work(n as i64 * 32)?;
    let known = member(cx, schema, "properties");
    let is_known = |key: &[u8]| match known {
        Val::Obj(known) => cx.heap.get_text(known, key).is_some(),
        _ => false,
    };
    let keys = cx.heap.entries(members).map(|(key, _)| key);
    let mut keys = keys.map(|key| cx.heap.shapes.key_text(key));
    let Some(unknown) = keys.find(|key| !is_known(key)) else {
        return Ok(None);
    };
    let name = excerpt(&wtf8_to_string_lossy(unknown));
    let names = match known {
        Val::Obj(known) => cx.heap.entries(known).map(|(key, _)| key).collect(),
        _ => Vec::new(),
    };
    let names = names.into_iter().map(|key| {
        let name = cx.heap.shapes.key_text(key);
        excerpt(&wtf8_to_string_lossy(name))
    });
    let known = listed(names.collect());
    Ok(Some(format!(
        "has no member \"{name}\". It may have: {known}"
    )))
}

/// What stands at a place in an input.
fn found_at(cx: &Cx<'_>, input: Val, place: &str) -> Val {
    let mut at = input;
    for step in pointer::parse(place) {
        at = match at {
            Val::Arr(r) => {
                let item = step
                    .parse()
                    .ok()
                    .and_then(|n: usize| cx.heap.items(r).get(n));
                item.copied().unwrap_or(Val::Undefined)
            }
            other => member(cx, other, &step),
        };
    }
    at
}

/// The state after the tools of a round: `{state, round, over}`.
fn answer(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut state = State::of(cx, args[0]);
    let plan = args[1];
    let (calls, answers) = (State::list(cx, args[2])?, State::list(cx, args[3])?);
    let n = cx.heap.len(calls).min(cx.heap.len(answers));
    let messages = State::list(cx, state.messages)?;
    let messages = longer(cx, messages, n + 1)?;
    let all = State::list(cx, state.calls)?;
    let all = longer(cx, all, n)?;
    let of_round = cx.list_with_room(n)?;
    let role = cx.str(b"tool")?;
    for at in 0..n {
        cx.work(64)?;
        let (call, answer) = (cx.heap.items(calls)[at], cx.heap.items(answers)[at]);
        let (name, input) = (member(cx, call, "name"), member(cx, call, "input"));
        let (outcome, content) = match member(cx, answer, "error") {
            Val::Undefined => {
                let value = member(cx, answer, "value");
                match content(cx, value)? {
                    Ok(content) => (("value", value), content),
                    Err(why) => (("error", why), why),
                }
            }
            error => (("error", error), error),
        };
        let content = shortened(cx, content)?;
        let id = member(cx, call, "id");
        let mut message = vec![("role", role), ("tool_call_id", id), ("content", content)];
        if outcome.0 == "error" {
            message.push(("isError", Val::Bool(true)));
        }
        let message = object(cx, &message)?;
        cx.push(messages, message)?;
        let call = [
            ("round", state.rounds),
            ("name", name),
            ("input", input),
            outcome,
        ];
        let call = object(cx, &call)?;
        cx.push(of_round, call)?;
        cx.push(all, call)?;
    }
    if let Val::Str(_) = state.note {
        let role = cx.str(b"user")?;
        let message = object(cx, &[("role", role), ("content", state.note)])?;
        cx.push(messages, message)?;
    }
    let of_round = Val::Arr(of_round);
    let round = [
        ("number", state.rounds),
        ("text", state.text),
        ("calls", of_round),
    ];
    let round = object(cx, &round)?;
    state.messages = Val::Arr(messages);
    state.calls = Val::Arr(all);
    let usage = ["inputTokens", "outputTokens"].map(|key| number(member(cx, state.usage, key)));
    let used: f64 = usage.iter().sum();
    let reason: &[u8] = match member(cx, plan, "tokens") {
        Val::Num(tokens) if used >= tokens => b"budget",
        _ if number(state.rounds) >= number(member(cx, plan, "maxRounds")) => b"max_rounds",
        _ => b"",
    };
    state.reason = cx.str(reason)?;
    let over = Val::Bool(!reason.is_empty());
    let state = state.write(cx)?;
    object(cx, &[("state", state), ("round", round), ("over", over)])
}

/// What a tool gave as text: a text itself, anything else as JSON. What has none, such as
/// a cycle, is an error of the tool.
fn content(cx: &mut Cx<'_>, value: Val) -> Result<Result<Val, Val>, Fault> {
    if let Val::Str(_) = value {
        return Ok(Ok(value));
    }
    match json::stringify(cx, value, Replacer::None, b"") {
        Ok(Some(text)) => Ok(Ok(Val::Str(text))),
        Ok(None) => Ok(Ok(cx.str(b"null")?)),
        Err(Fault::Throw(thrown)) if thrown.code.is_catchable() => {
            Ok(Err(cx.str(&thrown.message)?))
        }
        Err(fault) => Err(fault),
    }
}

/// As much of a tool's text as the model is shown.
fn shortened(cx: &mut Cx<'_>, content: Val) -> Result<Val, Fault> {
    let Val::Str(whole) = content else {
        return Ok(Val::Str(Str::EMPTY));
    };
    let all = whole.len_bytes();
    if all <= MAX_TOOL_TEXT {
        return Ok(content);
    }
    cx.charge(WRITTEN, Sizes::default().out_units(MAX_TOOL_TEXT))?;
    cx.heap.check(2 * MAX_TOOL_TEXT)?;
    let limits = BoundaryLimits {
        max_bytes: MAX_TOOL_TEXT,
        ..BoundaryLimits::default()
    };
    let mut shown = cut(cx.bytes(whole), &limits).to_vec();
    let mark = format!(" [cut: {} of {all} bytes]", shown.len());
    shown.extend_from_slice(mark.as_bytes());
    cx.str(&shown)
}

/// The result of a loop.
fn end(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut state = State::of(cx, args[0]);
    if let Val::Str(_) = args[1] {
        state.reason = args[1];
    }
    let mut members = vec![("text", state.text)];
    if let Some(schema) = wanted(cx, args[2]) {
        match value(cx, state.text, schema)? {
            Ok(value) => members.push(("value", value)),
            Err(why) => {
                let why = text(cx, &why)?;
                members.extend([("value", Val::Null), ("valueError", why)]);
            }
        }
    }
    members.extend([
        ("rounds", state.rounds),
        ("stopReason", state.reason),
        ("messages", state.messages),
        ("usage", state.usage),
        ("calls", state.calls),
    ]);
    object(cx, &members)
}

/// The schema of the answer where it is to be JSON; `undefined` for any JSON.
fn wanted(cx: &Cx<'_>, format: Val) -> Option<Val> {
    if !matches!(format, Val::Obj(_)) {
        return None;
    }
    let is = |name: &[u8]| matches!(member(cx, format, "type"), Val::Str(kind) if cx.bytes(kind) == name);
    if is(b"text") {
        return None;
    }
    if is(b"json_object") {
        return Some(Val::Undefined);
    }
    if !is(b"json_schema") {
        return Some(format);
    }
    match member(cx, format, "json_schema") {
        inner @ Val::Obj(_) => Some(member(cx, inner, "schema")),
        _ => Some(member(cx, format, "schema")),
    }
}

/// The answer that a text is, or why it is none.
fn value(cx: &mut Cx<'_>, text: Val, schema: Val) -> Result<Result<Val, String>, Fault> {
    let Val::Str(written) = text else {
        return Ok(Err("the answer is no JSON".to_owned()));
    };
    cx.charge(PARSE, Sizes::units(written.units()))?;
    let parsed = match json::parse_str(cx, written) {
        Ok(parsed) => parsed,
        Err(Fault::Throw(thrown)) if thrown.code.is_catchable() => {
            return Ok(Err("the answer is no JSON".to_owned()));
        }
        Err(fault) => return Err(fault),
    };
    Ok(match mismatch(cx, parsed, schema)? {
        Some(mismatch) => Err(format!("the answer does not fit: {mismatch}")),
        None => Ok(parsed),
    })
}
