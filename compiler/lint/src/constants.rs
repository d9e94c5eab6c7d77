//! Constant folding: known values of variables, and conditions that they decide.
//!
//! Codes: `lint.constant_condition`, `lint.endless_loop`, `lint.unknown_name`.

use super::Rules;
use super::expressions::names_in;
use a99_compiler::expr::{BinOp, LogOp, UnOp};
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomSig, Form};

/// Depth to which conditions are analysed.
const DEPTH: u32 = 8;

/// Texts that authors write instead of values.
const VALUE_WORDS: &[&[u8]] = &[
    b"true",
    b"false",
    b"True",
    b"False",
    b"null",
    b"None",
    b"nil",
    b"undefined",
];

/// A value that is known at compile time.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Constant<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(&'a [u8]),
}

impl Constant<'_> {
    fn is_true(self) -> bool {
        match self {
            Constant::Null => false,
            Constant::Bool(b) => b,
            Constant::Number(n) => n != 0.0 && !n.is_nan(),
            Constant::Text(text) => !text.is_empty(),
        }
    }
}

/// The result of comparing two constants of one kind.
fn compared(op: BinOp, a: Constant<'_>, b: Constant<'_>) -> Option<bool> {
    if let (Constant::Number(a), Constant::Number(b)) = (a, b) {
        return Some(match op {
            BinOp::Lt => a < b,
            BinOp::Le => a <= b,
            BinOp::Gt => a > b,
            BinOp::Ge => a >= b,
            BinOp::Eq | BinOp::StrictEq => a == b,
            BinOp::Ne | BinOp::StrictNe => a != b,
            _ => return None,
        });
    }
    if std::mem::discriminant(&a) != std::mem::discriminant(&b) {
        return None;
    }
    match op {
        BinOp::Eq | BinOp::StrictEq => Some(a == b),
        BinOp::Ne | BinOp::StrictNe => Some(a != b),
        _ => None,
    }
}

