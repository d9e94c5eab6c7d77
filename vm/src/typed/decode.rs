//! Deserialization of language values to Rust values with `serde`.
//!
//! Numbers are doubles. Integers are accepted if the number is whole and within the type's
//! bounds; values are never rounded or truncated. `undefined` and `null` are `None`;
//! `undefined` members are absent, as in JSON. Text with a lone surrogate is not a valid Rust
//! string and is refused (D36).

use super::mismatch::Mismatch;
use super::pace::Pace;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

/// Maximum nesting of inputs and outputs of typed atoms. `serde` is recursive; `serde_json`
/// has the same limit.
pub const MAX_TYPED_DEPTH: u32 = 128;

/// Whole numbers up to this magnitude are integers for a self-describing type
/// (Number.MAX_SAFE_INTEGER, ECMA-262 §21.1.2.6).
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Deserializes a value.
///
/// # Errors
/// The place, the expected type and the actual value.
pub fn from_value<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Mismatch> {
    let pace = Pace::default();
    T::deserialize(De {
        value,
        depth: 0,
        pace: &pace,
    })
}

/// One argument of a typed atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The step's key.
    pub name: &'static str,
    /// Whether a default replaces `undefined` and `null`.
    pub has_default: bool,
}

/// Deserializes the arguments of an atom, in the order of its keys.
///
/// # Errors
/// As [`from_value`]; the place begins with the argument's key.
pub fn from_args<'de, T: Deserialize<'de>>(
    keys: &'static [Key],
    args: &'de [Value],
) -> Result<T, Mismatch> {
    from_args_in(keys, args, &Pace::default())
}

/// [`from_args`], interrupted at the first value before which `pace` stops.
pub(crate) fn from_args_in<'de, T: Deserialize<'de>>(
    keys: &'static [Key],
    args: &'de [Value],
    pace: &Pace<'_>,
) -> Result<T, Mismatch> {
    let args = Args {
        keys,
        args,
        at: 0,
        value: &Value::Undefined,
        pace,
    };
    T::deserialize(serde::de::value::MapAccessDeserializer::new(args))
}

/// The arguments as the members of an input struct.
struct Args<'de, 'p> {
    keys: &'static [Key],
    args: &'de [Value],
    at: usize,
    value: &'de Value,
    pace: &'p Pace<'p>,
}

