//! Rules for ranges: comparisons with a number outside a value's range, and impossible list
//! indexes.
//!
//! Codes: `lint.constant_condition`, `lint.unknown_member`, `lint.wrong_arguments`.

use super::Rules;
use super::inference::of_schema;
use super::kinds::{Holds, Items, Members};
use super::origins::Origin;
use a99_compiler::expr::{BinOp, UnOp};
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::diag::{codes, excerpt};
use a99_core::json::Kind;

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Ranges of the results of methods, for any receiver, with their help.
#[rustfmt::skip]
const METHODS: &[(&str, f64, f64, &str)] = &[
    ("getMonth", 0.0, 11.0, "`getMonth` numbers months from 0: December is 11"),
    ("getDay", 0.0, 6.0, "days of the week are 0, Sunday, to 6, Saturday"),
    ("getDate", 1.0, 31.0, "days of a month are 1 to 31"),
    ("getHours", 0.0, 23.0, "hours are 0 to 23"),
    ("getMinutes", 0.0, 59.0, "minutes are 0 to 59"),
    ("getSeconds", 0.0, 59.0, "seconds are 0 to 59"),
    ("getMilliseconds", 0.0, 999.0, "milliseconds are 0 to 999"),
    ("indexOf", -1.0, f64::INFINITY, "-1 is none, 0 the first: write `xs.includes(x)`, or `>= 0`"),
    ("lastIndexOf", -1.0, f64::INFINITY, "-1 is none, 0 the first: write `xs.includes(x)`, or `>= 0`"),
    ("findIndex", -1.0, f64::INFINITY, "-1 is none, 0 the first: write `>= 0`"),
    ("search", -1.0, f64::INFINITY, "-1 is none, 0 the first: write `s.includes(x)`, or `>= 0`"),
];

/// Ranges of the members of a date, with their help.
#[rustfmt::skip]
const OF_DATE: &[(&str, f64, f64, &str)] = &[
    ("month", 1.0, 12.0, "`month` numbers months from 1: January is 1, December 12"),
    ("day", 1.0, 31.0, "days of a month are 1 to 31"),
    ("dayOfWeek", 0.0, 6.0, "days of the week are 0, Sunday, to 6, Saturday"),
    ("hours", 0.0, 23.0, "hours are 0 to 23"),
    ("minutes", 0.0, 59.0, "minutes are 0 to 59"),
    ("seconds", 0.0, 59.0, "seconds are 0 to 59"),
];

/// The value of a number literal.
fn number(ir: &Ir<'_>) -> Option<f64> {
    match ir.kind {
        IrKind::Lit(Lit::Number(n)) => Some(n),
        IrKind::Unary(UnOp::Neg, arg) => number(arg).map(|n| -n),
        _ => None,
    }
}

/// The constant result of comparing a value in `low..=high` with a number, if there is one.
fn decided(op: BinOp, (low, high): (f64, f64), n: f64) -> Option<bool> {
    let outside = n < low || n > high;
    let (yes, no) = match op {
        BinOp::Eq | BinOp::StrictEq => (false, outside),
        BinOp::Ne | BinOp::StrictNe => (outside, false),
        BinOp::Lt => (high < n, low >= n),
        BinOp::Le => (high <= n, low > n),
        BinOp::Gt => (low > n, high <= n),
        BinOp::Ge => (low >= n, high < n),
        _ => (false, false),
    };
    (yes || no).then_some(yes)
}

/// The comparison with its operands swapped.
fn turned(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        same => same,
    }
}

