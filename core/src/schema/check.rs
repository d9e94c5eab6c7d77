//! Checking values, in the order and the words of the reference.

use super::format::matches_format;
use super::{Items, Schema, SchemaError};
use crate::pointer;
use crate::text::Text;
use crate::value::Value;

/// Arrays and records longer than this are sampled: about as many elements
/// are checked, and always the last (language section 2.9).
const SAMPLE: usize = 97;
/// How far a number may be from a multiple (language section 2.9).
const STEP_TOLERANCE: f64 = 1e-10;
/// The pattern by which text counts as having an emoji.
const EMOJI: &str = "\\p{Extended_Pictographic}";

/// Regular expressions for `pattern`, supplied by the caller: this crate has
/// no engine for them.
pub trait PatternMatcher {
    /// Whether `pattern`, an ECMAScript pattern, matches anywhere in `text`.
    ///
    /// # Errors
    /// Why the pattern cannot be used; the check then fails with that text.
    fn is_match(&self, pattern: &Text, text: &Text) -> Result<bool, String>;
}

/// Lets every pattern pass: for callers that do not check patterns.
#[derive(Copy, Clone, Debug, Default)]
pub struct UncheckedPatterns;

impl PatternMatcher for UncheckedPatterns {
    fn is_match(&self, _: &Text, _: &Text) -> Result<bool, String> {
        Ok(true)
    }
}

/// Checks a value against a schema; with `strict` every element and
/// `maxProperties` are checked.
///
/// # Errors
/// The first mismatch.
pub fn validate_with(
    value: &Value,
    schema: &Schema,
    patterns: &dyn PatternMatcher,
    strict: bool,
) -> Result<(), SchemaError> {
    let mut check = Check {
        patterns,
        strict,
        path: Vec::new(),
    };
    check.value(value, schema).map_err(|message| {
        // The path still leads to the mismatch: failing steps leave it there.
        let path = match check.path.is_empty() {
            true => "root".to_owned(),
            false => check.path.join("."),
        };
        let mut pointer = String::new();
        for step in &check.path {
            pointer::push_key(&mut pointer, step);
        }
        SchemaError {
            path,
            pointer,
            message,
        }
    })
}

type Outcome = Result<(), String>;

fn fail(message: &str) -> Outcome {
    Err(message.to_owned())
}

struct Check<'p> {
    patterns: &'p dyn PatternMatcher,
    strict: bool,
    path: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, value: &Value, schema: &Schema) -> Outcome {
        if schema.too_deep {
            return fail("Schema too deep");
        }
        if let Some(any_of) = &schema.any_of {
            let matches = |inner| validate_with(value, inner, self.patterns, false).is_ok();
            return if any_of.iter().any(matches) {
                Ok(())
            } else {
                fail("Union mismatch")
            };
        }
        if let Some(constant) = &schema.constant {
            return if same(value, constant) {
                Ok(())
            } else {
                fail("Const mismatch")
            };
        }
        if value.is_nullish() {
            return nullish(value, schema);
        }
        if let Some(allowed) = &schema.allowed
            && !allowed
                .iter()
                .any(|one| same(value, one) || both_nan(value, one))
        {
            return fail("Enum mismatch");
        }
        kind(value, schema)?;
        match value {
            Value::Number(number) => check_number(*number, schema),
            Value::String(text) => self.string(text, schema),
            _ => Ok(()),
        }?;
        match schema.kind.as_ref().and_then(Text::to_str) {
            Some("object") => self.object(value, schema),
            Some("array") => self.array(value, schema),
            _ => Ok(()),
        }
    }

    /// One step down; a failure leaves the step in the path.
    fn step(&mut self, name: String, value: &Value, schema: &Schema) -> Outcome {
        self.path.push(name);
        self.value(value, schema)?;
        self.path.pop();
        Ok(())
    }

    fn string(&self, text: &Text, schema: &Schema) -> Outcome {
        if schema.min_length.is_some() || schema.max_length.is_some() {
            let length = utf16_length(text.as_bytes()) as f64;
            if schema.min_length.is_some_and(|least| length < least) {
                return fail("Len < min");
            }
            if schema.max_length.is_some_and(|most| length > most) {
                return fail("Len > max");
            }
        }
        if let Some(pattern) = &schema.pattern
            && !self.patterns.is_match(pattern, text)?
        {
            return fail("Pattern mismatch");
        }
        let Some(format) = schema.format.as_ref().and_then(Text::to_str) else {
            return Ok(());
        };
        let valid = match format {
            "emoji" => self.patterns.is_match(&EMOJI.into(), text)?,
            _ => matches_format(format, &text.to_string_lossy()),
        };
        if valid {
            Ok(())
        } else {
            fail("Format invalid")
        }
    }

    fn object(&mut self, value: &Value, schema: &Schema) -> Outcome {
        let Value::Object(map) = value else {
            return Ok(());
        };
        let count = map.len() as f64;
        if schema.min_properties.is_some_and(|least| count < least) {
            return fail("Too few props");
        }
        if self.strict && schema.max_properties.is_some_and(|most| count > most) {
            return fail("Too many props");
        }
        if let Some(key) = schema
            .required
            .iter()
            .find(|key| map.get_bytes(key.as_bytes()).is_none())
        {
            return Err(format!("Missing {key}"));
        }
        let declared = schema.properties.as_deref().unwrap_or_default();
        for (key, inner) in declared {
            if let Some(value) = map.get_bytes(key.as_bytes()) {
                self.step(key.to_string(), value, inner)?;
            }
        }
        let Some(additional) = &schema.additional else {
            return Ok(());
        };
        let declared: std::collections::HashSet<&Text> =
            declared.iter().map(|(key, _)| key).collect();
        let others: Vec<_> = map
            .iter_js_order()
            .filter(|(key, _)| !declared.contains(key))
            .collect();
        for index in self.sample(others.len()) {
            let (key, value) = others[index];
            self.step(key.to_string(), value, additional)?;
        }
        Ok(())
    }

    fn array(&mut self, value: &Value, schema: &Schema) -> Outcome {
        let (Value::Array(list), Some(items)) = (value, &schema.items) else {
            return Ok(());
        };
        let count = list.len() as f64;
        if schema.min_items.is_some_and(|least| count < least) {
            return fail("Array too short");
        }
        if schema.max_items.is_some_and(|most| count > most) {
            return fail("Array too long");
        }
        match items {
            Items::Each(each) => {
                for (index, inner) in each.iter().enumerate() {
                    let item = list.get(index).unwrap_or(&Value::Undefined);
                    self.step(index.to_string(), item, inner)?;
                }
            }
            Items::All(inner) => {
                for index in self.sample(list.len()) {
                    self.step(index.to_string(), &list[index], inner)?;
                }
            }
        }
        Ok(())
    }

    /// The indices that are checked of `count`: every one if they are few,
    /// else at equal distances, the last one always.
    fn sample(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let stride = if self.strict || count <= SAMPLE {
            1
        } else {
            count / SAMPLE
        };
        let last = count.saturating_sub(1);
        // An index with less than a stride behind it stands for the last.
        let regular = (0..count)
            .step_by(stride)
            .take_while(move |&index| stride == 1 || index + stride <= last);
        regular.chain((stride > 1).then_some(last))
    }
}

