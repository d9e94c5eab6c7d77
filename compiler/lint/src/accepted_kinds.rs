//! Rules for kinds: values of one that is not accepted at their place, and unknown members.
//!
//! Codes: `lint.bad_arithmetic`, `lint.constant_condition`, `lint.unknown_member`,
//! `lint.wrong_kind`.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use a99_compiler::expr::BinOp;
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins::{self, Receiver};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomInput, Form, JsonKinds};

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Whether an expression is a number that a method formats as a text.
fn is_digits(ir: &Ir<'_>) -> bool {
    matches!(
        ir.kind,
        IrKind::Method {
            name: b"toFixed" | b"toPrecision",
            ..
        }
    )
}

fn is_bool(ir: &Ir<'_>) -> bool {
    matches!(ir.kind, IrKind::Lit(Lit::Bool(_)))
}

fn is_empty_text(ir: &Ir<'_>) -> bool {
    matches!(ir.kind, IrKind::Lit(Lit::Text(b"")))
}

impl<'a> Rules<'_, 'a> {
    /// Reports a name or path whose value the input does not accept; returns whether it did.
    pub(super) fn lint_held(&mut self, op: &str, input: &AtomInput, node: NodeId) -> bool {
        let holds = self.holds_of_value(node);
        if holds == Holds::Any {
            return false;
        }
        if let ("join", Holds::List(Items::Schema(items))) = (op, holds)
            && matches!(
                super::inference::of_schema(self.doc, items),
                Holds::Object(_)
            )
        {
            let shown = super::text_of(self.doc, node).unwrap_or_default();
            let message = format!(
                "the items of `{}` are objects, each of which becomes `[object Object]`",
                excerpt(&shown)
            );
            let help = "make a list of texts before: `map {items, as, steps, result}`, whose steps leave \
                        a member in `result`";
            self.told(node);
            self.found(codes::WRONG_KIND, node, message, &shown, help);
            return true;
        }
        if holds == Holds::Answered && self.lint_answer(op, input, node) {
            return true;
        }
        let Some(kind) = holds.kind() else {
            return false;
        };
        let kinds = input.kinds;
        let counted = op == "len" && (holds.is_text() || kind == JsonKinds::ARRAY);
        if op == "len" && self.lint_list_text(node) {
            return true;
        }
        let fits = match (op, &*input.name) {
            // A number as a key is stored under its text.
            (_, "key") => true,
            // The text of a condition is an expression, whose value is tested.
            (_, "condition" | "stopWhen") => true,
            ("len", "list") => counted,
            // A set counts as a list there.
            ("sort" | "groupBy" | "unique" | "sum", "items") if holds == Holds::Set => true,
            _ => kinds == JsonKinds::NONE || kinds.contains(kind),
        };
        if fits {
            return false;
        }
        let name = &*input.name;
        let shown = self.shown_value(node);
        let wanted = match op {
            "len" => "a list or a text".to_owned(),
            _ => super::steps::wanted(kinds),
        };
        let message = format!(
            "`{name}` of `{op}` wants {wanted}, and `{}` is {}",
            excerpt(&shown),
            holds.words()
        );
        let help = self.help_for_held(op, input, node, holds);
        self.told(node);
        self.found(codes::WRONG_KIND, node, message, &shown, help);
        true
    }

    /// Reports an expression whose value the input does not accept.
    pub(super) fn lint_given_input(&mut self, root: &Ir<'a>) {
        if matches!(root.kind, IrKind::Lit(_)) {
            return;
        }
        let doc = self.doc;
        let node = root.at.node;
        // Code is in an object, `{"=": "..."}`, or is the text of a condition or formula.
        let value = match doc.kind(node) {
            Kind::Object => Some(node),
            _ => doc
                .parent(node)
                .filter(|value| doc.get(*value, "op").is_none()),
        };
        let step = value.and_then(|value| doc.parent(value));
        let Some((value, step)) = value.zip(step) else {
            return;
        };
        let op = doc.get(step, "op").and_then(|op| doc.str(op));
        let Some(op) = op.and_then(|op| str::from_utf8(op).ok()) else {
            return;
        };
        // These forms accept any kind.
        use Form::{ConstSet, If, Return, VarSet, While};
        let form = self.signature(op).and_then(|sig| sig.form);
        if matches!(form, Some(VarSet | ConstSet | Return | If | While)) {
            return;
        }
        let sig = self
            .signature(op)
            .filter(|_| self.holds_of_value(value) != Holds::Any);
        let mut inputs = sig.iter().flat_map(|sig| sig.inputs.iter());
        let input = inputs.find(|input| doc.get(step, &input.name) == Some(value));
        if let Some(input) = input.filter(|input| input.takes_references()) {
            self.lint_held(op, input, value);
        }
    }

    /// The name, path or other source text of a value.
    pub(super) fn shown_value(&self, node: NodeId) -> String {
        let text = super::text_of(self.doc, node);
        text.filter(|text| !self.is_source() || !text.starts_with('_'))
            .unwrap_or_else(|| match self.written_at(node, None) {
                text if text.is_empty() => "this".to_owned(),
                text => text,
            })
    }

    /// Reports a variable that holds a list's text, whose code units would be counted; returns
    /// whether it did.
    fn lint_list_text(&mut self, node: NodeId) -> bool {
        let doc = self.doc;
        let literal = doc.str(node).and_then(|name| self.literal_of_name(name));
        let text = literal.and_then(|literal| super::text_of(doc, literal));
        let Some(list) = text.filter(|text| super::inputs::is_json_text(text)) else {
            return false;
        };
        let shown = super::text_of(doc, node).unwrap_or_default();
        let message = format!(
            "`{}` is a text, of which the signs are counted",
            excerpt(&shown)
        );
        let help = format!(
            "write the value without quotes where it is set, `{}`, or make one of it by `jsonParse`",
            excerpt(&list)
        );
        self.told(node);
        self.found(codes::WRONG_KIND, node, message, &shown, help);
        true
    }

    /// Reports a path in a value position to a member that does not exist.
    pub(super) fn lint_path(&mut self, node: NodeId, text: &[u8]) {
        if self.vars.knows(text) {
            return;
        }
        let shown = Self::shown(text);
        let (root, rest, mut holds) = match shown.strip_prefix("args.") {
            Some(path) => {
                let (root, rest) = path.split_once('.').unwrap_or((path, ""));
                (root, rest, self.holds_of_argument(root.as_bytes()))
            }
            None => {
                let (root, rest) = shown.split_once('.').unwrap_or((&shown, ""));
                (root, rest, self.holds_of_name(root.as_bytes()))
            }
        };
        let caught = self.caught.contains(&root.as_bytes());
        if caught && !rest.is_empty() && rest != "message" && !self.is_source() {
            return self.found_in_error(node, root, rest, &shown);
        }
        if rest.is_empty()
            || caught
            || shown
                .split('.')
                .any(|p| builtins::is_forbidden(p.as_bytes()))
        {
            return;
        }
        let mut before = self.spoken_name(root, node);
        for part in rest.split('.') {
            match self.member_held(holds, part) {
                Some(next) => holds = next,
                None => {
                    return self.found_no_member(node, None, (&before, holds), part, &shown);
                }
            }
            before = format!("{before}.{part}");
        }
    }

    /// Reports a member of the name that a `catch` binds, which is only the message.
    fn found_in_error(&mut self, node: NodeId, root: &str, member: &str, shown: &str) {
        let message = format!(
            "`{}` is the message, a text, which has no member `{}`",
            excerpt(root),
            excerpt(member)
        );
        let help = match member {
            "op" | "atom" | "step" | "name" | "type" | "source" => {
                "the atom that failed is `\"errorOp\"`".to_owned()
            }
            _ => format!(
                "write `\"{root}\"` for the message, `\"errorOp\"` for the atom that failed"
            ),
        };
        self.found(codes::UNKNOWN_MEMBER, node, message, shown, help);
    }

    fn found_no_member(
        &mut self,
        node: NodeId,
        inner: Option<(u32, u32)>,
        (object, holds): (&str, Holds),
        name: &str,
        offending: &str,
    ) {
        let help = self.help_for_member(object, holds, name);
        let message = format!(
            "`{}` is {}, which has no member `{}`",
            excerpt(object),
            holds.words(),
            excerpt(name)
        );
        self.found(
            codes::UNKNOWN_MEMBER,
            (node, inner),
            message,
            offending,
            help,
        );
    }

    /// The source text of a value, for messages.
    pub(super) fn called(&self, ir: &Ir<'a>) -> String {
        match ir.kind {
            IrKind::Ident(name) => self.spoken_name(&Self::shown(name), ir.at.node),
            IrKind::Member {
                object, property, ..
            } => match object.kind {
                IrKind::Ident(name) => {
                    let name = self.spoken_name(&Self::shown(name), ir.at.node);
                    format!("{name}.{}", Self::shown(property))
                }
                _ => Self::shown(property),
            },
            IrKind::Method { name, .. } => format!("{}(...)", Self::shown(name)),
            _ => {
                let written = self.written_at(ir.at.node, ir.at.inner);
                match written.is_empty() {
                    true => "this".to_owned(),
                    false => written,
                }
            }
        }
    }

    pub(super) fn lint_member(&mut self, ir: &Ir<'a>, object: &Ir<'a>, property: &[u8]) {
        if matches!(
            object.kind,
            IrKind::Lit(Lit::Undefined | Lit::Null) | IrKind::Ident(b"undefined")
        ) {
            let message = "`null` and `undefined` have no members, so this is `undefined`";
            let help = "name the value whose member is meant";
            return self.found(codes::UNKNOWN_MEMBER, ir.at, message, "", help);
        }
        let holds = self.holds_of(object, DEPTH);
        // The most common property, on values that have it.
        let has_length = holds == Holds::Any || holds.is_text() || matches!(holds, Holds::List(_));
        if property == b"length" && has_length {
            return;
        }
        let name = Self::shown(property);
        if name.starts_with('-')
            && let Ok(n) = name.parse::<f64>()
        {
            return self.lint_item_number(ir, object, n);
        }
        if self.lint_length_typo(ir, object, &name)
            || self.lint_body_member(ir, object, property, None)
        {
            return;
        }
        let is_caught = matches!(object.kind, IrKind::Ident(name) if self.caught.contains(&name));
        if is_caught || builtins::is_forbidden(property) || self.member_held(holds, &name).is_some()
        {
            return;
        }
        let called = self.called(object);
        let is_method = holds.receiver().is_some_and(|receiver| {
            let method = builtins::METHODS.iter().find(|row| row.name == name);
            method.is_some_and(|row| row.on.contains(&receiver))
        });
        if is_method {
            let message = format!("`{name}` is a method, which is not called here");
            let help = format!("call it: `{}.{name}(...)`", excerpt(&called));
            return self.found(codes::UNKNOWN_MEMBER, ir.at, message, &name, help);
        }
        let at = ir.at;
        self.found_no_member(at.node, at.inner, (&called, holds), &name, &name);
    }

    /// Reports a method on a value that lacks it.
    pub(super) fn lint_receiver(&mut self, ir: &Ir<'a>, object: &Ir<'a>, name: &[u8]) {
        let holds = self.holds_of(object, DEPTH);
        if matches!(holds, Holds::Any | Holds::Answered) {
            return;
        }
        let shown = Self::shown(name);
        let Some(row) = builtins::METHODS.iter().find(|row| row.name == shown) else {
            return;
        };
        let receiver = holds.receiver();
        let fits = receiver.is_some_and(|kind| row.on.contains(&kind));
        if fits || row.on.contains(&Receiver::Any) {
            return;
        }
        let on: Vec<String> = row
            .on
            .iter()
            .map(|kind| format!("{}s", kind.as_str()))
            .collect();
        let message = format!(
            "`{shown}` is a method of {}, and `{}` is {}",
            on.join(" and "),
            excerpt(&self.called(object)),
            holds.words()
        );
        let help = self.help_for_receiver(holds, &shown, row.on);
        self.found(codes::UNKNOWN_MEMBER, ir.at, message, &shown, help);
    }

    /// Reports operands of arithmetic that are not numbers; returns whether it did.
    pub(super) fn lint_operands(
        &mut self,
        op: BinOp,
        [left, right]: [&Ir<'a>; 2],
        [of_left, of_right]: [Holds; 2],
    ) -> bool {
        let sides = [(left, of_left), (right, of_right)];
        let number = |ir: &Ir<'a>| matches!(ir.kind, IrKind::Lit(Lit::Number(_)));
        for (at, (side, holds)) in sides.into_iter().enumerate() {
            let (other, other_holds) = sides[1 - at];
            // Literals are checked at their place.
            if matches!(side.kind, IrKind::Lit(_)) {
                continue;
            }
            let joins = op == BinOp::Add;
            let wrong = match holds {
                // An atom's result is certainly an object, in any sum.
                Holds::Object(members) if members.named().is_some() => true,
                Holds::List(_) | Holds::Object(_) => {
                    !joins || other_holds == Holds::Number || matches!(other_holds, Holds::List(_))
                }
                Holds::Text | Holds::OneOf(_) if !joins => true,
                Holds::Text | Holds::OneOf(_) | Holds::Made => {
                    let digits =
                        is_digits(side) && (is_digits(other) || other_holds == Holds::Number);
                    joins && (number(other) || digits)
                }
                _ => false,
            };
            if !wrong {
                continue;
            }
            let called = self.called(side);
            let message = match joins {
                true => format!(
                    "`{}` is {}, so `+` joins texts here",
                    excerpt(&called),
                    holds.words()
                ),
                false => format!(
                    "`{}` is {}, so this gives `NaN`",
                    excerpt(&called),
                    holds.words()
                ),
            };
            let help = match (holds, joins) {
                (Holds::List(_), true) if matches!(other_holds, Holds::List(_)) => {
                    "join lists with the method `concat`"
                }
                (Holds::List(_), _) => {
                    "calculate with its items: `sum {items, by, result}` adds them, `reduce {items, \
                     as, accumulator, initial, steps}` and `map` do more"
                }
                (Holds::Object(Members::Answer), _) => {
                    "what the call gave is its `value`, as in `answers[0].value`; where it failed \
                     there is `error`"
                }
                (Holds::Object(_), _) => "calculate with one of its members",
                (_, true) if is_digits(side) => {
                    "add the numbers, and make a text of the sum: `(a + b).toFixed(2)`"
                }
                (_, true) => {
                    "make a number of it before, by `parseFloat` in a step; to join texts use \
                     `template`"
                }
                _ if op == BinOp::Sub && self.is_source() => {
                    "calculate with numbers: `parseFloat` makes one of a text; for an order of texts \
                     write `a.localeCompare(b)`"
                }
                _ => {
                    "calculate with numbers: `parseFloat` makes one of a text, `Date(x).diff` \
                     compares dates"
                }
            };
            self.found(codes::BAD_ARITHMETIC, side.at, message, &called, help);
            return true;
        }
        false
    }

    /// Reports a comparison of kinds that are never equal or ordered.
    pub(super) fn lint_compared(
        &mut self,
        ir: &Ir<'a>,
        (order, strict): (bool, bool),
        [left, right]: [&Ir<'a>; 2],
        sides: [Holds; 2],
    ) {
        for (at, side, other) in [(0, left, right), (1, right, left)] {
            let (holds, literal) = (sides[at], sides[1 - at]);
            if !order && matches!(other.kind, IrKind::Array(_) | IrKind::Object(_)) {
                return self.found_compound(ir);
            }
            if matches!(side.kind, IrKind::Lit(_)) {
                continue;
            }
            if self.lint_choice(holds, side, other) || self.lint_body_status(side, other) {
                return;
            }
            let help = match (holds, literal) {
                (Holds::List(_), Holds::Number) if order => "compare its length: `xs.length > 2`",
                (Holds::List(_), Holds::Number | Holds::Text | Holds::OneOf(_) | Holds::Made) => {
                    "ask whether it holds it, `xs.includes(x)`, or compare one item"
                }
                (Holds::Object(_), Holds::Number | Holds::Text | Holds::OneOf(_) | Holds::Made) => {
                    "compare one of its members"
                }
                (Holds::Text | Holds::OneOf(_), Holds::Number) if order || strict => {
                    "compare its length, `text.length > 2`, or a number"
                }
                (Holds::Made, Holds::Number) if strict && is_digits(side) => {
                    "compare the number itself, before it becomes a text, or `Number(...)` of it"
                }
                (Holds::Made, Holds::Number) if strict => {
                    "compare `Number(...)` of it, or write the number in quotes"
                }
                (Holds::Made, Holds::Bool) if strict || is_bool(other) => {
                    "compare it with a text, as in `x === 'true'`, or test the value itself"
                }
                (Holds::Number, Holds::Made)
                    if !strict && matches!(other.kind, IrKind::Lit(_)) && !is_empty_text(other) =>
                {
                    return self.found_digits(other, &self.called(side));
                }
                (Holds::Number, _) if is_empty_text(other) => {
                    "compare it with 0; for a value that is missing ask `n == null`"
                }
                (Holds::Text | Holds::OneOf(_), Holds::Bool) => {
                    "write `true` or `false` without quotes where it is set, or compare texts"
                }
                (Holds::Bool, Holds::Text | Holds::OneOf(_)) => {
                    "test it as it is: `ok`, or `!ok`; `true` without quotes is the value"
                }
                (Holds::Bool, Holds::Number) if strict => {
                    "test it as it is: `ok`, or `!ok`; a number is never the same as `true`"
                }
                (Holds::Number, Holds::Bool) if strict => {
                    "compare it with a number, as in `n === 1`"
                }
                (Holds::Bool, Holds::Number) if order => "test it as it is: `ok`, or `!ok`",
                (Holds::Number, Holds::Text | Holds::OneOf(_)) => "compare it with a number",
                (Holds::Number, Holds::Made) if strict => {
                    "write the number without quotes, as in `n === 5`"
                }
                (Holds::Date, Holds::Text | Holds::OneOf(_) | Holds::Made) => {
                    "compare dates by `isBefore` and `isAfter`, or their `value`s"
                }
                (Holds::Text | Holds::OneOf(_), Holds::Date) => {
                    "make a date of it: `Date(text).isBefore(other)`, or compare `.value`"
                }
                _ => continue,
            };
            let called = self.called(side);
            let message = format!(
                "`{}` is {}, which is compared with {}",
                excerpt(&called),
                holds.words(),
                literal.words()
            );
            return self.found(codes::CONSTANT_CONDITION, side.at, message, &called, help);
        }
    }

    /// Reports `age >= '18'`: a number that is written as a text.
    fn found_digits(&mut self, written: &Ir<'a>, called: &str) {
        let IrKind::Lit(Lit::Text(text)) = written.kind else {
            return;
        };
        let shown = Self::shown(text);
        let message = format!(
            "`{}` is a number, which is compared with a text",
            excerpt(called)
        );
        let help = format!("write the number without quotes: {}", excerpt(shown.trim()));
        self.found(codes::WRONG_KIND, written.at, message, &shown, help);
    }

    /// Reports `xs == []`: no two lists are equal.
    fn found_compound(&mut self, ir: &Ir<'a>) {
        let message = "a new list or object equals nothing, so this is always the same";
        let help = "ask for its length, as in `xs.length == 0`, or compare members";
        self.found(codes::CONSTANT_CONDITION, ir.at, message, "", help);
    }
}
