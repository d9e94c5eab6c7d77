//! Agents of a store: the operations of [`AgentStore`], each in one transaction.

use crate::commit::{self, RowChange, outgoing, progress, put_row};
use crate::encoded::EncodedEvent;
use crate::fault::{Fault, fault};
use crate::journal;
use crate::kept;
use crate::log;
use crate::rows::{
    Hash, agent_key, all, change, int, json, limit, one, paged, readable, uint, uint32,
};
use crate::runtime::{Cx, Reply, SqliteRuntime};
use crate::sql::{Row, Value, params};
use crate::timers;
use a99_runtime_engine::{
    AgentKey, AgentRow, AgentStore, Claim, Damaged, DeadLetter, Epoch, Fence, JournalRow,
    JournalStatus, KeptTurn, Millis, NewEvent, NewState, Progress, Receipt, Registration, Seq,
    Shards, StoreCode, StoreError, TableTurn, TimerRow, Trigger, TurnCommit, Uuid,
};
use std::sync::Arc;

/// A reply that already failed, before any work for a thread.
pub(crate) fn refused<'a, T: Send + 'a>(error: StoreError) -> Reply<'a, T> {
    Box::pin(std::future::ready(Err(error)))
}

const REGISTERED: &str =
    "SELECT key, config, registered_at, metadata FROM channel_agent ORDER BY key";

fn registration(row: &Row<'_>) -> Result<Registration, Fault> {
    Ok(Registration {
        key: agent_key(row, 0)?,
        config: serde_json::from_str(row.text(1)?)?,
        registered_at: uint(row.get(2)?)?,
        metadata: match row.get::<Option<String>>(3)? {
            Some(metadata) => Some(serde_json::from_str(&metadata)?),
            None => None,
        },
    })
}

fn load(cx: &Cx<'_>, key: &AgentKey) -> Result<Option<AgentRow>, Fault> {
    let sql = "SELECT state, version, revision, settings, checkpoint, done, created_at, updated_at,
                      replays
               FROM agent_state WHERE key = ?1";
    let mut rows = all(cx, sql, [key.as_str()], |row| {
        let done: Option<String> = row.get(5)?;
        Ok(AgentRow {
            state: row.get(0)?,
            version: uint32(row.get(1)?)?,
            revision: uint(row.get(2)?)?,
            settings: row.get(3)?,
            progress: progress(row.get(4)?, done.as_deref())?,
            started: Vec::new(),
            created_at: uint(row.get(6)?)?,
            updated_at: uint(row.get(7)?)?,
            replays: uint(row.get(8)?)?,
        })
    })?;
    let Some(mut row) = rows.pop() else {
        return Ok(None);
    };
    if cx.shared.options.has_channels {
        let last = row.progress.done.last().copied().unwrap_or_default();
        log::check_done(cx, key, row.progress.checkpoint.max(last))?;
    }
    row.started = journal::started(cx, key)?;
    Ok(Some(row))
}

