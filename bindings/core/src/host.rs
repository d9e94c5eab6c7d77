//! The one function of a binding: operations by number.

use crate::asks::Asks;
use crate::atoms::{self, Checks};
use crate::failure::{Failure, codes};
use crate::granted::granted;
use crate::options::{ReadOptions, run_options};
use crate::programs::{self, Cache, Form};
use crate::reflect;
use crate::runs::{ActiveRun, Caller, Happened, millis};
use crate::slab::Slab;
use crate::timers::HostTimers;
use agent99::capabilities::{Capabilities, Clock, Random};
use agent99::{Agent, CostOverride, Engine, EventSink, Map, Timers, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// An argument or a result of an operation.
#[derive(Clone, Debug)]
pub enum Item {
    /// A value.
    Value(Value),
    /// Bytes: artifacts and snapshots.
    Bytes(Vec<u8>),
}

impl<T: Into<Value>> From<T> for Item {
    fn from(value: T) -> Item {
        Item::Value(value.into())
    }
}

/// Prices that a function of the host decides.
pub trait Pricer: Send + Sync {
    /// The price of a step in units of fuel. `input` is the step as written, without `op` and
    /// `result`. The static price applies where this is NaN, infinite or negative.
    fn price(&self, op: &str, input: &Value, context: &Value) -> f64;
}

macro_rules! ops {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal;)*) => {
        /// The operations. Their numbers and forms are the ABI.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum Op {
            $($(#[doc = $doc])+ $name = $number,)*
        }

        impl Op {
            /// Every operation, in the order of the numbers.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            fn of(number: u32) -> Result<Op, Failure> {
                match number {
                    $($number => Ok(Op::$name),)*
                    _ => Err(Failure::argument(format!("there is no operation {number}"))),
                }
            }
        }
    };
}

ops! {
    /// `()`: an object with `version` and `abi`.
    Version = 0;
    /// `(config)`: the handle of an engine.
    Engine = 1;
    /// `(handle)`: frees an engine, an agent or a run.
    Free = 2;
    /// `(engine, program, form)`: an object with `agent`, a handle, and `warnings`; with
    /// `diagnostics` if the program is rejected.
    Compile = 3;
    /// `(engine, agent or program, args, options, elapsed)`: the first event of a run.
    Start = 4;
    /// `(run, elapsed)`: the next event.
    Next = 5;
    /// `(run, id, ok, value, extra, elapsed)`: answers a call, then the next event.
    Answer = 6;
    /// `(run, elapsed)`: aborts the run; its last event.
    Abort = 7;
    /// `(run)`: the bytes of a waiting or pausing run.
    Snapshot = 8;
    /// `(engine, agent, bytes, options)`: goes on with a snapshot; the next event.
    Restore = 9;
    /// `(agent, strip)`: the bytes of an artifact.
    Save = 10;
    /// `(engine, bytes)`: an object with `agent` and `warnings`.
    Load = 11;
    /// `(agent)`: an object with `hash`, `ops` and `inputSchema`.
    Describe = 12;
    /// `(engine, agent)`: the program as JavaScript.
    Print = 13;
    /// `(engine, text)`: an object with `program`, the tree of a source, and `warnings`; with
    /// `diagnostics` if it is rejected.
    Transpile = 14;
    /// `(text, dialect)`: an object with `expr`, the node of a condition, or `error`.
    Condition = 15;
    /// `(engine, filter, form)`: the atoms as tools of models.
    Tools = 16;
    /// `(engine)`: the atoms with their signatures.
    Atoms = 17;
    /// `(engine, form)`: the system prompt for models.
    Prompt = 18;
    /// `(engine)`: types of the atoms for TypeScript.
    Declarations = 19;
    /// `(code)`: what an error code means; undefined for an unknown one.
    Explain = 20;
}

struct EngineEntry {
    engine: Engine,
    host_atoms: Arc<HashMap<String, Checks>>,
    cost_fns: Vec<String>,
    cache: Mutex<Cache>,
}

/// An agent, and the engine that linked it.
type AgentEntry = (u64, Agent);

/// The engine for one binding: its engines, programs and runs by handle.
///
/// Threads may share it. An operation on a run takes the run out of the table, so that runs of
/// several threads do not wait for each other.
pub struct Host {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    pricer: Mutex<Option<Arc<dyn Pricer>>>,
    engines: Mutex<Slab<Arc<EngineEntry>>>,
    agents: Mutex<Slab<AgentEntry>>,
    runs: Mutex<Slab<Box<ActiveRun>>>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The arguments of an operation, taken one after the other.
struct Operands<'a> {
    items: std::vec::IntoIter<Item>,
    caller: Option<&'a dyn Caller>,
}

