//! The internal atoms between the rounds of `llmToolLoop`, on a state outside the program's
//! variables.

use super::check::checked;
use super::{list_of, longer, member, number, object, text};
use a99_core::costs::{PARSE, Sizes, WRITTEN};
use a99_core::sig::MAX_CALLS_UNDER_WAY;
use a99_vm::atom::Scope;
use a99_vm::convert::{BoundaryLimits, cut};
use a99_vm::heap::{Ref, Str, Val};
use a99_vm::json::{self, Replacer};
use a99_vm::native::{Cx, Fault};
use a99_vm::schema::mismatch;

/// Most rounds of a loop.
const MAX_ROUNDS: f64 = 64.0;

/// Default number of rounds.
const DEFAULT_ROUNDS: f64 = 8.0;

/// Default number of concurrent calls.
const DEFAULT_LIMIT: f64 = 8.0;

/// Most tool calls of a round. The model gets the number of skipped calls.
pub(super) const MAX_TOOL_CALLS: usize = 64;

/// Most bytes of a tool's result that the model sees.
const MAX_TOOL_TEXT: usize = 64 << 10;

/// A whole number in a range, or the default.
fn whole(val: Val, name: &str, default: f64, most: f64) -> Result<Val, Fault> {
    match val {
        Val::Undefined | Val::Null => Ok(Val::Num(default)),
        Val::Num(n) if n.fract() == 0.0 && (1.0..=most).contains(&n) => Ok(val),
        _ => Err(Fault::throw(format!(
            "llmToolLoop: {name} must be a whole number from 1 to {most}"
        ))),
    }
}

/// The limits of a loop and its initial state: `{limit, maxRounds, tokens, state}`.
pub(super) fn begin(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
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

/// State of a loop between its rounds.
#[derive(Copy, Clone)]
pub(super) struct State {
    text: Val,
    rounds: Val,
    reason: Val,
    messages: Val,
    usage: Val,
    calls: Val,
    /// Note to the model after the calls of a round, if there is one.
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

    /// A list of the state. In code from another compiler it may be a different value.
    pub(super) fn list(cx: &mut Cx<'_>, val: Val) -> Result<Ref, Fault> {
        match val {
            Val::Arr(r) => Ok(r),
            _ => cx.list(&[]),
        }
    }
}

/// The state after an answer, and its calls: `{state, calls}`. Without calls the loop ends.
pub(super) fn read(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
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

/// A message of the model with its calls cut to the limit of a round.
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

/// The state after the tool calls of a round: `{state, round, over}`.
pub(super) fn answer(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
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

/// A tool's result as text: a text itself, other values as JSON. A value without JSON text, such as
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

/// Cuts a tool's text to the part that the model sees.
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
pub(super) fn end(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
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

/// The schema of a requested JSON answer; `undefined` for any JSON.
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

/// Parses an answer from text, or returns the reason why it is invalid.
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
