//! Rules for names: unknown names, names that are not visible at their place, and lost
//! assignments.
//!
//! Codes: `lint.not_visible`, `lint.unknown_name`, `lint.unset_property`.

use super::Rules;
use super::typos::{LONG, MIN_TYPO, is_typo, may_be_typo};
use a99_core::builtins;
use a99_core::diag::{codes, excerpt, suggest};
use a99_core::json::NodeId;
use a99_core::text::wtf8_to_string_lossy;
use hashbrown::HashSet;

impl<'a> Rules<'_, 'a> {
    pub(super) fn is_argument(&self, name: &str) -> bool {
        let declared = self.lint.arguments.as_ref();
        declared.is_some_and(|names| names.contains(name.as_bytes()))
    }

    /// Whether a name is a variable or a declared argument.
    pub(super) fn knows_name(&self, name: &str) -> bool {
        self.vars.knows(name.as_bytes()) || self.is_argument(name)
    }

    /// Whether a path names an argument: a declared one, if the schema declares any.
    pub(super) fn is_argument_path(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix("args.") else {
            return false;
        };
        let declares = self.lint.arguments.is_some();
        let root = rest.split('.').next().unwrap_or(rest);
        !rest.is_empty() && (!declares || self.is_argument(root))
    }

    /// The variable or declared argument nearest to a name.
    fn nearest_name(&mut self, name: &str) -> Option<String> {
        let declared = self.lint.arguments.as_ref();
        let count = self.vars.names_len() + declared.map_or(0, HashSet::len);
        if !self.affords(count) {
            return None;
        }
        let declared = self.lint.arguments.as_ref();
        let declared = declared.into_iter().flatten().copied();
        let names = self.vars.known_names().chain(declared);
        super::nearest_of(name, names.map(Self::shown).collect())
    }

    /// Reports an identifier that is neither bound nor a builtin nor a declared argument.
    pub(super) fn on_unbound(&mut self, name: &[u8]) {
        let Some((node, inner)) = self.at else {
            return;
        };
        let shown = Self::shown(name);
        let is_global = builtins::global(&shown).is_some();
        if is_global || self.is_argument(&shown) {
            return;
        }
        let declares = self.lint.arguments.is_some();
        if self.vars.knows(name) {
            // Without a schema, an argument may have the name.
            if declares && self.is_later(name) {
                self.found_later(node, inner, &shown, "undefined");
            }
            return;
        }
        if self.is_expected(name) {
            return;
        }
        if self.is_of_program(&shown) {
            return self.found_outer(node, inner, &shown, "undefined");
        }
        if self.lint_lookalike(node, inner, &shown) {
            return;
        }
        let items = &self.lint.items;
        let item = items.last().map(|name| Self::shown(name));
        let bare = shown.trim_start_matches(['$', '@']);
        let caught = self.caught.last().copied().map(Self::shown);
        let near = self.nearest_name(&shown);
        let help = match (shown.as_str(), near) {
            ("args" | "arguments" | "input" | "inputs" | "params", _) => {
                let member = self.member_behind(node, inner);
                let member = member.as_deref().unwrap_or("n");
                format!(
                    "an expression finds arguments by their names: write `{0}`, not `{shown}.{0}`",
                    excerpt(member)
                )
            }
            (
                "item" | "it" | "element" | "el" | "row" | "entry" | "current" | "x" | "i" | "_"
                | "this" | "$item",
                _,
            ) if item.is_some() => {
                format!("the item is called `{}` here", item.unwrap_or_default())
            }
            ("err" | "e" | "ex" | "exception" | "exc", _) if caught.is_some() => {
                format!(
                    "the error's message is called `{}` here",
                    caught.unwrap_or_default()
                )
            }
            ("vars" | "state" | "context" | "ctx" | "this" | "self" | "scope", _) => {
                "a variable is found by its name alone".to_owned()
            }
            ("True" | "False" | "None" | "nil" | "NULL" | "TRUE" | "FALSE", _) => {
                let word = match shown.as_str() {
                    "True" | "TRUE" => "true",
                    "False" | "FALSE" => "false",
                    _ => "null",
                };
                format!("write `{word}`")
            }
            _ if bare.len() < shown.len() && self.knows_name(bare) => {
                format!("write `{bare}`")
            }
            (_, Some(near)) if declares || is_typo(&shown, &near) => {
                format!("did you mean `{near}`?")
            }
            (_, _) if declares => {
                format!(
                    "bind it before, declare it in `inputSchema`, or write `'{shown}'` for a text"
                )
            }
            // Without a schema, every name may be an argument.
            _ => return,
        };
        let text = format!("no step binds `{}`, and it is no argument", excerpt(&shown));
        self.found(codes::UNKNOWN_NAME, (node, inner), text, &shown, help);
    }

    /// Reports an identifier of `mathCalc` that only later steps of this scope bind.
    pub(super) fn on_not_yet(&mut self, name: &[u8]) {
        let Some((node, inner)) = self.at else {
            return;
        };
        if self.is_later(name) {
            let shown = Self::shown(name);
            self.found_later(node, inner, &shown, "undefined");
        }
    }

    /// Reports an identifier of `mathCalc` that is neither in its `vars` nor a variable of the
    /// innermost scope.
    pub(super) fn on_not_visible(&mut self, name: &[u8]) {
        let Some((node, inner)) = self.at else {
            return;
        };
        let shown = Self::shown(name);
        if self.doc.str(node).is_none() || self.is_expected(name) {
            return;
        }
        if matches!(shown.as_str(), "args" | "arguments" | "input" | "params") {
            let message = format!("`mathCalc` sees no arguments, so `{shown}` is undefined");
            let help = "give them: `\"vars\": {\"n\": \"args.n\"}`, and write `n` in the formula";
            return self.found(codes::NOT_VISIBLE, (node, inner), message, &shown, help);
        }
        if self.is_of_program(&shown) {
            return self.found_outer(node, inner, &shown, "undefined");
        }
        if self.lint_lookalike(node, inner, &shown) {
            return;
        }
        let text = excerpt(&shown);
        let (code, message, help) = if self.vars.knows(name) || self.is_argument(&shown) {
            let value = match self.vars.knows(name) {
                true => shown.clone(),
                false => format!("args.{shown}"),
            };
            (
                codes::NOT_VISIBLE,
                format!("`{text}` is not visible in `mathCalc`, where it is undefined"),
                format!("give it: `\"vars\": {{\"{shown}\": \"{value}\"}}`"),
            )
        } else {
            let near = self.nearest_name(&shown);
            let items = &self.lint.items;
            let item = items.last().map(|name| Self::shown(name));
            let bare = shown.trim_start_matches(['$', '@']);
            let is_item = matches!(
                shown.as_str(),
                "item" | "it" | "element" | "el" | "x" | "n" | "i" | "_"
            );
            let help = match (near, item) {
                (_, Some(item)) if is_item => format!("the item is called `{item}` here"),
                _ if bare.len() < shown.len() && self.vars.knows(bare.as_bytes()) => {
                    format!("write `{bare}`")
                }
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, _) => format!(
                    "`mathCalc` sees no arguments: give them, `\"vars\": {{\"{shown}\": \
                     \"args.{shown}\"}}`"
                ),
            };
            let message = format!("`{text}` is no variable here, so it is undefined");
            (codes::UNKNOWN_NAME, message, help)
        };
        self.found(code, (node, inner), message, &shown, help);
    }

    /// Reports a text in a value position that is likely meant as a name or code.
    pub(super) fn on_text(&mut self, node: NodeId, text: &[u8]) {
        if self.lint.told.contains(&node) {
            return;
        }
        // Most texts are words: not code, not a path and, except for `YOUR_KEY`, not a placeholder.
        let is_word = text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let is_word = is_word && !text.contains(&b'Y');
        if is_word && self.vars.knows(text) {
            return;
        }
        let shown = &*wtf8_to_string_lossy(text);
        if !is_word {
            let filled = self.lint.templates.contains(&node);
            if !filled && (self.lint_code(node, shown, true) || self.lint_placeholder(node, shown))
            {
                return;
            }
            if self.lint_mention(node, shown) || !filled && self.lint_single_hole(node, shown) {
                return;
            }
            if !self.is_plain_text(text) {
                return self.lint_path(node, text);
            }
        }
        if self.lint_lookalike(node, None, shown) {
            return;
        }
        if self.lint_container(node, shown) || self.is_source() {
            return;
        }
        if self.lint_left_item(node, shown) || self.lint_cut_name(node, shown) {
            return;
        }
        let root = shown.split('.').next().unwrap_or(shown);
        let path = root.len() < shown.len() && !shown.contains(char::is_whitespace);
        if (path || root.len() == shown.len()) && is_identifier(root) && self.is_of_program(root) {
            return self.found_outer(node, None, shown, "the text itself");
        }
        if is_identifier(root)
            && root.len() >= MIN_TYPO
            && (path || root.len() == shown.len())
            && !self.is_argument(root)
        {
            let near = self.misspelt_variable(root);
            if let Some(near) = near {
                let text = format!("no variable is called `{root}`, so this is the text itself");
                let help = format!("did you mean `{near}{}`?", &shown[root.len()..]);
                self.found(codes::UNKNOWN_NAME, node, text, shown, help);
            }
        }
        if self.is_argument(root) && (path || root.len() == shown.len()) {
            let text = format!("`{root}` is an argument, which a text does not find");
            let help = format!("write `\"args.{shown}\"`");
            self.found(codes::NOT_VISIBLE, node, text, shown, help);
        }
    }

    /// The variable whose name a text misspells.
    ///
    /// Most texts are no misspelling. The few candidates are found without copies, and a text
    /// without candidates is compared with later names only when it occurs again.
    fn misspelt_variable(&mut self, text: &str) -> Option<String> {
        // Looking at a name costs a fraction of a comparison.
        const LOOKS: usize = 16;
        let text_bytes = text.as_bytes();
        let lists = self.vars.alike_lists(text_bytes);
        if !self.affords(lists.count() / LOOKS + 1) {
            return None;
        }
        let unlike = &mut self.lint.unlike;
        let from = unlike.get(text_bytes).copied().unwrap_or_default();
        // With at most one edit, at most two letters of a name differ.
        let few = text.len() < LONG;
        let names = self.view.vars.alike(&lists, text_bytes, from, few);
        let mut names = names.filter(|(name, _)| may_be_typo(text_bytes, name));
        let Some(first) = names.next() else {
            let known = self.view.vars.names_len();
            match unlike.get_mut(text_bytes) {
                Some(from) => *from = known,
                None => _ = unlike.insert(text_bytes.into(), known),
            }
            return None;
        };
        let names = std::iter::once(first).chain(names);
        let names = names.filter(|(_, is_visible)| *is_visible);
        let names: Vec<String> = names.map(|(name, _)| Self::shown(name)).collect();
        if names.is_empty() || !self.affords(names.len()) {
            return None;
        }
        super::nearest_of(text, names).filter(|near| is_typo(text, near))
    }

    /// The node that reads a name or a path.
    pub(super) fn node_for(&self, path: &str) -> String {
        if let Some(rest) = path.strip_prefix("args.") {
            return format!("{{\"$kind\": \"arg\", \"path\": \"{rest}\"}}");
        }
        let mut parts = path.split('.');
        let root = parts.next().unwrap_or(path);
        let root = format!("{{\"$expr\": \"ident\", \"name\": \"{root}\"}}");
        parts.fold(root, |object, property| {
            format!("{{\"$expr\": \"member\", \"object\": {object}, \"property\": \"{property}\"}}")
        })
    }

    /// Reports `input.n`, `vars.a` or `err.message`: a path from an object that does not exist
    /// here.
    fn lint_container(&mut self, node: NodeId, shown: &str) -> bool {
        let is_path = shown.bytes().any(|b| matches!(b, b'.' | b'['));
        if !is_path && shown != "args" && self.caught.is_empty() {
            return false;
        }
        let plain = super::code_text::with_indices(shown);
        let plain = plain.as_deref().unwrap_or(shown);
        let (root, rest) = plain.split_once('.').unwrap_or((plain, ""));
        if is_file(rest) || !rest.split('.').all(|part| rest.is_empty() || is_word(part)) {
            return false;
        }
        let in_catch = self.caught.last().copied().map(Self::shown);
        let help = match (root, rest) {
            ("args", "") => "name one: `\"args.name\"`".to_owned(),
            (_, "") if in_catch.is_none() => return false,
            (
                "input" | "inputs" | "params" | "parameters" | "arguments" | "arg" | "argv"
                | "props" | "request" | "event" | "$input" | "$json" | "$inputs" | "req" | "var"
                | "ARGS" | "Args" | "Input" | "Inputs" | "Params" | "payload" | "trigger",
                _,
            ) if !rest.is_empty() => {
                format!("arguments are found by `args.`: write `\"args.{rest}\"`")
            }
            (
                "vars" | "variables" | "state" | "context" | "ctx" | "scope" | "steps" | "memory"
                | "this" | "self" | "locals" | "globals" | "outputs" | "results" | "nodes"
                | "output" | "$steps" | "$vars" | "$node" | "env_vars",
                _,
            ) if !rest.is_empty() => {
                let name = rest.split('.').next().unwrap_or(rest);
                if matches!(root, "context" | "ctx") {
                    let version = match self.is_version_4() {
                        true => "",
                        false => ", with `\"a99\": 4` at the root",
                    };
                    format!(
                        "a part of the request context is `{{\"$kind\": \"context\", \"path\": \"{rest}\"}}`{version}, \
                         where the host allows it"
                    )
                } else if self.vars.knows(name.as_bytes()) {
                    format!("a variable is found by its name: write `\"{rest}\"`")
                } else if self.is_argument(name) {
                    format!("arguments are found by `args.`: write `\"args.{rest}\"`")
                } else {
                    "give the step a `result`, and write that name here".to_owned()
                }
            }
            (
                "err" | "e" | "ex" | "exc" | "exception" | "error" | "reason" | "err_msg"
                | "errorMessage",
                _,
            ) => match in_catch {
                Some(name) => format!("the message is in `{name}` here: write `\"{name}\"`"),
                None => return false,
            },
            _ => return false,
        };
        let text = format!("no variable is called `{root}`, so this is the text itself");
        self.found(codes::UNKNOWN_NAME, node, text, shown, help);
        true
    }

    /// Reports a path of an argument whose first name the schema does not declare.
    pub(super) fn on_argument(&mut self, path: &[u8]) {
        let Some((node, _)) = self.at else {
            return;
        };
        let root = path.split(|b| *b == b'.').next().unwrap_or(path);
        if self.in_helper && self.vars.knows(root) {
            let shown = Self::shown(path);
            let message = format!(
                "`args.{}` is an argument of the program; the helper's parameter is no argument",
                excerpt(&shown)
            );
            let help = format!("write `\"{shown}\"`");
            return self.found(
                codes::NOT_VISIBLE,
                node,
                message,
                &format!("args.{shown}"),
                help,
            );
        }
        let Some(declared) = self.lint.arguments.as_ref() else {
            return;
        };
        let root = path.split(|b| *b == b'.').next().unwrap_or(path);
        if declared.contains(root) || declared.contains(path) {
            return;
        }
        let shown = Self::shown(root);
        if self.lint_lookalike(node, None, &shown) {
            return;
        }
        let near = self.nearest_argument(&shown);
        let doc = self.doc;
        let doc_kind_lacks_path =
            doc.get(node, "$kind").is_some() && doc.get(node, "path").is_none();
        let is_path = self
            .doc
            .str(node)
            .is_some_and(|text| text.starts_with(b"args."));
        let help = match near {
            Some(near) if is_path => {
                let rest = Self::shown(&path[root.len()..]);
                format!("did you mean `args.{near}{}`?", rest.trim_end())
            }
            Some(near) => format!("did you mean `{near}`?"),
            None if root == b"args" && root.len() < path.len() => {
                format!(
                    "write `{}`: a path begins with the argument",
                    &Self::shown(path)[5..]
                )
            }
            None if doc_kind_lacks_path => "name the argument by `\"path\"`".to_owned(),
            None => "declare it in `inputSchema`".to_owned(),
        };
        let text = format!("`inputSchema` declares no argument `{}`", excerpt(&shown));
        self.found(codes::UNKNOWN_NAME, node, text, &shown, help);
    }

    /// The declared argument nearest to a name.
    fn nearest_argument(&mut self, name: &str) -> Option<String> {
        let count = self.lint.arguments.as_ref()?.len();
        if !self.affords(count) {
            return None;
        }
        let declared = self.lint.arguments.as_ref()?;
        let mut names: Vec<String> = declared.iter().map(|name| Self::shown(name)).collect();
        names.sort();
        suggest(name, names.iter().map(String::as_str))
    }

    /// Reports a property that `return` reads as a variable but no step sets.
    pub(super) fn on_returned(&mut self, schema: NodeId, name: &[u8]) {
        if self.is_expected(name) {
            return;
        }
        let doc = self.doc;
        if self.vars.knows(name) {
            let properties = doc.get(schema, "properties").unwrap_or(schema);
            let shown = Self::shown(name);
            let node = doc.get(properties, &shown).unwrap_or(schema);
            if self.is_later(name) {
                self.found_later(node, None, &shown, "absent");
            } else {
                self.lint_returned_kind(name, node);
            }
            return;
        }
        let properties = doc.get(schema, "properties").unwrap_or(schema);
        let shown = Self::shown(name);
        let node = doc.get(properties, &shown).unwrap_or(schema);
        let help = match self.nearest_name(&shown) {
            Some(near) => format!("did you mean the variable `{near}`?"),
            None if self.is_argument(&shown) => format!(
                "an argument is no variable: bind it, `{{\"op\": \"varsImport\", \"keys\": [\"{}\"]}}`",
                excerpt(&shown)
            ),
            None if self.is_bound_inside(&shown) => format!(
                "`{0}` ends with the body that binds it: bind it outside, or take what the step around \
                 gives, `\"result\": \"{0}\"`",
                excerpt(&shown)
            ),
            None => format!(
                "bind it before: `\"result\": \"{}\"` of a step",
                excerpt(&shown)
            ),
        };
        let text = format!(
            "no step binds `{}`, so the result has no such member",
            excerpt(&shown)
        );
        self.found(codes::UNSET_PROPERTY, node, text, &shown, help);
    }

    /// Enters the steps for an item with this name.
    pub(super) fn on_enter_items(&mut self, name: &'a [u8]) {
        self.lint.items.push(name);
    }

    /// Enters or leaves a condition about each item, where the item is not yet a variable.
    pub(super) fn on_choose(&mut self, name: &'a [u8], step: Option<NodeId>) {
        match step {
            Some(_) => self.on_enter_items(name),
            None => self.on_leave_items(),
        }
        self.lint.chosen = step.map(|step| (name, step));
    }

    /// Leaves the steps for an item.
    pub(super) fn on_leave_items(&mut self) {
        if let Some(name) = self.lint.items.pop() {
            self.lint.left.insert(name);
        }
    }

    pub(super) fn on_enter_loop(&mut self) {
        self.lint.whiles += 1;
    }

    pub(super) fn on_leave_loop(&mut self) {
        self.lint.whiles -= 1;
    }
}

/// Whether the text after the dot is a file extension or a top-level domain.
pub(super) fn is_file(rest: &str) -> bool {
    matches!(
        rest,
        "txt"
            | "json"
            | "csv"
            | "md"
            | "html"
            | "xml"
            | "js"
            | "ts"
            | "py"
            | "png"
            | "jpg"
            | "pdf"
            | "yaml"
            | "yml"
            | "zip"
            | "log"
            | "com"
            | "org"
            | "net"
            | "io"
    )
}

/// Whether a text is a valid variable name.
pub(super) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
