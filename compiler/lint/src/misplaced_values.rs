//! Rules for values in the wrong place: objects as text, arithmetic on dates, comparisons in the wrong
//! case.
//!
//! Codes: `lint.bad_arithmetic`, `lint.constant_condition`, `lint.return_in_body`,
//! `lint.unknown_member`, `lint.wrong_arguments`, `lint.wrong_kind`.

use super::Rules;
use super::kinds::{Holds, Items};
use a99_compiler::expr::BinOp;
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomInput, JsonKinds};

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Members of a literal list that are checked.
const MOST: usize = 64;

/// Placeholders of date parts in a format.
pub(super) const FORMAT_PARTS: &[&str] = &["YYYY", "MM", "DD", "HH", "mm", "ss"];

/// Misspellings of `length` that are no other member's name.
const LENGTHS: &[&str] = &[
    "lenght", "legnth", "lengh", "lenth", "lengt", "leng", "Length",
];

/// The value of a text literal.
fn text<'a>(ir: &Ir<'a>) -> Option<&'a [u8]> {
    match ir.kind {
        IrKind::Lit(Lit::Text(text)) => Some(text),
        _ => None,
    }
}

/// The value of a number literal.
fn number(ir: &Ir<'_>) -> Option<f64> {
    match ir.kind {
        IrKind::Lit(Lit::Number(n)) => Some(n),
        _ => None,
    }
}

/// The value of a negative number literal.
fn negative(ir: &Ir<'_>) -> Option<f64> {
    match ir.kind {
        IrKind::Lit(Lit::Number(n)) if n < 0.0 => Some(n),
        IrKind::Unary(a99_compiler::expr::UnOp::Neg, arg) => {
            number(arg).filter(|n| *n > 0.0).map(|n| -n)
        }
        _ => None,
    }
}

