//! `agentRun` by host capability (D41). The machine handles the inline forms, where `agentId` is a
//! token or a program.

use crate::def::{Adjust, Kind, form, req};
use crate::grants::{Answer, failed, inputs, required, truthy};
use a99_capabilities::{AgentCall, AgentOutcome, ProcedureMiss};
use a99_core::costs::MICRO;
use a99_core::sig::{Binding, Capability, Effect, Form};
use a99_core::value::Value;
use a99_vm::atom::{AtomBody, AtomDef, AtomError, HostCall, HostReply, ReplyValue};

/// A form with a body: the compiler binds its inputs, and the machine chooses between its inline
/// forms and this body.
pub(crate) fn atom() -> AtomDef {
    let def = form(
        Form::AgentRun,
        "agentRun",
        "Runs another agent and returns its result.",
        MICRO,
        &[
            req(
                "agentId",
                Kind::Text,
                "Id of an agent of the host, token `proc_...` of a stored program, or a program \
                 itself, an object with `op`.",
            )
            .told(Kind::TextOrRecord),
            req(
                "input",
                Kind::Any,
                "Arguments for the agent; the members of an object are values or references.",
            )
            .bound(Binding::Vars),
        ],
    )
    .needs(Capability::Agent)
    .effect(Effect::Unsafe);
    AtomDef {
        body: AtomBody::Async(run),
        ..def
    }
}

fn run(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [id, input] = inputs(&mut call);
        if let Some(token) = id.as_str().filter(|id| id.starts_with(TOKEN_PREFIX)) {
            return procedure(&call, token);
        }
        let agent = required(&call, |c| &c.agent, "Capability 'agent.run' missing")?;
        let about = AgentCall {
            fuel_left: call.fuel_left,
            depth: call.depth,
            context: call.options.context.clone(),
            id: call.id.clone(),
            account: call.account(),
            events: call.events.clone(),
        };
        let reply = agent.run(id, input, about).await.map_err(failed)?;
        // Charged for any outcome, even if the run ends before it takes the answer.
        call.locals.charge(reply.fuel_used.unwrap_or_default());
        let value = match reply.outcome {
            AgentOutcome::Any(value) => unwrap(value),
            AgentOutcome::Result(value) => Ok(value),
            AgentOutcome::Failed(error) => Err(failed(error)),
        };
        value.map(HostReply::from)
    })
}

/// Prefix of the tokens of stored procedures.
const TOKEN_PREFIX: &str = "proc_";

/// A stored program that the machine runs in place of the call.
fn procedure(call: &HostCall, token: &str) -> Result<HostReply, AtomError> {
    let table = required(call, |c| &c.procedures, "Capability 'procedures' missing")?;
    match table.get(token, call.now_ms) {
        Ok(program) => Ok(HostReply {
            value: ReplyValue(program),
            fuel_used: None,
            run_inline: true,
        }),
        Err(ProcedureMiss::Expired) => Err(AtomError::new(format!("Procedure expired: {token}"))),
        Err(_) => Err(AtomError::new(format!("Procedure not found: {token}"))),
    }
}

/// Unwraps the outcome of a run, an object with a numeric `fuelUsed`: its error becomes the atom's
/// error, otherwise its result is the value. Other values are returned unchanged.
fn unwrap(value: Value) -> Result<Value, AtomError> {
    if value.get("fuelUsed").and_then(Value::as_f64).is_none() {
        return Ok(value);
    }
    if let Some(error) = value.get("error").filter(|error| truthy(error)) {
        let message = error
            .get("message")
            .and_then(Value::as_text)
            .filter(|m| !m.is_empty());
        return Err(AtomError::new(
            message
                .cloned()
                .unwrap_or_else(|| "Sub-agent failed".into()),
        ));
    }
    Ok(match value {
        Value::Object(mut outcome) => outcome.remove("result").unwrap_or(Value::Undefined),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{AgentReply, Capabilities, CapabilityError, FnAgentRunner};

    fn echo() -> Bench {
        let runner = FnAgentRunner::new(|id, input, _| match id.as_str() {
            Some("x") => Ok(AgentReply::from(input)),
            _ => Err(CapabilityError::new("agent crashed")),
        });
        Bench::with(Capabilities::none().with_agent(runner))
    }

    #[test]
    fn values_and_errors_pass() {
        assert_eq!(
            echo().call("agentRun", r#"["x", ["a"]]"#).unwrap(),
            r#"["a"]"#
        );
        assert_eq!(
            echo().call("agentRun", r#"["y", {}]"#).unwrap_err(),
            "agent crashed"
        );
        let error = Bench::new().call("agentRun", r#"["x", {}]"#).unwrap_err();
        assert_eq!(error, "Capability 'agent.run' missing");
    }

    #[test]
    fn outcomes_are_unwrapped() {
        let run = |input: &str| echo().call("agentRun", &format!(r#"["x", {input}]"#));
        assert_eq!(
            run(r#"{"result":7,"error":null,"fuelUsed":3}"#).unwrap(),
            "7"
        );
        assert_eq!(run(r#"{"fuelUsed":3}"#).unwrap(), "undefined");
        assert_eq!(
            run(r#"{"error":{},"fuelUsed":3}"#).unwrap_err(),
            "Sub-agent failed"
        );
        assert_eq!(
            run(r#"{"error":{"message":"m"},"fuelUsed":3}"#).unwrap_err(),
            "m"
        );
        assert_eq!(
            run(r#"{"result":1,"fuelUsed":"3"}"#).unwrap(),
            r#"{"result":1,"fuelUsed":"3"}"#
        );
    }
}
