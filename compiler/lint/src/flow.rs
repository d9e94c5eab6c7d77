//! Data-flow rules: use before definition, dead stores, constants that are set again, and
//! results that no step returns.
//!
//! Codes: `lint.constant_reassigned`, `lint.no_result`, `lint.overwritten_value`,
//! `lint.used_before_set`.

use super::Rules;
use a99_compiler::vars::{VarId, VarMap};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// The kind of binding that a step makes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// A step that surely binds a meaningful value.
    Value,
    /// An initial value: `0`, `""`, `null`, `[]`.
    Start,
    /// A step whose value may be `undefined`, which binds nothing.
    Maybe,
}

/// A value that no step has read yet.
struct Unread {
    node: NodeId,
    region: u32,
    writer: Writer,
}

/// Data-flow state in the order of the steps.
#[derive(Default)]
pub(super) struct Flow {
    /// The enclosing bodies, innermost last.
    open: Vec<u32>,
    /// The parent of each body.
    around: Vec<Option<u32>>,
    /// Number of enclosing bodies of `try`.
    pub(super) tries: u32,
    unread: VarMap<Unread>,
    /// The variables that are used.
    pub(super) usage: super::unused_names::Usage,
    /// The kinds of values in variables.
    pub(super) holding: super::kinds::Holding,
    /// Constants, and the bodies that define them.
    constants: VarMap<u32>,
}

impl Flow {
    pub(super) fn here(&self) -> u32 {
        self.open.last().copied().unwrap_or(u32::MAX)
    }

    /// The literal that a variable surely holds, also where later steps of the loop bind it.
    pub(super) fn literal(&self, id: VarId, in_loop: bool) -> Option<NodeId> {
        let (node, region) = self.holding.literal(id, in_loop)?;
        self.is_around(region, self.here()).then_some(node)
    }

    /// Whether the value of a variable is still unread.
    pub(super) fn is_unread(&self, id: VarId) -> bool {
        self.unread.get(id).is_some()
    }

    /// Whether `outer` is the body `region` or encloses it.
    pub(super) fn is_around(&self, outer: u32, region: u32) -> bool {
        let mut at = Some(region);
        while let Some(region) = at {
            if region == outer {
                return true;
            }
            at = self.around.get(region as usize).copied().flatten();
        }
        false
    }
}

