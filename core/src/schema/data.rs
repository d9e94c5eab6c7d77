//! Input of schemas and checks: data of the host, or of a run's heap without a copy.

use crate::text::surrogate_at;
use crate::value::Value;

/// A shallow view of a value.
#[derive(Copy, Clone, Debug)]
pub enum View<'d> {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text: its WTF-8 bytes and its length in UTF-16 units, if known.
    Text(&'d [u8], Option<usize>),
    /// A list with its length.
    Array(usize),
    /// An object with its number of members.
    Object(usize),
}

impl View<'_> {
    /// Name of the kind in schemas and messages.
    pub(super) fn kind(self) -> &'static str {
        match self {
            View::Undefined => "undefined",
            View::Null => "null",
            View::Bool(_) => "boolean",
            View::Number(_) => "number",
            View::Text(..) => "string",
            View::Array(_) => "array",
            View::Object(_) => "object",
        }
    }

    /// ECMAScript truthiness (ECMA-262 §7.1.2).
    pub(super) fn is_truthy(self) -> bool {
        match self {
            View::Undefined | View::Null | View::Bool(false) => false,
            View::Number(number) => number != 0.0 && !number.is_nan(),
            View::Text(text, _) => !text.is_empty(),
            _ => true,
        }
    }
}

/// A handle to a value that can be navigated.
pub trait Data<'d>: Copy {
    /// A shallow view of the value.
    fn view(self) -> View<'d>;

    /// An element of a list.
    fn item(self, index: usize) -> Option<Self>;

    /// The member of an object with a WTF-8 name.
    fn member(self, key: &[u8]) -> Option<Self>;

    /// The members of an object in the order of ECMA-262 §10.1.11.
    fn members(self) -> impl Iterator<Item = (&'d [u8], Self)>;
}

impl<'d> Data<'d> for &'d Value {
    fn view(self) -> View<'d> {
        match self {
            Value::Undefined => View::Undefined,
            Value::Null => View::Null,
            Value::Bool(b) => View::Bool(*b),
            Value::Number(number) => View::Number(*number),
            Value::String(text) => View::Text(text.as_bytes(), None),
            Value::Array(list) => View::Array(list.len()),
            Value::Object(map) => View::Object(map.len()),
        }
    }

    fn item(self, index: usize) -> Option<Self> {
        self.as_array()?.get(index)
    }

    fn member(self, key: &[u8]) -> Option<Self> {
        self.as_object()?.get_bytes(key)
    }

    fn members(self) -> impl Iterator<Item = (&'d [u8], Self)> {
        let map = self.as_object().into_iter();
        map.flat_map(|map| map.iter_js_order())
            .map(|(key, value)| (key.as_bytes(), value))
    }
}

/// Meter for reading schemas and checking values.
///
/// It is charged before the work, in pieces of microseconds. An error of a method stops the work.
pub trait Gauge {
    /// Reason for stopping the work.
    type Stop;

    /// Charges for schema parts that are read, or checked against a value. Texts in them are paid
    /// by the reader of the data that a schema is made of.
    ///
    /// # Errors
    /// The work must stop.
    fn nodes(&mut self, n: usize) -> Result<(), Self::Stop>;

    /// Charges for members that are visited one by one, and for UTF-16 units of names and texts
    /// that are read.
    ///
    /// # Errors
    /// The work must stop.
    fn reads(&mut self, elements: usize, units: usize) -> Result<(), Self::Stop>;

    /// Reports about `nanos` nanoseconds of work that another charge covers.
    ///
    /// # Errors
    /// The work must stop.
    fn passes(&mut self, nanos: usize) -> Result<(), Self::Stop>;

    /// Counts bytes of memory of the schema being built.
    ///
    /// # Errors
    /// The work must stop.
    fn holds(&mut self, bytes: usize) -> Result<(), Self::Stop>;

