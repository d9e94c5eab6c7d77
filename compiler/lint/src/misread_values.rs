//! Rules for values that are lost or mean something else, as far as names and literals show.
//!
//! Codes: `lint.bad_arithmetic`, `lint.code_as_text`, `lint.dropped_result`, `lint.missing_result`,
//! `lint.name_as_text`, `lint.not_visible`, `lint.repeated_branch`, `lint.unknown_name`,
//! `lint.wrong_arguments`.

use super::Rules;
use super::kinds::Holds;
use super::misplaced_values::FORMAT_PARTS;
use a99_compiler::expr::{BinOp, UnOp};
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Form;

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Number of days in a month.
fn days_of(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Month and day of a text such as `2026-02-30`, and the last day of the month.
fn parts_of(text: &str) -> Option<(u32, u32, u32)> {
    let digits = |part: &str, count: usize| {
        let plain = part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse::<u32>().ok()).flatten()
    };
    let date = text.get(..10)?;
    let rest = &text[10..];
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let (month, day) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let ends = rest.is_empty() || rest.starts_with(['T', ' ']);
    ends.then(|| (month, day, days_of(year, month)))
}

/// Letters of a format that resemble a date part but are not one: `yyyy`.
fn no_part(format: &str) -> Option<&str> {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    let runs = format.split(|c: char| !is_letter(c));
    runs.filter(|run| run.len() > 1 && run.bytes().all(|b| b"YyMmDdHhSsT".contains(&b)))
        .flat_map(|run| run.split('T'))
        .find(|run| {
            let mut rest = *run;
            while let Some(part) = FORMAT_PARTS.iter().find(|part| rest.starts_with(**part)) {
                rest = &rest[part.len()..];
            }
            rest.len() > 1 || rest.len() == 1 && rest.len() < run.len()
        })
}

