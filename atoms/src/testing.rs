//! Test bench for this crate's unit tests.

use a99_capabilities::{Capabilities, Random, SystemRandom};
use a99_core::costs::{CostModel, MICRO};
use a99_core::fuel::Fuel;
use a99_core::value::Value;
use a99_vm::atom::{AtomBody, AtomError, CallParts, Cancelled, HostCall, HostReply, Locals, Scope};
use a99_vm::heap::{Heap, Val};
use a99_vm::json;
use a99_vm::native::{Cx, Fault, Host, Meter, StopReason};
use a99_vm::{EventSink, RunOptions};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

struct TestHost;

impl Host for TestHost {
    fn stop(&self) -> Option<StopReason> {
        None
    }

    fn now_ms(&self) -> f64 {
        1_000.0
    }

    fn random(&self, out: &mut [u8]) {
        SystemRandom.fill(out);
    }
}

/// A run with its grants, context and time.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) locals: Arc<Locals>,
    options: RunOptions,
    now_ms: f64,
    events: Option<EventSink>,
    fuel_left: Fuel,
}

impl Bench {
    /// A run without grants.
    pub(crate) fn new() -> Bench {
        Bench {
            locals: Arc::default(),
            options: RunOptions::new(),
            now_ms: 1_000.0,
            events: None,
            fuel_left: Fuel::from_micro(MICRO),
        }
    }

    /// A run with more fuel than the default of one unit.
    pub(crate) fn with_fuel(&self, units: i64) -> Bench {
        Bench {
            fuel_left: Fuel::from_micro(units * MICRO),
            ..self.clone()
        }
    }

    pub(crate) fn with(set: Capabilities) -> Bench {
        let mut bench = Bench::new();
        bench.options.grants = Some(Arc::new(set));
        bench
    }

    pub(crate) fn context(&self, json: &str) -> Bench {
        Bench {
            options: self.options.clone().context(value(json)),
            ..self.clone()
        }
    }

    pub(crate) fn at(&self, now_ms: f64) -> Bench {
        Bench {
            now_ms,
            ..self.clone()
        }
    }

    /// A run with an event sink.
    pub(crate) fn telling(&self, events: EventSink) -> Bench {
        Bench {
            events: Some(events),
            ..self.clone()
        }
    }

    /// Runs an asynchronous atom on inputs given as a JSON list.
    pub(crate) fn reply(&self, op: &str, args: &str) -> Result<HostReply, AtomError> {
        let atoms = crate::all_atoms();
        let AtomBody::Async(body) = atoms.get(op).expect("the atom exists").body else {
            panic!("{op} is not asynchronous")
        };
        let Value::Array(args) = value(args) else {
            panic!("inputs are a list")
        };
        let call = HostCall::from(CallParts {
            op: op.to_owned().into(),
            args,
            options: Arc::new(self.options.clone()),
            locals: self.locals.clone(),
            fuel_left: self.fuel_left,
            depth: 0,
            cancelled: Cancelled::default(),
            now_ms: self.now_ms,
            waited_ms: 0.0,
            deadline: None,
            id: Default::default(),
            events: self.events.clone(),
        });
        let mut future = pin!(body(call));
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(reply) = future.as_mut().poll(&mut cx) {
                return reply;
            }
        }
    }

    /// Like [`Bench::reply`], as JSON text or the error message.
    pub(crate) fn call(&self, op: &str, args: &str) -> Result<String, String> {
        match self.reply(op, args) {
            Ok(reply) if reply.value.0.is_undefined() => Ok("undefined".into()),
            Ok(reply) => Ok(reply.value.0.to_json_string()),
            Err(error) => Err(error.message.to_string()),
        }
    }

    /// Runs a native atom on inputs given as a JSON list.
    pub(crate) fn native(&self, op: &str, args: &str) -> Result<String, String> {
        self.native_priced(op, args).0
    }

    fn native_priced(&self, op: &str, args: &str) -> (Result<String, String>, i64) {
        /// More fuel than any test needs.
        const FUEL: i64 = 1_000_000_000_000;
        let atoms = crate::all_atoms();
        let def = atoms.get(op).expect("the atom exists");
        let AtomBody::Native(body) = def.body else {
            panic!("{op} is not native")
        };
        let mut heap = Heap::default();
        let mut setup = Meter::new(FUEL, CostModel::Flat);
        let list = json::parse(
            &mut Cx::new(&mut heap, &mut setup, &TestHost),
            args.as_bytes(),
        );
        let Ok(Val::Arr(list)) = list else {
            panic!("inputs are a list: {args}")
        };
        let mut vals = heap.items(list).to_vec();
        vals.resize(8, Val::Undefined);
        let mut scope = Scope {
            options: &self.options,
            locals: &self.locals,
        };
        let mut meter = Meter::new(FUEL, CostModel::Metered);
        let done = body(
            &mut Cx::new(&mut heap, &mut meter, &TestHost),
            &mut scope,
            &vals,
        );
        let paid = FUEL - meter.fuel();
        let shown = done.and_then(|val| {
            let mut cx = Cx::new(&mut heap, &mut setup, &TestHost);
            let text = json::stringify(&mut cx, val, json::Replacer::None, b"")?;
            Ok(text.map_or("undefined".into(), |t| {
                String::from_utf8_lossy(cx.bytes(t)).into()
            }))
        });
        (shown.map_err(message), paid)
    }
}

