//! Predicates of documents: condition texts whose names are members (D81).

use crate::error::CapabilityError;
use a99_core::diag::excerpt;
use a99_core::schema::is_truthy;
use a99_core::text::Text;
use a99_core::value::Value;
use a99_expr::{BinOp, ExprId, ExprKind, Lit, LogOp, UnOp, parse_condition};
use std::cmp::Ordering;
use std::ops::Range;

/// Longest predicate in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Most parts of a predicate: names, constants, operators. It bounds the comparisons for each
/// document.
const MAX_PARTS: usize = 128;

/// Help text about the form of a predicate.
const FORM: &str = "a predicate compares members of a document with constants or each other, by \
    `==`, `!=`, `<`, `<=`, `>` and `>=`, joins comparisons by `&&`, `||` and `!`, and asks texts \
    and lists by `includes`, `startsWith` and `endsWith`";

/// A predicate, parsed once and evaluated for each document by a loop over its parts, at any
/// nesting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predicate {
    /// Parts come after their operands; the last one is the whole.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Constant(Value),
    /// A member of the document.
    Member(Text),
    /// A member or an item of another part.
    Of(usize, Key),
    Not(usize),
    And(usize, usize),
    Or(usize, usize),
    Compare(Comparison, usize, usize),
    Ask(Question, usize, usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Key {
    Name(Text),
    Index(usize),
}

/// Comparison of two values. Nothing is converted, as in queries (D80).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Question {
    Includes,
    StartsWith,
    EndsWith,
}

/// The value of a part for a document.
#[derive(Copy, Clone)]
enum Found<'a> {
    Value(&'a Value),
    Bool(bool),
}

impl<'a> Found<'a> {
    fn value(self) -> &'a Value {
        match self {
            Found::Value(value) => value,
            Found::Bool(true) => &Value::Bool(true),
            Found::Bool(false) => &Value::Bool(false),
        }
    }

    fn holds(self) -> bool {
        match self {
            Found::Value(value) => is_truthy(value),
            Found::Bool(holds) => holds,
        }
    }
}

impl Predicate {
    /// Reads a predicate.
    ///
    /// # Errors
    /// The text is too long, is no condition, or uses an unsupported form.
    pub(super) fn of(text: &Text) -> Result<Predicate, CapabilityError> {
        if text.len_bytes() > MAX_BYTES {
            let most = format!("The predicate has more than {MAX_BYTES} bytes.");
            return Err(CapabilityError::new(most));
        }
        let Some(source) = text.to_str() else {
            return Err(CapabilityError::new(
                "The predicate has half of a character.",
            ));
        };
        let expr = parse_condition(source).map_err(|error| {
            CapabilityError::new(format!("The predicate cannot be read: {error}"))
        })?;
        let Some(root) = expr.root else {
            return Err(CapabilityError::new(format!(
                "The predicate is empty; {FORM}."
            )));
        };
        if expr.nodes.len() > MAX_PARTS {
            let most = format!("The predicate has more than {MAX_PARTS} parts.");
            return Err(CapabilityError::new(most));
        }
        let mut parts = Vec::with_capacity(expr.nodes.len());
        // The operands of the root come before it.
        for node in expr.nodes.iter().take(root.0 as usize + 1) {
            let part = part(&parts, &node.kind);
            parts.push(part.ok_or_else(|| refused(source, &node.span))?);
        }
        Ok(Predicate { parts })
    }

    /// True if a document satisfies the predicate.
    pub(super) fn holds(&self, document: &Value) -> bool {
        let mut found: Vec<Found<'_>> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let value = match part {
                Part::Constant(value) => Found::Value(value),
                Part::Member(name) => Found::Value(member(document, name)),
                Part::Of(of, Key::Name(name)) => Found::Value(member(found[*of].value(), name)),
                Part::Of(of, Key::Index(at)) => {
                    let items = found[*of].value().as_array();
                    Found::Value(
                        items
                            .and_then(|items| items.get(*at))
                            .unwrap_or(&Value::Undefined),
                    )
                }
                Part::Not(of) => Found::Bool(!found[*of].holds()),
                Part::And(left, right) => {
                    Found::Bool(found[*left].holds() && found[*right].holds())
                }
                Part::Or(left, right) => Found::Bool(found[*left].holds() || found[*right].holds()),
                Part::Compare(how, left, right) => {
                    Found::Bool(how.holds(found[*left].value(), found[*right].value()))
                }
                Part::Ask(question, of, what) => {
                    Found::Bool(question.holds(found[*of].value(), found[*what].value()))
                }
            };
            found.push(value);
        }
        found.last().is_some_and(|whole| whole.holds())
    }
}

