//! The sentinel `agent99.UNDEFINED`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static UNDEFINED: PyOnceLock<Py<Undefined>> = PyOnceLock::new();

/// The type of `UNDEFINED`, the absent value of programs; JSON and `None` do not have it.
#[pyclass(frozen, module = "agent99._native")]
pub(crate) struct Undefined;

#[pymethods]
impl Undefined {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Py<Self>> {
        undefined(py).map(|only| only.clone_ref(py))
    }

    fn __repr__(&self) -> &'static str {
        "UNDEFINED"
    }

    fn __bool__(&self) -> bool {
        false
    }

    /// Copies and pickles are the sentinel itself.
    fn __reduce__(&self) -> &'static str {
        "UNDEFINED"
    }
}

/// The only instance.
pub(crate) fn undefined(py: Python<'_>) -> PyResult<&'static Py<Undefined>> {
    UNDEFINED.get_or_try_init(py, || Py::new(py, Undefined))
}
