//! Reading schemas into their flat form.

use super::data::{Data, Gauge, PIECE, View, same_text, units_of};
use super::format::Format;
use super::{
    Allowed, ConstValue, Items, MAX_SCHEMA_DEPTH, NONE, Names, ScalarLimits, Schema, SchemaNode,
    Shape, Span, TypeKind,
};
use crate::costs::{SCHEMA_ALLOWED, SCHEMA_REQUIRED};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Most entries of a list of names or allowed values without an index.
const INDEXED: usize = 32;

/// Approximate nanoseconds for reading a list entry.
const ITEM: usize = 32;

/// Bytes of an index entry, including the free room of hash tables.
const INDEX_ENTRY: usize = 32;

/// Index of texts and numbers by hash. The hash key is random, so crafted values cannot collide.
#[derive(Clone, Debug)]
pub(super) struct SchemaIndex {
    state: RandomState,
    places: HashMap<u64, u32>,
    /// Places whose hash is already taken.
    others: Vec<u32>,
}

impl SchemaIndex {
    fn new(n: usize) -> SchemaIndex {
        SchemaIndex {
            state: RandomState::new(),
            places: HashMap::with_capacity(n),
            others: Vec::new(),
        }
    }

    fn add(&mut self, hash: u64, place: u32) {
        match self.places.entry(hash) {
            std::collections::hash_map::Entry::Occupied(_) => self.others.push(place),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(place);
            }
        }
    }

    /// The places that may hold an entry with this hash.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.places.get(&hash).copied();
        let others: &[u32] = match first {
            Some(_) => &self.others,
            None => &[],
        };
        first.into_iter().chain(others.iter().copied())
    }

    pub(super) fn hash_text<G: Gauge>(&self, gauge: &mut G, text: &[u8]) -> Result<u64, G::Stop> {
        let mut hasher = self.state.build_hasher();
        for piece in text.chunks(PIECE) {
            gauge.passes(piece.len())?;
            hasher.write(piece);
        }
        Ok(hasher.finish())
    }

    pub(super) fn hash_scalar(&self, constant: &ConstValue) -> u64 {
        let mut hasher = self.state.build_hasher();
        match *constant {
            ConstValue::Number(number) => hasher.write_u64(number_key(number)),
            ConstValue::Bool(b) => hasher.write_u8(b.into()),
            _ => {}
        }
        hasher.finish()
    }
}

/// A key that is equal for numbers that are equal in `includes` (SameValueZero).
pub(super) fn number_key(number: f64) -> u64 {
    match number {
        0.0 => 0,
        number if number.is_nan() => u64::MAX,
        number => number.to_bits(),
    }
}

/// State of reading a schema.
pub(super) struct SchemaReader<'g, G> {
    pub(super) schema: Schema,
    pub(super) gauge: &'g mut G,
}

