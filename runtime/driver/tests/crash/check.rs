//! What must hold after each kill, by what the store and the witnesses say.

use crate::Mode;
use crate::agent::Tally;
use crate::child::key;
use a99_runtime::{Body, Delivery, Event, Trigger};
use a99_runtime_engine::{AgentStore, ChannelStore, Fence, Statement};
use a99_runtime_stores::SqliteRuntime;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A number that was published.
pub(crate) fn number(event: &Event) -> Option<u64> {
    match &event.body {
        Body::Message(message) if event.sender.handle.as_deref() == Some("ann") => {
            message.content.parse().ok()
        }
        _ => None,
    }
}

/// What of the log was looked at, and what it said.
#[derive(Default, Serialize, Deserialize)]
struct Read {
    seq: u64,
    /// Numbers with their places; of the checked ones only a sum is needed.
    numbers: BTreeMap<u64, u64>,
    replies: Vec<u64>,
    now: Vec<u64>,
    alarms: Vec<u64>,
    cancelled: u64,
}

impl Read {
    async fn on(&mut self, store: &SqliteRuntime) {
        loop {
            let page = store.read("numbers", self.seq, 500).await.expect("a log");
            if page.is_empty() {
                return;
            }
            for event in page {
                self.seq += 1;
                assert_eq!(event.seq, Some(self.seq), "the log has a hole");
                if let Some(n) = number(&event) {
                    self.numbers.insert(self.seq, n);
                    continue;
                }
                let message = match &event.body {
                    Body::Message(message) => message,
                    // A turn that was cancelled by the end of a host, and is tried once.
                    Body::Error { code, .. } if code.as_deref() == Some("turn.cancelled") => {
                        self.cancelled += 1;
                        continue;
                    }
                    Body::Presence { .. } if event.seq == Some(1) => continue,
                    _ => panic!("an event that nobody expects: {event:?}"),
                };
                let mut words = message.content.split(' ');
                let kind = words.next().unwrap_or_default();
                let n: u64 = words.next().and_then(|n| n.parse().ok()).expect("a number");
                match kind {
                    "re" => {
                        assert_eq!(words.next(), Some(&*(2 * n).to_string()), "a step's answer");
                        self.replies.push(n);
                    }
                    "now" => self.now.push(n),
                    "alarm" => self.alarms.push(n),
                    other => panic!("a message that nobody expects: {other}"),
                }
            }
        }
    }
}

