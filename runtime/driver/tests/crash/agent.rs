//! The agent that is killed: it counts numbers in its state and in a table of its own, answers
//! each, sets timers, makes steps and sends at once.

use crate::Mode;
use a99_runtime::{
    Agent, AgentError, Alarm, Body, Event, Policy, Retry, SendOptions, Step, Tables, Trigger, Turn,
    TurnOutcome, codes,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What it keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) wakes: u64,
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) alarms: u64,
    pub(crate) alarm_sum: u64,
    /// Turns that it was told were lost.
    pub(crate) lost: BTreeSet<String>,
}

pub(crate) struct Killed {
    pub(crate) mode: Mode,
    pub(crate) folder: PathBuf,
    /// The last number that it handled.
    pub(crate) handled: Arc<AtomicU64>,
}

impl Killed {
    /// Writes down what was done, in a way that outlives the process.
    fn witness(&self, what: &str, n: u64) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.folder.join(what))
            .expect("a file");
        file.write_all(format!("{n}\n").as_bytes())
            .expect("written");
    }
}

impl Killed {
    async fn note(&self, turn: &Turn<'_, Self>, n: u64, is_alarm: bool) -> TurnOutcome {
        if self.mode.is_joined {
            return Ok(());
        }
        let sql = "INSERT INTO numbers VALUES (?, ?)";
        let storage = turn.storage()?;
        let done = storage.run(sql, vec![json!(n), json!(is_alarm)]).await?;
        assert_eq!(done.changes, 1);
        Ok(())
    }
}

impl Agent for Killed {
    type State = Tally;
    type Settings = serde_json::Value;

    fn policy(&self) -> Policy {
        Policy {
            delivery: self.mode.delivery,
            turns_per_commit: match self.mode.is_joined {
                true => NonZeroU32::new(8).expect("eight"),
                false => NonZeroU32::MIN,
            },
            // Killed at the same place again and again, no turn is to be given up.
            max_deaths: 1_000_000,
            lazy: 5,
            retry: Retry {
                max_attempts: 3,
                first: 1,
                most: 5,
            },
            ..Policy::default()
        }
    }

    fn tables(&self) -> Option<Tables> {
        let numbers = "CREATE TABLE numbers (n INTEGER NOT NULL, is_alarm INTEGER NOT NULL,
                           UNIQUE (n, is_alarm))";
        let made = "CREATE TABLE wakes (n INTEGER NOT NULL); INSERT INTO wakes VALUES (0)";
        let has_tables = !self.mode.is_joined;
        has_tables.then(|| Tables::new().migration(numbers).migration(made))
    }

    async fn on_wake(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        turn.state_mut().wakes += 1;
        if !self.mode.is_joined {
            let storage = turn.storage()?;
            storage.exec("UPDATE wakes SET n = n + 1").await?;
        }
        if turn.state().wakes > 1 {
            return Ok(());
        }
        // Each second: it must be there to the end.
        turn.set_cron("tick", "* * * * * *", None, json!(null))
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        let Ok(n) = message.content.parse::<u64>() else {
            return Ok(());
        };
        self.witness("runs", n);
        turn.state_mut().count += 1;
        turn.state_mut().sum += n;
        // Some turns leave the tables alone.
        if !n.is_multiple_of(4) {
            self.note(turn, n, false).await?;
        }
        let doubled = match self.mode.makes_steps(n) {
            true => {
                let step = turn.step("double", async {
                    self.witness("steps", n);
                    Ok(n * 2)
                });
                step.await?
            }
            false => n * 2,
        };
        if n.is_multiple_of(5) && self.mode.makes_steps(n) {
            let once = turn.step_as(Step::named("once").once(), async {
                self.witness("once", n);
                Ok(())
            });
            match once.await {
                Err(error) if error.code() == codes::UNKNOWN_OUTCOME => {}
                ended => ended?,
            }
        }
        if self.mode.sends_now(n) {
            let now = format!("now {n}");
            turn.send_now(now, SendOptions::default()).await?;
        }
        turn.send(format!("re {n} {doubled}")).await?;
        if n.is_multiple_of(7) {
            let due = turn.now();
            turn.set_timer(format!("t{n}"), due, json!(n))?;
        }
        self.handled.store(n, Ordering::Relaxed);
        Ok(())
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, alarm: Alarm) -> TurnOutcome {
        let Some(n) = alarm.payload.as_u64() else {
            return Ok(());
        };
        self.witness("alarms", n);
        turn.state_mut().alarms += 1;
        turn.state_mut().alarm_sum += n;
        self.note(turn, n, true).await?;
        turn.send(format!("alarm {n}")).await?;
        Ok::<(), AgentError>(())
    }

    async fn on_lost(&self, turn: &mut Turn<'_, Self>, lost: Vec<Trigger>) -> TurnOutcome {
        let lost = lost.iter().map(ToString::to_string);
        turn.state_mut().lost.extend(lost);
        Ok(())
    }
}
