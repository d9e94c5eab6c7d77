//! Sub-agents, run by the host.

use crate::error::{BoxFuture, CapabilityError, ready};
use a99_core::call_id::CallId;
use a99_core::fuel::Fuel;
use a99_core::value::Value;
use a99_run::account::Account;
use a99_run::events::EventSink;
use std::sync::Arc;

/// Properties of the calling run that the host needs (decision D41).
#[derive(Clone, Debug)]
pub struct AgentCall {
    /// Fuel that the caller has left; the sub-agent's budget is at most this.
    pub fuel_left: Fuel,
    /// Nesting depth of the caller; the sub-agent runs at `depth + 1`.
    pub depth: u32,
    /// The caller's request context.
    pub context: Arc<Value>,
    /// Call id: parent of the sub-agent's calls if it is a separate run.
    pub id: CallId,
    /// The caller's account, of which the sub-agent's is a child (D83).
    pub account: Account,
    /// Sink of the caller's events, if there is a listener. The sub-agent's events go there
    /// too, with its name ([`EventSink::in_agent`]).
    pub events: Option<EventSink>,
}

/// The answer of a sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReply {
    /// Outcome of the run.
    pub outcome: AgentOutcome,
    /// Fuel to charge to the caller for any outcome; `None` charges nothing.
    pub fuel_used: Option<Fuel>,
}

/// Outcome of a sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentOutcome {
    /// A value that a runner got from elsewhere. An object with a numeric `fuelUsed` is a run
    /// result, as in the references: its `error` becomes the caller's, else its `result` is the
    /// value.
    Any(Value),
    /// The agent's result, unchanged.
    Result(Value),
    /// The agent failed.
    Failed(CapabilityError),
}

impl From<Value> for AgentReply {
    fn from(value: Value) -> AgentReply {
        AgentReply {
            outcome: AgentOutcome::Any(value),
            fuel_used: None,
        }
    }
}

impl AgentReply {
    /// Adds fuel to charge.
    #[must_use]
    pub fn with_fuel(self, used: Fuel) -> AgentReply {
        AgentReply {
            fuel_used: Some(used),
            ..self
        }
    }
}

/// Runs another agent. Dropping the future cancels the run.
pub trait AgentRunner: Send + Sync {
    /// Runs the agent named `id` on `input`.
    fn run(
        &self,
        id: Value,
        input: Value,
        call: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>>;
}

type AgentFn =
    dyn Fn(&Value, Value, &AgentCall) -> Result<AgentReply, CapabilityError> + Send + Sync;

/// Runs a closure for every agent.
pub struct FnAgentRunner(Box<AgentFn>);

impl FnAgentRunner {
    /// Calls `run(id, input, call)` for every agent.
    pub fn new(
        run: impl Fn(&Value, Value, &AgentCall) -> Result<AgentReply, CapabilityError>
        + Send
        + Sync
        + 'static,
    ) -> FnAgentRunner {
        FnAgentRunner(Box::new(run))
    }
}

impl std::fmt::Debug for FnAgentRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FnAgentRunner")
    }
}

impl AgentRunner for FnAgentRunner {
    fn run(
        &self,
        id: Value,
        input: Value,
        call: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>> {
        ready((self.0)(&id, input, &call))
    }
}

/// Conformance suite of [`AgentRunner`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::{AgentCall, AgentRunner};
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::call_id::CallId;
    use a99_core::fuel::Fuel;
    use a99_core::value::{Map, Value};
    use a99_run::account::Account;
    use std::sync::Arc;

    /// `known` is an agent that accepts an empty object, `unknown` names no agent.
    pub async fn conformance(runner: &dyn AgentRunner, known: &str, unknown: &str) -> SuiteResult {
        let call = || AgentCall {
            fuel_left: Fuel::from_micro(1_000_000_000),
            depth: 0,
            context: Arc::new(Value::Undefined),
            id: CallId::default(),
            account: Account::default(),
            events: None,
        };
        let input = || Value::Object(Map::new());
        let reply = expect(
            runner.run(known.into(), input(), call()).await,
            "a known agent runs",
        )?;
        let used = reply.fuel_used.unwrap_or(Fuel::ZERO);
        ensure(used >= Fuel::ZERO, "the fuel used is not negative")?;
        ensure(
            used <= call().fuel_left,
            "the fuel used is at most what the caller had",
        )?;
        refused(
            runner.run(unknown.into(), input(), call()).await,
            "an unknown agent is refused",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn closures_conform() {
        let runner = FnAgentRunner::new(|id, input, call| match id.as_str() {
            Some("echo") => Ok(AgentReply::from(input).with_fuel(Fuel::from_micro(3))),
            _ => Err(CapabilityError::new(format!(
                "no agent at depth {}",
                call.depth
            ))),
        });
        block_on(suite::conformance(&runner, "echo", "nobody")).unwrap();
    }
}
