//! The turn of a long-lived agent: its state, settings and identity, messages, timers and tables.
//! The atoms call the host's `AgentTurn` and fail without it (security N01).
//!
//! The atoms pass on the program's inputs; the capability checks them. Their effects are part of
//! the turn and of no journal (D91).

use super::store::LookedCharge;
use crate::def::{Adjust, Input, Kind, all_need, host, opt, req, unlisted};
use crate::grants::{Answer, failed, inputs, present, reply, required, truthy};
use a99_capabilities::{AgentTurn, Done, TurnQuery};
use a99_core::costs::MICRO;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply};
use std::sync::Arc;

/// Price of a write to the turn's commit or a call to the agent's tables.
const CALL: i64 = 5 * MICRO;

/// Time limit of a call of a method, in milliseconds; the call itself waits a minute.
const CALL_MS: u64 = 600_000;

const ID: Input = req("id", Kind::Text, "Identity of the message.");
const CONTENT_TYPE: Input = opt(
    "contentType",
    Kind::Text,
    "Content type, such as `thinking`; by default text.",
);
const TIMER: Input = req(
    "name",
    Kind::Text,
    "Name of the timer, unique for the agent, of at most 128 bytes.",
);
const AGENT: Input = req("agent", Kind::Text, "Name of the agent.");
const HANDLE: Input = opt(
    "handle",
    Kind::Text,
    "Handle of the agent on the channel; by default its name.",
);
const SQL: Input = req("sql", Kind::Text, "An SQL statement.");
const PARAMS: Input = opt(
    "params",
    Kind::List,
    "Values for the parameters of the statement, in their order.",
);

pub(crate) fn atoms() -> Vec<AtomDef> {
    let mut all = Vec::from(own());
    all.extend(messages());
    all.extend(timers());
    all.extend(storage());
    all.extend(channel());
    unlisted(all_need(Capability::AgentTurn, all))
}

fn own() -> [AtomDef; 5] {
    [
        host(
            "agentState",
            "The state of the current agent, with the changes of this turn.",
            MICRO,
            &[],
            |call| Box::pin(async move { reply(turn(&call)?.state().await) }),
        )
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY)),
        host(
            "agentSetState",
            "Changes the state of the agent; the change is saved when the turn ends.",
            MICRO,
            &[
                req(
                    "state",
                    Kind::Record,
                    "Members to merge into the state, one by one, at every depth.",
                ),
                opt(
                    "replace",
                    Kind::Bool,
                    "Whether it replaces the whole state instead.",
                )
                .default("false"),
            ],
            set_state,
        ),
        host(
            "agentSettings",
            "The settings of the agent.",
            MICRO,
            &[],
            |call| Box::pin(async move { reply(turn(&call)?.settings().await) }),
        )
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::OBJECT)),
        host(
            "agentSetSettings",
            "Changes the settings of the agent; the change is saved when the turn ends.",
            MICRO,
            &[req(
                "settings",
                Kind::Record,
                "Members to merge into the settings, at every depth.",
            )],
            set_settings,
        ),
        host(
            "agentIdentity",
            "The agent's identity: {agent, channel, handle, id}.",
            MICRO,
            &[],
            |call| Box::pin(async move { reply(turn(&call)?.identity().await) }),
        )
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::OBJECT)),
    ]
}

fn messages() -> [AtomDef; 4] {
    [
        host(
            "agentSend",
            "Sends a message to the agent's channel when the turn ends. Returns its identity.",
            CALL,
            &[
                req("content", Kind::Text, "The text of the message."),
                opt("replyTo", Kind::Text, "Identity of the message to answer."),
                opt(
                    "at",
                    Kind::TextOrTexts,
                    "Handles or identities of the recipients; by default all.",
                ),
                CONTENT_TYPE,
                opt("metadata", Kind::Record, "Other data about the message."),
                opt(
                    "partial",
                    Kind::Bool,
                    "Whether more follows (`agentUpdate`), until it is completed.",
                )
                .default("false"),
            ],
            send,
        )
        .gives(Gives::always(JsonKinds::STRING)),
        host(
            "agentUpdate",
            "Adds to a message that the agent sent, or ends it.",
            CALL,
            &[
                ID,
                opt("content", Kind::Text, "Text that is appended."),
                CONTENT_TYPE,
                opt("complete", Kind::Bool, "Whether the message is complete.").default("false"),
            ],
            update,
        ),
        host(
            "agentFail",
            "Marks a message of the agent as failed.",
            CALL,
            &[
                ID,
                req("error", Kind::Text, "What went wrong, for people."),
                opt("code", Kind::Text, "A stable code, for programs."),
            ],
            fail,
        ),
        host(
            "agentPublish",
            "Publishes an event of the agent on its channel when the turn ends. Returns its \
             identity.",
            CALL,
            &[
                req("type", Kind::Text, "Type of the event."),
                opt("payload", Kind::Any, "Data of the event."),
                opt(
                    "persist",
                    Kind::Bool,
                    "Whether the channel's log keeps it; otherwise only present participants see \
                     it.",
                )
                .default("true"),
            ],
            publish,
        )
        .gives(Gives::always(JsonKinds::STRING)),
    ]
}

