//! Either side is killed, many times, in the middle of turns.

use super::{ARGS, invited, process, there};
use crate::support::{Files, LONG, builder, key, messages, says, store};
use a99_runtime::{Delivery, Host, Publish};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MESSAGES: usize = 120;

fn config(delivery: Delivery) -> Value {
    json!({"delivery": delivery, "attempts": 1_000})
}

async fn publish(host: &Host) {
    for n in 0..MESSAGES {
        let text = format!("count {n}");
        let publish = Publish {
            key: Some(text.clone()),
            ..says(&text)
        };
        host.publish("general", publish).await.expect("published");
    }
}

/// How often each message was answered; and the count of the state, and of the table's rows.
async fn counted(host: &Host) -> (BTreeMap<String, usize>, usize, usize) {
    let mut answers = BTreeMap::new();
    for (who, text) in messages(host, "general").await {
        if let ("worker", Some(n)) = (who.as_str(), text.strip_prefix("counted ")) {
            *answers.entry(n.to_owned()).or_default() += 1;
        }
    }
    let info = host
        .inspect(&key("worker/general/worker"))
        .await
        .expect("an agent");
    let state = info.state.unwrap_or_default();
    let count = usize::try_from(state["count"].as_u64().unwrap_or_default()).expect("a count");
    let note = super::answer(host, "note").await;
    let note: (u64, Vec<Value>) = serde_json::from_str(&note).expect("rows");
    (answers, count, note.1.len() - 1)
}

/// Kills the process whose number a file has, as often as wanted.
async fn kill(file: &Path, kills: usize) -> usize {
    let (mut killed, mut last, began) = (0, String::new(), Instant::now());
    while killed < kills && began.elapsed() < LONG {
        let pause = 20 + u64::try_from(killed).expect("a count") * 13 % 37;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let pid = std::fs::read_to_string(file).unwrap_or_default();
        if pid.is_empty() || pid == last {
            continue;
        }
        let done = Command::new("kill")
            .args(["-9", &pid])
            .status()
            .expect("kill");
        killed += usize::from(done.success());
        last = pid;
    }
    killed
}

async fn agents_are_killed(
    delivery: Delivery,
    kills: usize,
) -> (BTreeMap<String, usize>, usize, usize) {
    let files = Files::new();
    let pid = files.path().with_extension("pid");
    let process = process().env("A99_TEST_PID", &pid);
    let host = builder()
        .process(process, ["worker"])
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    invited(&host, config(delivery)).await;
    let (killed, ()) = tokio::join!(kill(&pid, kills), async {
        // As long as there are kills, there is work.
        for _ in 0..MESSAGES / 20 {
            publish(&host).await;
        }
    });
    assert_eq!(killed, kills);
    assert!(host.settled(LONG).await);
    counted(&host).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_agents_count_each_message_once() {
    let (answers, count, rows) = agents_are_killed(Delivery::ExactlyOnceState, 30).await;
    assert_eq!(answers.len(), MESSAGES);
    assert!(answers.values().all(|n| *n == 1), "{answers:?}");
    assert_eq!((count, rows), (MESSAGES, MESSAGES));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_agents_count_at_most_once() {
    let (answers, count, rows) = agents_are_killed(Delivery::AtMostOnce, 10).await;
    assert!(answers.values().all(|n| *n == 1), "{answers:?}");
    assert!(answers.len() < MESSAGES, "no kill met a turn");
    assert_eq!((count, rows), (answers.len(), answers.len()));
}

/// The host that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the others"]
async fn host() {
    let Some(folder) = std::env::var_os("A99_TEST_HOST") else {
        return;
    };
    let folder = Path::new(&folder);
    let process = process().env("A99_TEST_PID", folder.join("pid"));
    let host = builder().process(process, ["worker"]);
    let host = host.start(store(&folder.join("agents.db"))).await;
    let host = host.expect("a host");
    invited(&host, config(Delivery::ExactlyOnceState)).await;
    publish(&host).await;
    assert!(host.settled(LONG).await);
    host.drain(LONG).await.expect("drained");
    std::fs::write(folder.join("done"), "").expect("a file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_hosts_lose_and_double_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let program = std::env::current_exe().expect("this program");
    let mut kills = 0;
    for round in 0_u64.. {
        let mut host = Command::new(&program)
            .args(["process::kills::host"])
            .args(&ARGS[1..])
            .env("A99_TEST_HOST", path)
            .stdout(Stdio::null())
            .spawn()
            .expect("a host");
        // Later ones live longer: at last one comes to the end.
        tokio::time::sleep(Duration::from_millis(250 + round * 97 % 300)).await;
        let is_last = round >= 10;
        if is_last {
            assert!(host.wait().expect("ended").success());
            break;
        }
        host.kill().expect("killed");
        host.wait().expect("ended");
        kills += usize::from(!path.join("done").exists());
        // Its agents go when it has gone.
        let pid = std::fs::read_to_string(path.join("pid")).unwrap_or_default();
        let began = Instant::now();
        while !pid.is_empty() && Path::new(&format!("/proc/{pid}")).exists() {
            assert!(began.elapsed() < LONG, "the process outlived its host");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert!(kills > 0, "no host was killed before it was done");
    let host = there(builder()).start(store(&path.join("agents.db"))).await;
    let (answers, count, rows) = counted(&host.expect("a host")).await;
    assert_eq!(answers.len(), MESSAGES);
    assert!(answers.values().all(|n| *n == 1), "{answers:?}");
    assert_eq!((count, rows), (MESSAGES, MESSAGES));
}
