//! File of an agent's tables: its owner, the transaction of a turn, and the record of the last
//! one.

use super::policy::{Control, Running};
use super::statements::Sql;
use crate::fault::{of_file, of_write};
use crate::options::TableLimits;
use crate::rows::int;
use crate::runtime::locked;
use a99_runtime_engine::{AgentKey, Receipt, Statement, StoreCode, StoreError};
use a99_sqlite::rusqlite::{self, Connection, TransactionState, params};
use a99_sqlite::{Component, Session, SqliteError, SqliteOptions, Task};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

static OWN: Component = Component {
    name: "turns of tables",
    migrations: &[include_str!("own.sql")],
};

/// Bytes of the write-ahead log after which it is copied into the file.
const LOG_BYTES: u64 = 4 << 20;

/// Pages that a turn's record may take in addition to its text.
const SPARE_PAGES: u64 = 64;

/// Numbers of turns, unique within the process.
static TURNS: AtomicU64 = AtomicU64::new(1);

/// An open file.
pub(crate) struct TableFile {
    pub(super) key: AgentKey,
    epoch: u64,
    session: Session,
    control: Arc<Control>,
    pub(super) limits: TableLimits,
    state: Mutex<State>,
}

/// The known state of the file.
#[derive(Default)]
struct State {
    is_open: bool,
    /// Number of turns committed in it.
    n: u64,
    /// The record of the last one, until the shared file is known to have it.
    pending: Option<Arc<str>>,
    /// The last turn committed through this handle, and its receipt.
    ended: Option<(u64, Option<Receipt>)>,
    /// The turn whose transaction is open.
    open_turn: Option<u64>,
    /// The turn that began last.
    turn: Option<Arc<TurnState>>,
}

/// A turn, shared by its users and the thread of the file.
pub(super) struct TurnState {
    pub(super) id: u64,
    pub(super) over: Arc<AtomicBool>,
    /// Whether its transaction began.
    began: AtomicBool,
    /// Why it can no longer be committed.
    broken: Mutex<Option<StoreError>>,
}

/// The error after SQLite rolled back the transaction: after `OR ROLLBACK`, an interrupt during
/// a write, or a disk error.
fn undone() -> StoreError {
    let text = "SQLite undid what the turn changed in its tables: it can only run again";
    StoreError::new(StoreCode::Interrupted, text)
}

fn over() -> StoreError {
    StoreError::new(StoreCode::Interrupted, "the turn of these tables is over")
}

fn writing(error: rusqlite::Error) -> StoreError {
    of_write(&SqliteError::from(error))
}

fn reading(error: rusqlite::Error) -> StoreError {
    of_file(&SqliteError::from(error))
}

