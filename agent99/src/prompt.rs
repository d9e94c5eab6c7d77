//! Prompts that teach models to write programs. They derive from the same tables as pages,
//! tools and checks.

mod rules;
mod source;

use crate::Engine;
use a99_core::builtins::{CONSTANTS, CallContext, FUNCTIONS, METHODS, NAMESPACES, Receiver};
use a99_core::grammar::{FieldHolds, NODES, NodeForm};
use a99_core::sig::{AtomInput, AtomSig, ShortPrompts};
use rules::{MISTAKES, PROGRAMS, RULES, Rule};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// How detailed a prompt is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum PromptForm {
    /// The rules, two programs, and the most used atoms with the names of their inputs; atoms
    /// of the host with their description. At most 1,100 tokens without atoms of the host.
    #[default]
    Short,
    /// All atoms with their inputs described, and all builtins.
    Full,
    /// The source form, a subset of JavaScript, and the most used atoms; at most 800 tokens
    /// without atoms of the host. Pass the model's answer to `Engine::compile_source`
    /// (feature `source`).
    Source,
}

impl Engine {
    /// The system prompt that teaches a model to write programs for this engine. Pass the
    /// model's answer to [`Engine::compile_answer`].
    ///
    /// ```
    /// use agent99::{Engine, PromptForm};
    ///
    /// let text = Engine::new().prompt(PromptForm::Short);
    /// assert!(text.contains("split(str, sep)"));
    /// ```
    #[must_use]
    pub fn prompt(&self, form: PromptForm) -> String {
        if form == PromptForm::Source {
            return source::text(self);
        }
        let mut out = String::new();
        rules(self, RULES, &mut out);
        nodes(&mut out);
        rules(self, MISTAKES, &mut out);
        for (title, program) in PROGRAMS {
            if is_for(self, program) {
                // Writing to a string cannot fail, here and below.
                let _ = write!(out, "{title}:\n{}\n\n", program.trim_end());
            }
        }
        out.push_str("Atoms (`?`: optional):\n");
        for (sig, is_own) in atoms(self) {
            let is_listed = matches!(sig.listed, ShortPrompts::Both | ShortPrompts::Json);
            match form == PromptForm::Full {
                true => described(sig, &mut out),
                false if is_own && !is_listed => {}
                false => line(&signature(sig), sig, is_own, &mut out),
            }
        }
        if form == PromptForm::Full {
            builtins(&mut out);
        }
        out
    }
}

fn rules(engine: &Engine, rules: &[Rule], out: &mut String) {
    let knows = |name: &&str| engine.atoms().get(name).is_some();
    for rule in rules {
        if rule.needs.iter().all(knows) {
            out.push_str(rule.text);
            out.push_str("\n\n");
        }
    }
}

/// Whether the engine has every atom of a program. Recursion is safe: [`PROGRAMS`] are
/// shallow.
fn is_for(engine: &Engine, program: &str) -> bool {
    fn all_known(engine: &Engine, value: &Json) -> bool {
        match value {
            Json::Array(items) => items.iter().all(|item| all_known(engine, item)),
            Json::Object(map) => {
                let op = map.get("op").and_then(Json::as_str);
                op.is_none_or(|op| engine.atoms().get(op).is_some())
                    && map.values().all(|value| all_known(engine, value))
            }
            _ => true,
        }
    }
    serde_json::from_str(program).is_ok_and(|program| all_known(engine, &program))
}

fn nodes(out: &mut String) {
    let nodes: Vec<String> = NODES
        .iter()
        .filter(|node| node.tag != "text")
        .map(|node| format!("{}({})", node.tag, fields(node)))
        .collect();
    let _ = write!(
        out,
        "Expressions are values `{{\"$expr\":TAG, ...}}`; an operand is one, or plain JSON, in \
         which \"n\" is text. TAG(fields): {}. With root key `\"a99\":4` write \
         `{{\"=\":\"Math.round(a.b)\"}}` instead.\n\n",
        nodes.join(", "),
    );
}

