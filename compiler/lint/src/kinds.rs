//! Kinds of values in variables, as far as the earlier steps determine them.

use super::inference::{of_schema, of_text};
use super::origins::Origin;
use super::{Rules, Writer};
use a99_compiler::ir::{Ir, expr_text};
use a99_compiler::vars::{VarId, VarMap};
use a99_core::builtins::{self, Receiver};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{Form, JsonKinds};

/// Depth to which an expression is analysed for its kind.
const MAX_DEPTH: u32 = 4;

/// The kind of a value: of a name, an expression or an argument.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Unknown.
    Any,
    Bool,
    Number,
    /// A text that a step made, possibly a numeric one.
    Made,
    /// A declared text, or one written in the program that is not a number.
    Text,
    /// One of the texts that a schema's `enum` lists.
    OneOf(NodeId),
    List(Items),
    Object(Members),
    Set,
    Date,
    /// A model's answer: a text, unless the host's model returns data.
    Answered,
}

/// The kind of a list's items.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Items {
    Unknown,
    /// Each item has this schema.
    Schema(NodeId),
    /// Answers of `callAll`.
    Answers,
    /// Matches of a regular expression.
    Matches,
    /// Objects with unknown members.
    Objects,
    Texts,
    /// Tool calls that a model requests.
    Calls,
}

/// The members of an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Members {
    Unknown,
    /// Members written in the program.
    Written(NodeId),
    /// Members of a schema's `properties`.
    Schema(NodeId),
    /// `value` or `error`, of a call that `callAll` made.
    Answer,
    /// An answer of `httpFetch`, with its status.
    Response,
    /// A match of `regexFind`.
    Match,
    /// The output of a command.
    Output,
    /// A page of keys.
    Page,
    /// A round of `llmToolLoop`.
    Round,
    /// The result of `llmToolLoop`.
    Loop,
    /// An answer of `llmChat`.
    Chat,
    /// A tool call that the answer requests.
    Call,
    /// The tokens that an answer took.
    Usage,
    /// The identity of an agent.
    Identity,
    /// The changes of a statement.
    Changes,
}

/// Facts about a variable.
struct Known {
    holds: Holds,
    /// The body that binds it first.
    region: u32,
    /// The kind that the last step binds, and its body.
    last: (Holds, u32),
}

/// Facts about the variables of a function.
#[derive(Default)]
pub(super) struct Holding {
    known: VarMap<Known>,
    /// Steps that bind a variable and were not visited yet.
    pending: VarMap<u32>,
    /// The literals last bound to variables, and the bodies of these bindings.
    literals: VarMap<(NodeId, u32)>,
    /// The atoms that produced the last values of variables, and for a length, its list.
    pub(super) origins: VarMap<(Origin, Option<NodeId>)>,
    /// The last expression and its kind.
    given: Option<(NodeId, Holds)>,
}

impl Holding {
    /// The literal last bound to a variable, and the body of the binding. `None` if a later step
    /// may have bound the variable in the previous iteration.
    pub(super) fn literal(&self, id: VarId, in_loop: bool) -> Option<(NodeId, u32)> {
        let waits = self.pending.get(id).is_some_and(|writes| *writes > 0);
        self.literals
            .get(id)
            .copied()
            .filter(|_| !(waits && in_loop))
    }

    /// The atom that produced a variable's last value, unless a later step may have bound it.
    pub(super) fn origin(&self, id: VarId, in_loop: bool) -> Option<(Origin, Option<NodeId>)> {
        let waits = self.pending.get(id).is_some_and(|writes| *writes > 0);
        self.origins
            .get(id)
            .copied()
            .filter(|_| !(waits && in_loop))
    }

    /// Steps that bind a variable and were not visited yet.
    pub(super) fn writes(&self, id: VarId) -> Option<u32> {
        self.pending.get(id).copied()
    }

    pub(super) fn forget_literals(&mut self) {
        self.literals.clear();
    }
}

impl Holds {
    /// A round of `llmToolLoop`.
    pub(super) fn round() -> Holds {
        Holds::Object(Members::Round)
    }