impl<G: Gauge> SchemaReader<'_, G> {
    /// Reads a part; the caller stores it. Recursion is bounded by [`MAX_SCHEMA_DEPTH`].
    pub(super) fn node<'d, D: Data<'d>>(
        &mut self,
        data: D,
        depth: u32,
    ) -> Result<SchemaNode, G::Stop> {
        self.gauge.nodes(1)?;
        let View::Object(_) = data.view() else {
            return Ok(SchemaNode::default());
        };
        let mut node = SchemaNode::default();
        if depth >= MAX_SCHEMA_DEPTH {
            node.too_deep = true;
            return Ok(node);
        }
        self.kind(data, &mut node)?;
        let limits = self.limits(data)?;
        node.limits = self.keep(limits, |schema| &mut schema.limits)?;
        let shape = self.shape(data, depth)?;
        node.shape = self.keep(shape, |schema| &mut schema.shapes)?;
        Ok(node)
    }

    /// Stores a part that is present and returns its index, or [`NONE`].
    fn keep<T>(
        &mut self,
        part: Option<T>,
        list: impl FnOnce(&mut Schema) -> &mut Vec<T>,
    ) -> Result<u32, G::Stop> {
        let Some(part) = part else { return Ok(NONE) };
        self.gauge.holds(2 * size_of::<T>())?;
        let list = list(&mut self.schema);
        list.push(part);
        Ok(list.len() as u32 - 1)
    }

    fn kind<'d, D: Data<'d>>(&mut self, data: D, node: &mut SchemaNode) -> Result<(), G::Stop> {
        node.is_undefined = member(data, "x-tjs-undefined").is_some_and(|v| v.view().is_truthy());
        let Some(given) = member(data, "type") else {
            return Ok(());
        };
        let first = match given.view() {
            View::Array(n) => {
                node.kind_is_list = true;
                for index in 0..n {
                    self.gauge.passes(ITEM)?;
                    let is_null = given.item(index).map(D::view);
                    node.nullable |= matches!(is_null, Some(View::Text(b"null", _)));
                }
                given.item(0)
            }
            _ => Some(given),
        };
        if let Some(View::Text(name, _)) = first.map(D::view) {
            node.kind = match name {
                b"" => TypeKind::Empty,
                b"null" => TypeKind::Null,
                b"boolean" => TypeKind::Boolean,
                b"number" => TypeKind::Number,
                b"integer" => TypeKind::Integer,
                b"string" => TypeKind::String,
                b"array" => TypeKind::Array,
                b"object" => TypeKind::Object,
                other => TypeKind::Other(self.text(other)?),
            };
        }
        Ok(())
    }

    fn limits<'d, D: Data<'d>>(&mut self, data: D) -> Result<Option<ScalarLimits>, G::Stop> {
        let mut any = false;
        let mut number = |key| {
            let number = number(data, key);
            any |= !number.is_nan();
            number
        };
        let mut limits = ScalarLimits {
            minimum: number("minimum"),
            maximum: number("maximum"),
            multiple_of: number("multipleOf"),
            min_length: number("minLength"),
            max_length: number("maxLength"),
            ..ScalarLimits::default()
        };
        if let Some(constant) = member(data, "const")
            && !matches!(constant.view(), View::Undefined)
        {
            any = true;
            limits.constant = Some(self.constant(constant.view())?);
        }
        if let Some(list) = member(data, "enum")
            && let View::Array(n) = list.view()
        {
            any = true;
            limits.allowed = Some(self.allowed(list, n)?);
        }
        if let Some(View::Text(pattern, _)) = member(data, "pattern").map(D::view)
            && !pattern.is_empty()
        {
            any = true;
            limits.pattern = Some(self.text(pattern)?);
        }
        if let Some(View::Text(name, _)) = member(data, "format").map(D::view)
            && let Some(format) = Format::named(name)
        {
            any = true;
            limits.format = Some(format);
        }
        Ok(any.then_some(limits))
    }

    fn shape<'d, D: Data<'d>>(&mut self, data: D, depth: u32) -> Result<Option<Shape>, G::Stop> {
        let mut shape = Shape {
            min_properties: number(data, "minProperties"),
            max_properties: number(data, "maxProperties"),
            min_items: number(data, "minItems"),
            max_items: number(data, "maxItems"),
            ..Shape::default()
        };
        let mut any = !shape.min_properties.is_nan() || !shape.max_properties.is_nan();
        if let Some(list) = member(data, "required")
            && let View::Array(n) = list.view()
        {
            any = true;
            shape.required = self.required(list, n)?;
            shape.units += self.units(shape.required)?;
        }
        if let Some(list) = member(data, "anyOf")
            && let View::Array(n) = list.view()
        {
            any = true;
            shape.any_of = Some(self.each(list, n, depth)?);
        }
        if let Some(map) = member(data, "properties")
            && let View::Object(n) = map.view()
        {
            any = true;
            let (names, nodes) = self.properties(map, n, depth)?;
            shape.units += self.units(names.span)?;
            shape.properties = Some((names, nodes));
        }
        if let Some(additional) = member(data, "additionalProperties")
            && matches!(additional.view(), View::Object(_))
        {
            any = true;
            shape.additional = self.block(1)?;
            self.put(shape.additional, additional, depth)?;
        }
        match member(data, "items") {
            Some(list) if let View::Array(n) = list.view() => {
                any = true;
                shape.items = Some(Items::Each(self.each(list, n, depth)?));
            }
            Some(all) if all.view().is_truthy() => {
                any = true;
                let at = self.block(1)?;
                self.put(at, all, depth)?;
                shape.items = Some(Items::All(at));
            }
            _ => {}
        }
        Ok(any.then_some(shape))
    }

    /// Reserves adjacent parts.
    fn block(&mut self, n: usize) -> Result<u32, G::Stop> {
        self.gauge.holds(2 * n * size_of::<SchemaNode>())?;
        let at = self.schema.nodes.len();
        self.schema.nodes.resize(at + n, SchemaNode::default());
        Ok(at as u32)
    }

    fn put<'d, D: Data<'d>>(&mut self, at: u32, data: D, depth: u32) -> Result<(), G::Stop> {
        let node = self.node(data, depth + 1)?;
        self.schema.nodes[at as usize] = node;
        Ok(())
    }

    fn each<'d, D: Data<'d>>(&mut self, list: D, n: usize, depth: u32) -> Result<Span, G::Stop> {
        let start = self.block(n)?;
        for index in 0..n {
            if let Some(item) = list.item(index) {
                self.put(start + index as u32, item, depth)?;
            }
        }
        Ok(Span {
            start,
            len: n as u32,
        })
    }

    fn properties<'d, D: Data<'d>>(
        &mut self,
        map: D,
        n: usize,
        depth: u32,
    ) -> Result<(Names, u32), G::Stop> {
        let nodes = self.block(n)?;
        self.gauge.holds(2 * n * size_of::<Span>())?;
        let start = self.schema.names.len();
        self.schema.names.resize(start + n, Span::default());
        let mut index = self.index(n)?;
        for (at, (key, value)) in map.members().take(n).enumerate() {
            let units = units_of(self.gauge, key)?;
            self.gauge.reads(1, units)?;
            self.schema.names[start + at] = self.text(key)?;
            if let Some(index) = &mut index {
                let hash = index.hash_text(self.gauge, key)?;
                index.add(hash, (start + at) as u32);
            }
            self.put(nodes + at as u32, value, depth)?;
        }
        let span = Span {
            start: start as u32,
            len: n as u32,
        };
        let index = self.keep(index, |schema| &mut schema.indices)?;
        Ok((Names { span, index }, nodes))
    }

    fn required<'d, D: Data<'d>>(&mut self, list: D, n: usize) -> Result<Span, G::Stop> {
        let start = self.schema.names.len() as u32;
        for index in 0..n {
            self.gauge.passes(ITEM)?;
            self.gauge.reads(SCHEMA_REQUIRED, 0)?;
            if let Some(View::Text(name, _)) = list.item(index).map(D::view) {
                let name = self.text(name)?;
                self.gauge.holds(2 * size_of::<Span>())?;
                self.schema.names.push(name);
            }
        }
        let len = self.schema.names.len() as u32 - start;
        Ok(Span { start, len })
    }

    /// Total UTF-16 units of a list of names.
    fn units(&mut self, names: Span) -> Result<usize, G::Stop> {
        let mut units = 0;
        for at in names.range() {
            let name = self.schema.text(self.schema.names[at]);
            units += units_of(self.gauge, name)?;
        }
        Ok(units)
    }

    fn index(&mut self, n: usize) -> Result<Option<SchemaIndex>, G::Stop> {
        if n <= INDEXED {
            return Ok(None);
        }
        self.gauge.holds(n.saturating_mul(INDEX_ENTRY))?;
        Ok(Some(SchemaIndex::new(n)))
    }

    fn allowed<'d, D: Data<'d>>(&mut self, list: D, n: usize) -> Result<Allowed, G::Stop> {
        let start = self.schema.allowed.len();
        let mut index = self.index(n)?;
        self.gauge.holds(2 * n * size_of::<ConstValue>())?;
        for at in 0..n {
            self.gauge.passes(ITEM)?;
            self.gauge.reads(SCHEMA_ALLOWED, 0)?;
            let Some(view) = list.item(at).map(D::view) else {
                continue;
            };
            let constant = self.constant(view)?;
            if let Some(index) = &mut index {
                let hash = match view {
                    View::Text(text, _) => index.hash_text(self.gauge, text)?,
                    _ => index.hash_scalar(&constant),
                };
                // Equal constants share a hash and need a single entry.
                let mut known = false;
                for twin in index.candidates(hash) {
                    known |= self.is_same(&self.schema.allowed[twin as usize], &constant);
                }
                if !known {
                    index.add(hash, self.schema.allowed.len() as u32);
                }
            }
            self.schema.allowed.push(constant);
        }
        let span = Span {
            start: start as u32,
            len: (self.schema.allowed.len() - start) as u32,
        };
        let index = self.keep(index, |schema| &mut schema.indices)?;
        Ok(Allowed { span, index })
    }

    /// Whether two constants are the same; of texts, whose hashes are the same
    /// here, at most the end of one was read before.
    fn is_same(&self, a: &ConstValue, b: &ConstValue) -> bool {
        match (a, b) {
            (ConstValue::Text(a), ConstValue::Text(b)) => {
                self.schema.text(*a) == self.schema.text(*b)
            }
            (ConstValue::Number(a), ConstValue::Number(b)) => number_key(*a) == number_key(*b),
            (ConstValue::Bool(a), ConstValue::Bool(b)) => a == b,
            (ConstValue::Null, ConstValue::Null) | (ConstValue::Never, ConstValue::Never) => true,
            _ => false,
        }
    }

    fn constant(&mut self, view: View<'_>) -> Result<ConstValue, G::Stop> {
        Ok(match view {
            View::Null => ConstValue::Null,
            View::Bool(b) => ConstValue::Bool(b),
            View::Number(number) => ConstValue::Number(number),
            View::Text(text, _) => ConstValue::Text(self.text(text)?),
            View::Undefined | View::Array(_) | View::Object(_) => ConstValue::Never,
        })
    }

    fn text(&mut self, text: &[u8]) -> Result<Span, G::Stop> {
        self.gauge.holds(2 * text.len())?;
        let start = self.schema.text.len() as u32;
        for piece in text.chunks(PIECE) {
            self.gauge.passes(piece.len() / 4)?;
            self.schema.text.extend_from_slice(piece);
        }
        Ok(Span {
            start,
            len: text.len() as u32,
        })
    }
}

