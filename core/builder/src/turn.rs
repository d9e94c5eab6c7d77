//! The turn of an agent that lives, which the `agentTurn` capability grants.

use crate::chain::{chain, options};

options! {
    /// What [`Builder::agent_send`] may be told.
    SendOptions {
        /// The identity of the message that it answers.
        reply_to "replyTo",
        /// Handles or identities of those whom it is for; everybody.
        at,
        /// What kind of content it is; text.
        content_type "contentType",
        /// An object of whatever else is said of it.
        metadata,
        /// Whether more of it follows; false.
        partial,
    }
}

options! {
    /// What [`Builder::agent_update`] may be told.
    UpdateOptions {
        /// Text that is appended.
        content,
        /// What kind of content it is from here on.
        content_type "contentType",
        /// Whether the message is whole now; false.
        complete,
    }
}

options! {
    /// What [`Builder::agent_publish`] may be told.
    PublishOptions {
        /// What the event says.
        payload,
        /// Whether it is kept in the channel's log; true.
        persist,
    }
}

options! {
    /// What [`Builder::agent_set_timer`] is told; one of `at`, `after` and `cron` is needed.
    TimerOptions {
        /// When it is due, in milliseconds since 1970.
        at,
        /// Milliseconds after which it is due.
        after,
        /// The cron expression of the times at which it is due.
        cron,
        /// The time zone of the cron expression; UTC.
        zone,
        /// What the agent gets with it.
        payload,
    }
}

chain! {
    /// State, settings and identity of the agent.
    impl Builder;

    /// `agentState`: the agent's state.
    agent_state = "agentState" ();

    /// `agentSetState`: lays an object over the state, or replaces the state.
    ///
    /// ```
    /// # use a99_builder::{Builder, Operand};
    /// let program = Builder::new().agent_set_state([("count", 1)], Operand::absent());
    /// # assert_eq!(program.steps()[0].get("op"), Some(&"agentSetState".into()));
    /// ```
    agent_set_state = "agentSetState" (state, replace);

    /// `agentSettings`: the agent's settings.
    agent_settings = "agentSettings" ();

    /// `agentSetSettings`: lays an object over the settings.
    agent_set_settings = "agentSetSettings" (settings);

    /// `agentIdentity`: who the agent is.
    agent_identity = "agentIdentity" ();
}

chain! {
    /// What the agent sends.
    impl Builder;

    /// `agentSend`: sends a message, and gives its identity.
    agent_send = "agentSend" (content) + SendOptions;

    /// `agentUpdate`: adds to a message, or ends it.
    agent_update = "agentUpdate" (id) + UpdateOptions;

    /// `agentFail`: says that a message failed.
    agent_fail = "agentFail" (id, error, code);

    /// `agentPublish`: publishes an event of the agent's own, and gives its identity.
    agent_publish = "agentPublish" (kind "type") + PublishOptions;
}

chain! {
    /// The agent's timers and tables.
    impl Builder;

    /// `agentSetTimer`: sets or replaces a timer.
    agent_set_timer = "agentSetTimer" (name) + TimerOptions;

    /// `agentCancelTimer`: removes a timer, if there is one of the name.
    agent_cancel_timer = "agentCancelTimer" (name);

    /// `agentStorageExec`: runs statements of SQL.
    agent_storage_exec = "agentStorageExec" (sql);

    /// `agentStorageRun`: runs a statement that changes rows.
    agent_storage_run = "agentStorageRun" (sql, params);

    /// `agentStorageGet`: the first row of a query.
    agent_storage_get = "agentStorageGet" (sql, params);

    /// `agentStorageQuery`: all rows of a query.
    agent_storage_query = "agentStorageQuery" (sql, params);
}