impl<'a> Rules<'_, 'a> {
    /// The literal that a variable surely holds here.
    pub(super) fn literal_of_name(&self, name: &[u8]) -> Option<NodeId> {
        let lint = &*self.lint;
        let chain = self.vars.chain(name);
        let id = *chain.iter().find(|id| self.vars.is_set(**id))?;
        if self.vars.var(id).summary || !self.vars.is_bound(id) {
            return None;
        }
        lint.flow.literal(id, lint.whiles > 0)
    }

    fn constant_of(&self, name: &[u8]) -> Option<Constant<'a>> {
        let node = self.literal_of_name(name)?;
        Some(match self.doc.kind(node) {
            Kind::Null => Constant::Null,
            Kind::Bool(b) => Constant::Bool(b),
            Kind::Number(n) => Constant::Number(n),
            Kind::String(text) => Constant::Text(text),
            Kind::Array | Kind::Object => return None,
        })
    }

    /// Whether the step of a condition defines a name by its `vars` or as its item.
    fn is_given(&self, ir: &Ir<'a>, name: &[u8]) -> bool {
        let doc = self.doc;
        let Some(step) = doc.parent(ir.at.node) else {
            return false;
        };
        let shown = Self::shown(name);
        let vars = doc.get(step, "vars");
        let item = doc.get(step, "as").and_then(|item| doc.str(item));
        item == Some(name) || vars.is_some_and(|vars| doc.get(vars, &shown).is_some())
    }

    /// The constant value of an expression, if known.
    fn constant(&self, ir: &Ir<'a>, depth: u32) -> Option<Constant<'a>> {
        let depth = depth.checked_sub(1)?;
        Some(match ir.kind {
            IrKind::Lit(Lit::Null) => Constant::Null,
            IrKind::Lit(Lit::Bool(b)) => Constant::Bool(b),
            IrKind::Lit(Lit::Number(n)) => Constant::Number(n),
            IrKind::Lit(Lit::Text(text)) => Constant::Text(text),
            IrKind::Ident(name) if !self.is_given(ir, name) => self.constant_of(name)?,
            IrKind::Member {
                object, property, ..
            } => match object.kind {
                IrKind::Ident(name) if property == b"length" && !self.is_given(ir, name) => {
                    self.length_of(name)?
                }
                _ => return None,
            },
            IrKind::Unary(UnOp::Not, arg) => Constant::Bool(!self.constant(arg, depth)?.is_true()),
            IrKind::Unary(UnOp::Neg, arg) => match self.constant(arg, depth)? {
                Constant::Number(n) => Constant::Number(-n),
                _ => return None,
            },
            IrKind::Binary(op, a, b) => {
                let (a, b) = (self.constant(a, depth)?, self.constant(b, depth)?);
                Constant::Bool(compared(op, a, b)?)
            }
            IrKind::Logical(op @ (LogOp::And | LogOp::Or), a, b) => {
                let (a, b) = (self.constant(a, depth), self.constant(b, depth));
                // One side may decide the result.
                let decides = op == LogOp::Or;
                let side = |c: Option<Constant<'a>>| c.filter(|c| c.is_true() == decides);
                match side(a).or(side(b)) {
                    Some(_) => Constant::Bool(decides),
                    None => Constant::Bool(a?.is_true() && b?.is_true()),
                }
            }
            _ => return None,
        })
    }

    /// The length of a list that is still empty.
    fn length_of(&self, name: &[u8]) -> Option<Constant<'a>> {
        let node = self.literal_of_name(name)?;
        let lint = &*self.lint;
        let ids = self.vars.chain(name);
        let unread = ids.iter().any(|id| lint.flow.is_unread(*id));
        let empty = self.doc.kind(node) == Kind::Array && self.doc.is_empty(node);
        (unread && empty).then_some(Constant::Number(0.0))
    }

    /// Reports a loop whose condition is false at the start.
    pub(super) fn on_start(&mut self, step: NodeId, condition: &Ir<'a>) {
        let doc = self.doc;
        let Some(place) = doc.get(step, "condition") else {
            return;
        };
        let never = self
            .constant(condition, DEPTH)
            .is_some_and(|c| !c.is_true());
        // Another rule reports a condition without a meaning.
        if !never || matches!(condition.kind, IrKind::Lit(Lit::Undefined)) {
            return;
        }
        let (names, _) = names_in(condition);
        let mut names: Vec<(String, String)> = names
            .into_iter()
            .filter_map(|name| {
                let node = self.literal_of_name(name)?;
                Some((Self::shown(name), self.written_at(node, None)))
            })
            .collect();
        names.sort();
        let shown = super::text_of(doc, place).unwrap_or_default();
        let (message, help) = match names.first() {
            Some((name, value)) => (
                format!(
                    "`{}` starts as {value}, so this loop never runs",
                    excerpt(name)
                ),
                format!(
                    "turn the comparison around, or let `{}` start with another value",
                    excerpt(name)
                ),
            ),
            None => (
                "this condition never holds, so the loop never runs".to_owned(),
                "compare a variable with what it may be, as in `n > 3`".to_owned(),
            ),
        };
        self.found(codes::CONSTANT_CONDITION, place, message, &shown, help);
    }

    /// Whether the condition of a loop is false at the start.
    pub(super) fn never_starts(&self, condition: &Ir<'a>) -> bool {
        self.constant(condition, DEPTH)
            .is_some_and(|c| !c.is_true())
    }

    /// Reports an `if` that a literal decides.
    pub(super) fn lint_decided(&mut self, root: &Ir<'a>) {
        let shown = match root.kind {
            IrKind::Lit(Lit::Bool(b)) => b.to_string(),
            IrKind::Lit(Lit::Number(n)) => n.to_string(),
            IrKind::Lit(Lit::Null) => "null".to_owned(),
            _ => return,
        };
        let step = self.doc.parent(root.at.node);
        if step.is_none_or(|step| self.form_of(step) != Some(Form::If)) {
            return;
        }
        let message = format!("this condition is `{shown}`, which is always the same");
        let help = "compare a variable with what it may be, as in `n > 3`";
        self.found(codes::CONSTANT_CONDITION, root.at, message, &shown, help);
    }

    /// Reports a tested variable that holds a value's text, such as `'false'`, which is true.
    pub(super) fn lint_quoted(&mut self, root: &Ir<'a>) {
        let mut work = vec![root];
        while let Some(ir) = work.pop() {
            match ir.kind {
                IrKind::Unary(UnOp::Not, arg) => work.push(arg),
                IrKind::Logical(_, a, b) => work.extend([a, b]),
                IrKind::Ident(name) => {
                    self.found_quoted(ir, name, "counts as true");
                    self.lint_list_test(ir);
                }
                IrKind::Method { object, name, .. } => {
                    self.lint_place_as_test(ir, object, name);
                    self.lint_list_test(ir);
                }
                _ => {}
            }
        }
    }

    /// Reports `s.indexOf(x)` as a test: 0 is a valid position, and -1 means not found.
    fn lint_place_as_test(&mut self, ir: &Ir<'a>, object: &Ir<'a>, name: &[u8]) {
        let shown = Self::shown(name);
        if builtins::gives(&shown) != builtins::Gives::Index {
            return;
        }
        let called = self.called(object);
        let message = format!("`{shown}` gives -1 where there is none, which counts as true");
        let help = format!(
            "write `{0}.includes(...)`, or `{0}.{shown}(...) >= 0`",
            excerpt(&called)
        );
        self.found(codes::CONSTANT_CONDITION, ir.at, message, &shown, help);
    }

    /// Reports a comparison of such a text with `null`, `true` or `false`; returns whether it did.
    pub(super) fn lint_quoted_side(&mut self, side: &Ir<'a>, other: &Ir<'a>) -> bool {
        let value = matches!(
            other.kind,
            IrKind::Lit(Lit::Null | Lit::Undefined | Lit::Bool(_))
        );
        match side.kind {
            IrKind::Ident(name) if value => self.found_quoted(side, name, "equals no value"),
            _ => false,
        }
    }

    /// Reports `status == paid`, where a word that occurs only once in the program is more likely
    /// an unquoted text than an argument; returns whether it did.
    pub(super) fn lint_unquoted(&mut self, left: &Ir<'a>, right: &Ir<'a>) -> bool {
        let IrKind::Ident(name) = right.kind else {
            return false;
        };
        let is_named = matches!(left.kind, IrKind::Ident(_) | IrKind::Member { .. });
        let declares = self.lint.arguments.is_some();
        let shown = Self::shown(name);
        if !is_named
            || declares
            || right.at.inner.is_none()
            || self.in_helper
            || self.vars.knows(name)
            || self.is_given(right, name)
            || builtins::global(&shown).is_some()
            || self.has_outer()
        {
            return false;
        }
        let Some(source) = self.doc.source() else {
            return false;
        };
        // A byte comparison is cheaper than a name comparison.
        const BYTES: usize = 64;
        if !self.affords(source.len() / BYTES + 1) || count_word(source, name) != 1 {
            return false;
        }
        let message = format!(
            "nothing else names `{}`: it is undefined, unless it is an argument",
            excerpt(&shown)
        );
        let help = format!(
            "write `'{0}'` for a text, or declare the argument `{0}` in `inputSchema`",
            excerpt(&shown)
        );
        self.found(codes::UNKNOWN_NAME, right.at, message, &shown, help);
        true
    }

    fn found_quoted(&mut self, ir: &Ir<'a>, name: &[u8], what: &str) -> bool {
        if self.is_given(ir, name) {
            return false;
        }
        let Some(Constant::Text(text)) = self.constant_of(name) else {
            return false;
        };
        if !VALUE_WORDS.contains(&text) {
            return false;
        }
        let (shown, text) = (Self::shown(name), Self::shown(text));
        let word = match text.as_str() {
            "True" => "true",
            "False" => "false",
            "None" | "nil" | "undefined" => "null",
            other => other,
        };
        let message = format!("`{}` is the text \"{text}\", which {what}", excerpt(&shown));
        let help = format!(
            "write `{word}` without quotes where `{}` is set",
            excerpt(&shown)
        );
        self.found(codes::CONSTANT_CONDITION, ir.at, message, &shown, help);
        true
    }

    /// Reports a loop whose only step for its variable counts away from the bound; returns whether
    /// it did.
    pub(super) fn lint_direction(&mut self, step: NodeId, condition: &Ir<'a>) -> bool {
        let doc = self.doc;
        let (Some(place), Some(body)) = (doc.get(step, "condition"), doc.get(step, "body")) else {
            return false;
        };
        let IrKind::Binary(op, left, right) = condition.kind else {
            return false;
        };
        let (IrKind::Ident(name), IrKind::Lit(Lit::Number(bound))) = (left.kind, right.kind) else {
            return false;
        };
        let sign = match op {
            BinOp::Lt | BinOp::Le => '-',
            BinOp::Gt | BinOp::Ge => '+',
            _ => return false,
        };
        let shown = Self::shown(name);
        let Some(expr) = self.only_count(body, &shown) else {
            return false;
        };
        let rest = expr
            .trim()
            .strip_prefix(shown.as_str())
            .map(str::trim_start);
        let by = rest.and_then(|rest| rest.strip_prefix(sign));
        if !by.is_some_and(|by| by.trim().parse::<f64>().is_ok_and(|n| n > 0.0)) {
            return false;
        }
        let message = format!(
            "`{}` goes away from {bound}, so this never ends",
            excerpt(&shown)
        );
        let other = if sign == '-' { '+' } else { '-' };
        let help = format!("write `{shown} {other} 1`, or turn the comparison around");
        let text = super::text_of(doc, place).unwrap_or_default();
        self.found(codes::ENDLESS_LOOP, place, message, &text, help);
        true
    }

    /// The formula of the only `mathCalc` that binds a name in a body, if no step may leave the
    /// body.
    fn only_count(&self, body: NodeId, name: &str) -> Option<String> {
        let doc = self.doc;
        let mut found = None;
        let mut work = vec![body];
        while let Some(node) = work.pop() {
            let text = |key: &str| self.text(node, key);
            let op = text("op").unwrap_or_default();
            let ends = |sig: &AtomSig| {
                use Form::{Break, CallLocal, Return, RunCode};
                sig.always_fails() || matches!(sig.form, Some(Break | Return | CallLocal | RunCode))
            };
            if self.signature(&op).is_some_and(ends) {
                return None;
            }
            let binds = ["result", "key", "as", "catchParam"]
                .iter()
                .any(|key| text(key).as_deref() == Some(name));
            if binds && (found.is_some() || op != "mathCalc") {
                return None;
            }
            if binds {
                found = Some(text("expr")?);
            }
            if matches!(op.as_str(), "varsLet" | "varsImport") {
                return None;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        found
    }
}

/// Number of occurrences of a word in a text.
fn count_word(text: &[u8], word: &[u8]) -> usize {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || *b >= 0x80;
    text.windows(word.len())
        .enumerate()
        .filter(|(at, window)| {
            let before = at.checked_sub(1).and_then(|at| text.get(at));
            *window == word
                && !before.is_some_and(is_part)
                && !text.get(at + word.len()).is_some_and(is_part)
        })
        .count()
}
