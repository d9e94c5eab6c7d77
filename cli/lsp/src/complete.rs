//! What may be written at a place.

use crate::document::{Document, Form};
use crate::facts;
use crate::names::{Declared, declared, seen};
use crate::place::{self, word};
use crate::scan::Tokens;
use a99_core::builtins::{CONSTANTS, FUNCTIONS, MEMBERS, METHODS, NAMESPACES};
use a99_core::grammar::{NODES, PROGRAM_KEYS, STEP_KEYS};
use a99_core::sig::{AtomSig, Binding};
use agent99::Engine;
use serde_json::{Value as Json, json};
use std::ops::Range;

/// Kinds of items, as the protocol numbers them.
mod kind {
    pub(super) const METHOD: u8 = 2;
    pub(super) const FUNCTION: u8 = 3;
    pub(super) const FIELD: u8 = 5;
    pub(super) const VARIABLE: u8 = 6;
    pub(super) const MODULE: u8 = 9;
    pub(super) const VALUE: u8 = 12;
    pub(super) const CONSTANT: u8 = 21;
}

/// Methods that write HTML, which few programs need.
const RARE: [&str; 13] = [
    "anchor",
    "big",
    "blink",
    "bold",
    "fixed",
    "fontcolor",
    "fontsize",
    "italics",
    "link",
    "small",
    "strike",
    "sub",
    "sup",
];

/// One proposal.
struct Item {
    label: String,
    kind: u8,
    detail: String,
    /// What is written instead of the label.
    new: Option<String>,
    /// Whose documentation `completionItem/resolve` adds.
    data: Json,
}

impl Item {
    fn new(label: impl Into<String>, kind: u8, detail: impl Into<String>) -> Item {
        Item {
            label: label.into(),
            kind,
            detail: detail.into(),
            new: None,
            data: Json::Null,
        }
    }

    fn with_data(self, data: Json) -> Item {
        Item { data, ..self }
    }
}

/// The answer of a completion request.
pub(crate) fn complete(engine: &Engine, document: &Document, offset: usize) -> Json {
    let text = document.text.as_str();
    let tokens = Tokens::of(text);
    let found = match document.form {
        _ if tokens.is_comment(offset) => None,
        Some(Form::Source) => in_source(engine, &tokens, offset),
        Some(Form::Json) => in_json(engine, &tokens, offset),
        None => None,
    };
    let Some((place, items)) = found else {
        return json!({"isIncomplete": false, "items": []});
    };
    let range = document.text.range(&place);
    let items: Vec<Json> = items.into_iter().map(|item| write(item, &range)).collect();
    json!({"isIncomplete": false, "items": items})
}

fn write(item: Item, range: &Json) -> Json {
    let new = item.new.as_deref().unwrap_or(&item.label);
    let mut out = json!({
        "label": item.label,
        "kind": item.kind,
        "textEdit": {"range": range, "newText": new},
    });
    if !item.detail.is_empty() {
        out["detail"] = item.detail.into();
    }
    if item.new.is_some() {
        // Editors filter by what stands in the range, quotes included.
        out["filterText"] = new.into();
    }
    if !item.data.is_null() {
        out["data"] = item.data;
    }
    out
}

/// Adds the documentation to a proposal.
pub(crate) fn resolve(engine: &Engine, mut item: Json) -> Json {
    let name = |key: &str| item["data"][key].as_str();
    let sig = |name: &str| engine.atoms().get(name).map(|atom| &atom.sig);
    let docs = if let (Some(op), Some(input)) = (name("atom"), name("input")) {
        sig(op).and_then(|sig| Some(facts::input(sig, place::input(sig, input)?)))
    } else if let Some(op) = name("atom") {
        sig(op).map(facts::atom)
    } else if let Some(member) = name("member") {
        facts::member(name("space"), member)
    } else if let Some(global) = name("global") {
        facts::global(global)
    } else {
        name("node").and_then(facts::node)
    };
    if let Some(docs) = docs {
        item["documentation"] = json!({"kind": "markdown", "value": docs});
    }
    item
}

type Found = (Range<usize>, Vec<Item>);

fn in_source(engine: &Engine, tokens: &Tokens<'_>, offset: usize) -> Option<Found> {
    let at = tokens.at(offset);
    if let Some(index) = at.filter(|index| tokens.is_text(*index)) {
        // Within a string: the values of an input.
        let place = tokens.content(index)?.0;
        let is_inside = place.start <= offset && offset <= place.end;
        let call = place::call(engine, tokens, index).filter(|_| is_inside)?;
        let values = values(call.sig, call.value_of?);
        return (!values.is_empty()).then_some((place, values));
    }
    let word = at.filter(|index| tokens.is_word(*index));
    let place = word
        .and_then(|index| tokens.get(index))
        .map_or(offset..offset, |t| t.place.clone());
    let index = word.unwrap_or_else(|| tokens.before(offset));
    let dot = index.checked_sub(1).filter(|at| tokens.is_mark(*at, b'.'));
    if let Some(dot) = dot {
        // Not in `...rest`.
        if !dot
            .checked_sub(1)
            .is_some_and(|at| tokens.is_mark(at, b'.'))
        {
            let object = dot.checked_sub(1).and_then(|at| tokens.word(at));
            return Some((place, members(object)));
        }
    }
    if let Some(call) = place::call(engine, tokens, index) {
        match call.value_of {
            None => return Some((place, inputs(call.sig, &call.given, ""))),
            Some(input) => {
                let mut items = values(call.sig, input);
                for item in &mut items {
                    item.new = Some(format!("'{}'", item.label));
                }
                items.extend(expressions(engine, tokens, index));
                return Some((place, items));
            }
        }
    }
    Some((place, expressions(engine, tokens, index)))
}

