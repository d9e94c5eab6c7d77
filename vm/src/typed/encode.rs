//! Serialization of Rust values to language values with `serde`.
//!
//! Integers that a double cannot represent exactly are refused. Unit and `None` are `null`;
//! enums have their external tag, as in JSON. Non-finite numbers are kept, as in the
//! language; a declared schema refuses them.

use super::decode::MAX_TYPED_DEPTH;
use super::mismatch::Mismatch;
use super::pace::Pace;
use a99_core::value::{Map, Value};
use serde::ser::{
    Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Maximum elements reserved at once, since an announced length is not trusted.
const ROOM: usize = 1024;

/// Serializes a Rust value.
///
/// # Errors
/// The place, and the value that the language cannot represent.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Mismatch> {
    to_value_in(value, &Pace::default())
}

/// [`to_value`], interrupted at the first value before which `pace` stops; `pace` keeps the
/// values made so far.
pub(crate) fn to_value_in<T: Serialize + ?Sized>(
    value: &T,
    pace: &Pace<'_>,
) -> Result<Value, Mismatch> {
    value.serialize(Ser { depth: 0, pace })
}

#[derive(Copy, Clone)]
struct Ser<'p> {
    depth: u32,
    pace: &'p Pace<'p>,
}

impl<'p> Ser<'p> {
    fn deeper(self) -> Result<Ser<'p>, Mismatch> {
        if self.depth >= MAX_TYPED_DEPTH {
            return Err(Mismatch::other(format!(
                "nested deeper than {MAX_TYPED_DEPTH} levels"
            )));
        }
        Ok(Ser {
            depth: self.depth + 1,
            ..self
        })
    }

    fn list(self, len: Option<usize>) -> Result<List<'p>, Mismatch> {
        Ok(List {
            inner: self.deeper()?,
            items: Vec::with_capacity(len.unwrap_or(0).min(ROOM)),
            tag: None,
        })
    }

    fn members(self) -> Result<Members<'p>, Mismatch> {
        Ok(Members {
            inner: self.deeper()?,
            map: Map::new(),
            key: None,
            tag: None,
        })
    }
}

/// Converts to a double, if it represents the integer exactly.
fn exact(n: i128) -> Result<Value, Mismatch> {
    let number = n as f64;
    // The cast saturates: the largest i128 would pass wrongly.
    if number as i128 == n && n != i128::MAX {
        Ok(Value::Number(number))
    } else {
        Err(Mismatch::new(
            "an integer that a number of the language holds exactly (a string holds any)",
            n.to_string(),
        ))
    }
}

fn tagged(tag: &'static str, value: Value) -> Value {
    let mut map = Map::with_capacity(1);
    map.insert(tag, value);
    Value::Object(map)
}

fn with_tag(tag: Option<&'static str>, value: Value) -> Value {
    match tag {
        Some(tag) => tagged(tag, value),
        None => value,
    }
}

macro_rules! integers {
    ($($method:ident $kind:ty,)*) => {$(
        fn $method(self, n: $kind) -> Result<Value, Mismatch> {
            exact(i128::from(n))
        }
    )*};
}

impl<'p> Serializer for Ser<'p> {
    type Ok = Value;
    type Error = Mismatch;
    type SerializeSeq = List<'p>;
    type SerializeTuple = List<'p>;
    type SerializeTupleStruct = List<'p>;
    type SerializeTupleVariant = List<'p>;
    type SerializeMap = Members<'p>;
    type SerializeStruct = Members<'p>;
    type SerializeStructVariant = Members<'p>;

    integers! {
        serialize_i8 i8,
        serialize_i16 i16,
        serialize_i32 i32,
        serialize_i64 i64,
        serialize_i128 i128,
        serialize_u8 u8,
        serialize_u16 u16,
        serialize_u32 u32,
        serialize_u64 u64,
    }

    fn serialize_u128(self, n: u128) -> Result<Value, Mismatch> {
        match i128::try_from(n) {
            Ok(n) => exact(n),
            Err(_) => Err(Mismatch::new("a smaller integer", n.to_string())),
        }
    }

    fn serialize_bool(self, b: bool) -> Result<Value, Mismatch> {
        Ok(Value::Bool(b))
    }

    fn serialize_f32(self, n: f32) -> Result<Value, Mismatch> {
        Ok(Value::Number(f64::from(n)))
    }

    fn serialize_f64(self, n: f64) -> Result<Value, Mismatch> {
        Ok(Value::Number(n))
    }

