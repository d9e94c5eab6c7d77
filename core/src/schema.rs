//! The JSON Schema subset of the language: checks and projects values (language section 2.9, with
//! the semantics and messages of tosijs-schema 1.3.0).
//!
//! A schema is read once from its JSON form. Reading never fails: unknown keywords are ignored.
//! Schemas cannot be recursive (there is no `$ref`), so a check descends at most
//! [`MAX_SCHEMA_DEPTH`] levels for any value. A [`Gauge`] is charged before each piece of work; it
//! also matches regular expressions.
//!
//! Not enforced, like in the reference: `additionalProperties: false`, and every element of long
//! arrays (a sample is checked unless `strict`).

mod check;
mod data;
mod example;
mod format;
mod read;
#[cfg(test)]
mod tests;

pub use check::{check, conforms};
pub use data::{Data, Gauge, Unmetered, View};
pub use example::{from_example, infer};

use crate::text::Text;
use crate::value::Value;
use format::Format;
use std::fmt;
use std::ops::Range;

/// Maximum nesting depth of schemas. A deeper part refuses every value, so unchecked data does not
/// pass.
pub const MAX_SCHEMA_DEPTH: u32 = 512;

/// Marks an absent index.
const NONE: u32 = u32::MAX;

/// A schema compiled for checks: flat lists of parts that refer to each other by index. The flat
/// form takes few allocations for schemas of any size.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// All parts; the first is the root.
    nodes: Vec<SchemaNode>,
    limits: Vec<ScalarLimits>,
    shapes: Vec<Shape>,
    allowed: Vec<ConstValue>,
    /// Names of members.
    names: Vec<Span>,
    indices: Vec<read::SchemaIndex>,
    /// Texts of all parts.
    text: Vec<u8>,
}

/// A range of a list.
#[derive(Copy, Clone, Debug, Default)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// A schema or one of its subschemas.
#[derive(Copy, Clone, Debug)]
struct SchemaNode {
    /// Nested deeper than [`MAX_SCHEMA_DEPTH`].
    too_deep: bool,
    /// True if `type` is a list. Such schemas are checked but not projected.
    kind_is_list: bool,
    /// True if the list of types contains `null`.
    nullable: bool,
    /// Marker of the type `undefined`, which distinguishes it from `null`.
    is_undefined: bool,
    /// The type, or the first of a list of types.
    kind: TypeKind,
    /// Index of its scalar limits, or [`NONE`].
    limits: u32,
    /// Index of its shape, or [`NONE`].
    shape: u32,
}

impl Default for SchemaNode {
    fn default() -> Self {
        SchemaNode {
            too_deep: false,
            kind_is_list: false,
            nullable: false,
            is_undefined: false,
            kind: TypeKind::Absent,
            limits: NONE,
            shape: NONE,
        }
    }
}

#[derive(Copy, Clone, Debug)]
enum TypeKind {
    Absent,
    /// The empty text, which is not a type but counts as a present one.
    Empty,
    Null,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Object,
    /// An unknown type, which no value has.
    Other(Span),
}

/// Constraints on scalars. NaN means no limit.
#[derive(Clone, Debug)]
struct ScalarLimits {
    constant: Option<ConstValue>,
    allowed: Option<Allowed>,
    minimum: f64,
    maximum: f64,
    multiple_of: f64,
    min_length: f64,
    max_length: f64,
    pattern: Option<Span>,
    format: Option<Format>,
}

impl Default for ScalarLimits {
    fn default() -> Self {
        ScalarLimits {
            constant: None,
            allowed: None,
            minimum: f64::NAN,
            maximum: f64::NAN,
            multiple_of: f64::NAN,
            min_length: f64::NAN,
            max_length: f64::NAN,
            pattern: None,
            format: None,
        }
    }
}

impl ScalarLimits {
    /// True if a check reads the content of texts.
    fn reads_text(&self) -> bool {
        self.allowed.is_some()
            || self.pattern.is_some()
            || self.format.is_some()
            || !self.min_length.is_nan()
            || !self.max_length.is_nan()
    }
}