/// The case that a method converts a text to; `true` for upper case.
fn case_of(ir: &Ir<'_>) -> Option<bool> {
    match ir.kind {
        IrKind::Method { name, .. } => match name {
            b"toUpperCase" | b"toLocaleUpperCase" => Some(true),
            b"toLowerCase" | b"toLocaleLowerCase" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Rules<'_, 'a> {
    fn found_misuse(&mut self, code: &'static str, ir: &Ir<'a>, message: String, help: String) {
        self.found(code, ir.at, message, "", help);
    }

    /// Reports a comparison with a text in the other case, `s.toLowerCase() == 'Yes'`; returns
    /// whether it did.
    pub(super) fn lint_case(&mut self, ir: &Ir<'a>, cased: &Ir<'a>, other: &Ir<'a>) -> bool {
        let (Some(upper), Some(written)) = (case_of(cased), text(other)) else {
            return false;
        };
        let shown = Self::shown(written);
        let fits = match upper {
            true => shown.to_uppercase(),
            false => shown.to_lowercase(),
        };
        if fits == shown {
            return false;
        }
        let case = if upper { "upper" } else { "lower" };
        let message = format!("a text in {case} case never has \"{}\"", excerpt(&shown));
        let help = format!("write `'{}'`", excerpt(&fits));
        self.found_misuse(codes::CONSTANT_CONDITION, ir, message, help);
        true
    }

    /// Reports a comparison of two dates, or arithmetic on a date; returns whether it did.
    pub(super) fn lint_dates(&mut self, ir: &Ir<'a>, op: BinOp, held: [Holds; 2]) -> bool {
        let equality = matches!(
            op,
            BinOp::Eq | BinOp::Ne | BinOp::StrictEq | BinOp::StrictNe
        );
        let calculates = matches!(op, BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem);
        if !equality && !calculates {
            return false;
        }
        let dates = held.map(|holds| holds == Holds::Date);
        if equality && dates == [true, true] {
            let message = "two dates are never the same, even of one time".to_owned();
            let help = match self.is_source() {
                true => "compare `a.getTime() === b.getTime()`".to_owned(),
                false => "compare `a.timestamp == b.timestamp`".to_owned(),
            };
            self.found_misuse(codes::CONSTANT_CONDITION, ir, message, help);
            return true;
        }
        if calculates && (dates[0] || dates[1]) && !self.is_source() {
            let message = "a date is no number, so this gives `NaN`".to_owned();
            let help = "write `a.diff(b, 'days')`, or calculate with `a.timestamp`".to_owned();
            self.found_misuse(codes::BAD_ARITHMETIC, ir, message, help);
            return true;
        }
        false
    }

    /// Reports an object that is concatenated with a text; returns whether it did.
    pub(super) fn lint_object_text(
        &mut self,
        left: &Ir<'a>,
        right: &Ir<'a>,
        [of_left, of_right]: [Holds; 2],
    ) -> bool {
        for (side, held, other) in [(left, of_left, of_right), (right, of_right, of_left)] {
            let of_objects = match held {
                Holds::List(items) => matches!(self.item_held(items), Holds::Object(_)),
                _ => false,
            };
            let is_object = of_objects || matches!(held, Holds::Object(_));
            if !is_object || !other.is_text() {
                continue;
            }
            let called = excerpt(&self.called(side));
            if of_objects {
                let message = format!(
                    "the items of `{called}` are objects, each of which becomes `[object Object]`"
                );
                let help =
                    format!("join `JSON.stringify({called})`, or a text of a member of each item");
                self.found_misuse(codes::WRONG_KIND, side, message, help);
                return true;
            }
            let message =
                format!("`{called}` is an object, which becomes `[object Object]` in a text");
            let help = format!("join one of its members, or `JSON.stringify({called})`");
            self.found_misuse(codes::WRONG_KIND, side, message, help);
            return true;
        }
        false
    }

    /// Reports methods and functions whose arguments give a meaningless result.
    pub(super) fn lint_misused(
        &mut self,
        ir: &Ir<'a>,
        object: &Ir<'a>,
        name: &[u8],
        args: &[Ir<'a>],
    ) {
        let first = args.first();
        let holds = |this: &Self, ir: &Ir<'a>| this.holds_of(ir, DEPTH);
        match (name, first) {
            (b"push" | b"unshift", Some(_)) => self.lint_lost_list(ir, object, name),
            (b"includes" | b"startsWith" | b"endsWith" | b"indexOf", Some(first)) => {
                self.lint_case(ir, object, first);
            }
            (b"substring", Some(first)) if negative(first).is_some() => {
                let n = negative(first).unwrap_or_default();
                let message = format!("`substring` takes {n} for 0, which is the whole text");
                let help = format!("from the end write `.slice({n})`");
                self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help);
            }
            (b"slice", Some(first)) => {
                if let (Some(from), Some(to)) = (number(first), args.get(1).and_then(number))
                    && 0.0 <= to
                    && to < from
                {
                    let message = format!("from {from} to {to} there is nothing");
                    let help = format!("write `.slice({to}, {from})`");
                    self.found_misuse(codes::WRONG_ARGUMENTS, ir, message, help);
                }
            }
            (b"format", Some(first)) if holds(self, object) == Holds::Date => {
                let Some(format) = text(first) else { return };
                let shown = Self::shown(format);
                let named = matches!(shown.as_str(), "ISO" | "date" | "time");
                if named || FORMAT_PARTS.iter().any(|part| shown.contains(part)) {
                    if !named {
                        self.lint_format_parts(first, &shown);
                    }
                    return;
                }
                let message = format!("\"{}\" names no part of a date", excerpt(&shown));
                let help = "parts are YYYY, MM, DD, HH, mm and ss: `.format('YYYY-MM-DD HH:mm')`";
                self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help.to_owned());
            }
            (b"add", Some(first))
                if holds(self, object) == Holds::Date && holds(self, first) == Holds::Number =>
            {
                let message = "a number does not say of what: this adds nothing".to_owned();
                let help = "write `.add({ days: 1 })`; there are years, months, days, hours, \
                            minutes and seconds";
                self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help.to_owned());
            }
            (b"parse", Some(first)) if matches!(object.kind, IrKind::Ident(b"JSON")) => {
                if matches!(holds(self, first), Holds::Object(_) | Holds::List(_)) {
                    let called = excerpt(&self.called(first));
                    let message = format!("`{called}` is a value already, and no text of JSON");
                    let help = format!("use `{called}` as it is");
                    self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help);
                }
            }
            (b"stringify", Some(first)) if matches!(object.kind, IrKind::Ident(b"JSON")) => {
                let inner = matches!(first.kind, IrKind::Method { object, name: b"stringify", .. } if matches!(object.kind, IrKind::Ident(b"JSON")));
                if inner {
                    let message = "this is the text of a text, with quotes in quotes".to_owned();
                    let help = "call `JSON.stringify` once".to_owned();
                    self.found_misuse(codes::WRONG_ARGUMENTS, ir, message, help);
                }
            }
            _ => {}
        }
    }

    /// Reports `parseInt(xs)` of a list, and of texts that only begin as numbers.
    pub(super) fn lint_number_of(&mut self, callee: &[u8], args: &[Ir<'a>]) {
        let shown_callee = Self::shown(callee);
        if !builtins::function_gives("", &shown_callee).is_number() {
            return;
        }
        let Some(first) = args.first() else { return };
        if let Some(written) = text(first) {
            let shown = Self::shown(written);
            let digits = shown.bytes().any(|b| b.is_ascii_digit());
            if digits && shown.contains(',') {
                let plain = match shown.matches(',').count() {
                    1 if !shown.contains('.') => shown.replace(',', "."),
                    _ => shown.replace(',', ""),
                };
                let message = format!(
                    "`{shown_callee}` reads no comma: the rest is lost, or all of it is `NaN`"
                );
                let help = format!("write `{}`", excerpt(&plain));
                self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help);
            }
            return;
        }
        let holds = self.holds_of(first, DEPTH);
        if matches!(holds, Holds::List(_) | Holds::Object(_)) {
            let called = excerpt(&self.called(first));
            let message = format!(
                "`{shown_callee}` takes one text, and `{called}` is {}",
                holds.words()
            );
            let help = match holds {
                Holds::List(_) => format!(
                    "take one item, `{called}[0]`, or go through them by `map {{items, as, steps, result}}`"
                ),
                _ => "take one of its members".to_owned(),
            };
            self.found_misuse(codes::WRONG_ARGUMENTS, first, message, help);
        }
    }

    /// Reports a list as a test: it counts as true even if it is empty.
    pub(super) fn lint_list_test(&mut self, ir: &Ir<'a>) {
        let holds = self.holds_of(ir, DEPTH);
        let sure = match ir.kind {
            // An argument may be missing, unless it is required.
            IrKind::Ident(name) => {
                self.vars.knows(name)
                    && (!self.is_argument(&Self::shown(name)) || self.is_required(name))
            }
            IrKind::Method { .. } | IrKind::Array(_) => true,
            _ => false,
        };
        if !sure || !matches!(holds, Holds::List(_) | Holds::Set) {
            return;
        }
        let called = excerpt(&self.called(ir));
        let message = format!(
            "`{called}` is {}, which counts as true even if it is empty",
            holds.words()
        );
        let help = match holds {
            _ if called == "this" => "ask for its length, `.length > 0`".to_owned(),
            Holds::Set => format!("ask `{called}.size > 0`"),
            _ => format!("ask `{called}.length > 0`"),
        };
        self.found_misuse(codes::CONSTANT_CONDITION, ir, message, help);
    }

    fn is_required(&self, name: &[u8]) -> bool {
        let doc = self.doc;
        let schema = doc.get(doc.root(), "inputSchema");
        let names = schema.and_then(|schema| doc.get(schema, "required"));
        names.is_some_and(|list| doc.elements(list).any(|one| doc.str(one) == Some(name)))
    }

    /// Reports `xs.lenght` on a value of unknown kind; returns whether it did.
    pub(super) fn lint_length_typo(&mut self, ir: &Ir<'a>, object: &Ir<'a>, name: &str) -> bool {
        if !LENGTHS.contains(&name) || self.holds_of(object, DEPTH) != Holds::Any {
            return false;
        }
        let message = format!("hardly anything has a member `{name}`");
        self.found_misuse(
            codes::UNKNOWN_MEMBER,
            ir,
            message,
            "did you mean `length`?".to_owned(),
        );
        true
    }

    /// Reports an object as the value of a template hole.
    pub(super) fn lint_hole_value(&mut self, node: NodeId) {
        let Some(text) = self.doc.str(node) else {
            return;
        };
        let shown = excerpt(&Self::shown(text));
        let members = match self.holds_of_path(text) {
            Some(Holds::Object(members)) => members,
            Some(Holds::List(items)) if matches!(self.item_held(items), Holds::Object(_)) => {
                let message = format!(
                    "the items of `{shown}` are objects, each of which becomes `[object Object]`"
                );
                let help = "give its text by `jsonStringify {value, result}`, or make a text of each \
                            item by `map` and `template`, and `join` them";
                self.told(node);
                return self.found(codes::WRONG_KIND, node, message, &shown, help);
            }
            _ => return,
        };
        let message = format!("`{shown}` is an object, which becomes `[object Object]`");
        let names = self.members_of(Holds::Object(members));
        let member = names.first().map_or("name", String::as_str);
        let help = format!(
            "give one of its members, `\"{shown}.{}\"`, or its text by `jsonStringify {{value, result}}`",
            excerpt(member)
        );
        self.told(node);
        self.found(codes::WRONG_KIND, node, message, &shown, help);
    }

    /// Reports a list whose items have the wrong kind for `join`, `sort` or a vector search.
    pub(super) fn lint_items_kind(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let key = match op {
            "join" => "list",
            "sort" => "items",
            "storeVectorSearch" => "vector",
            "storeSearch" => "queryVector",
            _ => return,
        };
        let Some(place) = doc.get(step, key) else {
            return;
        };
        let held = match self.holds_of_value(place) {
            Holds::List(Items::Answers) => "`.value` of an answer",
            Holds::List(Items::Matches) => "`.match` of a match",
            Holds::List(Items::Objects) => "a member",
            _ => "",
        };
        if op == "join" && !held.is_empty() {
            let message = "an item is an object, which becomes `[object Object]`";
            let help = format!(
                "make a list of texts before: `map {{items, as, steps, result}}`, whose steps leave \
                 {held} in `result`"
            );
            return self.found(codes::WRONG_KIND, place, message, "", help);
        }
        let list = match doc.kind(place) {
            Kind::Array => place,
            Kind::String(name) => match self.literal_of_name(name) {
                Some(list) if doc.kind(list) == Kind::Array => list,
                _ => return,
            },
            _ => return,
        };
        let items: Vec<NodeId> = doc.elements(list).take(MOST).collect();
        let is_number_text = |node: &NodeId| {
            let text = doc.str(*node).and_then(|text| str::from_utf8(text).ok());
            text.is_some_and(|text| text.trim().parse::<f64>().is_ok())
        };
        let (code, what, help) = match op {
            "join" if items.iter().any(|node| self.is_literal_object(*node)) => (
                codes::WRONG_KIND,
                "an item is an object, which becomes `[object Object]`",
                "make a list of texts before: `map {items, as, steps, result}`, whose steps leave a \
                 member in `result`",
            ),
            "sort"
                if doc.get(step, "by").is_none()
                    && items.len() > 1
                    && items.iter().all(is_number_text) =>
            {
                (
                    codes::WRONG_KIND,
                    "these are texts, which are sorted letter by letter: \"10\" comes before \"9\"",
                    "write the numbers without quotes",
                )
            }
            "storeVectorSearch" | "storeSearch"
                if items.iter().any(|node| doc.str(*node).is_some()) =>
            {
                (
                    codes::WRONG_KIND,
                    "a vector is a list of numbers, and an item is a text",
                    "write the numbers without quotes",
                )
            }
            _ => return,
        };
        self.found(code, place, what, "", help);
    }

    /// Reports a model's answer where a list or an object is expected; returns whether it did.
    pub(super) fn lint_answer(&mut self, op: &str, input: &AtomInput, node: NodeId) -> bool {
        let (doc, name) = (self.doc, &input.name);
        let wanted = match input.kinds.without_null() {
            JsonKinds::ARRAY => "a list",
            JsonKinds::OBJECT => "an object",
            _ => return false,
        };
        let shown = excerpt(&super::text_of(doc, node).unwrap_or_default());
        let message = format!(
            "`{name}` of `{op}` wants {wanted}, and `{shown}` is what a model answered, a text"
        );
        self.told(node);
        let help = "make a value of it before: `jsonParse {str, result}`";
        self.found(codes::WRONG_KIND, node, message, &shown, help);
        true
    }

    /// Reports a `return` or `break` as a direct step of a loop: it leaves in the first iteration.
    pub(super) fn lint_first_turn(&mut self, steps: NodeId) {
        let doc = self.doc;
        let all: Vec<NodeId> = doc.elements(steps).take(1_000).collect();
        let form = |node: &NodeId| self.form_of(*node);
        use a99_core::sig::Form;
        let leaves = |node: &&NodeId| matches!(form(node), Some(Form::Return | Form::Break));
        let Some(place) = all.iter().find(leaves).copied() else {
            return;
        };
        if super::bodies::mentions(doc, steps, "continue") {
            return;
        }
        let op = self.text(place, "op");
        let op = op.unwrap_or_default();
        let message = format!("this `{op}` leaves the loop in its first turn");
        let help = match self.is_source() {
            true => "put it behind the loop, or into an `if`",
            false => "put it behind the loop, or into an `if {condition, then}`",
        };
        self.found(codes::RETURN_IN_BODY, place, message, &op, help);
    }

    /// Reports a text that the schema does not list; returns whether it did.
    pub(super) fn lint_choice(&mut self, holds: Holds, side: &Ir<'a>, other: &Ir<'a>) -> bool {
        let Some(text) = text(other) else {
            return false;
        };
        self.found_no_choice(holds, side, text, other)
    }

    /// Reports a text at a place that the schema does not list; returns whether it did.
    pub(super) fn found_no_choice(
        &mut self,
        holds: Holds,
        side: &Ir<'a>,
        text: &[u8],
        place: &Ir<'a>,
    ) -> bool {
        let Holds::OneOf(schema) = holds else {
            return false;
        };
        let Some((help, shown)) = self.choice_help(schema, text) else {
            return false;
        };
        let message = format!(
            "`{}` is never \"{}\": its schema lists other values",
            excerpt(&self.called(side)),
            excerpt(&shown)
        );
        self.found(codes::CONSTANT_CONDITION, place.at, message, &shown, help);
        true
    }
}
