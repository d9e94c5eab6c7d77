//! Rules for steps: unknown inputs, missing inputs, and their kinds.
//!
//! Codes: `lint.missing_input`, `lint.name_as_text`, `lint.unknown_input`, `lint.unknown_name`,
//! `lint.unresolved_node`, `lint.unused_name`, `lint.wrong_kind`, `lint.wrong_value`.

use super::{Rules, synonyms};
use a99_compiler::advice;
use a99_core::diag::{codes, excerpt};
use a99_core::grammar::{BODIES, is_remark};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomInput, AtomSig, Binding, Form, JsonKinds, Params};
use a99_core::text::{same_name, wtf8_to_string_lossy};
use smallvec::{SmallVec, smallvec};

/// Kinds of JSON values, for messages.
const KIND_NAMES: [(JsonKinds, &str); 5] = [
    (JsonKinds::STRING, "a text"),
    (JsonKinds::NUMBER, "a number"),
    (JsonKinds::BOOLEAN, "true or false"),
    (JsonKinds::ARRAY, "a list"),
    (JsonKinds::OBJECT, "an object"),
];

/// The members of a step, which several rules search.
type Members<'a> = SmallVec<[(&'a [u8], NodeId); 8]>;

/// Whether a key is valid in every step.
fn is_of_any_step(key: &[u8]) -> bool {
    matches!(key, b"op" | b"result" | b"resultConst") || is_remark(key)
}

/// The variable that a hole reads.
fn root_of(hole: &[u8]) -> &[u8] {
    hole.split(|b| *b == b'.').next().unwrap_or(hole)
}

