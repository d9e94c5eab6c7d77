//! Rules for literals that single atoms do not accept: patterns, addresses, calls, error texts.
//!
//! Codes: `lint.bad_pattern`, `lint.constant_condition`, `lint.missing_input`, `lint.name_as_text`,
//! `lint.unknown_input`, `lint.unknown_name`, `lint.unused_item`, `lint.wrong_kind`,
//! `lint.wrong_value`.

use super::Rules;
use super::inputs::{is_path, is_word_of_json};
use super::kinds::Holds;
use super::names::is_identifier;
use super::patterns::pattern_fault;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Form;

impl<'a> Rules<'_, 'a> {
    /// Checks the literals of a step; most forms have no rules.
    pub(super) fn lint_literals_of(&mut self, step: NodeId, op: &str, form: Option<Form>) {
        match form {
            Some(
                Form::VarSet | Form::If | Form::ForEach | Form::Map | Form::Filter | Form::Return,
            ) => self.lint_bounds_of(step, op),
            _ => self.on_literals(step, op),
        }
    }

    /// Reports literals that the atom does not accept.
    pub(super) fn on_literals(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let number = |key: &str| match doc.get(step, key).map(|node| doc.kind(node)) {
            Some(Kind::Number(n)) => Some(n),
            _ => None,
        };
        self.lint_bounds_of(step, op);
        self.lint_forms(step, op);
        match op {
            "random" => {
                if let (Some(min), Some(max)) = (number("min"), number("max"))
                    && min >= max
                {
                    let node = doc.get(step, "max").unwrap_or(step);
                    let message = format!("`max` is not above `min`, {min}");
                    let help = match min == max {
                        true => format!("`max` is never reached: write `\"max\": {}`", max + 1.0),
                        false => format!("write `\"min\": {max}, \"max\": {min}`"),
                    };
                    self.found(codes::WRONG_VALUE, node, message, "", help);
                }
            }
            "len" => {
                let Some(node) = doc.get(step, "list") else {
                    return;
                };
                if matches!(doc.kind(node), Kind::Number(_) | Kind::Bool(_) | Kind::Null) {
                    let message = "`list` of `len` wants a list or a text: the length of this is 0";
                    let help = "give it a list or a text";
                    self.found(codes::WRONG_KIND, node, message, "", help);
                } else if self.is_literal_object(node) && doc.get(node, "$expr").is_none() {
                    let message =
                        "`list` of `len` wants a list or a text: the length of an object is 0";
                    let help = "ask for its `keys` first: `keys {obj, result}`";
                    self.found(codes::WRONG_KIND, node, message, "", help);
                } else if let held @ (Holds::Object(_) | Holds::Number | Holds::Bool) =
                    self.holds_of_value(node)
                {
                    let shown = excerpt(&super::text_of(doc, node).unwrap_or_default());
                    let message = format!("`{shown}` is {}, whose length is 0", held.words());
                    let help = match held {
                        Holds::Object(_) => {
                            "ask for its `keys` first, `keys {obj, result}`, or give it a member that \
                             is a list or text"
                        }
                        _ => "give it a list or a text",
                    };
                    self.found(codes::WRONG_KIND, node, message, &shown, help);
                }
            }
            "eq" | "neq" | "gt" | "lt" => {
                let side = |key: &str| {
                    let node = doc.get(step, key)?;
                    match doc.kind(node) {
                        Kind::Bool(_) => Some("true or false"),
                        Kind::Number(_) => Some("a number"),
                        Kind::String(text) if self.is_plain_text(text) => Some("a text"),
                        _ => None,
                    }
                };
                let named = |key: &str| {
                    let text = self.text(step, key);
                    text.filter(|text| is_identifier(text) && !is_word_of_json(text))
                };
                if let (Some(a), Some(b)) = (side("a"), side("b")) {
                    let help = match named("a").or_else(|| named("b")) {
                        Some(name) => format!(
                            "no variable is called `{name}`: bind it before, or write \
                             `\"args.{name}\"` for an argument"
                        ),
                        None => "compare a variable".to_owned(),
                    };
                    let message = format!("`{op}` compares {a} with {b}, which is always the same");
                    self.found(codes::CONSTANT_CONDITION, step, message, op, help);
                } else {
                    self.lint_logic(step, op);
                }
            }
            "and" | "or" | "not" => self.lint_logic(step, op),
            "mathCalc" => {
                let blank = doc.get(step, "expr").and_then(|n| Some((n, doc.str(n)?)));
                if let Some((node, text)) = blank
                    && text.iter().all(u8::is_ascii_whitespace)
                {
                    let message = "`expr` is blank, so its value is undefined";
                    let help = "write a formula, as in `a * 2 + 1`";
                    self.found(codes::WRONG_VALUE, node, message, "", help);
                }
            }
            "callAll" => {
                let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
                self.lint_calls(step);
                if let (Some(_), Some(node)) = (given("calls"), given("items")) {
                    let message = "`items` is not looked at where there are `calls`";
                    let help = "keep one: `calls`, or `items` with `as` and `call`";
                    self.found(codes::WRONG_VALUE, node, message, "", help);
                }
            }
            "jsonStringify" => self.lint_twice(step),
            "memberDelete" => {
                let named = |key: &str| doc.get(step, key).filter(|n| doc.str(*n).is_some());
                if let (Some(node), Some(object)) = (named("result"), named("object"))
                    && doc.str(node) == doc.str(object)
                {
                    let message = "`memberDelete` changes the object and gives whether the member was \
                                   there, which takes its place here";
                    let help =
                        "leave `result` out, or make another object by `omit {obj, keys, result}`";
                    self.found(codes::WRONG_VALUE, node, message, "", help);
                }
            }
            "llmChat" | "llmToolLoop" => self.lint_model(step, op),
            "storeQueryWhere" => self.lint_predicate(step),
            "storeCompareAndSet" => self.lint_lock(step),
            "storeCreateCollection" | "storeVectorAdd" | "storeVectorUpsert" => {
                self.lint_vector_length(step, op);
            }
            "join" | "storeVectorSearch" | "storeSearch" => {
                self.lint_items_kind(step, op);
                self.lint_vector_length(step, op);
            }
            "agentRun" => {
                let node = doc.get(step, "input");
                let scalar = |n: &NodeId| match doc.kind(*n) {
                    Kind::String(text) => self.is_plain_text(text),
                    kind => !matches!(kind, Kind::Object),
                };
                if let Some(node) = node.filter(scalar).filter(|n| doc.kind(*n) != Kind::Null) {
                    let message = "`input` of `agentRun` is the agent's arguments, an object";
                    let help = "write `\"input\": {\"name\": ...}`";
                    self.found(codes::WRONG_KIND, node, message, "", help);
                }
            }
            "regexMatch" | "regexFind" | "regexFindAll" | "regexReplace" | "regexSplit" => {
                self.lint_pattern(step);
                self.lint_pattern_inputs(step);
                self.lint_pattern_name(step);
            }
            "pick" | "omit" => self.lint_picked(step, op),
            "sort" | "groupBy" | "unique" | "sum" => {
                self.lint_by(step, op);
                self.lint_plain_items(step, op);
                self.lint_items_kind(step, op);
            }
            "Error" => self.lint_error(step),
            "varsImport" => self.lint_imports(step),
            _ => {}
        }
    }

    /// Reports items of `callAll` that lack a required key or have an unknown one.
    fn lint_calls(&mut self, step: NodeId) {
        let doc = self.doc;
        let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
        let calls = given("calls")
            .into_iter()
            .flat_map(|list| doc.elements(list));
        for call in calls.chain(given("call")) {
            if let Some(node) = doc.get(call, "result") {
                let message = "a call of `callAll` binds no name: its answer is in the list";
                let help = "remove it; the answers are the `result` of the `callAll`, in the order of \
                            the calls";
                self.found(codes::UNKNOWN_INPUT, node, message, "", help);
            }
            let agent = doc.get(call, "agentId");
            if let Some(program) = agent.filter(|n| doc.kind(*n) == Kind::Object) {
                let message = "a program that is written here is no call: each answer is an error";
                let help = "run it in a `forEach` or `map` by `agentRun`, or name an agent of the host \
                            by its id";
                self.found(codes::WRONG_VALUE, program, message, "agentRun", help);
            }
        }
        if given("items").is_none() {
            return;
        }
        for name in ["as", "call"] {
            if given(name).is_none() {
                let message = format!("`callAll` with `items` needs `{name}`");
                let help = "write `callAll {items, as, call, limit, result}`";
                return self.found(codes::MISSING_INPUT, step, message, "callAll", help);
            }
        }
        let (Some(item), Some(call)) = (given("as"), given("call")) else {
            return;
        };
        let Some(item) = super::text_of(doc, item) else {
            return;
        };
        if !item.starts_with('_')
            && self.spend_on(call)
            && !super::bodies::mentions(doc, call, &item)
        {
            let message = format!(
                "this call does not look at the item, which is called `{}`",
                excerpt(&item)
            );
            let help = format!("give `{item}` to the call, or call it `_`");
            self.found(codes::UNUSED_ITEM, call, message, &item, help);
        }
    }

    /// Reports a pattern with the slashes and flags of JavaScript.
    fn lint_pattern(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "pattern") else {
            return;
        };
        let Some(text) = super::text_of(doc, node) else {
            return;
        };
        if let Some((message, help)) = pattern_fault(&text, doc.get(step, "text").is_none()) {
            return self.found(codes::BAD_PATTERN, node, message, &text, help);
        }
        if text.is_empty() && doc.get(step, "text").is_none() {
            let message = "an empty pattern is found everywhere";
            let help = "write what is looked for, as in `[0-9]+`";
            return self.found(codes::BAD_PATTERN, node, message, "\"\"", help);
        }
        if let Some(part) = super::patterns::escaped_twice(&text).filter(|_| !self.is_source()) {
            let message = format!("this looks for the sign `\\` itself, and then `{part}`");
            let help = format!(
                "a backslash is written twice in JSON, not four times: `\"{}\"`",
                excerpt(&text)
            );
            return self.found(codes::BAD_PATTERN, node, message, &text, help);
        }
        let flags = text.rsplit_once('/').filter(|(pattern, flags)| {
            let ends = pattern.ends_with('$') && !pattern.starts_with('/');
            ends && !flags.is_empty() && flags.chars().all(|c| "dgimsuvy".contains(c))
        });
        if let Some((pattern, _)) = flags {
            let message = "nothing comes after `$`: flags are no part of a pattern";
            let help = format!(
                "write `{}`; for both cases begin it with `(?i)`",
                excerpt(pattern)
            );
            return self.found(codes::BAD_PATTERN, node, message, &text, help);
        }
        let inner = text
            .strip_prefix('/')
            .and_then(|rest| rest.rsplit_once('/'));
        let Some((pattern, flags)) = inner else {
            return;
        };
        if pattern.is_empty() || !flags.chars().all(|c| "dgimsuvy".contains(c)) {
            return;
        }
        let message = "the slashes around a pattern are searched for, too";
        let mut help = format!("write `{}`", excerpt(pattern));
        if flags.contains('i') {
            help.push_str("; for both cases begin it with `(?i)`");
        }
        if doc.get(step, "text").is_some() && !flags.is_empty() {
            help = format!("write `{}`, and `\"flags\": \"{flags}\"`", excerpt(pattern));
        }
        self.found(codes::BAD_PATTERN, node, message, &text, help);
    }

    /// Reports names in the text of `Error`, which is taken as written, and further texts.
    fn lint_error(&mut self, step: NodeId) {
        let doc = self.doc;
        let args = doc.get(step, "args");
        if let Some(more) = args.and_then(|args| doc.element(args, 1)) {
            let message = "`Error` takes one text, the rest is ignored";
            let help = "to say more make the text with `template`, and fail with `consoleError \
                        {message}`";
            self.found(codes::UNKNOWN_INPUT, more, message, "", help);
        }
        let first = args.and_then(|args| doc.element(args, 0));
        let Some(node) = first else { return };
        let Some(text) = doc.str(node) else { return };
        let root = text.split(|b| *b == b'.').next().unwrap_or(text);
        let shown = Self::shown(text);
        let named = self.vars.knows(root) || text.starts_with(b"args.");
        let has_hole = shown.contains("{{") || shown.contains("${");
        let mut words = shown.split_whitespace();
        let mentions = words.any(|word| self.is_argument_path(word)) && !self.is_source();
        if !(has_hole || mentions || named && is_path(&shown)) {
            return;
        }
        let message = "the text of `Error` is taken as written: no variable is found there";
        let help = match has_hole || mentions && shown.contains(char::is_whitespace) {
            true => {
                "make the text with `template`, and fail with `consoleError {message}`".to_owned()
            }
            false => format!("fail with `{{\"op\": \"consoleError\", \"message\": \"{shown}\"}}`"),
        };
        self.found(codes::NAME_AS_TEXT, node, message, &shown, help);
    }

    /// Reports imported arguments that the schema does not declare.
    fn lint_imports(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(keys) = doc.get(step, "keys") else {
            return;
        };
        let nodes: Vec<NodeId> = match doc.kind(keys) {
            Kind::Array => doc.elements(keys).collect(),
            Kind::Object => doc.members(keys).map(|(_, node)| node).collect(),
            _ => return,
        };
        for node in nodes {
            let Some(name) = doc.str(node) else { continue };
            let before = self.view.at.replace((node, None));
            let shown = Self::shown(name);
            if let Some(rest) = shown.strip_prefix("args.") {
                let message = "`varsImport` takes the names of arguments, without `args.`";
                let help = format!("write `\"{rest}\"`");
                self.found(codes::UNKNOWN_NAME, node, message, &shown, help);
            } else {
                self.on_argument(name);
            }
            self.view.at = before;
        }
    }
}
