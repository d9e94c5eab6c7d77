//! Steps: the inputs that an atom has, those that it needs, and their kinds.

use super::super::templates::placeholders;
use super::{Finding, Lower, synonyms};
use crate::ir::{FromJson, truthy};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::sig::{AtomInput, AtomSig, Binding, Effect, Form, JsonKinds, Params};
use std::collections::HashSet;

/// Kinds of JSON values, for messages.
const KIND_NAMES: [(JsonKinds, &str); 5] = [
    (JsonKinds::STRING, "a text"),
    (JsonKinds::NUMBER, "a number"),
    (JsonKinds::BOOLEAN, "true or false"),
    (JsonKinds::ARRAY, "a list"),
    (JsonKinds::OBJECT, "an object"),
];

/// Pure atoms that change what they are given.
const CHANGES: &[&str] = &["push"];

/// Keys that any step may have for its reader.
fn is_remark(key: &[u8]) -> bool {
    key.starts_with(b"$")
        || key.starts_with(b"//")
        || key.starts_with(b"_")
        || key.starts_with(b"x-")
        || matches!(
            key,
            b"comment"
                | b"comments"
                | b"description"
                | b"note"
                | b"notes"
                | b"id"
                | b"label"
                | b"title"
        )
}

impl<'a> Lower<'_, 'a> {
    /// Looks at a step whose op is known.
    pub(in crate::lower) fn lint_step(&mut self, step: NodeId, op: &str) {
        if !self.lints() {
            return;
        }
        let (doc, sigs) = (self.s.doc, self.s.sigs);
        let Some(sig) = sigs.signature(op) else {
            return;
        };
        if !sig.takes_others() {
            self.lint_keys(step, op, sig);
        }
        for input in sig.inputs.iter().filter(|input| input.required) {
            if doc.get(step, &input.name).is_none() {
                let text = format!("`{op}` needs `{}`", input.name);
                let finding = Finding::new(codes::MISSING_INPUT, step, text);
                let help = format!("add it; `{op}` takes {}", listed(&sig.inputs));
                self.found(finding.offending(op).help(help));
            }
        }
        self.lint_template(step, sig);
        for input in sig.inputs.iter() {
            if let Some(node) = doc.get(step, &input.name) {
                self.lint_input(op, input, node);
            }
        }
        self.lint_dropped(step, op, sig);
        if sig.form == Some(Form::While) {
            self.lint_loop(step);
        }
    }

    /// The holes of a template's text, each of which needs a variable.
    fn lint_template(&mut self, step: NodeId, sig: &AtomSig) {
        let doc = self.s.doc;
        let Params::Named(params) = &sig.params else {
            return;
        };
        let Some((vars, template)) = params.iter().find_map(|param| match param.binding {
            Binding::TemplateVars { template } => Some((param.name, template)),
            _ => None,
        }) else {
            return;
        };
        let text = params.get(usize::from(template));
        let Some(node) = text.and_then(|param| doc.get(step, param.name)) else {
            return;
        };
        if let Some(lint) = &mut self.s.lint {
            lint.templates.insert(node);
        }
        let Some(text) = doc.str(node).filter(|text| self.is_plain_text(text)) else {
            return;
        };
        let Some(vars) = doc.get(step, vars) else {
            if let Some(hole) = placeholders(text).first() {
                let hole = Self::shown(hole);
                let text = "a template with holes needs `vars`";
                let finding = Finding::new(codes::MISSING_INPUT, step, text);
                let help = format!("add `\"vars\": {{\"{hole}\": ...}}`");
                self.found(finding.offending(&hole).help(help));
            }
            return;
        };
        if !self.is_literal_object(vars) {
            return;
        }
        let given: Vec<String> = doc
            .members(vars)
            .map(|(name, _)| Self::shown(name))
            .collect();
        for hole in placeholders(text) {
            let hole = Self::shown(hole);
            let root = hole.split('.').next().unwrap_or(&hole);
            if given.iter().any(|name| *name == hole || name == root) {
                continue;
            }
            let help = match self.s.nearest(&hole, given.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => format!("add `\"{hole}\"` to `vars`"),
            };
            let text = format!(
                "`vars` has no `{}`, so its place stays as it is",
                excerpt(&hole)
            );
            let finding = Finding::new(codes::UNKNOWN_NAME, node, text);
            self.found(finding.offending(&hole).help(help));
        }
    }

    /// Keys that the op does not have.
    fn lint_keys(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let doc = self.s.doc;
        let names: Vec<&str> = sig.inputs.iter().map(|input| &*input.name).collect();
        for (key, node) in doc.members(step) {
            let known = matches!(key, b"op" | b"result" | b"resultConst")
                || is_remark(key)
                || names.iter().any(|name| name.as_bytes() == key);
            if known {
                continue;
            }
            let shown = Self::shown(key);
            let free = |name: &&&str| doc.get(step, name).is_none();
            let own = names.iter().copied().chain(["result", "resultConst", "op"]);
            let own: Vec<&str> = own.collect();
            let synonym = synonyms::keys_for(&shown)
                .iter()
                .find(|name| own.contains(name) && free(name));
            let near = match synonym {
                Some(name) => Some((*name).to_owned()),
                None => self.s.nearest(&shown, own.iter().copied()),
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => format!("`{op}` has no inputs: remove it"),
                None => format!("`{op}` takes {}", listed(&sig.inputs)),
            };
            let text = format!(
                "`{op}` has no input `{}`, so it is ignored",
                excerpt(&shown)
            );
            let finding = Finding::new(codes::UNKNOWN_INPUT, node, text);
            self.found(finding.offending(&shown).help(help));
        }
    }

    /// A literal of a kind that the input does not take, or none of its values.
    fn lint_input(&mut self, op: &str, input: &AtomInput, node: NodeId) {
        if self.s.wrong_literals.contains(&node) {
            return;
        }
        let doc = self.s.doc;
        let name = &*input.name;
        let resolves = input.takes_references();
        if resolves && (FromJson::is_expr(doc, node) || self.is_arg(node)) {
            return;
        }
        if !resolves && self.s.facts.has_nested(node) && !is_program(name) {
            let text = format!("`{name}` is taken as written: the node in it stays data");
            let finding = Finding::new(codes::UNRESOLVED_NODE, node, text);
            let help = "write the value itself here";
            return self.found(finding.help(help));
        }
        let found = match doc.kind(node) {
            Kind::Null => "null".to_owned(),
            Kind::Bool(b) => b.to_string(),
            Kind::Number(n) => format!("the number {n}"),
            Kind::Array => "a list".to_owned(),
            Kind::Object => "an object".to_owned(),
            Kind::String(text) if resolves && !self.is_plain_text(text) => return,
            Kind::String(text) => {
                let shown = Self::shown(text);
                if !input.allows(&shown) {
                    return self.lint_value(op, input, node, &shown);
                }
                format!("the text \"{}\"", excerpt(&shown))
            }
        };
        let kind = JsonKinds::of(doc.kind(node));
        if input.kinds.contains(kind) || input.kinds == JsonKinds::NONE {
            return;
        }
        let wanted: Vec<&str> = KIND_NAMES
            .iter()
            .filter(|(kind, _)| input.kinds.contains(*kind))
            .map(|(_, name)| *name)
            .collect();
        let mut text = format!(
            "`{name}` of `{op}` wants {}, and is {found}",
            wanted.join(" or ")
        );
        let mut help = format!("write {}", wanted.join(" or "));
        let mut offending = String::new();
        if let Kind::String(name) = doc.kind(node) {
            offending = Self::shown(name);
            if resolves {
                text.push_str(": no variable has this name");
                help = match self.nearest_variable(&offending) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("bind it before, or write `\"args.{offending}\"` for an argument")
                    }
                };
            }
        }
        let finding = Finding::new(codes::WRONG_KIND, node, text);
        self.found(finding.offending(&offending).help(help));
    }

    fn lint_value(&mut self, op: &str, input: &AtomInput, node: NodeId, text: &str) {
        let values = input.values.join(", ");
        let names = input.values.iter().map(|value| &**value);
        let help = match self.s.nearest(text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of {values}"),
        };
        let message = format!("`{}` of `{op}` is none of {values}", input.name);
        let finding = Finding::new(codes::WRONG_VALUE, node, message);
        self.found(finding.offending(text).help(help));
    }

    /// The value of an atom that does nothing else, which nobody keeps.
    fn lint_dropped(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let doc = self.s.doc;
        let pure = match sig.form {
            None => sig.effect == Effect::Pure,
            Some(form) => matches!(form, Form::MathCalc | Form::VarGet | Form::VarsExport),
        };
        if pure
            && !CHANGES.contains(&op)
            && !doc.get(step, "result").is_some_and(|n| truthy(doc, n))
        {
            let text = format!("the value of `{op}` is dropped");
            let finding = Finding::new(codes::DROPPED_RESULT, step, text);
            let help = "add `\"result\": \"name\"`, or remove the step";
            self.found(finding.offending(op).help(help));
        }
    }

    /// A loop whose condition asks for variables that its body never sets.
    fn lint_loop(&mut self, step: NodeId) {
        let doc = self.s.doc;
        let (Some(condition), Some(body)) = (doc.get(step, "condition"), doc.get(step, "body"))
        else {
            return;
        };
        let Some(text) = super::text_of(doc, condition) else {
            return;
        };
        if self.s.facts.has_return(body) || doc.kind(body) != Kind::Array {
            return;
        }
        let Ok(parsed) = crate::expr::parse_condition(&text) else {
            return;
        };
        let mut names = Vec::new();
        for node in &parsed.nodes {
            if let crate::expr::ExprKind::Ident(name) = &node.kind {
                names.push(&**name);
            }
        }
        let vars = doc
            .get(step, "vars")
            .into_iter()
            .flat_map(|v| doc.members(v));
        let texts: Vec<String> = vars.filter_map(|(_, n)| super::text_of(doc, n)).collect();
        let roots = texts
            .iter()
            .map(|text| text.split('.').next().unwrap_or(text));
        let asked: Vec<&str> = names.iter().copied().chain(roots).collect();
        let mut words = Words::default();
        words.collect(doc, body);
        let moves = words.ends || asked.iter().any(|name| words.names.contains(*name));
        if moves {
            return;
        }
        let message = match asked.first() {
            Some(name) => format!("no step of this loop changes `{}`", excerpt(name)),
            None => "this condition never changes".to_owned(),
        };
        let finding = Finding::new(codes::ENDLESS_LOOP, condition, message);
        let help = "set a variable in the body that the condition asks for, or `return`";
        self.found(finding.offending(&text).help(help));
    }
}

/// The texts and keys in a part of the source.
#[derive(Default)]
struct Words {
    names: HashSet<String>,
    /// A step that may end the run.
    ends: bool,
}

impl Words {
    fn collect(&mut self, doc: &Document, node: NodeId) {
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            if let Some(text) = super::text_of(doc, node) {
                self.ends |= matches!(text.as_str(), "Error" | "runCode");
                let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                self.names.extend(words.map(str::to_owned));
            }
            for (key, value) in doc.members(node) {
                self.names.insert(Lower::shown(key));
                work.push(value);
            }
            work.extend(doc.elements(node));
        }
    }
}

/// Inputs that are compiled, or hold a schema.
fn is_program(name: &str) -> bool {
    matches!(
        name,
        "steps"
            | "then"
            | "else"
            | "body"
            | "try"
            | "catch"
            | "condition"
            | "schema"
            | "vars"
            | "ast"
            | "code"
            | "agentId"
            | "expr"
            | "initial"
    )
}

fn listed(inputs: &[AtomInput]) -> String {
    let names: Vec<String> = inputs.iter().map(|i| format!("`{}`", i.name)).collect();
    names.join(", ")
}
