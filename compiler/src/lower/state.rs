//! `varSet`, `constSet`, `varGet`, `varsImport`, `varsLet`, `varsExport` and
//! `mathCalc`.

use super::Lower;
use super::scopes::import_names;
use crate::compat;
use crate::ir::{from_text, key_text};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::program::{Const, KeyIdx, Reg};
use a99_core::text::wtf8_to_string_lossy;
use hashbrown::HashSet;

impl<'a> Lower<'_, 'a> {
    pub(super) fn form_var_set(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let key = doc.get(step, "key");
        let name = key_text(doc, key, self.s.arena);
        let node = key.unwrap_or(step);
        self.on_may_bind(name, node);
        match (doc.get(step, "value"), self.direct_location(name)) {
            (Some(value), Some(location)) if self.s.check_name(name, node) => {
                self.value_to(value, location);
                if let Some(id) = self.vars.in_scope(name, self.scope()) {
                    self.vars.set_bound(id);
                }
            }
            (value, _) => {
                self.check_const(name);
                let src = match value {
                    Some(value) => self.value(value),
                    None => self.undefined(),
                };
                self.e.at = Some((step, None));
                self.bind(name, node, src);
            }
        }
        self.on_holds_value(name, doc.get(step, "value"));
        self.may_be_set(name);
        self.on_wrote(name, node, doc.get(step, "value"));
        self.end_valueless(step)
    }

    pub(super) fn form_const_set(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let key = doc.get(step, "key");
        let name = key_text(doc, key, self.s.arena);
        let node = key.unwrap_or(step);
        if !self.s.check_name(name, node) {
            return None;
        }
        self.on_not_free(name, node);
        self.check_const(name);
        self.check_free(name);
        let src = self.value_or_undefined(step, "value");
        self.e.at = Some((step, None));
        if let Some(id) = self.vars.in_scope(name, self.scope()) {
            self.write_var(id, src);
            self.vars.set_bound(id);
            self.on_holds_value(name, doc.get(step, "value"));
            self.on_constant(id);
        }
        self.make_const(name);
        self.end_valueless(step)
    }

    pub(super) fn form_var_get(&mut self, step: NodeId) -> Option<Reg> {
        let dst = self.temp();
        match self.s.doc.get(step, "key") {
            Some(key) => self.value_to(key, dst),
            None => self.load_const(dst, Const::Undefined),
        }
        self.bind_result(step, dst, true);
        Some(dst)
    }

    pub(super) fn form_vars_import(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let keys = doc.get(step, "keys");
        if !keys.is_some_and(|k| matches!(doc.kind(k), Kind::Array | Kind::Object)) {
            let diag = self
                .s
                .warn(codes::MALFORMED_STEP, step, "varsImport needs keys".into());
            self.s.push(diag);
            if keys.is_none_or(|k| doc.kind(k) == Kind::Null) {
                self.throw("undefined is not an object (evaluating 'Object.entries(keys)')");
            }
            return self.end_valueless(step);
        }
        let names = import_names(doc, step, self.s.arena);
        self.charge_data(names.len());
        for (name, path) in names {
            let mark = self.mark();
            let r = self.flat_arg(path);
            self.bind(name, keys.unwrap_or(step), r);
            self.on_holds_argument(name, path);
            self.release(mark);
        }
        self.end_valueless(step)
    }

    pub(super) fn form_vars_let(&mut self, step: NodeId) -> Option<Reg> {
        let inputs = self.inputs(step);
        self.charge_data(inputs.len());
        for (name, node) in inputs {
            let mark = self.mark();
            let r = self.value(node);
            self.bind(name, node, r);
            self.on_holds_value(name, Some(node));
            self.release(mark);
        }
        self.end_valueless(step)
    }

    pub(super) fn form_vars_export(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let dst = self.temp();
        let entries: Vec<(&'a [u8], NodeId)> = match doc.get(step, "keys") {
            Some(keys) if doc.kind(keys) == Kind::Array => doc
                .elements(keys)
                .map(|n| (key_text(doc, Some(n), self.s.arena), n))
                .collect(),
            Some(keys) => doc.members(keys).collect(),
            None => Vec::new(),
        };
        self.charge_data(entries.len());
        let mark = self.mark();
        let fields = self.fields(entries.len());
        let mut keys: Vec<KeyIdx> = Vec::new();
        let mut seen = HashSet::new();
        for (name, node) in entries {
            let key = self.s.pool.key(name);
            if !seen.insert(key) {
                continue;
            }
            keys.push(key);
            let mark = self.mark();
            let src = self.value(node);
            self.field(fields, src, mark);
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
        self.bind_result(step, dst, true);
        Some(dst)
    }

    /// `mathCalc`: the grammar of the first generation. A malformed text is an error when the step
    /// is reached (D2).
    pub(super) fn form_math(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let dst = self.temp();
        let node = doc.get(step, "expr");
        let text = wtf8_to_string_lossy(key_text(doc, node, self.s.arena));
        let node = node.unwrap_or(step);
        let overlay = self.overlay.len();
        self.overlay_vars(doc.get(step, "vars"));
        let parsed = match self.s.version_4 {
            true => match self.s.parse_text(&text) {
                Ok(e) => Ok(e),
                Err(errors) => {
                    self.text_errors(node, &errors, "formula");
                    Ok(crate::expr::Expr::default())
                }
            },
            false => compat::parse_math(&text),
        };
        match parsed {
            Err(error) => {
                let message = format!("Expression error \"{text}\": {}", error.message);
                let shown = excerpt(&text);
                let finding = format!("Expression error \"{shown}\": {}", error.message);
                let mut diag = self
                    .s
                    .warn(codes::BAD_MATH, node, finding)
                    .with_offending(shown)
                    .with_inner(error.offset..error.offset + 1);
                if let Some(help) = crate::advice::math_help(&text) {
                    diag = diag.with_help(help);
                }
                self.s.push(diag);
                self.throw(&message);
            }
            Ok(e) if e.is_deeper(self.s.options.max_expr_depth as usize) => {
                let diag = a99_core::diag::Diagnostic::error(
                    codes::EXPRESSION_TOO_DEEP,
                    format!(
                        "more than {} nested expression nodes",
                        self.s.options.max_expr_depth
                    ),
                    self.s.error_pointer(node),
                )
                .with_span(doc.span(node));
                self.s.push(diag);
            }
            Ok(e) => match from_text(&e, node, self.s.arena) {
                None => self.load_const(dst, Const::Undefined),
                Some(ir) => {
                    self.on_expr(ir);
                    let prefix = ["Expression error \"", &*text, "\": "].concat();
                    let prefix = self.s.pool.text_const(prefix.as_bytes());
                    let was = std::mem::replace(&mut self.text_nodes, true);
                    // From version 4 on, a formula resolves names as expressions do (D71).
                    let own = std::mem::replace(&mut self.own_scope_only, !self.s.version_4);
                    let start = self.e.pc();
                    self.expr_to(ir, dst);
                    self.e.wrap(start, prefix.0);
                    self.text_nodes = was;
                    self.own_scope_only = own;
                }
            },
        }
        self.overlay.truncate(overlay);
        self.e.at = Some((step, None));
        self.bind_result(step, dst, true);
        Some(dst)
    }
}