fn timers() -> [AtomDef; 2] {
    [
        host(
            "agentSetTimer",
            "Sets or replaces a timer of the agent, which is due once or repeatedly: one of `at`, \
             `after` and `cron` sets the time.",
            CALL,
            &[
                TIMER,
                opt(
                    "at",
                    Kind::Number,
                    "Time when it is due, in milliseconds since 1970.",
                ),
                opt("after", Kind::Number, "Milliseconds after which it is due."),
                opt(
                    "cron",
                    Kind::Text,
                    "Cron expression of the times at which it is due.",
                ),
                opt(
                    "zone",
                    Kind::Text,
                    "Time zone of the cron expression; by default UTC.",
                ),
                opt("payload", Kind::Any, "Data that the agent gets with it."),
            ],
            set_timer,
        ),
        host(
            "agentCancelTimer",
            "Removes a timer of the agent, if there is one of the name.",
            CALL,
            &[TIMER],
            cancel_timer,
        ),
    ]
}

fn storage() -> [AtomDef; 4] {
    [
        host(
            "agentStorageExec",
            "Runs SQL statements without parameters on the agent's tables.",
            CALL,
            &[req("sql", Kind::Text, "SQL statements.")],
            |call| ask(call, TurnQuery::Exec),
        ),
        host(
            "agentStorageRun",
            "Runs a statement that changes the agent's tables. Returns {changes, lastInsertRowId}.",
            CALL,
            &[SQL, PARAMS],
            |call| ask(call, TurnQuery::Run),
        )
        .gives(Gives::always(JsonKinds::OBJECT)),
        host(
            "agentStorageGet",
            "The first row of a query on the agent's tables, as an object.",
            CALL,
            &[SQL, PARAMS],
            |call| ask(call, TurnQuery::Get),
        )
        .effect(Effect::Read),
        host(
            "agentStorageQuery",
            "All rows of a query on the agent's tables, as objects.",
            CALL,
            &[SQL, PARAMS],
            |call| ask(call, TurnQuery::All),
        )
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ARRAY)),
    ]
}

fn channel() -> [AtomDef; 5] {
    [
        host(
            "agentRoster",
            "The participants of the agent's channel: {id, handle, name, type, methods, agent, \
             metadata}.",
            CALL,
            &[],
            |call| Box::pin(async move { reply(turn(&call)?.roster().await) }),
        )
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ARRAY)),
        host(
            "agentCallMethod",
            "Calls a method of a participant of the channel and waits for its answer.",
            CALL,
            &[
                req("to", Kind::Text, "Handle or identity of the participant."),
                req("method", Kind::Text, "Name of the method."),
                opt("args", Kind::Record, "Arguments of the method."),
                opt(
                    "timeoutMs",
                    Kind::Number,
                    "Milliseconds to wait for the answer; by default those of the method, or a \
                     minute.",
                ),
            ],
            call_method,
        )
        .timeout_ms(CALL_MS),
        host(
            "agentMethodResult",
            "Sends a part of the answer to a method call at once; the result of the turn is the \
             last part.",
            CALL,
            &[
                req(
                    "callId",
                    Kind::Text,
                    "Identity of the call (`event.callId`).",
                ),
                opt("content", Kind::Any, "The part."),
                opt(
                    "progress",
                    Kind::Number,
                    "Progress of the method, 0 to 100.",
                ),
            ],
            method_result,
        ),
        host(
            "agentInvite",
            "Invites an agent to the channel, or changes its configuration. Returns its identity.",
            CALL,
            &[
                AGENT,
                HANDLE,
                opt("config", Kind::Record, "Configuration of the agent."),
            ],
            invite,
        )
        .effect(Effect::Idempotent)
        .gives(Gives::always(JsonKinds::STRING)),
        host(
            "agentRemove",
            "Removes an agent from the channel. Returns whether it was there.",
            CALL,
            &[AGENT, HANDLE],
            remove,
        )
        .effect(Effect::Idempotent)
        .gives(Gives::always(JsonKinds::BOOLEAN)),
    ]
}

fn turn(call: &HostCall) -> Result<Arc<dyn AgentTurn>, AtomError> {
    required(call, |c| &c.agent_turn, "Capability 'agentTurn' missing")
}

async fn done(done: Done<'_>) -> Result<HostReply, AtomError> {
    done.await.map_err(failed)?;
    Ok(HostReply::from(Value::Undefined))
}

fn set_state(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [state, replace] = inputs(&mut call);
        done(turn(&call)?.set_state(state, truthy(&replace))).await
    })
}

fn set_settings(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [settings] = inputs(&mut call);
        done(turn(&call)?.set_settings(settings)).await
    })
}

fn send(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [content, reply_to, at, content_type, metadata, partial] = inputs(&mut call);
        let message = present([
            ("content", content),
            ("replyTo", reply_to),
            ("at", at),
            ("contentType", content_type),
            ("metadata", metadata),
            ("partial", partial),
        ]);
        reply(turn(&call)?.send(message).await)
    })
}

