//! The state of a run: scopes, fuel, clock, trace, and the entry point.

use super::host::OracleHost;
use super::meter::Meter;
use super::options::{OracleOptions, OracleOutcome, Rejected, TraceEvent};
use super::value::{Fail, JsStr, OVal, Obj, Res, from_value, js, to_value};
use a99_core::error::{ErrorCode, RunError};
use a99_core::fuel::Fuel;
use a99_core::json::Document;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use agent99::capabilities::MemoryStore;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

/// Stack of the interpreter's thread: guests nest up to the limits of D38.
const STACK_BYTES: usize = 1 << 30;

/// A scope: its variables, its constants, and its parent.
pub(super) struct Scope {
    vars: RefCell<IndexMap<JsStr, OVal>>,
    consts: RefCell<HashSet<JsStr>>,
    parent: Option<ScopeRef>,
    /// True for a loop's scope, which has only the loop's names; others are bound in the parent
    /// (D63).
    is_loop: bool,
}

/// A shared scope.
pub(super) type ScopeRef = Rc<Scope>;

impl Scope {
    /// A scope with a parent, or a root scope.
    pub(super) fn new(parent: Option<&ScopeRef>) -> ScopeRef {
        Rc::new(Scope {
            vars: RefCell::default(),
            consts: RefCell::default(),
            parent: parent.cloned(),
            is_loop: false,
        })
    }

    /// A scope for an iteration, with the loop's names.
    pub(super) fn of_turn(around: &ScopeRef, names: Vec<(JsStr, OVal)>) -> Res<ScopeRef> {
        let mut vars = IndexMap::new();
        for (name, value) in names {
            around.check_bind(&name)?;
            vars.insert(name, value);
        }
        Ok(Rc::new(Scope {
            vars: RefCell::new(vars),
            consts: RefCell::default(),
            parent: Some(around.clone()),
            is_loop: true,
        }))
    }

    /// The parent, if it binds a name that this scope does not.
    fn elsewhere(&self, name: &[u16]) -> Option<&ScopeRef> {
        let around = self.parent.as_ref().filter(|_| self.is_loop)?;
        (!self.vars.borrow().contains_key(name)).then_some(around)
    }

    /// This scope's variable of this name.
    pub(super) fn own(&self, name: &[u16]) -> Option<OVal> {
        match self.elsewhere(name) {
            Some(around) => around.own(name),
            None => self.vars.borrow().get(name).cloned(),
        }
    }

    /// The variable of this name here or in a parent.
    pub(super) fn lookup(&self, name: &[u16]) -> Option<OVal> {
        self.own(name)
            .or_else(|| self.parent.as_ref()?.lookup(name))
    }

    fn is_const(&self, name: &[u16]) -> bool {
        self.consts.borrow().contains(name)
            || self.parent.as_ref().is_some_and(|p| p.is_const(name))
    }

    /// Checks that a name may be bound here (decisions D16, D31).
    pub(super) fn check_bind(&self, name: &JsStr) -> Res<()> {
        super::statics::refuse_forbidden(name)?;
        if self.is_const(name) {
            let name = super::value::lossy(name);
            return Err(Fail::new(format!(
                "Cannot reassign const variable '{name}'"
            )));
        }
        Ok(())
    }

    /// Binds a name, unless it is a constant (decision D31).
    pub(super) fn bind(&self, name: &JsStr, value: OVal) -> Res<()> {
        self.check_bind(name)?;
        match self.elsewhere(name) {
            Some(around) => around.bind(name, value)?,
            None => _ = self.vars.borrow_mut().insert(name.clone(), value),
        }
        Ok(())
    }

    /// Makes a name of this scope constant.
    pub(super) fn seal(&self, name: &JsStr) {
        match self.elsewhere(name) {
            Some(around) => around.seal(name),
            None => _ = self.consts.borrow_mut().insert(name.clone()),
        }
    }

    /// Names bound here or in a parent.
    pub(super) fn visible(&self) -> HashSet<JsStr> {
        let mut names = self
            .parent
            .as_ref()
            .map_or_else(HashSet::new, |p| p.visible());
        names.extend(self.vars.borrow().keys().cloned());
        names
    }

    /// Current values of the own variables; inside a loop those of the surrounding scope.
    pub(super) fn snapshot(&self) -> IndexMap<JsStr, OVal> {
        match self.parent.as_ref().filter(|_| self.is_loop) {
            Some(around) => around.snapshot(),
            None => self.vars.borrow().clone(),
        }
    }
}

/// How a list of steps ended.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    /// It ran to its end.
    Next,
    /// A `return` was reached.
    Return(OVal),
    /// A `break` was reached.
    Break,
    /// A `continue` was reached.
    Continue,
}