    /// The kind that covers both.
    pub(super) fn or(self, other: Holds) -> Holds {
        match (self, other) {
            (a, b) if a == b => a,
            (Holds::List(_), Holds::List(_)) => Holds::List(Items::Unknown),
            (Holds::Object(_), Holds::Object(_)) => Holds::Object(Members::Unknown),
            (a, b) if a.is_text() && b.is_text() => Holds::Made,
            _ => Holds::Any,
        }
    }

    /// The kind in words, for messages.
    pub(super) fn words(self) -> &'static str {
        match self {
            Holds::Any => "a value",
            Holds::Bool => "true or false",
            Holds::Number => "a number",
            Holds::Made | Holds::Text | Holds::OneOf(_) => "a text",
            Holds::List(Items::Answers) => "a list of answers, each `{value}` or `{error}`",
            Holds::List(_) => "a list",
            Holds::Object(Members::Answer) => "an answer of `callAll`, `{value}` or `{error}`",
            Holds::Object(Members::Response) => "an answer of `httpFetch`",
            Holds::Object(Members::Match) => "a match, `{match, index, groups, named}`",
            Holds::Object(Members::Output) => "what a command gave, `{stdout, stderr, exitCode}`",
            Holds::Object(Members::Page) => "a page of keys, `{keys, cursor}`",
            Holds::Object(Members::Round) => "a round, `{number, text, calls}`",
            Holds::Object(Members::Loop) => {
                "what `llmToolLoop` gives, `{text, rounds, stopReason, messages, usage, calls}`"
            }
            Holds::Object(Members::Chat) => "an answer of `llmChat`",
            Holds::Object(Members::Call) => "a call that a model asks for, `{id, name, input}`",
            Holds::Object(Members::Usage) => "what was used, `{inputTokens, outputTokens}`",
            Holds::Object(Members::Identity) => "who the agent is, `{agent, channel, handle, id}`",
            Holds::Object(Members::Changes) => "what changed, `{changes, lastInsertRowId}`",
            Holds::Object(_) => "an object",
            Holds::Set => "a set",
            Holds::Answered => "what a model answered, a text",
            Holds::Date => "a date",
        }
    }

    /// The kind for these JSON kinds, if it is one.
    pub(super) fn of_kinds(kinds: JsonKinds) -> Holds {
        match kinds {
            JsonKinds::BOOLEAN => Holds::Bool,
            JsonKinds::NUMBER => Holds::Number,
            JsonKinds::STRING => Holds::Made,
            JsonKinds::ARRAY => Holds::List(Items::Unknown),
            JsonKinds::OBJECT => Holds::Object(Members::Unknown),
            _ => Holds::Any,
        }
    }

    /// The JSON kind, if there is one.
    pub(super) fn kind(self) -> Option<JsonKinds> {
        Some(match self {
            Holds::Any | Holds::Answered => return None,
            Holds::Bool => JsonKinds::BOOLEAN,
            Holds::Number => JsonKinds::NUMBER,
            Holds::Made | Holds::Text | Holds::OneOf(_) => JsonKinds::STRING,
            Holds::List(_) => JsonKinds::ARRAY,
            Holds::Object(_) | Holds::Set | Holds::Date => JsonKinds::OBJECT,
        })
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Holds::Made | Holds::Text | Holds::OneOf(_))
    }

    pub(super) fn receiver(self) -> Option<Receiver> {
        Some(match self {
            Holds::Number => Receiver::Number,
            Holds::Made | Holds::Text | Holds::OneOf(_) => Receiver::Text,
            Holds::List(_) => Receiver::Array,
            Holds::Set => Receiver::Set,
            Holds::Date => Receiver::Date,
            Holds::Any | Holds::Bool | Holds::Object(_) | Holds::Answered => return None,
        })
    }
}

