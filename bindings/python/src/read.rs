//! Python objects to values.
//!
//! Lists, tuples and dicts are read directly, objects of other types by the hook of the Python
//! package, which returns something simpler. Code of the host can run while an object is read (a
//! mapping's `items`, the hook): each size is checked again afterwards. A refused object gives
//! [`BadValue`] with its path.

#![allow(unsafe_code, reason = "PyDict_Next, which allocates nothing")]

use crate::BadValue;
use crate::undefined::undefined;
use crate::write::MAX_SAFE;
use a99_bindings::Item;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString,
    PyTuple,
};
use std::fmt::Write;

/// Nesting that the engine accepts by default at most; see `a99_vm::convert`.
const MAX_DEPTH: usize = 512;

/// Bytes of a value's JSON text, at least. The engine's own limit is 4 MiB unless the host raises
/// it; this one bounds what is copied before that limit is checked.
const MAX_BYTES: usize = 256 << 20;

/// The longest path in a message, in segments.
const MAX_PATH: usize = 24;

static OTHER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the hook for objects of other types: it returns a simpler object or raises `TypeError`.
#[pyfunction]
pub(crate) fn on_other(py: Python<'_>, hook: Py<PyAny>) {
    let _ = OTHER.set(py, hook);
}

/// Why an object is refused, and where it is.
pub(crate) struct Refused {
    message: String,
    cause: Option<PyErr>,
    /// From the object outwards.
    path: Vec<String>,
}

type Read<T> = Result<T, Refused>;

impl Refused {
    fn new(message: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            cause: None,
            path: Vec::new(),
        }
    }

    /// For an exception that reading raised.
    fn raised(py: Python<'_>, of: &Bound<'_, PyAny>, cause: PyErr) -> Refused {
        let message = match cause.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
            true => cause.value(py).to_string(),
            false => format!("reading {} raised {cause}", kind(of)),
        };
        Refused {
            cause: Some(cause),
            ..Refused::new(message)
        }
    }

    fn within(mut self, segment: impl FnOnce() -> String) -> Refused {
        if self.path.len() < MAX_PATH {
            self.path.push(segment());
        } else if self.path.len() == MAX_PATH {
            self.path.push("...".to_owned());
        }
        self
    }

    /// The exception: [`BadValue`], or one that ends the program, such as `KeyboardInterrupt`.
    pub(crate) fn into_error(self, py: Python<'_>, root: &str) -> PyErr {
        let stops = |cause: &PyErr| !cause.is_instance_of::<PyException>(py);
        if let Some(cause) = self.cause.as_ref().filter(|cause| stops(cause)) {
            return cause.clone_ref(py);
        }
        let mut message = String::from(root);
        self.path
            .iter()
            .rev()
            .for_each(|part| message.push_str(part));
        let _ = write!(message, ": {}", self.message);
        let error = BadValue::new_err(message);
        error.set_cause(py, self.cause);
        error
    }
}

/// Reads an argument of an operation: bytes stay bytes.
pub(crate) fn item(object: &Bound<'_, PyAny>) -> Read<Item> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Item::Bytes(bytes.as_bytes().to_vec())),
        Err(_) => value(object).map(Item::Value),
    }
}

/// Reads a value.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> Read<Value> {
    let mut reader = Reader {
        above: Vec::new(),
        bytes: 0,
    };
    reader.value(object)
}

struct Reader {
    /// Addresses of the containers that are being read, which are alive meanwhile.
    above: Vec<usize>,
    bytes: usize,
}

impl Reader {
    fn value(&mut self, object: &Bound<'_, PyAny>) -> Read<Value> {
        self.count(2)?;
        if let Ok(text) = object.cast_exact::<PyString>() {
            return self.text(text).map(Value::String);
        }
        if let Ok(number) = object.cast_exact::<PyInt>() {
            return integer(number);
        }
        if let Ok(number) = object.cast_exact::<PyFloat>() {
            return Ok(Value::Number(number.value()));
        }
        if object.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(found) = object.cast_exact::<PyBool>() {
            return Ok(Value::Bool(found.is_true()));
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.nested(object, |reader| reader.dict(dict));
        }
        if let Ok(list) = object.cast::<PyList>() {
            return self.nested(object, |reader| reader.list(list));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return self.nested(object, |reader| {
                let items = tuple.iter_borrowed().enumerate();
                let items = items.map(|(at, item)| reader.element(at, &item));
                items.collect::<Read<_>>().map(Value::Array)
            });
        }
        self.other(object)
    }