impl SqliteRuntime {
    /// Moves an agent's checkpoint back to the head of its channel's log after processed events
    /// were lost: the repair for that error of [`load`](a99_runtime_engine::AgentStore::load).
    /// Gives the head.
    ///
    /// Errors: [`StoreCode::NotFound`] if the store has no row of the agent.
    #[must_use = "it is done when its future is"]
    pub fn set_back(&self, key: &AgentKey) -> Reply<'_, Seq> {
        let key = key.clone();
        let named = key.clone();
        let work = move |cx: &Cx<'_>| {
            cx.own(key.shard())?;
            let head = log::head(cx, key.channel())?;
            let sql = "UPDATE agent_state SET done = NULL, replays = replays + 1,
                           checkpoint = CASE WHEN checkpoint > ?2 THEN ?2 ELSE checkpoint END
                       WHERE key = ?1";
            match change(cx, sql, params![key.as_str(), int(head)])? {
                1 => Ok(head),
                _ => Err(fault(
                    StoreCode::NotFound,
                    format!("nothing is kept of {key}"),
                )),
            }
        };
        self.settled(named, |store| store.write(work))
    }

    /// Sets an agent's progress, forwards or back, for an operator. Events after it are handled
    /// as new: their turns send events with new identities, and starts and journals of
    /// interrupted turns are discarded. Gives the number of discarded turns. The agent must not
    /// be awake.
    ///
    /// Errors: [`StoreCode::NotFound`] if the store has no row of the agent,
    /// [`StoreCode::Input`] for a sequence number after the head of its channel, if the store has
    /// channels.
    #[must_use = "it is done when its future is"]
    pub fn set_progress(&self, key: &AgentKey, progress: Progress) -> Reply<'_, u64> {
        let key = key.clone();
        let named = key.clone();
        let work = move |cx: &Cx<'_>| {
            cx.own(key.shard())?;
            // Without channels the caller knows where they end.
            let head = match cx.shared.options.has_channels {
                true => log::head(cx, key.channel())?,
                false => Seq::MAX,
            };
            let last = progress.done.last().copied().unwrap_or_default();
            if progress.checkpoint.max(last) > head {
                let text = format!("the log of {} ends at event {head}", key.channel());
                return Err(fault(StoreCode::Input, text));
            }
            let done = match progress.done.is_empty() {
                true => None,
                false => Some(serde_json::to_string(&progress.done)?),
            };
            let sql = "UPDATE agent_state SET checkpoint = ?2, done = ?3, replays = replays + 1
                       WHERE key = ?1";
            let row = params![key.as_str(), int(progress.checkpoint), done];
            match change(cx, sql, row)? {
                1 => journal::discard_events(cx, &key),
                _ => Err(fault(
                    StoreCode::NotFound,
                    format!("nothing is kept of {key}"),
                )),
            }
        };
        self.settled(named, |store| store.write(work))
    }

    /// The archived states of an agent from before its migrations, with their versions, oldest
    /// first.
    ///
    /// Errors are those of reading.
    #[must_use = "it is done when its future is"]
    pub fn backups(&self, key: &AgentKey) -> Reply<'_, Vec<(u32, String)>> {
        let key = key.clone();
        self.read(move |cx| {
            let sql = "SELECT version, state FROM agent_state_backup WHERE key = ?1 ORDER BY id";
            all(cx, sql, [key.as_str()], |row| {
                Ok((uint32(row.get(0)?)?, row.get(1)?))
            })
        })
    }
}

