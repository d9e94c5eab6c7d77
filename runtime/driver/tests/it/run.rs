//! Runs of one agent: their start, their end, and what keeps them from either.

use crate::script::{Call, Script};
use crate::support::{Counted, Counter, Files, LONG, key, quick, say, store, texts};
use a99_runtime::{
    AgentError, AgentInfo, AgentKey, Delivery, Host, OnDead, RunAgentOptions, codes, run_agent,
};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

fn state(info: &AgentInfo) -> Counted {
    serde_json::from_value(info.state.clone().expect("a state")).expect("of its type")
}

/// Says something once the agent is up, and waits for the answer.
async fn ask(host: Host, content: &str) {
    say(&host, "c", content).await;
    assert!(host.settled(LONG).await);
}

#[tokio::test]
async fn a_run_goes_on_where_the_last_one_ended() {
    let (files, a) = (Files::new(), key("counter/c/a"));
    for (n, content) in ["one", "two", "three"].into_iter().enumerate() {
        let kept = store(&files.path());
        let ended = run_agent(
            &a,
            |_| Counter::default(),
            kept,
            RunAgentOptions::default(),
            |host| ask(host, content),
        );
        let ended = ended.await.expect("a run");
        assert_eq!((ended.info.status, ended.was_cut), ("asleep", false));
        let state = state(&ended.info);
        assert_eq!(state.count, n as u64 + 1);
        assert_eq!(state.seen.last().map(String::as_str), Some(content));
    }
}

#[tokio::test]
async fn it_is_up_when_it_serves_and_asleep_when_it_has_ended() {
    let (files, a) = (Files::new(), key("s/c/a"));
    let script = Script::new(|_, call| {
        Box::pin(async move {
            if matches!(call, Call::Wake) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        })
    });
    let (made, seen) = (script.clone(), script.clone());
    let served = async move |host: Host| {
        assert_eq!(seen.called(), ["init", "wake"]);
        ask(host, "x").await;
    };
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        move |_| made.clone(),
        kept,
        RunAgentOptions::default(),
        served,
    );
    run.await.expect("a run");
    assert_eq!(script.called(), ["init", "wake", "event x", "sleep"]);
}

#[tokio::test]
async fn what_keeps_it_from_starting_is_told_and_it_does_not_serve() {
    let (files, a) = (Files::new(), key("s/c/a"));
    let script = Script::new(|_, call| {
        Box::pin(async move {
            match call {
                Call::Wake => Err(AgentError::new("mine.broken", "no")),
                _ => Ok(()),
            }
        })
    });
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        move |_| script.clone(),
        Arc::clone(&kept),
        RunAgentOptions::default(),
        |_| async { panic!("it serves") },
    );
    assert_eq!(run.await.expect_err("refused").code(), "mine.broken");
    // Nothing holds the store, and the next run begins as if there had been none.
    let run = run_agent(
        &a,
        |_| Counter::default(),
        kept,
        RunAgentOptions::default(),
        |host| ask(host, "x"),
    );
    assert_eq!(state(&run.await.expect("a run").info).count, 1);
}

#[tokio::test]
async fn one_that_stops_for_good_ends_its_run() {
    let (files, a) = (Files::new(), key("counter/c/a"));
    let mut counter = Counter {
        on_message: Arc::new(|_, _| Err(AgentError::new("mine.bad", "no"))),
        ..Counter::default()
    };
    counter.policy.on_dead = OnDead::Stop;
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        move |_| counter.clone(),
        kept,
        RunAgentOptions::default(),
        async |host| {
            say(&host, "c", "x").await;
            pending::<()>().await;
        },
    );
    let error = run.await.expect_err("stopped");
    assert_eq!(error.code(), "turn.dead");
}

#[tokio::test]
async fn turns_that_take_too_long_at_its_end_are_cut_and_run_again() {
    let (files, a) = (Files::new(), key("counter/c/a"));
    let slow = Counter {
        policy: quick(Delivery::ExactlyOnceState),
        pause: Duration::from_secs(3600),
        ..Counter::default()
    };
    let brief = RunAgentOptions {
        drain: Duration::from_millis(20),
        ..RunAgentOptions::default()
    };
    let begun = Arc::clone(&slow.calls);
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        move |_| slow.clone(),
        kept,
        brief,
        async |host| {
            say(&host, "c", "x").await;
            while begun.lock().expect("alone").is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        },
    );
    let ended = run.await.expect("a run");
    assert!(ended.was_cut);
    // After its joining.
    assert_eq!(ended.info.checkpoint, 1);
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        |_| Counter::default(),
        kept,
        RunAgentOptions::default(),
        async |host| {
            assert!(host.settled(LONG).await);
            assert_eq!(texts(&host, "c").await.len(), 2);
        },
    );
    assert_eq!(state(&run.await.expect("a run").info).count, 1);
}

#[tokio::test]
async fn a_handle_that_another_has_is_refused() {
    let (files, a) = (Files::new(), key("counter/c/a"));
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        |_| Counter::default(),
        Arc::clone(&kept),
        RunAgentOptions::default(),
        async |_| (),
    );
    run.await.expect("a run");
    let other: AgentKey = key("other/c/a");
    let run = run_agent(
        &other,
        |_| Counter::default(),
        kept,
        RunAgentOptions::default(),
        async |_| panic!("it serves"),
    );
    let error = run.await.expect_err("refused");
    assert_eq!(error.code(), codes::HANDLE_CONFLICT);
    // Who has it is as before.
    let kept = store(&files.path());
    let run = run_agent(
        &a,
        |_| Counter::default(),
        kept,
        RunAgentOptions::default(),
        |host| ask(host, "x"),
    );
    assert_eq!(state(&run.await.expect("a run").info).count, 1);
}