    fn other(&mut self, object: &Bound<'_, PyAny>) -> Read<Value> {
        let py = object.py();
        let raised = |error| Refused::raised(py, object, error);
        if undefined(py).map_err(raised)?.is(object) {
            return Ok(Value::Undefined);
        }
        let hook = || {
            let hook = OTHER.get(py).ok_or_else(|| Refused::new("no hook"))?;
            hook.bind(py).call1((object,)).map_err(raised)
        };
        // Enumerations derive from `int` and `str`, and are values by the hook.
        if let Ok(text) = object.cast::<PyString>() {
            return self.text(text).map(Value::String);
        }
        if let Ok(number) = object.cast::<PyInt>() {
            return integer(number);
        }
        if let Ok(number) = object.cast::<PyFloat>() {
            return Ok(Value::Number(number.value()));
        }
        if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
            return self.nested(object, |reader| {
                let items = object.try_iter().map_err(raised)?.enumerate();
                let read =
                    |(at, item): (usize, PyResult<_>)| reader.element(at, &item.map_err(raised)?);
                items.map(read).collect::<Read<_>>().map(Value::Array)
            });
        }
        if object.cast::<PyMapping>().is_ok() {
            return self.nested(object, |reader| reader.mapping(object));
        }
        self.nested(object, |reader| reader.value(&hook()?))
    }

    /// Reads a container, unless it contains itself or is nested too deeply.
    fn nested(
        &mut self,
        object: &Bound<'_, PyAny>,
        read: impl FnOnce(&mut Reader) -> Read<Value>,
    ) -> Read<Value> {
        let address = object.as_ptr() as usize;
        if self.above.contains(&address) {
            let kind = kind(object);
            return Err(Refused::new(format!(
                "{kind} contains itself; values are trees"
            )));
        }
        if self.above.len() >= MAX_DEPTH {
            let text = format!("more than {MAX_DEPTH} levels of nesting");
            return Err(Refused::new(text));
        }
        self.above.push(address);
        let value = read(self);
        self.above.pop();
        value
    }

    fn element(&mut self, at: usize, item: &Bound<'_, PyAny>) -> Read<Value> {
        self.value(item)
            .map_err(|refused| refused.within(|| format!("[{at}]")))
    }

    fn list(&mut self, list: &Bound<'_, PyList>) -> Read<Value> {
        let count = list.len();
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            let item = list.get_item(at).map_err(|_| changed("list"))?;
            items.push(self.element(at, &item)?);
        }
        match list.len() == count {
            true => Ok(Value::Array(items)),
            false => Err(changed("list")),
        }
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> Read<Value> {
        let py = dict.py();
        let count = dict.len();
        let mut map = Map::with_capacity(count);
        let mut position: ffi::Py_ssize_t = 0;
        let (mut key, mut member) = (std::ptr::null_mut(), std::ptr::null_mut());
        loop {
            // SAFETY: `dict` is a dict that is alive, and the thread is attached. The out
            // pointers are valid. `PyDict_Next` checks the position against the dict's present
            // table, so that a change between calls gives other members or an end.
            let more = unsafe {
                ffi::PyDict_Next(
                    dict.as_ptr(),
                    &raw mut position,
                    &raw mut key,
                    &raw mut member,
                )
            };
            if more == 0 {
                break;
            }
            // SAFETY: both are borrowed from the dict, and nothing has run since; a reference is
            // taken at once, because reading the member may run code that removes it.
            let (key, member) = unsafe {
                (
                    Bound::from_borrowed_ptr(py, key),
                    Bound::from_borrowed_ptr(py, member),
                )
            };
            self.member(&mut map, &key, &member)?;
            if dict.len() != count {
                return Err(changed("dict"));
            }
        }
        Ok(Value::Object(map))
    }

    fn mapping(&mut self, mapping: &Bound<'_, PyAny>) -> Read<Value> {
        let raised = |error| Refused::raised(mapping.py(), mapping, error);
        let mut map = Map::new();
        let items = mapping.call_method0("items").map_err(raised)?;
        for pair in items.try_iter().map_err(raised)? {
            let pair = pair.map_err(raised)?;
            let (key, member) = pair.extract().map_err(raised)?;
            self.member(&mut map, &key, &member)?;
        }
        Ok(Value::Object(map))
    }

    fn member(
        &mut self,
        map: &mut Map,
        key: &Bound<'_, PyAny>,
        member: &Bound<'_, PyAny>,
    ) -> Read<()> {
        let Ok(name) = key.cast::<PyString>() else {
            let text = format!("a key is {}; keys of objects are str", kind(key));
            return Err(Refused::new(text));
        };
        let name = self.text(name)?;
        let value = self.value(member).map_err(|refused| {
            refused.within(|| match name.to_str() {
                Some(name) if is_plain(name) => format!(".{name}"),
                _ => format!("[{name:?}]"),
            })
        })?;
        map.insert(name, value);
        Ok(())
    }

    fn text(&mut self, text: &Bound<'_, PyString>) -> Read<Text> {
        if let Ok(text) = text.to_str() {
            self.count(text.len())?;
            return Ok(Text::from(text));
        }
        let raised = |error| Refused::raised(text.py(), text, error);
        let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"));
        let bytes = bytes.map_err(raised)?;
        let bytes = bytes
            .cast::<PyBytes>()
            .map_err(|error| raised(error.into()))?;
        self.count(bytes.as_bytes().len())?;
        let mut joined = Vec::with_capacity(bytes.as_bytes().len());
        // A pair of surrogates is one character of the language; `push_wtf8` joins at the seam.
        for part in bytes.as_bytes().chunk_by(|_, next| *next != 0xED) {
            a99_core::text::push_wtf8(&mut joined, part);
        }
        Ok(Text::from_wtf8(joined))
    }

    fn count(&mut self, bytes: usize) -> Read<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= MAX_BYTES {
            true => Ok(()),
            false => {
                let mib = MAX_BYTES >> 20;
                Err(Refused::new(format!("the value has more than {mib} MiB")))
            }
        }
    }
}

fn integer(number: &Bound<'_, PyInt>) -> Read<Value> {
    match number.extract::<i64>() {
        Ok(small) if small.unsigned_abs() <= MAX_SAFE as u64 => Ok(Value::Number(small as f64)),
        _ => Err(Refused::new(
            "an int beyond 2**53, which numbers of programs cannot hold exactly; pass it as a str, \
             or as a float if it may be rounded",
        )),
    }
}

fn changed(kind: &str) -> Refused {
    Refused::new(format!("the {kind} changed while it was read"))
}

fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= 64 && !name.is_empty() && name.chars().all(is_word)
}

/// The type of an object, for messages.
fn kind(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name().map(|name| name.to_string());
    name.unwrap_or_else(|_| "an object".to_owned())
}