    fn serialize_char(self, c: char) -> Result<Value, Mismatch> {
        Ok(Value::from(&*c.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Mismatch> {
        Ok(Value::from(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Mismatch> {
        let mut list = self.list(Some(bytes.len()))?;
        for byte in bytes {
            list.push(byte)?;
        }
        Ok(list.done())
    }

    fn serialize_none(self) -> Result<Value, Mismatch> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Mismatch> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Mismatch> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, Mismatch> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Value, Mismatch> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Value, Mismatch> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Mismatch> {
        let inner = self.deeper()?;
        let value = value.serialize(inner).map_err(|e| e.in_key(variant))?;
        Ok(tagged(variant, value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<List<'p>, Mismatch> {
        self.list(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<List<'p>, Mismatch> {
        self.list(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<List<'p>, Mismatch> {
        self.list(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<List<'p>, Mismatch> {
        let list = self.deeper()?.list(Some(len))?;
        let tag = Some(variant);
        Ok(List { tag, ..list })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Members<'p>, Mismatch> {
        self.members()
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Members<'p>, Mismatch> {
        self.members()
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'p>, Mismatch> {
        let members = self.deeper()?.members()?;
        let tag = Some(variant);
        Ok(Members { tag, ..members })
    }
}

/// An array under construction.
struct List<'p> {
    inner: Ser<'p>,
    items: Vec<Value>,
    tag: Option<&'static str>,
}

impl List<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Mismatch> {
        let pace = self.inner.pace;
        let index = self.items.len();
        let value = pace.go_on().and_then(|()| value.serialize(self.inner));
        match value {
            Ok(value) => self.items.push(value),
            Err(error) => {
                pace.leave(self.items.drain(..));
                return Err(error.in_index(index));
            }
        }
        Ok(())
    }

    fn done(self) -> Value {
        with_tag(self.tag, Value::Array(self.items))
    }
}

macro_rules! list {
    ($($kind:ident $method:ident,)*) => {$(
        impl $kind for List<'_> {
            type Ok = Value;
            type Error = Mismatch;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Mismatch> {
                self.push(value)
            }

            fn end(self) -> Result<Value, Mismatch> {
                Ok(self.done())
            }
        }
    )*};
}
list! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

/// An object under construction.
struct Members<'p> {
    inner: Ser<'p>,
    map: Map,
    key: Option<String>,
    tag: Option<&'static str>,
}

impl Members<'_> {
    fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Mismatch> {
        let pace = self.inner.pace;
        let value = pace.go_on().and_then(|()| value.serialize(self.inner));
        match value {
            Ok(value) => self.map.insert(key, value),
            Err(error) => {
                pace.leave([Value::Object(std::mem::take(&mut self.map))]);
                return Err(error.in_key(key));
            }
        };
        Ok(())
    }

    fn done(self) -> Value {
        with_tag(self.tag, Value::Object(self.map))
    }
}

impl SerializeMap for Members<'_> {
    type Ok = Value;
    type Error = Mismatch;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Mismatch> {
        self.key = Some(key.serialize(KeySer)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Mismatch> {
        let key = self.key.take().unwrap_or_default();
        self.put(&key, value)
    }

    fn end(self) -> Result<Value, Mismatch> {
        Ok(self.done())
    }
}

macro_rules! members {
    ($($kind:ident,)*) => {$(
        impl $kind for Members<'_> {
            type Ok = Value;
            type Error = Mismatch;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Mismatch> {
                self.put(key, value)
            }

            fn end(self) -> Result<Value, Mismatch> {
                Ok(self.done())
            }
        }
    )*};
}
members! {
    SerializeStruct,
    SerializeStructVariant,
}

/// Serializes names of members: text, and scalars with a text form (as in `serde_json`).
struct KeySer;

fn no_key<T>() -> Result<T, Mismatch> {
    Err(Mismatch::other(
        "the key of a map must be a string, a number or a boolean",
    ))
}

macro_rules! printed_keys {
    ($($method:ident $kind:ty,)*) => {$(
        fn $method(self, key: $kind) -> Result<String, Mismatch> {
            Ok(key.to_string())
        }
    )*};
}

type NoKey = Impossible<String, Mismatch>;

impl Serializer for KeySer {
    type Ok = String;
    type Error = Mismatch;
    type SerializeSeq = NoKey;
    type SerializeTuple = NoKey;
    type SerializeTupleStruct = NoKey;
    type SerializeTupleVariant = NoKey;
    type SerializeMap = NoKey;
    type SerializeStruct = NoKey;
    type SerializeStructVariant = NoKey;

    printed_keys! {
        serialize_bool bool,
        serialize_i8 i8,
        serialize_i16 i16,
        serialize_i32 i32,
        serialize_i64 i64,
        serialize_i128 i128,
        serialize_u8 u8,
        serialize_u16 u16,
        serialize_u32 u32,
        serialize_u64 u64,
        serialize_u128 u128,
        serialize_char char,
        serialize_str &str,
    }

    fn serialize_f32(self, _: f32) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_f64(self, _: f64) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_none(self) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, key: &T) -> Result<String, Mismatch> {
        key.serialize(self)
    }

    fn serialize_unit(self) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, Mismatch> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        key: &T,
    ) -> Result<String, Mismatch> {
        key.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, Mismatch> {
        no_key()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_tuple(self, _: usize) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<NoKey, Mismatch> {
        no_key()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<NoKey, Mismatch> {
        no_key()
    }
}
