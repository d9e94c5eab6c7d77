//! The compiler, verifier and register machine as an engine of vectors, used through the facade
//! as by a host.

use super::script::{Reply, SharedScript};
use super::{Engine, EngineError, EngineEvent, EngineOutcome, REFERENCE_ATOM_TIMEOUT_MS, RunSpec};
use a99_core::error::ErrorCode;
use a99_core::value::Value;
use agent99::artifact::EncodeOptions;
use agent99::capabilities::{
    BoxFuture, Capabilities, CapabilityError, FixedClock, RequestHost, Requests, SeededRandom,
};
use agent99::{
    AbortSignal, Agent, AtomBody, AtomDef, AtomError, AtomSet, AtomSig, AtomTimeout, CostModel,
    CostOverride, Engine as Agents, EngineBuilder, Equality, HostReply, Outcome, Params,
    RunEventKind, RunOptions, all_atoms,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The register machine.
#[derive(Debug, Default)]
pub struct VmEngine;

/// The register machine on programs that were written to a file and loaded again.
#[derive(Debug, Default)]
pub struct ArtifactEngine;

/// How a program reaches the machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// As JSON.
    Json,
    /// As an `.a99b` file.
    File,
    /// As an `.a99b` file without source.
    Stripped,
    /// Printed as source, then compiled.
    Source,
    /// As JSON, called with its arguments by place.
    Bound,
}

impl Route {
    fn agent(self, engine: &Agents, compiled: Agent) -> Result<Agent, String> {
        let strip = match self {
            Route::Json | Route::Bound => return Ok(compiled),
            Route::Source => {
                let shown = |found: agent99::Refused| {
                    let first = found
                        .iter()
                        .find(|d| d.severity == agent99::Severity::Error);
                    first.map_or_else(String::new, |d| format!("{}: {}", d.code, d.message))
                };
                let source = engine.print_source(&compiled).map_err(shown)?;
                return engine.compile_source(source).map_err(shown);
            }
            Route::File => false,
            Route::Stripped => true,
        };
        let bytes = compiled.to_bytes(&EncodeOptions { strip });
        let loaded = bytes.map(|bytes| engine.load(&bytes));
        loaded
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())
    }
}

/// Every scripted capability.
pub(super) struct Scripted(SharedScript);

impl Scripted {
    fn ask(&self, method: &str, args: &[Value]) -> Reply {
        self.0
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .call(method, args)
    }

    pub(super) fn reply(
        &self,
        method: &'static str,
        args: Vec<Value>,
    ) -> BoxFuture<'_, Result<Value, CapabilityError>> {
        Box::pin(async move {
            let reply = self.ask(method, &args);
            wait(reply.delay_ms).await;
            reply.result.map_err(CapabilityError::new)
        })
    }

    pub(super) fn provides(&self, method: &str) -> bool {
        self.0
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .provides(method)
    }
}

pub(super) async fn wait(ms: f64) {
    if ms > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(ms / 1000.0)).await;
    }
}

pub(super) type Answer<'a> = BoxFuture<'a, Result<Value, CapabilityError>>;

impl RequestHost for Scripted {
    fn offers(&self, method: &str) -> bool {
        self.provides(method)
    }