impl AgentStore for SqliteRuntime {
    fn load(&self, key: &AgentKey) -> Reply<'_, Option<AgentRow>> {
        let key = key.clone();
        self.settled(key.clone(), |store| store.read(move |cx| load(cx, &key)))
    }

    fn record_start(
        &self,
        fence: Fence,
        trigger: Trigger,
        attempt: u32,
        progress: Option<Progress>,
    ) -> Reply<'_, ()> {
        let key = fence.key.clone();
        let work = move |cx: &Cx<'_>| {
            cx.guard(&fence)?;
            let row = RowChange {
                progress: progress.as_ref(),
                ..RowChange::default()
            };
            put_row(cx, &fence, &row, uint(crate::runtime::present())?)?;
            journal::start(cx, &fence.key, &trigger, attempt)
        };
        self.settled(key, |store| store.write_bytes(0, work))
    }

    fn commit(&self, mut commit: TurnCommit) -> Reply<'_, Receipt> {
        if let Some(id) = commit.tables.take() {
            return Box::pin(self.commit_tables(commit, id));
        }
        let key = commit.fence.key.clone();
        let limits = &self.shared().options.limits;
        let outbox = std::mem::take(&mut commit.outbox).into_iter();
        let outbox: Result<Vec<EncodedEvent>, _> =
            outbox.map(|new| EncodedEvent::of(new, limits)).collect();
        match outbox {
            Ok(outbox) => {
                let bytes = commit::size(&commit, &outbox);
                let work = move |cx: &Cx<'_>| commit::commit(cx, commit, outbox);
                self.settled(key, move |store| store.write_bytes(bytes, work))
            }
            Err(error) => refused(error),
        }
    }

    fn migrate_state(
        &self,
        fence: Fence,
        state: NewState,
        backups: Vec<(u32, String)>,
        now: Millis,
    ) -> Reply<'_, u64> {
        let key = fence.key.clone();
        let work = move |cx: &Cx<'_>| {
            cx.guard(&fence)?;
            let row = RowChange {
                state: Some(&state),
                ..RowChange::default()
            };
            journal::back_up(cx, &fence.key, &backups, now)?;
            put_row(cx, &fence, &row, now)
        };
        self.settled(key, |store| store.write(work))
    }

    fn journal(&self, key: &AgentKey, trigger: &Trigger) -> Reply<'_, Vec<JournalRow>> {
        let (key, trigger) = (key.clone(), trigger.clone());
        self.read(move |cx| journal::steps(cx, &key, &trigger))
    }

    fn record_step(&self, fence: Fence, row: JournalRow) -> Reply<'_, ()> {
        let bytes = match &row.status {
            JournalStatus::Done(text) => text.len(),
            JournalStatus::Started | JournalStatus::Failed(..) => 0,
        };
        self.write_bytes(bytes, move |cx| {
            cx.guard(&fence)?;
            journal::record(cx, &fence.key, &row)
        })
    }

    fn timers_due(&self, until: Millis, most: usize) -> Reply<'_, Vec<(AgentKey, TimerRow)>> {
        self.read(move |cx| timers::due(cx, until, most))
    }

    fn timers(&self, key: &AgentKey) -> Reply<'_, Vec<TimerRow>> {
        let key = key.clone();
        self.settled(key.clone(), |store| {
            store.read(move |cx| timers::of_agent(cx, &key))
        })
    }

    fn next_due(&self) -> Reply<'_, Option<Millis>> {
        self.read(timers::next_due)
    }

    fn dead_letters(&self, key: &AgentKey) -> Reply<'_, Vec<DeadLetter>> {
        let key = key.clone();
        self.read(move |cx| {
            let sql = "SELECT trigger, code, error, attempts, at FROM agent_dead
                       WHERE key = ?1 ORDER BY id";
            all(cx, sql, [key.as_str()], |row| {
                Ok(DeadLetter {
                    trigger: journal::trigger(row, 0)?,
                    code: row.get(1)?,
                    error: row.get(2)?,
                    attempts: uint32(row.get(3)?)?,
                    at: uint(row.get(4)?)?,
                })
            })
        })
    }

    fn forget_dead(&self, key: &AgentKey) -> Reply<'_, u64> {
        let key = key.clone();
        self.write(move |cx| {
            cx.own(key.shard())?;
            let sql = "DELETE FROM agent_dead WHERE key = ?1";
            let count = change(cx, sql, [key.as_str()])?;
            uint(limit(count))
        })
    }

    fn outbox(&self, most: usize) -> Reply<'_, Vec<(AgentKey, NewEvent)>> {
        self.read(move |cx| {
            let sql = "SELECT key, channel, event FROM agent_outbox ORDER BY n LIMIT ?1";
            paged(most, |page| {
                all(cx, sql, [page], |row| {
                    let key = agent_key(row, 0)?;
                    if !cx.lists(&key) {
                        return Ok(None);
                    }
                    Ok(Some((key, outgoing(row.get(1)?, row.text(2)?)?)))
                })
            })
        })
    }

    fn outbox_len(&self) -> Reply<'_, u64> {
        self.read(|cx| {
            let sql = "SELECT key FROM agent_outbox";
            let keys = all(cx, sql, params![], |row| Ok(cx.lists(&agent_key(row, 0)?)));
            let listed = keys?.into_iter().filter(|is_listed| *is_listed);
            uint(limit(listed.count()))
        })
    }

    fn outbox_done(&self, ids: Vec<Uuid>) -> Reply<'_, ()> {
        self.write(move |cx| {
            let sql = "DELETE FROM agent_outbox WHERE id = ?1 RETURNING key";
            for id in ids {
                for key in all(cx, sql, [id.as_bytes()], |row| agent_key(row, 0))? {
                    cx.own(key.shard())?;
                }
            }
            Ok(())
        })
    }

    fn register(&self, registration: Registration) -> Reply<'_, ()> {
        self.write(move |cx| {
            let key = &registration.key;
            cx.own(key.shard())?;
            let config = json("configuration", &registration.config)?;
            let most = cx.shared.options.limits.max_state_bytes;
            if config.len() > most {
                let message = format!("the configuration of {key} has more than {most} bytes");
                return Err(fault(StoreCode::TooLarge, message));
            }
            let sql = "INSERT INTO channel_agent (key, channel, config, registered_at)
                       VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (key) DO UPDATE SET config = excluded.config";
            let at = int(registration.registered_at);
            change(cx, sql, params![key.as_str(), key.channel(), config, at]).map(drop)
        })
    }

    fn unregister(&self, key: &AgentKey) -> Reply<'_, bool> {
        let key = key.clone();
        self.write(move |cx| {
            cx.own(key.shard())?;
            let sql = "DELETE FROM channel_agent WHERE key = ?1";
            Ok(change(cx, sql, [key.as_str()])? == 1)
        })
    }

    fn registrations(&self) -> Reply<'_, Vec<Registration>> {
        self.read(|cx| {
            let mut all = readable(cx, REGISTERED, params![], registration)?;
            all.retain(|registration| cx.lists(&registration.key));
            Ok(all)
        })
    }

    fn damaged(&self) -> Reply<'_, Vec<Damaged>> {
        self.read(|cx| {
            let mut found = Vec::new();
            let timers =
                "SELECT key, name, due, cron, zone, payload, hops, set_at FROM agent_timers";
            for (table, sql) in [("channel_agent", REGISTERED), ("agent_timers", timers)] {
                let damaged = all(cx, sql, params![], |row| {
                    let read = match table {
                        "agent_timers" => agent_key(row, 0).and(timers::timer(row)).map(drop),
                        _ => registration(row).map(drop),
                    };
                    let error = match read {
                        Ok(()) => return Ok(None),
                        Err(Fault::Store(error)) => error,
                        Err(fault) => return Err(fault),
                    };
                    let key = match row.value(0)? {
                        Value::Text(bytes) | Value::Bytes(bytes) => bytes,
                        Value::Null | Value::Int(_) => &[],
                    };
                    let key = String::from_utf8_lossy(key).into_owned();
                    Ok(Some(Damaged { table, key, error }))
                });
                found.extend(damaged?.into_iter().flatten());
            }
            Ok(found)
        })
    }

    fn behind(&self) -> Reply<'_, Vec<AgentKey>> {
        self.read(|cx| {
            // A registration's channel is a part of its key.
            let sql = "SELECT key FROM channel_agent
                       LEFT JOIN agent_state USING (key)
                       LEFT JOIN channel ON channel.name = channel_agent.channel
                       WHERE coalesce(channel.head, 0) > coalesce(agent_state.checkpoint, 0)
                          OR EXISTS (SELECT 1 FROM agent_inflight AS i
                                     WHERE i.key = channel_agent.key)
                       ORDER BY key";
            let mut keys = readable(cx, sql, params![], |row| agent_key(row, 0))?;
            keys.retain(|key| cx.lists(key));
            Ok(keys)
        })
    }

    /// Each file has threads of its own.
    fn is_synchronous(&self) -> bool {
        true
    }

    fn restart(&self, key: &AgentKey) -> Reply<'_, ()> {
        let done = self.set_progress(key, Progress::default());
        Box::pin(async move { done.await.map(drop) })
    }

    fn tables(&self, fence: Fence) -> Reply<'_, Arc<dyn TableTurn>> {
        Box::pin(self.begin_tables(fence))
    }

    fn migrate_tables(&self, fence: Fence, migrations: Vec<String>) -> Reply<'_, ()> {
        Box::pin(self.migrate_own(fence, migrations))
    }

    fn keep_program(&self, hash: Hash, bytes: Vec<u8>) -> Reply<'_, ()> {
        self.write(move |cx| {
            cx.own_any()?;
            let most = cx.shared.options.limits.max_blob_bytes;
            if bytes.len() > most {
                let message = format!("the program has {} bytes of at most {most}", bytes.len());
                return Err(fault(StoreCode::TooLarge, message));
            }
            let sql = "INSERT INTO program (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            if change(cx, sql, params![hash, bytes])? == 1 {
                return Ok(());
            }
            let find = "SELECT bytes = ?2 FROM program WHERE hash = ?1";
            match one(cx, find, params![hash, bytes], |row| row.get(0))? {
                Some(true) => Ok(()),
                _ => Err(fault(
                    StoreCode::ChangedBody,
                    "another program is kept under this hash",
                )),
            }
        })
    }

    fn program(&self, hash: Hash) -> Reply<'_, Option<Vec<u8>>> {
        self.read(move |cx| {
            let sql = "SELECT bytes FROM program WHERE hash = ?1";
            one(cx, sql, [hash], |row| row.get(0))
        })
    }

    fn kept_turns(&self, key: &AgentKey) -> Reply<'_, Vec<Trigger>> {
        let key = key.clone();
        self.settled(key.clone(), |store| {
            store.read(move |cx| kept::triggers(cx, &key))
        })
    }

    fn kept_turn(
        &self,
        key: &AgentKey,
        trigger: &Trigger,
    ) -> Reply<'_, Option<(KeptTurn, Option<String>)>> {
        let (key, trigger) = (key.clone(), trigger.clone());
        self.settled(key.clone(), |store| {
            store.read(move |cx| kept::find(cx, &key, &trigger))
        })
    }

    fn epoch(&self, key: &AgentKey) -> Epoch {
        self.epoch_of(key)
    }

    fn acquire(&self, claim: Claim) -> Reply<'_, Shards> {
        self.acquire_shards(claim)
    }

    fn renew(&self, until: Millis) -> Reply<'_, Shards> {
        self.renew_shards(until)
    }

    fn release(&self, shards: Shards) -> Reply<'_, ()> {
        self.release_shards(shards)
    }

    fn owned(&self) -> Shards {
        self.shared().owned.shards()
    }

    fn was_cut_off(&self) -> Shards {
        self.shared().owned.was_cut_off()
    }

    fn moved(&self) -> Option<String> {
        self.shared().moved.clone()
    }

    fn flush(&self) -> Reply<'_, ()> {
        self.flushed()
    }
}