impl<'a> Rules<'_, 'a> {
    fn found_slip(&mut self, code: &'static str, ir: &Ir<'a>, message: String, help: String) {
        self.found(code, ir.at, message, "", help);
    }

    /// Reports a date that does not exist.
    pub(super) fn lint_no_such_day(&mut self, first: &Ir<'a>) {
        let IrKind::Lit(Lit::Text(text)) = first.kind else {
            return;
        };
        let shown = Self::shown(text);
        let Some((month, day, last)) = parts_of(&shown) else {
            return;
        };
        let (message, help) = match month {
            1..=12 if (1..=last).contains(&day) => return,
            1..=12 if (29..=31).contains(&day) => (
                "this month has no such day: the date is one of the next month",
                format!("its last day is `{}{last}`", &shown[..8]),
            ),
            _ if day > 0 && day <= 12 && month > 12 => (
                "this text is no date: the month comes second",
                format!("write `{}{day:02}-{month:02}`", &shown[..5]),
            ),
            1..=12 => (
                "this text is no date: there is no such day",
                format!("its last day is `{}{last}`", &shown[..8]),
            ),
            _ => (
                "this text is no date: months are 01 to 12",
                "write the year, the month and the day, as in `2024-12-31`".to_owned(),
            ),
        };
        self.found_slip(codes::WRONG_ARGUMENTS, first, message.to_owned(), help);
    }

    /// Reports a format with an unknown part, which is copied as written.
    pub(super) fn lint_format_parts(&mut self, first: &Ir<'a>, format: &str) {
        let Some(part) = no_part(format) else { return };
        let message = format!("`{part}` is no part of a date, so it is put there as it is written");
        let help = "parts are YYYY, MM, DD, HH, mm and ss: `.format('YYYY-MM-DD HH:mm')`";
        self.found_slip(codes::WRONG_ARGUMENTS, first, message, help.to_owned());
    }

    /// Reports `s.split(' ').push(x)`, which returns the number of items and loses the list.
    pub(super) fn lint_lost_list(&mut self, ir: &Ir<'a>, object: &Ir<'a>, name: &[u8]) {
        let is_new = match object.kind {
            IrKind::Method { name, .. } => {
                str::from_utf8(name).is_ok_and(a99_core::builtins::gives_new_list)
            }
            IrKind::Array(_) => true,
            _ => false,
        };
        if !is_new {
            return;
        }
        let shown = Self::shown(name);
        let message = format!("`{shown}` gives the number of items, and the list itself is lost");
        let help = match name {
            b"unshift" => "to have the list write `[x].concat(xs)`",
            _ => "to have the list write `xs.concat([x])`",
        };
        self.found_slip(codes::DROPPED_RESULT, ir, message, help.to_owned());
    }

    /// Reports `'Hi ${name}'` within an expression: a template literal without its backticks.
    pub(super) fn lint_backticks(&mut self, ir: &Ir<'a>, text: &[u8]) {
        let Some(at) = text.windows(2).position(|pair| pair == b"${") else {
            return;
        };
        let rest = &text[at + 2..];
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let end = rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
        let name = &rest[..end];
        let is_known =
            self.vars.knows(name) || str::from_utf8(name).is_ok_and(|name| self.is_argument(name));
        if !is_known || !rest.contains(&b'}') {
            return;
        }
        let message = "this text is not evaluated, it stands for itself".to_owned();
        let help = match self.is_version_4() {
            true => "a template literal has backticks: write `` `...${name}` ``".to_owned(),
            false => "join texts, as in `'Hi ' + name`, or use `template {tmpl, vars, result}`"
                .to_owned(),
        };
        self.found_slip(codes::CODE_AS_TEXT, ir, message, help);
    }

    /// Reports a sign before a value that is not a number: `-text`, `+list`.
    pub(super) fn lint_sign(&mut self, op: UnOp, arg: &Ir<'a>) {
        if !matches!(op, UnOp::Neg | UnOp::Plus)
            || matches!(arg.kind, IrKind::Lit(_) | IrKind::Data(_))
        {
            return;
        }
        let holds = self.holds_of(arg, DEPTH);
        let wrong = match holds {
            Holds::List(_) | Holds::Object(_) => true,
            Holds::Text | Holds::OneOf(_) => op == UnOp::Neg,
            _ => false,
        };
        if !wrong {
            return;
        }
        let called = excerpt(&self.called(arg));
        let message = format!("`{called}` is {}, so this gives `NaN`", holds.words());
        let help = match self.is_source() {
            true => "a number is made of one text: take an item or a member",
            false => "put a sign before a number only",
        };
        self.found_slip(codes::BAD_ARITHMETIC, arg, message, help.to_owned());
    }

    /// Reports equal operands, `a || a`; returns whether it did.
    pub(super) fn lint_twice_asked(&mut self, ir: &Ir<'a>, left: &Ir<'a>, right: &Ir<'a>) -> bool {
        if !super::expressions::same_path(left, right) {
            return false;
        }
        let message = "both sides are the same".to_owned();
        let help = "name the other one, or remove one of them".to_owned();
        self.found_slip(codes::REPEATED_BRANCH, ir, message, help);
        true
    }

    /// Reports arithmetic with `undefined`, which is not a number; returns whether it did.
    pub(super) fn lint_nothing(
        &mut self,
        op: BinOp,
        (ir, left, right): (&Ir<'a>, &Ir<'a>, &Ir<'a>),
    ) -> bool {
        let is_nothing = |side: &Ir<'a>| match side.kind {
            IrKind::Lit(Lit::Undefined) => side.at != ir.at,
            IrKind::Ident(name) => matches!(name, b"undefined" | b"NaN") && !self.vars.knows(name),
            _ => false,
        };
        let Some(side) = [left, right].into_iter().find(|side| is_nothing(side)) else {
            return false;
        };
        let joins = |side: &Ir<'a>| self.holds_of(side, DEPTH).is_text();
        if op == BinOp::Add && (joins(left) || joins(right)) {
            return false;
        }
        let message = "this calculates with nothing, which gives `NaN`";
        let help = "calculate with a number, as in `n + 1`, or with one that is there: `n ?? 0`";
        self.found_slip(
            codes::BAD_ARITHMETIC,
            side,
            message.to_owned(),
            help.to_owned(),
        );
        true
    }

    /// Reports `date + 1`, which concatenates texts; returns whether it did.
    pub(super) fn lint_date_sum(&mut self, op: BinOp, left: &Ir<'a>, right: &Ir<'a>) -> bool {
        if op != BinOp::Add {
            return false;
        }
        let sides = [left, right].map(|side| self.holds_of(side, DEPTH));
        let date = match sides {
            [Holds::Date, Holds::Number | Holds::Date] => left,
            [Holds::Number, Holds::Date] => right,
            _ => return false,
        };
        let called = excerpt(&self.called(date));
        let message = format!("`{called}` is a date, so `+` joins texts here");
        let help = match self.is_source() {
            true => format!(
                "for another day write `{called}.setUTCDate({called}.getUTCDate() + 1)`, or calculate \
                 with `{called}.getTime()`"
            ),
            false => format!(
                "write `{called}.add` with `{{\"days\": 1}}`, or calculate with `{called}.timestamp`"
            ),
        };
        self.found_slip(codes::BAD_ARITHMETIC, date, message, help);
        true
    }

    /// Reports a path from the item of a loop that has ended; returns whether it did.
    pub(super) fn lint_left_item(&mut self, node: NodeId, shown: &str) -> bool {
        let Some((root, rest)) = shown.split_once('.') else {
            return false;
        };
        let is_left = self.lint.left.contains(root.as_bytes());
        let is_member = super::names::is_identifier(rest.split('.').next().unwrap_or(rest));
        if !is_left || !is_member || self.knows_name(root) {
            return false;
        }
        let message = format!(
            "`{}` is the item of a loop, which is over: this is the text itself",
            excerpt(root)
        );
        let help = "read it in the steps of the loop, or name what the loop gives, its `result`";
        self.found(codes::NOT_VISIBLE, node, message, shown, help);
        true
    }

    /// Reports `response.name` where a variable is called `resp`; returns whether it did.
    pub(super) fn lint_cut_name(&mut self, node: NodeId, shown: &str) -> bool {
        const LEAST: usize = 3;
        // Looking at a name costs a fraction of a comparison.
        const LOOKS: usize = 16;
        // Inputs whose texts may contain dots.
        const TEXTS: &[&str] = &[
            "key",
            "collection",
            "prefix",
            "path",
            "url",
            "selector",
            "command",
            "agentId",
            "message",
            "tmpl",
            "text",
            "prompt",
            "id",
            "content",
            "cwd",
            "system",
            "user",
            "sep",
            "str",
        ];
        let Some((root, rest)) = shown.split_once('.') else {
            return false;
        };
        let is_path = root.len() > LEAST
            && super::names::is_identifier(root)
            && rest.split('.').all(super::names::is_identifier);
        let doc = self.doc;
        let parent = doc.parent(node);
        let is_text = |key: &&str| parent.and_then(|parent| doc.get(parent, key)) == Some(node);
        if !is_path
            || self.vars.knows(root.as_bytes())
            || self.is_argument(root)
            || TEXTS.iter().any(is_text)
            || !self.affords(self.vars.names_len() / LOOKS + 1)
        {
            return false;
        }
        let is_cut = |name: &&[u8]| {
            let (long, short) = match name.len() > root.len() {
                true => (*name, root.as_bytes()),
                false => (root.as_bytes(), *name),
            };
            short.len() >= LEAST && long.len() - short.len() > 1 && long.starts_with(short)
        };
        let mut names: Vec<&[u8]> = self.vars.known_names().filter(is_cut).collect();
        names.sort_unstable();
        let [name] = names[..] else {
            return false;
        };
        let name = Self::shown(name);
        let message = format!("no variable is called `{root}`, so this is the text itself");
        let help = format!("did you mean `{name}.{rest}`?");
        self.found(codes::UNKNOWN_NAME, node, message, shown, help);
        true
    }

    /// The member after a name in an expression text: `id` of `args.id`.
    pub(super) fn member_behind(&self, node: NodeId, inner: Option<(u32, u32)>) -> Option<String> {
        let doc = self.doc;
        let name = match inner {
            Some((_, to)) => {
                let rest = doc.str(node)?.get(to as usize..)?.strip_prefix(b".")?;
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                let end = rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
                &rest[..end]
            }
            None => {
                let parent = doc.parent(node)?;
                doc.get(parent, "property").and_then(|n| doc.str(n))?
            }
        };
        (!name.is_empty()).then(|| Self::shown(name))
    }

    /// Reports the name of an argument as an operand,
    /// `{"$expr": "binary", "op": "*", "left": "price", ...}`; returns whether it did.
    pub(super) fn lint_argument_operand(&mut self, node: NodeId, name: &[u8]) -> bool {
        let doc = self.doc;
        if self.vars.knows(name) || !str::from_utf8(name).is_ok_and(|name| self.is_argument(name)) {
            return false;
        }
        let Some(parent) = doc.parent(node) else {
            return false;
        };
        let op = doc.get(parent, "op").and_then(|op| doc.str(op));
        let calculates = match op.unwrap_or_default() {
            b"-" | b"*" | b"/" | b"%" | b"**" | b"<" | b">" | b"<=" | b">=" => true,
            // A text that is concatenated may be a plain word.
            b"+" => ["left", "right"].iter().all(|key| {
                let side = doc.get(parent, key);
                side.is_some_and(|side| match doc.kind(side) {
                    Kind::String(text) => {
                        str::from_utf8(text).is_ok_and(|text| self.is_argument(text))
                    }
                    kind => matches!(kind, Kind::Number(_)),
                })
            }),
            _ => false,
        };
        if !calculates {
            return false;
        }
        let shown = Self::shown(name);
        let text = format!(
            "in an expression `\"{}\"` is a text, not the argument",
            excerpt(&shown)
        );
        let help = format!("write `{{\"$expr\": \"ident\", \"name\": \"{shown}\"}}`");
        self.found(codes::NAME_AS_TEXT, node, text, &shown, help);
        true
    }

    /// Reports a `map` that binds `result` only in a final `if` without `else`.
    pub(super) fn lint_gaps(&mut self, steps: NodeId) {
        let doc = self.doc;
        let Some(only) = doc.elements(steps).last().filter(|_| !self.is_source()) else {
            return;
        };
        if self.form_of(only) != Some(Form::If) || doc.get(only, "else").is_some() {
            return;
        }
        let binds = |step: NodeId| {
            let names = ["result", "key"].map(|key| doc.get(step, key).and_then(|n| doc.str(n)));
            names.contains(&Some(b"result"))
                || doc
                    .members(step)
                    .any(|(_, value)| doc.kind(value) == Kind::Array)
        };
        if doc.elements(steps).any(|step| step != only && binds(step)) {
            return;
        }
        let condition = self.text(only, "condition");
        let message = "where this does not hold the item becomes `null`";
        let help = match condition {
            Some(condition) if doc.get(only, "vars").is_none() => format!(
                "choose the items before, `filter {{items, as, condition: \"{}\", result}}`, or give \
                 them another value in `else`",
                excerpt(&condition)
            ),
            _ => "choose the items before, `filter {items, as, condition, result}`, or give them \
                  another value in `else`"
                .to_owned(),
        };
        self.found(codes::MISSING_RESULT, only, message, "if", help);
    }

    /// Whether a step in a body of the program binds a name that goes out of scope with the body.
    pub(super) fn is_bound_inside(&mut self, name: &str) -> bool {
        let doc = self.doc;
        let steps = doc.get(doc.root(), "steps").filter(|_| !self.in_helper);
        let Some(steps) = steps.filter(|steps| self.spend_on(*steps)) else {
            return false;
        };
        let mut work = vec![steps];
        while let Some(node) = work.pop() {
            let ends = matches!(
                self.form_of(node),
                Some(Form::Scope | Form::Map | Form::Reduce | Form::Memoize | Form::Cache)
            );
            let body = doc.get(node, "steps").filter(|_| ends);
            if body.is_some_and(|body| self.bound_in(body).contains(name)) {
                return true;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{no_part, parts_of};

    #[test]
    fn parts_of_dates() {
        for (text, parts) in [
            ("2026-02-30", Some((2, 30, 28))),
            ("2024-02-30T10:00:00Z", Some((2, 30, 29))),
            ("2026-04-31", Some((4, 31, 30))),
            ("2026-13-01", Some((13, 1, 31))),
            ("2026-02-30x", None),
            ("30.02.2026", None),
        ] {
            assert_eq!(parts_of(text), parts, "{text}");
        }
    }

    #[test]
    fn parts_of_formats() {
        for (format, part) in [
            ("yyyy-MM-dd", Some("yyyy")),
            ("YYYY-MM-dd", Some("dd")),
            ("DD.MM.YY", Some("YY")),
            ("hh:mm", Some("hh")),
            ("YYYY-MM-DDTHH:mm:ss", None),
            ("YYYYMMDD", None),
            ("DD. MM. YYYY, HH:mm", None),
            ("Week of YYYY", None),
        ] {
            assert_eq!(no_part(format), part, "{format}");
        }
    }
}
