//! The loop of a run, as far as it needs no event loop.

use crate::host::perform;
use crate::read;
use crate::undefined::undefined;
use crate::write::{self, Out};
use a99_bindings::{Caller, DirectAnswer, DirectCall, Host as Core, Item};
use a99_core::value::{Map, Value};
use pyo3::exceptions::{PyException, PyRecursionError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Numbers of operations.
const FREE: u32 = 2;
const NEXT: u32 = 5;
const ANSWER: u32 = 6;
const ABORT: u32 = 7;
const SNAPSHOT: u32 = 8;

/// Numbers of events.
const DONE: u32 = 0;
const PAUSE: u32 = 4;

/// Position of the run's handle in events other than the last.
const HANDLE: usize = 1;

static EXCEPTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the hook that makes the error of an answer, a dict, from an exception.
#[pyfunction]
pub(crate) fn on_exception(py: Python<'_>, hook: Py<PyAny>) {
    let _ = EXCEPTION.set(py, hook);
}

/// Functions of a VM that the extension calls itself.
#[pyclass(frozen, module = "agent99._native")]
pub(crate) struct Direct {
    functions: HashMap<Box<[u8]>, Function>,
}

struct Function {
    function: Py<PyAny>,
    /// Names of the parameters, if inputs may be passed by their positions.
    names: Option<Vec<Box<[u8]>>>,
}

#[pymethods]
impl Direct {
    /// Functions by the names of their atoms, each with the names of its positional parameters or
    /// `None`.
    #[new]
    fn new(functions: HashMap<String, (Py<PyAny>, Option<Vec<String>>)>) -> Direct {
        let bytes = |text: String| text.into_bytes().into_boxed_slice();
        let functions = functions.into_iter().map(|(op, (function, names))| {
            let names = names.map(|names| names.into_iter().map(bytes).collect());
            (bytes(op), Function { function, names })
        });
        Direct {
            functions: functions.collect(),
        }
    }
}

impl Function {
    /// Calls the function with the inputs of a step. Its own default stands for an absent one.
    fn call<'py>(&self, py: Python<'py>, input: &Value) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(py);
        let Some(input) = input.as_object() else {
            return function.call0();
        };
        if let Some(args) = self.positional(py, input)? {
            return function.call1(PyTuple::new(py, args)?);
        }
        let named = PyDict::new(py);
        for (name, value) in input.iter() {
            if !value.is_undefined() {
                named.set_item(write::text(py, name)?, Out(value))?;
            }
        }
        function.call((), Some(&named))
    }

    /// The inputs by position, if those that are there are the first ones and there are no others.
    fn positional<'py>(
        &self,
        py: Python<'py>,
        input: &Map,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(names) = self
            .names
            .as_ref()
            .filter(|names| input.len() <= names.len())
        else {
            return Ok(None);
        };
        let mut args = Vec::with_capacity(input.len());
        for (name, place) in names.iter().zip(0..input.len()) {
            match input.get_bytes(name) {
                Some(value) if !value.is_undefined() && place == args.len() => {
                    args.push(write::value(py, value)?);
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(args))
    }
}

/// What a run has from its start to its end.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) began: Instant,
    pub(crate) direct: Py<Direct>,
    pub(crate) costs: Option<Costs>,
    pub(crate) inline: bool,
    /// The last exception of a direct function, which the error of the run may have as its cause.
    pub(crate) cause: Mutex<Option<Py<PyAny>>>,
}

/// A run that waits for Python: the second item of its events.
#[pyclass(frozen, module = "agent99._native")]
pub(crate) struct Run {
    shared: Shared,
    /// The core's handle, a number.
    handle: f64,
    over: AtomicBool,
    /// A step is being made; another thread must not interfere.
    busy: AtomicBool,
}

/// Marks a run as being stepped.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[pymethods]
impl Run {
    /// Milliseconds since the run began.
    fn elapsed(&self) -> f64 {
        self.shared.elapsed()
    }

    /// The next event.
    fn next<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let run = slf.get();
        let items = vec![run.handle(), run.shared.now()];
        Run::step(slf, NEXT, items)
    }

    /// Answers a call or a request, and returns the next event. A result that no program can have
    /// is the failure of the call.
    fn answer<'py>(
        slf: &Bound<'py, Self>,
        id: &Bound<'py, PyAny>,
        ok: bool,
        value: &Bound<'py, PyAny>,
        extra: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (py, run) = (slf.py(), slf.get());
        let read = |object, root| {
            read::value(object).map_err(|refused: read::Refused| refused.into_error(py, root))
        };
        let (ok, value) = match read(value, "result") {
            Ok(value) => (ok, value),
            Err(error) => (false, failed(py, error)?),
        };
        let items = vec![
            run.handle(),
            Item::Value(read(id, "id")?),
            Item::Value(Value::Bool(ok)),
            Item::Value(value),
            Item::Value(read(extra, "extra")?),
            run.shared.now(),
        ];
        Run::step(slf, ANSWER, items)
    }

    /// Ends the run as its abort signal would, and returns its last event.
    fn abort<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let run = slf.get();
        let items = vec![run.handle(), run.shared.now()];
        Run::step(slf, ABORT, items)
    }

    /// The bytes that continue the run elsewhere.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _busy = self.enter()?;
        let bytes = perform(py, &self.shared.core, None, SNAPSHOT, vec![self.handle()])?;
        write::item(py, &bytes)
    }

    /// Drops the run before its end.
    fn free(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            let _ = self.shared.core.call(FREE, vec![self.handle()]);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.free();
    }
}