/// Numbers that a witness wrote down; the last may be cut.
fn witnessed(folder: &Path, what: &str) -> Vec<u64> {
    let text = fs::read_to_string(folder.join(what)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

fn is_unique(numbers: &[u64]) -> bool {
    numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len()
}

fn is_ascending(numbers: &[u64]) -> bool {
    numbers.windows(2).all(|two| two[0] < two[1])
}

/// Panics with a reason where the promise of the mode does not hold. At the end all must be
/// done.
pub(crate) async fn check(folder: &Path, mode: Mode, store: &SqliteRuntime, is_end: bool) {
    let kept = folder.join("read.json");
    let read = fs::read_to_string(&kept).ok();
    let mut read: Read = read.map_or_else(Read::default, |text| {
        serde_json::from_str(&text).expect("what was read")
    });
    read.on(store).await;
    let part = folder.join("read.part");
    fs::write(&part, serde_json::to_string(&read).expect("JSON")).expect("written");
    fs::rename(&part, &kept).expect("renamed");
    let row = store.load(&key()).await.expect("readable");
    let Some(row) = row else { return };
    let state: Tally = match row.state.as_str() {
        "" => Tally::default(),
        text => serde_json::from_str(text).expect("a state"),
    };
    let in_table = match mode.is_joined {
        true => None,
        false => Some(tables(store, &state).await),
    };
    let agree = |kept: &[u64]| {
        if let Some(in_table) = &in_table {
            assert_eq!(*in_table, in_both(kept), "numbers in the table");
        }
    };
    let checkpoint = row.progress.checkpoint;
    let done: BTreeMap<u64, u64> = read
        .numbers
        .range(..=checkpoint)
        .map(|(seq, n)| (*seq, *n))
        .collect();
    let reached: Vec<u64> = read.numbers.values().copied().collect();
    assert!(is_ascending(&reached), "numbers are not in order");
    assert!(
        is_unique(&witnessed(folder, "once")),
        "a step was made twice"
    );
    assert!(is_unique(&read.now), "what was sent at once came twice");
    assert!(is_unique(&read.alarms), "an alarm was told twice");
    assert!(
        is_ascending(&read.replies),
        "replies are not in order, or twice"
    );
    let timers = store.timers(&key()).await.expect("timers");
    let names: BTreeSet<String> = timers.into_iter().map(|timer| timer.name).collect();
    match mode.delivery {
        Delivery::AtMostOnce => {
            let mut cut = state.lost.clone();
            cut.extend(row.started.iter().map(|(trigger, _)| trigger.to_string()));
            let dead = store.dead_letters(&key()).await.expect("readable");
            cut.extend(dead.iter().map(|dead| dead.trigger.to_string()));
            let kept = at_most_once(folder, &read, &cut, &state, &done);
            agree(&kept);
        }
        _ => {
            at_least_once(mode, &read, &state, &done, (checkpoint, &names));
            let numbers: Vec<u64> = done.values().copied().collect();
            agree(&numbers);
        }
    }
    assert!(
        mode.delivery == Delivery::AtMostOnce || read.cancelled == 0,
        "a turn was given up"
    );
    if is_end {
        assert!(row.started.is_empty(), "a start is left: {:?}", row.started);
        let last = read.numbers.keys().last().copied().unwrap_or_default();
        assert!(
            checkpoint >= last,
            "the stream is not done: {checkpoint} of {last}"
        );
        assert_eq!(
            names,
            BTreeSet::from(["tick".to_owned()]),
            "timers are left, or the one that comes again is gone"
        );
    }
}

/// The agent's tables are as far as its state.
async fn tables(store: &SqliteRuntime, state: &Tally) -> Vec<u64> {
    let fence = Fence {
        epoch: store.epoch(&key()),
        key: key(),
    };
    let tables = store.tables(fence).await.expect("tables");
    let ask = |sql: &str| Statement {
        sql: sql.to_owned(),
        params: Vec::new(),
        steps: None,
        is_repeatable: false,
    };
    let wakes = tables.query(ask("SELECT n FROM wakes"), true).await;
    let wakes = match wakes {
        Ok(rows) => rows[0]["n"].as_u64().expect("a number"),
        // It was killed before it made them.
        Err(error) => {
            assert!(error.to_string().starts_with("no such table"), "{error}");
            assert_eq!(state.wakes, 0, "the tables are gone");
            return Vec::new();
        }
    };
    assert_eq!(wakes, state.wakes, "wakes in the table and in the state");
    let rows = tables
        .query(ask("SELECT n, is_alarm FROM numbers"), false)
        .await;
    let (mut alarms, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for row in rows.expect("rows") {
        let n = row["n"].as_u64().expect("a number");
        match row["is_alarm"] == 1 {
            true => alarms.insert(n),
            false => numbers.insert(n),
        };
    }
    assert_eq!(alarms.len() as u64, state.alarms, "alarms in the table");
    assert_eq!(alarms.iter().sum::<u64>(), state.alarm_sum, "their sum");
    tables.abandon();
    numbers.into_iter().collect()
}

/// Of the numbers that are in the state, those that are in the table too.
fn in_both(numbers: &[u64]) -> Vec<u64> {
    let noted = numbers.iter().filter(|n| !n.is_multiple_of(4));
    noted.copied().collect()
}

fn at_least_once(
    mode: Mode,
    read: &Read,
    state: &Tally,
    done: &BTreeMap<u64, u64>,
    (checkpoint, timers): (u64, &BTreeSet<String>),
) {
    let numbers: Vec<u64> = done.values().copied().collect();
    assert_eq!(
        state.sum,
        numbers.iter().sum::<u64>(),
        "the sum up to {checkpoint}"
    );
    assert_eq!(state.count, numbers.len() as u64, "the count");
    let at_once = numbers.iter().copied().filter(|n| mode.sends_now(*n));
    let at_once: Vec<u64> = at_once.collect();
    let of = |sent: &[u64], wanted: &[u64], what: &str| {
        let most = wanted.len() + 1;
        assert!(
            sent.starts_with(wanted) && sent.len() <= most,
            "{what} are missing"
        );
    };
    of(&read.now, &at_once, "messages sent at once");
    of(&read.replies, &numbers, "replies");
    if mode.delivery == Delivery::ExactlyOnceState {
        assert_eq!(read.replies, numbers, "replies that no commit sent");
        assert_eq!(state.alarms, read.alarms.len() as u64, "alarms");
        assert_eq!(state.alarm_sum, read.alarms.iter().sum::<u64>(), "alarms");
    } else {
        // An alarm that was told and whose timer is there is told again, and nobody sees that.
        let kept = read
            .alarms
            .iter()
            .filter(|n| !timers.contains(&format!("t{n}")));
        let kept: Vec<u64> = kept.copied().collect();
        assert_eq!(state.alarms, kept.len() as u64, "alarms");
        assert_eq!(state.alarm_sum, kept.iter().sum::<u64>(), "alarms");
    }
    assert!(state.lost.is_empty(), "nothing is lost in this mode");
}

fn at_most_once(
    folder: &Path,
    read: &Read,
    cut: &BTreeSet<String>,
    state: &Tally,
    done: &BTreeMap<u64, u64>,
) -> Vec<u64> {
    let runs = witnessed(folder, "runs");
    assert!(is_unique(&runs), "an event was seen twice");
    assert!(
        is_unique(&witnessed(folder, "alarms")),
        "an alarm was seen twice"
    );
    // What is not in the state is listed as lost, was cancelled, or was under way at the kill.
    let is_cut = |seq: u64| cut.contains(&Trigger::Event(seq).to_string());
    let kept: Vec<u64> = done
        .iter()
        .filter(|(seq, _)| !is_cut(**seq))
        .map(|(_, n)| *n)
        .collect();
    assert_eq!(
        state.sum,
        kept.iter().sum::<u64>(),
        "the sum without what is lost"
    );
    assert_eq!(
        state.count,
        kept.len() as u64,
        "the count without what is lost"
    );
    assert_eq!(read.replies, kept, "replies of what was done");
    kept
}