fn update(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [id, content, content_type, complete] = inputs(&mut call);
        let update = present([
            ("id", id),
            ("content", content),
            ("contentType", content_type),
            ("complete", complete),
        ]);
        done(turn(&call)?.update(update)).await
    })
}

fn fail(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [id, error, code] = inputs(&mut call);
        let failure = present([("id", id), ("error", error), ("code", code)]);
        done(turn(&call)?.fail(failure)).await
    })
}

fn publish(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [kind, payload, persist] = inputs(&mut call);
        let event = present([("type", kind), ("payload", payload), ("persist", persist)]);
        reply(turn(&call)?.publish(event).await)
    })
}

fn set_timer(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [name, at, after, cron, zone, payload] = inputs(&mut call);
        let timer = present([
            ("name", name),
            ("at", at),
            ("after", after),
            ("cron", cron),
            ("zone", zone),
            ("payload", payload),
        ]);
        done(turn(&call)?.set_timer(timer)).await
    })
}

fn cancel_timer(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [name] = inputs(&mut call);
        done(turn(&call)?.cancel_timer(name)).await
    })
}

fn call_method(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [to, method, args, timeout] = inputs(&mut call);
        let asked = present([
            ("to", to),
            ("method", method),
            ("args", args),
            ("timeoutMs", timeout),
        ]);
        reply(turn(&call)?.call_method(asked).await)
    })
}

fn method_result(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [call_id, content, progress] = inputs(&mut call);
        let part = present([
            ("callId", call_id),
            ("content", content),
            ("progress", progress),
        ]);
        done(turn(&call)?.method_result(part)).await
    })
}

fn invite(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [agent, handle, config] = inputs(&mut call);
        let guest = present([("agent", agent), ("handle", handle), ("config", config)]);
        reply(turn(&call)?.invite(guest).await)
    })
}

fn remove(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [agent, handle] = inputs(&mut call);
        let guest = present([("agent", agent), ("handle", handle)]);
        reply(turn(&call)?.remove(guest).await)
    })
}

fn ask(mut call: HostCall, how: TurnQuery) -> Answer {
    Box::pin(async move {
        let [sql, params] = inputs(&mut call);
        let turn = turn(&call)?;
        if !turn.has_storage() {
            return Err(AtomError::missing("Capability 'agentTurn.storage' missing"));
        }
        let paid = LookedCharge::start(&call);
        let answer = turn.storage_counted(how, sql, params, paid.scanned.clone());
        reply(answer.await)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, MemoryTurn, TurnChange};
    use std::sync::Arc;

    #[test]
    fn a_turn_by_capability() {
        let turn = Arc::new(MemoryTurn::new());
        let bench = Bench::with(Capabilities::none().with_agent_turn(turn.clone()));
        bench.call("agentSetState", r#"[{"n": 1}]"#).unwrap();
        bench.call("agentSetState", r#"[{"m": 2}]"#).unwrap();
        assert_eq!(bench.call("agentState", "[]").unwrap(), r#"{"n":1,"m":2}"#);
        let id = bench.call("agentSend", r#"["hello"]"#).unwrap();
        assert_eq!(id, r#""message-0""#);
        assert!(matches!(&turn.changes()[..], [TurnChange::Sent(..)]));
        let wrong = bench.call("agentSend", "[1]").unwrap_err();
        assert_eq!(wrong, "agentSend: content must be a text");
        let none = bench
            .call("agentStorageGet", r#"["SELECT 1"]"#)
            .unwrap_err();
        assert_eq!(none, "Capability 'agentTurn.storage' missing");
    }

    #[test]
    fn the_channel_of_a_turn() {
        let turn = MemoryTurn::new()
            .with_roster(serde_json::json!([{"handle": "b"}]).into())
            .with_methods(serde_json::json!({"add": 3}).into());
        let turn = Arc::new(turn);
        let bench = Bench::with(Capabilities::none().with_agent_turn(turn.clone()));
        let roster = bench.call("agentRoster", "[]").unwrap();
        assert_eq!(roster, r#"[{"handle":"b"}]"#);
        let call = |method: &str| bench.call("agentCallMethod", &format!(r#"["b", "{method}"]"#));
        assert_eq!(call("add").unwrap(), "3");
        assert_eq!(
            call("sing").unwrap_err(),
            "method-not-found: no such method"
        );
        let key = bench.call("agentInvite", r#"["helper", "h"]"#).unwrap();
        assert_eq!(key, r#""helper/channel/h""#);
        for was_there in ["true", "false"] {
            let removed = bench.call("agentRemove", r#"["helper", "h"]"#).unwrap();
            assert_eq!(removed, was_there);
        }
        let part = bench.call("agentMethodResult", r#"["c", "half", 50]"#);
        part.expect("sent");
        assert_eq!(turn.changes().len(), 5);
    }

    #[test]
    fn nothing_without_the_capability() {
        let error = Bench::new().call("agentState", "[]").unwrap_err();
        assert_eq!(error, "Capability 'agentTurn' missing");
    }
}
