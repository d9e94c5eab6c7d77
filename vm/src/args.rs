//! Arguments of a run: a tree of values, or JSON text.

use a99_core::value::Value;
use std::fmt;
use std::sync::Arc;

/// Arguments of a run: anything that converts to a [`Value`], or JSON text.
///
/// Functions that start runs take `impl Into<Args>`.
#[derive(Clone, Debug)]
pub enum Args {
    /// A tree. The members of an object are the arguments; other values pass no arguments.
    Value(Value),
    /// JSON text, parsed when the run starts.
    Json(JsonText),
}

impl Args {
    /// Drops the arguments without recursion, at any nesting depth.
    pub(crate) fn dispose(self) {
        match self {
            Args::Value(value) => value.dispose(),
            Args::Json(_) => {}
        }
    }
}

impl<T: Into<Value>> From<T> for Args {
    fn from(value: T) -> Args {
        Args::Value(value.into())
    }
}

impl From<JsonText> for Args {
    fn from(text: JsonText) -> Args {
        Args::Json(text)
    }
}

/// Arguments as JSON text, such as the body of a request. The arguments that the program uses
/// are parsed straight into the run's heap; the rest is only validated.
///
/// The outcome equals that of a run with the parsed tree: same result, errors, fuel and
/// limits. Of repeated keys the last one counts, everywhere in the text. The text needs no
/// trust: parsing does not recurse, and deadline, abort signal and heap ceiling apply to it.
/// Unused members take no heap memory, whatever their size. Strings are copied, so that the
/// text can be dropped when the run has started.
///
/// Invalid JSON ends the run before its program begins, with
/// [`ErrorCode::ArgsNotJson`](a99_core::error::ErrorCode::ArgsNotJson) and the place and
/// cause in its message. Byte order marks and more than 8,192 levels are invalid.
///
/// An `inputSchema` applies to all arguments. For such a program the text becomes a tree,
/// which does not count against the ceiling, like any tree that a host passes.
///
/// ```
/// # use a99_compiler::{CompileOptions, compile};
/// # use a99_core::json::{Document, Limits};
/// # use a99_core::verify::verify;
/// # use a99_vm::{Environment, Executable, RunOptions, Vm};
/// # use std::sync::Arc;
/// # struct Still;
/// # impl Environment for Still {
/// #     fn now_ms(&self) -> f64 { 0.0 }
/// #     fn random(&self, out: &mut [u8]) { out.fill(4) }
/// # }
/// # let vm = Vm::new(a99_atoms::core_atoms(), Arc::new(Still));
/// # let link = |text: &str| -> Result<Arc<Executable>, Box<dyn std::error::Error>> {
/// #     let source = Arc::new(Document::parse(text, &Limits::default())?);
/// #     let program = compile(&source, vm.atoms(), &CompileOptions::default())?;
/// #     Ok(vm.link(&verify(program)?)?)
/// # };
/// use a99_core::error::ErrorCode;
/// use a99_vm::JsonText;
///
/// let executable = link(r#"{"op": "seq", "steps": [
///     {"op": "varsImport", "keys": ["order"]},
///     {"op": "return", "schema": {"type": "object", "properties": {"order": {}}}}
/// ]}"#)?;
/// let body = JsonText::from(r#"{"order": [1, 2], "nobody": {"asks": "for this"}}"#);
/// let outcome = vm.run_sync(&executable, body, RunOptions::default());
/// assert_eq!(outcome.result.to_json_string(), r#"{"order":[1,2]}"#);
///
/// let body = JsonText::from(r#"{"order": [1, 2,]}"#);
/// let error = vm.run_sync(&executable, body, RunOptions::default()).error.unwrap();
/// assert_eq!(error.code, ErrorCode::ArgsNotJson);
/// assert_eq!(
///     error.message.to_string(),
///     "The arguments are not JSON: line 1, column 17: expected a value, found `]`",
/// );
/// assert_eq!(error.help.as_deref(), Some("remove the comma before it"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct JsonText(Held);

#[derive(Clone)]
enum Held {
    Text(String),
    Bytes(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl JsonText {
    /// The text, not necessarily UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Text(text) => text.as_bytes(),
            Held::Bytes(bytes) => bytes,
            Held::Shared(bytes) => bytes,
        }
    }

    /// Whether the text is known to be UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        matches!(self.0, Held::Text(_))
    }
}

impl fmt::Debug for JsonText {
    /// Omits the text, which may be long and secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.as_bytes().len())
    }
}

impl From<String> for JsonText {
    fn from(text: String) -> JsonText {
        JsonText(Held::Text(text))
    }
}

impl From<&str> for JsonText {
    fn from(text: &str) -> JsonText {
        JsonText(Held::Text(text.to_owned()))
    }
}

impl From<Vec<u8>> for JsonText {
    fn from(bytes: Vec<u8>) -> JsonText {
        JsonText(Held::Bytes(bytes))
    }
}

impl From<&[u8]> for JsonText {
    fn from(bytes: &[u8]) -> JsonText {
        JsonText(Held::Bytes(bytes.to_vec()))
    }
}

impl From<Arc<[u8]>> for JsonText {
    fn from(bytes: Arc<[u8]>) -> JsonText {
        JsonText(Held::Shared(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_so_is_json() {
        assert!(matches!(Args::from("{}"), Args::Value(Value::String(_))));
        let texts = [
            JsonText::from("{}"),
            JsonText::from("{}".to_owned()),
            JsonText::from(b"{}".as_slice()),
            JsonText::from(b"{}".to_vec()),
            JsonText::from(Arc::from(b"{}".as_slice())),
        ];
        for text in texts {
            assert_eq!(text.as_bytes(), b"{}");
            // Neither logs nor panics show the content of a request.
            assert_eq!(format!("{text:?}"), "JsonText(2 bytes)");
            assert!(matches!(Args::from(text), Args::Json(_)));
        }
    }
}