/// What an expression of a source may begin with.
fn expressions(engine: &Engine, tokens: &Tokens<'_>, index: usize) -> Vec<Item> {
    let names = declared(tokens);
    let mut items: Vec<Item> = seen(&names, index)
        .iter()
        .filter(|name| name.at != index)
        .map(|name| {
            let kind = match name.declared {
                Declared::Function => kind::FUNCTION,
                Declared::Constant => kind::CONSTANT,
                Declared::Variable | Declared::Parameter => kind::VARIABLE,
            };
            Item::new(name.name, kind, name.declared.as_str())
        })
        .collect();
    let is_declared = |name: &str| items.iter().any(|item| item.label == name);
    let mut more: Vec<Item> = Vec::new();
    for atom in engine.atoms().iter() {
        let sig = &atom.sig;
        if is_called(&sig.name) && !is_declared(&sig.name) {
            more.push(
                Item::new(&*sig.name, kind::FUNCTION, facts::call(sig))
                    .with_data(json!({"atom": sig.name})),
            );
        }
    }
    more.extend(
        globals()
            .into_iter()
            .filter(|item| !is_declared(&item.label)),
    );
    items.extend(more);
    items
}

/// True if a source calls an atom by its name.
fn is_called(name: &str) -> bool {
    agent99::form_of(name).is_none()
}

/// The global names of builtins.
fn globals() -> Vec<Item> {
    let functions = FUNCTIONS.iter().filter(|row| row.ns.is_empty());
    let functions = functions.map(|row| Item::new(row.name, kind::FUNCTION, row.docs));
    let spaces = NAMESPACES
        .iter()
        .map(|name| Item::new(*name, kind::MODULE, ""));
    let all =
        spaces
            .chain(functions)
            .chain([Item::new("context", kind::FUNCTION, "context(path)")]);
    let mut items: Vec<Item> = Vec::new();
    for item in all {
        if !items.iter().any(|known| known.label == item.label) {
            let data = json!({"global": item.label});
            items.push(item.with_data(data));
        }
    }
    items
}

/// What may follow a dot.
fn members(object: Option<&str>) -> Vec<Item> {
    if let Some(space) = object.filter(|object| NAMESPACES.contains(object)) {
        let functions = FUNCTIONS.iter().filter(|row| row.ns == space);
        let functions = functions.map(|row| Item::new(row.name, kind::FUNCTION, row.docs));
        let constants = CONSTANTS.iter().filter(|row| row.0 == space);
        let constants = constants.map(|row| Item::new(row.1, kind::CONSTANT, row.2.to_string()));
        let all = functions.chain(constants);
        let data = |item: &Item| json!({"space": space, "member": item.label});
        return all
            .map(|item| {
                let data = data(&item);
                item.with_data(data)
            })
            .collect();
    }
    let methods = METHODS.iter().filter(|row| !RARE.contains(&row.name));
    let methods = methods.map(|row| Item::new(row.name, kind::METHOD, facts::receivers(row)));
    let mut items: Vec<Item> = methods.collect();
    for (on, name, _) in MEMBERS {
        if !items.iter().any(|item| item.label == *name) {
            items.push(Item::new(*name, kind::FIELD, on.as_str()));
        }
    }
    let data = |item: &Item| json!({"member": item.label});
    items
        .into_iter()
        .map(|item| {
            let data = data(&item);
            item.with_data(data)
        })
        .collect()
}

/// The inputs of an atom that are not given yet, in quotes if the form wants them.
fn inputs(sig: &AtomSig, given: &[&str], quote: &str) -> Vec<Item> {
    let missing = sig
        .inputs
        .iter()
        .filter(|input| !given.contains(&&*input.name));
    let items = missing.map(|input| {
        let detail = match input.required {
            true => format!("{}, required", input.type_text()),
            false => input.type_text(),
        };
        let mut item = Item::new(&*input.name, kind::FIELD, detail)
            .with_data(json!({"atom": sig.name, "input": input.name}));
        if !quote.is_empty() {
            item.new = Some(format!("{quote}{}{quote}", input.name));
        }
        item
    });
    items.collect()
}

