//! The host object: operations by their numbers, and the start of runs.

use crate::run::{Costs, Direct, Run, Shared};
use crate::{Failure, read, write};
use a99_bindings::{Host as Core, Item, Pricer};
use a99_core::value::Value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// The engine. One for the process is enough; all threads may use it at once.
#[pyclass(frozen, module = "agent99._native")]
pub(crate) struct Host {
    core: Arc<Core>,
}

#[pymethods]
impl Host {
    #[new]
    fn new() -> Host {
        static CORE: OnceLock<Arc<Core>> = OnceLock::new();
        let core = CORE.get_or_init(|| {
            let core = Core::new();
            core.set_pricer(Some(Arc::new(Prices)));
            Arc::new(core)
        });
        Host {
            core: Arc::clone(core),
        }
    }

    /// Calls an operation by its number.
    #[pyo3(signature = (op, *args))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        op: u32,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut items = Vec::with_capacity(args.len());
        for arg in args.iter_borrowed() {
            items.push(read::item(&arg).map_err(|refused| refused.into_error(py, "value"))?);
        }
        let result = perform(py, &self.core, None, op, items)?;
        write::item(py, &result)
    }

    /// Starts a run (`op` 4, `input` its arguments) or continues a snapshot (`op` 9, `input` its
    /// bytes), and returns the first event that Python must handle.
    ///
    /// `direct` has the functions of atoms that are called without their context, `costs` those
    /// that decide prices. A run that is `inline` never returns for a pause.
    #[expect(clippy::too_many_arguments, reason = "called once, by the package")]
    fn begin<'py>(
        &self,
        py: Python<'py>,
        op: u32,
        engine: &Bound<'py, PyAny>,
        agent: &Bound<'py, PyAny>,
        input: &Bound<'py, PyAny>,
        options: &Bound<'py, PyAny>,
        direct: &Bound<'py, Direct>,
        costs: Option<&Bound<'py, PyDict>>,
        inline: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let item = |object, root| {
            read::item(object).map_err(|refused: read::Refused| refused.into_error(py, root))
        };
        let mut items = Vec::with_capacity(5);
        items.push(item(engine, "engine")?);
        items.push(item(agent, "program")?);
        items.push(item(input, "args")?);
        items.push(item(options, "options")?);
        if op == 4 {
            items.push(Item::Value(Value::Number(0.0)));
        }
        let shared = Shared {
            core: Arc::clone(&self.core),
            began: Instant::now(),
            direct: direct.clone().unbind(),
            costs: costs.map(|costs| Costs::new(costs.clone().unbind())),
            inline,
            cause: Mutex::default(),
        };
        let event = perform(py, &self.core, shared.costs.as_ref(), op, items)?;
        Run::settle(py, Ok(shared), event)
    }
}

/// Calls an operation without the interpreter's lock, with the run's price functions in force.
pub(crate) fn perform(
    py: Python<'_>,
    core: &Core,
    costs: Option<&Costs>,
    op: u32,
    items: Vec<Item>,
) -> PyResult<Item> {
    let _in_force = costs.map(Costs::enter);
    let result = py.detach(|| core.call(op, items));
    result.map_err(|failure| match write::value(py, &failure.to_value()) {
        Ok(failure) => Failure::new_err((failure.unbind(),)),
        Err(error) => error,
    })
}

/// Asks the price functions of the run that this thread steps.
struct Prices;

impl Pricer for Prices {
    fn price(&self, op: &str, input: &Value, context: &Value) -> f64 {
        Python::attach(|py| Costs::price(py, op, input, context).unwrap_or(f64::NAN))
    }
}
