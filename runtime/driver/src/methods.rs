//! Methods: operations that other participants of the channel may call.

use crate::agent::Agent;
use crate::error::{AgentError, codes};
use crate::turn::Turn;
use a99_runtime_engine::{Body, BoxFuture, Sender, Uuid};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A call of a method, as its handler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodCall {
    /// The call's identity.
    pub call_id: Uuid,
    /// The caller.
    pub caller: Arc<Sender>,
    /// The arguments.
    pub args: Value,
}

type Execute<A> = Arc<
    dyn for<'t> Fn(
            &'t A,
            &'t mut Turn<'_, A>,
            MethodCall,
        ) -> BoxFuture<'t, Result<Value, AgentError>>
        + Send
        + Sync,
>;

/// A method: its description, schemas and handler.
pub struct Method<A: Agent> {
    pub(crate) description: String,
    pub(crate) parameters: Value,
    pub(crate) returns: Option<Value>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) execute: Execute<A>,
}

impl<A: Agent> Clone for Method<A> {
    fn clone(&self) -> Method<A> {
        Method {
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            returns: self.returns.clone(),
            timeout: self.timeout,
            execute: Arc::clone(&self.execute),
        }
    }
}

impl<A: Agent> Method<A> {
    /// A method that accepts any object and runs `execute` as a separate turn.
    pub fn new<F>(description: impl Into<String>, execute: F) -> Method<A>
    where
        F: for<'t> Fn(
                &'t A,
                &'t mut Turn<'_, A>,
                MethodCall,
            ) -> BoxFuture<'t, Result<Value, AgentError>>
            + Send
            + Sync
            + 'static,
    {
        Method {
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            returns: None,
            timeout: None,
            execute: Arc::new(execute),
        }
    }

    /// The JSON Schema of the arguments. Arguments that do not match are refused before the
    /// method runs.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Method<A> {
        self.parameters = schema;
        self
    }

    /// The JSON Schema of the answer.
    #[must_use]
    pub fn returns(mut self, schema: Value) -> Method<A> {
        self.returns = Some(schema);
        self
    }

    /// The default timeout of callers.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Method<A> {
        self.timeout = Some(timeout);
        self
    }
}

/// The methods of an agent, by name.
pub struct Methods<A: Agent>(pub(crate) BTreeMap<String, Method<A>>);

impl<A: Agent> Clone for Methods<A> {
    fn clone(&self) -> Methods<A> {
        Methods(self.0.clone())
    }
}

impl<A: Agent> fmt::Debug for Methods<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<A: Agent> Methods<A> {
    /// No methods.
    #[must_use]
    pub fn none() -> Methods<A> {
        Methods(BTreeMap::new())
    }

    /// Adds a method.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, method: Method<A>) -> Methods<A> {
        self.0.insert(name.into(), method);
        self
    }

    /// The description that other participants see.
    pub(crate) fn advertised(&self) -> Value {
        let told = self.0.iter().map(|(name, method)| {
            let mut told = json!({
                "name": name,
                "description": method.description,
                "parameters": method.parameters,
            });
            if let Some(returns) = &method.returns {
                told["returns"] = returns.clone();
            }
            if let Some(timeout) = method.timeout {
                told["timeout"] = json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            }
            told
        });
        Value::Array(told.collect())
    }
}

/// The answer of a method: an error is an answer too.
pub(crate) fn method_result(call_id: Uuid, result: Result<Option<Value>, AgentError>) -> Body {
    let (content, is_error) = match result {
        Ok(content) => (content, false),
        Err(error) => {
            let code = match error.code() {
                codes::FAILED | codes::PANIC => codes::METHOD_FAILED,
                codes::TIMEOUT => codes::CALL_TIMEOUT,
                code => code,
            };
            let content = json!({"code": code, "error": error.to_string()});
            (Some(content), true)
        }
    };
    Body::MethodResult {
        call_id,
        content,
        content_type: None,
        complete: true,
        is_error,
        progress: None,
    }
}