/// State of one program, helper or sub-agent.
#[derive(Clone)]
pub(super) struct Frame {
    /// The arguments at the start, by name.
    pub args: OVal,
    /// All arguments as one value.
    pub all_args: OVal,
    /// The root's `helpers`.
    pub helpers: Rc<Value>,
    /// Whether nested texts in literals are names (`a99: 3`, decision D13).
    pub names_nested: bool,
    /// True in programs of version 4 (`a99: 4`, decision D62).
    pub version_4: bool,
    /// Nested `callLocal`s.
    pub helper_depth: u32,
    /// Names of caught errors around the current step.
    pub caught: Vec<JsStr>,
    /// Canonical JSON of the program, part of the key of `cache` (D25).
    pub program: Rc<Vec<u16>>,
}

/// A run.
pub(super) struct Machine<'h> {
    /// Fuel.
    pub meter: Meter,
    /// Options of the run.
    pub opts: &'h OracleOptions,
    /// The host.
    pub host: &'h mut dyn OracleHost,
    /// The running program.
    pub frame: Frame,
    /// Results of `memoize`, for the whole run (decision D26).
    pub memo: HashMap<Vec<u16>, OVal>,
    /// The store of a run whose host grants none (decision D40).
    pub store: MemoryStore,
    /// Warnings.
    pub warnings: Vec<Text>,
    /// Trace events so far, if requested.
    pub trace: Vec<TraceEvent>,
    /// Calls of each atom, for quotas (decision D42).
    pub calls: HashMap<String, u64>,
    /// Nested sub-agents and `runCode` (decision D41).
    pub agent_depth: u32,
    /// The atom at which judging ended.
    pub not_judged: Option<String>,
    /// Milliseconds of scripted answers; the oracle never sleeps.
    pub waited_ms: f64,
    /// Resolved `k` of the next search, needed for its price.
    pub search_k: Option<OVal>,
    /// True if a trace event already has the current error.
    pub traced: bool,
    /// State of the current `callAll`.
    pub gathering: Option<super::call_all::Gathering>,
    started: Instant,
}

impl Machine<'_> {
    /// Milliseconds since the start: scripted waiting, and real time under an explicit limit.
    pub(super) fn elapsed_ms(&self) -> f64 {
        let real = self
            .opts
            .timeout_ms
            .map_or(0.0, |_| self.started.elapsed().as_secs_f64() * 1e3);
        self.waited_ms + real
    }

    /// Current time for programs, including scripted waiting.
    pub(super) fn now_ms(&self) -> f64 {
        super::statics::now() + self.waited_ms
    }

    /// Deadline of the run (decision D22).
    pub(super) fn deadline_ms(&self) -> f64 {
        self.opts
            .timeout_ms
            .unwrap_or_else(|| self.opts.fuel.to_f64() * 10.0)
    }

    /// The failure of a passed deadline or an abort, if any (decision D23).
    pub(super) fn check_time(&self) -> Res<()> {
        if self
            .opts
            .abort_after_ms
            .is_some_and(|t| self.elapsed_ms() >= t)
        {
            return Err(self.aborted());
        }
        if self.elapsed_ms() >= self.deadline_ms() {
            return Err(self.timed_out());
        }
        Ok(())
    }

    /// The failure of a run that took too long (decision D24).
    pub(super) fn timed_out(&self) -> Fail {
        let text = match self.opts.timeout_ms {
            Some(ms) if !self.opts.timeout_from_fuel => format!(
                "Execution timeout after {ms}ms. Pass a higher `timeoutMs` to vm.run() or set \
                 per-atom `timeoutOverrides` for slow IO atoms."
            ),
            _ => "Execution timeout: fuel budget exceeded".to_owned(),
        };
        Fail::coded(ErrorCode::RunTimeout, text).at("vm.run")
    }

    /// The failure of an aborted run.
    pub(super) fn aborted(&self) -> Fail {
        Fail::coded(ErrorCode::Aborted, "Execution aborted").at("vm.run")
    }

    /// A value on its way out of the run (decision D21).
    pub(super) fn export(&self, value: &OVal) -> Res<Value> {
        to_value(value, self.opts.max_depth)
    }

    /// Remaining fuel, which may be negative.
    pub(super) fn fuel(&self) -> Fuel {
        Fuel::from_micro(self.meter.fuel())
    }
}