fn member<'d, D: Data<'d>>(data: D, key: &str) -> Option<D> {
    data.member(key.as_bytes())
}

/// A number of a schema; NaN (no limit) if it is absent.
fn number<'d, D: Data<'d>>(data: D, key: &str) -> f64 {
    match member(data, key).map(D::view) {
        Some(View::Number(number)) => number,
        _ => f64::NAN,
    }
}

impl Schema {
    /// True if a list of allowed values contains the text.
    pub(super) fn allows_text<G: Gauge>(
        &self,
        gauge: &mut G,
        allowed: Allowed,
        text: &[u8],
    ) -> Result<bool, G::Stop> {
        if allowed.index != NONE {
            let index = &self.indices[allowed.index as usize];
            let hash = index.hash_text(gauge, text)?;
            for at in index.candidates(hash) {
                if let ConstValue::Text(one) = self.allowed[at as usize]
                    && same_text(gauge, self.text(one), text)?
                {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for one in &self.allowed[allowed.span.range()] {
            if let ConstValue::Text(one) = one
                && same_text(gauge, self.text(*one), text)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if a list of allowed values contains the number or boolean.
    pub(super) fn allows_scalar(&self, allowed: Allowed, wanted: &ConstValue) -> bool {
        let fits = |one: &ConstValue| match (one, wanted) {
            (ConstValue::Number(a), ConstValue::Number(b)) => number_key(*a) == number_key(*b),
            (ConstValue::Bool(a), ConstValue::Bool(b)) => a == b,
            _ => false,
        };
        if allowed.index != NONE {
            let index = &self.indices[allowed.index as usize];
            return index
                .candidates(index.hash_scalar(wanted))
                .any(|at| fits(&self.allowed[at as usize]));
        }
        self.allowed[allowed.span.range()].iter().any(fits)
    }

    /// True if a list contains the name.
    pub(super) fn has_name<G: Gauge>(
        &self,
        gauge: &mut G,
        names: Names,
        key: &[u8],
    ) -> Result<bool, G::Stop> {
        if names.index != NONE {
            let index = &self.indices[names.index as usize];
            let hash = index.hash_text(gauge, key)?;
            for at in index.candidates(hash) {
                if same_text(gauge, self.text(self.names[at as usize]), key)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for name in &self.names[names.span.range()] {
            if same_text(gauge, self.text(*name), key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
