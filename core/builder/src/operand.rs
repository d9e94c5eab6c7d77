//! Operands: inputs of a step.

use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// An input of a step as JSON: a literal, a name, a reference to an argument or an expression
/// node.
///
/// A string in a value position is a variable's name or dotted path if that variable exists,
/// and literal text otherwise (language section 1.4). `()` and `None` stand for an absent
/// input.
///
/// ```
/// use a99_builder::{Operand, args};
///
/// let given: Vec<Operand> = vec![1.into(), "name".into(), true.into(), args("user")];
/// assert_eq!(
///     Operand::from(given).value().to_json_string(),
///     r#"[1,"name",true,{"$kind":"arg","path":"user"}]"#
/// );
/// assert!(Operand::from(()).is_absent());
/// assert!(Operand::from(None::<f64>).is_absent());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Operand(Value);

/// A reference to an argument of the run: `{"$kind": "arg", "path": ..}`.
#[must_use]
pub fn args(path: &str) -> Operand {
    let members = [("$kind", "arg"), ("path", path)];
    Operand(Value::Object(members.into_iter().collect()))
}

/// A reference to a part of the request context: `{"$kind": "context", "path": ..}`, in a
/// program of version 4 and if the host allows it (decision D75).
#[must_use]
pub fn context(path: &str) -> Operand {
    let members = [("$kind", "context"), ("path", path)];
    Operand(Value::Object(members.into_iter().collect()))
}

/// A reference to a variable by its name or dotted path; it is the path itself.
#[must_use]
pub fn val(path: &str) -> Operand {
    path.into()
}

impl Operand {
    /// An absent input.
    #[must_use]
    pub const fn absent() -> Self {
        Self(Value::Undefined)
    }

    /// An object in the given order; absent operands are left out.
    pub fn object<K: Into<Text>, V: Into<Operand>>(
        members: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut map = Map::new();
        for (key, operand) in members {
            let operand = operand.into();
            if !operand.is_absent() {
                map.insert(key, operand.0);
            }
        }
        Self(Value::Object(map))
    }

    /// True for an absent input.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.0.is_undefined()
    }

    /// The JSON of the input; `undefined` if it is absent.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The JSON of the input; `undefined` if it is absent.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }

    /// The operand as a list element, where an absent one is `null`.
    fn into_element(self) -> Value {
        if self.is_absent() {
            Value::Null
        } else {
            self.0
        }
    }
}

impl Default for Operand {
    fn default() -> Self {
        Self::absent()
    }
}

impl From<()> for Operand {
    fn from((): ()) -> Self {
        Self::absent()
    }
}

impl<T: Into<Operand>> From<Option<T>> for Operand {
    fn from(operand: Option<T>) -> Self {
        operand.map_or(Self::absent(), Into::into)
    }
}

macro_rules! from_value {
    ($($source:ty),*) => {$(
        impl From<$source> for Operand {
            fn from(value: $source) -> Self {
                Self(value.into())
            }
        }
    )*};
}
from_value!(
    f64,
    i32,
    u32,
    i64,
    u64,
    usize,
    bool,
    &str,
    String,
    Text,
    Value,
    Map,
    serde_json::Value
);

impl From<&Value> for Operand {
    fn from(value: &Value) -> Self {
        Self(value.clone())
    }
}

/// A list; an absent operand in it is `null`.
impl<T: Into<Operand>> From<Vec<T>> for Operand {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

/// A list; an absent operand in it is `null`.
impl<T: Into<Operand>, const N: usize> From<[T; N]> for Operand {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

/// A list; an absent operand in it is `null`.
impl<T: Into<Operand>> FromIterator<T> for Operand {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let list: Vec<Value> = items
            .into_iter()
            .map(|item| item.into().into_element())
            .collect();
        Self(Value::Array(list))
    }
}

/// An object in the given order; absent operands are left out.
impl<V: Into<Operand>, const N: usize> From<[(&str, V); N]> for Operand {
    fn from(members: [(&str, V); N]) -> Self {
        Self::object(members)
    }
}

impl From<&String> for Operand {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}