impl<'a> Rules<'_, 'a> {
    /// Enters a body of steps.
    pub(super) fn on_open_body(&mut self, steps: &[NodeId]) {
        let flow = &mut self.lint.flow;
        let id = flow.around.len() as u32;
        flow.around.push(flow.open.last().copied());
        flow.open.push(id);
        self.lint_neighbours(steps);
    }

    /// Leaves it.
    pub(super) fn on_close_body(&mut self) {
        self.lint.flow.open.pop();
    }

    /// Enters (+1) or leaves (-1) a body that control may leave at any step.
    pub(super) fn on_try(&mut self, by: i32) {
        let lint = &mut *self.lint;
        lint.flow.tries = lint.flow.tries.saturating_add_signed(by);
    }

    /// Resets the state at the end of a function, whose variables go out of scope.
    pub(super) fn forget_flow(&mut self) {
        self.lint.flow = Flow::default();
    }

    /// Records that the text at `node` binds a variable of the innermost scope, and reports a dead
    /// store.
    pub(super) fn lint_wrote(&mut self, name: &[u8], node: NodeId, writer: Writer) {
        let Some(id) = self.own_variable(name) else {
            return;
        };
        self.lint_lost_name(id, name, node);
        // A source has no names for values that its statements drop.
        let is_made = name == b"_" || self.is_source() && name.starts_with(b"_");
        let lint = &mut *self.lint;
        // In a `try`, a step may exist only to fail.
        if lint.flow.tries == 0 {
            lint.flow.usage.wrote(id, node);
        }
        let region = lint.flow.here();
        // In a loop the next iteration may read it, in a `try` the handler.
        let straight = lint.whiles == 0 && lint.flow.tries == 0;
        let next = Unread {
            node,
            region,
            writer,
        };
        let before = match straight {
            true => lint.flow.unread.insert(id, next),
            false => lint.flow.unread.remove(id),
        };
        let Some(before) = before.filter(|_| straight) else {
            return;
        };
        if !is_made
            && before.writer == Writer::Value
            && writer == Writer::Value
            && before.node != node
            && lint.flow.is_around(region, before.region)
        {
            let shown = Self::shown(name);
            let text = format!(
                "this value of `{}` is overwritten before anything reads it",
                excerpt(&shown)
            );
            let help = "give the two values different names, or remove this step";
            self.found(codes::OVERWRITTEN_VALUE, before.node, text, &shown, help);
        }
    }

    /// Records that `varSet` bound a name.
    pub(super) fn on_wrote(&mut self, name: &[u8], node: NodeId, value: Option<NodeId>) {
        let writer = self.lint_writer(value);
        self.lint_wrote(name, node, writer);
    }

    /// The kind of binding that a literal makes.
    pub(super) fn lint_writer(&self, value: Option<NodeId>) -> Writer {
        let doc = self.doc;
        match value.map(|node| doc.kind(node)) {
            None | Some(Kind::Null | Kind::Bool(_)) => Writer::Start,
            Some(Kind::Number(n)) if n == 0.0 || n.abs() == 1.0 => Writer::Start,
            Some(Kind::String(b"")) => Writer::Start,
            Some(Kind::Object) if value.is_some_and(|node| self.is_empty_node(node)) => {
                Writer::Start
            }
            Some(Kind::Array | Kind::Object) if value.is_some_and(|node| doc.is_empty(node)) => {
                Writer::Start
            }
            _ => Writer::Value,
        }
    }

    /// Whether a node is an empty list or object, or a typical initial literal.
    fn is_empty_node(&self, node: NodeId) -> bool {
        let doc = self.doc;
        let tag = doc.get(node, "$expr").and_then(|tag| doc.str(tag));
        let parts = match tag {
            Some(b"array") => doc.get(node, "elements"),
            Some(b"object") => doc.get(node, "properties"),
            Some(b"literal") => {
                return self.lint_writer(doc.get(node, "value")) == Writer::Start;
            }
            _ => return false,
        };
        parts.is_none_or(|parts| doc.is_empty(parts))
    }

    /// Records a read of a variable.
    pub(super) fn on_read(&mut self, chain: &[VarId]) {
        let lint = &mut *self.lint;
        lint.flow.usage.reads(chain);
        for id in chain {
            lint.flow.unread.remove(*id);
        }
        if let Some(id) = chain.first() {
            lint.lost.remove(*id);
        }
    }

    /// Records that every variable may be read.
    pub(super) fn on_read_all(&mut self) {
        let lint = &mut *self.lint;
        lint.flow.usage.reads_all();
        lint.flow.holding.forget_literals();
        lint.flow.unread.clear();
        lint.lost.clear();
    }

    /// Records the definition of a constant.
    pub(super) fn on_constant(&mut self, id: VarId) {
        let lint = &mut *self.lint;
        let region = lint.flow.here();
        lint.flow.constants.insert(id, region);
    }

    /// Reports a binding of a name that is surely a constant.
    pub(super) fn on_may_bind(&mut self, name: &[u8], node: NodeId) {
        let lint = &*self.lint;
        if lint.flow.constants.is_empty() {
            return;
        }
        let here = lint.flow.here();
        let ids = self.vars.all_of(name);
        let mut made = ids.iter().filter_map(|id| lint.flow.constants.get(*id));
        if !made.any(|region| lint.flow.is_around(*region, here)) {
            return;
        }
        let shown = Self::shown(name);
        let text = format!(
            "`{}` is a constant, so setting it again fails",
            excerpt(&shown)
        );
        let help = "use `varSet` where it is made, or another name here";
        self.found(codes::CONSTANT_REASSIGNED, node, text, &shown, help);
    }

    /// Reports a constant whose name is surely bound already.
    pub(super) fn on_not_free(&mut self, name: &[u8], node: NodeId) {
        let ids = self.vars.chain(name);
        if !ids.iter().any(|id| self.vars.is_bound(*id)) {
            return;
        }
        let shown = Self::shown(name);
        let text = format!(
            "`{}` is bound already, so making it a constant fails",
            excerpt(&shown)
        );
        let help = "use `constSet` where it is bound first, or another name here";
        self.found(codes::CONSTANT_REASSIGNED, node, text, &shown, help);
    }

    /// Whether only later steps bind a name. In a loop they may have run.
    pub(super) fn is_later(&self, name: &[u8]) -> bool {
        self.lint.whiles == 0 && self.vars.is_only_later(name)
    }

    /// Reports a read of a name that only later steps bind; here it means `what`.
    pub(super) fn found_later(
        &mut self,
        node: NodeId,
        inner: Option<(u32, u32)>,
        name: &str,
        what: &str,
    ) {
        let text = format!(
            "`{}` is bound by a later step only, so here it is {what}",
            excerpt(name)
        );
        let help = format!(
            "move the step that binds `{}` before this one",
            excerpt(name)
        );
        self.found(codes::USED_BEFORE_SET, (node, inner), text, name, help);
    }

    /// Reports a program that returns nothing: neither a schema nor a value.
    pub(super) fn on_program_end(&mut self) {
        if self.has_outer() || self.has_errors() {
            return;
        }
        let doc = self.doc;
        let Some(steps) = doc.get(doc.root(), "steps") else {
            return;
        };
        let binds = self.vars.known_names().next().map(Self::shown);
        let Some(name) = binds else { return };
        let returns: Vec<NodeId> = self.facts.returns_in(steps).collect();
        let says =
            |step: &NodeId| doc.get(*step, "schema").is_some() || doc.get(*step, "value").is_some();
        if returns.iter().any(says) {
            return;
        }
        let by_source = format!("end with `return {{ {name} }}`");
        let help = format!(
            "return variables, `{{\"op\": \"return\", \"schema\": {{\"type\": \"object\", \
             \"properties\": {{\"{name}\": {{}}}}}}}}`, or one value, `{{\"op\": \"return\", \
             \"value\": \"{name}\"}}`"
        );
        let help = match self.is_source() {
            true if name.starts_with('_') => "end with `return { name: value }`".to_owned(),
            true => by_source,
            false => help,
        };
        if let Some(step) = returns.last() {
            let text = "this `return` gives nothing: it has neither `schema` nor `value`";
            return self.found(codes::NO_RESULT, *step, text, "return", help);
        }
        // A program may run for its side effects alone.
        if self.is_pure(steps) {
            let text = "no step returns anything, and none does anything else";
            self.found(codes::NO_RESULT, steps, text, "", help);
        }
    }
}
