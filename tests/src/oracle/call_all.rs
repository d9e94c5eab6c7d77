//! `callAll` (language section 2.10). Each call is prepared up to its request to the host; then
//! the requests are made one after the other. Their simulated time is that of `limit`
//! concurrent calls.

use super::machine::{Machine, ScopeRef};
use super::meter::{self, Pays};
use super::options::TraceEvent;
use super::steps::{Node, is_told};
use super::value::{OVal, Obj, Res, fail, js, lossy, to_text};
use a99_core::fuel::Fuel;
use a99_core::value::{Map, Value};
use std::collections::VecDeque;

/// Atoms that `callAll` refuses: they run in the program itself.
const FORMS: [&str; 27] = [
    "seq",
    "if",
    "while",
    "forEach",
    "break",
    "continue",
    "try",
    "return",
    "scope",
    "callLocal",
    "Error",
    "map",
    "filter",
    "find",
    "reduce",
    "memoize",
    "cache",
    "varSet",
    "constSet",
    "varGet",
    "varsImport",
    "varsLet",
    "varsExport",
    "mathCalc",
    "runCode",
    "callAll",
    "llmToolLoop",
];

/// Error of an inline program as `agentRun`'s agent.
pub(super) const INLINE_AGENT: &str =
    "callAll: agentRun takes the id of an agent here; a program runs in a step of its own";

/// Stage of the calls of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Prepares a call up to its request to the host.
    Prepare,
    /// Makes a prepared call: until its request, nothing is paid or resolved again.
    Make,
    /// The request was made, or not needed.
    Made,
}

/// State of a `callAll`.
pub(super) struct Gathering {
    stage: Stage,
    /// Times at which the concurrent slots become free.
    slots: Vec<f64>,
    /// Resolved inputs of the current call.
    inputs: VecDeque<OVal>,
    /// Request of the current call.
    held: Option<Vec<Value>>,
    /// Fuel that each call may use.
    pub(super) share: Fuel,
}

impl Gathering {
    /// The slot that becomes free first.
    fn first(&self) -> usize {
        let mut first = 0;
        for (at, free) in self.slots.iter().enumerate() {
            if *free < self.slots[first] {
                first = at;
            }
        }
        first
    }
}

/// A prepared call.
enum Prepared<'v> {
    /// It needed no request, or failed.
    Answer(OVal),
    /// It has a request to the host.
    Held {
        op: String,
        node: Node<'v>,
        scope: ScopeRef,
        inputs: VecDeque<OVal>,
        held: Vec<Value>,
    },
}

/// `{value}` or `{error}`; an error that ends the run is passed on.
fn answer_of(done: Res<OVal>) -> Res<OVal> {
    let member = match done {
        Ok(value) if value.is_undef() => ("value", OVal::Null),
        Ok(value) => ("value", value),
        Err(e) if e.code.is_catchable() => ("error", OVal::Str(e.message)),
        Err(e) => return Err(e),
    };
    Ok(OVal::object(Obj::from([(js(member.0), member.1)])))
}

fn absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