    fn request(&self, method: &'static str, args: Vec<Value>) -> Answer<'_> {
        self.reply(method, args)
    }
}

pub(super) fn capabilities(script: &SharedScript) -> Capabilities {
    let scripted = Scripted(script.clone());
    let has_model = scripted.provides("ai.generate");
    let mut granted = Requests(scripted).granted();
    if has_model {
        granted.ai = Some(Arc::new(super::models::ScriptedModel(script.clone())));
    }
    granted
}

/// Names of the methods that a script provides, as a host in another language offers them.
pub(super) fn capability_names(script: &SharedScript) -> Vec<String> {
    let script = script.lock().unwrap_or_else(|e| e.into_inner());
    script.provided()
}

/// A host atom of a vector: gets the step as written.
pub(super) fn host_atom(atom: &super::HostAtom, script: &SharedScript) -> AtomDef {
    let micro = a99_core::fuel::cost_from_f64(atom.cost).unwrap_or(0);
    let (op, script) = (atom.op.clone(), script.clone());
    let body =
        move |mut call: agent99::HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
            let input = call.args.pop().unwrap_or(Value::Undefined);
            let reply = script
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .atom(&op, &input);
            Box::pin(async move {
                wait(reply.delay_ms).await;
                reply.result.map(HostReply::from).map_err(AtomError::new)
            })
        };
    AtomDef {
        sig: AtomSig {
            name: Cow::Owned(atom.op.clone()),
            params: Params::Raw,
            timeout: timeout(atom.timeout_ms),
            ..AtomSig::new("", "An atom of the host.", micro)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

fn timeout(ms: f64) -> AtomTimeout {
    if ms > 0.0 {
        AtomTimeout::Ms(ms as u64)
    } else {
        AtomTimeout::None
    }
}

pub(super) fn options(spec: &RunSpec, atoms: &AtomSet) -> RunOptions {
    let mut options = RunOptions::new()
        .trace(spec.trace)
        .context(spec.context.clone())
        .readable_context(spec.readable_context.clone());
    options.fuel = spec.fuel;
    options.timeout_ms = spec.timeout_ms.map(|ms| ms.max(0.0) as u64);
    options.cost_model = if spec.metered {
        CostModel::Metered
    } else {
        CostModel::Flat
    };
    // The references accept and ignore unknown names.
    let known = |op: &String| atoms.get(op).is_some();
    for op in spec.limited_atoms.iter().filter(|op| known(op)) {
        options
            .timeouts
            .insert(op.clone(), AtomTimeout::Ms(REFERENCE_ATOM_TIMEOUT_MS));
    }
    for (op, calls) in &spec.quotas {
        options = options.quota(op, *calls);
    }
    if spec.exact_equality {
        options = options.equality(Equality::Exact);
    }
    for (op, price) in spec.cost_overrides.iter().filter(|(op, _)| known(op)) {
        // An invalid price stands for a function's result: the machine then charges the static
        // default.
        let price = match a99_core::fuel::cost_from_f64(*price) {
            Some(micro) => CostOverride::Fixed(micro),
            None => {
                let price = *price;
                CostOverride::Function(Arc::new(move |_, _| price))
            }
        };
        options.costs.insert(op.clone(), price);
    }
    if let Some(listener) = &spec.listener {
        options = options.trace_to(listener.clone()).events(listener.clone());
    }
    if provides_events(&spec.script) {
        let script = spec.script.clone();
        options = options.on_event(move |event| {
            if let RunEventKind::Chunk { value, .. } = event.kind {
                let mut script = script.lock().unwrap_or_else(|e| e.into_inner());
                // A mismatch is recorded among the script's problems.
                script.call(CHUNKS, &[value]);
            }
        });
    }
    options
}

/// Method of a script that receives `streamChunk`'s data, if provided.
const CHUNKS: &str = "events.chunk";

fn provides_events(script: &SharedScript) -> bool {
    let script = script.lock().unwrap_or_else(|e| e.into_inner());
    script.provides(CHUNKS)
}

fn event(event: agent99::TraceEvent) -> EngineEvent {
    EngineEvent {
        op: event.op,
        input: event.input,
        state_diff: Value::Object(event.state_diff),
        result: event.result,
        error: event.error,
        fuel_before: event.fuel_before,
        fuel_after: event.fuel_after,
    }
}

/// The fuel-derived text, for any source of the deadline.
pub(super) const FUEL_TIMEOUT: &str = "Execution timeout: fuel budget exceeded";

pub(super) fn ran(outcome: Outcome) -> EngineOutcome {
    let mut result = outcome.result;
    let error = outcome.error.map(|mut e| {
        if e.code == ErrorCode::RunTimeout {
            e.message = FUEL_TIMEOUT.into();
            result = e.to_value();
        }
        EngineError {
            aborted: e.code == ErrorCode::Aborted,
            message: e.message,
            op: e.op,
        }
    });
    EngineOutcome::Ran {
        result,
        error,
        fuel_used: outcome.fuel_used,
        trace: outcome
            .trace
            .map(|events| events.into_iter().map(event).collect()),
    }
}

/// Runs a program by this route, at a fixed time and with deterministic random numbers.
#[must_use]
pub fn run_by(route: Route, spec: RunSpec) -> EngineOutcome {
    let builder = Agents::builder()
        .clock(Arc::new(FixedClock::new(super::read::now_ms())))
        .random(Arc::new(SeededRandom::new(99)));
    run(builder, route, spec)
}

fn run(builder: EngineBuilder, route: Route, spec: RunSpec) -> EngineOutcome {
    run_granting(builder, route, spec, &capabilities)
}

/// Runs a program with the capabilities of its script.
pub(super) fn run_granting(
    builder: EngineBuilder,
    route: Route,
    spec: RunSpec,
    grant: &dyn Fn(&SharedScript) -> Capabilities,
) -> EngineOutcome {
    let mut atoms = all_atoms();
    for atom in &spec.atoms {
        atoms.insert(host_atom(atom, &spec.script));
    }
    let engine = builder.atoms(atoms).build();
    let mut text = Vec::new();
    spec.program.write_json(spec.program.root(), &mut text);
    let agent = match engine.compile(text) {
        Ok(agent) => agent,
        Err(refused) => {
            let first = refused
                .iter()
                .find(|d| d.severity == agent99::Severity::Error);
            let message = first.map_or_else(String::new, |d| d.message.clone());
            return EngineOutcome::Rejected { message };
        }
    };
    let agent = match route.agent(&engine, agent) {
        Ok(agent) => agent,
        Err(message) => return EngineOutcome::Rejected { message },
    };
    let signal = AbortSignal::new();
    if spec.aborted {
        signal.abort();
    }
    let options = options(&spec, engine.atoms()).signal(signal.clone());
    let granted = grant(&spec.script);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        return EngineOutcome::Rejected {
            message: "no runtime".into(),
        };
    };
    runtime.block_on(async {
        if let Some(ms) = spec.abort_after_ms {
            tokio::spawn(async move {
                wait(ms).await;
                signal.abort();
            });
        }
        match route {
            Route::Bound => {
                super::bound::called(&engine, &agent, &spec.args, options, granted).await
            }
            _ => ran(engine.run(&agent, spec.args, options, granted).await),
        }
    })
}

pub(super) fn strict_condition(text: &str) -> Result<Value, String> {
    let parsed = a99_compiler::compat::parse_condition_v2(text)?;
    Ok(Value::from(a99_compiler::expr::to_expr_json(&parsed)))
}

impl Engine for VmEngine {
    fn name(&self) -> &str {
        "vm"
    }

    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        run(Agents::builder(), Route::Json, spec)
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        strict_condition(text)
    }
}

impl Engine for ArtifactEngine {
    fn name(&self) -> &str {
        "a99b"
    }

    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        run(Agents::builder(), Route::File, spec)
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        strict_condition(text)
    }
}