impl Shared {
    fn elapsed(&self) -> f64 {
        self.began.elapsed().as_nanos() as f64 / 1e6
    }

    fn now(&self) -> Item {
        Item::Value(Value::Number(self.elapsed()))
    }
}

impl Run {
    fn handle(&self) -> Item {
        Item::Value(Value::Number(self.handle))
    }

    fn enter(&self) -> PyResult<Busy<'_>> {
        if self.over.load(Ordering::Acquire) {
            return Err(PyRuntimeError::new_err("the run is over"));
        }
        match self.busy.swap(true, Ordering::AcqRel) {
            false => Ok(Busy(&self.busy)),
            true => Err(PyRuntimeError::new_err("another thread steps this run")),
        }
    }

    fn step<'py>(
        slf: &Bound<'py, Self>,
        op: u32,
        items: Vec<Item>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let run = slf.get();
        let _busy = run.enter()?;
        let shared = &run.shared;
        let event = shared.perform(slf.py(), op, items);
        let event = event.inspect_err(|error| {
            if !error.is_instance_of::<crate::Failure>(slf.py()) {
                run.free();
            }
        })?;
        Run::settle(slf.py(), Err(slf), event)
    }

    /// Goes on until there is an event for Python. `of` is what the run has, or the run once there
    /// is one.
    pub(crate) fn settle<'py>(
        py: Python<'py>,
        of: Result<Shared, &Bound<'py, Run>>,
        mut event: Item,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let shared = match &of {
            Ok(shared) => shared,
            Err(run) => &run.get().shared,
        };
        loop {
            let Item::Value(Value::Array(list)) = &event else {
                return Err(PyRuntimeError::new_err("an event is no list"));
            };
            match list.first().and_then(Value::as_f64).unwrap_or(-1.0) as u32 {
                DONE => {
                    let cause = shared
                        .cause
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .take();
                    if let Err(run) = of {
                        run.get().over.store(true, Ordering::Release);
                    }
                    let mut items = Vec::with_capacity(list.len() + 1);
                    for item in list {
                        items.push(write::value(py, item)?);
                    }
                    items.extend(cause.map(|cause| cause.into_bound(py)));
                    return PyTuple::new(py, items);
                }
                PAUSE => {
                    if let Err(error) = py.check_signals() {
                        match &of {
                            Err(run) => run.get().free(),
                            Ok(_) => shared.free(&list[HANDLE]),
                        }
                        return Err(error);
                    }
                    if !shared.inline {
                        break;
                    }
                    let items = vec![Item::Value(list[HANDLE].clone()), shared.now()];
                    event = shared.perform(py, NEXT, items)?;
                }
                _ => break,
            }
        }
        let Item::Value(Value::Array(list)) = event else {
            return Err(PyRuntimeError::new_err("an event is no list"));
        };
        let run = match of {
            Err(run) => run.clone(),
            Ok(shared) => {
                let run = Run {
                    shared,
                    handle: list[HANDLE].as_f64().unwrap_or(f64::NAN),
                    over: AtomicBool::new(false),
                    busy: AtomicBool::new(false),
                };
                Bound::new(py, run)?
            }
        };
        let mut items = Vec::with_capacity(list.len());
        for (at, item) in list.iter().enumerate() {
            items.push(match at {
                HANDLE => run.clone().into_any(),
                _ => write::value(py, item)?,
            });
        }
        PyTuple::new(py, items)
    }
}

impl Shared {
    /// Calls an operation of the run. Its direct functions answer calls, and its price functions
    /// are in force. An exception that ends the program drops the run.
    pub(crate) fn perform(&self, py: Python<'_>, op: u32, items: Vec<Item>) -> PyResult<Item> {
        let _in_force = self.costs.as_ref().map(Costs::enter);
        let calls = Calls {
            shared: self,
            stopped: OnceLock::new(),
        };
        let event = perform(py, &self.core, Some(&calls), op, items)?;
        let Some(error) = calls.stopped.into_inner() else {
            return Ok(event);
        };
        if let Item::Value(Value::Array(list)) = &event
            && list.first().and_then(Value::as_f64) != Some(f64::from(DONE))
        {
            self.free(&list[HANDLE]);
        }
        Err(error)
    }

