//! Rules for expression trees in the formats of other languages, which are data here.
//!
//! Codes: `lint.foreign_node`.

use super::Rules;
use a99_compiler::advice;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Operators that are the only key of a node in JsonLogic and similar formats.
const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "===",
    "!=",
    "!==",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "!",
    "!!",
    "?:",
    "if",
    "cat",
    "$add",
    "$subtract",
    "$multiply",
    "$divide",
    "$mod",
    "$concat",
    "$cond",
    "$ifNull",
];

/// Keys of nodes of other languages, with the equivalent here.
const KEYS: &[(&str, &str)] = &[
    ("var", "write `{\"$expr\": \"ident\", \"name\": \"n\"}`"),
    ("Ref", "write `{\"$expr\": \"ident\", \"name\": \"n\"}`"),
    ("ref", "write `{\"$expr\": \"ident\", \"name\": \"n\"}`"),
    ("$get", "write `{\"$expr\": \"ident\", \"name\": \"n\"}`"),
    ("$name", "write `{\"$expr\": \"ident\", \"name\": \"n\"}`"),
    (
        "variable",
        "write `{\"$expr\": \"ident\", \"name\": \"n\"}`",
    ),
    ("$param", "write `{\"$kind\": \"arg\", \"path\": \"n\"}`"),
    ("$arg", "write `{\"$kind\": \"arg\", \"path\": \"n\"}`"),
    (
        "$eval",
        "use `mathCalc {expr, vars, result}`, or an expression node `{\"$expr\": \"binary\", ...}`",
    ),
    (
        "$exp",
        "the tag is `$expr`: `{\"$expr\": \"ident\", \"name\": \"n\"}`",
    ),
    (
        "$jsonata",
        "use `mathCalc {expr, vars, result}`, or an expression node",
    ),
    (
        "$template",
        "use `template {tmpl, vars, result}` in a step before",
    ),
    (
        "Fn::Sub",
        "use `template {tmpl, vars, result}` in a step before",
    ),
    (
        "Fn::Join",
        "use `join {list, sep, result}` in a step before",
    ),
    (
        "Fn::GetAtt",
        "write a path, `\"name.member\"`, or a node `member`",
    ),
];

impl<'a> Rules<'_, 'a> {
    /// The key of a node of another tree format, and its help.
    pub(super) fn other_tree(&self, node: NodeId) -> Option<(String, String)> {
        let doc = self.doc;
        if doc.len(node) > 4 || doc.kind(node) != Kind::Object {
            return None;
        }
        let ident = "write `{\"$expr\": \"ident\", \"name\": \"n\"}`, or the name as a value";
        // Whether a text is a known name, or a path from one.
        let knows = |text: &[u8]| {
            let root = text.split(|c| *c == b'.').next().unwrap_or(text);
            std::str::from_utf8(root).is_ok_and(|root| !root.is_empty() && self.knows_name(root))
        };
        if let (Some(b"arg"), Some(path)) = (
            doc.get(node, "kind").and_then(|kind| doc.str(kind)),
            doc.get(node, "path").and_then(|path| doc.str(path)),
        ) && doc.len(node) == 2
        {
            let path = excerpt(&Self::shown(path));
            let help = format!("write `{{\"$kind\": \"arg\", \"path\": \"{path}\"}}`");
            return Some(("kind".to_owned(), help));
        }
        for (key, value) in doc.members(node) {
            let name = Self::shown(key);
            let alone = doc.len(node) == 1;
            let compound = matches!(doc.kind(value), Kind::Array | Kind::Object);
            if alone && OPERATORS.contains(&name.as_str()) && doc.kind(value) == Kind::Array {
                let help = advice::node_help(name.trim_start_matches('$'));
                return Some((name, help.to_owned()));
            }
            let row = KEYS
                .iter()
                .find(|row| row.0 == name && (alone || row.0.starts_with('$')));
            if let Some((_, help)) = row {
                // A key without a sigil may be data.
                let names = doc.str(value).is_some_and(knows);
                if name.starts_with(['$', 'F', 'R']) || names || compound && alone {
                    return Some((name, (*help).to_owned()));
                }
            }
            let within = key
                .strip_prefix(b"[")
                .and_then(|key| key.strip_suffix(b"]"));
            if within.is_some_and(knows) {
                let help = "a key is a text: use `memberSet {object, key, value}`, or a node \
                            `object` whose `key` is a node, in programs of version 4";
                return Some((name, help.to_owned()));
            }
            let is_path = doc.str(value).is_some_and(|text| text.starts_with(b"$."));
            if name.ends_with(".$") && is_path {
                return Some((name, ident.to_owned()));
            }
        }
        self.operation(node)
    }

    /// Recognises `{"operator": "+", "left": ...}` and `{"fn": "add", "args": [...]}`.
    fn operation(&self, node: NodeId) -> Option<(String, String)> {
        let doc = self.doc;
        let sides = doc.get(node, "left").is_some() && doc.get(node, "right").is_some();
        let list = ["args", "arguments", "operands", "params"]
            .iter()
            .filter_map(|key| doc.get(node, key))
            .any(|n| doc.kind(n) == Kind::Array);
        for key in ["operator", "op", "fn", "func", "function", "call", "callee"] {
            let Some(name) = self.text(node, key) else {
                continue;
            };
            if self.signature(&name).is_some() || !(sides || list) {
                continue;
            }
            let sign = !name.is_empty() && name.chars().all(|c| "+-*/%<>=!&|?".contains(c));
            let help = match sign || sides {
                true => advice::node_help(match sign {
                    true => "op",
                    false => &name,
                }),
                false => match advice::callee_help(&name) {
                    Some(help) => help,
                    None => advice::node_help(&name),
                },
            };
            return Some((name, help.to_owned()));
        }
        None
    }

    /// Reports steps and trees in a list of data, where they are not evaluated.
    pub(super) fn lint_items(&mut self, list: NodeId) {
        const MOST: usize = 32;
        let doc = self.doc;
        for child in doc.elements(list).take(MOST) {
            if doc.kind(child) == Kind::Object && !self.has_nested(child) {
                self.lint_step_as_value(child);
            }
        }
        // `["+", "n", 1]`
        let first = doc.element(list, 0).and_then(|n| super::text_of(doc, n));
        let Some(sign) = first.filter(|sign| OPERATORS[..16].contains(&sign.as_str())) else {
            return;
        };
        let mut others = doc
            .elements(list)
            .skip(1)
            .filter_map(|n| super::text_of(doc, n));
        if others.any(|text| OPERATORS.contains(&text.as_str())) {
            return;
        }
        if doc.len(list) == 3 && sign != "-" && sign != "*" && sign != "/" {
            let message = "this list is data, it is not evaluated";
            let help = advice::node_help(&sign);
            self.found(codes::FOREIGN_NODE, list, message, &excerpt(&sign), help);
        }
    }
}
