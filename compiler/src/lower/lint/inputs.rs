//! Inputs: texts that are meant to be names, names that nothing can reach, values
//! that an atom does not understand.

use super::names::is_identifier;
use super::patterns::pattern_fault;
use super::{Finding, Lower};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Document, Kind, Limits, NodeId};
use a99_core::sig::{AtomInput, Form, JsonKinds, MAX_CALLS_UNDER_WAY};

/// What these atoms work on: a text that is written there is hardly meant, if it
/// could be a name.
const SUBJECTS: &[(&str, &str)] = &[
    ("split", "str"),
    ("join", "list"),
    ("jsonParse", "str"),
    ("xmlParse", "str"),
    ("regexMatch", "value"),
    ("len", "list"),
    ("push", "list"),
    ("httpFetch", "url"),
];

/// Keys under which models put all inputs of a step.
const WRAPPERS: &[&str] = &[
    "args",
    "arguments",
    "input",
    "inputs",
    "params",
    "parameters",
    "with",
    "config",
    "options",
    "properties",
    "data",
    "payload",
    "fields",
    "props",
];

impl<'a> Lower<'_, 'a> {
    /// The text of an input that equals a name.
    pub(super) fn lint_later(
        &mut self,
        step: NodeId,
        op: &str,
        input: &AtomInput,
        node: NodeId,
        text: &[u8],
    ) {
        let root = text.split(|b| *b == b'.').next().unwrap_or(text);
        if !self.is_later(root) || self.vars.knows(text) && !self.is_later(text) {
            return;
        }
        // A text to compare with, or a name that this step itself binds.
        let bound_here = self
            .s
            .doc
            .get(step, "result")
            .and_then(|n| self.s.doc.str(n));
        if matches!(op, "eq" | "neq") && &*input.name == "b" || bound_here == Some(root) {
            return;
        }
        // A text may be meant where texts are wanted.
        let subject = SUBJECTS.contains(&(op, &*input.name));
        let wants_text = input.kinds.contains(JsonKinds::STRING);
        if wants_text && !subject && !input.kinds.contains(JsonKinds::ANY) {
            return;
        }
        let shown = Self::shown(text);
        self.told(node);
        self.found_later(node, None, &shown, "the text itself");
    }

    /// A text that is no name, where the value of a variable is meant. Tells
    /// whether it was one.
    pub(super) fn lint_subject(
        &mut self,
        step: NodeId,
        op: &str,
        input: &AtomInput,
        node: NodeId,
        text: &str,
    ) -> bool {
        let doc = self.s.doc;
        if !SUBJECTS.contains(&(op, &*input.name)) || self.is_argument(text) {
            return false;
        }
        if op == "httpFetch" && !is_identifier(text) {
            let known = text.contains("://") || text.starts_with(['/', '.', '{', '$']);
            if known || text.starts_with("data:") || text.starts_with("args.") {
                return false;
            }
            let message = "this is no address: it does not say how it is reached";
            let finding = Finding::new(codes::WRONG_VALUE, node, message);
            let help = format!("write `https://{}`", excerpt(text));
            self.found(finding.offending(text).help(help));
            return true;
        }
        let holds_separator = op == "split"
            && doc
                .get(step, "sep")
                .and_then(|sep| super::text_of(doc, sep))
                .is_some_and(|sep| sep.is_empty() || text.contains(&sep));
        if is_identifier(text) && !holds_separator && !is_word_of_json(text) {
            let message = format!("no variable is called `{text}`, so this is the text itself");
            let help = match self.nearest_variable(text) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bind it before, or write `\"args.{text}\"` for an argument"),
            };
            self.told(node);
            let finding = Finding::new(codes::UNKNOWN_NAME, node, message);
            self.found(finding.offending(text).help(help));
            return true;
        }
        if op == "jsonParse" && Document::parse(text.as_bytes(), &Limits::default()).is_err() {
            self.told(node);
            let message = "this text is no JSON, so `jsonParse` fails";
            let finding = Finding::new(codes::WRONG_VALUE, node, message);
            let help = "write JSON, with double quotes around keys and texts, or the value itself";
            self.found(finding.offending(text).help(help));
            return true;
        }
        false
    }

    /// The members of `vars`, each a value position.
    pub(super) fn lint_vars(&mut self, op: &str, vars: NodeId) {
        let doc = self.s.doc;
        for (name, node) in doc.members(vars) {
            let Some(text) = doc.str(node) else { continue };
            let shown = Self::shown(text);
            if !self.is_plain_text(text) {
                let root = text.split(|b| *b == b'.').next().unwrap_or(text);
                if self.is_later(root) {
                    self.told(node);
                    self.found_later(node, None, &shown, "the text itself");
                }
                continue;
            }
            // Numbers are calculated with: a text there is a name.
            let meant = name == text || op == "mathCalc";
            if !meant || !is_identifier(&shown) || self.is_argument(&shown) {
                continue;
            }
            let message = format!("no variable is called `{shown}`, so this is the text itself");
            let help = match self.nearest_variable(&shown) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bind it before, or write `\"args.{shown}\"` for an argument"),
            };
            self.told(node);
            let finding = Finding::new(codes::UNKNOWN_NAME, node, message);
            self.found(finding.offending(&shown).help(help));
        }
    }

    /// Holes of a template that are none.
    pub(super) fn lint_holes(&mut self, node: NodeId, text: &[u8]) {
        let shown = Self::shown(text);
        let doc = self.s.doc;
        let step = doc.parent(node);
        let vars = step.and_then(|step| doc.get(step, "vars"));
        let given = |name: &str| vars.is_some_and(|vars| doc.get(vars, name).is_some());
        let mut rest = shown.as_str();
        while let Some((_, after)) = rest.split_once("{{") {
            let Some((hole, more)) = after.split_once("}}") else {
                break;
            };
            let name = hole.trim_matches(|c: char| c == '{' || c.is_whitespace());
            let root = name
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next();
            let whole =
                !hole.is_empty() && hole.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let is_block = name.starts_with(['#', '/', '^', '>', '!']);
            let known = root.is_some_and(|root| given(root) || self.vars.knows(root.as_bytes()));
            if !whole && (is_block || known) {
                let root = root.unwrap_or_default();
                let help = if is_block {
                    "there are no blocks: make the text of each item with `map` and `template`, then \
                     `join` them"
                        .to_owned()
                } else if name == root {
                    format!("write `{{{{{root}}}}}` without anything else")
                } else if is_path(name) {
                    let last = name.rsplit('.').next().unwrap_or(name);
                    format!("write `{{{{{last}}}}}`, and `\"vars\": {{\"{last}\": \"{name}\"}}`")
                } else {
                    "compute it in a step before, and give its variable in `vars`".to_owned()
                };
                let message = "only a name stands between `{{` and `}}`: this stays as it is";
                let finding = Finding::new(codes::CODE_AS_TEXT, node, message);
                let offending = format!("{{{{{hole}}}}}");
                return self.found(finding.offending(&offending).help(help));
            }
            rest = more;
        }
        for (open, close) in [("${", "}"), ("{", "}"), ("<", ">"), ("%", "%")] {
            for (at, _) in shown.match_indices(open) {
                let (before, after) = (&shown[..at], &shown[at + open.len()..]);
                let doubled = before.ends_with(['{', '$']) || after.starts_with('{');
                let Some((name, _)) = after.split_once(close).filter(|_| !doubled) else {
                    continue;
                };
                if is_identifier(name) && given(name) {
                    let message = "a hole of a template is written with two braces";
                    let finding = Finding::new(codes::CODE_AS_TEXT, node, message);
                    let help = format!("write `{{{{{name}}}}}`");
                    let offending = format!("{open}{name}{close}");
                    return self.found(finding.offending(&offending).help(help));
                }
            }
        }
    }

    /// The name that a step gives its value.
    pub(super) fn lint_result(&mut self, step: NodeId) {
        let doc = self.s.doc;
        for key in ["result", "key", "as", "accumulator", "catchParam"] {
            let Some(node) = doc.get(step, key) else {
                continue;
            };
            if key == "key" && !self.binds_key(step) {
                continue;
            }
            match doc.kind(node) {
                Kind::String(name) => self.lint_name(node, key, name),
                Kind::Null | Kind::Bool(false) if key == "result" => {}
                // Calls without items have none.
                Kind::Null if self.form_of(step) == Some(Form::CallAll) => {}
                _ if key == "result" || key == "as" => {
                    let message = format!("`{key}` is the name of a variable, a text");
                    let finding = Finding::new(codes::WRONG_KIND, node, message);
                    let help = format!("write `\"{key}\": \"name\"`");
                    self.found(finding.help(help));
                }
                _ => {}
            }
        }
    }

    fn binds_key(&self, step: NodeId) -> bool {
        let doc = self.s.doc;
        let op = doc.get(step, "op").and_then(|op| doc.str(op));
        matches!(op, Some(b"varSet" | b"constSet"))
    }

    /// A name that a path or an expression cannot reach.
    fn lint_name(&mut self, node: NodeId, key: &str, name: &[u8]) {
        let shown = Self::shown(name);
        let root: String = shown
            .trim_start_matches(['$', '@', '{'])
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let (message, help) = if name.is_empty() && key != "result" {
            (
                "a variable needs a name".to_owned(),
                "write a name".to_owned(),
            )
        } else if name == b"args" {
            (
                "a variable called `args` hides the arguments".to_owned(),
                "choose another name".to_owned(),
            )
        } else if shown.contains(['.', '[']) && self.vars.knows(root.as_bytes()) && root != shown {
            (
                format!(
                    "this makes a variable `{}`, it changes no member of `{root}`",
                    excerpt(&shown)
                ),
                format!(
                    "make the whole object again, as with `merge {{a: \"{root}\", b: {{...}}, result: \"{root}\"}}`"
                ),
            )
        } else if shown.contains(['.', '[', '{', ' ']) || shown.starts_with(['$', '@']) {
            (
                format!(
                    "no path or expression can read a variable called `{}`",
                    excerpt(&shown)
                ),
                match root.is_empty() {
                    true => "use letters, digits and `_`".to_owned(),
                    false => format!("call it `{root}`"),
                },
            )
        } else {
            return;
        };
        // `$` begins a name that expressions know.
        if shown.starts_with('$') && is_identifier(&shown[1..]) {
            return;
        }
        let finding = Finding::new(codes::ODD_NAME, node, message);
        self.found(finding.offending(&shown).help(help));
    }

    /// All inputs of a step inside one of its keys. Tells which inputs those are.
    pub(super) fn lint_wrapped(
        &mut self,
        step: NodeId,
        op: &str,
        names: &[&str],
        key: &[u8],
        node: NodeId,
    ) -> Option<Vec<String>> {
        let doc = self.s.doc;
        let shown = Self::shown(key);
        let wraps = WRAPPERS.contains(&shown.as_str()) && doc.kind(node) == Kind::Object;
        if !wraps {
            return None;
        }
        let inner: Vec<String> = doc
            .members(node)
            .map(|(name, _)| Self::shown(name))
            .collect();
        let mut fits = inner.iter();
        let free = |name: &&String| names.contains(&name.as_str()) && doc.get(step, name).is_none();
        if !fits.any(|name| free(&name)) {
            return None;
        }
        if let Some(name) = doc.get(node, "key").and_then(|n| doc.str(n)) {
            self.expect_name(name);
        }
        let text = format!(
            "`{op}` has no input `{}`, so it is ignored",
            excerpt(&shown)
        );
        let finding = Finding::new(codes::UNKNOWN_INPUT, node, text);
        let list: Vec<String> = inner
            .iter()
            .map(|name| format!("\"{name}\": ..."))
            .collect();
        let help = format!(
            "inputs stand beside `op`: `{{\"op\": \"{op}\", {}}}`",
            excerpt(&list.join(", "))
        );
        self.found(finding.offending(&shown).help(help));
        Some(inner)
    }

    /// What single atoms do not understand.
    pub(in crate::lower) fn lint_literals(&mut self, step: NodeId, op: &str) {
        let doc = self.s.doc;
        let number = |key: &str| match doc.get(step, key).map(|node| doc.kind(node)) {
            Some(Kind::Number(n)) => Some(n),
            _ => None,
        };
        match op {
            "random" => {
                if let (Some(min), Some(max)) = (number("min"), number("max"))
                    && min >= max
                {
                    let node = doc.get(step, "max").unwrap_or(step);
                    let message = format!("`max` is not above `min`, {min}");
                    let finding = Finding::new(codes::WRONG_VALUE, node, message);
                    let help = format!("write `\"min\": {max}, \"max\": {min}`");
                    self.found(finding.help(help));
                }
            }
            "len" => {
                let Some(node) = doc.get(step, "list") else {
                    return;
                };
                if matches!(doc.kind(node), Kind::Number(_) | Kind::Bool(_) | Kind::Null) {
                    let message = "`list` of `len` wants a list or a text: the length of this is 0";
                    let finding = Finding::new(codes::WRONG_KIND, node, message);
                    self.found(finding.help("give it a list or a text"));
                } else if doc.kind(node) == Kind::Object
                    && doc.get(node, "$expr").is_none()
                    && !self.is_arg(node)
                {
                    let message =
                        "`list` of `len` wants a list or a text: the length of an object is 0";
                    let finding = Finding::new(codes::WRONG_KIND, node, message);
                    self.found(finding.help("ask for its `keys` first: `keys {obj, result}`"));
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
                    let text = doc.get(step, key).and_then(|n| super::text_of(doc, n));
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
                    let finding = Finding::new(codes::CONSTANT_CONDITION, step, message);
                    self.found(finding.offending(op).help(help));
                }
            }
            "mathCalc" => {
                let blank = doc.get(step, "expr").and_then(|n| Some((n, doc.str(n)?)));
                if let Some((node, text)) = blank
                    && text.iter().all(u8::is_ascii_whitespace)
                {
                    let message = "`expr` is blank, so its value is undefined";
                    let finding = Finding::new(codes::WRONG_VALUE, node, message);
                    self.found(finding.help("write a formula, as in `a * 2 + 1`"));
                }
            }
            "callAll" => {
                if let Some(limit) = number("limit")
                    .filter(|n| !(1.0..=MAX_CALLS_UNDER_WAY).contains(n) || n.fract() != 0.0)
                {
                    let node = doc.get(step, "limit").unwrap_or(step);
                    let message = format!("`limit` cannot be {limit}");
                    let finding = Finding::new(codes::WRONG_VALUE, node, message);
                    let help = format!("write a whole number from 1 to {MAX_CALLS_UNDER_WAY}");
                    self.found(finding.help(help));
                }
                let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
                if let (Some(_), Some(node)) = (given("calls"), given("items")) {
                    let message = "`items` is not looked at where there are `calls`";
                    let finding = Finding::new(codes::WRONG_VALUE, node, message);
                    self.found(finding.help("keep one: `calls`, or `items` with `as` and `call`"));
                }
            }
            "regexMatch" => self.lint_pattern(step),
            "Error" => self.lint_error(step),
            "varsImport" => self.lint_imports(step),
            _ => {}
        }
    }

    /// A pattern with the slashes and flags of JavaScript.
    fn lint_pattern(&mut self, step: NodeId) {
        let doc = self.s.doc;
        let Some(node) = doc.get(step, "pattern") else {
            return;
        };
        let Some(text) = super::text_of(doc, node) else {
            return;
        };
        if let Some((message, help)) = pattern_fault(&text) {
            let finding = Finding::new(codes::BAD_PATTERN, node, message);
            return self.found(finding.offending(&text).help(help));
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
        let finding = Finding::new(codes::BAD_PATTERN, node, message);
        let mut help = format!("write `{}`", excerpt(pattern));
        if flags.contains('i') {
            help.push_str(
                "; without flags: for both cases compare a text in lower case, by `toLowerCase`",
            );
        }
        self.found(finding.offending(&text).help(help));
    }

    /// `Error` takes its text as it is written.
    fn lint_error(&mut self, step: NodeId) {
        let doc = self.s.doc;
        let first = doc.get(step, "args").and_then(|args| doc.element(args, 0));
        let Some(node) = first else { return };
        let Some(text) = doc.str(node) else { return };
        let root = text.split(|b| *b == b'.').next().unwrap_or(text);
        let shown = Self::shown(text);
        let named = self.vars.knows(root) || text.starts_with(b"args.");
        let has_hole = shown.contains("{{") || shown.contains("${");
        if !(has_hole || named && is_path(&shown)) {
            return;
        }
        let message = "the text of `Error` is taken as written: no variable is found there";
        let finding = Finding::new(codes::NAME_AS_TEXT, node, message);
        let help = match has_hole {
            true => {
                "make the text with `template`, and fail with `consoleError {message}`".to_owned()
            }
            false => format!("fail with `{{\"op\": \"consoleError\", \"message\": \"{shown}\"}}`"),
        };
        self.found(finding.offending(&shown).help(help));
    }

    /// Arguments that the schema does not have.
    fn lint_imports(&mut self, step: NodeId) {
        let doc = self.s.doc;
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
            let before = self.e.at.replace((node, None));
            let shown = Self::shown(name);
            if let Some(rest) = shown.strip_prefix("args.") {
                let message = "`varsImport` takes the names of arguments, without `args.`";
                let finding = Finding::new(codes::UNKNOWN_NAME, node, message);
                let help = format!("write `\"{rest}\"`");
                self.found(finding.offending(&shown).help(help));
            } else {
                self.lint_argument(name);
            }
            self.e.at = before;
        }
    }
}

/// A name with members.
fn is_path(text: &str) -> bool {
    let mut parts = text.split('.');
    let first = parts.next().is_some_and(is_identifier);
    let mut rest = parts;
    first
        && rest.all(|part| {
            part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !part.is_empty()
        })
}

/// Words that mean a value of JSON.
fn is_word_of_json(text: &str) -> bool {
    matches!(text, "true" | "false" | "null")
}
