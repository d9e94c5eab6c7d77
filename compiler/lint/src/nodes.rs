//! Rules for expression nodes: their fields, and nodes of other tree formats.
//!
//! Codes: `lint.foreign_node`, `lint.malformed_node`, `lint.name_as_text`, `lint.needs_version`,
//! `lint.regex_as_text`, `lint.unknown_field`.

use super::{Rules, synonyms};
use a99_compiler::ir::{Ir, IrKind, Lit, is_tagged};
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::grammar::{FOREIGN_TYPES, FieldHolds, NODE_REMARK, NodeForm};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::text::wtf8_to_string_lossy;

impl<'a> Rules<'_, 'a> {
    /// Checks an expression node and all nodes in it.
    pub(super) fn on_node(&mut self, node: NodeId) {
        let doc = self.doc;
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            if doc.kind(node) != Kind::Object {
                self.lint_held_node(node);
                continue;
            }
            let Some(tag) = doc.get(node, "$expr").and_then(|tag| doc.str(tag)) else {
                self.lint_foreign(node, true);
                self.lint_held_node(node);
                continue;
            };
            let tag = &*wtf8_to_string_lossy(tag);
            let Some(form) = NodeForm::of(tag) else {
                continue;
            };
            self.lint_fields(node, form);
            let operands = form
                .fields
                .iter()
                .filter(|f| f.holds == FieldHolds::Operand);
            for field in operands.map(|field| field.name) {
                if let Some(child) = doc.get(node, field) {
                    if !is_choice(doc, node, field) {
                        self.lint_operand(tag, child);
                    }
                    work.push(child);
                }
            }
            if let Some(property) = doc.get(node, "property").filter(|p| is_tagged(doc, *p)) {
                work.push(property);
            }
            for field in ["elements", "arguments", "properties"] {
                let Some(list) = doc.get(node, field) else {
                    continue;
                };
                if doc.kind(list) != Kind::Array {
                    let text = format!("`{field}` is a list");
                    let help = match field {
                        "properties" => "write `[{\"key\": \"name\", \"value\": ...}]`",
                        _ => "write the nodes as a list: `[...]`",
                    };
                    self.found(codes::MALFORMED_NODE, list, text, "", help);
                }
                for child in doc.elements(list) {
                    if field == "properties" {
                        self.lint_property(child);
                        let key = doc.get(child, "key");
                        work.extend(key.filter(|key| self.is_computed_key(*key)));
                        work.extend(doc.get(child, "value"));
                    } else {
                        work.push(child);
                    }
                }
            }
        }
    }

    fn lint_fields(&mut self, node: NodeId, form: &NodeForm) {
        let doc = self.doc;
        let tag = form.tag;
        let is_known = |key: &[u8]| {
            key.starts_with(NODE_REMARK.as_bytes())
                || form.names().any(|name| name.as_bytes() == key)
        };
        for (key, value) in doc.members(node) {
            if key == b"$expr" || is_known(key) {
                continue;
            }
            let all: Vec<&str> = form.names().collect();
            let shown = Self::shown(key);
            let synonym = synonyms::keys_for(&shown)
                .iter()
                .find(|name| all.contains(name) && doc.get(node, name).is_none());
            let near = match synonym {
                Some(name) => Some((*name).to_owned()),
                None => self.nearest(&shown, all.iter().copied()),
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`{tag}` has {}", all.join(", ")),
            };
            let text = format!("the node `{tag}` has no field `{}`", excerpt(&shown));
            self.found(codes::UNKNOWN_FIELD, value, text, &shown, help);
        }
        let needed = form.fields.iter().filter(|field| field.required);
        for name in needed.map(|field| field.name) {
            if doc.get(node, name).is_none() {
                let text = format!("the node `{tag}` needs `{name}`, which is undefined here");
                let all: Vec<&str> = form.names().collect();
                let help = format!("add it; `{tag}` has {}", all.join(", "));
                self.found(codes::MALFORMED_NODE, node, text, tag, help);
            }
        }
        if tag == "ident"
            && let Some(name) = doc.get(node, "name")
        {
            let path = wtf8_to_string_lossy(doc.str(name).unwrap_or_default());
            if path.contains('.') && !self.vars.knows(path.as_bytes()) {
                let text = "`name` is one name: a path finds nothing here";
                let path = path.strip_prefix("args.").unwrap_or(&path);
                let help = format!("write `{}`", self.node_for(path));
                self.found(codes::MALFORMED_NODE, name, text, path, help);
            }
        }
        if tag == "member"
            && let Some(property) = doc.get(node, "property")
        {
            let computed = doc.get(node, "computed");
            let is_computed = computed.is_some_and(|n| a99_compiler::ir::truthy(doc, n));
            // A node is evaluated, whether computed or not.
            let is_node = self.is_expr(property) || doc.get(property, "=").is_some();
            if !is_computed && !is_node && doc.kind(property) == Kind::Object {
                let text = "`property` is a name: this one becomes `[object Object]`";
                let help = "add `\"computed\": true`, by which the property is a node, or write the \
                            name as text";
                self.found(codes::MALFORMED_NODE, property, text, "", help);
            }
            let path = super::text_of(doc, property).unwrap_or_default();
            if path.contains('.') && super::inputs::is_path(&path) {
                let text = "`property` is one name: a path finds nothing here";
                let help = "write a node `member` for each name, one as the `object` of the other";
                self.found(codes::MALFORMED_NODE, property, text, &path, help);
            }
        }
        if tag == "logical"
            && let Some(operator) = self.text(node, "op")
        {
            let logical = matches!(operator.as_str(), "&&" | "||" | "??" | "and" | "or");
            let meant = match operator.as_str() {
                _ if !logical => Some("binary"),
                "and" | "or" => Some("logical"),
                _ => None,
            };
            if let Some(kind) = meant {
                let sign = match operator.as_str() {
                    "and" => "&&",
                    "or" => "||",
                    other => other,
                };
                let text = format!("`{tag}` has no operator `{}`", excerpt(&operator));
                let help = format!("write `{{\"$expr\": \"{kind}\", \"op\": \"{sign}\", ...}}`");
                self.found(codes::MALFORMED_NODE, node, text, &operator, help);
            }
        }
        if let Some(callee) = doc
            .get(node, "callee")
            .filter(|n| doc.kind(*n) == Kind::Object)
        {
            let help = "write the name of a builtin as text; a method is `{\"$expr\": \"methodCall\", \
                        \"object\": ..., \"method\": \"name\", \"arguments\": [...]}`";
            self.found(
                codes::MALFORMED_NODE,
                callee,
                "`callee` is a name",
                "",
                help,
            );
        }
    }

    /// Reports a name as an operand that is not a node: it is a literal text.
    fn lint_operand(&mut self, tag: &str, node: NodeId) {
        let Some(name) = self.doc.str(node).filter(|_| tag != "literal") else {
            return;
        };
        let shown = Self::shown(name);
        if let Some(path) = shown.strip_prefix("args.").filter(|path| !path.is_empty()) {
            let text = "in an expression this is a text, not the argument";
            let help = format!("write `{}`", self.node_for(path));
            return self.found(codes::NAME_AS_TEXT, node, text, &shown, help);
        }
        if builtins::NAMESPACES.contains(&shown.as_str())
            && self
                .doc
                .parent(node)
                .is_some_and(|n| self.doc.get(n, "method").is_some())
        {
            let text = format!("in an expression `\"{shown}\"` is a text, not the namespace");
            let help = format!("write `{{\"$expr\": \"ident\", \"name\": \"{shown}\"}}`");
            return self.found(codes::NAME_AS_TEXT, node, text, &shown, help);
        }
        if !self.vars.knows(name) && tag == "conditional" {
            self.lint_code(node, &shown, false);
            return;
        }
        if self.lint_argument_operand(node, name) {
            return;
        }
        if self.vars.knows(name) {
            let shown = Self::shown(name);
            let text = format!(
                "in an expression `\"{}\"` is a text, not the variable",
                excerpt(&shown)
            );
            let help = format!("write `{{\"$expr\": \"ident\", \"name\": \"{shown}\"}}`");
            self.found(codes::NAME_AS_TEXT, node, text, &shown, help);
        }
    }

    /// Whether the key of a property is computed, which version 4 allows (D67).
    fn is_computed_key(&self, key: NodeId) -> bool {
        self.is_version_4() && self.is_expr(key)
    }

    fn lint_property(&mut self, node: NodeId) {
        let doc = self.doc;
        let key = doc
            .get(node, "key")
            .filter(|_| doc.kind(node) == Kind::Object);
        let (place, text) = match key {
            None => (node, "a property is `{key, value}`"),
            Some(key) if self.is_computed_key(key) && doc.get(node, "value").is_some() => return,
            Some(key) if matches!(doc.kind(key), Kind::Object | Kind::Array) => {
                (key, "a key is a text: this one becomes `[object Object]`")
            }
            Some(_) if doc.get(node, "value").is_none() => (node, "this property has no value"),
            Some(_) => return,
        };
        let help = "write `{\"key\": \"name\", \"value\": ...}`; a key that is computed is a node, \
                    in programs of version 4 (`\"a99\": 4` at the root)";
        self.found(codes::MALFORMED_NODE, place, text, "", help);
    }

    /// Reports a node of another tree format, or an argument where only expression nodes are
    /// evaluated.
    pub(super) fn lint_foreign(&mut self, node: NodeId, in_expression: bool) {
        let doc = self.doc;
        if let Some(kind) = doc.get(node, "$kind") {
            let shown = super::text_of(doc, kind).unwrap_or_default();
            if in_expression {
                let text = "`$kind` is not evaluated in an expression";
                let help = "write `{\"$expr\": \"ident\", \"name\": ...}`, which finds arguments";
                return self.found(codes::FOREIGN_NODE, node, text, &shown, help);
            }
            if shown == "arg" && doc.get(node, "path").is_none() {
                let help = "write `{\"$kind\": \"arg\", \"path\": \"name\"}`";
                let message = "an argument needs its `path`";
                return self.found(codes::MALFORMED_NODE, node, message, "arg", help);
            }
            if shown == "context" {
                let text = "a part of the request context is data in programs before version 4";
                let help = "write `\"a99\": 4` at the root of the program; the host says which parts \
                            it may read";
                return self.found(codes::NEEDS_VERSION, node, text, &shown, help);
            }
            if shown != "arg" {
                let text = format!(
                    "there is no `$kind` \"{}\", so this is data",
                    excerpt(&shown)
                );
                let help =
                    "write `{\"$kind\": \"arg\", \"path\": \"name\"}`, or an expression node";
                return self.found(codes::FOREIGN_NODE, kind, text, &shown, help);
            }
        }
        let tag = self.text(node, "type");
        let estree = tag
            .as_ref()
            .is_some_and(|tag| FOREIGN_TYPES.iter().any(|end| tag.ends_with(end)));
        let short = ["expr", "expression", "$op", "$var", "$ref", "$arg"]
            .into_iter()
            .find(|key| doc.get(node, key).is_some())
            .filter(|_| doc.len(node) == 1 || doc.get(node, "$op").is_some());
        let (place, offending, help) = if let (true, Some(tag)) = (estree, &tag) {
            let ours = match tag.as_str() {
                "Identifier" => "{\"$expr\": \"ident\", \"name\": ...}",
                "MemberExpression" => "{\"$expr\": \"member\", \"object\": ..., \"property\": ...}",
                "CallExpression" => {
                    "{\"$expr\": \"call\", \"callee\": \"name\", \"arguments\": [...]}"
                }
                "LogicalExpression" => {
                    "{\"$expr\": \"logical\", \"op\": \"&&\", \"left\": ..., \"right\": ...}"
                }
                "UnaryExpression" => "{\"$expr\": \"unary\", \"op\": \"!\", \"argument\": ...}",
                "ConditionalExpression" => {
                    "{\"$expr\": \"conditional\", \"test\": ..., \"consequent\": ..., \"alternate\": ...}"
                }
                "BinaryExpression" => {
                    "{\"$expr\": \"binary\", \"op\": \"+\", \"left\": ..., \"right\": ...}"
                }
                _ => "{\"$expr\": \"literal\", \"value\": ...}",
            };
            (node, tag.clone(), format!("write `{ours}`"))
        } else if let Some(key) = short {
            let help = "an expression is a node `{\"$expr\": \"binary\", \"op\": \"+\", \"left\": ..., \
                        \"right\": ...}`, or the text of `mathCalc {expr, vars, result}`";
            (node, key.to_owned(), help.to_owned())
        } else if let Some((key, help)) = self.other_tree(node) {
            (node, key, help)
        } else {
            return;
        };
        let message = "this object is data, it is not evaluated";
        self.found(codes::FOREIGN_NODE, place, message, &offending, help);
    }

    /// Reports `{"=": ...}` that is not an expression text in version 4.
    fn lint_text_node(&mut self, node: NodeId) {
        let doc = self.doc;
        if !self.is_version_4() || doc.kind(node) != Kind::Object {
            return;
        }
        let Some(text) = doc.get(node, "=") else {
            return;
        };
        if doc.str(text).is_none() {
            let help = "write one text, as in `{\"=\": \"a + 1\"}`";
            self.found(
                codes::MALFORMED_NODE,
                text,
                "`=` has the text of an expression",
                "",
                help,
            );
        } else if let Some((key, other)) = doc.members(node).find(|(key, _)| *key != b"=") {
            let shown = Self::shown(key);
            let message = "an expression text stands alone: with another member this is data";
            let help = format!(
                "remove `{}`, or put `{{\"=\": ...}}` into a member of its own",
                excerpt(&shown)
            );
            self.told(text);
            self.found(codes::MALFORMED_NODE, other, message, &shown, help);
        }
    }

    /// Whether a text names a tool or members of a schema, which stay texts.
    fn is_declared(&self, node: NodeId, key: Option<&[u8]>) -> bool {
        let doc = self.doc;
        let has = |names: &[&str]| names.iter().any(|name| doc.get(node, name).is_some());
        match key {
            Some(key) => key == b"name" && has(&["parameters", "inputSchema", "input_schema"]),
            None => doc.parent(node).is_some_and(|parent| {
                let lists = ["required", "enum"];
                lists.iter().any(|name| doc.get(parent, name) == Some(node))
            }),
        }
    }

    /// Reports texts inside a literal that equal variable names: they stay texts.
    pub(super) fn on_literal(&mut self, node: NodeId) {
        let doc = self.doc;
        self.lint_text_node(node);
        if doc.kind(node) != Kind::Object || !self.lint_step_as_value(node) {
            self.lint_foreign(node, false);
        }
        if doc.kind(node) == Kind::Array {
            self.lint_items(node);
        }
        if self.has_deep_names() {
            return;
        }
        let members: Vec<(Option<&[u8]>, NodeId)> = match doc.kind(node) {
            Kind::Object => doc.members(node).map(|(k, v)| (Some(k), v)).collect(),
            _ => doc.elements(node).map(|v| (None, v)).collect(),
        };
        for (key, child) in members {
            match doc.kind(child) {
                Kind::String(text)
                    if self.vars.knows(text)
                        && !text.is_empty()
                        && !self.is_source()
                        && !self.is_declared(node, key) =>
                {
                    let shown = Self::shown(text);
                    let place = match key {
                        Some(_) => "an object",
                        None => "a list",
                    };
                    let message = format!(
                        "inside {place} `\"{}\"` is a text, not the variable",
                        excerpt(&shown)
                    );
                    let help = format!("write `{{\"$expr\": \"ident\", \"name\": \"{shown}\"}}`");
                    self.found(codes::NAME_AS_TEXT, child, message, &shown, help);
                }
                Kind::String(text)
                    if text.starts_with(b"args.") && text.len() > 5 && !self.is_source() =>
                {
                    let shown = Self::shown(text);
                    let message = "inside an object or a list this text is not resolved";
                    let path = &shown["args.".len()..];
                    let help = format!("write `{{\"$kind\": \"arg\", \"path\": \"{path}\"}}`");
                    self.found(codes::NAME_AS_TEXT, child, message, &shown, help);
                }
                Kind::String(text) => {
                    let shown = Self::shown(text);
                    if !self.lint_placeholder(child, &shown)
                        && !self.lint_code(child, &shown, false)
                        && !self.lint_mention(child, &shown)
                        && !self.is_declared(node, key)
                    {
                        self.lint_inner_path(key, child, &shown);
                    }
                }
                _ => {}
            }
        }
    }

    /// Reports a text method whose argument looks like a regular expression.
    pub(super) fn on_method(&mut self, name: &[u8], args: &[Ir<'a>]) {
        let row = str::from_utf8(name).ok().and_then(builtins::method_row);
        if row.is_none_or(|row| !row.searches) {
            return;
        }
        let Some(first) = args.first() else { return };
        let IrKind::Lit(Lit::Text(text)) = first.kind else {
            return;
        };
        let shown = Self::shown(text);
        if is_pattern(&shown) {
            let message = "this is searched for letter by letter, not as a regular expression";
            let help = "use the atom `regexMatch {pattern, value, result}` to test a text, \
                        `regexFind`, `regexReplace` or `regexSplit {text, pattern, result}` for \
                        what methods do";
            self.found(codes::REGEX_AS_TEXT, first.at, message, &shown, help);
        }
    }
}

