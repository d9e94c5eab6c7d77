//! Host-side values: the JSON data model plus `undefined` (decision D21).
//!
//! All data that crosses between host and guest has this type; inside a run, values are in the
//! machine's heap. Objects keep insertion order and have own keys only (decision D16). The
//! enumeration order for guests and for JSON text is [`Map::iter_js_order`] (decision D37).
//!
//! Cloning, comparing, converting and printing are iterative. Dropping is iterative below the first
//! object; the compiler's drop glue recurses into a nest of arrays only, with one small stack frame
//! per level. Values built by this crate come from documents of limited depth
//! (`json::Limits::max_depth`). Code that nests arrays without a limit must drop them with
//! [`Value::dispose`].

mod convert;
mod map;
#[cfg(feature = "schemars")]
mod schema_impl;
mod serde_impl;
#[cfg(test)]
mod tests;

pub(crate) use map::js_order;
pub use map::{Iter as MapIter, Map, array_index};

use crate::pointer;
use crate::text::Text;
use std::fmt;

/// A value outside the machine: JSON plus `undefined`.
///
/// Equality is structural and ignores member order. Numbers compare with `==`, except that NaN
/// equals itself.
pub enum Value {
    /// An absent value (ECMA-262 §6.1.1). JSON drops it or writes `null`.
    Undefined,
    /// JSON `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An IEEE 754 double, the only number type of the language.
    Number(f64),
    /// A WTF-8 string (decision D36).
    String(Text),
    /// An array, never with holes.
    Array(Vec<Value>),
    /// An object with own keys only (decision D16).
    Object(Map),
}

impl Value {
    /// The name of the kind: `undefined`, `null`, `boolean`, `number`,
    /// `string`, `array` or `object`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The string, unless it contains lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().and_then(Text::to_str)
    }

    /// The string, which may contain lone surrogates.
    #[must_use]
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, without any coercion.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, without any coercion.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The member of an object; `None` for other kinds.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The value at an RFC 6901 pointer; the empty pointer names the value itself.
    #[must_use]
    pub fn pointer(&self, path: &str) -> Option<&Value> {
        pointer::parse(path)
            .iter()
            .try_fold(self, |value, token| match value {
                Self::Object(map) => map.get(token),
                Self::Array(items) => {
                    let index = array_index(token.as_bytes())?;
                    items.get(index as usize)
                }
                _ => None,
            })
    }

    /// True for `undefined`.
    #[must_use]
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    /// True for `undefined` and `null`.
    #[must_use]
    pub fn is_nullish(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }

    /// Drops the value at any depth without recursion.
    pub fn dispose(self) {
        map::tear_down(vec![self]);
    }

    /// Drops values without recursion and piece by piece. Before each piece, `tick` gets the number
    /// of its values. After an error the remaining values stay in the list.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn dispose_all<E>(
        values: &mut Vec<Self>,
        tick: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        map::tear_down_in_pieces(values, tick)
    }

    pub(crate) fn is_container(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Object(_))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let mut pending = vec![(self, other)];
        while let Some(pair) = pending.pop() {
            let same = match pair {
                (Self::Undefined, Self::Undefined) | (Self::Null, Self::Null) => true,
                (Self::Bool(a), Self::Bool(b)) => a == b,
                (Self::Number(a), Self::Number(b)) => a == b || (a.is_nan() && b.is_nan()),
                (Self::String(a), Self::String(b)) => a == b,
                (Self::Array(a), Self::Array(b)) => {
                    pending.extend(a.iter().zip(b));
                    a.len() == b.len()
                }
                (Self::Object(a), Self::Object(b)) => {
                    a.len() == b.len()
                        && a.iter().all(|(key, value)| {
                            b.get_bytes(key.as_bytes())
                                .inspect(|&other| pending.push((value, other)))
                                .is_some()
                        })
                }
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        match self {
            Self::Undefined => Self::Undefined,
            Self::Null => Self::Null,
            Self::Bool(value) => Self::Bool(*value),
            Self::Number(number) => Self::Number(*number),
            Self::String(text) => Self::String(text.clone()),
            Self::Array(_) | Self::Object(_) => convert::clone_container(self),
        }
    }
}

/// Writes the JSON text of [`Value::to_json_string`]; `{:#}` adds line breaks and two spaces of
/// indentation. `undefined` is written as the word, because it has no JSON text.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined => f.pad("undefined"),
            _ if f.alternate() => f.write_str(&self.to_json_pretty()),
            _ => f.pad(&self.to_json_string()),
        }
    }
}

/// Writes the value as JSON text, `undefined` as the word. Hidden characters of strings are escaped
/// (security E18).
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined => f.write_str("undefined"),
            Self::Number(number) => write!(f, "{number:?}"),
            Self::String(text) => write!(f, "{text:?}"),
            _ => f.write_str(&crate::text::escape_for_terminal(&self.to_json_string())),
        }
    }
}
