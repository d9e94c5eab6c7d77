//! The oracle as an engine of vectors.

use super::script::SharedScript;
use super::{Engine, EngineError, EngineEvent, EngineOutcome, REFERENCE_ATOM_TIMEOUT_MS, RunSpec};
use crate::oracle::{self, Answer, CostOverride, CustomAtom, OracleHost, OracleOptions};
use a99_core::costs::CostModel;
use a99_core::error::ErrorCode;
use a99_core::value::Value;

/// The tree-walking interpreter that judges the others.
#[derive(Debug, Default)]
pub struct OracleEngine;

struct Scripted(SharedScript);

impl OracleHost for Scripted {
    fn provides(&self, method: &str) -> bool {
        self.0.lock().is_ok_and(|s| s.provides(method))
    }

    fn call(&mut self, method: &str, args: Vec<Value>) -> Answer {
        let reply = self
            .0
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .call(method, &args);
        Answer {
            result: reply.result,
            delay_ms: reply.delay_ms,
        }
    }

    fn atom(&mut self, op: &str, input: Value) -> Answer {
        let reply = self
            .0
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .atom(op, &input);
        Answer {
            result: reply.result,
            delay_ms: reply.delay_ms,
        }
    }
}

fn options(spec: &RunSpec) -> OracleOptions {
    let limit = REFERENCE_ATOM_TIMEOUT_MS as f64;
    let atom = |a: &super::HostAtom| CustomAtom {
        op: a.op.clone(),
        cost: a.cost,
        timeout_ms: a.timeout_ms,
    };
    OracleOptions {
        fuel: spec.fuel,
        timeout_ms: spec.timeout_ms,
        timeout_from_fuel: true,
        timeout_overrides: spec
            .limited_atoms
            .iter()
            .map(|op| (op.clone(), limit))
            .collect(),
        cost_overrides: spec
            .cost_overrides
            .iter()
            .map(|(op, price)| (op.clone(), CostOverride::Number(*price)))
            .collect(),
        quotas: spec.quotas.iter().cloned().collect(),
        exact_equality: spec.exact_equality,
        context: spec.context.clone(),
        readable_context: spec.readable_context.clone(),
        trace: spec.trace,
        cost_model: if spec.metered {
            CostModel::Metered
        } else {
            CostModel::Flat
        },
        aborted: spec.aborted,
        abort_after_ms: spec.abort_after_ms,
        custom: spec.atoms.iter().map(atom).collect(),
        ..OracleOptions::default()
    }
}

impl Engine for OracleEngine {
    fn name(&self) -> &str {
        "oracle"
    }

    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        let mut host = Scripted(spec.script.clone());
        match oracle::run(&spec.program, &spec.args, &options(&spec), &mut host) {
            Err(rejected) => EngineOutcome::Rejected {
                message: rejected.message,
            },
            Ok(outcome) if outcome.not_judged.is_some() => EngineOutcome::NotJudged,
            Ok(outcome) => EngineOutcome::Ran {
                result: outcome.result,
                error: outcome.error.map(|e| EngineError {
                    aborted: e.code == ErrorCode::Aborted,
                    message: e.message,
                    op: e.op,
                }),
                fuel_used: outcome.fuel_used,
                trace: outcome
                    .trace
                    .map(|events| events.into_iter().map(event).collect()),
            },
        }
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        oracle::strict::parse(text)
    }
}

fn event(event: oracle::TraceEvent) -> EngineEvent {
    EngineEvent {
        op: event.op.into(),
        input: event.input,
        state_diff: event.state_diff,
        result: event.result,
        error: event.error,
        fuel_before: event.fuel_before,
        fuel_after: event.fuel_after,
    }
}
