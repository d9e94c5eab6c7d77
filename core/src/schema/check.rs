//! Checks of values, in the reference's order and with its messages.

use super::data::{Data, Gauge, View, same_text, units_of};
use super::format::Format;
use super::{
    ConstValue, Items, NONE, ScalarLimits, Schema, SchemaError, SchemaNode, Shape, Span, TypeKind,
};
use crate::pointer;
use crate::text::wtf8_to_string_lossy;

/// Length above which arrays and records are sampled: about this many elements are checked, always
/// including the last (language section 2.9).
const SAMPLE: usize = 97;
/// Tolerance of `multipleOf` (language section 2.9).
const STEP_TOLERANCE: f64 = 1e-10;
/// The pattern of the format `emoji`.
const EMOJI: &[u8] = b"\\p{Extended_Pictographic}";
/// Approximate nanoseconds for a member lookup.
const LOOK_UP: usize = 64;

/// Checks a value against a schema. `strict` checks every element and `maxProperties`.
///
/// # Errors
/// The outer error: the gauge stopped the check. The inner error: the first mismatch.
pub fn check<'d, D: Data<'d>, G: Gauge>(
    data: D,
    schema: &Schema,
    gauge: &mut G,
    strict: bool,
) -> Result<Result<(), SchemaError>, G::Stop> {
    let mut check = Checker {
        schema,
        gauge,
        strict,
        path: Vec::new(),
    };
    match check.value(data, 0) {
        Ok(()) => Ok(Ok(())),
        Err(Failure::Stop(stop)) => Err(stop),
        // The path still leads to the mismatch, because failing steps do not pop.
        Err(Failure::Mismatch(mismatch)) => Ok(Err(check.error(mismatch))),
    }
}

/// Returns whether a value matches; like [`check`] without a report.
///
/// # Errors
/// The gauge stopped the check.
pub fn conforms<'d, D: Data<'d>, G: Gauge>(
    data: D,
    schema: &Schema,
    gauge: &mut G,
) -> Result<bool, G::Stop> {
    let mut check = Checker {
        schema,
        gauge,
        strict: false,
        path: Vec::new(),
    };
    match check.value(data, 0) {
        Ok(()) => Ok(true),
        Err(Failure::Mismatch(_)) => Ok(false),
        Err(Failure::Stop(stop)) => Err(stop),
    }
}

/// A mismatch. Its message is formatted only if it is reported.
enum Mismatch {
    Plain(&'static str),
    Missing(Span),
    Expected(&'static str),
    ExpectedOther(Span),
    Got(&'static str),
    Pattern(String),
}

enum Failure<S> {
    Mismatch(Mismatch),
    Stop(S),
}

impl<S> From<S> for Failure<S> {
    fn from(stop: S) -> Self {
        Failure::Stop(stop)
    }
}

type Outcome<G> = Result<(), Failure<<G as Gauge>::Stop>>;

fn mismatch<S>(mismatch: Mismatch) -> Result<(), Failure<S>> {
    Err(Failure::Mismatch(mismatch))
}

fn fail<S>(message: &'static str) -> Result<(), Failure<S>> {
    mismatch(Mismatch::Plain(message))
}

/// A step into a value.
enum CheckStep<'d> {
    Key(&'d [u8]),
    /// A declared name.
    Name(Span),
    Item(usize),
}

struct Checker<'s, 'g, 'd, G> {
    schema: &'s Schema,
    gauge: &'g mut G,
    strict: bool,
    path: Vec<CheckStep<'d>>,
}

impl<'s, 'd, G: Gauge> Checker<'s, '_, 'd, G> {
    fn value<D: Data<'d>>(&mut self, value: D, node: u32) -> Outcome<G> {
        self.gauge.nodes(1)?;
        let schema = self.schema;
        let node = schema.node(node);
        if node.too_deep {
            return fail("Schema too deep");
        }
        let (limits, shape) = (schema.limits(node), schema.shape(node));
        if let Some(any_of) = shape.and_then(|shape| shape.any_of) {
            return self.any_of(value, any_of);
        }
        let view = value.view();
        if let Some(constant) = limits.and_then(|limits| limits.constant) {
            return match self.is_constant(view, constant)? {
                true => Ok(()),
                false => fail("Const mismatch"),
            };
        }
        if matches!(view, View::Undefined | View::Null) {
            return nullish(view, node);
        }
        if let Some(limits) = limits {
            self.scalar(view, node, limits)?;
        } else {
            kind(view, node)?;
            check_finite(view)?;
        }
        match (node.kind, view, shape) {
            (TypeKind::Object, View::Object(count), Some(shape)) => {
                self.object(value, count, shape)
            }
            (TypeKind::Array, View::Array(count), Some(shape)) => self.array(value, count, shape),
            _ => Ok(()),
        }
    }