/// `null` and `undefined` match where there is no type, where a list of types
/// has `null`, and under the type `null`, which the marker makes `undefined`.
fn nullish(value: &Value, schema: &Schema) -> Outcome {
    let fits = schema.is_plainly("null") && schema.is_undefined == value.is_undefined();
    let listed = schema.kind_is_list && schema.nullable;
    if fits || listed || (schema.kind.is_none() && !schema.kind_is_list) {
        Ok(())
    } else {
        Err(format!("Expected value, got {}", value.kind()))
    }
}

fn kind(value: &Value, schema: &Schema) -> Outcome {
    let Some(kind) = &schema.kind else {
        return Ok(());
    };
    let fits = match (kind.to_str(), value) {
        (Some("integer"), Value::Number(number)) => number.is_finite() && number.trunc() == *number,
        (Some("integer"), _) => false,
        (Some("array"), value) => matches!(value, Value::Array(_)),
        (Some("object"), value) => matches!(value, Value::Object(_)),
        (Some(kind), value) => value.kind() == kind,
        (None, _) => false,
    };
    // An empty type is no type, as in the reference.
    if fits || kind.is_empty() {
        Ok(())
    } else {
        Err(format!("Expected {kind}"))
    }
}

fn check_number(number: f64, schema: &Schema) -> Outcome {
    if !number.is_finite() {
        return fail("Expected finite number");
    }
    if schema.minimum.is_some_and(|least| number < least) {
        return fail("Value < min");
    }
    if schema.maximum.is_some_and(|most| number > most) {
        return fail("Value > max");
    }
    if let Some(step) = schema.multiple_of {
        let rest = (number % step).abs();
        if rest > STEP_TOLERANCE && (rest - step.abs()).abs() > STEP_TOLERANCE {
            return fail("Value not step");
        }
    }
    Ok(())
}

/// `===` between a value and one of a schema: containers are never identical.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(_) | Value::Object(_), _) => false,
        (Value::Number(a), Value::Number(b)) => a == b,
        _ => a == b,
    }
}

/// What `includes` adds to `===` (SameValueZero).
fn both_nan(a: &Value, b: &Value) -> bool {
    matches!((a, b), (Value::Number(a), Value::Number(b)) if a.is_nan() && b.is_nan())
}

/// UTF-16 units of WTF-8: one for each sequence, two for four-byte ones.
fn utf16_length(text: &[u8]) -> usize {
    text.iter()
        .map(|&byte| match byte {
            0x80..=0xBF => 0,
            0xF0.. => 2,
            _ => 1,
        })
        .sum()
}
