//! Hooks of an activation: work that is not a turn of an event.

use super::turns::{changed, write};
use super::{Activation, Running};
use crate::error::{AgentError, codes};
use crate::kill;
use crate::runner::Work;
use crate::turn::Changes;
use a99_runtime_engine::{Trigger, TurnCommit};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Span;

impl Activation {
    /// Runs a hook that is not a turn of an event, and commits its changes.
    pub(super) async fn hook(&mut self, work: Work) -> Result<(), AgentError> {
        let trigger = Trigger::Once(self.shared.fresh());
        let client = self.client(trigger.clone(), 1, 1, None);
        let handler = self.handler(Some(work), client.clone());
        let limit = self.shared.options.hook_timeout;
        let output = tokio::time::timeout(limit, handler)
            .await
            .unwrap_or_else(|_| {
                let message = format!("the hook took longer than {limit:?}");
                Err(AgentError::new(codes::TIMEOUT, message))
            });
        let mut changes = client.0.end();
        if output.is_err() {
            client.0.abandon_tables();
        }
        let mut output = output?;
        output.change_settings(changes.settings.take());
        let mut commit = TurnCommit::new(self.fence.clone(), self.shared.now());
        (commit.outbox, commit.timers) = (changes.outbox, changes.timers);
        commit.state = changed(&output, &self.json, self.runner.version(), self.revision);
        commit.tables = client.0.tables_id();
        let changes_nothing = commit.outbox.is_empty()
            && commit.timers.is_empty()
            && commit.state.is_none()
            && commit.tables.is_none()
            && output.settings.is_none()
            && !client.0.journal.is_used();
        if changes_nothing {
            return Ok(());
        }
        commit.trigger = Some(trigger.clone());
        kill::point("hook.before");
        let settings = output.settings.as_ref();
        let began = (&self.json, self.revision);
        commit.kept = client.0.kept(began, &commit, changes.at_once);
        let receipt = write(&self.shared, commit.clone(), settings).await?;
        kill::point("hook.after");
        self.shared.hub().tell(&receipt.appended);
        let running = Running {
            trigger,
            attempt: 1,
            began: Instant::now(),
            client,
            span: Span::none(),
            base: Arc::clone(&self.json),
            revision: self.revision,
            cancel: None,
            output: Some(output),
            changes: Changes::default(),
            commit: Some(Box::new(commit)),
        };
        self.keep(running, &receipt);
        self.show();
        Ok(())
    }
}