fn refused(source: &str, span: &Range<u32>) -> CapabilityError {
    let said = source.get(span.start as usize..span.end as usize);
    let said = excerpt(said.unwrap_or(source));
    let at = span.start;
    CapabilityError::new(format!(
        "The predicate says `{said}` at byte {at}, but {FORM}."
    ))
}

/// A node as a part whose operands come earlier; `None` for an unsupported form.
fn part(before: &[Part], kind: &ExprKind) -> Option<Part> {
    let at = |id: &ExprId| id.0 as usize;
    let constant = |id: &ExprId| match before.get(at(id)) {
        Some(Part::Constant(value)) => Some(value.clone()),
        _ => None,
    };
    Some(match kind {
        ExprKind::Literal(literal) => Part::Constant(match literal {
            Lit::Null => Value::Null,
            Lit::Bool(b) => Value::Bool(*b),
            Lit::Number(n) => Value::Number(*n),
            Lit::String(bytes) => Value::String(Text::from_wtf8(bytes.clone())),
        }),
        ExprKind::Ident(name) if &**name == "undefined" => Part::Constant(Value::Undefined),
        ExprKind::Ident(name) => Part::Member(name.as_ref().into()),
        ExprKind::Member {
            object, property, ..
        } => Part::Of(at(object), Key::Name(property.as_ref().into())),
        ExprKind::Index { object, index, .. } => match constant(index)? {
            Value::String(name) => Part::Of(at(object), Key::Name(name)),
            Value::Number(n) if n >= 0.0 && n.fract() == 0.0 && n < 4_294_967_295.0 => {
                Part::Of(at(object), Key::Index(n as usize))
            }
            _ => return None,
        },
        ExprKind::Unary { op: UnOp::Not, arg } => Part::Not(at(arg)),
        ExprKind::Unary { op: UnOp::Neg, arg } => match constant(arg)? {
            Value::Number(n) => Part::Constant(Value::Number(-n)),
            _ => return None,
        },
        ExprKind::Binary { op, left, right } => {
            let how = match op {
                BinOp::Eq | BinOp::StrictEq => Comparison::Equal,
                BinOp::Ne | BinOp::StrictNe => Comparison::Unequal,
                BinOp::Lt => Comparison::Less,
                BinOp::Le => Comparison::AtMost,
                BinOp::Gt => Comparison::Greater,
                BinOp::Ge => Comparison::AtLeast,
                _ => return None,
            };
            Part::Compare(how, at(left), at(right))
        }
        ExprKind::Logical { op, left, right } => match op {
            LogOp::And => Part::And(at(left), at(right)),
            LogOp::Or => Part::Or(at(left), at(right)),
            LogOp::Nullish => return None,
        },
        ExprKind::Array(items) => {
            let items: Option<Vec<Value>> = items.iter().map(constant).collect();
            Part::Constant(Value::Array(items?))
        }
        ExprKind::MethodCall {
            object,
            method,
            args,
            ..
        } => {
            let [what] = args.as_slice() else {
                return None;
            };
            let question = match &**method {
                "includes" => Question::Includes,
                "startsWith" => Question::StartsWith,
                "endsWith" => Question::EndsWith,
                _ => return None,
            };
            Part::Ask(question, at(object), at(what))
        }
        _ => return None,
    })
}

/// An own member, or `undefined`.
fn member<'a>(value: &'a Value, name: &Text) -> &'a Value {
    let found = value
        .as_object()
        .and_then(|members| members.get_bytes(name.as_bytes()));
    found.unwrap_or(&Value::Undefined)
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => order(left, right).is_some_and(Ordering::is_lt),
            Comparison::AtMost => order(left, right).is_some_and(Ordering::is_le),
            Comparison::Greater => order(left, right).is_some_and(Ordering::is_gt),
            Comparison::AtLeast => order(left, right).is_some_and(Ordering::is_ge),
        }
    }
}

/// The order of two numbers, or of two texts by their bytes; other values are unordered.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        _ => None,
    }
}

impl Question {
    fn holds(self, of: &Value, what: &Value) -> bool {
        match (of, what) {
            (Value::String(text), Value::String(part)) => {
                let (text, part) = (text.as_bytes(), part.as_bytes());
                match self {
                    Question::Includes => contains(text, part),
                    Question::StartsWith => text.starts_with(part),
                    Question::EndsWith => text.ends_with(part),
                }
            }
            (Value::Array(items), what) => self == Question::Includes && items.contains(what),
            _ => false,
        }
    }
}

