//! The JSON Schema subset of the language: checking values and projecting them
//! (language section 2.9, with the semantics and messages of tosijs-schema 1.3.0).
//!
//! A schema is read once from its JSON form and never fails to be read: what
//! the subset does not know is ignored. Nothing refers to itself (there is no
//! `$ref`), so checks descend at most [`MAX_SCHEMA_DEPTH`] levels, whatever
//! the value. What that costs is told to a [`Gauge`] before it is done, which
//! also knows regular expressions.
//!
//! Not enforced, like in the reference: `additionalProperties: false`, and
//! every element of long arrays (a sample is checked unless `strict`).

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

/// How deep schemas may nest; a deeper part refuses every value, so that what
/// cannot be checked does not pass.
pub const MAX_SCHEMA_DEPTH: u32 = 512;

/// No place in a list.
const NONE: u32 = u32::MAX;

/// A schema in the form that checks use: flat lists of parts that name each
/// other by their places, so that the whole is few allocations, however large
/// it is.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The parts; the first is the whole.
    nodes: Vec<SchemaNode>,
    limits: Vec<ScalarLimits>,
    shapes: Vec<Shape>,
    allowed: Vec<ConstValue>,
    /// Names of members.
    names: Vec<Span>,
    indices: Vec<read::SchemaIndex>,
    /// The texts of all parts.
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

/// A schema, or one within it.
#[derive(Copy, Clone, Debug)]
struct SchemaNode {
    /// Nested deeper than [`MAX_SCHEMA_DEPTH`].
    too_deep: bool,
    /// Whether `type` is a list: such schemas are checked but not projected.
    kind_is_list: bool,
    /// Whether a list of types holds `null`.
    nullable: bool,
    /// The marker by which `undefined` is told from `null`.
    is_undefined: bool,
    /// The type, or the first of a list of types.
    kind: TypeKind,
    /// The place of its limits of scalars, or [`NONE`].
    limits: u32,
    /// The place of what it says of members and elements, or [`NONE`].
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
    /// The empty text, which is no type but hides that there is none.
    Empty,
    Null,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Object,
    /// Anything else: no value has it.
    Other(Span),
}

/// What scalars must be; a limit that is NaN limits nothing.
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
    /// Whether texts are read to be checked.
    fn reads_text(&self) -> bool {
        self.allowed.is_some()
            || self.pattern.is_some()
            || self.format.is_some()
            || !self.min_length.is_nan()
            || !self.max_length.is_nan()
    }
}

/// A value that another may be the same as.
#[derive(Copy, Clone, Debug)]
enum ConstValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(Span),
    /// A container, which is no other value.
    Never,
}

/// The values of an `enum`, with an index if there are many.
#[derive(Copy, Clone, Debug)]
struct Allowed {
    span: Span,
    index: u32,
}

/// Names of members, with an index if there are many.
#[derive(Copy, Clone, Debug)]
struct Names {
    span: Span,
    index: u32,
}

/// What a schema says of members and elements; a limit that is NaN limits
/// nothing.
#[derive(Clone, Debug)]
struct Shape {
    any_of: Option<Span>,
    min_properties: f64,
    max_properties: f64,
    required: Span,
    /// The names, and the first of their schemas.
    properties: Option<(Names, u32)>,
    /// UTF-16 units of the required and declared names.
    units: usize,
    /// The schema of members that are not declared, or [`NONE`].
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

/// The schema of an array's elements.
#[derive(Copy, Clone, Debug)]
enum Items {
    /// One schema for all.
    All(u32),
    /// One schema for each place; further elements are not checked.
    Each(Span),
}

/// Why a value does not match; shown as `<path>: <message>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The place in the value, keys and indices joined by dots; `root` for the
    /// value itself.
    pub path: String,
    /// RFC 6901 pointer to the same place; empty for the value itself.
    pub pointer: String,
    /// What is wrong there, in the reference's words.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for SchemaError {}

impl Schema {
    /// Reads a schema of the host. A builder's wrapper `{schema: {..}}` is
    /// looked through; whatever is not understood allows everything.
    #[must_use]
    pub fn parse(value: &Value) -> Self {
        let Ok(schema) = Self::read(value, &mut Unmetered);
        schema
    }

    /// Reads a schema as [`Schema::parse`] does, at the cost that the gauge is
    /// told.
    ///
    /// # Errors
    /// The gauge ended the work.
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

    /// The whole schema, to be followed by who projects values.
    #[must_use]
    pub fn root(&self) -> Part<'_> {
        Part {
            schema: self,
            node: 0,
        }
    }

    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<SchemaNode>()
            + self.limits.capacity() * size_of::<ScalarLimits>()
            + self.shapes.capacity() * size_of::<Shape>()
            + self.allowed.capacity() * size_of::<ConstValue>()
            + self.names.capacity() * size_of::<Span>()
            + self.text.capacity()
    }

    /// A part; that of an empty schema allows everything.
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

/// A schema within a [`Schema`], as far as it decides what is kept of a value:
/// the declared members, in the schema's order, at every level that says
/// plainly what it is.
#[derive(Copy, Clone, Debug)]
pub struct Part<'s> {
    schema: &'s Schema,
    node: u32,
}

/// What is kept of the elements of a list.
#[derive(Copy, Clone, Debug)]
pub enum KeptItems<'s> {
    /// All, each as the part says.
    All(Part<'s>),
    /// So many, the n-th as the n-th part says that [`Part::nth`] gives.
    Each(Part<'s>, usize),
}

impl<'s> Part<'s> {
    fn at(self, node: u32) -> Part<'s> {
        Part {
            schema: self.schema,
            node,
        }
    }

    /// The part that stands so many places behind this one.
    #[must_use]
    pub fn nth(self, n: usize) -> Part<'s> {
        self.at(self.node + n as u32)
    }

    fn node(self) -> SchemaNode {
        self.schema.node(self.node)
    }

    /// The members that are kept of an object; `None` where it is kept whole.
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

    /// What is kept of a list's elements; `None` where it is kept whole.
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

/// The members that a part of a schema keeps of an object.
#[derive(Copy, Clone, Debug)]
pub struct KeptMembers<'s> {
    part: Part<'s>,
    names: Span,
    units: usize,
}

impl<'s> KeptMembers<'s> {
    /// How many are declared.
    #[must_use]
    pub fn len(self) -> usize {
        self.names.len as usize
    }

    /// Whether none is declared.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.names.len == 0
    }

    /// UTF-16 units of the names that are looked up.
    #[must_use]
    pub fn units(self) -> usize {
        self.units
    }

    /// The name of a member and what is kept of it.
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

/// Checks a value against a schema. Patterns are not checked (a [`Gauge`]
/// knows them), long arrays are sampled.
///
/// # Errors
/// The first mismatch.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), SchemaError> {
    let Ok(checked) = check(value, schema, &mut Unmetered, false);
    checked
}

/// Checks a value and keeps what the schema declares. Patterns are not
/// checked.
///
/// # Errors
/// The first mismatch; then nothing is projected.
pub fn filter(value: &Value, schema: &Schema) -> Result<Value, SchemaError> {
    validate(value, schema)?;
    Ok(project(value, schema.root()))
}

/// Keeps the declared properties of a host value. Recursion is bounded by the
/// schema's depth.
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
