//! Tables of agents: a file for each agent, which agrees with the shared file after every
//! crash.
//!
//! State, progress, timers, outbox and logs of all agents are in the shared file; an agent's
//! SQL tables are in a separate file. A turn's transaction stays open in the agent's file from
//! its first statement to its commit. No SQLite transaction spans two files, so the commit of a
//! turn uses a write-ahead record:
//!
//! 1. In a transaction of the shared file, which only one owner can have: the fence is checked,
//!    and the whole commit is executed (`commit.rs`). Any refusal shows now.
//! 2. Still within that transaction, the agent's file commits: its tables, and in the same
//!    transaction the number of the turn (`a99_turn.n`, which increases by one) and the commit
//!    as a *record*.
//! 3. The shared file stores that number (`agent_tables.applied`), and commits.
//! 4. A process that opens the agent's file, or finds the shared file one turn behind, applies
//!    the record to the shared file before it reads or writes anything else of the agent.
//!
//! After every crash, `applied` is `n` or `n - 1`, and in the second case the record holds the
//! missing turn. It cannot be applied twice: it increases `applied` in the same transaction.
//!
//! | case | agent's file | shared file | afterwards |
//! |---|---|---|---|
//! | crash before 2, or a handler that fails | rolled back | rolled back | the turn never
//! happened |
//! | refused in 1 (`TooLarge`, `ChangedBody`, `Conflict`, timer gone) | rolled back | rolled
//! back | as the delivery machine says |
//! | crash in 2 | whole or not | rolled back | as before or after 2 |
//! | crash between 2 and 3 | has turn `n` | `applied` is `n - 1` | 4 applies the record |
//! | crash in 4 | the same | whole or not | 4 again, or nothing to do |
//! | the disk refuses 2 | open or rolled back | rolled back | tried again, or the handler runs
//! again |
//! | the disk refuses 3, the process survives | has turn `n` | `n - 1` | the record is applied
//! first whenever the agent is read or written; the retried commit finds it applied |
//! | a disk error in 2 or 3 | in doubt | in doubt | both are read again: the number decides |
//! | an older owner continues | its fence fails in 1 | the same | it commits nothing; the
//! owner's epoch in the file also guards against a restored shared file |
//! | a turn is retried | its leftovers are rolled back before its first statement | unchanged |
//! |
//! | a turn is given up | abandoned | only the dead letter | |
//! | an at-most-once turn is interrupted in its handler | rolled back | start and progress are
//! there | `on_lost` |
//!
//! Turns of an agent with tables run one after the other: two could not share a transaction.
//! Steps are journaled in the shared file, ahead of the turn, and removed by its commit.
//!
//! After a power failure with less than `Durability::Power` one file may lack more than the
//! other. Then the numbers do not match, and the agent is refused ([`StoreCode::Unreadable`])
//! until both files are restored from a backup, or an operator accepts the current data
//! ([`SqliteRuntime::accept_tables`]).

mod file;
mod policy;
mod record;
mod statements;
mod turn;
mod values;

use crate::commit;
use crate::encoded::EncodedEvent;
use crate::fault::{Fault, fault, of_file};
use crate::kill;
use crate::options::StoreOptions;
use crate::rows::{change, digest, int, one, uint};
use crate::runtime::{Cx, Reply, SqliteRuntime, locked};
use crate::sql::params;
use a99_runtime_engine::{AgentKey, Fence, Receipt, StoreCode, StoreError, TableTurn, TurnCommit};
use a99_sqlite::SqliteOptions;
use file::TableFile;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The migration of the shared file.
pub(crate) const SHARED: &str = include_str!("shared.sql");

/// How long an owner waits for an earlier one in the middle of a turn.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// Characters of an agent's name in its file name.
const NAME_LETTERS: usize = 40;

/// The files of agents' tables.
pub(crate) struct TableFiles {
    folder: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// Open files, each with the request count at its last use.
    open: HashMap<AgentKey, (Arc<TableFile>, u64)>,
    asked: u64,
    /// Agents with tables that were not checked yet.
    unsettled: HashSet<AgentKey>,
}

