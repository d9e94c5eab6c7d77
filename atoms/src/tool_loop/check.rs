//! Checks the tool calls that a model requests against the available tools.

use super::rounds::{MAX_TOOL_CALLS, State};
use super::{member, object, text};
use a99_core::costs::{READ, Sizes, WRITTEN};
use a99_core::diag::excerpt;
use a99_core::pointer;
use a99_core::text::wtf8_to_string_lossy;
use a99_vm::heap::{Ref, Str, Val};
use a99_vm::native::{Cx, Fault};
use a99_vm::schema::mismatch;

/// Most names listed in an answer to the model.
const SHOWN_NAMES: usize = 32;

/// Longest name of a tool.
const MAX_NAME: usize = 64;

fn shown(cx: &Cx<'_>, text: Str) -> String {
    excerpt(&wtf8_to_string_lossy(cx.bytes(text)))
}

/// Name of the value's kind, for the model.
fn kind(val: Val) -> &'static str {
    match val {
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::Str(_) => "a text",
        Val::Arr(_) => "a list",
        Val::Undefined | Val::Unbound | Val::Builtin(_) => "nothing",
        Val::Obj(_) | Val::Set(_) | Val::Map(_) | Val::Date(_) => "an object",
    }
}

/// The calls that the model requests: `{id, name, input}` with the number of the `tool`, or the
/// `error` that answers the call.
pub(super) fn checked(cx: &mut Cx<'_>, asked: Ref, tools: Val) -> Result<Ref, Fault> {
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

/// The number of the tool that accepts this input, or the error text for the model.
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

/// Joins the first names to a list.
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

/// The reason why an input does not match the schema of its tool.
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

/// The value at a place in an input.
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
