//! The compiler, verifier and register machine as an engine of vectors, used through the facade
//! as by a host.

use super::script::{Reply, SharedScript};
use super::{Engine, EngineError, EngineEvent, EngineOutcome, REFERENCE_ATOM_TIMEOUT_MS, RunSpec};
use a99_core::error::ErrorCode;
use a99_core::value::Value;
use agent99::artifact::EncodeOptions;
use agent99::capabilities::{
    AgentCall, AgentReply, AgentRunner, BoxFuture, Capabilities, CapabilityError, Embedder, Fetch,
    FixedClock, Llm, LlmBattery, SeededRandom, Shell, ShellCommand, ShellError, ShellErrorKind,
    ShellOutput, ShellReply, ShellRequest, Store, StoreMethod, Transpiler, Xml,
};
use agent99::{
    AbortSignal, Agent, AtomBody, AtomDef, AtomError, AtomSet, AtomSig, AtomTimeout, CostModel,
    CostOverride, Engine as Agents, EngineBuilder, Equality, HostReply, Map, Outcome, Params,
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

impl Fetch for Scripted {
    fn fetch(&self, url: Value, options: Value) -> Answer<'_> {
        self.reply("fetch", vec![url, options])
    }
}

impl Llm for Scripted {
    fn predict(&self, prompt: Value, options: Value) -> Answer<'_> {
        self.reply("llm.predict", vec![prompt, options])
    }
}

impl Xml for Scripted {
    fn parse(&self, text: Value) -> Answer<'_> {
        self.reply("xml.parse", vec![text])
    }
}

impl Transpiler for Scripted {
    fn transpile(&self, code: Value) -> Answer<'_> {
        self.reply("code.transpile", vec![code])
    }
}

impl LlmBattery for Scripted {
    fn predict(&self, system: Value, user: Value, tools: Value, format: Value) -> Answer<'_> {
        self.reply("llmBattery.predict", vec![system, user, tools, format])
    }
}

impl Embedder for Scripted {
    fn embed(&self, text: Value) -> Answer<'_> {
        self.reply("vector.embed", vec![text])
    }
}

impl AgentRunner for Scripted {
    fn run(
        &self,
        id: Value,
        input: Value,
        _: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>> {
        let answer = self.reply("agent.run", vec![id, input]);
        Box::pin(async move { answer.await.map(AgentReply::from) })
    }
}

impl Store for Scripted {
    fn supports(&self, method: StoreMethod) -> bool {
        self.provides(&format!("store.{}", method.as_str()))
    }

    fn get(&self, key: Value) -> Answer<'_> {
        self.reply("store.get", vec![key])
    }

    fn set(&self, key: Value, value: Value) -> Answer<'_> {
        self.reply("store.set", vec![key, value])
    }

    fn query(&self, query: Value) -> Answer<'_> {
        self.reply("store.query", vec![query])
    }

    fn vector_search(
        &self,
        collection: Value,
        vector: Value,
        k: Value,
        filter: Value,
    ) -> Answer<'_> {
        self.reply("store.vectorSearch", vec![collection, vector, k, filter])
    }

    fn query_predicate(&self, query: Value) -> Answer<'_> {
        self.reply("store.queryPredicate", vec![query])
    }

    fn create_collection(&self, collection: Value, schema: Value, dimension: Value) -> Answer<'_> {
        self.reply(
            "store.createCollection",
            vec![collection, schema, dimension],
        )
    }

    fn vector_add(&self, collection: Value, document: Value) -> Answer<'_> {
        self.reply("store.vectorAdd", vec![collection, document])
    }

    fn delete(&self, key: Value) -> Answer<'_> {
        self.reply("store.delete", vec![key])
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Answer<'_> {
        self.reply("store.setUntil", vec![key, value, expires_ms.into()])
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Answer<'_> {
        self.reply("store.list", vec![prefix, cursor, limit])
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Answer<'_> {
        let mut args = vec![key, expected, value];
        args.extend(expires_ms.map(Value::Number));
        self.reply("store.compareAndSet", args)
    }

    fn vector_upsert(&self, collection: Value, document: Value) -> Answer<'_> {
        self.reply("store.vectorUpsert", vec![collection, document])
    }

    fn vector_delete(&self, collection: Value, id: Value) -> Answer<'_> {
        self.reply("store.vectorDelete", vec![collection, id])
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::from(String::from_utf8_lossy(bytes).into_owned())
}

