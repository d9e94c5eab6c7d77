//! Rules for expressions: constant comparisons, arithmetic that is not a number, and calls with
//! another meaning here.
//!
//! Codes: `lint.bad_arithmetic`, `lint.code_as_text`, `lint.constant_condition`,
//! `lint.repeated_branch`.

use super::Rules;
use a99_compiler::expr::{BinOp, LogOp, UnOp};
use a99_compiler::ir::{Ir, IrKind, Lit, ObjKey};
use a99_core::builtins::{self, METHODS};
use a99_core::diag::codes;
use hashbrown::HashSet;
use smallvec::{SmallVec, smallvec};

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Results of `typeof`.
const TYPES: &[&str] = &[
    "undefined",
    "boolean",
    "number",
    "string",
    "object",
    "function",
];

/// The kind of a literal, in words; `undefined` and `null` compare with every kind.
fn kind_of(ir: &Ir<'_>) -> Option<&'static str> {
    match ir.kind {
        IrKind::Lit(Lit::Bool(_)) => Some("true or false"),
        IrKind::Lit(Lit::Number(_)) => Some("a number"),
        IrKind::Lit(Lit::Text(_)) => Some("a text"),
        IrKind::Data(_) => Some("a list or an object"),
        _ => None,
    }
}

fn is_equality(op: BinOp) -> bool {
    matches!(
        op,
        BinOp::Eq | BinOp::Ne | BinOp::StrictEq | BinOp::StrictNe
    )
}

fn is_order(op: BinOp) -> bool {
    matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

fn is_test(ir: &Ir<'_>) -> bool {
    matches!(ir.kind, IrKind::Binary(op, ..) if is_equality(op) || is_order(op))
}

/// The numeric value of an expression of literals.
fn number_of(ir: &Ir<'_>, depth: u32) -> Option<f64> {
    let depth = depth.checked_sub(1)?;
    let of = |ir: &Ir<'_>| number_of(ir, depth);
    match ir.kind {
        IrKind::Lit(Lit::Number(n)) => Some(n),
        IrKind::Binary(BinOp::Add, a, b) => Some(of(a)? + of(b)?),
        IrKind::Binary(BinOp::Sub, a, b) => Some(of(a)? - of(b)?),
        IrKind::Binary(BinOp::Mul, a, b) => Some(of(a)? * of(b)?),
        _ => None,
    }
}

/// Whether two operands are the same name or path.
pub(super) fn same_path(a: &Ir<'_>, b: &Ir<'_>) -> bool {
    let (mut a, mut b) = (a, b);
    loop {
        match (a.kind, b.kind) {
            (IrKind::Ident(a), IrKind::Ident(b)) => return a == b,
            (
                IrKind::Member {
                    object: x,
                    property: p,
                    ..
                },
                IrKind::Member {
                    object: y,
                    property: q,
                    ..
                },
            ) if p == q => (a, b) = (x, y),
            _ => return false,
        }
    }
}

/// The names that an expression reads, and whether it calls a function or method.
pub(super) fn names_in<'a>(root: &Ir<'a>) -> (HashSet<&'a [u8]>, bool) {
    let mut names = HashSet::new();
    let mut calls = false;
    let mut work: Work<'_, 'a> = smallvec![root];
    while let Some(ir) = work.pop() {
        match ir.kind {
            IrKind::Ident(name) => {
                names.insert(name);
            }
            IrKind::Call { .. } => calls = true,
            IrKind::Method { object, .. } => {
                calls |= matches!(object.kind, IrKind::Ident(name) if is_namespace(name));
            }
            _ => {}
        }
        children(ir, &mut work);
    }
    (names, calls)
}

/// Whether an expression reads a name.
pub(super) fn asks_for<'a>(root: &Ir<'a>, name: &[u8]) -> bool {
    let mut work: Work<'_, 'a> = smallvec![root];
    while let Some(ir) = work.pop() {
        if matches!(ir.kind, IrKind::Ident(other) if other == name) {
            return true;
        }
        children(ir, &mut work);
    }
    false
}

