//! Calls of agents' methods by callers that are not agents.

use super::{Host, Publish};
use crate::bus::MethodCallHandle;
use crate::error::{AgentError, codes};
use crate::subscription::Subscription;
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
        let advertised = provider.check_method(method)?;
        let call_id = self.0.shared.fresh();
        let body = Body::MethodCall {
            call_id,
            method_name: method.to_owned(),
            provider_id: provider.id,
            args,
        };
        let publish = Publish {
            body,
            sender: caller,
            key: None,
            attachments: Vec::new(),
        };
        let seq = self.publish(channel, publish).await?.event.seq;
        let results = Subscription::new(self.0.shared.hub(), channel, seq, false).await?;
        let limits = [timeout, advertised];
        Ok(MethodCallHandle::new(
            call_id,
            provider.id,
            results,
            limits,
            None,
        ))
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
        let publish = Publish {
            body: Body::MethodCancel {
                call_id: call.call_id,
            },
            sender: caller,
            key: None,
            attachments: Vec::new(),
        };
        let channel = call.results.channel().to_owned();
        self.publish(&channel, publish).await.map(drop)
    }
}