/// A constant that values are compared with.
#[derive(Copy, Clone, Debug)]
enum ConstValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(Span),
    /// A container, which equals no value.
    Never,
}

/// The values of an `enum`, with an index if they are many.
#[derive(Copy, Clone, Debug)]
struct Allowed {
    span: Span,
    index: u32,
}

/// Member names, with an index if they are many.
#[derive(Copy, Clone, Debug)]
struct Names {
    span: Span,
    index: u32,
}

/// Constraints on members and elements. NaN means no limit.
#[derive(Clone, Debug)]
struct Shape {
    any_of: Option<Span>,
    min_properties: f64,
    max_properties: f64,
    required: Span,
    /// The declared names, and the index of the first of their schemas.
    properties: Option<(Names, u32)>,
    /// UTF-16 units of the required and declared names.
    units: usize,
    /// The schema of undeclared members, or [`NONE`].
    additional: u32,
    items: Option<Items>,
    min_items: f64,
    max_items: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            any_of: None,
            min_properties: f64::NAN,
            max_properties: f64::NAN,
            required: Span::default(),
            properties: None,
            units: 0,
            additional: NONE,
            items: None,
            min_items: f64::NAN,
            max_items: f64::NAN,
        }
    }
}

/// Schemas of an array's elements.
#[derive(Copy, Clone, Debug)]
enum Items {
    /// One schema for all elements.
    All(u32),
    /// One schema per position; further elements are not checked.
    Each(Span),
}

/// The reason why a value does not match; displayed as `<path>: <message>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Place in the value, keys and indices joined by dots; `root` for the value itself.
    pub path: String,
    /// RFC 6901 pointer to the same place; empty for the value itself.
    pub pointer: String,
    /// The mismatch, in the reference's words.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for SchemaError {}

impl Schema {
    /// Reads a schema of the host. A builder's wrapper `{schema: {..}}` is unwrapped; unknown
    /// content allows everything.
    #[must_use]
    pub fn parse(value: &Value) -> Self {
        let Ok(schema) = Self::read(value, &mut Unmetered);
        schema
    }

    /// Reads a schema as [`Schema::parse`] does, and charges the gauge.
    ///
    /// # Errors
    /// The gauge stopped the work.
    pub fn read<'d, D: Data<'d>, G: Gauge>(data: D, gauge: &mut G) -> Result<Self, G::Stop> {
        let inner = data
            .member(b"schema")
            .filter(|inner| inner.view().is_truthy());
        let mut schema = Schema::default();
        schema.nodes.push(SchemaNode::default());
        let mut reader = read::SchemaReader { schema, gauge };
        let root = reader.node(inner.unwrap_or(data), 0)?;
        reader.schema.nodes[0] = root;
        Ok(reader.schema)
    }

    /// The root of the schema, for projecting values.
    #[must_use]
    pub fn root(&self) -> Part<'_> {
        Part {
            schema: self,
            node: 0,
        }
    }

    /// Approximate memory usage in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<SchemaNode>()
            + self.limits.capacity() * size_of::<ScalarLimits>()
            + self.shapes.capacity() * size_of::<Shape>()
            + self.allowed.capacity() * size_of::<ConstValue>()
            + self.names.capacity() * size_of::<Span>()
            + self.text.capacity()
    }

    /// The node at an index. In an empty schema it allows everything.
    fn node(&self, at: u32) -> SchemaNode {
        self.nodes.get(at as usize).copied().unwrap_or_default()
    }

    fn text(&self, span: Span) -> &[u8] {
        &self.text[span.range()]
    }

    fn limits(&self, node: SchemaNode) -> Option<&ScalarLimits> {
        self.limits.get(node.limits as usize)
    }

    fn shape(&self, node: SchemaNode) -> Option<&Shape> {
        self.shapes.get(node.shape as usize)
    }
}

/// A subschema as a projection: at every level with a plain type, the declared members in the
/// schema's order.
#[derive(Copy, Clone, Debug)]
pub struct Part<'s> {
    schema: &'s Schema,
    node: u32,
}

