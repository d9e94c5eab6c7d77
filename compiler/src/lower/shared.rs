//! State that the functions of a program share: tables and findings.

use super::{Shared, literal};
use crate::emit::End;
use crate::expr;
use crate::ir::{is_tagged, short_text};
use crate::limits;
use a99_core::builtins;
use a99_core::diag::{Diagnostic, Severity, codes, excerpt, suggest_among};
use a99_core::json::{Kind, NodeId};
use a99_core::program::{LiteralIdx, NO_SIGNATURE, OpRef, PathIdx, TextRange};
use a99_core::sig::{AtomSig, BaseCost};
use a99_core::text::{same_name, wtf8_to_string_lossy};
use a99_core::value::Value;

/// Recently used signatures, which are found without hashing.
pub(super) const RECENT_SIGS: usize = 16;

/// A name or a text, for messages.
fn shown(text: &[u8]) -> String {
    wtf8_to_string_lossy(text).into_owned()
}

impl<'a> Shared<'a> {
    /// Why code generation ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        self.room.as_ref().and_then(|room| room.end)
    }

    /// Rejects the program because compilation ended early.
    pub(super) fn refuse(&mut self, end: End, limit: usize) {
        let diag = match end {
            End::Stopped => limits::stopped(),
            End::TooLarge(at) => {
                let node = at.unwrap_or(self.doc.root());
                let message =
                    format!("program too large: its code would be more than {limit} instructions");
                Diagnostic::error(codes::TOO_LARGE, message, self.doc.pointer(node))
                    .with_span(self.doc.span(node))
                    .with_help(
                        "this place makes far more code than its text is long: compute what is \
                         repeated once, into a variable, or move it into a helper",
                    )
            }
        };
        self.diags.push(diag);
    }

    pub(super) fn declare_helpers(&mut self) -> Vec<(&'a [u8], NodeId)> {
        let doc = self.doc;
        let Some(helpers) = doc.get(doc.root(), "helpers") else {
            return Vec::new();
        };
        let mut list = Vec::new();
        for (name, node) in doc.members(helpers) {
            let params = doc
                .get(node, "paramNames")
                .map_or(0, |p| doc.elements(p).len());
            self.helpers
                .insert(name.into(), (list.len() as u32 + 1, params.min(64)));
            list.push((name, node));
        }
        list
    }

    /// The number of an op, registered at its first use.
    pub(crate) fn op(&mut self, name: &str) -> u32 {
        let next = self.ops.len() as u32;
        let (range, number) = self.pool.op(name.as_bytes());
        let number = *number.get_or_insert(next);
        if number < next {
            return number;
        }
        let sig = self.signature(name);
        self.ops.push(OpRef {
            name: range,
            cost: sig.map_or(BaseCost::Fixed(0), |s| s.cost),
            needs_body: sig.is_some_and(|s| s.form.is_none()),
            signature: self.sigs.fingerprint(name).unwrap_or(NO_SIGNATURE),
        });
        number
    }

    pub(crate) fn path(&mut self, segments: &[&[u8]]) -> PathIdx {
        let list: Box<[TextRange]> = segments.iter().map(|s| self.pool.range(s)).collect();
        if let Some(id) = self.path_ids.get(&list) {
            return PathIdx(*id);
        }
        let id = self.paths.len() as u32;
        self.path_ids.insert(list.clone(), id);
        self.paths.push(list);
        PathIdx(id)
    }

    /// The steps that build a literal of the source.
    pub(crate) fn literal(&mut self, node: NodeId) -> LiteralIdx {
        let ops = literal::steps(self.doc, node, &mut self.pool);
        self.literals.push(ops);
        LiteralIdx(self.literals.len() as u32 - 1)
    }

    /// The steps that build a generated literal.
    pub(crate) fn literal_of(&mut self, value: &Value) -> LiteralIdx {
        let ops = literal::steps_of(value, &mut self.pool);
        self.literals.push(ops);
        LiteralIdx(self.literals.len() as u32 - 1)
    }

    pub(crate) fn push(&mut self, diag: Diagnostic) {
        if let Some(pass) = &mut self.pass {
            pass.on_finding(diag.code);
        }
        self.keep(diag);
    }

    /// Adds a finding; passes do not hear of it.
    pub(crate) fn keep(&self, mut diag: Diagnostic) {
        if diag.help.is_none() {
            // The default help of this code.
            let help = a99_core::codes::find(diag.code).map_or("", |row| row.help);
            diag.help = Some(help.to_owned()).filter(|help| !help.is_empty());
        }
        self.diags.push(diag);
    }

    pub(crate) fn warn(&self, code: &'static str, node: NodeId, message: String) -> Diagnostic {
        let span = self.doc.span(node);
        let pointer = if self.diags.is_full(Severity::Warning) {
            String::new()
        } else {
            self.doc.pointer(node)
        };
        Diagnostic::warning(code, message, pointer).with_span(span)
    }

    /// The pointer to an error; empty once no more errors are kept.
    pub(crate) fn error_pointer(&self, node: NodeId) -> String {
        match self.diags.is_full(Severity::Error) {
            true => String::new(),
            false => self.doc.pointer(node),
        }
    }

    /// The signature of an op. Lowering and lint rules query the same step repeatedly, and programs
    /// have few ops: most are found without hashing.
    pub(crate) fn signature(&self, op: &str) -> Option<&'a AtomSig> {
        let name = op.as_bytes();
        let ends = name.first().zip(name.last());
        let ends = ends.map_or(0, |(first, last)| {
            5 * usize::from(*first) + usize::from(*last)
        });
        let recent = &self.recent_sigs[(ends + 3 * name.len()) % RECENT_SIGS];
        if let Some(sig) = recent.get()
            && same_name(sig.name.as_bytes(), name)
        {
            return Some(sig);
        }
        let sig = self.sigs.signature(op)?;
        // A host may register an atom under another name.
        if sig.name == op {
            recent.set(Some(sig));
        }
        Some(sig)
    }

    pub(crate) fn is_arg(&self, node: NodeId) -> bool {
        let doc = self.doc;
        doc.get(node, "$kind")
            .is_some_and(|k| doc.str(k) == Some(b"arg"))
    }

    /// Whether a node reads the request context, which programs of version 4 may do where the host
    /// allows it (D75).
    pub(crate) fn is_context(&self, node: NodeId) -> bool {
        let doc = self.doc;
        let kind = doc.get(node, "$kind").filter(|_| self.version_4);
        kind.is_some_and(|k| doc.str(k) == Some(b"context"))
    }

    /// Whether a node in a value position is an expression.
    pub(crate) fn is_expr(&self, node: NodeId) -> bool {
        let doc = self.doc;
        is_tagged(doc, node) || self.version_4 && short_text(doc, node).is_some()
    }

    /// Whether a node is an object literal rather than a node to resolve.
    pub(crate) fn is_literal_object(&self, node: NodeId) -> bool {
        let doc = self.doc;
        doc.kind(node) == Kind::Object
            && !self.is_arg(node)
            && !self.is_context(node)
            && !self.is_expr(node)
    }

    /// Parses a condition, or a formula of version 4, in the program's dialect (D71).
    pub(crate) fn parse_text(&self, text: &str) -> Result<expr::Expr, expr::ParseErrors> {
        match self.version_4 {
            true => expr::parse_expression(text),
            false => expr::parse_condition(text),
        }
    }

    /// The holes of a text.
    pub(crate) fn holes<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        super::templates::placeholders(text, self.version_4)
    }

    /// The text at a place, if it is short: the excerpt of a finding.
    pub(crate) fn written_at(&self, node: NodeId, inner: Option<(u32, u32)>) -> String {
        let doc = self.doc;
        if let Some((text, _)) = doc.origin().filter(|_| doc.str(node).is_none()) {
            // The author of a source sees the source, not the JSON.
            let span = doc.span(node).unwrap_or_default();
            let part = text.get(span.start as usize..span.end as usize);
            let line = part.and_then(|part| part.split(|b| *b == b'\n').next());
            return excerpt(&shown(line.unwrap_or_default()));
        }
        if let Some(text) = doc.str(node).map(shown) {
            let part = inner.and_then(|(from, to)| text.get(from as usize..to as usize));
            return excerpt(part.filter(|part| !part.is_empty()).unwrap_or(&text));
        }
        // A large part of the source gets no excerpt.
        const MOST: usize = 32;
        if self.facts.size(node) > MOST {
            return String::new();
        }
        let mut text = Vec::new();
        doc.write_json(node, &mut text);
        excerpt(&shown(&text))
    }

    /// Whether a literal contains nodes to resolve (D13).
    pub(crate) fn has_nested(&self, node: NodeId) -> bool {
        let facts = self.facts;
        facts.has_nested(node) || self.deep_names && facts.has_text(node)
    }

    /// The nearest of these names, if the comparison budget allows a search.
    pub(crate) fn nearest<'n>(
        &self,
        name: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<String> {
        let mut left = self.comparisons.get();
        let near = suggest_among(&mut left, name, names);
        self.comparisons.set(left);
        near
    }

    /// Whether the budget allows listing this many names and comparing one with them. Call it
    /// before building a list: a list for every finding would be quadratic.
    pub(crate) fn affords(&self, names: usize) -> bool {
        let left = self.comparisons.get().checked_sub(names);
        if let Some(left) = left {
            self.comparisons.set(left);
        }
        left.is_some()
    }

    /// Rejects a name that no program may bind (D16, D44).
    pub(crate) fn check_name(&mut self, name: &[u8], node: NodeId) -> bool {
        if !builtins::is_forbidden(name) {
            return true;
        }
        if !self.refused.insert((node, name.len())) {
            return false;
        }
        let name = wtf8_to_string_lossy(name).into_owned();
        self.diags.push(
            Diagnostic::error(
                codes::FORBIDDEN_NAME,
                builtins::forbidden_text(&name),
                self.error_pointer(node),
            )
            .with_span(self.doc.span(node))
            .with_offending(name)
            .with_help("choose another name for this variable"),
        );
        false
    }

    /// Warns of an unknown op, with the nearest name.
    pub(crate) fn warn_unknown_atom(&mut self, op: &str, node: NodeId) {
        let at = self.doc.get(node, "op").unwrap_or(node);
        let mut diag = self
            .warn(
                codes::UNKNOWN_ATOM,
                at,
                format!("Unknown Atom: {}", excerpt(op)),
            )
            .with_offending(excerpt(op));
        let is_helper = self.helpers.contains_key(op.as_bytes());
        let help = match is_helper {
            true => Some(format!(
                "call the helper: `callLocal {{name: \"{op}\", args, result}}`"
            )),
            false => crate::advice::help_for_op(op, self.sigs.op_names()),
        };
        if let Some(help) = help {
            return self.push(diag.with_help(help));
        }
        let names = self.sigs.op_names();
        if let Some(near) = self.nearest(op, names) {
            diag = diag.with_help(format!("did you mean '{near}'?"));
        }
        self.push(diag);
    }
}