fn bytes(value: Option<&Value>) -> Vec<u8> {
    let text = value.and_then(Value::as_text);
    text.map_or_else(Vec::new, |text| text.as_bytes().to_vec())
}

/// A request in the notation of vectors.
fn request_value(request: &ShellRequest) -> Value {
    let texts = |all: &[String]| Value::Array(all.iter().map(|t| t.as_str().into()).collect());
    let mut map = Map::new();
    map.insert(
        "command",
        match &request.command {
            ShellCommand::Script(script) => script.as_str().into(),
            ShellCommand::Argv(argv) => texts(argv),
        },
    );
    if let Some(cwd) = &request.cwd {
        map.insert("cwd", cwd.as_str());
    }
    if !request.env.is_empty() {
        let pairs = request
            .env
            .iter()
            .map(|(k, v)| (k.as_str(), Value::from(v.as_str())));
        map.insert("env", Value::Object(pairs.collect()));
    }
    if !request.stdin.is_empty() {
        map.insert("stdin", text(&request.stdin));
    }
    if let Some(timeout) = request.timeout {
        map.insert("timeoutMs", timeout.as_nanos() as f64 / 1e6);
    }
    map.insert("outputLimit", request.output_limit as f64);
    Value::Object(map)
}

impl Scripted {
    fn shell_reply<T>(
        &self,
        method: &'static str,
        args: Vec<Value>,
        read: impl FnOnce(Value) -> T + Send + 'static,
    ) -> ShellReply<'_, T> {
        let answer = self.reply(method, args);
        Box::pin(async move {
            let failed = |e: CapabilityError| ShellError::new(ShellErrorKind::Failed, e.message);
            answer.await.map(read).map_err(failed)
        })
    }
}

impl Shell for Scripted {
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput> {
        self.shell_reply("shell.exec", vec![request_value(&request)], |value| {
            let number = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            ShellOutput {
                stdout: bytes(value.get("stdout")),
                stderr: bytes(value.get("stderr")),
                exit_code: number("exitCode") as u8,
                elapsed: Duration::from_secs_f64(number("elapsedMs") / 1000.0),
                ..ShellOutput::default()
            }
        })
    }

    fn write_file(&self, path: String, content: Vec<u8>, mode: u32) -> ShellReply<'_, ()> {
        let args = vec![path.into(), text(&content), f64::from(mode).into()];
        self.shell_reply("shell.writeFile", args, drop)
    }

    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>> {
        let args = vec![path.into(), (limit as f64).into()];
        self.shell_reply("shell.readFile", args, |value| bytes(Some(&value)))
    }
}

pub(super) fn capabilities(script: &SharedScript) -> Capabilities {
    let has = |name: &str| {
        let script = script.lock().unwrap_or_else(|e| e.into_inner());
        script.provides(name) || script.provides_any(name)
    };
    let scripted = Arc::new(Scripted(script.clone()));
    let mut granted = Capabilities::none();
    if has("fetch") {
        granted.fetch = Some(scripted.clone());
    }
    if has("store") {
        granted.store = Some(scripted.clone());
    }
    if has("llm.predict") {
        granted.llm = Some(scripted.clone());
    }
    if has("llmBattery.predict") {
        granted.llm_battery = Some(scripted.clone());
    }
    if has("vector.embed") {
        granted.embedder = Some(scripted.clone());
    }
    if has("agent.run") {
        granted.agent = Some(scripted.clone());
    }
    if has("agentTurn") {
        granted.agent_turn = Some(scripted.clone());
    }
    if has("xml.parse") {
        granted.xml = Some(scripted.clone());
    }
    if has("shell") {
        granted.shell = Some(scripted.clone());
    }
    if has("ai.generate") {
        granted.ai = Some(Arc::new(super::models::ScriptedModel(script.clone())));
    }
    if has("code.transpile") {
        granted.transpiler = Some(scripted);
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