impl<'de> MapAccess<'de> for Args<'de, '_> {
    type Error = Mismatch;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Mismatch> {
        while let Some(key) = self.keys.get(self.at) {
            self.value = self.args.get(self.at).unwrap_or(&Value::Undefined);
            self.at += 1;
            if !(key.has_default && self.value.is_nullish()) {
                return seed.deserialize(FieldName(key.name)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Mismatch> {
        let value = self.value;
        let pace = self.pace;
        seed.deserialize(De {
            value,
            depth: 0,
            pace,
        })
        .map_err(|e| e.in_key(self.keys[self.at - 1].name))
    }
}

#[derive(Copy, Clone)]
struct De<'de, 'p> {
    value: &'de Value,
    depth: u32,
    pace: &'p Pace<'p>,
}

impl<'de> De<'de, '_> {
    /// Visits a number as `f64` or an integer, so that visitors of every integer type see a
    /// whole number as an integer.
    fn number<V: Visitor<'de>>(self, n: f64, most: f64, visitor: V) -> Result<V::Value, Mismatch> {
        // 2^63 and 2^64 are the first doubles beyond the integer types.
        const I64_END: f64 = 9_223_372_036_854_775_808.0;
        const U64_END: f64 = 18_446_744_073_709_551_616.0;
        let whole = n.trunc() == n && n.abs() <= most;
        if whole && (0.0..U64_END).contains(&n) {
            visitor.visit_u64(n as u64)
        } else if whole && (-I64_END..0.0).contains(&n) {
            visitor.visit_i64(n as i64)
        } else {
            visitor.visit_f64(n)
        }
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Value::Number(n) => self
                .number(*n, f64::INFINITY, visitor)
                .map_err(|e| e.found_here(self.value)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn text(self) -> Option<Result<&'de str, Mismatch>> {
        match self.value {
            Value::String(text) => Some(well_formed(text)),
            _ => None,
        }
    }

    fn deeper(self) -> Result<u32, Mismatch> {
        if self.depth >= MAX_TYPED_DEPTH {
            return Err(Mismatch::other(format!(
                "nested deeper than {MAX_TYPED_DEPTH} levels"
            )));
        }
        Ok(self.depth + 1)
    }
}

fn well_formed(text: &Text) -> Result<&str, Mismatch> {
    text.to_str().ok_or_else(|| {
        Mismatch::new(
            "well-formed text",
            "a lone surrogate in the string".to_owned(),
        )
    })
}

/// All integer types share this code: the visitor checks the bounds.
macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            self.integer(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for De<'de, '_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let visited = match self.value {
            // A missing argument is not null.
            Value::Undefined if self.depth == 0 => Err(Error::invalid_type(
                Unexpected::Other("undefined"),
                &visitor,
            )),
            Value::Undefined | Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Number(n) => self.number(*n, MAX_SAFE_INTEGER, visitor),
            Value::String(text) => well_formed(text).and_then(|t| visitor.visit_borrowed_str(t)),
            Value::Array(items) => self.deeper().and_then(|depth| {
                let mut items = Items {
                    items,
                    at: 0,
                    depth,
                    pace: self.pace,
                };
                let value = visitor.visit_seq(&mut items)?;
                match items.at == items.items.len() {
                    true => Ok(value),
                    false => Err(Mismatch::new(format!("{} elements", items.at), "more")),
                }
            }),
            Value::Object(map) => self
                .deeper()
                .and_then(|depth| visitor.visit_map(ObjectMembers::new(map, depth, self.pace))),
        };
        visited.map_err(|e| e.found_here(self.value))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Value::Undefined | Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            // Beyond its range `f32` would be infinite.
            Value::Number(n) if n.is_finite() && n.abs() > f64::from(f32::MAX) => {
                Err(Mismatch::new("f32", String::new()).found_here(self.value))
            }
            _ => self.deserialize_f64(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Value::Number(n) => visitor
                .visit_f64(*n)
                .map_err(|e: Mismatch| e.found_here(self.value)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let visited = match (self.text(), self.value) {
            (Some(text), _) => visitor.visit_enum(text?.into_deserializer()),
            (None, Value::Object(map)) => {
                let depth = self.deeper()?;
                let mut present = map.iter().filter(|(_, value)| !value.is_undefined());
                match (present.next(), present.next()) {
                    (Some((name, value)), None) => {
                        let name = well_formed(name)?;
                        let pace = self.pace;
                        let content = De { value, depth, pace };
                        visitor.visit_enum(Variant { name, content })
                    }
                    _ => Err(Mismatch::new("an object with one member", String::new())),
                }
            }
            _ => Err(Mismatch::new("the name of a variant", String::new())),
        };
        visited.map_err(|e| e.found_here(self.value))
    }

    /// Skips ignored values.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

struct Items<'de, 'p> {
    items: &'de [Value],
    at: usize,
    depth: u32,
    pace: &'p Pace<'p>,
}

impl<'de> SeqAccess<'de> for &mut Items<'de, '_> {
    type Error = Mismatch;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Mismatch> {
        let Some(value) = self.items.get(self.at) else {
            return Ok(None);
        };
        let index = self.at;
        self.at += 1;
        let (depth, pace) = (self.depth, self.pace);
        pace.go_on()?;
        seed.deserialize(De { value, depth, pace })
            .map(Some)
            .map_err(|e| e.in_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.at)
    }
}

struct ObjectMembers<'de, 'p> {
    members: a99_core::value::MapIter<'de>,
    value: Option<(&'de str, &'de Value)>,
    depth: u32,
    pace: &'p Pace<'p>,
}

impl<'de, 'p> ObjectMembers<'de, 'p> {
    fn new(map: &'de Map, depth: u32, pace: &'p Pace<'p>) -> ObjectMembers<'de, 'p> {
        ObjectMembers {
            members: map.iter(),
            value: None,
            depth,
            pace,
        }
    }
}

impl<'de> MapAccess<'de> for ObjectMembers<'de, '_> {
    type Error = Mismatch;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Mismatch> {
        let Some((key, value)) = self.members.find(|(_, value)| !value.is_undefined()) else {
            return Ok(None);
        };
        let key = well_formed(key)?;
        self.value = Some((key, value));
        seed.deserialize(FieldName(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Mismatch> {
        let (depth, pace) = (self.depth, self.pace);
        pace.go_on()?;
        match self.value.take() {
            Some((key, value)) => seed
                .deserialize(De { value, depth, pace })
                .map_err(|e| e.in_key(key)),
            None => Err(Mismatch::other("a value was asked for before its key")),
        }
    }
}

/// A member's name. As in `serde_json`, maps may have number and boolean keys, which are
/// parsed from the text.
struct FieldName<'de>(&'de str);

macro_rules! parsed_key {
    ($($method:ident $visit:ident $kind:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            match self.0.parse::<$kind>() {
                Ok(key) => visitor.$visit(key),
                Err(_) => Err(Mismatch::new(
                    concat!("a name that is a ", stringify!($kind)),
                    format!("{:?}", self.0),
                )),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for FieldName<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed_key! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_bool visit_bool bool,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let name: StrDeserializer<'de, Mismatch> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// `{"name": content}`: a variant with content.
struct Variant<'de, 'p> {
    name: &'de str,
    content: De<'de, 'p>,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'de, 'p> {
    type Error = Mismatch;
    type Variant = Content<'de, 'p>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Content<'de, 'p>), Mismatch> {
        let variant = seed.deserialize(FieldName(self.name))?;
        let content = Content {
            name: self.name,
            content: self.content,
        };
        Ok((variant, content))
    }
}

struct Content<'de, 'p> {
    name: &'de str,
    content: De<'de, 'p>,
}

impl<'de> VariantAccess<'de> for Content<'de, '_> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        <()>::deserialize(self.content).map_err(|e| e.in_key(self.name))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Mismatch> {
        seed.deserialize(self.content)
            .map_err(|e| e.in_key(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.content
            .deserialize_any(visitor)
            .map_err(|e| e.in_key(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.content
            .deserialize_any(visitor)
            .map_err(|e| e.in_key(self.name))
    }
}
