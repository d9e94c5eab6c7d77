//! The module `agent99._native`: Python objects to values and back, and the part of a run's loop
//! that needs no event loop. The Python package beside it has everything that users call.
//!
//! `Host::call` is the interface of all bindings. A `Run` keeps a run's
//! clock, answers calls of plain functions without leaving Rust, and hands other events to Python.

#![warn(unreachable_pub)]

mod host;
mod read;
mod run;
mod undefined;
mod write;

use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    Failure,
    pyo3::exceptions::PyException,
    "An operation of the engine failed; the only argument is a dict with code and message."
);
pyo3::create_exception!(
    _native,
    BadValue,
    pyo3::exceptions::PyTypeError,
    "A Python object that no program can have; the message says where it is."
);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<host::Host>()?;
    module.add_class::<run::Direct>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<undefined::Undefined>()?;
    module.add("UNDEFINED", undefined::undefined(py)?)?;
    module.add("Failure", py.get_type::<Failure>())?;
    module.add("BadValue", py.get_type::<BadValue>())?;
    module.add_function(wrap_pyfunction!(read::on_other, module)?)?;
    module.add_function(wrap_pyfunction!(run::on_exception, module)?)
}