/// True if a text contains a part, in time linear in both lengths; a naive search would take
/// their product.
fn contains(text: &[u8], part: &[u8]) -> bool {
    // Failure function of Knuth, Morris and Pratt.
    let mut back = vec![0; part.len()];
    let mut same = 0;
    for at in 1..part.len() {
        while same > 0 && part[at] != part[same] {
            same = back[same - 1];
        }
        same += usize::from(part[at] == part[same]);
        back[at] = same;
    }
    same = 0;
    for byte in text {
        if same == part.len() {
            break;
        }
        while same > 0 && *byte != part[same] {
            same = back[same - 1];
        }
        same += usize::from(*byte == part[same]);
    }
    same == part.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value;
    use proptest::prelude::*;

    fn holds(predicate: &str, document: &str) -> bool {
        let predicate = Predicate::of(&predicate.into()).unwrap_or_else(|e| panic!("{e}"));
        predicate.holds(&value(document))
    }

    const ANN: &str = r#"{"name": "Ann", "age": 41, "tags": ["a", "b"], "at": {"city": "Bern"},
        "ok": true, "none": null, "zero": 0, "in": 1}"#;

    #[test]
    fn d81_predicates_hold_or_not() {
        for predicate in [
            "age > 3",
            "age >= 41 && age <= 41",
            "41 == age",
            "age === 41",
            "age != 40",
            "name == 'Ann'",
            "name < 'Bob'",
            "at.city == 'Bern'",
            "at['city'] == \"Bern\"",
            "tags[1] == 'b'",
            "ok",
            "!none",
            "!zero",
            "!missing",
            "missing == undefined",
            "missing.deeper.still == undefined",
            "none == null",
            "none != undefined",
            "tags.includes('a')",
            "['x', 'Ann'].includes(name)",
            "[1, 41].includes(age)",
            "name.includes('n')",
            "name.includes('')",
            "name.startsWith('An')",
            "name.endsWith('nn')",
            "age < 3 || (name == 'Ann' && !(age == 5))",
            "age > -3",
            "tags == ['a', 'b']",
            "at.city == at.city",
            "true",
        ] {
            assert!(holds(predicate, ANN), "{predicate}");
        }
        for predicate in [
            "age > 50",
            // Nothing is converted.
            "age == '41'",
            "age > '3'",
            "name > 3",
            "none < 1",
            "zero == false",
            "missing == null",
            "missing < 1",
            "missing",
            "tags.includes('c')",
            "tags.startsWith('a')",
            "age.includes(4)",
            "name.includes('nN')",
            "name.includes(1)",
            "tags[9]",
            "name[0] == 'A'",
            "tags.length == 2",
            "false",
        ] {
            assert!(!holds(predicate, ANN), "{predicate}");
        }
        // Only objects have members.
        for document in ["5", "null", "\"age\"", "[1]"] {
            assert!(!holds("age > 3", document));
            assert!(holds("age == undefined", document));
        }
    }

    #[test]
    fn d81_what_predicates_do_not_say_is_told_with_its_place() {
        for (predicate, told) in [
            ("", "is empty"),
            ("age >", "cannot be read"),
            ("age + 1 > 3", "says `age + 1` at byte 0"),
            ("3 < age * 2", "says `age * 2` at byte 4"),
            ("Math.max(age, 2) == 2", "says `Math.max(age, 2)`"),
            ("name.toUpperCase() == 'A'", "says `name.toUpperCase()`"),
            ("name.includes('a', 1)", "says `name.includes('a', 1)`"),
            ("age > 3 ? true : false", "says"),
            ("age ?? 3", "says `age ?? 3`"),
            ("tags[age]", "says `tags[age]`"),
            ("[age].includes(3)", "says `[age]`"),
            ("-age < 3", "says `-age`"),
            ("typeof age == 'number'", "says `typeof age`"),
        ] {
            let error = Predicate::of(&predicate.into()).map(|_| ()).unwrap_err();
            let text = error.message.to_string();
            assert!(text.contains(told), "{predicate}: {text}");
        }
        let long = format!("name == '{}'", "x".repeat(MAX_BYTES));
        let many = vec!["a"; MAX_PARTS].join(" && ");
        for (text, told) in [
            (long, "more than 4096 bytes"),
            (many, "more than 128 parts"),
        ] {
            let error = Predicate::of(&text.as_str().into())
                .map(|_| ())
                .unwrap_err();
            assert!(error.message.to_string().contains(told));
        }
        let half = Text::from_wtf8(b"name == '\xed\xa0\x80'".to_vec());
        let error = Predicate::of(&half).map(|_| ()).unwrap_err();
        assert!(error.message.to_string().contains("half of a character"));
    }

    proptest! {
        #[test]
        fn d81_parts_of_texts_are_found(text in "[ab]{0,20}", part in "[ab]{0,5}") {
            prop_assert_eq!(contains(text.as_bytes(), part.as_bytes()), text.contains(&part));
        }
    }
}