fn message(fault: Fault) -> String {
    match fault {
        Fault::Throw(thrown) => String::from_utf8_lossy(&thrown.message).into_owned(),
        other => panic!("not a catchable error: {other:?}"),
    }
}

fn value(json: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(json).expect("valid JSON"))
}

/// Runs a native atom and returns the result as JSON text.
pub(crate) fn run(op: &str, args: &str) -> String {
    Bench::new()
        .native(op, args)
        .unwrap_or_else(|text| panic!("{op} failed: {text}"))
}

/// Runs a native atom that fails and returns the message.
pub(crate) fn fails(op: &str, args: &str) -> String {
    Bench::new().native(op, args).expect_err("the atom fails")
}

/// The fuel that a native atom charges in the metered model, in micro-units.
pub(crate) fn fuel_for(op: &str, args: &str) -> i64 {
    Bench::new().native_priced(op, args).1
}

/// Runs a function with the view of a run.
pub(crate) fn with_cx<T>(work: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let mut heap = Heap::default();
    let mut meter = Meter::new(i64::MAX, CostModel::Metered);
    work(&mut Cx::new(&mut heap, &mut meter, &TestHost))
}

/// Native atoms charge what their signatures declare.
mod declared {
    use super::fuel_for;
    use a99_core::costs::{Formula, Sizes};
    use a99_core::sig::Params;
    use a99_vm::atom::AtomBody;

    /// Units or elements of the long inputs.
    const LONG: usize = 100_000;

    /// An input of a type and size as JSON text, and the sizes of reading it.
    fn input(schema: &serde_json::Value, n: usize) -> (String, Sizes) {
        let list = |item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(",");
        match schema["type"].as_str() {
            Some("array") => (
                format!("[{}]", list(&|i| format!("\"{i}\""))),
                Sizes::elements(n),
            ),
            Some("object") => (
                format!("{{{}}}", list(&|i| format!("\"{i}\":1"))),
                Sizes::elements(n),
            ),
            Some("number" | "integer") => (n.to_string(), Sizes::default()),
            Some("boolean") => ("true".to_owned(), Sizes::default()),
            _ => (format!("\"{}\"", "7".repeat(n)), Sizes::units(n)),
        }
    }

    /// Each input in turn is long, the others are short.
    #[test]
    fn every_native_atom_charges_what_it_declares() {
        let mut wrong = Vec::new();
        for atom in crate::all_atoms().iter() {
            let (AtomBody::Native(_), Params::Named(params)) = (&atom.body, &atom.sig.params)
            else {
                continue;
            };
            // These take only values that the loop made; `large_inputs_are_paid_and_end` covers
            // them.
            if atom.sig.name.starts_with("llmToolLoop:") {
                continue;
            }
            let schema: serde_json::Value = serde_json::from_str(&atom.sig.input_schema).unwrap();
            let inputs = |long: Option<usize>| {
                let required = |name: &str| {
                    let names = schema["required"].as_array();
                    names.is_some_and(|names| names.iter().any(|known| known == name))
                };
                let inputs = params.iter().enumerate().map(|(at, param)| {
                    let schema = &schema["properties"][param.name];
                    match long == Some(at) {
                        true => input(schema, LONG),
                        false if required(param.name) => input(schema, 1),
                        false => ("null".to_owned(), Sizes::default()),
                    }
                });
                inputs.collect::<Vec<_>>()
            };
            let paid = |inputs: &[(String, Sizes)]| {
                let texts: Vec<&str> = inputs.iter().map(|(text, _)| text.as_str()).collect();
                fuel_for(&atom.sig.name, &format!("[{}]", texts.join(",")))
            };
            let short = inputs(None);
            let base = paid(&short);
            let formula = atom.sig.metered;
            let grown = (0..params.len()).map(|at| {
                let long = inputs(Some(at));
                let due = formula.price(long[at].1) - formula.price(short[at].1);
                (paid(&long) - base, due)
            });
            let grown: Vec<(i64, i64)> = grown.collect();
            let right = match formula {
                Formula::Free => grown.iter().all(|(paid, _)| *paid == 0),
                _ if formula.reads() => grown.iter().any(|(paid, due)| paid >= due && *due > 0),
                _ => grown.iter().any(|(paid, _)| *paid > 0),
            };
            if !right {
                wrong.push((atom.sig.name.clone(), formula.code(), grown));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