/// Runs a program.
///
/// # Errors
/// Programs that would not compile (decision D44).
pub fn run(
    doc: &Document,
    args: &Value,
    opts: &OracleOptions,
    host: &mut (dyn OracleHost + Send),
) -> Result<OracleOutcome, Rejected> {
    let root = doc.to_value(doc.root());
    super::check::program(&root)?;
    std::thread::scope(|threads| {
        let work = move || run_here(&root, args, opts, host);
        let handle = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(threads, work);
        match handle.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(outcome)) => Ok(outcome),
            _ => Err(Rejected {
                message: "the oracle itself failed".into(),
            }),
        }
    })
}

/// State of a program.
pub(super) fn frame(root: &Value, args: OVal) -> Frame {
    let style = super::json::Style {
        sorted: true,
        ..Default::default()
    };
    let text = super::json::stringify(&from_value(root), &style)
        .ok()
        .flatten();
    let all_args = args.clone();
    let args = match &args {
        OVal::Obj(all) => {
            let named = Obj::new();
            named.extend(all.iter());
            OVal::object(named)
        }
        _ => args,
    };
    Frame {
        args,
        all_args,
        helpers: Rc::new(root.get("helpers").cloned().unwrap_or(Value::Null)),
        names_nested: root.get("a99").and_then(Value::as_f64) == Some(3.0),
        version_4: root.get("a99").and_then(Value::as_f64) == Some(4.0),
        helper_depth: 0,
        caught: Vec::new(),
        program: Rc::new(text.unwrap_or_default()),
    }
}

fn run_here(
    root: &Value,
    args: &Value,
    opts: &OracleOptions,
    host: &mut (dyn OracleHost + Send),
) -> OracleOutcome {
    let args = match args {
        Value::Undefined => OVal::object(Obj::new()),
        other => from_value(other),
    };
    let mut machine = Machine {
        meter: Meter::start(opts.fuel.micro(), opts.cost_model),
        opts,
        host,
        frame: frame(root, args),
        memo: HashMap::new(),
        store: MemoryStore::new(),
        warnings: Vec::new(),
        trace: Vec::new(),
        calls: HashMap::new(),
        agent_depth: opts.agent_depth,
        not_judged: None,
        waited_ms: 0.0,
        search_k: None,
        traced: false,
        gathering: None,
        started: Instant::now(),
    };
    let outcome = match opts.aborted {
        true => Err(machine.aborted()),
        false => machine.run_root(root),
    };
    machine.finish(outcome)
}

impl Machine<'_> {
    fn run_root(&mut self, root: &Value) -> Res<OVal> {
        self.check_input(root)?;
        match self.step(root, &Scope::new(None))? {
            Flow::Return(value) => Ok(value),
            _ => Ok(OVal::Undef),
        }
    }

    /// v3's `inputSchema` of the root (language section 4.8).
    fn check_input(&mut self, root: &Value) -> Res<()> {
        if let Some(schema @ Value::Object(_)) = root.get("inputSchema") {
            let schema = from_value(schema);
            let valid = super::schemas::validate(&self.frame.args, &schema, "");
            super::meter::settle().map_err(|e| e.at("vm.run"))?;
            if valid.is_err() {
                let text = "Input validation failed: args do not match expected schema";
                return Err(Fail::new(text).at("vm.run"));
            }
        }
        Ok(())
    }

    fn finish(self, outcome: Res<OVal>) -> OracleOutcome {
        let outcome = outcome.and_then(|value| {
            // The step that gave the result pays for it.
            super::meter::pay_result(&value).map_err(|e| e.at("return"))?;
            self.export(&value).map_err(|e| e.at("vm.run"))
        });
        let used = self.opts.fuel.saturating_sub(self.fuel());
        let (result, error) = match outcome {
            Ok(value) => (value, None),
            Err(fail) => {
                let error = RunError::new(
                    fail.code,
                    fail.op.as_deref().unwrap_or("vm.run"),
                    super::value::to_text(&fail.message),
                );
                (error.to_value(), Some(error))
            }
        };
        OracleOutcome {
            result,
            error,
            fuel_used: used,
            trace: self.opts.trace.then_some(self.trace),
            warnings: self.warnings,
            not_judged: self.not_judged,
        }
    }
}

/// An object with these members, for host calls.
pub(super) fn record<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (key, value) in members {
        if !value.is_undefined() {
            map.insert(key, value);
        }
    }
    Value::Object(map)
}

/// False for the empty name, which cannot be bound.
pub(super) fn is_bindable(name: &Value) -> bool {
    match name {
        Value::Undefined | Value::Null | Value::Bool(false) => false,
        Value::String(s) => !s.is_empty(),
        Value::Number(n) => *n != 0.0 && !n.is_nan(),
        _ => true,
    }
}

/// The name `undefined`, which a missing key binds.
pub(super) fn undefined_name() -> JsStr {
    js("undefined")
}
