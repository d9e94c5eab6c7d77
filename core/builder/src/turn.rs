//! Atoms of a long-lived agent's turn, which the `agentTurn` capability grants.

use crate::chain::{chain, options};

options! {
    /// Optional inputs of [`Builder::agent_send`](crate::Builder::agent_send).
    SendOptions {
        /// Identity of the message that this one answers.
        reply_to "replyTo",
        /// Handles or identities of the recipients; all participants.
        at,
        /// Type of the content; text.
        content_type "contentType",
        /// An object of additional data.
        metadata,
        /// Whether more of the message follows; false.
        partial,
    }
}

options! {
    /// Optional inputs of [`Builder::agent_update`](crate::Builder::agent_update).
    UpdateOptions {
        /// Text to append.
        content,
        /// Type of the content from here on.
        content_type "contentType",
        /// Whether the message is complete; false.
        complete,
    }
}

options! {
    /// Optional inputs of [`Builder::agent_publish`](crate::Builder::agent_publish).
    PublishOptions {
        /// Payload of the event.
        payload,
        /// Whether to store the event in the channel's log; true.
        persist,
    }
}

options! {
    /// Inputs of [`Builder::agent_set_timer`](crate::Builder::agent_set_timer); one of `at`,
    /// `after` and `cron` is required.
    TimerOptions {
        /// Due time in milliseconds since 1970.
        at,
        /// Delay in milliseconds.
        after,
        /// Cron expression of the due times.
        cron,
        /// Time zone of the cron expression; UTC.
        zone,
        /// Payload that the agent receives with the timer.
        payload,
    }
}

chain! {
    /// State, settings and identity of the agent.
    impl Builder;

    /// `agentState`: the agent's state.
    agent_state = "agentState" ();

    /// `agentSetState`: merges an object into the state, or replaces the state.
    ///
    /// ```
    /// # use a99_builder::{Builder, Operand};
    /// let program = Builder::new().agent_set_state([("count", 1)], Operand::absent());
    /// # assert_eq!(program.steps()[0].get("op"), Some(&"agentSetState".into()));
    /// ```
    agent_set_state = "agentSetState" (state, replace);

    /// `agentSettings`: the agent's settings.
    agent_settings = "agentSettings" ();

    /// `agentSetSettings`: merges an object into the settings.
    agent_set_settings = "agentSetSettings" (settings);

    /// `agentIdentity`: the agent's identity.
    agent_identity = "agentIdentity" ();
}

chain! {
    /// Messages and events that the agent sends.
    impl Builder;

    /// `agentSend`: sends a message and gives its identity.
    agent_send = "agentSend" (content) + SendOptions;

    /// `agentUpdate`: appends to a message, or completes it.
    agent_update = "agentUpdate" (id) + UpdateOptions;

    /// `agentFail`: marks a message as failed.
    agent_fail = "agentFail" (id, error, code);

    /// `agentPublish`: publishes an event and gives its identity.
    agent_publish = "agentPublish" (kind "type") + PublishOptions;
}

options! {
    /// Optional inputs of [`Builder::agent_call_method`](crate::Builder::agent_call_method).
    CallMethodOptions {
        /// Arguments of the method, an object.
        args,
        /// Milliseconds to wait for the answer.
        timeout_ms "timeoutMs",
    }
}

chain! {
    /// The participants of the agent's channel.
    impl Builder;

    /// `agentRoster`: the participants of the channel.
    agent_roster = "agentRoster" ();

    /// `agentCallMethod`: calls a method of a participant and gives its answer.
    agent_call_method = "agentCallMethod" (to, method) + CallMethodOptions;

    /// `agentMethodResult`: sends a part of the answer to a method call.
    agent_method_result = "agentMethodResult" (call_id "callId", content, progress);

    /// `agentInvite`: invites an agent and gives its identity.
    agent_invite = "agentInvite" (agent, handle, config);

    /// `agentRemove`: removes an agent and gives whether it was there.
    agent_remove = "agentRemove" (agent, handle);
}

chain! {
    /// The agent's timers and tables.
    impl Builder;

    /// `agentSetTimer`: sets or replaces a timer.
    agent_set_timer = "agentSetTimer" (name) + TimerOptions;

    /// `agentCancelTimer`: removes the timer of this name, if any.
    agent_cancel_timer = "agentCancelTimer" (name);

    /// `agentStorageExec`: runs SQL statements.
    agent_storage_exec = "agentStorageExec" (sql);

    /// `agentStorageRun`: runs a statement that changes rows.
    agent_storage_run = "agentStorageRun" (sql, params);

    /// `agentStorageGet`: the first row of a query.
    agent_storage_get = "agentStorageGet" (sql, params);

    /// `agentStorageQuery`: all rows of a query.
    agent_storage_query = "agentStorageQuery" (sql, params);
}
