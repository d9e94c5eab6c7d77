//! Tools: methods of the roster and standard tools, called by a model.

use crate::support::{
    Files, LONG, Script, builder, host, invite, join, kept, participant, person, say, settle, text,
};
use a99_capabilities::ai::ToolUse;
use a99_core::value::Value as AiValue;
use a99_runtime::{AgentError, Body, EventBus, Method, Methods, Participant, Uuid};
use a99_runtime_patterns::{
    SET_TITLE, WRITE_TASKS, call_standard_tool, roster_to_tools, tool_result, with_standard_tools,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

fn till() -> Script {
    let pay = Method::new("Pays.", |_: &Script, _, call| {
        Box::pin(async move {
            match call.args["amount"].as_u64() {
                Some(13) => Err(AgentError::new("store.fenced", "no luck")),
                amount => Ok(json!({"paid": amount})),
            }
        })
    });
    let amount = json!({"type": "object", "properties": {"amount": {"type": "number"}},
        "required": ["amount"]});
    Script::offering(Methods::none().with("pay", pay.parameters(amount)))
}

/// Calls the tool that a message names, with an input in JSON, and notes its outcome.
fn caller() -> Script {
    Script::new(|turn, event| {
        Box::pin(async move {
            let words = text(&event).and_then(|words| words.split_once(' '));
            let Some((name, input)) = words else {
                return Ok(());
            };
            let input: Value = serde_json::from_str(input)?;
            let used = ToolUse {
                id: "u1".to_owned(),
                name: name.to_owned(),
                input: AiValue::from(input),
            };
            let client = turn.client();
            let tools = roster_to_tools(&client.roster(), client.client_id(), &[SET_TITLE]);
            let outcome = match call_standard_tool(&client, &used).await? {
                Some(outcome) => outcome,
                None => tools.call(&client, &used).await?,
            };
            let part = tool_result(&used, outcome);
            turn.state_mut().notes.push(format!("{part:?}"));
            Ok(())
        })
    })
}

#[tokio::test]
async fn models_call_methods_and_standard_tools() {
    let files = Files::new();
    let builder = builder().agent("till", |_| till());
    let host = host(&files, builder, &caller()).await;
    invite(&host, "till").await;
    join(&host, "ann", json!([])).await;
    for (call, outcome) in [
        (
            r#"till_pay {"amount": 3}"#,
            r#"content: "{\"paid\":3}", is_error: false"#,
        ),
        // A callee's code is not taken for an error of the caller's turn.
        (
            r#"till_pay {"amount": 13}"#,
            r#"content: "store.fenced: no luck", is_error: true"#,
        ),
        (r#"till_pay {}"#, r#"content: "validation-error: "#),
        (r#"till_steal {}"#, r#"content: "call.unknown_tool: "#),
        (r#"bot_pay {}"#, r#"content: "call.unknown_tool: "#),
        (
            r#"set_title {"title": "Till"}"#,
            r#"content: "{\"title\":\"Till\"}", is_error: false"#,
        ),
        (
            r#"set_title {"title": ""}"#,
            r#"content: "validation-error: "#,
        ),
        (
            r#"todo_write {"todos": [{"content": "Pay", "active_form": "Paying", "status": "pending"}]}"#,
            r#"content: "{\"todos\":1}", is_error: false"#,
        ),
    ] {
        settle(&host, "ann", call).await;
        let notes = kept(&host).await.notes;
        let last = notes.last().map(String::as_str).unwrap_or_default();
        assert!(last.contains(outcome), "{call}: {last}");
    }
    assert_eq!(kept(&host).await.notes.len(), 8);
    let log = crate::support::sent_by(&host, "bot").await;
    let published = log.iter().filter_map(|event| match &event.body {
        Body::Custom { name, payload } => Some((name.as_str(), payload.clone())),
        _ => None,
    });
    let todo = json!({"content": "Pay", "active_form": "Paying", "status": "pending"});
    let expected = [
        (a99_runtime::CHANNEL_CONFIG, json!({"title": "Till"})),
        (WRITE_TASKS, json!({"todos": [todo]})),
    ];
    assert_eq!(published.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_tool_does_not_reach_another_participant_of_the_same_handle() {
    let (files, gate) = (Files::new(), Arc::new(Semaphore::new(0)));
    let (began, opens) = (Arc::new(Semaphore::new(0)), Arc::clone(&gate));
    let begins = Arc::clone(&began);
    let script = Script::new(move |turn, event| {
        let (began, gate) = (Arc::clone(&begins), Arc::clone(&opens));
        Box::pin(async move {
            if text(&event).is_none() {
                return Ok(());
            }
            let client = turn.client();
            let tools = roster_to_tools(&client.roster(), client.client_id(), &[]);
            began.add_permits(1);
            gate.acquire().await.expect("open").forget();
            let used = ToolUse {
                id: "u1".to_owned(),
                name: "carl_ping".to_owned(),
                input: AiValue::Null,
            };
            let outcome = tools.call(&client, &used).await?;
            let note = outcome.map_or_else(|error| error.code().to_owned(), |v| v.to_string());
            turn.state_mut().notes.push(note);
            Ok(())
        })
    });
    let host = host(&files, builder(), &script).await;
    join(&host, "carl", json!([{"name": "ping"}])).await;
    say(&host, "ann", "go").await;
    began.acquire().await.expect("open").forget();
    assert_eq!(host.leave("c", person("carl").id).await, Ok(true));
    let other = Participant {
        id: Uuid::from_u128(1),
        ..participant("carl", json!([{"name": "ping"}]))
    };
    host.join("c", other).await.expect("joined");
    gate.add_permits(1);
    assert!(host.settled(LONG).await);
    assert_eq!(kept(&host).await.notes, ["provider-not-found"]);
}

#[tokio::test]
async fn standard_tools_are_methods_too() {
    let files = Files::new();
    let script = Script::offering(with_standard_tools(Methods::none()));
    let host = host(&files, builder(), &script).await;
    let call = async |method: &str, args: Value| {
        let (who, bot) = (person("ann"), crate::support::key("bot"));
        let call = host.call_method(who, &bot, method, args, None).await;
        call.expect("called").result().await
    };
    let titled = call(SET_TITLE, json!({"title": "Shop"})).await;
    assert_eq!(titled, Ok(json!({"title": "Shop"})));
    let refused = call(SET_TITLE, json!({"title": "x".repeat(201)})).await;
    assert_eq!(refused.expect_err("refused").code(), "validation-error");
    let todos = call(WRITE_TASKS, json!({"todos": []})).await;
    assert_eq!(todos, Ok(json!({"todos": 0})));
}