impl TableFiles {
    /// The files of a store.
    pub(crate) fn beside(store: &Path) -> TableFiles {
        let mut folder = OsString::from(store);
        folder.push(".tables");
        TableFiles {
            folder: folder.into(),
            inside: Mutex::default(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        locked(&self.inside)
    }

    /// The path of an agent's tables.
    fn path(&self, key: &AgentKey) -> PathBuf {
        let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            true => c,
            false => '_',
        };
        let mut name: String = key.agent().chars().take(NAME_LETTERS).map(plain).collect();
        name.push('-');
        for byte in &digest(key.as_str().as_bytes())[..16] {
            // Writing to a `String` cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(".db");
        self.folder.join(name)
    }

    /// Whether an agent can be read or written without checking its file first.
    pub(crate) fn is_settled(&self, key: &AgentKey) -> bool {
        let inside = self.inside();
        let pending = inside.open.get(key);
        !inside.unsettled.contains(key) && pending.is_none_or(|(file, _)| !file.is_pending())
    }

    /// Registers agents that have tables.
    pub(crate) fn know(&self, keys: impl IntoIterator<Item = AgentKey>) {
        self.inside().unsettled.extend(keys);
    }

    /// Agents whose files were not closed cleanly.
    pub(crate) fn left_open(&self) -> Vec<AgentKey> {
        let keys = self.inside().unsettled.clone().into_iter();
        let has_log = |key: &AgentKey| {
            let mut log = self.path(key).into_os_string();
            log.push("-wal");
            Path::new(&log).exists()
        };
        keys.filter(has_log).collect()
    }

    pub(crate) fn close(&self) {
        let open = std::mem::take(&mut self.inside().open);
        open.into_values().for_each(|(file, _)| file.close());
    }

    /// The file of an agent, if it is open.
    fn opened(&self, key: &AgentKey) -> Option<Arc<TableFile>> {
        let mut inside = self.inside();
        inside.asked += 1;
        let now = inside.asked;
        let (file, asked) = inside.open.get_mut(key)?;
        *asked = now;
        Some(Arc::clone(file))
    }

    /// Opens the file of an agent; at the limit the least recently used idle file is closed.
    fn open(
        &self,
        key: &AgentKey,
        epoch: u64,
        options: &StoreOptions,
    ) -> Result<Arc<TableFile>, StoreError> {
        if let Some(file) = self.opened(key) {
            return Ok(file);
        }
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.create(&self.folder).map_err(|error| {
            let text = format!("{}: {error}", self.folder.display());
            StoreError::new(StoreCode::Unavailable, text)
        })?;
        let sqlite = SqliteOptions {
            durability: options.durability,
            busy_timeout: TAKE_OVER,
            is_exclusive: true,
            ..SqliteOptions::default()
        };
        let (path, key, limits) = (self.path(key), key.clone(), options.tables);
        let mut inside = self.inside();
        let idle =
            |(file, _): &&(Arc<TableFile>, u64)| Arc::strong_count(file) == 1 && !file.is_pending();
        while inside.open.len() >= limits.max_open.max(1) {
            let oldest = inside.open.values().filter(idle).min_by_key(|(_, at)| *at);
            let Some(key) = oldest.map(|(file, _)| file.key.clone()) else {
                break;
            };
            inside.open.remove(&key);
        }
        inside.asked += 1;
        let now = inside.asked;
        let file = TableFile::open(&path, key.clone(), epoch, sqlite, limits)?;
        let (file, _) = inside
            .open
            .entry(key)
            .or_insert_with(|| (Arc::new(file), now));
        Ok(Arc::clone(file))
    }

    /// Forgets the open file of an agent, so that its next use reads it again.
    fn forget(&self, key: &AgentKey) {
        let mut inside = self.inside();
        inside.open.remove(key);
        inside.unsettled.insert(key.clone());
    }
}

/// Number of turns of an agent's file that the shared file has; `None` without tables.
fn applied(cx: &Cx<'_>, key: &AgentKey) -> Result<Option<u64>, Fault> {
    let sql = "SELECT applied FROM agent_tables WHERE key = ?1";
    let found: Option<i64> = one(cx, sql, [key.as_str()], |row| row.get(0))?;
    found.map(uint).transpose()
}

/// Records that the shared file has a turn of the agent's file.
fn apply(cx: &Cx<'_>, key: &AgentKey, n: u64) -> Result<(), Fault> {
    let sql = "UPDATE agent_tables SET applied = ?2 WHERE key = ?1 AND applied = ?2 - 1";
    match change(cx, sql, params![key.as_str(), int(n)])? {
        1 => Ok(()),
        _ => Err(out_of_sync(key, n, None)),
    }
}

/// The error for two files from different times.
fn out_of_sync(key: &AgentKey, n: u64, applied: Option<u64>) -> Fault {
    let found = applied.map_or_else(|| "others".to_owned(), |applied| applied.to_string());
    fault(
        StoreCode::Unreadable,
        format!(
            "the tables of {key} have {n} turns and the store {found}, as after a power cut or \
             when one file was put back alone: put back a backup of both, or accept what is \
             there (SqliteRuntime::accept_tables)"
        ),
    )
}

/// Applies the last turn of an agent's file to the shared file, if that lacks it.
fn redo(
    cx: &Cx<'_>,
    key: &AgentKey,
    n: u64,
    record: Option<&str>,
) -> Result<Option<Receipt>, Fault> {
    let epoch = cx.own(key.shard())?;
    let done = applied(cx, key)?.unwrap_or_default();
    if done == n {
        return Ok(None);
    }
    let Some(record) = record.filter(|_| done + 1 == n) else {
        return Err(out_of_sync(key, n, Some(done)));
    };
    let fence = Fence {
        key: key.clone(),
        epoch: a99_runtime_engine::Epoch(epoch),
    };
    let mut turn = record::decode(record, fence)?;
    let outbox = std::mem::take(&mut turn.outbox).into_iter();
    let outbox = outbox.map(|new| EncodedEvent::of(new, &cx.shared.options.limits));
    let outbox = outbox.collect::<Result<Vec<_>, _>>()?;
    let receipt = commit::commit(cx, turn, outbox)?;
    if receipt.is_gone {
        return Err(out_of_sync(key, n, Some(done)));
    }
    apply(cx, key, n)?;
    kill::point("tables.redo");
    Ok(Some(receipt))
}

impl SqliteRuntime {
    /// Runs work on an agent once the shared file has all turns of its tables; immediately if
    /// that is known.
    pub(crate) fn settled<'a, T: Send + 'a>(
        &'a self,
        key: AgentKey,
        work: impl FnOnce(&'a SqliteRuntime) -> Reply<'a, T> + Send + 'a,
    ) -> Reply<'a, T> {
        if self.tables_of().is_none_or(|files| files.is_settled(&key)) {
            return work(self);
        }
        Box::pin(async move {
            self.settle(&key).await?;
            work(self).await
        })
    }

    /// The file of an agent's tables, once the shared file has all of its turns.
    pub(crate) async fn settle(&self, key: &AgentKey) -> Result<Arc<TableFile>, StoreError> {
        let files = self.files()?;
        if files.is_settled(key)
            && let Some(file) = files.opened(key)
        {
            return Ok(file);
        }
        let named = key.clone();
        let known = self.write(move |cx| {
            cx.own(named.shard())?;
            let sql = "INSERT INTO agent_tables (key, applied) VALUES (?1, 0)
                       ON CONFLICT DO NOTHING";
            change(cx, sql, [named.as_str()])?;
            applied(cx, &named)
        });
        let known = known.await?.unwrap_or_default();
        let path = files.path(key);
        if known > 0 && !path.exists() {
            let text = format!(
                "{}: the tables of {key} are gone: put the file back, or accept that \
                 (SqliteRuntime::accept_tables)",
                path.display()
            );
            return Err(StoreError::new(StoreCode::Unreadable, text));
        }
        let shared = self.shared();
        let file = files.open(key, self.epoch_of(key).0, &shared.options)?;
        if let Err(error) = file.look().await {
            // Another handle may succeed.
            files.forget(key);
            return Err(error);
        }
        let (n, record) = file.last();
        let named = key.clone();
        let done = self.write(move |cx| redo(cx, &named, n, record.as_deref()));
        let receipt = done.await?;
        file.applied(n, receipt);
        files.inside().unsettled.remove(key);
        Ok(file)
    }

    /// Begins a turn of an agent's tables.
    pub(crate) async fn begin_tables(
        &self,
        fence: Fence,
    ) -> Result<Arc<dyn TableTurn>, StoreError> {
        self.check_fence(&fence)?;
        let file = self.settle(&fence.key).await?;
        let turn = file.begin();
        Ok(Arc::new(turn::FileTurn { file, turn }))
    }

    /// Migrates the tables of an agent.
    pub(crate) async fn migrate_own(
        &self,
        fence: Fence,
        migrations: Vec<String>,
    ) -> Result<(), StoreError> {
        self.check_fence(&fence)?;
        let file = self.settle(&fence.key).await?;
        file.migrate(migrations).await
    }

    /// Refuses an activation that began under another epoch.
    fn check_fence(&self, fence: &Fence) -> Result<(), StoreError> {
        match self.epoch_of(&fence.key) == fence.epoch {
            true => Ok(()),
            false => {
                let text = format!("{} was read under epoch {}", fence.key, fence.epoch);
                Err(StoreError::new(StoreCode::Fenced, text))
            }
        }
    }

    /// Commits a turn together with its changes of the tables.
    pub(crate) async fn commit_tables(
        &self,
        mut turn: TurnCommit,
        id: u64,
    ) -> Result<Receipt, StoreError> {
        let key = turn.fence.key.clone();
        let gone = || {
            let text = format!("the turn of the tables of {key} is not there any more");
            StoreError::new(StoreCode::Interrupted, text)
        };
        let file = self.files()?.opened(&key).ok_or_else(gone)?;
        if file.ended(id).is_some() {
            // An earlier attempt failed in the shared file.
            self.settle(&key).await?;
            return file.ended(id).flatten().ok_or_else(gone);
        }
        let state = file.turn(id).ok_or_else(gone)?;
        state.over.store(true, std::sync::atomic::Ordering::Release);
        // The shared transaction must not wait for a leftover statement.
        file.quiet().await?;
        let record: Arc<str> = record::encode(&turn)?.into();
        let limits = &self.shared().options.limits;
        let outbox = std::mem::take(&mut turn.outbox).into_iter();
        let outbox = outbox.map(|new| EncodedEvent::of(new, limits));
        let outbox = outbox.collect::<Result<Vec<_>, _>>()?;
        let own = Arc::clone(&file);
        let written = self.write(move |cx| {
            let (n, _) = own.last();
            let key = turn.fence.key.clone();
            let done = applied(cx, &key)?;
            if done != Some(n) {
                return Err(out_of_sync(&key, n, done));
            }
            let receipt = commit::commit(cx, turn, outbox)?;
            if receipt.is_gone {
                own.abandon(id);
                return Ok((receipt, None));
            }
            kill::point("tables.before");
            let ended = own.commit(id, record)?;
            if let Some(n) = ended {
                kill::point("tables.between");
                apply(cx, &key, n)?;
            }
            Ok((receipt, ended))
        });
        match written.await {
            Ok((receipt, ended)) => {
                if let Some(n) = ended {
                    file.applied(n, Some(receipt.clone()));
                    file.tidy();
                }
                Ok(receipt)
            }
            Err(error) => {
                if error.code() == StoreCode::InDoubt {
                    self.files()?.forget(&key);
                }
                Err(error)
            }
        }
    }

    /// Accepts an agent's tables although they and its state are from different times: the
    /// repair for that error of [`tables`](a99_runtime_engine::AgentStore::tables). The agent
    /// must not be awake. Gives the number of turns of its file.
    ///
    /// Errors: [`StoreCode::NotFound`] if the agent never had tables, and those of the file.
    #[must_use = "it is done when its future is"]
    pub fn accept_tables(&self, key: &AgentKey) -> Reply<'_, u64> {
        let key = key.clone();
        Box::pin(async move {
            let named = key.clone();
            let known = self.read(move |cx| applied(cx, &named));
            if known.await?.is_none() {
                let text = format!("{key} has no tables");
                return Err(StoreError::new(StoreCode::NotFound, text));
            }
            let files = self.files()?;
            let file = files.open(&key, self.epoch_of(&key).0, &self.shared().options)?;
            file.look().await?;
            let (n, named) = (file.last().0, key.clone());
            let accepted = self.write(move |cx| {
                cx.own(named.shard())?;
                let sql = "UPDATE agent_tables SET applied = ?2 WHERE key = ?1";
                change(cx, sql, params![named.as_str(), int(n)]).map(drop)
            });
            accepted.await?;
            file.applied(n, None);
            files.inside().unsettled.remove(&key);
            Ok(n)
        })
    }

    /// The path of an agent's tables, for backups; the file may not exist. Empty for a store on
    /// a server, which has no such tables.
    #[must_use]
    pub fn tables_path(&self, key: &AgentKey) -> PathBuf {
        self.tables_of()
            .map(|files| files.path(key))
            .unwrap_or_default()
    }

    /// The files of tables.
    ///
    /// # Errors
    /// [`StoreCode::Input`] for a store on a server.
    fn files(&self) -> Result<&TableFiles, StoreError> {
        let why = "a store on a server keeps no tables of agents";
        self.tables_of()
            .ok_or_else(|| StoreError::new(StoreCode::Input, why))
    }

    /// Reads which agents have tables. After a crash it applies missing turns of files that
    /// were open.
    pub(crate) fn know_tables(&self) -> Result<(), StoreError> {
        let Some((database, files)) = self.database().zip(self.tables_of()) else {
            return Ok(());
        };
        let keys = database.read(|tx| {
            let mut find = tx.prepare("SELECT key FROM agent_tables")?;
            let keys = find.query_map([], |row| row.get::<_, String>(0))?;
            Ok(keys.collect::<Result<Vec<_>, _>>()?)
        });
        let keys = keys.wait().map_err(|error| of_file(&error))?;
        // A damaged key belongs to no agent.
        let keys = keys.iter().filter_map(|key| key.parse().ok());
        files.know(keys);
        if self.shared().was_cut_off {
            for key in files.left_open() {
                // An error shows when the agent wakes.
                drop(a99_sqlite::block_on(self.settle(&key)));
            }
        }
        Ok(())
    }
}
