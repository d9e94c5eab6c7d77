//! Values to Python objects.

use crate::undefined::undefined;
use a99_bindings::Item;
use a99_core::text::Text;
use a99_core::value::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

/// Integers up to this size are exact in a double, and become `int`.
pub(crate) const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// A value on its way to Python.
pub(crate) struct Out<'a>(pub &'a Value);

impl<'py> IntoPyObject<'py> for Out<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value(py, self.0)
    }
}

/// An object for the result of an operation.
pub(crate) fn item<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyAny>> {
    match item {
        Item::Value(found) => value(py, found),
        Item::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
    }
}

/// An object for a value. Its nesting is that of engine values, which is bounded.
pub(crate) fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Undefined => undefined(py)?.bind(py).clone().into_any(),
        Value::Null => py.None().into_bound(py),
        Value::Bool(found) => PyBool::new(py, *found).to_owned().into_any(),
        Value::Number(found) => number(py, *found),
        Value::String(found) => text(py, found)?,
        Value::Array(items) => PyList::new(py, items.iter().map(Out))?.into_any(),
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, member) in map.iter() {
                dict.set_item(text(py, key)?, Out(member))?;
            }
            dict.into_any()
        }
    })
}

fn number(py: Python<'_>, number: f64) -> Bound<'_, PyAny> {
    let is_int = number.trunc() == number && number.abs() <= MAX_SAFE;
    if is_int && (number != 0.0 || number.is_sign_positive()) {
        return PyInt::new(py, number as i64).into_any();
    }
    PyFloat::new(py, number).into_any()
}

/// A `str`; lone surrogates stay as they are.
pub(crate) fn text<'py>(py: Python<'py>, text: &Text) -> PyResult<Bound<'py, PyAny>> {
    match text.to_str() {
        Some(text) => Ok(PyString::new(py, text).into_any()),
        None => {
            let bytes = PyBytes::new(py, text.as_bytes());
            bytes.call_method1("decode", ("utf-8", "surrogatepass"))
        }
    }
}
