//! Literal inputs that a host's atom never accepts.
//!
//! Unlike the lint pass, this check covers every program that is compiled before it runs,
//! because a host's atom knows exactly what it reads: a step with a warning from here fails
//! whenever it is reached.

use super::Lower;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::pointer;
use a99_core::sig::{AtomSig, LiteralFault, Params};

impl Lower<'_, '_> {
    /// Warns of literals that the atom of a step rejects.
    pub(super) fn check_literals(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let (Some(check), Params::Named(params)) = (sig.literals, &sig.params) else {
            return;
        };
        if !self.s.options.check_literals {
            return;
        }
        let doc = self.s.doc;
        for (index, param) in params.iter().enumerate() {
            let Some(node) = doc.get(step, param.name).filter(|n| self.is_constant(*n)) else {
                continue;
            };
            if let Err(fault) = check.check(index, &doc.to_value(node)) {
                self.wrong_literal(op, param.name, node, &fault);
            }
        }
    }

    /// Whether a node in a value position evaluates to itself.
    fn is_constant(&self, node: NodeId) -> bool {
        let doc = self.s.doc;
        match doc.kind(node) {
            Kind::String(text) => self.vars.is_plain_text(text),
            Kind::Array => !self.s.has_nested(node),
            Kind::Object => self.s.is_literal_object(node) && !self.s.has_nested(node),
            _ => true,
        }
    }

    fn wrong_literal(&mut self, op: &str, name: &str, node: NodeId, fault: &LiteralFault) {
        let doc = self.s.doc;
        let allow = doc.get(doc.root(), "allow").into_iter();
        let mut allowed = allow.flat_map(|list| doc.elements(list));
        let code = codes::WRONG_LITERAL.as_bytes();
        if !self.s.wrong_literals.insert(node) || allowed.any(|c| doc.str(c) == Some(code)) {
            return;
        }
        let (place, rest) = self.part_of(node, &fault.pointer);
        let colon = if rest.is_empty() { "" } else { ": " };
        let fault = format!("{rest}{colon}{}", fault.message);
        let text = format!("`{name}` of `{op}` cannot be this: {fault}");
        let help = "the step fails whenever it is reached: write a value that the atom takes";
        let diag = self
            .s
            .warn(codes::WRONG_LITERAL, place, text)
            .with_offending(excerpt(&doc.to_value(place).to_json_string()))
            .with_help(help);
        self.s.push(diag);
    }

    /// The part of a literal that a pointer addresses, and the rest of the pointer where a member
    /// is missing.
    fn part_of(&self, literal: NodeId, pointer: &str) -> (NodeId, String) {
        let doc = self.s.doc;
        let mut at = literal;
        let mut rest = String::new();
        for token in pointer::parse(pointer) {
            let next = match doc.kind(at) {
                _ if !rest.is_empty() => None,
                Kind::Array => token.parse().ok().and_then(|i| doc.element(at, i)),
                _ => doc.get(at, &token),
            };
            match next {
                Some(part) => at = part,
                None => pointer::push_key(&mut rest, &token),
            }
        }
        (at, rest)
    }
}
