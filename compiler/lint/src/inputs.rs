//! Rules for inputs: texts that are meant as names, unreachable names, and values that an atom
//! does not accept.
//!
//! Codes: `lint.code_as_text`, `lint.odd_name`, `lint.unknown_input`, `lint.unknown_name`,
//! `lint.wrong_kind`, `lint.wrong_value`.

use super::Rules;
use super::names::is_identifier;
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Document, Kind, Limits, NodeId};
use a99_core::sig::{AtomInput, Form, JsonKinds};
use a99_core::text::wtf8_to_string_lossy;

/// Keys under which models nest all inputs of a step.
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

impl<'a> Rules<'_, 'a> {
    /// Reports the text of an input that equals a name bound later.
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
        let bound_here = self.doc.get(step, "result").and_then(|n| self.doc.str(n));
        if matches!(op, "eq" | "neq") && &*input.name == "b" || bound_here == Some(root) {
            return;
        }
        // A text may be meant where texts are accepted.
        let subject = input.subject;
        let wants_text = input.kinds.contains(JsonKinds::STRING);
        if wants_text && !subject && !input.kinds.contains(JsonKinds::ANY) {
            return;
        }
        let shown = Self::shown(text);
        self.told(node);
        self.found_later(node, None, &shown, "the text itself");
    }

    /// Reports a text where the value of a variable is meant; returns whether it did.
    pub(super) fn lint_subject(
        &mut self,
        step: NodeId,
        op: &str,
        input: &AtomInput,
        node: NodeId,
        text: &str,
    ) -> bool {
        if !input.subject || self.is_argument(text) {
            return false;
        }
        if op == "httpFetch" && !is_identifier(text) {
            if let Some(hole) = super::placeholders::hole_of_address(text) {
                self.told(node);
                let message = "nothing fills this in: the address stays as it is written";
                let help = "use `template {tmpl, vars, result}` in a step before, with `{{name}}` in its \
                            place, and give its `result`";
                self.found(codes::CODE_AS_TEXT, node, message, hole, help);
                return true;
            }
            if let Some((scheme, rest)) = text.split_once("://")
                && scheme.chars().all(|c| c.is_ascii_alphanumeric())
                && !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https")
            {
                let message = "an address begins with `http://` or `https://`";
                let help = format!("write `https://{}`", excerpt(rest));
                self.found(codes::WRONG_VALUE, node, message, text, help);
                return true;
            }
            let is_path = text.starts_with(['/', '.']) && !text.contains(['{', '$']);
            if is_path && !text.starts_with("//") {
                let message = "this is a path, and an address begins with its host";
                let path = text.trim_start_matches('.').trim_start_matches('/');
                let help = format!("write `https://api.example.com/{}`", excerpt(path));
                self.found(codes::WRONG_VALUE, node, message, text, help);
                return true;
            }
            let known = text.contains("://") || text.starts_with(['/', '.', '{', '$']);
            if known || text.starts_with("data:") || text.starts_with("args.") {
                return false;
            }
            let message = "this is no address: it does not say how it is reached";
            let help = format!("write `https://{}`", excerpt(text));
            self.found(codes::WRONG_VALUE, node, message, text, help);
            return true;
        }
        let holds_separator = op == "split"
            && self
                .text(step, "sep")
                .is_some_and(|sep| sep.is_empty() || text.contains(&sep));
        if is_identifier(text) && !holds_separator && !is_word_of_json(text) {
            let message = format!("no variable is called `{text}`, so this is the text itself");
            let help = match self.nearest_variable(text) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bind it before, or write `\"args.{text}\"` for an argument"),
            };
            self.told(node);
            self.found(codes::UNKNOWN_NAME, node, message, text, help);
            return true;
        }
        if op == "jsonParse" && Document::parse(text.as_bytes(), &Limits::default()).is_err() {
            self.told(node);
            let message = "this text is no JSON, so `jsonParse` fails";
            let help = "write JSON, with double quotes around keys and texts, or the value itself";
            self.found(codes::WRONG_VALUE, node, message, text, help);
            return true;
        }
        false
    }

    /// Help for a text of a kind that the input does not accept.
    pub(super) fn help_for_text(&mut self, op: &str, input: &AtomInput, text: &str) -> String {
        if let Some(near) = self.nearest_variable(text) {
            return format!("did you mean `{near}`?");
        }
        if input.parts == JsonKinds::STRING && !input.subject && is_identifier(text) {
            return format!("write a list: `[\"{}\"]`", excerpt(text));
        }
        if &*input.name == "responseFormat" && matches!(op, "llmChat" | "llmToolLoop") {
            return "write a JSON Schema, or `{\"type\": \"json_object\"}`".to_owned();
        }
        if is_path(text) {
            return format!("bind it before, or write `\"args.{text}\"` for an argument");
        }
        let shown = excerpt(text);
        let kinds = input.kinds;
        let time = super::numeric_bounds::milliseconds(text);
        if kinds.contains(JsonKinds::NUMBER) {
            return match time.filter(|_| input.name.contains("Ms") || input.name == "ttl") {
                Some(time) => format!("write milliseconds: {time}"),
                None => "write a number".to_owned(),
            };
        }
        if kinds.contains(JsonKinds::ARRAY) {
            if input.name.to_ascii_lowercase().ends_with("vector") {
                return "give it a list of numbers: `storeVectorize {text, result}` makes one of \
                        a text"
                    .to_owned();
            }
            let parts = text.split([',', ';', '|']).map(str::trim);
            let parts: Vec<String> = parts
                .filter(|part| !part.is_empty())
                .map(|part| match part.parse::<f64>() {
                    Ok(_) => part.to_owned(),
                    Err(_) => format!("\"{part}\""),
                })
                .collect();
            let is_prose = parts.iter().any(|part| part.matches(' ').count() > 2);
            return match op {
                "split" | "sort" | "sum" | "map" | "filter" if is_prose => {
                    "give it a list: `split {str, sep, result}` makes one of a text".to_owned()
                }
                _ => format!("write a list: `[{}]`", excerpt(&parts.join(", "))),
            };
        }
        if op == "storeQueryWhere" && &*input.name == "predicate" {
            return format!("write an object: `{{\"canonical\": \"{shown}\"}}`");
        }
        if kinds.contains(JsonKinds::OBJECT) && text.contains(['=', ':']) {
            let (name, value) = text.split_once(['=', ':']).unwrap_or((text, ""));
            return format!(
                "write an object: `{{\"{}\": \"{}\"}}`",
                excerpt(name.trim()),
                excerpt(value.trim())
            );
        }
        match kinds.contains(JsonKinds::BOOLEAN) {
            true => "write `true` or `false`, without quotes".to_owned(),
            false => format!(
                "write {}, or bind `{shown}` before",
                super::steps::wanted(kinds)
            ),
        }
    }

    /// Reports members of `vars` whose texts are meant as names.
    pub(super) fn lint_vars(&mut self, op: &str, vars: NodeId) {
        let doc = self.doc;
        let step = doc.parent(vars);
        let item = step
            .and_then(|step| doc.get(step, "as"))
            .and_then(|n| doc.str(n));
        for (name, node) in doc.members(vars) {
            let Some(text) = doc.str(node) else { continue };
            if item.is_some() && text.split(|b| *b == b'.').next() == item {
                continue;
            }
            if !self.is_plain_text(text) {
                let root = text.split(|b| *b == b'.').next().unwrap_or(text);
                if self.is_later(root) {
                    let shown = Self::shown(text);
                    self.told(node);
                    self.found_later(node, None, &shown, "the text itself");
                }
                if op == "template" {
                    self.lint_hole_value(node);
                }
                continue;
            }
            let shown = Self::shown(text);
            // Arithmetic uses numbers: a text there is meant as a name.
            let is_camel = op == "template"
                && shown.starts_with(|c: char| c.is_ascii_lowercase())
                && shown.contains(|c: char| c.is_ascii_uppercase());
            let meant = name == text || op == "mathCalc" || is_camel;
            if !meant || !is_identifier(&shown) || self.is_argument(&shown) {
                continue;
            }
            let message = format!("no variable is called `{shown}`, so this is the text itself");
            let help = match self.nearest_variable(&shown) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bind it before, or write `\"args.{shown}\"` for an argument"),
            };
            self.told(node);
            self.found(codes::UNKNOWN_NAME, node, message, &shown, help);
        }
    }

    /// Reports invalid holes of a template.
    pub(super) fn lint_holes(&mut self, node: NodeId, text: &[u8]) -> bool {
        if has_words_alone(text) {
            return false;
        }
        let shown = Self::shown(text);
        let doc = self.doc;
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
            let is_name = |name: &str| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            };
            let whole = is_name(hole) || self.is_version_4() && hole.split('.').all(is_name);
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
                } else if is_path(name) && !self.is_version_4() {
                    let last = name.rsplit('.').next().unwrap_or(name);
                    format!("write `{{{{{last}}}}}`, and `\"vars\": {{\"{last}\": \"{name}\"}}`")
                } else {
                    "compute it in a step before, and give its variable in `vars`".to_owned()
                };
                let message = "only a name stands between `{{` and `}}`: this stays as it is";
                let offending = format!("{{{{{hole}}}}}");
                self.found(codes::CODE_AS_TEXT, node, message, &offending, help);
                return true;
            }
            rest = more;
        }
        for (open, close) in [("${", "}"), ("{", "}"), ("<", ">"), ("%", "%")] {
            // Checking for the byte is cheaper than a search.
            if !shown.as_bytes().contains(&open.as_bytes()[0]) {
                continue;
            }
            for (at, _) in shown.match_indices(open) {
                let (before, after) = (&shown[..at], &shown[at + open.len()..]);
                let doubled = before.ends_with(['{', '$']) || after.starts_with('{');
                let Some((name, _)) = after.split_once(close).filter(|_| !doubled) else {
                    continue;
                };
                if is_identifier(name) && given(name) {
                    let message = "a hole of a template is written with two braces";
                    let help = format!("write `{{{{{name}}}}}`");
                    let offending = format!("{open}{name}{close}");
                    self.found(codes::CODE_AS_TEXT, node, message, &offending, help);
                    return true;
                }
            }
        }
        let names: Vec<String> = vars
            .filter(|vars| self.is_literal_object(*vars))
            .into_iter()
            .flat_map(|vars| doc.members(vars))
            .map(|(name, _)| Self::shown(name))
            .collect();
        self.lint_syntax(node, &shown, &names)
    }

    /// Reports invalid names for a step's result and its variables.
    pub(super) fn lint_result(
        &mut self,
        step: NodeId,
        form: Option<Form>,
        members: &[(&'a [u8], NodeId)],
    ) {
        let doc = self.doc;
        if form == Some(Form::VarsLet) {
            for &(name, node) in members.iter().filter(|(name, _)| *name != b"op") {
                if hides_builtin(&Self::shown(name)) {
                    self.lint_name(node, "key", name);
                }
            }
        }
        for &(key, node) in members {
            let key = match key {
                b"resultConst" if !matches!(doc.kind(node), Kind::Bool(_) | Kind::Null) => {
                    let message = "`resultConst` is true or false, and any text counts as true";
                    let help = "write `true` or `false`, without quotes";
                    self.found(codes::WRONG_KIND, node, message, "", help);
                    continue;
                }
                b"result" => "result",
                b"key" if matches!(form, Some(Form::VarSet | Form::ConstSet)) => "key",
                b"as" => "as",
                b"index" if doc.get(step, "items").is_some() => "index",
                b"accumulator" => "accumulator",
                b"catchParam" => "catchParam",
                _ => continue,
            };
            match doc.kind(node) {
                Kind::String(name) => self.lint_name(node, key, name),
                Kind::Null | Kind::Bool(false) if key == "result" => {}
                // A call without items needs no name.
                Kind::Null if matches!(form, Some(Form::CallAll | Form::ToolLoop)) => {}
                _ if key == "result" || key == "as" => {
                    let message = format!("`{key}` is the name of a variable, a text");
                    let help = format!("write `\"{key}\": \"name\"`");
                    self.found(codes::WRONG_KIND, node, message, "", help);
                }
                _ => {}
            }
        }
    }

    /// Reports a name that no path or expression can reach.
    pub(super) fn lint_name(&mut self, node: NodeId, key: &str, name: &[u8]) {
        if is_plain_name(name) {
            return;
        }
        let shown = wtf8_to_string_lossy(name);
        let root = shown.trim_start_matches(['$', '@', '{']);
        let end = root.find(|c: char| !c.is_alphanumeric() && c != '_');
        let root = &root[..end.unwrap_or(root.len())];
        let (message, help) = if name.is_empty() && key != "result" {
            (
                "a variable needs a name".to_owned(),
                "write a name".to_owned(),
            )
        } else if is_word_of_json(&shown) || matches!(&*shown, "undefined" | "NaN" | "Infinity") {
            (
                format!("an expression reads `{shown}` as the value, not as a variable"),
                "choose another name".to_owned(),
            )
        } else if hides_builtin(&shown) {
            (
                format!("a variable called `{shown}` hides the builtin of that name"),
                "choose another name".to_owned(),
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
                member_help(root, &shown),
            )
        } else if shown.contains(['.', '[', '{', ' ', '-', '/', ':'])
            || shown.starts_with(['$', '@'])
            || shown.starts_with(|c: char| c.is_ascii_digit())
        {
            (
                format!(
                    "no path or expression can read a variable called `{}`",
                    excerpt(&shown)
                ),
                match root.is_empty() || root.starts_with(|c: char| c.is_ascii_digit()) {
                    true => "begin with a letter, and use letters, digits and `_`".to_owned(),
                    false if shown.contains(['-', ' ']) => {
                        format!("call it `{}`", shown.replace(['-', ' '], "_"))
                    }
                    false => format!("call it `{root}`"),
                },
            )
        } else {
            return;
        };
        // `$` begins a name that expressions can read.
        if shown.starts_with('$') && is_identifier(&shown[1..]) {
            return;
        }
        self.found(codes::ODD_NAME, node, message, &shown, help);
    }

    /// Reports all inputs of a step nested under one key; returns their names.
    pub(super) fn lint_wrapped(
        &mut self,
        step: NodeId,
        op: &str,
        names: &[&str],
        key: &[u8],
        node: NodeId,
    ) -> Option<Vec<String>> {
        let doc = self.doc;
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
        let list: Vec<String> = inner
            .iter()
            .map(|name| format!("\"{name}\": ..."))
            .collect();
        let help = format!(
            "inputs stand beside `op`: `{{\"op\": \"{op}\", {}}}`",
            excerpt(&list.join(", "))
        );
        self.found(codes::UNKNOWN_INPUT, node, text, &shown, help);
        Some(inner)
    }
}

/// Whether every hole of a template holds plain words between two braces, as in most templates:
/// no delimiter of another language, and no other number of braces.
fn has_words_alone(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'{' => {
                let Some(hole) = after.strip_prefix(b"{") else {
                    return false;
                };
                let is_word = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
                let len = hole.iter().take_while(is_word).count();
                match hole[len..].strip_prefix(b"}}") {
                    Some(behind) if len > 0 => behind,
                    _ => return false,
                }
            }
            b'}' | b'$' | b'<' | b'%' | b'[' | b'#' | b'@' | b'\\' => return false,
            _ => after,
        };
    }
    true
}

