//! Approval: questions outlast a restart, and only the asked person answers.

use crate::support::{
    Files, Script, builder, closed, host, join, kept, publish, sent_by, settle, text,
};
use a99_runtime::{Body, Host, Message, Uuid};
use a99_runtime_patterns::{APPROVAL_METHOD, Decision, Grant};
use serde_json::{Value, json};

/// Asks before it pays the amount of a message, and pays when it may.
fn payer() -> Script {
    Script::new(|turn, event| {
        Box::pin(async move {
            if let Some(answered) = turn.state_mut().approvals.answer(&event) {
                let note = match answered.is_granted {
                    true => format!("paid {}", answered.question.input),
                    false => "refused".to_owned(),
                };
                turn.state_mut().notes.push(note);
                return Ok(());
            }
            let words = text(&event).and_then(|words| words.strip_prefix("pay "));
            let Some(amount) = words.and_then(|amount| amount.parse::<u64>().ok()) else {
                return Ok(());
            };
            let client = turn.client();
            let mut approvals = turn.state().approvals.clone();
            let decision = approvals.ask(&client, "@ann", "pay", json!(amount)).await?;
            turn.state_mut().approvals = approvals;
            let note = match decision {
                Decision::Granted => format!("paid {amount}"),
                Decision::Denied => "refused".to_owned(),
                Decision::Asked(_) => "asked".to_owned(),
            };
            turn.state_mut().notes.push(note);
            Ok(())
        })
    })
}

async fn started(files: &Files, methods: Value) -> Host {
    let host = host(files, builder(), &payer()).await;
    join(&host, "ann", methods).await;
    host
}

async fn reply(host: &Host, handle: &str, to: Uuid, words: &str) {
    let message = Message {
        reply_to: Some(to),
        ..Message::text(words)
    };
    publish(host, handle, Body::Message(message)).await;
    assert!(host.settled(crate::support::LONG).await);
}

async fn waiting(host: &Host) -> Vec<Uuid> {
    let approvals = kept(host).await.approvals;
    approvals.waiting().iter().map(|one| one.id).collect()
}

#[tokio::test]
async fn a_reply_decides_after_a_restart() {
    let files = Files::new();
    let host = started(&files, json!([])).await;
    settle(&host, "eve", "pay 3").await;
    // The same question is not asked twice.
    settle(&host, "eve", "pay 3").await;
    let asked = sent_by(&host, "bot").await;
    let [question] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let Body::Message(message) = &question.body else {
        panic!("{question:?}");
    };
    assert_eq!(message.at, [crate::support::person("ann").id]);
    assert!(message.content.contains("\"pay\" with 3"), "{message:?}");
    assert_eq!(waiting(&host).await, [question.id]);
    closed(host).await;

    let host = started(&files, json!([])).await;
    reply(&host, "eve", question.id, "always").await;
    reply(&host, "ann", question.id, "let me think").await;
    reply(&host, "ann", Uuid::from_u128(5), "once").await;
    assert_eq!(waiting(&host).await, [question.id], "the question stays");
    reply(&host, "ann", question.id, "Once.").await;
    assert!(waiting(&host).await.is_empty());
    // An answer counts once.
    reply(&host, "ann", question.id, "always").await;
    settle(&host, "eve", "pay 4").await;
    let [second] = waiting(&host).await[..] else {
        panic!("it did not ask again");
    };
    reply(&host, "ann", second, "never").await;
    settle(&host, "eve", "pay 5").await;
    let kept = kept(&host).await;
    assert_eq!(kept.approvals.grant("pay"), Some(Grant::Never));
    let notes = ["asked", "asked", "paid 3", "asked", "refused", "refused"];
    assert_eq!(kept.notes, notes);
}

#[tokio::test]
async fn a_panel_answers_by_its_method() {
    let files = Files::new();
    let host = started(&files, json!([{"name": APPROVAL_METHOD}])).await;
    for (amount, by, content, is_error) in [
        (1, "ann", json!("once"), false),
        (2, "ann", json!({"answer": "always"}), true),
        (3, "ann", json!("whatever"), false),
        (4, "ann", json!({"answer": "always"}), false),
    ] {
        settle(&host, "eve", &format!("pay {amount}")).await;
        let call_id = *waiting(&host).await.first().expect("a question");
        let result = Body::MethodResult {
            call_id,
            content: Some(content),
            content_type: None,
            complete: true,
            is_error,
            progress: None,
        };
        publish(&host, "eve", result.clone()).await;
        assert!(host.settled(crate::support::LONG).await);
        assert_eq!(waiting(&host).await, [call_id], "Eve cannot answer");
        publish(&host, by, result).await;
        assert!(host.settled(crate::support::LONG).await);
        assert!(waiting(&host).await.is_empty());
    }
    settle(&host, "eve", "pay 5").await;
    let calls = sent_by(&host, "bot").await;
    let args = calls.iter().filter_map(|event| match &event.body {
        Body::MethodCall { args, .. } => Some(args["input"].clone()),
        _ => None,
    });
    assert_eq!(args.collect::<Vec<_>>(), [1, 2, 3, 4]);
    let expected = [
        "asked", "paid 1", "asked", "refused", "asked", "refused", "asked", "paid 4", "paid 5",
    ];
    assert_eq!(kept(&host).await.notes, expected);
}

#[tokio::test]
async fn questions_that_cannot_be_asked_are_refused() {
    let files = Files::new();
    let script = Script::new(|turn, event| {
        Box::pin(async move {
            if text(&event).is_none() {
                return Ok(());
            }
            let client = turn.client();
            let mut approvals = turn.state().approvals.clone();
            let absent = approvals.ask(&client, "zoe", "pay", json!(1)).await;
            let long = json!("x".repeat(30_000));
            let long = approvals.ask(&client, "ann", "pay", long).await;
            for n in 0..100 {
                approvals.ask(&client, "ann", "pay", json!(n)).await?;
            }
            let many = approvals.ask(&client, "ann", "pay", json!(100)).await;
            let first = approvals.waiting()[0].id;
            let forgotten = approvals.forget(first).map(|one| one.input);
            approvals.set("pay", Some(Grant::Always));
            let granted = approvals.ask(&client, "zoe", "pay", json!(1)).await;
            let code = |asked: Result<Decision, a99_runtime::AgentError>| match asked {
                Ok(decision) => format!("{decision:?}"),
                Err(error) => error.code().to_owned(),
            };
            let notes = [absent, long, many, granted].map(code);
            turn.state_mut().notes.extend(notes);
            assert_eq!(forgotten, Some(json!(0)));
            Ok(())
        })
    });
    let host = host(&files, builder(), &script).await;
    join(&host, "ann", json!([])).await;
    settle(&host, "ann", "go").await;
    let expected = [
        "provider-not-found",
        "agent.input_too_long",
        "agent.too_many_questions",
        "Granted",
    ];
    assert_eq!(kept(&host).await.notes, expected);
}
