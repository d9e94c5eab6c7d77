//! Origins of values: the atom that produced a variable's value, where its kind is not enough.
//!
//! Codes: `lint.constant_condition`, `lint.unknown_member`, `lint.wrong_arguments`,
//! `lint.wrong_value`.

use super::Rules;
use a99_compiler::expr::BinOp;
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_compiler::vars::VarId;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// The atom that produced a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `len`: 0 or more.
    Count,
    /// `jsonStringify`: the text of a value.
    Json,
    /// `httpFetch` that returns the body of the response.
    Body,
    /// An atom that returns one of the values of which another returns all.
    One(&'static str),
}

impl<'a> Rules<'_, 'a> {
    /// Records the atom that produced the last value of a variable.
    pub(super) fn note_origin(&mut self, name: &[u8], step: NodeId) {
        let doc = self.doc;
        let origin = match doc.get(step, "op").and_then(|op| doc.str(op)) {
            Some(b"len") => Origin::Count,
            Some(b"jsonStringify") => Origin::Json,
            Some(b"httpFetch") => {
                let kind = doc.get(step, "responseType").and_then(|n| doc.str(n));
                match kind {
                    None | Some(b"json") => Origin::Body,
                    _ => return,
                }
            }
            Some(b"find") => Origin::One("filter {items, as, condition, result}"),
            Some(b"regexFind") => Origin::One("regexFindAll {text, pattern, result}"),
            Some(b"agentStorageGet") => Origin::One("agentStorageQuery {sql, params, result}"),
            _ => return,
        };
        let Some(id) = self.own_variable(name) else {
            return;
        };
        let list = match origin {
            Origin::Count => doc.get(step, "list"),
            _ => None,
        };
        self.lint.flow.holding.origins.insert(id, (origin, list));
    }

    /// Records that a variable is the length of a list, `{"=": "xs.length"}`.
    pub(super) fn note_length(&mut self, id: VarId, value: NodeId) {
        let doc = self.doc;
        let of = match a99_compiler::ir::expr_text(doc, value).filter(|_| self.is_version_4()) {
            Some(text) => doc
                .str(text)
                .filter(|text| text.ends_with(b".length"))
                .map(|_| text),
            None => doc
                .get(value, "object")
                .filter(|_| doc.get(value, "property").and_then(|n| doc.str(n)) == Some(b"length"))
                .and_then(|object| doc.get(object, "name")),
        };
        if of.is_some() {
            self.lint
                .flow
                .holding
                .origins
                .insert(id, (Origin::Count, of));
        }
    }

    /// The list whose length a variable is.
    pub(super) fn counted_list(&self, name: &[u8]) -> Option<&'a [u8]> {
        let list = self.noted(name)?.1?;
        let text = self.doc.str(list)?;
        Some(text.strip_suffix(b".length").unwrap_or(text))
    }

    /// The atom that produced a variable's value, unless another step binds the variable.
    pub(super) fn origin_of(&self, name: &[u8]) -> Option<Origin> {
        Some(self.noted(name)?.0)
    }

    fn noted(&self, name: &[u8]) -> Option<(Origin, Option<NodeId>)> {
        let lint = &*self.lint;
        let id = self.vars.all_of(name).first().copied()?;
        if self.vars.var(id).summary {
            return None;
        }
        lint.flow.holding.origin(id, lint.whiles > 0)
    }

    /// Reports `res.ok` or `r.status == 200` where only the body of a response was requested;
    /// returns whether it did.
    pub(super) fn lint_body_member(
        &mut self,
        ir: &Ir<'a>,
        object: &Ir<'a>,
        property: &[u8],
        compared: Option<f64>,
    ) -> bool {
        let is_code = compared.is_some_and(|n| (100.0..600.0).contains(&n));
        // Programs of older versions call hosts' own fetch atoms, whose responses have a status.
        if !self.is_version_4() {
            return false;
        }
        if !matches!(
            property,
            b"ok" | b"status" | b"statusText" | b"statusCode" | b"headers"
        ) {
            return false;
        }
        let IrKind::Ident(name) = object.kind else {
            return false;
        };
        let is_response = matches!(name, b"res" | b"resp" | b"response");
        let sure = match property {
            b"status" => is_code || is_response && compared.is_none(),
            b"statusText" | b"statusCode" => true,
            _ => is_response,
        };
        if !sure || self.origin_of(name) != Some(Origin::Body) {
            return false;
        }
        let (shown, name) = (Self::shown(property), excerpt(&self.called(object)));
        let message = format!("`{name}` is the body of the answer, which hardly has a `{shown}`");
        let help = match self.is_source() {
            true => {
                "ask for the whole answer, `httpFetch({ url, responseType: 'response' })`, which has \
                     `status`, `headers` and `body`; without it a status from 400 on is an error"
            }
            false => {
                "ask for the whole answer, `\"responseType\": \"response\"`, which has `status`, \
                      `headers` and `body`; without it a status from 400 on is an error"
            }
        };
        self.found(codes::UNKNOWN_MEMBER, ir.at, message, &shown, help);
        true
    }

    /// Reports such a member that is compared with a number; returns whether it did.
    pub(super) fn lint_body_status(&mut self, side: &Ir<'a>, other: &Ir<'a>) -> bool {
        let IrKind::Lit(Lit::Number(n)) = other.kind else {
            return false;
        };
        match side.kind {
            IrKind::Member {
                object, property, ..
            } => self.lint_body_member(side, object, property, Some(n)),
            _ => false,
        }
    }

    /// Reports `jsonStringify` of JSON text: the result is quoted twice.
    pub(super) fn lint_twice(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "value") else {
            return;
        };
        let Some(name) = doc.str(node) else { return };
        if self.origin_of(name) != Some(Origin::Json) {
            return;
        }
        let shown = Self::shown(name);
        let message = format!("`{}` is a text of JSON already", excerpt(&shown));
        let help = "use it as it is: once is enough";
        self.found(codes::WRONG_VALUE, node, message, &shown, help);
    }

    /// Reports `'n is ' + n > 3`: `+` binds more tightly, so a text is compared with a number;
    /// returns whether it did.
    pub(super) fn lint_joined(&mut self, side: &Ir<'a>, other: &Ir<'a>) -> bool {
        let IrKind::Binary(BinOp::Add, a, b) = side.kind else {
            return false;
        };
        let is_words = |ir: &Ir<'a>| match ir.kind {
            IrKind::Lit(Lit::Text(text)) => {
                str::from_utf8(text).is_ok_and(|text| !super::expressions::is_number(text))
            }
            _ => false,
        };
        let joins = is_words(a) || is_words(b);
        if !joins || self.holds_of(other, 2) != super::Holds::Number {
            return false;
        }
        let message = "`+` comes before the comparison: a text is compared with a number, which never \
                       holds";
        let help = "put the comparison into parentheses: `'n is ' + (n > 3 ? 'big' : 'small')`";
        self.found(codes::CONSTANT_CONDITION, side.at, message, "", help);
        true
    }

    /// Reports a time in seconds where milliseconds are expected.
    pub(super) fn lint_seconds(&mut self, args: &[Ir<'a>]) {
        let Some(first) = args.first() else { return };
        let IrKind::Lit(Lit::Number(n)) = first.kind else {
            return;
        };
        if !is_in_seconds(n) {
            return;
        }
        let message = "a time is in milliseconds: this one is in January 1970";
        let help = format!("for seconds write `{n} * 1000`");
        self.found(codes::WRONG_ARGUMENTS, first.at, message, "", help);
    }
}

/// Whether a number is a time of this century in seconds.
fn is_in_seconds(n: f64) -> bool {
    (946_684_800.0..4_102_444_800.0).contains(&n) && n.fract() == 0.0
}