fn is_index(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

impl<'a> Rules<'_, 'a> {
    fn holding(&mut self) -> &mut Holding {
        &mut self.lint.flow.holding
    }

    /// Records how many steps of its scope bind a variable.
    pub(super) fn on_expect_writes(&mut self, id: VarId, writes: u32) {
        self.holding().pending.insert(id, writes);
    }

    /// Records the kind bound to a name of the innermost scope.
    pub(super) fn lint_holds(&mut self, name: &[u8], holds: Holds) {
        let Some(id) = self.own_variable(name) else {
            return;
        };
        let region = self.lint.flow.here();
        let holding = self.holding();
        holding.literals.remove(id);
        holding.origins.remove(id);
        if let Some(pending) = holding.pending.slot(id) {
            *pending = pending.saturating_sub(1);
        }
        let known = holding.known.slot(id).get_or_insert(Known {
            holds,
            region,
            last: (holds, region),
        });
        known.holds = known.holds.or(holds);
        known.last = (holds, region);
    }

    /// Records the kinds of what a handler binds.
    pub(super) fn on_caught(&mut self, name: &[u8]) {
        self.lint_holds(name, Holds::Made);
        self.lint_holds(b"errorOp", Holds::Made);
    }

    /// Records the kind of a round of a tool loop.
    pub(super) fn on_round(&mut self, name: &[u8]) {
        self.lint_holds(name, Holds::round());
    }

    /// Records the kind bound from a value position.
    pub(super) fn on_holds_value(&mut self, name: &[u8], value: Option<NodeId>) {
        let holds = value.map_or(Holds::Any, |value| self.holds_of_value(value));
        self.lint_holds(name, holds);
        let Some(value) = value else { return };
        if self.is_literal(value) {
            self.lint_holds_literal(name, value);
        } else if holds == Holds::Number
            && let Some(id) = self.own_variable(name)
        {
            self.note_length(id, value);
        }
    }

    /// Whether a value evaluates to itself.
    fn is_literal(&self, value: NodeId) -> bool {
        match self.doc.kind(value) {
            Kind::String(text) => self.is_plain_text(text),
            Kind::Object => self.is_literal_object(value) && !self.is_expr(value),
            _ => true,
        }
    }

    fn lint_holds_literal(&mut self, name: &[u8], value: NodeId) {
        let Some(id) = self.own_variable(name) else {
            return;
        };
        let lint = &mut *self.lint;
        let here = lint.flow.here();
        lint.flow.holding.literals.insert(id, (value, here));
    }

    /// Records the kind of a step's `result`, whose name is at `node`.
    pub(super) fn on_bound_result(
        &mut self,
        step: NodeId,
        name: &[u8],
        node: NodeId,
        may_be_undefined: bool,
    ) {
        let doc = self.doc;
        let op = doc.get(step, "op").and_then(|op| doc.str(op));
        let op = op.unwrap_or_default();
        let name_of_op = str::from_utf8(op).unwrap_or_default();
        let sig = self.signature(name_of_op);
        let holds = self.holds_of_call(step, name_of_op, sig);
        // A pure atom has a value, except for one that parses a text that may contain none; so has
        // a formula whose kind is known.
        let has_value = sig.is_some_and(|sig| match sig.form {
            None => sig.effect.is_local() && op != b"jsonParse",
            Some(form) => form == Form::MathCalc && holds != Holds::Any,
        });
        let writer = match may_be_undefined && !has_value {
            true => Writer::Maybe,
            false => Writer::Value,
        };
        self.lint_holds(name, holds);
        self.note_origin(name, step);
        self.lint_wrote(name, node, writer);
    }

    /// Records the kind of an accumulator: `initial` in the first iteration.
    pub(super) fn on_holds_initial(&mut self, name: &[u8], step: NodeId) {
        let initial = self.doc.get(step, "initial");
        let holds = match initial.map_or(Holds::Any, |initial| self.holds_of_value(initial)) {
            Holds::Object(_) => Holds::Object(Members::Unknown),
            Holds::List(_) => Holds::List(Items::Unknown),
            holds if holds.is_text() => Holds::Made,
            holds => holds,
        };
        self.lint_holds(name, holds);
    }

    /// Records the kind of a name bound to an argument.
    pub(super) fn on_holds_argument(&mut self, name: &[u8], path: &[u8]) {
        let holds = self.holds_of_argument(path);
        self.lint_holds(name, holds);
    }

    /// Records the kind of a loop's item.
    pub(super) fn on_holds_item(&mut self, name: &[u8], step: NodeId) {
        let holds = self.holds_of_item(step);
        self.lint_holds(name, holds);
    }

    pub(super) fn holds_of_item(&self, step: NodeId) -> Holds {
        let items = self.doc.get(step, "items");
        match items.map(|items| self.holds_of_value(items)) {
            Some(Holds::List(items)) => self.item_held(items),
            _ => Holds::Any,
        }
    }

    /// The kind of one item of a list.
    pub(super) fn item_held(&self, items: Items) -> Holds {
        match items {
            Items::Unknown => Holds::Any,
            Items::Schema(schema) => of_schema(self.doc, schema),
            Items::Answers => Holds::Object(Members::Answer),
            Items::Matches => Holds::Object(Members::Match),
            Items::Objects => Holds::Object(Members::Unknown),
            Items::Calls => Holds::Object(Members::Call),
            Items::Texts => Holds::Made,
        }
    }

    /// The kind of the last expression, if it is at this node.
    pub(super) fn given(&self, node: NodeId) -> Holds {
        let given = self.lint.flow.holding.given;
        given
            .filter(|given| given.0 == node)
            .map_or(Holds::Any, |given| given.1)
    }

    /// Stores the kind of an expression.
    pub(super) fn lint_given(&mut self, root: &Ir<'a>) {
        let holds = self.holds_of(root, MAX_DEPTH);
        self.holding().given = Some((root.at.node, holds));
    }

    /// The kind of a node in a value position.
    pub(super) fn holds_of_value(&self, node: NodeId) -> Holds {
        let doc = self.doc;
        match doc.kind(node) {
            Kind::Null => Holds::Any,
            Kind::Bool(_) => Holds::Bool,
            Kind::Number(_) => Holds::Number,
            Kind::String(text) => self.holds_of_path(text).unwrap_or_else(|| of_text(text)),
            Kind::Array => Holds::List(Items::Unknown),
            Kind::Object if self.is_arg(node) => {
                let path = doc.get(node, "path").and_then(|path| doc.str(path));
                path.map_or(Holds::Any, |path| self.holds_of_argument(path))
            }
            Kind::Object if self.is_context(node) => Holds::Any,
            Kind::Object if self.is_expr(node) => {
                let text = expr_text(doc, node).filter(|_| self.is_version_4());
                self.given(text.unwrap_or(node))
            }
            Kind::Object => Holds::Object(self.written_members(node)),
        }
    }

    /// The members of a literal, unless steps may change members.
    fn written_members(&self, node: NodeId) -> Members {
        match self.facts.sets_members {
            true => Members::Unknown,
            false => Members::Written(node),
        }
    }

    /// The kind of a member of a literal, which is data.
    pub(super) fn holds_of_literal(&self, node: NodeId) -> Holds {
        match self.doc.kind(node) {
            Kind::String(text) if !self.has_deep_names() => of_text(text),
            Kind::String(_) => Holds::Any,
            Kind::Object if self.is_literal_object(node) => {
                Holds::Object(self.written_members(node))
            }
            Kind::Object => Holds::Any,
            _ => self.holds_of_value(node),
        }
    }

    /// The kind that a text in a value position resolves to; `None` if it stands for itself.
    pub(super) fn holds_of_path(&self, text: &[u8]) -> Option<Holds> {
        if let Some(path) = text.strip_prefix(b"args.") {
            return Some(self.holds_of_argument(path));
        }
        let ids = self.vars.of_name(text);
        if !ids.is_empty() {
            return Some(self.holds_of_vars(ids));
        }
        if !text.contains(&b'.') || self.is_plain_text(text) {
            return None;
        }
        let shown = Self::shown(text);
        let mut parts = shown.split('.');
        let root = parts.next().unwrap_or_default();
        let mut holds = self.holds_of_name(root.as_bytes());
        for part in parts {
            holds = self.member_held(holds, part).unwrap_or(Holds::Any);
        }
        Some(holds)
    }

    /// The kind of an argument, as `inputSchema` declares it.
    pub(super) fn holds_of_argument(&self, path: &[u8]) -> Holds {
        let doc = self.doc;
        let shown = Self::shown(path);
        let mut parts = shown.split('.');
        let schema = doc.get(doc.root(), "inputSchema");
        let properties = schema.and_then(|schema| doc.get(schema, "properties"));
        let root = parts.next().unwrap_or_default();
        let Some(property) = properties.and_then(|all| doc.get(all, root)) else {
            return Holds::Any;
        };
        let mut holds = of_schema(doc, property);
        for part in parts {
            holds = self.member_held(holds, part).unwrap_or(Holds::Any);
        }
        holds
    }

    /// The kind of a variable, by the steps that bind it.
    pub(super) fn holds_of_name(&self, name: &[u8]) -> Holds {
        self.holds_of_vars(self.vars.of_name(name))
    }

    /// The kind of the variables of a name, innermost last.
    pub(super) fn holds_of_vars(&self, ids: &[VarId]) -> Holds {
        let lint = &*self.lint;
        let mut found: Option<Holds> = None;
        for id in ids.iter().rev().copied() {
            if self.vars.var(id).summary {
                return Holds::Any;
            }
            let holding = &lint.flow.holding;
            let waits = holding.pending.get(id).is_some_and(|writes| *writes > 0);
            let Some(known) = holding.known.get(id) else {
                // The previous iteration may have bound it.
                if self.vars.is_bound(id) || waits && lint.whiles > 0 {
                    return Holds::Any;
                }
                continue;
            };
            if waits && lint.whiles > 0 {
                return Holds::Any;
            }
            // A step on the way to this place bound it last.
            let is_last = lint.flow.is_around(known.last.1, lint.flow.here());
            let known_holds = match is_last && found.is_none() {
                true => known.last.0,
                false => known.holds,
            };
            let holds = found.map_or(known_holds, |found| found.or(known_holds));
            if lint.flow.is_around(known.region, lint.flow.here()) {
                return holds;
            }
            found = Some(holds);
        }
        // An argument may have the name.
        Holds::Any
    }

    /// The kind of a member of a value; `None` if the value has no such member.
    pub(super) fn member_held(&self, holds: Holds, name: &str) -> Option<Holds> {
        let doc = self.doc;
        Some(match holds {
            Holds::Any | Holds::Object(Members::Unknown) => Holds::Any,
            Holds::Answered if super::inference::OF_SERVICE.contains(&name) => return None,
            Holds::Answered => Holds::Any,
            Holds::Object(Members::Written(node)) => match doc.get(node, name) {
                Some(value) => self.holds_of_literal(value),
                None if doc.is_empty(node) => Holds::Any,
                None => return None,
            },
            Holds::Object(Members::Schema(schema)) => {
                let property = doc
                    .get(schema, "properties")
                    .and_then(|all| doc.get(all, name));
                of_schema(doc, property?)
            }
            Holds::Object(members) => {
                let names = members.named().unwrap_or_default();
                names.contains(&name).then(|| members.held(name))?
            }
            Holds::List(items) if is_index(name) => self.item_held(items),
            Holds::Text | Holds::OneOf(_) | Holds::Made if is_index(name) => Holds::Made,
            // A caught error is its text, so is its `message`.
            Holds::Made if name == "message" => Holds::Made,
            _ => {
                let receiver = holds.receiver()?;
                let row = builtins::MEMBERS
                    .iter()
                    .find(|row| row.0 == receiver && row.1 == name);
                match (row?.0, name) {
                    (Receiver::Date, "value") => Holds::Made,
                    _ => Holds::Number,
                }
            }
        })
    }
}
