//! Type inference: the kinds of values that expressions produce.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use a99_compiler::expr::{BinOp, UnOp};
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins::{self, Gives, Method, Receiver};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::sig::{AtomSig, Form};
use a99_core::text::wtf8_to_string_lossy;

/// Members of model services' answers; `llmPredict` returns only their text.
#[rustfmt::skip]
pub(super) const OF_SERVICE: &[&str] = &[
    "content", "text", "message", "choices", "completion", "completions", "output", "response",
    "answer", "generations", "candidates", "usage", "tokens", "data", "body", "role", "model",
    "output_text", "finish_reason", "stop_reason", "tool_calls", "toolCalls",
];

impl Members {
    /// The members of an atom's result.
    pub(super) fn named(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Members::Answer => &["value", "error"],
            Members::Response => &["status", "statusText", "url", "headers", "body"],
            Members::Match => &["match", "index", "groups", "named"],
            Members::Output => &["stdout", "stderr", "exitCode"],
            Members::Page => &["keys", "cursor"],
            Members::Round => &["number", "text", "calls"],
            Members::Loop => &[
                "text",
                "value",
                "valueError",
                "rounds",
                "stopReason",
                "messages",
                "usage",
                "calls",
            ],
            Members::Chat => &[
                "text",
                "toolCalls",
                "stopReason",
                "message",
                "usage",
                "valueError",
            ],
            Members::Call => &["id", "name", "input"],
            Members::Usage => &["inputTokens", "outputTokens"],
            Members::Identity => &["agent", "channel", "handle", "id"],
            Members::Changes => &["changes", "lastInsertRowId"],
            Members::Unknown | Members::Written(_) | Members::Schema(_) => return None,
        })
    }

    /// The kind of such a member.
    pub(super) fn held(self, name: &str) -> Holds {
        match (self, name) {
            (
                Members::Response | Members::Match | Members::Output | Members::Round,
                "status" | "index" | "exitCode" | "number",
            )
            | (Members::Loop, "rounds")
            | (Members::Usage, _)
            | (Members::Changes, "changes") => Holds::Number,
            (
                Members::Response
                | Members::Match
                | Members::Output
                | Members::Round
                | Members::Chat,
                "statusText" | "url" | "match" | "stdout" | "stderr" | "text" | "stopReason",
            )
            | (Members::Loop, "text" | "stopReason")
            | (Members::Call, "id" | "name") => Holds::Made,
            (Members::Match, "groups") | (Members::Page, "keys") => Holds::List(Items::Texts),
            (Members::Chat, "toolCalls") => Holds::List(Items::Calls),
            (Members::Chat | Members::Loop, "usage") => Holds::Object(Members::Usage),
            (Members::Chat, "message") | (Members::Call, "input") => {
                Holds::Object(Members::Unknown)
            }
            _ => Holds::Any,
        }
    }
}

impl Holds {
    /// The result kind of a function or method, by its row.
    fn of_builtin(gives: Gives) -> Holds {
        match gives {
            Gives::Number | Gives::Index => Holds::Number,
            Gives::Bool => Holds::Bool,
            Gives::Text => Holds::Made,
            Gives::Texts => Holds::List(Items::Texts),
            Gives::List | Gives::Items => Holds::List(Items::Unknown),
            Gives::Object => Holds::Object(Members::Unknown),
            Gives::Date => Holds::Date,
            Gives::Set => Holds::Set,
            Gives::Item | Gives::Part | Gives::Joined | Gives::Itself | Gives::Unknown => {
                Holds::Any
            }
        }
    }
}

impl Rules<'_, '_> {
    /// The known members of a value.
    pub(super) fn members_of(&self, holds: Holds) -> Vec<String> {
        let doc = self.doc;
        let of = |node: Option<NodeId>| {
            let members = node.into_iter().flat_map(|node| doc.members(node));
            members
                .take(64)
                .map(|(name, _)| Self::shown(name))
                .collect()
        };
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match holds {
            Holds::Object(Members::Written(node)) => of(Some(node)),
            Holds::Object(Members::Schema(schema)) => of(doc.get(schema, "properties")),
            Holds::Object(members) => owned(members.named().unwrap_or_default()),
            _ => {
                let receiver = holds.receiver();
                let rows = builtins::MEMBERS
                    .iter()
                    .filter(|row| Some(row.0) == receiver);
                rows.map(|row| row.1.to_owned()).collect()
            }
        }
    }
}