impl TurnState {
    pub(super) fn broken(&self) -> Option<StoreError> {
        locked(&self.broken).clone()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl TableFile {
    /// Starts to open a file; [`TableFile::look`] waits for it.
    pub(super) fn open(
        path: &Path,
        key: AgentKey,
        epoch: u64,
        options: SqliteOptions,
        limits: TableLimits,
    ) -> Result<TableFile, StoreError> {
        let session = Session::open(path, options, &OWN).map_err(|error| of_file(&error))?;
        Ok(TableFile {
            key,
            epoch,
            session,
            control: Arc::default(),
            limits,
            state: Mutex::default(),
        })
    }

    /// Ends the thread of the file after the requested work.
    pub(super) fn close(&self) {
        self.session.clone().close();
    }

    /// Whether the shared file may lack the last turn.
    pub(super) fn is_pending(&self) -> bool {
        locked(&self.state).pending.is_some()
    }

    /// Number of turns committed in it, and the record of the last one if the shared file may
    /// lack it.
    pub(super) fn last(&self) -> (u64, Option<Arc<str>>) {
        let state = locked(&self.state);
        (state.n, state.pending.clone())
    }

    /// Whether a turn was committed in it, and its receipt from the shared file.
    pub(super) fn ended(&self, id: u64) -> Option<Option<Receipt>> {
        let state = locked(&self.state);
        let ended = state.ended.as_ref().filter(|(ended, _)| *ended == id);
        ended.map(|(_, receipt)| receipt.clone())
    }

    /// Records that the shared file has `n` turns.
    pub(super) fn applied(&self, n: u64, receipt: Option<Receipt>) {
        let mut state = locked(&self.state);
        if state.n != n {
            return;
        }
        state.pending = None;
        if let (Some((_, kept)), Some(receipt)) = (&mut state.ended, receipt) {
            *kept = Some(receipt);
        }
    }

    fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&TableFile, &mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Task<Result<T, StoreError>> {
        let file = Arc::clone(self);
        self.session.run(move |connection| Ok(f(&file, connection)))
    }

    /// Opens the file once: takes it for this owner and reads its turn number.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`] if a later owner has it; [`StoreCode::Unreadable`];
    /// [`StoreCode::Unavailable`] while an earlier owner is in the middle of a turn.
    pub(super) async fn look(self: &Arc<Self>) -> Result<(), StoreError> {
        let looked = self.ask(|file, connection| file.take(connection));
        looked.await.map_err(|error| of_file(&error))?
    }

    fn take(&self, connection: &mut Connection) -> Result<(), StoreError> {
        if locked(&self.state).is_open {
            return Ok(());
        }
        self.control.put_on(connection).map_err(reading)?;
        Control::as_runtime(connection).map_err(reading)?;
        // A commit must not wait for a checkpoint of the log.
        let settings = "PRAGMA wal_autocheckpoint = 0";
        connection.execute_batch(settings).map_err(reading)?;
        set_most(connection, self.limits.max_file_bytes).map_err(reading)?;
        let last = "CREATE TEMP TABLE a99_last (id INTEGER PRIMARY KEY)";
        connection.execute_batch(last).map_err(reading)?;
        connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(reading)?;
        let taken = self.owned(connection);
        let end = match taken {
            Ok(_) => "COMMIT",
            Err(_) => "ROLLBACK",
        };
        connection.execute_batch(end).map_err(reading)?;
        let (n, record) = taken?;
        let mut state = locked(&self.state);
        (state.n, state.pending) = (n, record.map(Arc::from));
        state.is_open = true;
        Ok(())
    }

    fn owned(&self, connection: &Connection) -> Result<(u64, Option<String>), StoreError> {
        let unreadable = |text: String| StoreError::new(StoreCode::Unreadable, text);
        let insert = "INSERT INTO a99_turn (id, key, epoch, n, version)
                      VALUES (1, ?1, 0, 0, 0) ON CONFLICT DO NOTHING";
        let key = self.key.as_str();
        connection.execute(insert, [key]).map_err(reading)?;
        let find = "SELECT key, epoch, n, record FROM a99_turn WHERE id = 1";
        let found = connection.query_row(find, [], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, Option<String>>(3)?,
            ))
        });
        let (found, epoch, n, record) = found.map_err(reading)?;
        if found != key {
            return Err(unreadable(format!(
                "the file has the tables of {found}, not of {key}"
            )));
        }
        if epoch > int(self.epoch) {
            let text = format!("another owner has the tables of {key}: its epoch is {epoch}");
            return Err(StoreError::new(StoreCode::Fenced, text));
        }
        let own = "UPDATE a99_turn SET epoch = ?1 WHERE id = 1";
        connection
            .execute(own, [int(self.epoch)])
            .map_err(reading)?;
        let n = u64::try_from(n).map_err(|_| unreadable(format!("{n} is no number of turns")))?;
        Ok((n, record))
    }

    /// Begins a turn. An open transaction of an earlier turn is rolled back at the first
    /// change.
    pub(super) fn begin(&self) -> Arc<TurnState> {
        let turn = Arc::new(TurnState {
            id: TURNS.fetch_add(1, Ordering::Relaxed),
            over: Arc::default(),
            began: AtomicBool::new(false),
            broken: Mutex::new(None),
        });
        locked(&self.state).turn = Some(Arc::clone(&turn));
        turn
    }

    /// The turn with a number, if it is the last that began.
    pub(super) fn turn(&self, id: u64) -> Option<Arc<TurnState>> {
        let state = locked(&self.state);
        state.turn.clone().filter(|turn| turn.id == id)
    }

    /// Waits until all earlier work is done.
    pub(super) async fn quiet(self: &Arc<Self>) -> Result<(), StoreError> {
        let quiet = self.ask(|_, _| Ok(()));
        quiet.await.map_err(|error| of_file(&error))?
    }

    /// Runs an agent's work in the transaction of its turn.
    pub(super) fn work<T: Send + 'static>(
        self: &Arc<Self>,
        turn: Arc<TurnState>,
        statement: Statement,
        left: Arc<AtomicBool>,
        f: impl FnOnce(&Sql<'_>, Statement) -> Result<T, StoreError> + Send + 'static,
    ) -> Task<Result<T, StoreError>> {
        self.ask(move |file, connection| {
            file.enter(connection, &turn)?;
            let steps = statement.steps.clone();
            let over = Arc::clone(&turn.over);
            let running = Arc::new(Running::new(over, left, steps.as_deref(), &file.limits));
            let done = file.as_agent(connection, running, |sql| f(sql, statement));
            if !connection.is_autocommit() {
                return done;
            }
            locked(&file.state).open_turn = None;
            *locked(&turn.broken) = Some(undone());
            done.and_then(|_| Err(undone()))
        })
    }

    fn as_agent<T>(
        &self,
        connection: &Connection,
        running: Arc<Running>,
        f: impl FnOnce(&Sql<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let guard = self
            .control
            .as_agent(connection, &self.limits, Arc::clone(&running));
        let _guard = guard.map_err(reading)?;
        f(&Sql {
            file: connection,
            control: &self.control,
            limits: &self.limits,
            running: &running,
        })
    }

    /// Begins the transaction of a turn, unless it is open.
    fn enter(&self, connection: &Connection, turn: &TurnState) -> Result<(), StoreError> {
        if let Some(broken) = turn.broken() {
            return Err(broken);
        }
        if turn.is_over() {
            return Err(over());
        }
        if locked(&self.state).open_turn == Some(turn.id) {
            return Ok(());
        }
        self.undo(connection)?;
        // Resets `last_insert_rowid`, which would show a row of an earlier turn.
        let last = "REPLACE INTO temp.a99_last VALUES (0)";
        connection
            .prepare_cached(last)
            .and_then(|mut last| last.execute([]))
            .map_err(reading)?;
        connection.execute_batch("BEGIN").map_err(reading)?;
        if let Err(error) = self.check_owner(connection) {
            self.undo(connection)?;
            return Err(error);
        }
        locked(&self.state).open_turn = Some(turn.id);
        turn.began.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn check_owner(&self, connection: &Connection) -> Result<(), StoreError> {
        let find = "SELECT epoch FROM a99_turn WHERE id = 1";
        let found: i64 = connection
            .query_row(find, [], |row| row.get(0))
            .map_err(reading)?;
        match found == int(self.epoch) {
            true => Ok(()),
            false => {
                let key = &self.key;
                let text = format!("another owner has the tables of {key}: its epoch is {found}");
                Err(StoreError::new(StoreCode::Fenced, text))
            }
        }
    }

    fn undo(&self, connection: &Connection) -> Result<(), StoreError> {
        locked(&self.state).open_turn = None;
        match connection.is_autocommit() {
            true => Ok(()),
            false => connection.execute_batch("ROLLBACK").map_err(reading),
        }
    }

    /// Rolls back a turn's changes if its transaction is still open.
    pub(super) fn abandon(self: &Arc<Self>, id: u64) {
        let file = Arc::clone(self);
        self.session.tell(move |connection| {
            if locked(&file.state).open_turn == Some(id) {
                // If this fails, the next turn rolls back when it begins.
                drop(file.undo(connection));
            }
        });
    }

    /// Commits a turn's changes together with the record of its commit. Gives the file's new
    /// number of turns; `None` if the turn changed nothing in it. Blocks.
    ///
    /// # Errors
    /// [`StoreCode::Interrupted`] if its transaction no longer exists;
    /// [`StoreCode::Constraint`] for deferred constraints; [`StoreCode::Fenced`]; disk errors.
    /// Unless the outcome is in doubt, nothing was committed, and the turn may be committed
    /// later.
    pub(super) fn commit(
        self: &Arc<Self>,
        id: u64,
        record: Arc<str>,
    ) -> Result<Option<u64>, StoreError> {
        let done = self.ask(move |file, connection| file.end(connection, id, record));
        done.wait().map_err(|error| of_file(&error))?
    }

    fn end(
        &self,
        connection: &Connection,
        id: u64,
        record: Arc<str>,
    ) -> Result<Option<u64>, StoreError> {
        let is_open = locked(&self.state).open_turn == Some(id) && !connection.is_autocommit();
        let turn = self.turn(id);
        if turn.is_some_and(|turn| !turn.began.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        if !is_open {
            return Err(self
                .turn(id)
                .and_then(|turn| turn.broken())
                .unwrap_or_else(undone));
        }
        let state = connection
            .transaction_state(Some(rusqlite::MAIN_DB))
            .map_err(reading)?;
        if state != TransactionState::Write {
            self.undo(connection)?;
            return Ok(None);
        }
        Control::as_runtime(connection).map_err(reading)?;
        let n = locked(&self.state).n + 1;
        // Raise the size limit for the record.
        let bytes = u64::try_from(record.len()).unwrap_or(u64::MAX);
        let most = self.limits.max_file_bytes.saturating_add(bytes);
        let kept = set_most(connection, most.saturating_add(SPARE_PAGES << 12))
            .and_then(|()| {
                let sql = "UPDATE a99_turn SET n = ?1, record = ?2
                           WHERE id = 1 AND n = ?1 - 1 AND epoch = ?3";
                let row = params![int(n), &*record, int(self.epoch)];
                connection.prepare_cached(sql)?.execute(row)
            })
            .map_err(writing);
        let ended = match kept {
            Ok(1) => connection
                .prepare_cached("COMMIT")
                .and_then(|mut commit| commit.execute([]))
                .map_err(|error| match error.sqlite_error_code() {
                    Some(rusqlite::ErrorCode::ConstraintViolation) => {
                        StoreError::new(StoreCode::Constraint, error.to_string())
                    }
                    _ => writing(error),
                }),
            Ok(_) => {
                let text = format!("another owner has the tables of {}", self.key);
                Err(StoreError::new(StoreCode::Fenced, text))
            }
            Err(error) => Err(error),
        };
        // The limit applies to pages added later: an error here matters only in the next turn.
        drop(set_most(connection, self.limits.max_file_bytes));
        let mut state = locked(&self.state);
        match ended {
            Ok(_) => {
                state.open_turn = None;
                state.n = n;
                state.pending = Some(record);
                state.ended = Some((id, None));
                Ok(Some(n))
            }
            Err(error) => {
                if connection.is_autocommit() {
                    state.open_turn = None;
                    let turn = state.turn.clone().filter(|turn| turn.id == id);
                    drop(state);
                    if let Some(turn) = turn {
                        *locked(&turn.broken) = Some(undone());
                    }
                }
                Err(error)
            }
        }
    }

    /// Copies a long log into the file without blocking others.
    pub(super) fn tidy(&self) {
        let mut log = self.session.path().as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES) {
            self.session.tell(|connection| {
                // The next turn tries again.
                drop(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
            });
        }
    }

    /// Runs the agent's missing migrations.
    ///
    /// # Errors
    /// [`StoreCode::Unreadable`] for tables of a later version, and those of statements.
    pub(super) async fn migrate(
        self: &Arc<Self>,
        migrations: Vec<String>,
    ) -> Result<(), StoreError> {
        let done = self.ask(move |file, connection| {
            file.undo(connection)?;
            connection
                .execute_batch("BEGIN IMMEDIATE")
                .map_err(reading)?;
            let done = file.migrate_now(connection, migrations);
            let end = match done {
                Ok(()) => "COMMIT",
                Err(_) => "ROLLBACK",
            };
            if !connection.is_autocommit() {
                connection.execute_batch(end).map_err(writing)?;
            }
            done
        });
        done.await.map_err(|error| of_file(&error))?
    }

    fn migrate_now(
        &self,
        connection: &Connection,
        migrations: Vec<String>,
    ) -> Result<(), StoreError> {
        self.check_owner(connection)?;
        let find = "SELECT version FROM a99_turn WHERE id = 1";
        let version: i64 = connection
            .query_row(find, [], |row| row.get(0))
            .map_err(reading)?;
        let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
        if version > known {
            let text = format!(
                "the tables of {} have version {version}; this agent knows {known}: run the one \
                 that wrote them, or a later one",
                self.key
            );
            return Err(StoreError::new(StoreCode::Unreadable, text));
        }
        for (n, sql) in (0..).zip(migrations).filter(|(n, _)| *n >= version) {
            let nobody = || Arc::new(AtomicBool::new(false));
            let running = Arc::new(Running::new(nobody(), nobody(), None, &self.limits));
            let statement = Statement {
                sql,
                params: Vec::new(),
                steps: None,
                is_repeatable: false,
            };
            let done = self.as_agent(connection, running, |sql| sql.exec(&statement));
            let done = done.and_then(|()| match connection.is_autocommit() {
                true => Err(undone()),
                false => Ok(()),
            });
            done.map_err(|error| {
                let text = format!("migration {} of {}: {error}", n + 1, self.key);
                StoreError::new(error.code(), text)
            })?;
        }
        Control::as_runtime(connection).map_err(reading)?;
        let sql = "UPDATE a99_turn SET version = ?1 WHERE id = 1";
        connection.execute(sql, [known]).map_err(writing).map(drop)
    }
}

/// Limits the size of the file.
fn set_most(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = bytes / page.max(1).unsigned_abs();
    let pages = i64::try_from(pages.max(1)).unwrap_or(i64::MAX);
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}