impl<'a> Rules<'_, 'a> {
    /// Checks a step with a known op.
    pub(super) fn on_step(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let members: Members<'a> = self.doc.members(step).collect();
        self.lint_inputs_of(step, op, sig, &members);
        self.lint_result(step, sig.form, &members);
        self.lint_dropped(step, op, sig);
        self.lint_literals_of(step, op, sig.form);
        self.lint_version(step, sig.form);
        self.lint_turns(step, sig.form);
        if let Some(form) = sig.form {
            self.lint_empty(step, op, form);
        }
        match sig.form {
            Some(Form::If) => self.lint_branches(step),
            Some(Form::VarSet) => self.lint_itself(step),
            Some(Form::MathCalc) => self.lint_begun(step),
            Some(Form::Try) => self.lint_try_body(step),
            Some(
                form @ (Form::Map | Form::Reduce | Form::ForEach | Form::Memoize | Form::Cache),
            ) if self.spend_on(step) => self.lint_body(step, op, form),
            Some(Form::Return) => self.lint_return(step),
            Some(Form::AgentRun | Form::RunCode) => {
                self.lint.runs_others = true;
                self.lint_inline(step);
            }
            _ => {}
        }
    }

    /// Checks the inputs of a step, or of a call whose answer is kept.
    pub(super) fn on_inputs(&mut self, step: NodeId, op: &str) {
        if let Some(sig) = self.signature(op) {
            let members: Members<'a> = self.doc.members(step).collect();
            self.lint_inputs_of(step, op, sig, &members);
        }
    }

    fn lint_inputs_of(
        &mut self,
        step: NodeId,
        op: &str,
        sig: &AtomSig,
        members: &[(&'a [u8], NodeId)],
    ) {
        let inputs: &[AtomInput] = &sig.inputs;
        // The value of each input; the first one, if a key occurs twice.
        let mut given: SmallVec<[Option<NodeId>; 8]> = smallvec![None; inputs.len()];
        let mut has_others = false;
        for (key, node) in members {
            let at = |input: &AtomInput| same_name(input.name.as_bytes(), key);
            match inputs.iter().position(at) {
                Some(at) => {
                    given[at].get_or_insert(*node);
                }
                None => has_others |= !is_of_any_step(key),
            }
        }
        let meant = match has_others && !sig.takes_others() {
            true => self.lint_keys(step, op, sig),
            false => Vec::new(),
        };
        for (input, given) in inputs.iter().zip(&given) {
            let name = &*input.name;
            if input.required && given.is_none() && !meant.iter().any(|other| other == name) {
                let text = format!("`{op}` needs `{name}`");
                let help = match (op, name) {
                    ("varSet" | "constSet", "key") => {
                        "the name of the variable is its `key`: add `\"key\": \"name\"`".to_owned()
                    }
                    _ => format!("add it; `{op}` takes {}", listed(inputs)),
                };
                self.found(codes::MISSING_INPUT, step, text, op, help);
            }
        }
        self.lint_template(step, sig);
        for (input, given) in inputs.iter().zip(&given) {
            if let Some(node) = *given {
                self.lint_input(step, op, input, node);
            }
        }
    }

    /// Reports holes of a template's text without a variable.
    fn lint_template(&mut self, step: NodeId, sig: &AtomSig) {
        let doc = self.doc;
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
        self.lint.templates.insert(node);
        let Some(text) = doc.str(node).filter(|text| self.is_plain_text(text)) else {
            return;
        };
        let told = self.lint_holes(node, text);
        let Some(vars) = doc.get(step, vars) else {
            if let Some(hole) = self.holes(text).first().map(|hole| root_of(hole)) {
                let hole = Self::shown(hole);
                let text = "a template with holes needs `vars`";
                let help = format!("add `\"vars\": {{\"{hole}\": ...}}`");
                self.found(codes::MISSING_INPUT, step, text, &hole, help);
            }
            return;
        };
        if !self.is_literal_object(vars) {
            return;
        }
        let holes: Vec<&[u8]> = self.holes(text).into_iter().map(root_of).collect();
        if !told {
            self.lint_unused_vars(vars, "template", |name| holes.contains(&name));
        }
        for hole in holes {
            if doc.member(vars, hole).is_some() {
                continue;
            }
            let hole = Self::shown(hole);
            let near = match self.affords(doc.len(vars)) {
                true => {
                    let given = doc.members(vars).map(|(name, _)| Self::shown(name));
                    super::nearest_of(&hole, given.collect())
                }
                false => None,
            };
            let help = match near {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => format!("add `\"{hole}\"` to `vars`"),
            };
            let text = format!(
                "`vars` has no `{}`, so nothing stands in its place",
                excerpt(&hole)
            );
            self.found(codes::UNKNOWN_NAME, node, text, &hole, help);
        }
    }

    /// Reports names of `vars` that are never read.
    pub(super) fn lint_unused_vars(
        &mut self,
        vars: NodeId,
        what: &str,
        is_used: impl Fn(&[u8]) -> bool,
    ) {
        let doc = self.doc;
        for (name, node) in doc.members(vars) {
            if is_used(name) {
                continue;
            }
            let shown = Self::shown(name);
            let message = format!("this {what} does not ask for `{}`", excerpt(&shown));
            let help = match what {
                "template" => format!("write `{{{{{shown}}}}}` where it is to stand, or remove it"),
                _ => format!("use `{shown}` in it, or remove it"),
            };
            self.found(codes::UNUSED_NAME, node, message, &shown, help);
        }
    }

    /// Reports keys that the op does not have; returns the inputs that they were meant for.
    fn lint_keys(&mut self, step: NodeId, op: &str, sig: &AtomSig) -> Vec<String> {
        let mut meant = Vec::new();
        let doc = self.doc;
        let has = |key: &[u8]| {
            let mut inputs = sig.inputs.iter();
            is_of_any_step(key) || inputs.any(|input| input.name.as_bytes() == key)
        };
        let names: Vec<&str> = sig.inputs.iter().map(|input| &*input.name).collect();
        for (key, node) in doc.members(step) {
            if has(key) {
                continue;
            }
            let shown = Self::shown(key);
            if let Some(inner) = self.lint_wrapped(step, op, &names, key, node) {
                meant.extend(inner);
                continue;
            }
            let free = |name: &&&str| doc.get(step, name).is_none();
            let own = names.iter().copied().chain(["result", "resultConst", "op"]);
            let own: Vec<&str> = own.collect();
            let synonym = synonyms::keys_for(&shown)
                .iter()
                .find(|name| own.contains(name) && free(name));
            let near = match synonym {
                Some(name) => Some((*name).to_owned()),
                None => self.nearest(&shown, own.iter().copied()),
            };
            let missing = names.iter().filter(|name| doc.get(step, name).is_none());
            let help = match (advice::input_help(op, &shown), near) {
                (Some(help), near) => {
                    meant.extend(near);
                    if names.contains(&"a") && names.contains(&"b") {
                        meant.extend(["a".to_owned(), "b".to_owned()]);
                    }
                    help.to_owned()
                }
                (None, Some(near)) => {
                    let help = format!("did you mean `{near}`?");
                    meant.push(near);
                    help
                }
                (None, None) if names.is_empty() => format!("`{op}` has no inputs: remove it"),
                (None, None) if matches!(op, "varSet" | "constSet") => {
                    meant.extend(missing.map(|name| (*name).to_owned()));
                    self.expect_name(key);
                    format!("write `\"key\": \"{}\", \"value\": ...`", excerpt(&shown))
                }
                (None, None) => {
                    let mut left = missing
                        .filter(|name| sig.inputs.iter().any(|i| i.name == **name && i.required));
                    match (left.next(), left.next()) {
                        // The only missing input is the one that was meant.
                        (Some(only), None) if !is_body(only) => {
                            meant.push((*only).to_owned());
                            format!(
                                "did you mean `{only}`? `{op}` takes {}",
                                listed(&sig.inputs)
                            )
                        }
                        _ => format!("`{op}` takes {}", listed(&sig.inputs)),
                    }
                }
            };
            if matches!(op, "varSet" | "constSet")
                && let Some(name) = doc.str(node)
            {
                self.expect_name(name);
            }
            let text = format!(
                "`{op}` has no input `{}`, so it is ignored",
                excerpt(&shown)
            );
            self.found(codes::UNKNOWN_INPUT, node, text, &shown, help);
        }
        meant
    }

    /// Reports a literal of a kind that the input does not accept, or outside its values.
    fn lint_input(&mut self, step: NodeId, op: &str, input: &AtomInput, node: NodeId) {
        if self.is_wrong_literal(node) {
            return;
        }
        let doc = self.doc;
        let name = &*input.name;
        let resolves = input.takes_references();
        if input.kinds.contains(JsonKinds::ARRAY) && is_body(name) {
            // Reported where the body is compiled.
            return;
        }
        let value = doc.kind(node);
        let is_compound = matches!(value, Kind::Array | Kind::Object);
        if resolves && is_compound {
            let is_arg = self.is_arg(node);
            if is_arg {
                self.lint_held(op, input, node);
            }
            if is_arg || self.is_expr(node) {
                return;
            }
        }
        // Tools contain calls, which are compiled as steps are; `on_tools` checks the rest.
        let is_tools = || op == "llmToolLoop" && name == "tools";
        if !resolves
            && is_compound
            && self.facts.has_nested(node)
            && !is_program(name)
            && !is_tools()
        {
            let text = format!("`{name}` is taken as written: the node in it stays data");
            let help = match (op, name) {
                ("Error", "args") => {
                    "the text of `Error` is fixed: for one that is made at run time, use \
                     `consoleError {message}`, whose `message` is resolved"
                }
                _ => "write the value itself here",
            };
            return self.found(codes::UNRESOLVED_NODE, node, text, "", help);
        }
        let kind = JsonKinds::of(value);
        let fits = input.kinds.contains(kind) || input.kinds == JsonKinds::NONE;
        let is_pattern = name == "pattern" && !resolves;
        if let Kind::String(text) = value
            && (is_pattern || input.binding == Binding::TextOrValue)
            && self.vars.knows(text)
            && !self.is_source()
        {
            let shown = Self::shown(text);
            let message = format!("`{name}` of `{op}` is this text, not the variable");
            let help = match is_pattern {
                true => "a pattern is part of the program: write it here, or give the variable \
                         another name"
                    .to_owned(),
                false => format!("write `{}`", self.node_for(&shown)),
            };
            return self.found(codes::NAME_AS_TEXT, node, message, &shown, help);
        }
        if fits && kind != JsonKinds::STRING {
            if matches!(input.binding, Binding::Vars | Binding::TemplateVars { .. }) {
                self.lint_vars(op, node);
            } else if is_compound {
                self.lint_parts(op, input, node);
            }
            return;
        }
        let found = match value {
            Kind::Null => "null".to_owned(),
            Kind::Bool(b) => b.to_string(),
            Kind::Number(n) => format!("the number {n}"),
            Kind::Array => "a list".to_owned(),
            Kind::Object => "an object".to_owned(),
            Kind::String(text) if resolves && !self.is_plain_text(text) => {
                if self.lint_held(op, input, node) {
                    return;
                }
                return self.lint_later(step, op, input, node, text);
            }
            // Most texts need no further check and have no fixed set of values.
            Kind::String(_) if fits && input.values.is_empty() && !(resolves && input.subject) => {
                return;
            }
            Kind::String(text) => {
                let shown = &*wtf8_to_string_lossy(text);
                if resolves && self.lint_subject(step, op, input, node, shown) {
                    return;
                }
                if !input.allows(shown) {
                    return self.lint_value(op, input, node, shown);
                }
                if fits {
                    return;
                }
                format!("the text \"{}\"", excerpt(shown))
            }
        };
        if matches!(input.binding, Binding::Vars | Binding::TemplateVars { .. }) {
            self.lint_vars(op, node);
        }
        let wanted = wanted(input.kinds);
        let mut text = format!("`{name}` of `{op}` wants {wanted}, and is {found}");
        let mut help = match (op, name, doc.kind(node)) {
            ("mathCalc", "expr", Kind::Number(n)) => format!("write `\"expr\": \"{n}\"`"),
            ("callLocal", "args", Kind::Object) => {
                "write the arguments in the order of `paramNames`, as a list".to_owned()
            }
            (_, "vars", Kind::Array) => {
                "write `\"vars\": {\"n\": \"n\"}`, a name for each value".to_owned()
            }
            ("return", "schema", Kind::Array) => {
                let names = doc
                    .elements(node)
                    .filter_map(|n| super::text_of(doc, n))
                    .take(8);
                let names: Vec<String> = names.map(|name| format!("\"{name}\": {{}}")).collect();
                format!(
                    "write `{{\"type\": \"object\", \"properties\": {{{}}}}}`",
                    names.join(", ")
                )
            }
            (_, "condition", Kind::Number(_) | Kind::Array) => {
                "write a text such as `\"n > 3\"`".to_owned()
            }
            ("jsonParse", ..) => "it is a value already: use it without `jsonParse`".to_owned(),
            (_, _, Kind::String(text)) if input.kinds.contains(JsonKinds::ARRAY) && !resolves => {
                format!("write `[\"{}\"]`", excerpt(&Self::shown(text)))
            }
            (_, _, Kind::Object) if input.kinds.contains(JsonKinds::ARRAY) => {
                "write a list: `[...]`; `Object.values` gives those of an object".to_owned()
            }
            _ if !input.values.is_empty() && kind != JsonKinds::STRING => {
                format!("write one of `\"{}\"`", input.values.join("\"`, `\""))
            }
            _ => format!("write {wanted}"),
        };
        let mut offending = String::new();
        if let Kind::String(name) = doc.kind(node) {
            offending = Self::shown(name);
            self.told(node);
            let is_bool = matches!(&*offending, "true" | "false" | "True" | "False");
            let is_json = super::inputs::is_json_text(&offending);
            if is_bool && input.kinds.contains(JsonKinds::BOOLEAN) {
                help = format!(
                    "write it without quotes: {}",
                    offending.to_ascii_lowercase()
                );
            } else if is_json && (resolves || !input.kinds.contains(JsonKinds::STRING)) {
                help = format!("write it without quotes: {}", excerpt(&offending));
            } else if resolves && offending.starts_with("range(") {
                help = "write the list, or count in a `while {condition, body}`".to_owned();
            } else if resolves && offending.trim().parse::<f64>().is_ok() {
                help = format!("write the number without quotes: {}", offending.trim());
            } else if resolves {
                text.push_str(": no variable has this name");
                help = self.help_for_text(op, input, &offending);
            }
        }
        self.found(codes::WRONG_KIND, node, text, &offending, help);
    }

    fn lint_value(&mut self, op: &str, input: &AtomInput, node: NodeId, text: &str) {
        let values = input.values.join(", ");
        let names = input.values.iter().map(|value| &**value);
        let help = match self.nearest(text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of {values}"),
        };
        let message = format!("`{}` of `{op}` is none of {values}", input.name);
        self.found(codes::WRONG_VALUE, node, message, text, help);
    }
}

/// JSON kinds in words.
pub(super) fn wanted(kinds: JsonKinds) -> String {
    let names = KIND_NAMES.iter().filter(|row| kinds.contains(row.0));
    let names: Vec<&str> = names.map(|row| row.1).collect();
    names.join(" or ")
}

/// Whether an input holds steps.
pub(super) fn is_body(name: &str) -> bool {
    BODIES.contains(&name)
}

/// Whether an input is compiled, or holds a schema.
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
            | "call"
            | "calls"
            | "tools"
    )
}

pub(super) fn listed(inputs: &[AtomInput]) -> String {
    let names: Vec<String> = inputs.iter().map(|i| format!("`{}`", i.name)).collect();
    names.join(", ")
}
