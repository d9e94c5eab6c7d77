//! What is known of names: atoms, builtins, members and nodes, as Markdown.

use a99_core::builtins::{
    BuiltinFunction, CONSTANTS, FUNCTIONS, MEMBERS, METHODS, Method, NAMESPACES,
};
use a99_core::grammar::{NodeForm, PROGRAM_KEYS, STEP_KEYS};
use a99_core::sig::{AtomInput, AtomSig, Effect};
use std::fmt::Write as _;

/// The call of an atom as a source writes it: `httpFetch({ url, method? })`.
pub(crate) fn call(sig: &AtomSig) -> String {
    let names = sig.inputs.iter().map(|input| match input.required {
        true => input.name.to_string(),
        false => format!("{}?", input.name),
    });
    let mut names: Vec<String> = names.collect();
    if sig.takes_others() {
        names.push("...".to_owned());
    }
    match names.is_empty() {
        true => format!("{}()", sig.name),
        false => format!("{}({{ {} }})", sig.name, names.join(", ")),
    }
}

/// Documentation of an atom.
pub(crate) fn atom(sig: &AtomSig) -> String {
    let effect = match sig.effect {
        Effect::Pure => "depends on its inputs only",
        Effect::Mutates => "changes one of its inputs",
        Effect::Read => "asks the host, and changes nothing",
        Effect::Idempotent => "changes the world; once more changes nothing further",
        Effect::Unsafe => "changes the world with each call",
    };
    let mut out = format!("```ts\n{}\n```\n\n{}\n\n", call(sig), sig.docs.trim());
    // Writing to a String cannot fail, here and below.
    let _ = write!(out, "Price: {}. It {effect}.", sig.price_text());
    if let Some(needed) = sig.capability {
        let _ = write!(out, " Capability: `{}`.", needed.name());
    }
    out.push_str("\n\n");
    for input in sig.inputs.iter() {
        let _ = writeln!(out, "- {}", one_input(input));
    }
    out
}

/// Documentation of an atom's input.
pub(crate) fn input(sig: &AtomSig, input: &AtomInput) -> String {
    format!("{}\n\nAn input of `{}`.", one_input(input), sig.name)
}

fn one_input(input: &AtomInput) -> String {
    let kind = match input.values.is_empty() {
        true => input.type_text(),
        false => {
            let values = input.values.iter().map(|value| format!("`{value}`"));
            values.collect::<Vec<_>>().join(", ")
        }
    };
    let mut out = format!("`{}` ({kind}", input.name);
    out.push_str(match (input.required, &*input.default) {
        (true, _) => ", required",
        (false, "") => ", optional",
        _ => "",
    });
    if !input.default.is_empty() {
        let _ = write!(out, ", by default `{}`", input.default);
    }
    let _ = write!(out, "): {}", input.docs.trim());
    out
}

/// A builtin function by its namespace and name.
pub(crate) fn function(space: &str, name: &str) -> Option<&'static BuiltinFunction> {
    FUNCTIONS
        .iter()
        .find(|row| row.ns == space && row.name == name)
}

/// Documentation of a builtin function.
pub(crate) fn function_docs(row: &BuiltinFunction) -> String {
    let price = row.cost.describe();
    builtin(&format!("{}(...)", row.full_name()), row.docs, &price)
}

/// A method of values by its name.
pub(crate) fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|row| row.name == name)
}

/// The kinds of values that have a method.
pub(crate) fn receivers(row: &Method) -> String {
    let kinds: Vec<&str> = row.on.iter().map(|kind| kind.as_str()).collect();
    kinds.join(", ")
}

/// Documentation of a method.
pub(crate) fn method_docs(row: &Method) -> String {
    let call = format!(".{}(...)", row.name);
    let docs = format!("{} (Of: {}.)", row.docs, receivers(row));
    builtin(&call, &docs, &row.cost.describe())
}

fn builtin(call: &str, docs: &str, price: &str) -> String {
    let price = match price {
        "-" => "that of the expression alone",
        price => price,
    };
    format!("```ts\n{call}\n```\n\n{docs}\n\nPrice: {price}.\n")
}

/// Documentation of a name after a dot: a function or constant of a namespace, else a method or
/// a member of values.
pub(crate) fn member(space: Option<&str>, name: &str) -> Option<String> {
    if let Some(space) = space.filter(|space| NAMESPACES.contains(space)) {
        let constant = CONSTANTS.iter().find(|row| row.0 == space && row.1 == name);
        return match (function(space, name), constant) {
            (Some(row), _) => Some(function_docs(row)),
            (None, Some((.., value))) => Some(format!("```ts\n{space}.{name} = {value}\n```\n")),
            (None, None) => None,
        };
    }
    if let Some(row) = method(name) {
        return Some(method_docs(row));
    }
    let rows = MEMBERS.iter().filter(|(_, known, _)| *known == name);
    let rows = rows.map(|(on, _, docs)| format!("`.{name}` of a {}: {docs}\n", on.as_str()));
    let text = rows.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

/// Documentation of a global name that no program declares.
pub(crate) fn global(name: &str) -> Option<String> {
    if let Some(row) = function("", name) {
        return Some(function_docs(row));
    }
    if NAMESPACES.contains(&name) {
        let names = FUNCTIONS.iter().filter(|row| row.ns == name);
        let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
        return Some(format!("`{name}` has {}.\n", names.join(", ")));
    }
    match name {
        "context" => Some(
            "```ts\ncontext(path)\n```\n\nA part of the request context, such as `user.id`, if \
             the host lets programs read it.\n"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Documentation of an expression node.
pub(crate) fn node(tag: &str) -> Option<String> {
    let form = NodeForm::of(tag)?;
    let names: Vec<String> = form.names().map(|name| format!("`{name}`")).collect();
    let fields = match names.is_empty() {
        true => String::new(),
        false => format!("\n\nFields: {}", names.join(", ")),
    };
    Some(format!("`$expr: {tag}`\n\n{}{fields}\n", form.docs))
}

/// Documentation of a key of a program's root or of a step.
pub(crate) fn key(name: &str, is_root: bool) -> Option<&'static str> {
    let keys = match is_root {
        true => PROGRAM_KEYS,
        false => STEP_KEYS,
    };
    keys.iter().find(|key| key.name == name).map(|key| key.docs)
}
