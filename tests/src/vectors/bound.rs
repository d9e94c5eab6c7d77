//! Bound calls of vectors' programs: arguments by place.

use super::EngineOutcome;
use super::vm_engine::ran;
use a99_core::value::Value;
use agent99::capabilities::Capabilities;
use agent99::{Agent, Arg, Engine as Agents, Outcome, RunOptions};

/// Result of a bound call with the members of these arguments.
pub(super) async fn called(
    engine: &Agents,
    agent: &Agent,
    args: &Value,
    options: RunOptions,
    granted: Capabilities,
) -> EngineOutcome {
    let members: Vec<(String, &Value)> = match args.as_object() {
        Some(map) => map.iter().map(|(k, v)| (k.to_string(), v)).collect(),
        None => Vec::new(),
    };
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    let bound = match engine.bind(agent, &names, options, granted) {
        Ok(bound) => bound,
        Err(error) => {
            return EngineOutcome::Rejected {
                message: error.message.to_string(),
            };
        }
    };
    let mut caller = bound.caller();
    let values: Vec<Arg<'_>> = members.iter().map(|(_, value)| Arg::from(*value)).collect();
    let reply = caller.call_async(&values).await;
    let result = match reply {
        Ok(reply) => reply.to_value(),
        Err(error) => Err(error),
    };
    let fuel_used = caller.fuel_used();
    let (result, error) = match result {
        Ok(value) => (value, None),
        Err(error) => (error.to_value(), Some(error)),
    };
    ran(Outcome {
        result,
        error,
        fuel_used,
        trace: None,
        warnings: Vec::new(),
        logs: Box::default(),
        usage: None,
    })
}
