//! `a99 agent call`: calls a method of an agent, and prints its answer.

use super::client::Client;
use super::line;
use super::place::{PATIENCE, Place};
use super::wire::{Call, MethodCall};
use crate::args::CallArgs;
use crate::duration::milliseconds;
use crate::failure::{Exit, Failure};
use crate::output;
use serde_json::{Value as Json, json};

pub(crate) fn run(args: &CallArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let given = match &args.args {
        Some(given) => given.value("ARGS")?.to_json(),
        None => json!({}),
    };
    let call = MethodCall {
        agent: args.key.clone(),
        name: args.method.clone(),
        args: given,
        sender: args.sender.clone(),
        timeout_ms: args.timeout.map(milliseconds),
    };
    let within = args.timeout.unwrap_or(PATIENCE);
    let result = Client::needed(&place, within, "a method")?.ask(Call::Method(call), |_| {})?;
    let error = &result["error"];
    if args.place.json {
        let mut told = result.clone();
        told["ok"] = error.is_null().into();
        line(&told);
    } else if error.is_null() {
        let text = serde_json::to_string_pretty(&result["answer"]);
        output::out(&format!("{}\n", text.unwrap_or_default()));
    } else {
        let text = |name: &str| {
            let text = error[name].as_str().unwrap_or_default();
            a99_core::text::escape_for_terminal(text)
        };
        output::err(&format!("error[{}]: {}\n", text("code"), text("message")));
    }
    Ok(match error["code"].as_str() {
        None => Exit::Ok,
        Some(a99_runtime::codes::CALL_TIMEOUT) => Exit::Timeout,
        Some(_) => Exit::Error,
    })
}

/// The JSON of a method's answer or error.
pub(super) fn told(answer: Result<Json, a99_runtime::AgentError>) -> Json {
    match answer {
        Ok(answer) => json!({"answer": answer}),
        Err(error) => json!({"error": {"code": error.code(), "message": error.to_string()}}),
    }
}