/// Whether a text is a path: a name with members.
pub(super) fn is_path(text: &str) -> bool {
    let mut parts = text.split('.');
    let first = parts.next().is_some_and(is_identifier);
    let mut rest = parts;
    first
        && rest.all(|part| {
            part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !part.is_empty()
        })
}

/// Whether a text is a JSON list or object.
pub(super) fn is_json_text(text: &str) -> bool {
    const LONGEST: usize = 4096;
    let text = text.trim();
    let ends = [('[', ']'), ('{', '}')];
    let looks = ends
        .iter()
        .any(|(open, close)| text.starts_with(*open) && text.ends_with(*close));
    looks && text.len() <= LONGEST && Document::parse(text.as_bytes(), &Limits::default()).is_ok()
}

/// Whether a name needs no further check, as most do: a lower-case letter, then letters, digits
/// and `_`. Only one namespace begins with a lower-case letter.
fn is_plain_name(name: &[u8]) -> bool {
    let begins = name.first().is_some_and(u8::is_ascii_lowercase);
    begins
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && !matches!(name, b"true" | b"false" | b"null" | b"undefined" | b"args")
        && name != b"console"
        && !str::from_utf8(name).is_ok_and(hides_function)
}

fn hides_builtin(name: &str) -> bool {
    builtins::NAMESPACES.contains(&name) || hides_function(name)
}

/// Whether a name hides a function without a namespace; an error or a filter may have such a
/// name.
fn hides_function(name: &str) -> bool {
    name != "Error" && name != "filter" && builtins::function("", name).is_some()
}

/// Help for a variable whose name is a path: set a member.
fn member_help(root: &str, shown: &str) -> String {
    let path = shown.replace('[', ".").replace(['\'', '"', ']'], "");
    let (object, key) = path.rsplit_once('.').unwrap_or((root, &path));
    format!(
        "set the member: `memberSet {{object: \"{}\", key: \"{}\", value}}`",
        excerpt(object),
        excerpt(key)
    )
}

/// Whether a text is a literal word of JSON.
pub(super) fn is_word_of_json(text: &str) -> bool {
    matches!(text, "true" | "false" | "null")
}
