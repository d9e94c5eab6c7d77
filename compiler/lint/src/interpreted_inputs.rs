//! Rules for single atoms: texts and objects in the program that the atom interprets.
//!
//! Codes: `lint.missing_input`, `lint.name_as_text`, `lint.regex_as_text`, `lint.unknown_input`,
//! `lint.unknown_name`, `lint.wrong_kind`, `lint.wrong_value`.

use super::Rules;
use super::inputs::is_path;
use super::kinds::Holds;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Names of other stores for a document's vector.
const VECTORS: &[&str] = &[
    "vector",
    "vec",
    "values",
    "embeddings",
    "queryVector",
    "emb",
];

/// Query members of other stores, and their equivalents here.
const QUERIES: &[(&[&str], &str)] = &[
    (
        &["from", "table", "collectionName", "index", "store", "into"],
        "collection",
    ),
    (
        &[
            "filter",
            "filters",
            "match",
            "conditions",
            "selector",
            "query",
            "find",
        ],
        "where",
    ),
    (
        &["sort", "sortBy", "order", "order_by", "orderby"],
        "orderBy",
    ),
    (
        &["take", "size", "top", "first", "max", "pageSize"],
        "limit",
    ),
    (
        &["after", "page", "token", "startAfter", "offset", "skip"],
        "cursor",
    ),
];

/// Valid members of a query.
const QUERY: &[&str] = &["collection", "where", "orderBy", "limit", "cursor"];

