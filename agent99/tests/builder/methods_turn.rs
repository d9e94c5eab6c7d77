//! The methods of a turn, each with its output.

use crate::methods::{Row, new};
use agent99::builder::{
    CallMethodOptions, Operand, PublishOptions, SendOptions, TimerOptions, UpdateOptions,
};

pub(crate) fn rows() -> Vec<Row> {
    let absent = Operand::absent;
    vec![
        (new().agent_state(), r#"{"op":"agentState"}"#),
        (
            new().agent_set_state([("n", 1)], true),
            r#"{"op":"agentSetState","state":{"n":1},"replace":true}"#,
        ),
        (new().agent_settings(), r#"{"op":"agentSettings"}"#),
        (
            new().agent_set_settings([("n", 1)]),
            r#"{"op":"agentSetSettings","settings":{"n":1}}"#,
        ),
        (new().agent_identity(), r#"{"op":"agentIdentity"}"#),
        (
            new().agent_send(
                "hello",
                SendOptions {
                    reply_to: "m".into(),
                    at: ["ada"].into(),
                    content_type: "thinking".into(),
                    metadata: [("k", 1)].into(),
                    partial: true.into(),
                },
            ),
            r#"{"op":"agentSend","content":"hello","replyTo":"m","at":["ada"],"contentType":"thinking","metadata":{"k":1},"partial":true}"#,
        ),
        (
            new().agent_update(
                "m",
                UpdateOptions {
                    content: "!".into(),
                    content_type: "action".into(),
                    complete: true.into(),
                },
            ),
            r#"{"op":"agentUpdate","id":"m","content":"!","contentType":"action","complete":true}"#,
        ),
        (
            new().agent_fail("m", "tired", "x.tired"),
            r#"{"op":"agentFail","id":"m","error":"tired","code":"x.tired"}"#,
        ),
        (
            new().agent_publish(
                "moved",
                PublishOptions {
                    payload: [1, 2].into(),
                    persist: false.into(),
                },
            ),
            r#"{"op":"agentPublish","type":"moved","payload":[1,2],"persist":false}"#,
        ),
        (
            new().agent_set_timer(
                "t",
                TimerOptions {
                    at: 1.into(),
                    after: 2.into(),
                    cron: "0 8 * * *".into(),
                    zone: "UTC".into(),
                    payload: "p".into(),
                },
            ),
            r#"{"op":"agentSetTimer","name":"t","at":1,"after":2,"cron":"0 8 * * *","zone":"UTC","payload":"p"}"#,
        ),
        (
            new().agent_cancel_timer("t"),
            r#"{"op":"agentCancelTimer","name":"t"}"#,
        ),
        (new().agent_roster(), r#"{"op":"agentRoster"}"#),
        (
            new().agent_call_method(
                "b",
                "add",
                CallMethodOptions {
                    args: [("n", 1)].into(),
                    timeout_ms: 5.into(),
                },
            ),
            r#"{"op":"agentCallMethod","to":"b","method":"add","args":{"n":1},"timeoutMs":5}"#,
        ),
        (
            new().agent_method_result("c", "half", 50),
            r#"{"op":"agentMethodResult","callId":"c","content":"half","progress":50}"#,
        ),
        (
            new().agent_invite("helper", "h", [("n", 1)]),
            r#"{"op":"agentInvite","agent":"helper","handle":"h","config":{"n":1}}"#,
        ),
        (
            new().agent_remove("helper", "h"),
            r#"{"op":"agentRemove","agent":"helper","handle":"h"}"#,
        ),
        (
            new().agent_storage_exec("DELETE FROM t"),
            r#"{"op":"agentStorageExec","sql":"DELETE FROM t"}"#,
        ),
        (
            new().agent_storage_run("DELETE FROM t WHERE a = ?", [1]),
            r#"{"op":"agentStorageRun","sql":"DELETE FROM t WHERE a = ?","params":[1]}"#,
        ),
        (
            new().agent_storage_get("SELECT 1", absent()),
            r#"{"op":"agentStorageGet","sql":"SELECT 1"}"#,
        ),
        (
            new().agent_storage_get("SELECT ?", [1]),
            r#"{"op":"agentStorageGet","sql":"SELECT ?","params":[1]}"#,
        ),
        (
            new().agent_storage_query("SELECT ?", [1]),
            r#"{"op":"agentStorageQuery","sql":"SELECT ?","params":[1]}"#,
        ),
    ]
}