    /// Returns whether an ECMAScript pattern matches anywhere in a text of `units` UTF-16 units,
    /// and charges for the match. The inner error is the reason why a pattern is unusable.
    ///
    /// # Errors
    /// The work must stop.
    fn matches(
        &mut self,
        pattern: &[u8],
        text: &[u8],
        units: usize,
    ) -> Result<Result<bool, String>, Self::Stop>;
}

/// A gauge that counts nothing and accepts every pattern, for a host's own checks.
#[derive(Copy, Clone, Debug, Default)]
pub struct Unmetered;

impl Gauge for Unmetered {
    type Stop = std::convert::Infallible;

    fn nodes(&mut self, _: usize) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn reads(&mut self, _: usize, _: usize) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn passes(&mut self, _: usize) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn holds(&mut self, _: usize) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn matches(
        &mut self,
        _: &[u8],
        _: &[u8],
        _: usize,
    ) -> Result<Result<bool, String>, Self::Stop> {
        Ok(Ok(true))
    }
}

/// Bytes processed between two calls of the gauge.
pub(super) const PIECE: usize = 16 << 10;

/// Compares two texts for equality, piece by piece.
pub(super) fn same_text<G: Gauge>(gauge: &mut G, a: &[u8], b: &[u8]) -> Result<bool, G::Stop> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.chunks(PIECE).zip(b.chunks(PIECE)) {
        gauge.passes(a.len() / 16)?;
        if a != b {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if a test holds for every byte; piece by piece.
pub(super) fn all_bytes<G: Gauge>(
    gauge: &mut G,
    text: &[u8],
    test: impl Fn(u8) -> bool,
) -> Result<bool, G::Stop> {
    for piece in text.chunks(PIECE) {
        gauge.passes(piece.len())?;
        if !piece.iter().all(|byte| test(*byte)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Position of the first byte that passes a test; piece by piece.
pub(super) fn find_byte<G: Gauge>(
    gauge: &mut G,
    text: &[u8],
    test: impl Fn(u8) -> bool,
) -> Result<Option<usize>, G::Stop> {
    for (at, piece) in text.chunks(PIECE).enumerate() {
        gauge.passes(piece.len())?;
        if let Some(found) = piece.iter().position(|byte| test(*byte)) {
            return Ok(Some(at * PIECE + found));
        }
    }
    Ok(None)
}

/// Position of the last byte that passes a test; piece by piece.
pub(super) fn rfind_byte<G: Gauge>(
    gauge: &mut G,
    text: &[u8],
    test: impl Fn(u8) -> bool,
) -> Result<Option<usize>, G::Stop> {
    let mut end = text.len();
    for piece in text.rchunks(PIECE) {
        gauge.passes(piece.len())?;
        end -= piece.len();
        if let Some(found) = piece.iter().rposition(|byte| test(*byte)) {
            return Ok(Some(end + found));
        }
    }
    Ok(None)
}

/// Length of WTF-8 in UTF-16 units, piece by piece: one for each sequence, two for four-byte ones.
pub(super) fn units_of<G: Gauge>(gauge: &mut G, text: &[u8]) -> Result<usize, G::Stop> {
    let mut units = 0;
    for piece in text.chunks(PIECE) {
        gauge.passes(piece.len() / 4)?;
        units += piece
            .iter()
            .map(|&byte| match byte {
                0x80..=0xBF => 0,
                0xF0.. => 2,
                _ => 1,
            })
            .sum::<usize>();
    }
    Ok(units)
}

/// The characters of WTF-8 with their positions; a lone surrogate becomes U+FFFD.
pub(super) fn chars_of(text: &[u8]) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = match rest[0] {
            0..0x80 => 1,
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let sequence = rest.get(..len).unwrap_or(rest);
        let c = match *sequence {
            [byte] if byte < 0x80 => char::from(byte),
            _ if surrogate_at(sequence).is_some() => char::REPLACEMENT_CHARACTER,
            _ => std::str::from_utf8(sequence)
                .ok()
                .and_then(|text| text.chars().next())
                .unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        let place = at;
        at += len;
        Some((place, c))
    })
}
