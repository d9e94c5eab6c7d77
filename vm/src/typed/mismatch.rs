//! Type mismatches of inputs and outputs, with their place.

use crate::describe::{describe, quoted};
use a99_core::pointer::{push_index, push_key};
use a99_core::value::Value;
use std::fmt;

/// A value that does not match its declared type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path from the value inwards; innermost first while the error propagates.
    path: Vec<PathStep>,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Kind { expected: String, found: String },
    Other(String),
}

impl Mismatch {
    /// A value of another type than expected.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Mismatch {
        Mismatch {
            path: Vec::new(),
            what: What::Kind {
                expected: expected.into(),
                found: found.into(),
            },
        }
    }

    /// A violation of the type's own rule.
    pub fn other(text: impl Into<String>) -> Mismatch {
        Mismatch {
            path: Vec::new(),
            what: What::Other(text.into()),
        }
    }

    /// Adds an enclosing object's key to the path.
    #[must_use]
    pub fn in_key(mut self, key: impl Into<String>) -> Mismatch {
        self.path.push(PathStep::Key(key.into()));
        self
    }

    /// Adds an enclosing array's index to the path.
    #[must_use]
    pub fn in_index(mut self, index: usize) -> Mismatch {
        self.path.push(PathStep::Index(index));
        self
    }

    /// Sets the found value, unless the place is deeper.
    #[must_use]
    pub(super) fn found_here(mut self, value: &Value) -> Mismatch {
        if self.path.is_empty()
            && let What::Kind { found, .. } = &mut self.what
        {
            *found = describe(value);
        }
        self
    }

    /// RFC 6901 pointer to the place; empty for the whole value.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in self.path.iter().rev() {
            match step {
                PathStep::Key(key) => push_key(&mut pointer, key),
                PathStep::Index(index) => push_index(&mut pointer, *index),
            }
        }
        pointer
    }

    /// The expected type, if the value has another one.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        match &self.what {
            What::Kind { expected, .. } => Some(expected),
            What::Other(_) => None,
        }
    }

    /// The message without the place.
    pub(super) fn what(&self) -> String {
        match &self.what {
            What::Kind { expected, found } => format!("expected {expected}, found {found}"),
            What::Other(text) => text.clone(),
        }
    }

    /// The value found instead.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        match &self.what {
            What::Kind { found, .. } => Some(found),
            What::Other(_) => None,
        }
    }
}

/// `/x/0: expected a string, found the number 5`.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = self.pointer();
        if !pointer.is_empty() {
            write!(f, "{pointer}: ")?;
        }
        f.write_str(&self.what())
    }
}

impl std::error::Error for Mismatch {}

impl serde::de::Error for Mismatch {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Mismatch::other(text.to_string())
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Mismatch::new(expected.to_string(), found.to_string())
    }

    fn invalid_value(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Mismatch::new(expected.to_string(), found.to_string())
    }

    fn invalid_length(length: usize, expected: &dyn serde::de::Expected) -> Self {
        Mismatch::new(expected.to_string(), format!("{length} elements"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Mismatch::new(one_of(expected), quoted(variant))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let expected = format!("no member but {}", one_of(expected));
        Mismatch::new(expected, quoted(field))
    }

    fn missing_field(field: &'static str) -> Self {
        Mismatch::new("a value", "undefined").in_key(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Mismatch::other("the member is there twice").in_key(field)
    }
}

impl serde::ser::Error for Mismatch {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Mismatch::other(text.to_string())
    }
}

fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    match &names[..] {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        many => format!("one of {}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_a_pointer() {
        let mismatch = Mismatch::new("a string", "null")
            .in_key("y/z")
            .in_index(3)
            .in_key("x");
        assert_eq!(mismatch.pointer(), "/x/3/y~1z");
        assert_eq!(
            mismatch.to_string(),
            "/x/3/y~1z: expected a string, found null"
        );
        assert_eq!(Mismatch::other("no").to_string(), "no");
    }
}