fn is_namespace(name: &[u8]) -> bool {
    matches!(name, b"Math" | b"Date")
}

/// Work list of expressions.
type Work<'i, 'a> = SmallVec<[&'i Ir<'a>; 8]>;

fn children<'i, 'a>(ir: &'i Ir<'a>, work: &mut Work<'i, 'a>) {
    match ir.kind {
        IrKind::Member { object, .. } => work.push(object),
        IrKind::Index { object, index, .. } => {
            work.push(object);
            work.push(index);
        }
        IrKind::Unary(_, arg) => work.push(arg),
        IrKind::Binary(_, a, b) | IrKind::Logical(_, a, b) => {
            work.push(a);
            work.push(b);
        }
        IrKind::Conditional(a, b, c) => work.extend([a, b, c]),
        IrKind::Array(items) => work.extend(items),
        IrKind::Object(entries) => {
            for (key, value) in entries {
                if let ObjKey::Computed(key) = key {
                    work.push(key);
                }
                work.push(value);
            }
        }
        IrKind::Call { args, .. } => work.extend(args),
        IrKind::Method { object, args, .. } => {
            work.push(object);
            work.extend(args);
        }
        IrKind::Fail { operands, .. } => work.extend(operands),
        IrKind::Lit(_) | IrKind::Data(_) | IrKind::Ident(_) | IrKind::Context(_) => {}
    }
}