    fn free(&self, handle: &Value) {
        let _ = self.core.call(FREE, vec![Item::Value(handle.clone())]);
    }
}

/// The direct functions of a run, during an operation.
struct Calls<'a> {
    shared: &'a Shared,
    /// The exception that ends the run.
    stopped: OnceLock<PyErr>,
}

impl Caller for Calls<'_> {
    fn call(&self, call: &DirectCall<'_>) -> Option<DirectAnswer> {
        let functions = &self.shared.direct.get().functions;
        let function = functions.get(call.op.as_bytes())?;
        let answer = Python::attach(|py| {
            let answer = Nested::enter().and_then(|_nested| function.call(py, call.inputs));
            let answer = answer.and_then(|result| {
                read::value(&result).map_err(|refused| refused.into_error(py, "result"))
            });
            answer.map_err(|error| {
                let cause = error.value(py).clone().into_any().unbind();
                failed(py, error).map_or_else(
                    |error| {
                        let _ = self.stopped.set(error);
                        Value::Undefined
                    },
                    |described| {
                        let kept = self.shared.cause.lock();
                        *kept.unwrap_or_else(PoisonError::into_inner) = Some(cause);
                        described
                    },
                )
            })
        });
        Some(DirectAnswer {
            answer,
            extra: Value::Undefined,
            stops: self.stopped.get().is_some(),
        })
    }
}

/// The error of an answer; an exception that is no `Exception` ends the run instead.
fn failed(py: Python<'_>, error: PyErr) -> PyResult<Value> {
    if !error.is_instance_of::<PyException>(py) {
        return Err(error);
    }
    let described = match EXCEPTION.get(py) {
        Some(hook) => hook.bind(py).call1((error.value(py),))?,
        None => return Err(error),
    };
    read::value(&described).map_err(|refused| refused.into_error(py, "error"))
}

/// Functions that may be called within each other's runs on one thread.
const MAX_NESTED: u32 = 256;

/// Bytes of stack that they may take. Each level has frames of the engine on the stack, which
/// Python's own limit does not count. Threads of glibc have 8 MiB, those of musl 1 MiB.
const MAX_STACK: usize = if cfg!(target_env = "musl") {
    512 << 10
} else {
    2 << 20
};

/// A call of a function while the engine's frames are on the stack.
struct Nested;

thread_local! {
    /// Calls within each other, and the address of the first one's frame.
    static NESTED: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
}

impl Nested {
    fn enter() -> PyResult<Nested> {
        let frame = 0u8;
        let here = (&raw const frame).addr();
        let (depth, first) = match NESTED.get() {
            (0, _) => (0, here),
            nested => nested,
        };
        if depth >= MAX_NESTED || first.abs_diff(here) > MAX_STACK {
            let text = format!("{depth} runs within runs are too many");
            return Err(PyRecursionError::new_err(text));
        }
        NESTED.set((depth + 1, first));
        Ok(Nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let (depth, first) = NESTED.get();
        NESTED.set((depth - 1, first));
    }
}

/// Functions that decide prices, by the names of their atoms.
pub(crate) struct Costs(Py<PyDict>);

thread_local! {
    /// The price functions of the runs that this thread steps; a price function may itself run a
    /// program.
    static IN_FORCE: RefCell<Vec<Py<PyDict>>> = const { RefCell::new(Vec::new()) };
}

/// Ends the time in which price functions are in force.
pub(crate) struct InForce;

impl Drop for InForce {
    fn drop(&mut self) {
        let _ = IN_FORCE.with_borrow_mut(Vec::pop);
    }
}

impl Costs {
    pub(crate) fn new(functions: Py<PyDict>) -> Costs {
        Costs(functions)
    }

    /// Puts the functions in force on this thread.
    pub(crate) fn enter(&self) -> InForce {
        Python::attach(|py| IN_FORCE.with_borrow_mut(|all| all.push(self.0.clone_ref(py))));
        InForce
    }

    /// The price of a call; NaN, an exception or a missing function leave the static price.
    pub(crate) fn price(py: Python<'_>, op: &str, input: &Value, context: &Value) -> PyResult<f64> {
        let table = IN_FORCE.with_borrow(|all| all.last().map(|table| table.clone_ref(py)));
        let function = match table {
            Some(table) => table.bind(py).get_item(op)?,
            None => None,
        };
        let Some(function) = function else {
            return Ok(f64::NAN);
        };
        let price = function.call1((Out(input), Out(context)))?;
        match price.is(undefined(py)?) {
            true => Ok(f64::NAN),
            false => price.extract(),
        }
    }
}
