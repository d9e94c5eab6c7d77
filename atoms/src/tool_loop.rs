//! `llmToolLoop` (language section 2.11): its signature, and the internal atoms that its lowered
//! code calls between rounds.
//!
//! A round is a call of `llmChat`, and its tool calls run like those of `callAll`; the compiler
//! emits both. The atoms here do the work in between, on values of the run: they read an answer,
//! check the requested calls, and append the tool results to the conversation. They never change an
//! existing value.

mod check;
mod rounds;

use crate::def::{Adjust, Input, Kind, TENTH, form, native, opt, req};
use a99_core::costs::{PARSE, Sizes, WRITTEN};
use a99_core::sig::{
    Binding, Capability, Form, Gives, JsonKinds, MAX_CALLS_UNDER_WAY, ShortPrompts,
};
use a99_vm::atom::AtomDef;
use a99_vm::heap::{Ref, Val};
use a99_vm::native::{Cx, Fault};
use rounds::{answer, begin, end, read};

const PROMPT: Input = opt(
    "prompt",
    Kind::Text,
    "The prompt; with `messages` it follows them. One of the two is required.",
);
const MESSAGES: Input = opt(
    "messages",
    Kind::List,
    "The conversation, in the form of OpenAI's chat completions: `{role, content}`.",
);

/// Inputs of `llmChat` in addition to conversation and tools, in order. New ones go to the end
/// ([`Adjust::earlier`]).
pub(crate) const MODEL_OPTIONS: [Input; 11] = [
    opt("system", Kind::Text, "The system prompt."),
    opt(
        "toolChoice",
        Kind::Any,
        "Whether the model must call a tool: `auto`, `none`, `required`, or the name of the tool; \
         by default `auto`.",
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
        "Name of a model of the host; by default the model of `role`.",
    ),
    opt(
        "role",
        Kind::Text,
        "Purpose of the model, such as `fast`, `smart` or `code`; by default `default`.",
    ),
    opt(
        "maxTokens",
        Kind::Number,
        "Maximum number of tokens of an answer.",
    )
    .whole(1.0, f64::INFINITY),
    opt(
        "temperature",
        Kind::Number,
        "Sampling temperature, from 0 to 2, or to 1 for Anthropic's models.",
    )
    .within(0.0, 2.0),
    opt(
        "seed",
        Kind::Number,
        "A whole number; the same seed requests the same answer. Not every service supports it.",
    )
    .whole(0.0, 9_007_199_254_740_991.0),
    opt("stop", Kind::Any, "Texts that end an answer.").told(Kind::TextOrTexts),
    opt(
        "topP",
        Kind::Number,
        "Nucleus sampling: the share of the likeliest tokens to choose from, from 0 to 1.",
    )
    .within(0.0, 1.0),
    opt(
        "effort",
        Kind::Text,
        "How much the model thinks; by default it decides. Each service supports some of the \
         values.",
    )
    .values(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
];

/// True if an answer must have the requested format. `llmToolLoop` checks its answers itself.
const REPAIR: Input = opt(
    "repair",
    Kind::Bool,
    "Whether an answer without its `responseFormat` is sent back, at most twice, and is then an \
     error; `false` returns it unchanged.",
)
.default("true");

/// Number of inputs of `llmChat`: conversation, tools, options and `repair`.
pub(crate) const CHAT_INPUTS: usize = 4 + MODEL_OPTIONS.len();

/// Fingerprints of artifacts compiled before `topP`.
pub(crate) const EARLIER_CHAT: &[(u64, u8)] = &[(0xfeb6_3993_054f_e1b5, 12)];
const EARLIER_LOOP: &[(u64, u8)] = &[(0x04d4_ee68_13d2_8df3, 17)];

/// The inputs of `llmChat`.
pub(crate) fn chat_inputs() -> Vec<Input> {
    let tools = opt(
        "tools",
        Kind::List,
        "Tools that the model may call, each `{name, description, inputSchema}`.",
    )
    .told(Kind::Records);
    let mut inputs = vec![PROMPT, MESSAGES, tools];
    inputs.extend(MODEL_OPTIONS);
    inputs.push(REPAIR);
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
            "Tools that the model may call: `{name, description, inputSchema, as, call}` with a \
             call of an atom that may read the variable `as`, `{atom, name?, description?}`, or \
             `{agent, description, name?, inputSchema?}`.",
        )
        .told(Kind::Records)
        .literal(),
        opt(
            "limit",
            Kind::Number,
            "Calls of a round in progress at once, from 1 to 64.",
        )
        .whole(1.0, MAX_CALLS_UNDER_WAY)
        .default("8"),
        opt(
            "maxRounds",
            Kind::Number,
            "Maximum number of rounds, from 1 to 64: a round is an answer of the model and its \
             tool calls.",
        )
        .whole(1.0, 64.0)
        .default("8"),
        opt(
            "budget",
            Kind::Record,
            "`{tokens}`: no further round begins once this number is used.",
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
        "Asks a chat model, calls the tools that it requests, returns their results to it, and \
         repeats until it answers: `{text, rounds, stopReason, messages, usage, calls}`.",
        TENTH,
        &inputs,
    )
    .listed(ShortPrompts::Source)
    .needs(Capability::Ai)
    .gives(Gives::always(JsonKinds::OBJECT))
    .earlier(EARLIER_LOOP)
}

/// Creates an object from members.
fn object(cx: &mut Cx<'_>, members: &[(&str, Val)]) -> Result<Val, Fault> {
    let mut keys = Vec::with_capacity(members.len());
    let mut vals = Vec::with_capacity(members.len());
    for (key, val) in members {
        keys.push(cx.heap.intern(key.as_bytes())?);
        vals.push(*val);
    }
    Ok(Val::Obj(cx.object(&keys, &vals)?))
}

/// A member of an object; `undefined` for other values.
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

/// Creates a text, charged by its bytes.
fn text(cx: &mut Cx<'_>, text: &str) -> Result<Val, Fault> {
    cx.charge(WRITTEN, Sizes::default().out_units(text.len()))?;
    cx.str(text.as_bytes())
}

/// Copies a list with room for more entries.
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