/// The allowed texts of an input.
fn values(sig: &AtomSig, input: &str) -> Vec<Item> {
    let input = place::input(sig, input);
    let values = input.into_iter().flat_map(|input| &input.values);
    values
        .map(|value| Item::new(&**value, kind::VALUE, ""))
        .collect()
}

fn in_json(engine: &Engine, tokens: &Tokens<'_>, offset: usize) -> Option<Found> {
    let text = tokens.at(offset).filter(|index| tokens.is_text(*index));
    let content = text.and_then(|index| tokens.content(index));
    let content = content.filter(|(place, _)| place.start <= offset && offset <= place.end);
    let index = match &content {
        Some(_) => text?,
        None => tokens.before(offset),
    };
    let quote = if content.is_some() { "" } else { "\"" };
    let place = content
        .as_ref()
        .map_or(offset..offset, |(place, _)| place.clone());
    let member = place::member(tokens, index)?;
    let sig = member.op.filter(|_| member.tag.is_none());
    let sig = sig
        .and_then(|op| engine.atoms().get(op))
        .map(|atom| &atom.sig);
    let mut items = match (member.value_of, sig) {
        (None, sig) => keys(sig, &member, quote),
        (Some("op"), _) if member.tag.is_none() => {
            let sigs = engine.atoms().iter().map(|atom| &atom.sig);
            let item = |sig: &AtomSig| {
                Item::new(&*sig.name, kind::FUNCTION, facts::call(sig))
                    .with_data(json!({"atom": sig.name}))
            };
            sigs.map(item).collect()
        }
        (Some("$expr"), _) => {
            let item = |tag: &str| Item::new(tag, kind::VALUE, "").with_data(json!({"node": tag}));
            NODES.iter().map(|node| item(node.tag)).collect()
        }
        (Some(input), sig) => {
            let known = sig.map_or_else(Vec::new, |sig| values(sig, input));
            if known.is_empty() {
                return in_text(tokens, content?, offset, sig, input);
            }
            known
        }
    };
    if !quote.is_empty() {
        for item in &mut items {
            item.new = Some(format!("\"{}\"", item.label));
        }
    }
    Some((place, items))
}

/// The keys that an object of a program may get.
fn keys(sig: Option<&AtomSig>, member: &place::Member<'_>, quote: &str) -> Vec<Item> {
    let mut items = match sig {
        Some(sig) if !member.is_root => inputs(sig, &member.given, quote),
        _ => Vec::new(),
    };
    let keys = match (member.is_root, member.tag) {
        (true, _) => PROGRAM_KEYS,
        (false, None) => STEP_KEYS,
        (false, Some(tag)) => {
            let node = NODES.iter().find(|node| node.tag == tag);
            let names = node.into_iter().flat_map(|node| node.names());
            return names.map(|name| Item::new(name, kind::FIELD, "")).collect();
        }
    };
    for key in keys.iter().filter(|key| !member.given.contains(&key.name)) {
        items.push(Item::new(key.name, kind::FIELD, key.docs));
    }
    items
}

/// Variables, functions and members within a text that may be a name or an expression.
fn in_text(
    tokens: &Tokens<'_>,
    (place, text): (Range<usize>, &str),
    offset: usize,
    sig: Option<&AtomSig>,
    input: &str,
) -> Option<Found> {
    let described = sig.and_then(|sig| place::input(sig, input));
    if described.is_some_and(|input| input.binding == Binding::Literal) {
        return None;
    }
    let at = word(text, offset - place.start);
    let here = place.start + at.place.start..place.start + at.place.end;
    let is_expression = matches!(input, "=" | "condition" | "expr" | "stopWhen" | "code");
    if at.is_member {
        return is_expression.then(|| (here, members(at.object)));
    }
    let mut items = variables(tokens);
    if is_expression {
        items.extend(globals());
    }
    Some((here, items))
}

/// The variables that a JSON program sets or imports anywhere.
fn variables(tokens: &Tokens<'_>) -> Vec<Item> {
    let mut names: Vec<&str> = Vec::new();
    for index in 0..tokens.len() {
        let Some((_, key)) = tokens
            .content(index)
            .filter(|_| tokens.is_mark(index + 1, b':'))
        else {
            continue;
        };
        match key {
            "result" | "as" | "index" | "accumulator" | "key" => {
                let is_setter = key != "key"
                    || place::member(tokens, index)
                        .is_some_and(|member| matches!(member.op, Some("varSet" | "constSet")));
                let value = tokens.content(index + 2).filter(|_| is_setter);
                names.extend(value.map(|(_, name)| name));
            }
            "keys" | "paramNames" if tokens.is_mark(index + 2, b'[') => {
                let close = tokens.close(index + 2);
                let inside = index + 3..close.min(index + 3 + 512);
                names.extend(inside.filter_map(|at| Some(tokens.content(at)?.1)));
            }
            _ => {}
        }
    }
    names.push("args");
    names.sort_unstable();
    names.dedup();
    let item = |name: &&str| Item::new(*name, kind::VARIABLE, "variable");
    names
        .iter()
        .filter(|name| !name.is_empty())
        .map(item)
        .collect()
}