impl<'a> Rules<'_, 'a> {
    /// The kind of the `result` of a step with this op.
    pub(super) fn holds_of_call(&self, step: NodeId, op: &str, sig: Option<&AtomSig>) -> Holds {
        let doc = self.doc;
        let given = |key: &str| self.text(step, key);
        match sig.and_then(|sig| sig.form) {
            Some(Form::CallAll) => return Holds::List(Items::Answers),
            Some(Form::ToolLoop) => return Holds::Object(Members::Loop),
            Some(Form::MathCalc) => {
                return doc.get(step, "expr").map_or(Holds::Any, |n| self.given(n));
            }
            Some(Form::VarGet) => {
                let key = doc.get(step, "key");
                return key.map_or(Holds::Any, |key| self.holds_of_value(key));
            }
            Some(Form::Filter) => {
                let items = doc.get(step, "items");
                return match items.map(|items| self.holds_of_value(items)) {
                    Some(holds @ Holds::List(_)) => holds,
                    _ => Holds::List(Items::Unknown),
                };
            }
            Some(Form::Find) => return self.holds_of_item(step),
            _ => {}
        }
        match op {
            "httpFetch" => match given("responseType").as_deref() {
                Some("text" | "dataUrl") => return Holds::Made,
                Some("response") => return Holds::Object(Members::Response),
                _ => {}
            },
            "regexFind" => return Holds::Object(Members::Match),
            "shellExec" => return Holds::Object(Members::Output),
            "storeList" => return Holds::Object(Members::Page),
            "llmChat" => return Holds::Object(Members::Chat),
            "regexFindAll" => return Holds::List(Items::Matches),
            "keys" | "split" => return Holds::List(Items::Texts),
            "storeVectorSearch" | "storeSearch" | "agentStorageQuery" => {
                return Holds::List(Items::Objects);
            }
            "agentStorageRun" => return Holds::Object(Members::Changes),
            "agentIdentity" => return Holds::Object(Members::Identity),
            "agentStorageGet" | "agentState" | "agentSettings" => {
                return Holds::Object(Members::Unknown);
            }
            "hash" | "uuid" => return Holds::Text,
            "llmPredict" => return Holds::Answered,
            "push" => {
                let list = doc.get(step, "list");
                return match list.map(|list| self.holds_of_value(list)) {
                    Some(holds @ Holds::List(_)) => holds,
                    _ => Holds::Any,
                };
            }
            "sort" | "unique" => {
                let items = doc.get(step, "items");
                return match items.map(|items| self.holds_of_value(items)) {
                    Some(holds @ Holds::List(_)) => holds,
                    _ => Holds::List(Items::Unknown),
                };
            }
            "random" => {
                return match given("format").as_deref() {
                    Some("float" | "integer") => Holds::Number,
                    None if doc.get(step, "format").is_none() => Holds::Number,
                    _ => Holds::Any,
                };
            }
            _ => {}
        }
        sig.map_or(Holds::Any, |sig| Holds::of_kinds(sig.gives.kinds))
    }

    /// The kind of an expression.
    pub(super) fn holds_of(&self, ir: &Ir<'a>, depth: u32) -> Holds {
        let Some(depth) = depth.checked_sub(1) else {
            return Holds::Any;
        };
        match ir.kind {
            IrKind::Lit(Lit::Bool(_)) => Holds::Bool,
            IrKind::Lit(Lit::Number(_)) => Holds::Number,
            IrKind::Lit(Lit::Text(text)) => of_text(text),
            IrKind::Lit(_) | IrKind::Fail { .. } => Holds::Any,
            IrKind::Index { object, index, .. } => {
                let by_number = self.holds_of(index, depth) == Holds::Number;
                match self.holds_of(object, depth) {
                    Holds::List(items) if by_number => self.item_held(items),
                    _ => Holds::Any,
                }
            }
            IrKind::Data(node) => self.holds_of_literal(node),
            IrKind::Ident(name) => self.holds_of_ident(ir, name),
            IrKind::Member {
                object, property, ..
            } => match self.holds_of(object, depth) {
                Holds::Any => Holds::Any,
                object => {
                    let property = wtf8_to_string_lossy(property);
                    self.member_held(object, &property).unwrap_or(Holds::Any)
                }
            },
            IrKind::Unary(UnOp::Not, _) => Holds::Bool,
            IrKind::Unary(UnOp::Typeof, _) => Holds::Text,
            IrKind::Unary(..) => Holds::Number,
            IrKind::Binary(BinOp::Add, a, b) => {
                match (self.holds_of(a, depth), self.holds_of(b, depth)) {
                    (Holds::Number | Holds::Bool, Holds::Number | Holds::Bool) => Holds::Number,
                    (a, b) if a.is_text() || b.is_text() => Holds::Made,
                    _ => Holds::Any,
                }
            }
            IrKind::Binary(op, ..) => match op {
                BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem | BinOp::Pow => Holds::Number,
                _ => Holds::Bool,
            },
            IrKind::Logical(_, a, b) | IrKind::Conditional(_, a, b) => {
                self.holds_of(a, depth).or(self.holds_of(b, depth))
            }
            IrKind::Array(_) => Holds::List(Items::Unknown),
            IrKind::Object(_) => Holds::Object(Members::Unknown),
            IrKind::Context(_) => Holds::Any,
            IrKind::Call { callee, .. } => {
                let name = wtf8_to_string_lossy(callee);
                Holds::of_builtin(builtins::function_gives("", &name))
            }
            IrKind::Method { object, name, .. } => self.holds_of_method(object, name),
        }
    }

    fn holds_of_method(&self, object: &Ir<'a>, name: &[u8]) -> Holds {
        let name = &*wtf8_to_string_lossy(name);
        if let IrKind::Ident(ns) = object.kind
            && !self.vars.knows(ns)
            && builtins::NAMESPACES.iter().any(|n| n.as_bytes() == ns)
        {
            let ns = wtf8_to_string_lossy(ns);
            return Holds::of_builtin(builtins::function_gives(&ns, name));
        }
        // On a set, some methods that return a list for a list return a set.
        let of_sets =
            |row: &Method| row.calls && row.on.contains(&Receiver::Set) && row.gives.is_list();
        let row = builtins::method_row(name).filter(|row| !row.maybe_undefined && !of_sets(row));
        row.map_or(Holds::Any, |row| Holds::of_builtin(row.gives))
    }

    /// The kind of a name in an expression: the step's `vars` and its item come first.
    fn holds_of_ident(&self, ir: &Ir<'a>, name: &[u8]) -> Holds {
        let doc = self.doc;
        let step = doc.parent(ir.at.node).filter(|_| ir.at.inner.is_some());
        if let Some(step) = step {
            let vars = doc.get(step, "vars");
            if let Some(value) = vars.and_then(|vars| doc.member(vars, name)) {
                return self.holds_of_value(value);
            }
            if matches!(self.form_of(step), Some(Form::Filter | Form::Find))
                && doc.get(step, "as").and_then(|n| doc.str(n)) == Some(name)
            {
                return self.holds_of_item(step);
            }
        } else if let Some((_, step)) = self.lint.chosen.filter(|chosen| chosen.0 == name) {
            return self.holds_of_item(step);
        }
        let ids = self.vars.of_name(name);
        if !ids.is_empty() {
            return self.holds_of_vars(ids);
        }
        match str::from_utf8(name).is_ok_and(|name| builtins::global(name).is_some()) {
            false => self.holds_of_argument(name),
            true => Holds::Any,
        }
    }
}

