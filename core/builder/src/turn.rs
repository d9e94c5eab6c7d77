//! The turn of an agent that lives, which the `agentTurn` capability grants.

use super::{Builder, Operand};

/// What [`Builder::agent_send`] may be told.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// The identity of the message that it answers.
    pub reply_to: Operand,
    /// Handles or identities of those whom it is for; everybody.
    pub at: Operand,
    /// What kind of content it is; text.
    pub content_type: Operand,
    /// An object of whatever else is said of it.
    pub metadata: Operand,
    /// Whether more of it follows; false.
    pub partial: Operand,
}

/// What [`Builder::agent_update`] may be told.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Text that is appended.
    pub content: Operand,
    /// What kind of content it is from here on.
    pub content_type: Operand,
    /// Whether the message is whole now; false.
    pub complete: Operand,
}

/// What [`Builder::agent_publish`] may be told.
#[derive(Clone, Debug, Default)]
pub struct PublishOptions {
    /// What the event says.
    pub payload: Operand,
    /// Whether it is kept in the channel's log; true.
    pub persist: Operand,
}

/// What [`Builder::agent_set_timer`] is told; one of `at`, `after` and `cron` is needed.
#[derive(Clone, Debug, Default)]
pub struct TimerOptions {
    /// When it is due, in milliseconds since 1970.
    pub at: Operand,
    /// Milliseconds after which it is due.
    pub after: Operand,
    /// The cron expression of the times at which it is due.
    pub cron: Operand,
    /// The time zone of the cron expression; UTC.
    pub zone: Operand,
    /// What the agent gets with it.
    pub payload: Operand,
}

/// State, settings and identity of the agent.
impl Builder {
    /// `agentState`: the agent's state.
    pub fn agent_state(self) -> Self {
        self.atom("agentState", vec![])
    }

    /// `agentSetState`: lays an object over the state, or replaces the state.
    ///
    /// ```
    /// # use a99_builder::{Builder, Operand};
    /// let program = Builder::new().agent_set_state([("count", 1)], Operand::absent());
    /// # assert_eq!(program.steps()[0].get("op"), Some(&"agentSetState".into()));
    /// ```
    pub fn agent_set_state(self, state: impl Into<Operand>, replace: impl Into<Operand>) -> Self {
        let params = vec![("state", state.into()), ("replace", replace.into())];
        self.atom("agentSetState", params)
    }

    /// `agentSettings`: the agent's settings.
    pub fn agent_settings(self) -> Self {
        self.atom("agentSettings", vec![])
    }

    /// `agentSetSettings`: lays an object over the settings.
    pub fn agent_set_settings(self, settings: impl Into<Operand>) -> Self {
        self.atom("agentSetSettings", vec![("settings", settings.into())])
    }

    /// `agentIdentity`: who the agent is.
    pub fn agent_identity(self) -> Self {
        self.atom("agentIdentity", vec![])
    }
}

/// What the agent sends.
impl Builder {
    /// `agentSend`: sends a message, and gives its identity.
    pub fn agent_send(self, content: impl Into<Operand>, options: SendOptions) -> Self {
        let params = vec![
            ("content", content.into()),
            ("replyTo", options.reply_to),
            ("at", options.at),
            ("contentType", options.content_type),
            ("metadata", options.metadata),
            ("partial", options.partial),
        ];
        self.atom("agentSend", params)
    }

    /// `agentUpdate`: adds to a message, or ends it.
    pub fn agent_update(self, id: impl Into<Operand>, options: UpdateOptions) -> Self {
        let params = vec![
            ("id", id.into()),
            ("content", options.content),
            ("contentType", options.content_type),
            ("complete", options.complete),
        ];
        self.atom("agentUpdate", params)
    }

    /// `agentFail`: says that a message failed.
    pub fn agent_fail(
        self,
        id: impl Into<Operand>,
        error: impl Into<Operand>,
        code: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("id", id.into()),
            ("error", error.into()),
            ("code", code.into()),
        ];
        self.atom("agentFail", params)
    }

    /// `agentPublish`: publishes an event of the agent's own, and gives its identity.
    pub fn agent_publish(self, kind: impl Into<Operand>, options: PublishOptions) -> Self {
        let params = vec![
            ("type", kind.into()),
            ("payload", options.payload),
            ("persist", options.persist),
        ];
        self.atom("agentPublish", params)
    }
}

/// The agent's timers and tables.
impl Builder {
    /// `agentSetTimer`: sets or replaces a timer.
    pub fn agent_set_timer(self, name: impl Into<Operand>, options: TimerOptions) -> Self {
        let params = vec![
            ("name", name.into()),
            ("at", options.at),
            ("after", options.after),
            ("cron", options.cron),
            ("zone", options.zone),
            ("payload", options.payload),
        ];
        self.atom("agentSetTimer", params)
    }

    /// `agentCancelTimer`: removes a timer, if there is one of the name.
    pub fn agent_cancel_timer(self, name: impl Into<Operand>) -> Self {
        self.atom("agentCancelTimer", vec![("name", name.into())])
    }

    /// `agentStorageExec`: runs statements of SQL.
    pub fn agent_storage_exec(self, sql: impl Into<Operand>) -> Self {
        self.atom("agentStorageExec", vec![("sql", sql.into())])
    }

    /// `agentStorageRun`: runs a statement that changes rows.
    pub fn agent_storage_run(self, sql: impl Into<Operand>, params: impl Into<Operand>) -> Self {
        self.storage("agentStorageRun", sql.into(), params.into())
    }

    /// `agentStorageGet`: the first row of a query.
    pub fn agent_storage_get(self, sql: impl Into<Operand>, params: impl Into<Operand>) -> Self {
        self.storage("agentStorageGet", sql.into(), params.into())
    }

    /// `agentStorageQuery`: all rows of a query.
    pub fn agent_storage_query(self, sql: impl Into<Operand>, params: impl Into<Operand>) -> Self {
        self.storage("agentStorageQuery", sql.into(), params.into())
    }

    fn storage(self, op: &str, sql: Operand, params: Operand) -> Self {
        self.atom(op, vec![("sql", sql), ("params", params)])
    }
}
