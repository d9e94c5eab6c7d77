//! The variables of `template`.
//!
//! Only variables that the text names are resolved. If the text is known at compile time, each
//! hole resolves and prints its variable, in the order of the text.

use super::{Held, Lower};
use a99_core::builtins::is_forbidden;
use a99_core::json::NodeId;
use a99_core::program::{Const, Number, Op, Reg, Target};
use a99_core::sig::{Binding, Param};
use hashbrown::{HashMap, HashSet};

/// Internal atom: the text that a hole prints for a value.
const TEXT: &str = "template:text";

/// Internal atom: which of the given names have holes in a text.
const NAMES: &str = "template:names";

/// Internal atom: `template` with the texts of its holes, in order.
const FILL: &str = "template:fill";

/// The same atoms where holes may be paths (D68), and `template` itself.
const PATHS: [&str; 3] = ["template:paths", "template:fillPaths", "template:roots"];

impl<'a> Lower<'_, 'a> {
    fn knows(&self, op: &str) -> bool {
        self.s.signature(op).is_some()
    }

    /// The internal atom that a `template` step calls instead of its op, if any; `filled`
    /// selects the one that takes the texts of the holes.
    pub(super) fn template_op(&self, params: &[Param], filled: bool) -> Option<&'static str> {
        let is_vars = |param: &Param| matches!(param.binding, Binding::TemplateVars { .. });
        let is_template = params.iter().any(is_vars) && self.knows(FILL);
        match (is_template, self.s.version_4, filled) {
            (false, ..) | (_, false, false) => None,
            (_, false, true) => Some(FILL),
            (_, true, false) => Some(PATHS[0]),
            (_, true, true) => Some(PATHS[1]),
        }
    }

    /// The text of a template, unless it is a name or a path.
    fn known_text(&self, step: NodeId, params: &[Param], template: u8) -> Option<&'a [u8]> {
        let doc = self.s.doc;
        let param = params.get(template as usize)?;
        let text = doc.get(step, param.name).and_then(|n| doc.str(n))?;
        self.vars.is_plain_text(text).then_some(text)
    }

    /// The variables and holes of a step whose text is known, if resolving its variables has side
    /// effects.
    pub(super) fn holes_of(
        &self,
        step: NodeId,
        params: &[Param],
    ) -> Option<(usize, NodeId, Vec<&'a [u8]>)> {
        let doc = self.s.doc;
        let at = params
            .iter()
            .position(|p| matches!(p.binding, Binding::TemplateVars { .. }))?;
        let Binding::TemplateVars { template } = params[at].binding else {
            return None;
        };
        let node = doc.get(step, params[at].name)?;
        if params.len() != 2 || !self.s.is_literal_object(node) || !self.knows(FILL) {
            return None;
        }
        let holes = self.s.holes(self.known_text(step, params, template)?);
        let named: HashSet<&[u8]> = holes.iter().map(|hole| root_of(hole)).collect();
        let mut members = doc.members(node);
        let refused = |hole: &&[u8]| hole.split(|b| *b == b'.').skip(1).any(is_forbidden);
        let acts = members.any(|(name, v)| named.contains(name) && self.acts_as_value(v))
            || holes.iter().any(refused);
        (acts && self.knows(TEXT)).then_some((at, node, holes))
    }

    /// Puts a list of the hole texts into `dst`.
    pub(super) fn holes_to(&mut self, node: NodeId, dst: Reg, holes: &[&'a [u8]]) {
        let doc = self.s.doc;
        let mark = self.mark();
        let held = self.collector(holes.len());
        let by_name: HashMap<&[u8], NodeId> = doc.members(node).collect();
        for name in holes {
            // Each hole evaluates its variable again, which can exceed the code budget.
            if self.e.is_over() {
                break;
            }
            let mark = self.mark();
            let shown = self.temp();
            match by_name.get(root_of(name)) {
                Some(value) => {
                    self.value_to(*value, shown);
                    let path: Vec<&[u8]> = name.split(|b| *b == b'.').skip(1).collect();
                    if !path.is_empty() {
                        let path = self.s.path(&path);
                        let (dst, root) = (shown, shown);
                        self.e.emit(Op::OwnPath { dst, root, path });
                    }
                    self.internal_call(shown, shown, 1, TEXT);
                }
                None => self.load_text(shown, b""),
            }
            self.collect(held, shown);
            self.release(mark);
        }
        let list = self.take(held);
        self.mov(dst, list);
        self.release(mark);
    }

    /// Builds one object of the variables; register `resolved` holds the text.
    pub(super) fn template_vars_to(
        &mut self,
        step: NodeId,
        params: &[Param],
        (node, dst): (NodeId, Reg),
        (template, resolved): (u8, Reg),
    ) {
        let doc = self.s.doc;
        if let Some(text) = self.known_text(step, params, template) {
            let roots: Vec<&[u8]> = self.s.holes(text).into_iter().map(root_of).collect();
            return self.vars_object_to(node, dst, Some(&roots));
        }
        let acts = doc.members(node).any(|(_, v)| self.acts_as_value(v));
        if !self.s.is_literal_object(node) || !acts || !self.knows(NAMES) {
            return self.vars_object_to(node, dst, None);
        }
        // If the text is known only at run time, names that it does not mention are not resolved;
        // each other name is resolved once.
        let mark = self.mark();
        let mut seen = HashSet::new();
        let mut members: Vec<(&'a [u8], NodeId)> = doc.members(node).collect();
        members.retain(|m| seen.insert(m.0));
        let named = self.named_of(&members, resolved);
        let fields = self.fields(members.len());
        let mut keys = Vec::with_capacity(members.len());
        for (i, (name, child)) in members.into_iter().enumerate() {
            keys.push(self.s.pool.key(name));
            let mark = self.mark();
            let value = self.temp();
            if self.acts_as_value(child) {
                let end = self.e.label();
                let mark = self.mark();
                let (obj, idx) = (self.take(named), self.temp());
                self.load_const(idx, Const::Number(i as f64));
                self.e.emit(Op::Index { dst: idx, obj, idx });
                self.load_const(value, Const::Undefined);
                self.e.jump(
                    Op::JFalse {
                        src: idx,
                        to: Target(0),
                    },
                    end,
                );
                self.release(mark);
                self.value_to(child, value);
                self.e.bind(end);
            } else {
                self.value_to(child, value);
            }
            self.field(fields, value, mark);
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
    }

    /// Computes for each member whether the text names it.
    fn named_of(&mut self, members: &[(&'a [u8], NodeId)], text: Reg) -> Held {
        let start = self.mark();
        let asked = self.temps(2);
        self.e.emit(Op::NewArr {
            dst: asked + 1,
            cap: Number(members.len() as u32),
        });
        for (name, _) in members {
            let mark = self.mark();
            let src = self.temp();
            self.load_text(src, name);
            self.e.emit(Op::ArrPush {
                arr: asked + 1,
                src,
            });
            self.release(mark);
        }
        self.mov(asked, text);
        let names = if self.s.version_4 { PATHS[2] } else { NAMES };
        self.internal_call(asked, asked, 2, names);
        self.hold(asked, start)
    }
}

/// The variable that a hole reads.
pub(super) fn root_of(hole: &[u8]) -> &[u8] {
    hole.split(|b| *b == b'.').next().unwrap_or(hole)
}

/// The names between `{{` and `}}` (language section 2.5, `template`), in version 4 also
/// paths of names.
pub(super) fn placeholders(text: &[u8], paths: bool) -> Vec<&[u8]> {
    let mut names = Vec::new();
    let mut at = 0;
    while at + 1 < text.len() {
        if &text[at..at + 2] != b"{{" {
            at += 1;
            continue;
        }
        let start = at + 2;
        let word = text[start..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || paths && **b == b'.')
            .count();
        let whole = text[start..start + word].split(|b| *b == b'.');
        let whole = whole.into_iter().all(|name| !name.is_empty());
        if whole && text[start + word..].starts_with(b"}}") {
            names.push(&text[start..start + word]);
            at = start + word + 2;
        } else {
            at += 1;
        }
    }
    names
}
