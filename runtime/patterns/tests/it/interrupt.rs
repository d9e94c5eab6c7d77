//! Interrupts: calls of `pause` reach the agent that they are aimed at, and no other.

use crate::support::{
    Files, LONG, Script, builder, host, invite, key, lines, person, remote, say, sent_by, text,
};
use a99_runtime::{Body, Host, Methods, PauseStatus};
use a99_runtime_patterns::InterruptController;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// An agent that works on a message until `gate` opens.
fn working(gate: &Arc<Semaphore>, controller: &InterruptController) -> Script {
    let (gate, own) = (Arc::clone(gate), controller.clone());
    let script = Script::new(move |turn, event| {
        let (gate, own) = (Arc::clone(&gate), own.clone());
        Box::pin(async move {
            if text(&event).is_none() {
                return Ok(());
            }
            let client = turn.client();
            let work = async {
                gate.acquire().await.expect("open").forget();
                Ok(())
            };
            let said = match own.run(&client, event.id, work).await {
                Ok(()) => "done".to_owned(),
                Err(error) => format!("{}: {error}", error.code()),
            };
            turn.send(said).await.map(drop)
        })
    });
    Script {
        methods: controller.with_methods(Methods::none()),
        ..script
    }
}

/// A host with the agents `bot` and `other`.
async fn two(files: &Files, gate: &Arc<Semaphore>) -> (Host, InterruptController) {
    let controller = InterruptController::new();
    let other = working(gate, &InterruptController::new());
    let builder = builder().agent("other", move |_| other.clone());
    let host = host(files, builder, &working(gate, &controller)).await;
    invite(&host, "other").await;
    (host, controller)
}

async fn pause(host: &Host, name: &str) {
    let (key, args) = (key(name), json!({"reason": "lunch"}));
    let call = host.call_method(person("ann"), &key, "pause", args, None);
    let answer = call.await.expect("called").result().await;
    assert_eq!(answer, Ok(json!({"paused": true})));
}

/// What an agent sends that is paused while it works.
const INTERRUPTED: [&str; 3] = [
    "execution-pause",
    "text turn.paused: lunch",
    "method-result",
];

#[tokio::test]
async fn a_pause_interrupts_its_agent_and_is_announced() {
    let (files, gate) = (Files::new(), Arc::new(Semaphore::new(0)));
    let (host, controller) = two(&files, &gate).await;
    say(&host, "ann", "work").await;
    // The answer is a turn after the one that the call interrupts.
    pause(&host, "bot").await;
    assert!(controller.is_paused());
    let events = sent_by(&host, "bot").await;
    assert_eq!(lines(&events), INTERRUPTED);
    let mut log = host.subscribe("c", Some(0), false).await.expect("a log");
    let asked = loop {
        let event = log.next().await.expect("an event");
        if text(&event).is_some() {
            break event.id;
        }
    };
    let expected = Body::ExecutionPause {
        message_id: asked,
        status: PauseStatus::Paused,
        reason: Some("lunch".to_owned()),
    };
    assert_eq!(events[0].body, expected);
    assert!(events[0].seq.is_some(), "it is in the log");

    let bot = key("bot");
    let call = host.call_method(person("ann"), &bot, "resume", json!({}), None);
    call.await.expect("called").result().await.expect("resumed");
    assert!(!controller.is_paused());
}

#[tokio::test]
async fn a_pause_of_another_agent_does_nothing() {
    let (files, gate) = (Files::new(), Arc::new(Semaphore::new(0)));
    let (host, controller) = two(&files, &gate).await;
    say(&host, "ann", "work").await;
    pause(&host, "other").await;
    // The watch had the time to see the call.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!controller.is_paused());
    gate.add_permits(1);
    assert!(host.settled(LONG).await);
    assert_eq!(lines(&sent_by(&host, "bot").await), ["text done"]);
}

#[cfg(unix)]
#[tokio::test]
async fn an_agent_in_another_process_is_interrupted() {
    let (files, gate) = (Files::new(), Arc::new(Semaphore::new(0)));
    let (process, agents) = remote(&files, working(&gate, &InterruptController::new()));
    let builder = builder().process(process, ["bot"]);
    let host = builder.start(files.store().await).await.expect("a host");
    invite(&host, "bot").await;
    say(&host, "ann", "work").await;
    pause(&host, "bot").await;
    assert_eq!(lines(&sent_by(&host, "bot").await), INTERRUPTED);
    host.drain(LONG).await.expect("drained");
    agents.await.expect("no panic").expect("ended");
}
