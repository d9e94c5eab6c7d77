//! What must hold after the kills.

use crate::roles::{self, CHANNEL, Counted, agent, connect};
use a99_channels::client::Client;
use a99_runtime::{AgentKey, Body, Event, Uuid};
use a99_runtime_engine::AgentStore as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

/// The log of the channel.
pub(crate) struct Log(Vec<Arc<Event>>);

fn text(event: &Event) -> &str {
    match &event.body {
        Body::Message(message) => &message.content,
        _ => "",
    }
}

fn numbers(text: &str) -> Vec<u64> {
    let numbers = text.split(' ').skip(1).map(|n| n.parse());
    numbers.collect::<Result<_, _>>().expect("numbers")
}

/// Reads the log once the agents have answered everything.
pub(crate) async fn settle(client: &Client, folder: &Path, roles: &[&str], limit: Duration) -> Log {
    let until = Instant::now() + limit;
    loop {
        let channel = json!({"channel": CHANNEL});
        let head: u64 = client.request("head", &channel).await.expect("a head");
        let mut events = client
            .subscribe(CHANNEL, Some(0), false)
            .await
            .expect("subscribed");
        let mut log = Vec::new();
        while events.cursor() < head {
            log.push(events.next().await.expect("an event"));
        }
        let log = Log(log);
        let said = log.said();
        let is_done = roles
            .iter()
            .all(|role| log.counted(&agent(role)).len() >= said.len());
        if is_done {
            return log;
        }
        assert!(
            Instant::now() < until,
            "{} messages, answered {:?} in {}",
            said.len(),
            roles
                .iter()
                .map(|role| log.counted(&agent(role)).len())
                .collect::<Vec<_>>(),
            folder.display()
        );
        sleep(Duration::from_millis(200)).await;
    }
}

impl Log {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The published numbers, in order, each with its place.
    fn said(&self) -> Vec<(u64, u64)> {
        let said = self.0.iter().filter(|event| text(event).starts_with("n "));
        said.map(|event| (numbers(text(event))[0], event.seq.expect("a place")))
            .collect()
    }

    /// What an agent counted: its count and the number, in order.
    fn counted(&self, agent: &AgentKey) -> Vec<(u64, u64)> {
        self.of(agent, "counted ")
    }

    fn of(&self, agent: &AgentKey, what: &str) -> Vec<(u64, u64)> {
        let id = agent.participant();
        let of = self
            .0
            .iter()
            .filter(|event| event.sender.id == id && text(event).starts_with(what));
        of.map(|event| {
            let numbers = numbers(text(event));
            (numbers[0], numbers[1])
        })
        .collect()
    }

    pub(crate) fn check(&self, acknowledged: &[u64], agents: &[AgentKey]) {
        for (n, event) in self.0.iter().enumerate() {
            assert_eq!(event.seq, Some(n as u64 + 1), "the log is dense");
        }
        let mut ids: Vec<Uuid> = self.0.iter().map(|event| event.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), self.0.len(), "each event is there once");
        let said = self.said();
        let numbers: Vec<u64> = said.iter().map(|(n, _)| *n).collect();
        let expected: Vec<u64> = (0..said.len() as u64).collect();
        assert_eq!(numbers, expected, "each number once and in order");
        // The last may be in the log without its acknowledgement.
        assert!(
            said.len() == acknowledged.len() || said.len() == acknowledged.len() + 1,
            "{} published, {} acknowledged",
            said.len(),
            acknowledged.len()
        );
        for (at, seq) in acknowledged.iter().enumerate() {
            assert_eq!(said[at].1, *seq, "number {at} is where the server said");
        }
        for agent in agents {
            let answers: Vec<(u64, u64)> = numbers.iter().map(|n| (n + 1, *n)).collect();
            assert_eq!(
                self.counted(agent),
                answers,
                "{agent} counted each once and in order"
            );
            let now: Vec<(u64, u64)> = answers
                .into_iter()
                .filter(|(_, n)| n.is_multiple_of(5))
                .collect();
            assert_eq!(self.of(agent, "now "), now, "{agent} said each once");
        }
    }
}

/// The state of an agent after its process was killed.
pub(crate) fn state(folder: &Path, role: &str, log: &Log) {
    let runtime = Runtime::new().expect("a runtime");
    let store = runtime.block_on(roles::open(folder, role));
    let row = runtime
        .block_on(store.load(&agent(role)))
        .expect("read")
        .expect("a row");
    let state: Counted = serde_json::from_str(&row.state).expect("a state");
    let said = log.said();
    let sum: u64 = said.iter().map(|(n, _)| n).sum();
    assert_eq!((state.count, state.sum), (said.len() as u64, sum), "{role}");
}

type Seen = Arc<Mutex<BTreeMap<u64, Uuid>>>;

/// A reader that lives through all kills.
pub(crate) struct Reader {
    seen: Seen,
    task: tokio::task::JoinHandle<()>,
}

impl Reader {
    pub(crate) fn start(runtime: &Runtime, folder: &Path) -> Reader {
        let seen = Seen::default();
        let (all, folder): (Seen, PathBuf) = (Arc::clone(&seen), folder.to_owned());
        let task = runtime.spawn(async move {
            let client = connect(&folder).await;
            let events = client.subscribe(CHANNEL, Some(0), false).await;
            let mut events = events.expect("subscribed");
            let mut last = 0;
            loop {
                let event = events.next().await.expect("an event");
                let seq = event.seq.expect("a place");
                assert_eq!(seq, last + 1, "a reader gets each event once and in order");
                last = seq;
                all.lock().expect("a lock").insert(seq, event.id);
            }
        });
        Reader { seen, task }
    }

    /// The reader saw what the log has.
    pub(crate) fn check(self, runtime: &Runtime, log: &Log) {
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while self.seen.lock().expect("a lock").len() < log.len() {
            assert!(!self.task.is_finished(), "the reader failed");
            assert!(std::time::Instant::now() < until, "the reader is behind");
            std::thread::sleep(Duration::from_millis(50));
        }
        self.task.abort();
        drop(runtime.block_on(self.task));
        let seen = self.seen.lock().expect("a lock");
        for event in &log.0 {
            let seq = event.seq.expect("a place");
            assert_eq!(seen.get(&seq), Some(&event.id), "event {seq}");
        }
    }
}