/// Projection of a list's elements.
#[derive(Copy, Clone, Debug)]
pub enum KeptItems<'s> {
    /// Each element is projected by the same part.
    All(Part<'s>),
    /// The list keeps this many elements; the n-th is projected by the part [`Part::nth`] of n.
    Each(Part<'s>, usize),
}

impl<'s> Part<'s> {
    fn at(self, node: u32) -> Part<'s> {
        Part {
            schema: self.schema,
            node,
        }
    }

    /// The part `n` positions after this one.
    #[must_use]
    pub fn nth(self, n: usize) -> Part<'s> {
        self.at(self.node + n as u32)
    }

    fn node(self) -> SchemaNode {
        self.schema.node(self.node)
    }

    /// The members that an object keeps; `None` if it is kept whole.
    #[must_use]
    pub fn kept_members(self) -> Option<KeptMembers<'s>> {
        let node = self.node();
        let shape = self.schema.shape(node)?;
        let (names, nodes) = shape.properties?;
        let plain = matches!(node.kind, TypeKind::Object) && !node.kind_is_list;
        plain.then_some(KeptMembers {
            part: self.at(nodes),
            names: names.span,
            units: shape.units,
        })
    }

    /// Projection of a list's elements; `None` if the list is kept whole.
    #[must_use]
    pub fn kept_items(self) -> Option<KeptItems<'s>> {
        let node = self.node();
        let plain = matches!(node.kind, TypeKind::Array) && !node.kind_is_list;
        let items = self.schema.shape(node)?.items?;
        plain.then_some(match items {
            Items::All(at) => KeptItems::All(self.at(at)),
            Items::Each(span) => KeptItems::Each(self.at(span.start), span.len as usize),
        })
    }
}

/// The members that the projection of an object keeps.
#[derive(Copy, Clone, Debug)]
pub struct KeptMembers<'s> {
    part: Part<'s>,
    names: Span,
    units: usize,
}

impl<'s> KeptMembers<'s> {
    /// The number of declared members.
    #[must_use]
    pub fn len(self) -> usize {
        self.names.len as usize
    }

    /// True if no members are declared.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.names.len == 0
    }

    /// UTF-16 units of the names to look up.
    #[must_use]
    pub fn units(self) -> usize {
        self.units
    }

    /// Name and projection of the n-th member.
    #[must_use]
    pub fn get(self, n: usize) -> (&'s [u8], Part<'s>) {
        let schema = self.part.schema;
        let name = schema.names[self.names.range()][n];
        (schema.text(name), self.part.nth(n))
    }
}

/// ECMAScript truthiness of a JSON value (ECMA-262 §7.1.2).
#[must_use]
pub fn is_truthy(value: &Value) -> bool {
    value.view().is_truthy()
}

/// Checks a value against a schema. Patterns are not checked (they need a [`Gauge`]); long arrays
/// are sampled.
///
/// # Errors
/// The first mismatch.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), SchemaError> {
    let Ok(checked) = check(value, schema, &mut Unmetered, false);
    checked
}

/// Checks a value and keeps the declared members. Patterns are not checked.
///
/// # Errors
/// The first mismatch; then nothing is projected.
pub fn filter(value: &Value, schema: &Schema) -> Result<Value, SchemaError> {
    validate(value, schema)?;
    Ok(project(value, schema.root()))
}

/// Projects a host value to the declared members. Recursion is bounded by the schema's depth.
#[must_use]
pub fn project(value: &Value, part: Part<'_>) -> Value {
    match value {
        Value::Object(map) => match part.kept_members() {
            Some(kept) => (0..kept.len())
                .filter_map(|n| {
                    let (name, inner) = kept.get(n);
                    let value = map.get_bytes(name)?;
                    Some((Text::from_wtf8(name.to_vec()), project(value, inner)))
                })
                .collect::<crate::value::Map>()
                .into(),
            None => value.clone(),
        },
        Value::Array(list) => match part.kept_items() {
            Some(KeptItems::All(inner)) => {
                Value::Array(list.iter().map(|item| project(item, inner)).collect())
            }
            Some(KeptItems::Each(first, n)) => Value::Array(
                list.iter()
                    .take(n)
                    .enumerate()
                    .map(|(at, item)| project(item, first.nth(at)))
                    .collect(),
            ),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}