impl<'a> Rules<'_, 'a> {
    /// Checks an expression and its subexpressions.
    pub(super) fn on_expr(&mut self, root: &Ir<'a>) {
        let mut work: Work<'_, 'a> = smallvec![root];
        while let Some(ir) = work.pop() {
            match ir.kind {
                IrKind::Binary(op, left, right) => self.lint_binary(ir, op, left, right),
                IrKind::Logical(op, left, right) => self.lint_logical(ir, op, left, right),
                IrKind::Call { callee, args } => {
                    self.lint_call(ir, callee, args);
                    self.lint_call_arguments(ir, callee, args);
                    self.lint_number_of(callee, args);
                }
                IrKind::Method {
                    object, name, args, ..
                } => {
                    self.on_method(name, args);
                    self.lint_sought(name, args);
                    self.lint_callback(object, name, args);
                    self.lint_receiver(ir, object, name);
                    self.lint_sorted(ir, object, name, args);
                    self.lint_radix(name, args);
                    self.lint_misused(ir, object, name, args);
                    self.lint_method_call(ir, object, name, args);
                }
                IrKind::Member {
                    object, property, ..
                } => self.lint_member(ir, object, property),
                IrKind::Index { object, index, .. } => match index.kind {
                    IrKind::Lit(Lit::Text(name)) => self.lint_member(ir, object, name),
                    _ => self.lint_index(ir, object, index),
                },
                IrKind::Lit(Lit::Text(text)) => self.lint_backticks(ir, text),
                IrKind::Unary(op, arg) => self.lint_sign(op, arg),
                IrKind::Conditional(_, yes, no) => self.lint_same_choice(ir, yes, no),
                _ => {}
            }
            children(ir, &mut work);
        }
        self.lint_given(root);
        self.lint_given_input(root);
        let step = self
            .doc
            .parent(root.at.node)
            .filter(|_| root.at.inner.is_some());
        let vars = step.and_then(|step| self.doc.get(step, "vars"));
        let reads = !matches!(root.kind, IrKind::Fail { .. });
        if let Some(vars) = vars.filter(|vars| reads && self.is_literal_object(*vars)) {
            let (names, _) = names_in(root);
            self.lint_unused_vars(vars, "expression", |name| names.contains(name));
        }
    }

    /// Checks a condition as an expression, and whether it is constant.
    pub(super) fn on_condition(&mut self, root: &Ir<'a>) {
        self.on_expr(root);
        self.lint_quoted(root);
        self.lint_decided(root);
        let message = match root.kind {
            IrKind::Lit(Lit::Text(_)) => "this condition is a text, which is always the same",
            IrKind::Lit(Lit::Undefined) if root.at.inner.is_none() => {
                if self.doc.str(root.at.node).is_none() {
                    return;
                }
                "this condition is blank, so it never holds"
            }
            IrKind::Data(_) => "this condition is data, which always counts as true",
            _ => return,
        };
        let help = match root.kind {
            IrKind::Data(node) => self.help_for_data(node),
            _ => "compare a variable with what it may be, as in `n > 3`".to_owned(),
        };
        self.found(codes::CONSTANT_CONDITION, root.at, message, "", help);
    }

    /// Reports a finding about a part of an expression.
    fn found_at(&mut self, code: &'static str, ir: &Ir<'a>, message: String, help: String) {
        self.found(code, ir.at, message, "", help);
    }

    fn lint_binary(&mut self, ir: &Ir<'a>, op: BinOp, left: &Ir<'a>, right: &Ir<'a>) {
        let text = |ir: &Ir<'a>| match ir.kind {
            IrKind::Lit(Lit::Text(text)) => Some(Self::shown(text)),
            _ => None,
        };
        if is_equality(op) || is_order(op) {
            if let (Some(a), Some(b)) = (kind_of(left), kind_of(right)) {
                let message = match a == b {
                    true => "this compares two literals, so it is always the same".to_owned(),
                    false => format!("this compares {a} with {b}, so it is always the same"),
                };
                let help = "compare a variable with a literal of its kind".to_owned();
                return self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
            }
            if same_path(left, right) {
                let message = "this compares something with itself".to_owned();
                let help = "name the other side; texts stand in quotes".to_owned();
                return self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
            }
        }
        if self.lint_last_index(ir, op, left, right) {
            return;
        }
        if is_order(op) && is_test(left) {
            let message = "this compares a number with true or false, the answer of the comparison \
                           before it";
            let help = "write both comparisons, as in `0 < n && n < 10`".to_owned();
            return self.found_at(codes::CONSTANT_CONDITION, ir, message.to_owned(), help);
        }
        if (is_order(op) || is_equality(op)) && self.lint_not(op, left, right) {
            return;
        }
        if is_equality(op) && self.lint_unquoted(left, right) {
            return;
        }
        if (is_order(op) || is_equality(op)) && self.lint_range(ir, op, left, right) {
            return;
        }
        if is_order(op) && (self.lint_joined(left, right) || self.lint_joined(right, left)) {
            return;
        }
        for (side, other) in [(left, right), (right, left)] {
            if !is_equality(op) {
                break;
            }
            if self.lint_quoted_side(side, other) {
                return;
            }
            if let Some(word @ ("null" | "undefined" | "None" | "NaN")) = text(other).as_deref()
                && !matches!(side.kind, IrKind::Unary(UnOp::Typeof, _))
            {
                let message = format!("this compares with the text \"{word}\", not with `{word}`");
                let help = match word {
                    "NaN" => "write `isNaN(x)`".to_owned(),
                    _ => "write `null` without quotes: `x == null` holds for undefined, too"
                        .to_owned(),
                };
                return self.found_at(codes::CONSTANT_CONDITION, other, message, help);
            }
            if matches!(side.kind, IrKind::Ident(b"NaN")) {
                let message = "nothing equals `NaN`, so this is always the same".to_owned();
                let help = "write `isNaN(x)`, or `!isNaN(x)`".to_owned();
                return self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
            }
            let is_value = matches!(
                other.kind,
                IrKind::Lit(Lit::Null | Lit::Undefined | Lit::Bool(_))
                    | IrKind::Ident(b"undefined")
            );
            if matches!(side.kind, IrKind::Unary(UnOp::Typeof, _)) && is_value {
                let message = "`typeof` gives a text, which is compared with a value".to_owned();
                let help = "write `typeof x === 'undefined'`, or `x == null`".to_owned();
                return self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
            }
            if matches!(side.kind, IrKind::Unary(UnOp::Typeof, _))
                && let Some(name) = text(other).filter(|name| !TYPES.contains(&name.as_str()))
            {
                let message = format!("`typeof` never gives \"{name}\"");
                let help = match name.as_str() {
                    "array" | "list" => "write `Array.isArray(x)`".to_owned(),
                    "null" => "write `x == null`".to_owned(),
                    _ => format!("it gives {}", TYPES.join(", ")),
                };
                return self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
            }
        }
        let held = [left, right].map(|side| self.holds_of(side, DEPTH));
        if self.lint_dates(ir, op, held) {
            return;
        }
        if is_equality(op) && (self.lint_case(ir, left, right) || self.lint_case(ir, right, left)) {
            return;
        }
        if op == BinOp::Add && self.lint_object_text(left, right, held) {
            return;
        }
        let divides = matches!(op, BinOp::Div | BinOp::Rem);
        if divides && number_of(right, 4) == Some(0.0) {
            let message = "this divides by 0, which gives `Infinity` or `NaN`".to_owned();
            let help = "divide by another number, or test before whether it is 0".to_owned();
            return self.found_at(codes::BAD_ARITHMETIC, ir, message, help);
        }
        if divides || matches!(op, BinOp::Sub | BinOp::Mul | BinOp::Pow) {
            let bad = [left, right].into_iter().filter_map(text);
            if let Some(bad) = { bad }.find(|text| !is_number(text)) {
                let bad = a99_core::diag::excerpt(&bad);
                let message = format!("\"{bad}\" is no number, so this gives `NaN`");
                let help = "calculate with numbers; `+` joins texts, `'-'.repeat(10)` repeats one"
                    .to_owned();
                return self.found_at(codes::BAD_ARITHMETIC, ir, message, help);
            }
        }
        if is_equality(op) || is_order(op) {
            let strict = matches!(op, BinOp::StrictEq | BinOp::StrictNe);
            return self.lint_compared(ir, (is_order(op), strict), [left, right], held);
        }
        if !self.lint_nothing(op, (ir, left, right)) && !self.lint_date_sum(op, left, right) {
            self.lint_operands(op, [left, right], held);
        }
    }

    /// Reports `!n > 3`, which compares a boolean; returns whether it did.
    fn lint_not(&mut self, op: BinOp, left: &Ir<'a>, right: &Ir<'a>) -> bool {
        if !matches!(left.kind, IrKind::Unary(UnOp::Not, _)) {
            return false;
        }
        let compares = match right.kind {
            IrKind::Lit(lit) => matches!(lit, Lit::Number(_) | Lit::Text(_)),
            IrKind::Unary(UnOp::Not, _) => false,
            // Comparing two tests is valid.
            _ => self.holds_of(right, DEPTH) != super::Holds::Bool,
        };
        if !compares {
            return false;
        }
        let message = "`!` belongs to the name alone: this compares true or false".to_owned();
        let help = match is_equality(op) {
            true => "write `a != b`, or `!(a == b)`".to_owned(),
            false => "write `!(n > 3)`, or `n <= 3`".to_owned(),
        };
        self.found_at(codes::CONSTANT_CONDITION, left, message, help);
        true
    }

    /// Reports `n > 5 && n < 3`, `a == 'x' && a == 'y'` and `a != 'x' || a != 'y'`, which are
    /// constant; returns whether it did.
    fn lint_pair(&mut self, ir: &Ir<'a>, op: LogOp, left: &Ir<'a>, right: &Ir<'a>) -> bool {
        let (IrKind::Binary(p, a, x), IrKind::Binary(q, b, y)) = (left.kind, right.kind) else {
            return false;
        };
        if !same_path(a, b) {
            return false;
        }
        let number = |ir: &Ir<'a>| match ir.kind {
            IrKind::Lit(Lit::Number(n)) => Some(n),
            _ => None,
        };
        let differ = match (x.kind, y.kind) {
            (IrKind::Lit(Lit::Text(x)), IrKind::Lit(Lit::Text(y))) => x != y,
            (IrKind::Lit(Lit::Number(x)), IrKind::Lit(Lit::Number(y))) => x != y,
            _ => false,
        };
        let is = |op| matches!(op, BinOp::Eq | BinOp::StrictEq);
        let is_not = |op| matches!(op, BinOp::Ne | BinOp::StrictNe);
        let above = |op| matches!(op, BinOp::Gt | BinOp::Ge);
        let below = |op| matches!(op, BinOp::Lt | BinOp::Le);
        let with = |op| matches!(op, BinOp::Ge | BinOp::Le);
        let both = |p, q| with(p) && with(q);
        let apart = match (number(x), number(y)) {
            (Some(x), Some(y)) if above(p) && below(q) => x > y || x == y && !both(p, q),
            (Some(x), Some(y)) if below(p) && above(q) => x < y || x == y && !both(p, q),
            _ => false,
        };
        let same_way = above(p) && above(q) || below(p) && below(q);
        let is_nothing = |ir: &Ir<'a>| matches!(ir.kind, IrKind::Lit(Lit::Null | Lit::Undefined));
        let (message, help) = match op {
            LogOp::And | LogOp::Or if same_way && number(x).is_some() && number(y).is_some() => (
                "one of the two comparisons says it all: the other one changes nothing",
                "leave it out, or turn one of them around for a range, as in `n > 3 && n < 5`",
            ),
            LogOp::And if is(p) && is_nothing(x) && (above(q) || below(q)) => (
                "nothing is above or below what is missing, so this never holds",
                "write `!=` for the first, and put `||` in parentheses: `&&` comes before it",
            ),
            LogOp::And if differ && is(p) && is(q) => (
                "nothing equals both, so this never holds",
                "write `||` between the two",
            ),
            LogOp::And if apart => (
                "no number is both, so this never holds",
                "write `||` between the two, or turn one of them around",
            ),
            LogOp::Or if differ && is_not(p) && is_not(q) => (
                "everything differs from one of them, so this always holds",
                "write `&&` between the two",
            ),
            _ => return false,
        };
        self.found_at(
            codes::CONSTANT_CONDITION,
            ir,
            message.to_owned(),
            help.to_owned(),
        );
        true
    }

    /// Reports `n == 1 || 2`, which always holds.
    fn lint_logical(&mut self, ir: &Ir<'a>, op: LogOp, left: &Ir<'a>, right: &Ir<'a>) {
        if self.lint_pair(ir, op, left, right) || self.lint_twice_asked(ir, left, right) {
            return;
        }
        if let IrKind::Lit(lit @ (Lit::Text(_) | Lit::Number(_))) = left.kind
            && !matches!(lit, Lit::Text(b""))
            && !matches!(lit, Lit::Number(n) if n == 0.0)
        {
            let which = match op {
                LogOp::And => "second",
                LogOp::Or | LogOp::Nullish => "first",
            };
            let message = format!("this is always the {which} of the two");
            let help = "compare with each of them, as in `kind == 'a' || kind == 'b'`; a `case` \
                        has one value, and several stand one after the other"
                .to_owned();
            return self.found_at(codes::CONSTANT_CONDITION, left, message, help);
        }
        if op == LogOp::Nullish || !is_test(left) || kind_of(right).is_none() {
            return;
        }
        if matches!(right.kind, IrKind::Lit(Lit::Bool(_))) {
            return;
        }
        let ir = right;
        let message = "this is a value, not a test: it is always the same".to_owned();
        let help = "write the whole comparison again, as in `n == 1 || n == 2`".to_owned();
        self.found_at(codes::CONSTANT_CONDITION, ir, message, help);
    }

    /// Reports `n > 3 ? 'big' : 'big'`, whose branches are equal.
    fn lint_same_choice(&mut self, ir: &Ir<'a>, yes: &Ir<'a>, no: &Ir<'a>) {
        let same = match (yes.kind, no.kind) {
            (IrKind::Lit(Lit::Text(a)), IrKind::Lit(Lit::Text(b))) => a == b,
            (IrKind::Lit(Lit::Number(a)), IrKind::Lit(Lit::Number(b))) => a == b,
            (IrKind::Lit(Lit::Bool(a)), IrKind::Lit(Lit::Bool(b))) => a == b,
            _ => same_path(yes, no),
        };
        if same {
            let message = "both answers are the same, whatever the test says".to_owned();
            let help = "write the other answer, or the value without a test".to_owned();
            self.found_at(codes::REPEATED_BRANCH, ir, message, help);
        }
    }

    /// Reports `isNaN(Date.parse(x))`: `Date.parse` returns a date here.
    fn lint_call(&mut self, ir: &Ir<'a>, callee: &[u8], args: &[Ir<'a>]) {
        let Some(IrKind::Method { object, name, .. }) = args.first().map(|ir| ir.kind) else {
            return;
        };
        if callee == b"isNaN" && name == b"parse" && matches!(object.kind, IrKind::Ident(b"Date")) {
            let message = "`Date.parse` gives a date, which is no number: this always holds";
            let help = "ask for its time, `isNaN(Date.parse(x).timestamp)`".to_owned();
            self.found_at(codes::CONSTANT_CONDITION, ir, message.to_owned(), help);
        }
    }

    /// Reports a search for a new list or object, which equals no item.
    fn lint_sought(&mut self, name: &[u8], args: &[Ir<'a>]) {
        let seeks = str::from_utf8(name).is_ok_and(builtins::searches_lists);
        let Some(first) = args.first().filter(|_| seeks) else {
            return;
        };
        if !matches!(
            first.kind,
            IrKind::Object(_) | IrKind::Array(_) | IrKind::Data(_)
        ) {
            return;
        }
        let shown = Self::shown(name);
        let message = format!("a new list or object equals nothing, so `{shown}` never finds it");
        let help = "ask for a member: `find {items, as, condition, result}`, or `some((x) => x.id === \
                    1)` in a source";
        self.found_at(codes::CONSTANT_CONDITION, first, message, help.to_owned());
    }

    /// Reports a function written as text, where only builtins are callable.
    fn lint_callback(&mut self, object: &Ir<'a>, name: &[u8], args: &[Ir<'a>]) {
        let Some(first) = args.first() else {
            return;
        };
        let IrKind::Lit(Lit::Text(text)) = first.kind else {
            return;
        };
        let (shown, text) = (Self::shown(name), Self::shown(text));
        let mut rows = METHODS.iter();
        if !rows.any(|row| row.name == shown && row.calls) {
            return;
        }
        let is_set = matches!(object.kind, IrKind::Ident(b"Set"));
        if is_set {
            return;
        }
        let message = format!("`{shown}` calls a builtin function, and gets a text");
        let help = match shown.as_str() {
            "filter" | "find" | "some" | "every" => {
                "use the atom `filter {items, as, condition, result}`, or `find`"
            }
            "reduce" | "reduceRight" => {
                "use the atom `reduce {items, as, accumulator, initial, steps}`"
            }
            "sort" | "toSorted" => "use the atom `sort {items, by, order, result}`",
            "forEach" => "use the step `forEach {items, as, steps}`",
            _ => "use the atom `map {items, as, steps, result}`",
        };
        self.found(codes::CODE_AS_TEXT, first.at, message, &text, help);
    }
}

/// Whether arithmetic reads a text as a number.
pub(super) fn is_number(text: &str) -> bool {
    let text = text.trim();
    let digits = ["0x", "0X", "0b", "0B", "0o", "0O"];
    let prefixed = digits.iter().any(|prefix| text.starts_with(prefix));
    text.is_empty() || prefixed || text.ends_with("Infinity") || text.parse::<f64>().is_ok()
}