impl Operands<'_> {
    fn item(&mut self) -> Item {
        self.items.next().unwrap_or(Item::Value(Value::Undefined))
    }

    fn value(&mut self) -> Result<Value, Failure> {
        match self.item() {
            Item::Value(value) => Ok(value),
            Item::Bytes(_) => Err(Failure::argument("a value was expected, not bytes")),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Failure> {
        match self.item() {
            Item::Bytes(bytes) => Ok(bytes),
            Item::Value(other) => {
                let message = format!("bytes were expected, not {}", other.kind());
                Err(Failure::argument(message))
            }
        }
    }

    fn number(&mut self) -> Result<f64, Failure> {
        let value = self.value()?;
        let wrong = || Failure::argument(format!("a number was expected, not {}", value.kind()));
        value.as_f64().ok_or_else(wrong)
    }

    fn handle(&mut self) -> Result<u64, Failure> {
        Ok(self.number()? as u64)
    }

    fn text(&mut self) -> Result<String, Failure> {
        let value = self.value()?;
        let wrong = || Failure::argument(format!("a text was expected, not {}", value.kind()));
        let text = value.as_text().ok_or_else(wrong)?;
        Ok(text.to_string_lossy().into_owned())
    }

    fn bool(&mut self) -> Result<bool, Failure> {
        Ok(self.value()?.as_bool().unwrap_or(false))
    }

    fn elapsed(&mut self) -> Result<std::time::Duration, Failure> {
        Ok(millis(self.value()?.as_f64().unwrap_or(0.0)))
    }
}

/// Collects the events of a run whose host wants them.
fn subscribe(read: &mut ReadOptions) -> Option<Happened> {
    let happened = read.wants_events.then(Happened::default)?;
    let sink = Arc::clone(&happened);
    read.options.events = Some(EventSink::to_function(move |event| lock(&sink).push(event)));
    Some(happened)
}

fn handle(handle: u64) -> Value {
    Value::Number(handle as f64)
}

impl Host {
    /// A host with the clock and the randomness of the system.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[must_use]
    pub fn new() -> Host {
        use agent99::capabilities::{SystemClock, SystemRandom};
        Host::with(Arc::new(SystemClock), Arc::new(SystemRandom))
    }

    /// A host with this clock and this source of unpredictable randomness.
    #[must_use]
    pub fn with(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Host {
        Host {
            clock,
            random,
            pricer: Mutex::default(),
            engines: Mutex::new(Slab::new((0, "engine"))),
            agents: Mutex::new(Slab::new((1, "agent"))),
            runs: Mutex::new(Slab::new((2, "run"))),
        }
    }

    /// Sets what decides prices. It applies to runs that start later.
    pub fn set_pricer(&self, pricer: Option<Arc<dyn Pricer>>) {
        *lock(&self.pricer) = pricer;
    }

    /// Does an operation ([`Op`]). Missing arguments are `undefined`.
    ///
    /// # Errors
    /// The operation cannot be done, with a stable code. What happens to a program is an event.
    pub fn call(&self, op: u32, args: Vec<Item>) -> Result<Item, Failure> {
        self.call_with(op, args, None)
    }

    /// Does an operation. The caller's functions answer calls of a run without events.
    ///
    /// # Errors
    /// As [`Host::call`].
    pub fn call_with(
        &self,
        op: u32,
        args: Vec<Item>,
        caller: Option<&dyn Caller>,
    ) -> Result<Item, Failure> {
        let mut args = Operands {
            items: args.into_iter(),
            caller,
        };
        let args = &mut args;
        let value = match Op::of(op)? {
            Op::Version => reflect::version(),
            Op::Engine => self.engine(&args.value()?)?,
            Op::Free => self.free(args.handle()?),
            Op::Compile => self.compile(args)?,
            Op::Start => self.start(args)?,
            Op::Next => {
                let run = args.handle()?;
                let elapsed = args.elapsed()?;
                let caller = args.caller;
                self.with_run(run, |active| Ok(active.step(run, elapsed, caller)))?
            }
            Op::Answer => self.answer(args)?,
            Op::Abort => {
                let run = args.handle()?;
                let elapsed = args.elapsed()?;
                self.with_run(run, |active| Ok(active.abort(run, elapsed)))?
            }
            Op::Snapshot => {
                let run = args.handle()?;
                let bytes = lock(&self.runs).get(run)?.snapshot()?;
                return Ok(Item::Bytes(bytes));
            }
            Op::Restore => self.restore(args)?,
            Op::Save => {
                let agent = self.agent(args.handle()?)?.1;
                return programs::save(&agent, args.bool()?).map(Item::Bytes);
            }
            Op::Load => {
                let engine = args.handle()?;
                let of = self.engine_of(engine)?;
                let agent = programs::load(&of.engine, &args.bytes()?)?;
                self.compiled(engine, agent)?
            }
            Op::Describe => programs::describe(&self.agent(args.handle()?)?.1),
            Op::Print => {
                let of = self.engine_of(args.handle()?)?;
                reflect::print(&of.engine, &self.agent(args.handle()?)?.1)?
            }
            Op::Transpile => {
                let of = self.engine_of(args.handle()?)?;
                reflect::transpile(&of.engine, &args.value()?)?
            }
            Op::Condition => reflect::condition(&args.text()?, &args.value()?),
            Op::Tools => {
                let of = self.engine_of(args.handle()?)?;
                reflect::tools(&of.engine, &args.value()?, &args.value()?)?
            }
            Op::Atoms => reflect::atoms(&self.engine_of(args.handle()?)?.engine),
            Op::Prompt => {
                let of = self.engine_of(args.handle()?)?;
                reflect::prompt(&of.engine, &args.value()?)?
            }
            Op::Declarations => reflect::declarations(&self.engine_of(args.handle()?)?.engine)?,
            Op::Explain => reflect::explain(&args.text()?),
        };
        Ok(Item::Value(value))
    }

    fn engine(&self, config: &Value) -> Result<Value, Failure> {
        let read = atoms::read(Some(config))?;
        let host_atoms = read.host_atoms;
        let builder = Engine::builder_with(Arc::clone(&self.clock), Arc::clone(&self.random));
        let entry = EngineEntry {
            engine: (builder.atoms(read.set).lint(true))
                .host::<dyn Timers>(Arc::new(HostTimers::new(Arc::clone(&self.clock))))
                .build(),
            host_atoms: Arc::new(host_atoms),
            cost_fns: read.cost_fns,
            cache: Mutex::default(),
        };
        lock(&self.engines).insert(Arc::new(entry)).map(handle)
    }

    fn free(&self, object: u64) -> Value {
        let engine = lock(&self.engines).remove(object);
        let agent = lock(&self.agents).remove(object);
        let run = lock(&self.runs).remove(object);
        Value::Bool(engine.is_some() || agent.is_some() || run.is_some())
    }

    fn engine_of(&self, engine: u64) -> Result<Arc<EngineEntry>, Failure> {
        lock(&self.engines).get(engine).cloned()
    }

    fn agent(&self, agent: u64) -> Result<AgentEntry, Failure> {
        lock(&self.agents).get(agent).cloned()
    }

    fn compiled(&self, engine: u64, agent: Agent) -> Result<Value, Failure> {
        let mut map = Map::new();
        map.insert("warnings", programs::found(agent.warnings()));
        let agent = lock(&self.agents).insert((engine, agent))?;
        map.insert("agent", handle(agent));
        Ok(Value::Object(map))
    }

    fn compile(&self, args: &mut Operands<'_>) -> Result<Value, Failure> {
        let engine = args.handle()?;
        let of = self.engine_of(engine)?;
        let program = args.value()?;
        let form = Form::of(args.value()?.as_str().unwrap_or("auto"), &program)?;
        match programs::compile(&of.engine, &program, form) {
            Ok(agent) => self.compiled(engine, agent),
            Err(Failure {
                diagnostics: Some(found),
                ..
            }) => Ok(crate::object([("diagnostics", programs::found(&found))])),
            Err(failure) => Err(failure),
        }
    }

    /// The agent of a handle, or that of a program.
    fn agent_for(&self, engine: u64, of: &EngineEntry, agent: Value) -> Result<Agent, Failure> {
        if let Value::Number(agent) = agent {
            let (linked_by, agent) = self.agent(agent as u64)?;
            if linked_by != engine {
                let message = "the agent was compiled for another engine";
                return Err(Failure::new(codes::BAD_HANDLE, message));
            }
            return Ok(agent);
        }
        let form = Form::of("auto", &agent)?;
        let key = lock(&of.cache).key(&agent);
        if let Some(found) = key.and_then(|key| lock(&of.cache).get(key)) {
            return Ok(found);
        }
        let compiled = programs::compile(&of.engine, &agent, form)?;
        if let Some(key) = key {
            lock(&of.cache).insert(key, compiled.clone());
        }
        Ok(compiled)
    }

    /// The options of a run, with the host's prices, and the capabilities that it offers.
    fn options(
        &self,
        of: &EngineEntry,
        options: &Value,
        asks: &Asks,
    ) -> Result<(ReadOptions, Capabilities), Failure> {
        let mut read = run_options(Some(options))?;
        if let Some(pricer) = lock(&self.pricer).clone() {
            let costs = &mut read.options.costs;
            let price = |op: &String| {
                let (pricer, name) = (Arc::clone(&pricer), op.clone());
                CostOverride::Function(Arc::new(move |input: &Value, context: &Value| {
                    pricer.price(&name, input, context)
                }))
            };
            for op in &of.cost_fns {
                costs.entry(op.clone()).or_insert_with(|| price(op));
            }
            for op in &read.cost_fns {
                costs.insert(op.clone(), price(op));
            }
        }
        let granted = granted(&read.offered, asks)?;
        Ok((read, granted))
    }

    fn start(&self, args: &mut Operands<'_>) -> Result<Value, Failure> {
        let engine = args.handle()?;
        let of = self.engine_of(engine)?;
        let agent = self.agent_for(engine, &of, args.value()?)?;
        let given = args.value()?;
        let asks = Asks::default();
        let (mut read, granted) = self.options(&of, &args.value()?, &asks)?;
        let happened = subscribe(&mut read);
        let elapsed = args.elapsed()?;
        let run = of.engine.start(&agent, given, read.options, granted);
        self.begin(run, &of, asks, read.quotas, happened, elapsed, args.caller)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a run has, from its two beginnings"
    )]
    fn begin(
        &self,
        run: agent99::Run,
        of: &EngineEntry,
        asks: Asks,
        quotas: Vec<(String, agent99::Quota)>,
        happened: Option<Happened>,
        elapsed: std::time::Duration,
        caller: Option<&dyn Caller>,
    ) -> Result<Value, Failure> {
        let clock = Arc::clone(&self.clock);
        let mut active = ActiveRun::new(
            run,
            Arc::clone(&of.host_atoms),
            asks,
            quotas,
            clock,
            happened,
        );
        let reserved = lock(&self.runs).reserve()?;
        let stepped = active.step(reserved, elapsed, caller);
        self.put_back(reserved, Box::new(active), stepped.is_over);
        Ok(stepped.event)
    }

    fn put_back(&self, run: u64, active: Box<ActiveRun>, is_over: bool) {
        let mut runs = lock(&self.runs);
        match is_over {
            false => runs.put(run, active),
            true => {
                runs.release(run);
                drop(runs);
            }
        }
    }

    /// Does something with a run that is taken out of the table meanwhile.
    fn with_run(
        &self,
        run: u64,
        act: impl FnOnce(&mut ActiveRun) -> Result<crate::runs::Stepped, Failure>,
    ) -> Result<Value, Failure> {
        let mut active = lock(&self.runs).take(run)?;
        let stepped = act(&mut active);
        let is_over = stepped.as_ref().is_ok_and(|stepped| stepped.is_over);
        self.put_back(run, active, is_over);
        stepped.map(|stepped| stepped.event)
    }

    fn answer(&self, args: &mut Operands<'_>) -> Result<Value, Failure> {
        let run = args.handle()?;
        let id = args.value()?;
        let ok = args.bool()?;
        let (value, extra) = (args.value()?, args.value()?);
        let elapsed = args.elapsed()?;
        let caller = args.caller;
        self.with_run(run, |active| {
            let answer = if ok { Ok(value) } else { Err(value) };
            active.answer(&id, answer, &extra)?;
            Ok(active.step(run, elapsed, caller))
        })
    }

    fn restore(&self, args: &mut Operands<'_>) -> Result<Value, Failure> {
        let engine = args.handle()?;
        let of = self.engine_of(engine)?;
        let agent = self.agent_for(engine, &of, args.value()?)?;
        let bytes = args.bytes()?;
        let asks = Asks::default();
        let (mut read, granted) = self.options(&of, &args.value()?, &asks)?;
        let happened = subscribe(&mut read);
        let run = of.engine.restore(&agent, &bytes, read.options, granted);
        let run = run.map_err(|error| Failure::new(error.code, error.to_string()))?;
        self.begin(
            run,
            &of,
            asks,
            read.quotas,
            happened,
            std::time::Duration::ZERO,
            args.caller,
        )
    }
}