/// The main fields of a node; flags are left out.
fn fields(node: &NodeForm) -> String {
    let is_told = |holds: FieldHolds| holds != FieldHolds::Flag;
    let told = node.fields.iter().filter(|field| is_told(field.holds));
    let told = told.map(|field| match field.holds {
        FieldHolds::Operator(ops) if ops.len() < 4 => format!("{}: {}", field.name, ops.join(" ")),
        FieldHolds::Function => format!("{}: name", field.name),
        FieldHolds::Member => format!("{}: name or operand", field.name),
        FieldHolds::Properties => format!("{}: [{{key, value}}]", field.name),
        _ => field.name.to_owned(),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The atoms that programs name; true for those of the language.
fn atoms(engine: &Engine) -> impl Iterator<Item = (&AtomSig, bool)> {
    let own = a99_atoms::all_atoms();
    let sigs = engine.atoms().iter().map(|atom| &atom.sig);
    let named = sigs.filter(|sig| !a99_atoms::is_internal(&sig.name));
    named.map(move |sig| {
        let is_own = own.get(&sig.name).is_some_and(|own| own.sig == *sig);
        (sig, is_own)
    })
}

/// Writes the call of an atom; for an atom of the host also its description.
fn line(call: &str, sig: &AtomSig, is_own: bool, out: &mut String) {
    out.push_str(call);
    if !is_own {
        let _ = write!(out, ": {}", sig.docs.trim());
    }
    out.push('\n');
}

/// The call of an atom: `split(str, sep?)`.
fn signature(sig: &AtomSig) -> String {
    let name = |input: &AtomInput| match input.required {
        true => input.name.to_string(),
        false => format!("{}?", input.name),
    };
    let mut names: Vec<String> = sig.inputs.iter().map(name).collect();
    if sig.takes_others() {
        names.push("NAME: value, ...".to_owned());
    }
    format!("{}({})", sig.name, names.join(", "))
}

fn described(sig: &AtomSig, out: &mut String) {
    let _ = writeln!(out, "- {}: {}", signature(sig), sig.docs.trim());
    for input in sig.inputs.iter() {
        let kind = match input.values.is_empty() {
            true => input.type_text(),
            false => input.values.join(" | "),
        };
        let written = if input.takes_references() {
            ""
        } else {
            ", as written"
        };
        let default = match &*input.default {
            "" => String::new(),
            default => format!(", default {default}"),
        };
        let _ = writeln!(
            out,
            "  - {} ({kind}{written}{default}): {}",
            input.name, input.docs
        );
    }
}

fn builtins(out: &mut String) {
    let note = |places: &[CallContext]| match places.contains(&CallContext::Condition) {
        true => "",
        false => " Not in conditions.",
    };
    out.push_str("\nFunctions, and no others:\n");
    for function in FUNCTIONS {
        let (name, docs) = (function.full_name(), function.docs);
        let _ = writeln!(out, "- {name}: {docs}{}", note(function.places));
    }
    for namespace in NAMESPACES {
        let of = CONSTANTS.iter().filter(|(of, _, _)| of == namespace);
        let names: Vec<String> = of.map(|(of, name, _)| format!("{of}.{name}")).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "- constants: {}", names.join(", "));
        }
    }
    for receiver in Receiver::ALL {
        let _ = writeln!(out, "\nMethods, of {}:", receiver.as_str());
        for method in METHODS.iter().filter(|method| method.on.contains(receiver)) {
            let _ = writeln!(
                out,
                "- .{}: {}{}",
                method.name,
                method.docs,
                note(method.places)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tables_name_is_an_atom() {
        let atoms = a99_atoms::all_atoms();
        let needed = RULES.iter().chain(MISTAKES).flat_map(|rule| rule.needs);
        for name in needed {
            assert!(atoms.get(name).is_some(), "{name}");
        }
        let engine = Engine::new();
        assert!(PROGRAMS.iter().all(|(_, text)| is_for(&engine, text)));
    }
}