impl<'a> Rules<'_, 'a> {
    /// Reports a text or an object that the atom cannot use.
    pub(super) fn lint_forms(&mut self, step: NodeId, op: &str) {
        match op {
            "split" => self.lint_separator(step),
            "storeList" => self.lint_prefix(step),
            "storeQuery" => self.lint_query(step),
            "storeVectorAdd" | "storeVectorUpsert" => self.lint_document(step, op),
            "hash" => self.lint_digested(step),
            "httpFetch" => self.lint_request_body(step),
            "memberSet" | "memberDelete" => self.lint_member_key(step, op),
            "shellExec" => self.lint_command(step),
            "shellWriteFile" | "shellReadFile" => self.lint_file(step, op),
            "releaseProcedure" => self.lint_token(step),
            "varsLet" => self.lint_let(step),
            "reduce" => self.lint_initial(step),
            "random" => self.lint_random(step),
            "varsExport" => self.lint_exports(step),
            "agentSetTimer" => self.lint_timer(step),
            "agentSend" => self.lint_addressees(step),
            "agentStorageExec" | "agentStorageRun" | "agentStorageGet" | "agentStorageQuery" => {
                self.lint_sql(step, op);
            }
            _ => {}
        }
    }

    /// The text of an input that does not name a variable.
    pub(super) fn plain(&self, step: NodeId, key: &str) -> Option<(NodeId, String)> {
        let doc = self.doc;
        let node = doc.get(step, key)?;
        let text = doc.str(node).filter(|text| self.is_plain_text(text))?;
        let shown = Self::shown(text);
        (!shown.starts_with("args.") && !self.is_argument(&shown)).then_some((node, shown))
    }

    fn lint_separator(&mut self, step: NodeId) {
        let Some((node, sep)) = self.plain(step, "sep") else {
            return;
        };
        let slashes = sep.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
        let pattern = match slashes {
            Some((pattern, flags))
                if !pattern.is_empty() && flags.chars().all(|c| "dgimsuvy".contains(c)) =>
            {
                pattern.to_owned()
            }
            None if super::nodes::is_pattern(&sep) => sep.clone(),
            _ => return,
        };
        let message = "a separator is searched for letter by letter, not as a regular expression";
        let help = format!(
            "use `regexSplit {{text, pattern, result}}`, with `\"pattern\": \"{}\"`",
            excerpt(&pattern.replace('\\', "\\\\"))
        );
        self.found(codes::REGEX_AS_TEXT, node, message, &sep, help);
    }

    fn lint_prefix(&mut self, step: NodeId) {
        let Some((node, prefix)) = self.plain(step, "prefix") else {
            return;
        };
        let Some(start) = prefix.strip_suffix(['*', '%']) else {
            return;
        };
        let message = "a prefix has no wildcard: the sign is a part of it";
        let help = match start.is_empty() {
            true => "leave `prefix` out for all keys".to_owned(),
            false => format!("write `\"prefix\": \"{}\"`", excerpt(start)),
        };
        self.found(codes::WRONG_VALUE, node, message, &prefix, help);
    }

    fn lint_query(&mut self, step: NodeId) {
        let doc = self.doc;
        const FORM: &str = "a query of Agent99's stores is `{\"collection\": \"orders\", \"where\": \
                            [[\"total\", \">\", 5]], \"orderBy\": \"total\", \"limit\": 10}`";
        if let Some((node, text)) = self.plain(step, "query") {
            let first = text.split_whitespace().next().unwrap_or_default();
            let is_sql = ["select", "insert", "update", "delete", "with"];
            if is_sql.iter().any(|word| first.eq_ignore_ascii_case(word)) {
                let message = "the stores take no SQL";
                self.found(codes::WRONG_VALUE, node, message, &text, FORM);
            }
            return;
        }
        let Some(query) = doc
            .get(step, "query")
            .filter(|n| self.is_literal_object(*n))
        else {
            return;
        };
        self.lint_where(query);
        let known = |key: &&str| doc.get(query, key).is_some();
        for (key, node) in doc.members(query) {
            let shown = Self::shown(key);
            if let ("limit", Kind::Number(n)) = (shown.as_str(), doc.kind(node))
                && (n < 1.0 || n.fract() != 0.0)
                && known(&"collection")
            {
                let message = format!("`limit` cannot be {n}");
                let help = "write a whole number from 1 on, or leave it out";
                self.found(codes::WRONG_VALUE, node, message, "", help);
            }
            if QUERY.contains(&shown.as_str()) {
                continue;
            }
            let meant = QUERIES.iter().find(|row| row.0.contains(&shown.as_str()));
            let ours = QUERY.iter().any(known);
            let near = match meant {
                None if ours => self.nearest(&shown, QUERY.iter().copied()),
                _ => None,
            };
            if let Some(near) = near.filter(|near| doc.get(query, near).is_none()) {
                let message = format!("a query has no `{}`", excerpt(&shown));
                let help = format!("did you mean `{near}`? {FORM}");
                self.found(codes::UNKNOWN_INPUT, node, message, &shown, help);
                continue;
            }
            // A query without a known member may be for another store.
            let Some((_, name)) = meant.filter(|row| !known(&row.1)) else {
                continue;
            };
            let message = format!("a query has no `{}`", excerpt(&shown));
            let help = format!("did you mean `{name}`? {FORM}");
            self.found(codes::UNKNOWN_INPUT, node, message, &shown, help);
        }
    }

    fn lint_document(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let Some(document) = doc.get(step, "doc").filter(|n| self.is_literal_object(*n)) else {
            return;
        };
        if doc.get(document, "$expr").is_some() || doc.get(document, "=").is_some() {
            return;
        }
        for name in ["embedding", "id"] {
            if name == "id" && op != "storeVectorUpsert" || doc.get(document, name).is_some() {
                continue;
            }
            let other = VECTORS.iter().find_map(|key| doc.get(document, key));
            let other = other.filter(|_| name == "embedding");
            let message = format!("the document needs `{name}`");
            let help = match (name, other) {
                ("id", _) => "add `\"id\": \"...\"`, by which it is replaced".to_owned(),
                (_, Some(_)) => "call its vector `embedding`".to_owned(),
                _ => "add `\"embedding\": ...`, what `storeVectorize {text, result}` gives"
                    .to_owned(),
            };
            self.found(
                codes::MISSING_INPUT,
                other.unwrap_or(document),
                message,
                name,
                help,
            );
        }
    }

    /// Reports a text that `hash` digests as written, where a variable or argument is meant.
    fn lint_digested(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "value") else {
            return;
        };
        let Some(text) = super::text_of(doc, node) else {
            return;
        };
        let path = match text.strip_prefix("args.") {
            Some(_) if is_path(&text) => text.clone(),
            None if self.is_argument(&text) => format!("args.{text}"),
            None if text.contains('.') && is_path(&text) => {
                let root = text.split('.').next().unwrap_or(&text);
                match self.vars.knows(root.as_bytes()) {
                    true => text.clone(),
                    false => return,
                }
            }
            _ => return,
        };
        let message = "`hash` digests a text as it is written: this names nothing";
        let help = format!("write `\"value\": {}`", self.node_for(&path));
        self.found(codes::NAME_AS_TEXT, node, message, &text, help);
    }

    /// Reports a request body for a method that sends none.
    fn lint_request_body(&mut self, step: NodeId) {
        let doc = self.doc;
        let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
        let Some(body) = given("body") else {
            return;
        };
        let method = given("method").and_then(|n| super::text_of(doc, n));
        let sends_none = match method.as_deref() {
            Some(method) => ["get", "head"]
                .iter()
                .any(|m| method.eq_ignore_ascii_case(m)),
            None => return,
        };
        if sends_none {
            let method = method.unwrap_or_default().to_ascii_uppercase();
            let message = format!("a {method} request has no body");
            let help = "write `\"method\": \"POST\"`, or put what is asked for into `url`";
            self.found(codes::WRONG_VALUE, body, message, "body", help);
        }
    }

    /// Reports `a.b` as a key, which is one name with a dot in it.
    fn lint_member_key(&mut self, step: NodeId, op: &str) {
        if self.lint_item_key(step) {
            return;
        }
        let Some((node, key)) = self.plain(step, "key") else {
            return;
        };
        if !is_path(&key) || !key.contains('.') {
            return;
        }
        let object = self.text(step, "object");
        let object = object.unwrap_or_else(|| "object".to_owned());
        let (inner, last) = key.rsplit_once('.').unwrap_or((&key, ""));
        let message = "`key` is one name: this makes no path into the object";
        let help = format!(
            "name the inner object: `{{\"op\": \"{op}\", \"object\": \"{object}.{inner}\", \"key\": \
             \"{last}\", ...}}`"
        );
        self.found(codes::WRONG_VALUE, node, message, &key, help);
    }

    /// Reports an item number that no list has; returns whether it did.
    fn lint_item_key(&mut self, step: NodeId) -> bool {
        let doc = self.doc;
        let (Some(object), Some(node)) = (doc.get(step, "object"), doc.get(step, "key")) else {
            return false;
        };
        if !matches!(self.holds_of_value(object), Holds::List(_)) {
            return false;
        }
        let key = match doc.kind(node) {
            Kind::Number(n) if n >= 0.0 && n.fract() == 0.0 => return false,
            Kind::Number(n) => n.to_string(),
            _ => match self.plain(step, "key") {
                Some((_, key)) if !key.bytes().all(|b| b.is_ascii_digit()) => key,
                _ => return false,
            },
        };
        let message = format!(
            "a list has items by their numbers, and none is `{}`",
            excerpt(&key)
        );
        let help = match key.starts_with('-') {
            true => {
                "count from 0: the last item is the length less 1, \
                     `{\"$expr\": \"binary\", \"op\": \"-\", ...}`"
            }
            false => {
                "write the number of an item, from 0 on; what is added comes by `push {list, item}`"
            }
        };
        self.found(codes::WRONG_VALUE, node, message, &key, help);
        true
    }

    fn lint_token(&mut self, step: NodeId) {
        if let Some((node, token)) = self.plain(step, "token")
            && !token.starts_with("proc_")
        {
            let message = "this is no token: those begin with `proc_`";
            let help = "give the `result` of `storeProcedure {ast, result}`, which is the token";
            self.found(codes::WRONG_VALUE, node, message, &token, help);
        }
    }

    /// Reports a number as a text, which others are concatenated to.
    fn lint_initial(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "initial") else {
            return;
        };
        let Some(text) = super::text_of(doc, node) else {
            return;
        };
        if text.trim().is_empty() || text.trim().parse::<f64>().is_err() {
            return;
        }
        let message = format!(
            "`initial` is the text \"{}\": `+` joins texts",
            excerpt(&text)
        );
        let help = format!("write the number without quotes: {}", text.trim());
        self.found(codes::WRONG_KIND, node, message, &text, help);
    }

    /// Reports inputs that need another `format` of the result.
    fn lint_random(&mut self, step: NodeId) {
        let doc = self.doc;
        let format = self.text(step, "format");
        let is_text = format.as_deref() == Some("base36");
        let plain = format.is_none() && doc.get(step, "format").is_none();
        let ignored: &[&str] = match (is_text, plain, format.as_deref()) {
            (true, ..) => &["min", "max"],
            (_, true, _) | (_, _, Some("float" | "integer")) => &["length"],
            _ => &[],
        };
        for key in ignored {
            let Some(node) = doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null) else {
                continue;
            };
            let message = match is_text {
                true => format!("`{key}` is not looked at with the format `base36`"),
                false => format!("`{key}` is looked at with the format `base36` only"),
            };
            let help = match is_text {
                true => {
                    "remove it: `length` says how long the text is; for a number write \
                         `\"format\": \"integer\"`"
                }
                false => "remove it, or write `\"format\": \"base36\"` for a text",
            };
            self.found(codes::WRONG_VALUE, node, message, key, help);
        }
    }

    /// Reports exported names that no variable has.
    fn lint_exports(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(keys) = doc.get(step, "keys") else {
            return;
        };
        let named = doc.elements(keys).chain(doc.members(keys).map(|(_, n)| n));
        let named: Vec<NodeId> = named.collect();
        for node in named {
            let Some(text) = doc.str(node).filter(|text| self.is_plain_text(text)) else {
                continue;
            };
            let shown = Self::shown(text);
            let root = shown.split('.').next().unwrap_or(&shown);
            if !super::names::is_identifier(root) || root == "args" {
                continue;
            }
            let message = format!("no variable is called `{root}`, so this gives the text itself");
            let help = match self.nearest_variable(&shown) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("bind it before; an argument is `{{\"{root}\": \"args.{shown}\"}}`")
                }
            };
            self.told(node);
            self.found(codes::UNKNOWN_NAME, node, message, &shown, help);
        }
    }

    /// Reports the variables of `varsLet` nested in one of its keys.
    fn lint_let(&mut self, step: NodeId) {
        let doc = self.doc;
        let own = |key: &[u8]| !matches!(key, b"op" | b"result" | b"resultConst");
        let mut names = doc.members(step).filter(|(key, _)| own(key));
        let (Some((key, node)), None) = (names.next(), names.next()) else {
            return;
        };
        let shown = Self::shown(key);
        let wraps = [
            "vars",
            "variables",
            "values",
            "bindings",
            "let",
            "assignments",
            "locals",
        ];
        if !wraps.contains(&shown.as_str()) || !self.is_literal_object(node) {
            return;
        }
        if doc.get(node, "$expr").is_some() || doc.is_empty(node) {
            return;
        }
        let inner: Vec<String> = doc
            .members(node)
            .map(|(name, _)| format!("\"{}\": ...", Self::shown(name)))
            .collect();
        for (name, _) in doc.members(node) {
            self.expect_name(name);
        }
        let message = format!("this sets one variable, called `{shown}`");
        let help = format!(
            "the names stand in the step itself: `{{\"op\": \"varsLet\", {}}}`",
            excerpt(&inner.join(", "))
        );
        self.found(codes::UNKNOWN_INPUT, node, message, &shown, help);
    }
}