/// The kind of a text in the source.
pub(super) fn of_text(text: &[u8]) -> Holds {
    let number = str::from_utf8(text).is_ok_and(super::expressions::is_number);
    match number {
        true => Holds::Made,
        false => Holds::Text,
    }
}

/// The kind that a schema declares.
pub(super) fn of_schema(doc: &Document, schema: NodeId) -> Holds {
    let kind = doc.get(schema, "type").and_then(|n| doc.str(n));
    if matches!(kind, None | Some(b"string")) && lists_texts(doc, schema) {
        return Holds::OneOf(schema);
    }
    match kind {
        Some(b"number" | b"integer") => Holds::Number,
        Some(b"string") => Holds::Text,
        Some(b"boolean") => Holds::Bool,
        Some(b"array") => {
            let items = doc.get(schema, "items");
            Holds::List(items.map_or(Items::Unknown, Items::Schema))
        }
        Some(b"object") => {
            let open = doc.get(schema, "additionalProperties");
            let open = open.is_some_and(|n| !matches!(doc.kind(n), Kind::Bool(false)));
            let named = doc.get(schema, "properties");
            match named.filter(|n| !open && !doc.is_empty(*n)) {
                Some(_) => Holds::Object(Members::Schema(schema)),
                None => Holds::Object(Members::Unknown),
            }
        }
        _ => Holds::Any,
    }
}

/// Whether a schema's `enum` lists texts only.
fn lists_texts(doc: &Document, schema: NodeId) -> bool {
    let values = doc.get(schema, "enum");
    let values = values.filter(|values| doc.kind(*values) == Kind::Array && !doc.is_empty(*values));
    values.is_some_and(|values| doc.elements(values).all(|value| doc.str(value).is_some()))
}