impl<'a> Rules<'_, 'a> {
    /// The range of an expression, if it is known.
    fn range_of(&self, ir: &Ir<'a>) -> Option<(f64, f64, &'static str)> {
        let of = |row: &(&str, f64, f64, &'static str)| (row.1, row.2, row.3);
        match ir.kind {
            IrKind::Method { object, name, .. } => {
                let name = Self::shown(name);
                if name == "random" && matches!(object.kind, IrKind::Ident(b"Math")) {
                    let help = "`Math.random()` is from 0 up to 1, 1 excluded: multiply it";
                    return Some((0.0, 1.0 - f64::EPSILON / 2.0, help));
                }
                METHODS.iter().find(|row| row.0 == name).map(of)
            }
            IrKind::Ident(name) if self.origin_of(name) == Some(Origin::Count) => {
                let help = "a length is 0 or more: write `n > 0`, or `n == 0`";
                Some((0.0, f64::INFINITY, help))
            }
            IrKind::Binary(BinOp::Rem, _, by) => {
                let by = number(by).map(f64::abs).filter(|by| *by >= 1.0)?;
                let most = by * (1.0 - f64::EPSILON);
                let help = "a remainder is below what is divided by, 0 where nothing is left";
                Some((-most, most, help))
            }
            IrKind::Member {
                object, property, ..
            } => {
                let of_date = || OF_DATE.iter().find(|row| row.0.as_bytes() == property);
                match (self.holds_of(object, DEPTH), property) {
                    (Holds::Date, _) => of_date().map(of),
                    (Holds::List(_) | Holds::Text | Holds::OneOf(_) | Holds::Made, b"length")
                    | (Holds::Set, b"size") => {
                        let help = "a length is 0 or more: write `xs.length > 0`, or \
                                    `xs.length == 0`";
                        Some((0.0, f64::INFINITY, help))
                    }
                    (Holds::Object(Members::Response), b"status") => {
                        let help = "a status is 100 to 599: what went well is 200 to 299";
                        Some((100.0, 599.0, help))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Reports a comparison with a number that the value never is, `date.getMonth() == 12`; returns
    /// whether it did.
    pub(super) fn lint_range(
        &mut self,
        ir: &Ir<'a>,
        op: BinOp,
        left: &Ir<'a>,
        right: &Ir<'a>,
    ) -> bool {
        let (side, n, op) = match (number(left), number(right)) {
            (None, Some(n)) => (left, n, op),
            (Some(n), None) => (right, n, turned(op)),
            _ => return false,
        };
        let Some((low, high, help)) = self.range_of(side) else {
            return false;
        };
        let Some(holds) = decided(op, (low, high), n) else {
            return false;
        };
        let what = match holds {
            true => "always holds",
            false => "never holds",
        };
        let called = self.called(side);
        let range = match high.is_infinite() {
            true => format!("{low} or more"),
            false => format!("from {} to {}", low.floor(), high.ceil()),
        };
        let message = format!("`{}` is {range}, so this {what}", excerpt(&called));
        self.found(codes::CONSTANT_CONDITION, ir.at, message, "", help);
        true
    }

    /// Reports `xs[-1]` and `xs[xs.length]`: no list has such an item.
    pub(super) fn lint_index(&mut self, ir: &Ir<'a>, object: &Ir<'a>, index: &Ir<'a>) {
        if let Some(n) = number(index) {
            self.lint_item_number(ir, object, n);
            if self.holds_of(object, DEPTH) == Holds::Set {
                let called = excerpt(&self.called(object));
                let message = format!("`{called}` is a set, whose items have no numbers");
                let help = match self.is_source() {
                    true => format!("make a list of it: `[...{called}][{n}]`"),
                    false => format!("make a list of it: `{called}.toArray()`"),
                };
                return self.found(codes::UNKNOWN_MEMBER, ir.at, message, &called, help);
            }
        }
        let is_length = match (index.kind, object.kind) {
            (
                IrKind::Member {
                    object: list,
                    property: b"length",
                    ..
                },
                _,
            ) => super::expressions::same_path(object, list),
            (IrKind::Ident(count), IrKind::Ident(list)) => self.counted_list(count) == Some(list),
            _ => false,
        };
        if !is_length {
            return;
        }
        let called = self.called(object);
        let shown = excerpt(&called);
        let by = excerpt(&self.called(index));
        let by = match index.kind {
            IrKind::Ident(_) => by,
            _ => format!("{shown}.length"),
        };
        let message = format!("`{shown}[{by}]` is beyond the end");
        let help =
            format!("items are numbered from 0: the last is `{shown}.at(-1)`, `{shown}[{by} - 1]`");
        self.found(codes::UNKNOWN_MEMBER, ir.at, message, "", help);
    }

    /// Reports `i == xs.length` in a loop over `xs`, whose last index is the length minus 1;
    /// returns whether it did.
    pub(super) fn lint_last_index(
        &mut self,
        ir: &Ir<'a>,
        op: BinOp,
        left: &Ir<'a>,
        right: &Ir<'a>,
    ) -> bool {
        let asks = matches!(op, BinOp::Eq | BinOp::StrictEq | BinOp::Ge | BinOp::Gt);
        let (
            IrKind::Ident(index),
            IrKind::Member {
                object,
                property: b"length",
                ..
            },
        ) = (left.kind, right.kind)
        else {
            return false;
        };
        let IrKind::Ident(list) = object.kind else {
            return false;
        };
        const FURTHEST: usize = 24;
        let doc = self.doc;
        let around = std::iter::successors(Some(ir.at.node), |node| doc.parent(*node));
        let is = |step, key: &str, name| doc.get(step, key).and_then(|n| doc.str(n)) == Some(name);
        let mut loops = around
            .take(FURTHEST)
            .filter(|step| is(*step, "index", index));
        if !asks || !loops.next().is_some_and(|step| is(step, "items", list)) {
            return false;
        }
        let (index, list) = (Self::shown(index), Self::shown(list));
        let message = format!(
            "`{}` is below `{}.length` in each turn, so this never holds",
            excerpt(&index),
            excerpt(&list)
        );
        let help = format!(
            "numbers begin at 0: the last is `{}.length - 1`",
            excerpt(&list)
        );
        self.found(codes::CONSTANT_CONDITION, ir.at, message, "", help);
        true
    }

    /// Reports a negative index.
    pub(super) fn lint_item_number(&mut self, ir: &Ir<'a>, object: &Ir<'a>, n: f64) {
        if n >= 0.0 || n.fract() != 0.0 || matches!(self.holds_of(object, DEPTH), Holds::Object(_))
        {
            return;
        }
        let called = self.called(object);
        let shown = excerpt(&called);
        let message = format!("items are numbered from 0: `{shown}` has no item {n}");
        let help = format!("from the end write `{shown}.at({n})`");
        self.found(codes::UNKNOWN_MEMBER, ir.at, message, "", help);
    }

    /// Whether a list surely contains numbers with several digits or a minus sign.
    fn has_numbers(&self, ir: &Ir<'a>) -> bool {
        let doc = self.doc;
        let of = |holds: Holds| matches!(holds, Holds::List(Items::Schema(schema)) if of_schema(doc, schema) == Holds::Number);
        if of(self.holds_of(ir, DEPTH)) {
            return true;
        }
        let wide = |n: f64| !(0.0..10.0).contains(&n);
        match ir.kind {
            IrKind::Array(items) => {
                items.iter().all(|item| number(item).is_some())
                    && items.iter().filter_map(number).any(wide)
            }
            IrKind::Ident(name) => {
                let Some(list) = self.literal_of_name(name) else {
                    return false;
                };
                const MOST: usize = 64;
                let numbers = || {
                    doc.elements(list)
                        .take(MOST)
                        .map(|item| match doc.kind(item) {
                            Kind::Number(n) => Some(n),
                            _ => None,
                        })
                };
                doc.kind(list) == Kind::Array
                    && numbers().all(|n| n.is_some())
                    && numbers().flatten().any(wide)
            }
            _ => false,
        }
    }

    /// Reports `numbers.sort()`, which compares texts: 10 comes before 9.
    pub(super) fn lint_sorted(
        &mut self,
        ir: &Ir<'a>,
        object: &Ir<'a>,
        name: &[u8],
        args: &[Ir<'a>],
    ) {
        if !matches!(name, b"sort" | b"toSorted") || !args.is_empty() || !self.has_numbers(object) {
            return;
        }
        let name = Self::shown(name);
        let message = format!("without a function `{name}` compares texts: 10 comes before 9");
        let help = match self.is_source() {
            true => format!("write `.{name}((a, b) => a - b)`"),
            false => {
                "use the atom `sort {items, order, result}`, which compares numbers".to_owned()
            }
        };
        self.found(codes::WRONG_ARGUMENTS, ir.at, message, &name, help);
    }

    /// Reports `texts.map(parseInt)`, which takes the item's index for the base.
    pub(super) fn lint_radix(&mut self, name: &[u8], args: &[Ir<'a>]) {
        let Some(first) = args
            .first()
            .filter(|_| matches!(name, b"map" | b"flatMap" | b"from"))
        else {
            return;
        };
        let is_first = name != b"from";
        let callback = match is_first {
            true => Some(first),
            false => args.get(1),
        };
        let Some(callback) = callback.filter(|ir| matches!(ir.kind, IrKind::Ident(b"parseInt")))
        else {
            return;
        };
        let message = "the number of the item comes along, and `parseInt` takes it for the base";
        let help = match self.is_source() {
            true => "write `Number`, or `(x) => parseInt(x, 10)`",
            false => "write `Number`",
        };
        self.found(
            codes::WRONG_ARGUMENTS,
            callback.at,
            message,
            "parseInt",
            help,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_beyond_a_range() {
        let months = (0.0, 11.0);
        for (op, n, says) in [
            (BinOp::Eq, 12.0, Some(false)),
            (BinOp::StrictNe, -1.0, Some(true)),
            (BinOp::Eq, 11.0, None),
            (BinOp::Lt, 12.0, Some(true)),
            (BinOp::Lt, 0.0, Some(false)),
            (BinOp::Ge, 0.0, Some(true)),
            (BinOp::Gt, 11.0, Some(false)),
            (BinOp::Gt, 10.0, None),
            (BinOp::Add, 99.0, None),
        ] {
            assert_eq!(decided(op, months, n), says, "{op:?} {n}");
        }
        assert_eq!(
            decided(turned(BinOp::Lt), (0.0, f64::INFINITY), -1.0),
            Some(true)
        );
    }
}
