//! An engine in another process, for bindings to other languages: the binding's own loop runs
//! the programs, and this process answers as the host's functions.
//!
//! Each side writes lines of JSON; values are in the notation of vectors. This side sends
//! `{"run": ...}` or `{"condition": text}`. The other side sends `{"call": id, "method", "args"}`
//! for capabilities and `{"call": id, "atom", "input"}` for host atoms, at most one for each id,
//! and gets `{"answer": id, "result" or "error", "delayMs"}`. Its last line of a run is
//! `{"done": {"result", "error", "fuelUsed", "trace"}}`, `{"rejected": message}`, or
//! `{"skipped": true}` for what the language has no form of; of a condition `{"expr": node}` or
//! `{"error": message}`.

use super::deviations::encode;
use super::read::{decode, parse};
use super::vm_engine::{FUEL_TIMEOUT, capability_names};
use super::{Engine, EngineError, EngineEvent, EngineOutcome, REFERENCE_ATOM_TIMEOUT_MS, RunSpec};
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use agent99::all_atoms;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// A process that runs programs.
#[derive(Debug)]
pub struct ProcessEngine(Mutex<Process>);

#[derive(Debug)]
struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl ProcessEngine {
    /// Starts a command, whose words are separated by spaces.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: &str) -> Result<ProcessEngine, String> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or("no command")?;
        let child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("{program}: {error}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        match (to, from) {
            (Some(to), Some(from)) => Ok(ProcessEngine(Mutex::new(Process {
                child,
                to,
                from: BufReader::new(from),
            }))),
            _ => Err(format!("{program} has no standard streams")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = message.to_json_string();
        let sent = writeln!(self.to, "{line}").and_then(|()| self.to.flush());
        sent.map_err(|error| format!("the process does not read: {error}"))
    }

    fn receive(&mut self) -> Result<Value, String> {
        let mut line = Vec::new();
        let read = self.from.read_until(b'\n', &mut line);
        match read.map_err(|error| error.to_string())? {
            0 => Err("the process has ended".to_owned()),
            _ => parse(&line),
        }
    }

    fn run(&mut self, spec: &RunSpec) -> Result<EngineOutcome, String> {
        self.send(&object([("run", request(spec))]))?;
        loop {
            let message = self.receive()?;
            if let Some(id) = message.get("call") {
                self.answer(id, &message, spec)?;
            } else if let Some(done) = message.get("done") {
                return outcome(done);
            } else if message.get("skipped").is_some() {
                return Ok(EngineOutcome::NotJudged);
            } else if let Some(why) = message.get("rejected") {
                let message = why.as_text().map_or("".into(), Text::to_string_lossy);
                return Ok(EngineOutcome::Rejected {
                    message: message.into_owned(),
                });
            } else {
                return Err(format!("unknown message {message}"));
            }
        }
    }

    fn answer(&mut self, id: &Value, call: &Value, spec: &RunSpec) -> Result<(), String> {
        let text = |name| call.get(name).and_then(Value::as_str);
        let reply = {
            let mut script = spec.script.lock().unwrap_or_else(|e| e.into_inner());
            match (text("method"), text("atom")) {
                (Some(method), _) => {
                    let args = call.get("args").map(decode);
                    let args = args.as_ref().and_then(Value::as_array);
                    script.call(method, args.unwrap_or_default())
                }
                (None, Some(op)) => {
                    let input = call.get("input").map_or(Value::Undefined, decode);
                    script.atom(op, &input)
                }
                _ => return Err(format!("unknown call {call}")),
            }
        };
        let result = match reply.result {
            Ok(value) => ("result", encode(&value)),
            Err(message) => ("error", Value::String(message)),
        };
        let delay = ("delayMs", reply.delay_ms.into());
        self.send(&object([("answer", id.clone()), result, delay]))
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name, value);
    }
    Value::Object(map)
}