impl Machine<'_> {
    pub(super) fn call_all(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let limit = match node.get("limit") {
            given if absent(given) => OVal::Num(8.0),
            given => self.resolve(given, scope)?,
        };
        let prepared = self.prepare_calls(node, scope)?;
        let limit = match limit {
            OVal::Num(n) if (1.0..=64.0).contains(&n) && n.fract() == 0.0 => n as usize,
            _ => return fail("callAll: limit must be a whole number from 1 to 64"),
        };
        Ok(OVal::array(self.make_all(prepared, limit)?))
    }

    /// Makes the prepared calls, `limit` at a time.
    fn make_all(&mut self, prepared: Vec<Prepared<'_>>, limit: usize) -> Res<Vec<OVal>> {
        let mut gathering = self.stage(Stage::Make, limit);
        let held = prepared
            .iter()
            .filter(|call| matches!(call, Prepared::Held { .. }));
        let held = i64::try_from(held.count()).unwrap_or(i64::MAX).max(1);
        gathering.share = Fuel::from_micro(self.fuel().micro().max(0) / held);
        self.gathering = Some(gathering);
        let made = prepared
            .into_iter()
            .map(|call| (self.make(call), meter::later()));
        // All requests are made, and the host's usage is paid, before the first answer is paid.
        let made: Vec<(Res<OVal>, Vec<i64>)> = made.collect();
        let answers = made.into_iter().map(|(answer, prices)| {
            prices.into_iter().try_for_each(meter::take)?;
            answer
        });
        let made = meter::take(0).and_then(|()| answers.collect());
        let slots = self.gathering.take().map_or_else(Vec::new, |g| g.slots);
        self.waited_ms = slots.into_iter().fold(self.waited_ms, f64::max);
        made
    }

    fn stage(&self, stage: Stage, limit: usize) -> Gathering {
        Gathering {
            stage,
            slots: vec![self.waited_ms; limit],
            inputs: VecDeque::new(),
            held: None,
            share: Fuel::ZERO,
        }
    }

    fn prepare_calls<'v>(&mut self, node: Node<'v>, scope: &ScopeRef) -> Res<Vec<Prepared<'v>>> {
        let mut prepared = Vec::new();
        match node.get("calls") {
            Value::Array(calls) => {
                for call in calls {
                    prepared.push(self.prepare(call, scope)?);
                }
            }
            calls if absent(calls) => {
                for item in self.items("callAll", node, scope)? {
                    let child = self.item_scope(node, item, None, scope)?;
                    let call = node.get("call");
                    if absent(call) {
                        return fail("callAll: call is missing");
                    }
                    prepared.push(self.prepare(call, &child)?);
                }
            }
            _ => return fail("callAll: calls is not an array"),
        }
        Ok(prepared)
    }

    /// Prepares a call.
    fn prepare<'v>(&mut self, call: &'v Value, scope: &ScopeRef) -> Res<Prepared<'v>> {
        let Some(map) = call.as_object() else {
            let text = "callAll: a call must be an object with an op";
            return answer_of(fail(text)).map(Prepared::Answer);
        };
        let op = match call.get("op") {
            None | Some(Value::Undefined) => "undefined".to_owned(),
            Some(other) => lossy(&super::expr::name_of(other)),
        };
        if !self.knows_atom(&op) {
            return answer_of(fail(format!("Unknown Atom: {op}"))).map(Prepared::Answer);
        }
        let custom = self.opts.custom.iter().any(|a| a.op == op);
        if !custom && FORMS.contains(&op.as_str()) {
            let text = format!("callAll: '{op}' is no call: it runs in the program itself");
            return answer_of(fail(text)).map(Prepared::Answer);
        }
        let node = Node::Step(map);
        let before = self.fuel();
        let mut thrown = None;
        let done = match self.pay(&op, node, scope) {
            Err(e) => {
                if is_told(&e) {
                    thrown = Some(to_text(&e.message));
                }
                self.traced = true;
                Err(e)
            }
            Ok(()) => {
                self.gathering = Some(self.stage(Stage::Prepare, 1));
                self.body(&op, node, scope).map(|(value, _)| value)
            }
        };
        let gathering = self.gathering.take();
        let held = gathering.and_then(|g| g.held.map(|held| (g.inputs, held)));
        if let (None, None, Err(e)) = (&held, &thrown, &done)
            && !self.traced
        {
            thrown = Some(to_text(&e.message));
            self.traced = true;
        }
        if self.opts.trace {
            self.trace.push(TraceEvent {
                op: op.clone(),
                input: node.input(),
                state_diff: Value::Object(Map::new()),
                result: Value::Undefined,
                error: thrown,
                fuel_before: before,
                fuel_after: self.fuel(),
            });
        }
        if let Some((inputs, held)) = held {
            return Ok(Prepared::Held {
                op,
                node,
                scope: scope.clone(),
                inputs,
                held,
            });
        }
        let answer = answer_of(done).map_err(|e| e.at(&op))?;
        self.traced = false;
        Ok(Prepared::Answer(answer))
    }

    fn make(&mut self, call: Prepared<'_>) -> Res<OVal> {
        let (op, node, scope) = match call {
            Prepared::Answer(answer) => return Ok(answer),
            Prepared::Held {
                op,
                node,
                scope,
                inputs,
                held,
            } => {
                if let Some(gathering) = &mut self.gathering {
                    gathering.stage = Stage::Make;
                    gathering.inputs = inputs;
                    gathering.held = Some(held);
                }
                (op, node, scope)
            }
        };
        meter::pays(Pays::Never);
        let done = self.body(&op, node, &scope).map(|(value, _)| value);
        meter::pays(Pays::Now);
        answer_of(done)
    }

    /// An input of the current step, resolved once even if its call is prepared first and made
    /// later.
    pub(super) fn input_once(&mut self, resolve: impl FnOnce(&mut Self) -> Res<OVal>) -> Res<OVal> {
        match &mut self.gathering {
            Some(g) if g.stage == Stage::Make => match g.inputs.pop_front() {
                Some(value) => Ok(value),
                None => fail("an input that was not prepared"),
            },
            Some(g) if g.stage == Stage::Prepare => {
                let value = resolve(self)?;
                if let Some(g) = &mut self.gathering {
                    g.inputs.push_back(value.clone());
                }
                Ok(value)
            }
            _ => resolve(self),
        }
    }

    /// Arguments for the host, or for the run's store; a call in preparation ends here.
    pub(super) fn hold(&mut self, args: Vec<Value>) -> Res<Vec<Value>> {
        let Some(gathering) = &mut self.gathering else {
            return Ok(args);
        };
        match gathering.stage {
            Stage::Prepare => {
                gathering.held = Some(args);
                fail("not made yet")
            }
            Stage::Make => {
                gathering.stage = Stage::Made;
                meter::pays(Pays::Later);
                Ok(gathering.held.take().unwrap_or_default())
            }
            Stage::Made => Ok(args),
        }
    }

    /// Starts to wait for the host, in the first free slot if several calls are in flight.
    /// Returns the earlier time.
    pub(super) fn begin_wait(&mut self) -> f64 {
        let before = self.waited_ms;
        if let Some(gathering) = &self.gathering {
            self.waited_ms = gathering.slots[gathering.first()];
        }
        before
    }

    /// Ends the wait.
    pub(super) fn end_wait(&mut self, before: f64) {
        if let Some(gathering) = &mut self.gathering {
            let first = gathering.first();
            gathering.slots[first] = self.waited_ms;
            self.waited_ms = before;
        }
    }
}