    /// Tries alternatives, without `strict`. If all fail, the mismatches of the alternatives are
    /// not reported.
    fn any_of<D: Data<'d>>(&mut self, value: D, any_of: Span) -> Outcome<G> {
        let strict = std::mem::replace(&mut self.strict, false);
        let depth = self.path.len();
        for inner in any_of.range() {
            match self.value(value, inner as u32) {
                Err(Failure::Mismatch(_)) => self.path.truncate(depth),
                done => {
                    self.strict = strict;
                    return done;
                }
            }
        }
        self.strict = strict;
        fail("Union mismatch")
    }

    /// Checks one step down. On failure the step remains in the path.
    fn step<D: Data<'d>>(&mut self, step: CheckStep<'d>, value: D, node: u32) -> Outcome<G> {
        self.path.push(step);
        self.value(value, node)?;
        self.path.pop();
        Ok(())
    }

    /// `===` between a value and a constant of a schema. Containers are never identical.
    fn is_constant(&mut self, view: View<'_>, constant: ConstValue) -> Result<bool, G::Stop> {
        Ok(match (view, constant) {
            (View::Null, ConstValue::Null) => true,
            (View::Bool(a), ConstValue::Bool(b)) => a == b,
            (View::Number(a), ConstValue::Number(b)) => a == b,
            (View::Text(text, units), ConstValue::Text(wanted)) => {
                if text.len() != wanted.len as usize {
                    return Ok(false);
                }
                self.text_units(text, units)?;
                same_text(self.gauge, text, self.schema.text(wanted))?
            }
            _ => false,
        })
    }

    /// Charges for reading a text and returns its UTF-16 units.
    fn text_units(&mut self, text: &[u8], units: Option<usize>) -> Result<usize, G::Stop> {
        let units = match units {
            Some(units) => units,
            None => units_of(self.gauge, text)?,
        };
        self.gauge.reads(0, units)?;
        Ok(units)
    }

    fn scalar(&mut self, view: View<'_>, node: SchemaNode, limits: &ScalarLimits) -> Outcome<G> {
        let schema = self.schema;
        match view {
            View::Text(text, units) => {
                let units = match limits.reads_text() {
                    true => self.text_units(text, units)?,
                    false => 0,
                };
                if let Some(allowed) = limits.allowed
                    && !schema.allows_text(self.gauge, allowed, text)?
                {
                    return fail("Enum mismatch");
                }
                kind(view, node)?;
                self.string(text, units, limits)
            }
            _ => {
                let constant = match view {
                    View::Number(number) => ConstValue::Number(number),
                    View::Bool(b) => ConstValue::Bool(b),
                    _ => ConstValue::Never,
                };
                if let Some(allowed) = limits.allowed
                    && !schema.allows_scalar(allowed, &constant)
                {
                    return fail("Enum mismatch");
                }
                kind(view, node)?;
                match view {
                    View::Number(number) => check_number(number, limits),
                    _ => Ok(()),
                }
            }
        }
    }

    fn string(&mut self, text: &[u8], units: usize, limits: &ScalarLimits) -> Outcome<G> {
        let length = units as f64;
        if length < limits.min_length {
            return fail("Len < min");
        }
        if length > limits.max_length {
            return fail("Len > max");
        }
        if let Some(pattern) = limits.pattern
            && !self.matches(self.schema.text(pattern), text, units)?
        {
            return fail("Pattern mismatch");
        }
        let valid = match limits.format {
            None => true,
            Some(Format::Emoji) => self.matches(EMOJI, text, units)?,
            Some(format) => format.fits(self.gauge, text)?,
        };
        if valid {
            Ok(())
        } else {
            fail("Format invalid")
        }
    }

    fn matches(
        &mut self,
        pattern: &[u8],
        text: &[u8],
        units: usize,
    ) -> Result<bool, Failure<G::Stop>> {
        self.gauge
            .matches(pattern, text, units)?
            .map_err(|why| Failure::Mismatch(Mismatch::Pattern(why)))
    }

    fn object<D: Data<'d>>(&mut self, value: D, count: usize, shape: &'s Shape) -> Outcome<G> {
        let members = count as f64;
        if members < shape.min_properties {
            return fail("Too few props");
        }
        if self.strict && members > shape.max_properties {
            return fail("Too many props");
        }
        let schema = self.schema;
        let declared = shape.properties.map_or(0, |(names, _)| names.span.len);
        let looks = (shape.required.len + declared) as usize;
        self.gauge.reads(looks, shape.units)?;
        for name in &schema.names[shape.required.range()] {
            self.gauge.passes(LOOK_UP)?;
            if value.member(schema.text(*name)).is_none() {
                return mismatch(Mismatch::Missing(*name));
            }
        }
        if let Some((names, nodes)) = shape.properties {
            for (at, name) in schema.names[names.span.range()].iter().enumerate() {
                self.gauge.passes(LOOK_UP)?;
                if let Some(value) = value.member(schema.text(*name)) {
                    self.step(CheckStep::Name(*name), value, nodes + at as u32)?;
                }
            }
        }
        if shape.additional == NONE {
            return Ok(());
        }
        self.additional(value, count, shape)
    }

    /// Checks all undeclared members, or a sample of them.
    fn additional<D: Data<'d>>(&mut self, value: D, count: usize, shape: &'s Shape) -> Outcome<G> {
        let names = shape.properties.map(|(names, _)| names);
        let mut others = count;
        if names.is_some() {
            others = 0;
            for (key, _) in value.members() {
                others += usize::from(!self.is_declared(names, key, true)?);
            }
        }
        let mut at = 0;
        for (key, value) in value.members() {
            self.gauge.reads(1, 0)?;
            if !self.is_declared(names, key, false)? {
                if self.is_sampled(at, others) {
                    self.step(CheckStep::Key(key), value, shape.additional)?;
                }
                at += 1;
            }
        }
        Ok(())
    }

    fn is_declared(
        &mut self,
        names: Option<super::Names>,
        key: &[u8],
        pay: bool,
    ) -> Result<bool, G::Stop> {
        let Some(names) = names else {
            return Ok(false);
        };
        if pay {
            let units = units_of(self.gauge, key)?;
            self.gauge.reads(0, units)?;
        }
        self.gauge.passes(LOOK_UP)?;
        self.schema.has_name(self.gauge, names, key)
    }

    fn array<D: Data<'d>>(&mut self, value: D, count: usize, shape: &'s Shape) -> Outcome<G> {
        let Some(items) = shape.items else {
            return Ok(());
        };
        let length = count as f64;
        if length < shape.min_items {
            return fail("Array too short");
        }
        if length > shape.max_items {
            return fail("Array too long");
        }
        match items {
            Items::Each(each) => {
                for (index, inner) in each.range().enumerate() {
                    match value.item(index) {
                        Some(item) => self.step(CheckStep::Item(index), item, inner as u32)?,
                        None => self.step(CheckStep::Item(index), Absent, inner as u32)?,
                    }
                }
            }
            Items::All(inner) => {
                let stride = self.stride(count);
                let last = count.saturating_sub(1);
                let regular = (0..count).step_by(stride);
                let sampled = regular.take_while(|index| stride == 1 || index + stride <= last);
                for index in sampled.chain((stride > 1).then_some(last)) {
                    if let Some(item) = value.item(index) {
                        self.step(CheckStep::Item(index), item, inner)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Distance between checked elements of `count`: 1 if they are few.
    fn stride(&self, count: usize) -> usize {
        if self.strict || count <= SAMPLE {
            1
        } else {
            count / SAMPLE
        }
    }

    /// True if a member is checked. The last member is checked in place of a sampled one that is
    /// closer than a stride to it.
    fn is_sampled(&self, index: usize, count: usize) -> bool {
        let stride = self.stride(count);
        let last = count.saturating_sub(1);
        stride == 1 || index == last || (index.is_multiple_of(stride) && index + stride <= last)
    }

    /// Formats a mismatch at the place that the path leads to.
    fn error(&self, mismatch: Mismatch) -> SchemaError {
        let mut path = String::new();
        let mut pointer = String::new();
        for step in &self.path {
            let name = match step {
                CheckStep::Key(key) => wtf8_to_string_lossy(key),
                CheckStep::Name(name) => wtf8_to_string_lossy(self.schema.text(*name)),
                CheckStep::Item(index) => index.to_string().into(),
            };
            // An empty leading name does not show, as in the references.
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            pointer::push_key(&mut pointer, &name);
        }
        if path.is_empty() {
            path.push_str("root");
        }
        let text = |span| wtf8_to_string_lossy(self.schema.text(span));
        SchemaError {
            path,
            pointer,
            message: match mismatch {
                Mismatch::Plain(message) => message.to_owned(),
                Mismatch::Missing(name) => format!("Missing {}", text(name)),
                Mismatch::Expected(kind) => format!("Expected {kind}"),
                Mismatch::ExpectedOther(kind) => format!("Expected {}", text(kind)),
                Mismatch::Got(kind) => format!("Expected value, got {kind}"),
                Mismatch::Pattern(why) => why,
            },
        }
    }
}

/// An element beyond the end of a list.
#[derive(Copy, Clone)]
struct Absent;

impl<'d> Data<'d> for Absent {
    fn view(self) -> View<'d> {
        View::Undefined
    }

    fn item(self, _: usize) -> Option<Self> {
        None
    }

    fn member(self, _: &[u8]) -> Option<Self> {
        None
    }

    fn members(self) -> impl Iterator<Item = (&'d [u8], Self)> {
        std::iter::empty()
    }
}

/// `null` and `undefined` match without a type, if the list of types contains `null`, and under the
/// type `null`, which the marker turns into `undefined`.
fn nullish<S>(view: View<'_>, node: SchemaNode) -> Result<(), Failure<S>> {
    let plain = !node.kind_is_list;
    let is_undefined = matches!(view, View::Undefined);
    let fits = match node.kind {
        TypeKind::Null => plain && node.is_undefined == is_undefined,
        TypeKind::Absent => plain,
        _ => false,
    };
    if fits || (node.kind_is_list && node.nullable) {
        Ok(())
    } else {
        mismatch(Mismatch::Got(view.kind()))
    }
}

fn kind<S>(view: View<'_>, node: SchemaNode) -> Result<(), Failure<S>> {
    let fits = match (node.kind, view) {
        (TypeKind::Absent | TypeKind::Empty, _) => true,
        (TypeKind::Integer, View::Number(number)) => number.is_finite() && number.trunc() == number,
        (TypeKind::Number, View::Number(_))
        | (TypeKind::Boolean, View::Bool(_))
        | (TypeKind::String, View::Text(..))
        | (TypeKind::Array, View::Array(_))
        | (TypeKind::Object, View::Object(_)) => true,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    mismatch(match node.kind {
        TypeKind::Other(name) => Mismatch::ExpectedOther(name),
        TypeKind::Null => Mismatch::Expected("null"),
        TypeKind::Boolean => Mismatch::Expected("boolean"),
        TypeKind::Number => Mismatch::Expected("number"),
        TypeKind::Integer => Mismatch::Expected("integer"),
        TypeKind::String => Mismatch::Expected("string"),
        TypeKind::Array => Mismatch::Expected("array"),
        TypeKind::Object | TypeKind::Absent | TypeKind::Empty => Mismatch::Expected("object"),
    })
}

fn check_finite<S>(view: View<'_>) -> Result<(), Failure<S>> {
    match view {
        View::Number(number) if !number.is_finite() => fail("Expected finite number"),
        _ => Ok(()),
    }
}

fn check_number<S>(number: f64, limits: &ScalarLimits) -> Result<(), Failure<S>> {
    check_finite(View::Number(number))?;
    if number < limits.minimum {
        return fail("Value < min");
    }
    if number > limits.maximum {
        return fail("Value > max");
    }
    let step = limits.multiple_of;
    let rest = (number % step).abs();
    if rest > STEP_TOLERANCE && (rest - step.abs()).abs() > STEP_TOLERANCE {
        return fail("Value not step");
    }
    Ok(())
}
