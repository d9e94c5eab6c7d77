//! Calls of agents' methods by callers that are not agents.

use super::Host;
use super::channels::of;
use crate::bus::{CallOptions, MethodCallHandle};
use crate::error::{AgentError, codes};
use a99_runtime_engine::{AgentKey, Body, Sender};
use serde_json::Value;
use std::time::Duration;

impl Host {
    /// Calls a method of an agent of this host for a caller that is not an agent, such as a
    /// person. The call is durable when this returns. The handle waits for the answer; the
    /// timeout is the given one, then the method's, then one minute.
    ///
    /// # Errors
    /// `agent.not_registered`; `method-not-found` with the existing methods; errors of the
    /// store.
    pub async fn call_method(
        &self,
        caller: Sender,
        key: &AgentKey,
        method: &str,
        args: Value,
        timeout: Option<Duration>,
    ) -> Result<MethodCallHandle, AgentError> {
        let channel = key.channel();
        let roster = self.roster(channel);
        let provider = roster.iter().find(|who| who.agent.as_ref() == Some(key));
        let provider = provider.ok_or_else(|| {
            let message = format!("{key} is on no channel of this host");
            AgentError::new(codes::NOT_REGISTERED, message)
        })?;
        let options = CallOptions {
            timeout,
            ..CallOptions::default()
        };
        self.call_of(channel, caller, provider, method, args, options)
            .await
    }

    /// Cancels a call that [`Host::call_method`] made for the same caller: a method that has
    /// not ended is aborted and answers with `cancelled`.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn cancel_call(
        &self,
        caller: Sender,
        call: MethodCallHandle,
    ) -> Result<(), AgentError> {
        let body = Body::MethodCancel {
            call_id: call.call_id,
        };
        let channel = call.results.channel().to_owned();
        self.publish(&channel, of(body, caller)).await.map(drop)
    }
}
