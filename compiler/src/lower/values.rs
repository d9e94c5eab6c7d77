//! Value positions: how the inputs of a step are resolved (language section 1.4, D13, D14).

use super::{Held, Lower};
use crate::ir::{FromJson, Ir, WrongText};
use a99_core::costs::data_nodes;
use a99_core::json::{Kind, NodeId};
use a99_core::program::{ArgFallback, ChargeKind, Const, KeyIdx, Number, Op, Reg};
use hashbrown::{HashMap, HashSet};

/// Internal atom: reads a part of the request context.
const CONTEXT: &str = "context:read";

impl<'a> Lower<'_, 'a> {
    /// Evaluates a value position: names, paths, `$kind` and `$expr` are resolved.
    pub(super) fn value(&mut self, node: NodeId) -> Reg {
        let doc = self.s.doc;
        let before = self.e.at;
        self.e.at = Some((node, None));
        let r = match doc.kind(node) {
            Kind::Null => self.const_reg(Const::Null),
            Kind::Bool(b) => self.const_reg(Const::Bool(b)),
            Kind::Number(n) => self.const_reg(Const::Number(n)),
            Kind::String(text) => {
                self.on_text(node, text);
                self.string_value(text)
            }
            Kind::Array | Kind::Object => {
                let dst = self.peek();
                self.compound_to(node, dst);
                self.temp()
            }
        };
        self.e.at = before;
        r
    }

    /// Evaluates a value position into a register; see [`Lower::expr_to`] for valid `dst`.
    pub(super) fn value_to(&mut self, node: NodeId, dst: Reg) {
        let mark = self.mark();
        match self.s.doc.kind(node) {
            Kind::Array | Kind::Object => {
                let before = self.e.at;
                self.e.at = Some((node, None));
                self.compound_to(node, dst);
                self.e.at = before;
            }
            Kind::String(text) if !self.vars.is_plain_text(text) => {
                let r = self.value(node);
                self.mov(dst, r);
            }
            kind => {
                if let Kind::String(text) = kind {
                    self.on_text(node, text);
                }
                let before = self.e.at;
                self.e.at = Some((node, None));
                self.raw_to(node, dst);
                self.e.at = before;
            }
        }
        self.release(mark);
    }

    /// Evaluates an optional value position.
    pub(super) fn value_or_undefined(&mut self, step: NodeId, key: &str) -> Reg {
        match self.s.doc.get(step, key) {
            Some(node) => self.value(node),
            None => self.undefined(),
        }
    }

    /// Reads a path of the request context into `dst`.
    pub(super) fn context_to(&mut self, path: &[u8], dst: Reg) {
        let mark = self.mark();
        let base = self.temp();
        self.load_text(base, path);
        self.internal_call(dst, base, 1, CONTEXT);
        self.release(mark);
    }

    fn context_node_to(&mut self, node: NodeId, dst: Reg) {
        let doc = self.s.doc;
        let path = crate::ir::key_text(doc, doc.get(node, "path"), self.s.arena);
        self.context_to(path, dst);
    }

    /// Reads an expression and reports invalid expression texts (D70).
    pub(super) fn read_expr(&mut self, node: NodeId) -> Ir<'a> {
        let most = self.s.options.max_expr_depth as usize;
        let texts = self.s.version_4.then_some(most);
        let reader = FromJson::new(self.s.doc, self.s.arena, texts);
        let ir = reader.read(node);
        for (node, wrong) in reader.wrong.into_inner() {
            match wrong {
                WrongText::Malformed(errors) => self.text_errors(node, &errors, "expression"),
                WrongText::TooDeep => self.text_too_deep(node),
            }
        }
        ir
    }

    fn arg_node(&mut self, node: NodeId) -> Reg {
        let doc = self.s.doc;
        let path = crate::ir::key_text(doc, doc.get(node, "path"), self.s.arena);
        if path.is_empty() && self.s.version_4 {
            return self.all_args();
        }
        self.on_argument(path);
        self.arg(path, ArgFallback::Undefined)
    }

    /// Evaluates an array or object in a value position.
    fn compound_to(&mut self, node: NodeId, dst: Reg) {
        let doc = self.s.doc;
        let mark = self.mark();
        if doc.kind(node) == Kind::Object {
            if self.s.is_arg(node) {
                let r = self.arg_node(node);
                self.mov(dst, r);
                self.release(mark);
                return;
            }
            if self.s.is_context(node) {
                self.context_node_to(node, dst);
                self.release(mark);
                return;
            }
            if self.s.is_expr(node) {
                self.on_node(node);
                let ir = self.read_expr(node);
                self.on_expr(&ir);
                let r = self.expr_or_to(&ir, dst);
                self.mov(dst, r);
                self.release(mark);
                return;
            }
        }
        self.literal_to(node, dst);
        self.release(mark);
    }

    /// A new array that collects values while other code runs.
    pub(super) fn collector(&mut self, cap: usize) -> Held {
        let mark = self.mark();
        let dst = self.temp();
        let cap = cap as u32;
        self.e.emit(Op::NewArr {
            dst,
            cap: Number(cap),
        });
        self.hold(dst, mark)
    }

    /// Appends a value to a collector.
    pub(super) fn collect(&mut self, held: Held, src: Reg) {
        let mark = self.mark();
        let arr = self.take(held);
        self.e.emit(Op::ArrPush { arr, src });
        self.release(mark);
    }

    /// Loads a literal array or object without nodes to resolve, fresh for each evaluation (D33).
    pub(super) fn load_data(&mut self, node: NodeId, dst: Reg) {
        let doc = self.s.doc;
        let mut nodes = 0;
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            let kind = doc.kind(node);
            if matches!(kind, Kind::Array | Kind::Object) {
                nodes += data_nodes(kind == Kind::Object, doc.len(node));
                todo.extend(doc.elements(node));
                todo.extend(doc.members(node).map(|(_, value)| value));
            }
        }
        self.charge_data(nodes);
        let lit = self.s.literal(node);
        self.e.emit(Op::LoadLit { dst, lit });
    }

    /// Charges, in the metered model, for parts of a step that are not expression nodes.
    pub(super) fn charge_data(&mut self, mut nodes: usize) {
        while nodes > 0 {
            let some = nodes.min(usize::from(u16::MAX / 2));
            self.e.charge(ChargeKind::TextNodes(some as u16));
            nodes -= some;
        }
    }

    /// Evaluates a literal array or object, fresh for each evaluation (D33).
    fn literal_to(&mut self, node: NodeId, dst: Reg) {
        let doc = self.s.doc;
        let is_data = !self.s.has_nested(node);
        match is_data {
            true => self.on_data(node),
            false => self.on_literal(node),
        }
        self.on_short_text(node, is_data);
        if is_data {
            self.load_data(node, dst);
            return;
        }
        let is_object = doc.kind(node) == Kind::Object;
        self.charge_data(data_nodes(is_object, doc.len(node)));
        let children: Vec<NodeId> = match is_object {
            true => doc.members(node).map(|m| m.1).collect(),
            false => doc.elements(node).collect(),
        };
        let mark = self.mark();
        if is_object {
            let keys: Vec<KeyIdx> = doc.members(node).map(|m| self.s.pool.key(m.0)).collect();
            let fields = self.fields(keys.len());
            for child in children {
                let mark = self.mark();
                let src = self.nested(child);
                self.field(fields, src, mark);
            }
            self.new_object(dst, &keys, fields);
        } else {
            let held = self.collector(children.len());
            for child in children {
                let mark = self.mark();
                let src = self.nested(child);
                self.collect(held, src);
                self.release(mark);
            }
            let arr = self.take(held);
            self.mov(dst, arr);
        }
        self.release(mark);
    }

    /// Evaluates a node inside a literal: `$kind` and `$expr` are resolved, strings stay text
    /// unless the program declares `a99: 3`.
    fn nested(&mut self, node: NodeId) -> Reg {
        let doc = self.s.doc;
        match doc.kind(node) {
            Kind::String(text) if !self.s.deep_names => {
                let range = self.s.pool.range(text);
                self.const_reg(Const::Text(range))
            }
            Kind::Object if self.s.is_arg(node) => {
                self.e.charge(ChargeKind::Nodes(1));
                self.arg_node(node)
            }
            Kind::Object if self.s.is_context(node) => {
                self.e.charge(ChargeKind::Nodes(1));
                let dst = self.temp();
                self.context_node_to(node, dst);
                dst
            }
            Kind::Object if self.s.is_expr(node) => {
                self.on_node(node);
                let ir = self.read_expr(node);
                self.on_expr(&ir);
                self.expr(&ir)
            }
            Kind::Object | Kind::Array => {
                let dst = self.peek();
                self.literal_to(node, dst);
                self.temp()
            }
            _ => self.value(node),
        }
    }

    /// Evaluates an object literal whose first level are value positions (D14); other nodes are
    /// value positions themselves.
    pub(super) fn vars_object_to(&mut self, node: NodeId, dst: Reg, only: Option<&[&[u8]]>) {
        let doc = self.s.doc;
        if !self.s.is_literal_object(node) {
            self.value_to(node, dst);
            return;
        }
        let mark = self.mark();
        let members: Vec<(&'a [u8], NodeId)> = match only {
            None => doc.members(node).collect(),
            Some(names) => {
                let by_name: HashMap<&'a [u8], NodeId> = doc.members(node).collect();
                let found = |name: &&[u8]| by_name.get_key_value(*name).map(|(k, v)| (*k, *v));
                names.iter().filter_map(found).collect()
            }
        };
        let fields = self.fields(members.len());
        let mut keys = Vec::with_capacity(members.len());
        let mut seen = HashSet::new();
        for (name, child) in members {
            if self.e.is_over() {
                break;
            }
            let key = self.s.pool.key(name);
            let mark = self.mark();
            let src = self.value(child);
            if seen.insert(key) {
                keys.push(key);
                self.field(fields, src, mark);
            } else {
                self.release(mark);
            }
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
    }

    /// Loads a part of the program unresolved.
    pub(super) fn raw_to(&mut self, node: NodeId, dst: Reg) {
        match self.s.doc.kind(node) {
            Kind::Null => self.load_const(dst, Const::Null),
            Kind::Bool(b) => self.load_const(dst, Const::Bool(b)),
            Kind::Number(n) => self.load_const(dst, Const::Number(n)),
            Kind::String(text) => self.load_text(dst, text),
            Kind::Array | Kind::Object => {
                let lit = self.s.literal(node);
                self.e.emit(Op::LoadLit { dst, lit });
            }
        }
    }
}