/// What the other side needs for a run.
fn request(spec: &RunSpec) -> Value {
    let known = all_atoms();
    let is_known =
        |op: &String| known.get(op).is_some() || spec.atoms.iter().any(|atom| atom.op == *op);
    let optional = |n: Option<f64>| n.map_or(Value::Null, Value::Number);
    let numbers = |all: Vec<(&String, f64)>| {
        let all = all.into_iter().filter(|(op, _)| is_known(op));
        Value::Object(
            all.map(|(op, n)| (op.as_str(), encode(&n.into())))
                .collect(),
        )
    };
    let limit = REFERENCE_ATOM_TIMEOUT_MS as f64;
    let quotas = spec.quotas.iter().map(|(op, n)| (op, *n as f64));
    let prices = spec.cost_overrides.iter().map(|(op, n)| (op, *n));
    let atoms = spec.atoms.iter().map(|atom| {
        object([
            ("op", atom.op.as_str().into()),
            ("cost", atom.cost.into()),
            ("timeoutMs", atom.timeout_ms.into()),
        ])
    });
    let texts = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::from).collect());
    object([
        ("program", spec.program.to_value(spec.program.root())),
        ("args", encode(&spec.args)),
        ("fuel", spec.fuel.to_f64().into()),
        ("timeoutMs", optional(spec.timeout_ms)),
        (
            "timeouts",
            numbers(spec.limited_atoms.iter().map(|op| (op, limit)).collect()),
        ),
        ("costs", numbers(prices.collect())),
        ("quotas", numbers(quotas.collect())),
        ("exactEquality", spec.exact_equality.into()),
        ("context", encode(&spec.context)),
        ("readableContext", texts(spec.readable_context.clone())),
        ("trace", spec.trace.into()),
        ("aborted", spec.aborted.into()),
        ("abortAfterMs", optional(spec.abort_after_ms)),
        ("metered", spec.metered.into()),
        ("atoms", Value::Array(atoms.collect())),
        ("capabilities", texts(capability_names(&spec.script))),
    ])
}

/// The outcome that the other side reports.
fn outcome(done: &Value) -> Result<EngineOutcome, String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_text).cloned();
    let fuel = |value: &Value, name: &str| {
        let units = value.get(name).and_then(Value::as_f64);
        let fuel = units.and_then(|units| Fuel::from_decimal(units.max(0.0)).ok());
        fuel.ok_or_else(|| format!("no fuel in {value}"))
    };
    let decoded = |value: &Value, name: &str| value.get(name).map_or(Value::Undefined, decode);
    let mut result = decoded(done, "result");
    let error = done.get("error").filter(|error| !error.is_nullish());
    let is_late = |code: &Text| *code == *ErrorCode::RunTimeout.as_str();
    let error = error.map(|error| EngineError {
        message: match text(error, "code").is_some_and(|code| is_late(&code)) {
            true => FUEL_TIMEOUT.into(),
            false => text(error, "message").unwrap_or_default(),
        },
        op: text(error, "op").unwrap_or_default(),
        aborted: text(error, "code").is_some_and(|code| code == *"run.aborted"),
    });
    if let (Value::Object(map), Some(error)) = (&mut result, &error)
        && map.get("$error").is_some()
    {
        map.insert("message", error.message.clone());
    }
    let event = |event: &Value| -> Result<EngineEvent, String> {
        Ok(EngineEvent {
            op: text(event, "op").unwrap_or_default(),
            input: decoded(event, "input"),
            state_diff: decoded(event, "stateDiff"),
            result: decoded(event, "result"),
            error: text(event, "error"),
            fuel_before: fuel(event, "fuelBefore")?,
            fuel_after: fuel(event, "fuelAfter")?,
        })
    };
    let trace = done.get("trace").and_then(Value::as_array);
    let trace = trace.map(|events| events.iter().map(event).collect::<Result<Vec<_>, _>>());
    Ok(EngineOutcome::Ran {
        result,
        error,
        fuel_used: fuel(done, "fuelUsed")?,
        trace: trace.transpose()?,
    })
}

impl Engine for ProcessEngine {
    fn name(&self) -> &str {
        "process"
    }

    /// A process that fails is an outcome that no vector expects.
    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        let mut process = self.0.lock().unwrap_or_else(|e| e.into_inner());
        process.run(&spec).unwrap_or_else(|why| EngineOutcome::Ran {
            result: Value::Undefined,
            error: Some(EngineError {
                message: why.into(),
                op: "process".into(),
                aborted: false,
            }),
            fuel_used: Fuel::MAX,
            trace: None,
        })
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        let mut process = self.0.lock().unwrap_or_else(|e| e.into_inner());
        process.send(&object([("condition", text.into())]))?;
        let reply = process.receive()?;
        match reply.get("expr") {
            Some(node) => Ok(decode(node)),
            None => Err(match reply.get("error").and_then(Value::as_text) {
                Some(message) => message.to_string_lossy().into_owned(),
                None => format!("{reply}"),
            }),
        }
    }
}