/// Whether an operand is as likely a text as a variable: a side of a comparison, or a branch of
/// a conditional.
fn is_choice(doc: &Document, node: NodeId, field: &str) -> bool {
    let op = doc
        .get(node, "op")
        .and_then(|op| doc.str(op))
        .unwrap_or_default();
    let equality = matches!(op, b"==" | b"!=" | b"===" | b"!==");
    matches!(field, "consequent" | "alternate") || field == "right" && equality
}

/// Whether a text has syntax that only regular expressions have.
pub(super) fn is_pattern(text: &str) -> bool {
    let slashes = text.len() > 2
        && text.starts_with('/')
        && text
            .rfind('/')
            .is_some_and(|end| end > 1 && text[end + 1..].chars().all(|c| "dgimsuvy".contains(c)))
        && (text[1..].contains(|c: char| "\\[(^$.*+?".contains(c)) || !text.ends_with('/'));
    let escapes = ["\\d", "\\s", "\\w", "\\b", "\\D", "\\S", "\\W", "\\."];
    let ranges = [
        "[a-z", "[A-Z", "[0-9", "[^", ".*", ".+", "(?:", "(?=", "]+", "]*", ")+", ")*",
    ];
    slashes
        || escapes
            .iter()
            .chain(&ranges)
            .any(|part| text.contains(part))
}
