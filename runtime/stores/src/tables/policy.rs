//! Authorizer of agents' SQL: which names statements may use, their size limits, and
//! interrupts.
//!
//! Everything not allowed here is refused: SQLite asks for each table, function and kind of
//! statement while it prepares one. Statements of the runtime are prepared while
//! [`Control::as_agent`] is off, and their text never comes from an agent.

use a99_runtime_engine::{StepCount, StoreCode, StoreError};
use a99_sqlite::memory_used;
use a99_sqlite::rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use a99_sqlite::rusqlite::limits::Limit;
use a99_sqlite::rusqlite::{Connection, Result};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use crate::options::TableLimits;
use crate::runtime::locked;

/// The prefix of the runtime's tables.
const HIDDEN: &str = "a99_";

/// Steps of SQLite's machine between two checks for an interrupt: some microseconds.
const LOOK_EVERY: i32 = 1_000;

/// Maximum bytes of a row, text or blob of the runtime: the record of a turn.
const MOST_OF_RUNTIME: i32 = 1_000_000_000;

/// Tables that SQLite creates and that describe the content of the file.
const OF_SQLITE: &[&str] = &["dbstat", "bytecode", "tables_used"];

/// Functions that reach beyond the file, or describe the build of SQLite.
const REFUSED: &[&str] = &[
    "load_extension",
    "fts3_tokenizer",
    "fts5",
    "sqlite_log",
    "sqlite_compileoption_get",
    "sqlite_compileoption_used",
];

/// Functions of time, of chance, and of the connection's actions before the turn.
const NOT_REPEATABLE: &[&str] = &[
    "random",
    "randomblob",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "time",
    "datetime",
    "julianday",
    "unixepoch",
    "strftime",
    "timediff",
    "changes",
    "total_changes",
    "last_insert_rowid",
];

/// State shared by the hooks of a connection and its users.
#[derive(Default)]
pub(super) struct Control {
    as_agent: AtomicBool,
    seen: Mutex<Seen>,
    running: Mutex<Option<Arc<Running>>>,
}

/// Observations about the statement being prepared.
#[derive(Default)]
struct Seen {
    changes: Option<Schema>,
    is_repeatable: bool,
    refused: Option<String>,
}

/// A change of the schema.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Schema {
    Alter,
    Create,
    Drop,
}

/// A running statement, or several.
pub(super) struct Running {
    /// Whether its turn is over.
    over: Arc<AtomicBool>,
    /// Whether its caller is gone.
    pub(super) left: Arc<AtomicBool>,
    /// The step limit, in multiples of `LOOK_EVERY`.
    looks: Mutex<Option<u64>>,
    most_memory: u64,
    stopped: AtomicU8,
}

const BY_END: u8 = 1;
const BY_STEPS: u8 = 2;
const BY_MEMORY: u8 = 3;

impl Running {
    pub(super) fn new(
        over: Arc<AtomicBool>,
        left: Arc<AtomicBool>,
        steps: Option<&StepCount>,
        limits: &TableLimits,
    ) -> Running {
        let every = u64::from(LOOK_EVERY.unsigned_abs());
        Running {
            over,
            left,
            looks: Mutex::new(steps.map(|steps| steps.left() / every)),
            most_memory: memory_used().saturating_add(limits.max_memory_bytes),
            stopped: AtomicU8::new(0),
        }
    }

    /// Whether it must stop.
    fn stops(&self) -> bool {
        let why = if self.over.load(Ordering::Acquire) || self.left.load(Ordering::Relaxed) {
            BY_END
        } else if memory_used() > self.most_memory {
            BY_MEMORY
        } else {
            match &mut *locked(&self.looks) {
                None => return false,
                Some(0) => BY_STEPS,
                Some(left) => {
                    *left -= 1;
                    return false;
                }
            }
        };
        self.stopped.store(why, Ordering::Relaxed);
        true
    }

    /// The error for the reason why it was stopped.
    pub(super) fn why(&self, limits: &TableLimits) -> StoreError {
        let text = match self.stopped.load(Ordering::Relaxed) {
            BY_STEPS => "the statement takes more steps than are paid for: narrow it, or make \
                         an index"
                .to_owned(),
            BY_MEMORY => format!(
                "the statement takes more than {} bytes of memory: select fewer rows, or sort \
                 by an index",
                limits.max_memory_bytes
            ),
            _ => "the statement was stopped: its turn ended, or its time".to_owned(),
        };
        StoreError::new(StoreCode::Interrupted, text)
    }
}

impl Control {
    /// Installs the hooks on a connection, with the limits of agents.
    pub(super) fn put_on(self: &Arc<Self>, file: &mut Connection) -> Result<()> {
        let control = Arc::clone(self);
        file.authorizer(Some(move |asked: AuthContext<'_>| control.judge(&asked)))?;
        let control = Arc::clone(self);
        file.progress_handler(LOOK_EVERY, Some(move || control.must_stop()))
    }

    /// Prepares further statements for an agent, within its limits.
    pub(super) fn as_agent(
        &self,
        file: &Connection,
        limits: &TableLimits,
        running: Arc<Running>,
    ) -> Result<AsAgent<'_>> {
        *locked(&self.running) = Some(running);
        self.as_agent.store(true, Ordering::Release);
        let guard = AsAgent(self);
        set_limits(file, limits)?;
        Ok(guard)
    }

    /// Prepares further statements for the runtime.
    pub(super) fn as_runtime(file: &Connection) -> Result<()> {
        file.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_OF_RUNTIME)?;
        file.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MOST_OF_RUNTIME)?;
        Ok(())
    }

    /// Runs runtime work in the middle of an agent's work.
    pub(super) fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        let was = self.as_agent.swap(false, Ordering::AcqRel);
        let done = f();
        self.as_agent.store(was, Ordering::Release);
        done
    }

    fn must_stop(&self) -> bool {
        self.as_agent.load(Ordering::Acquire)
            && locked(&self.running)
                .as_ref()
                .is_some_and(|running| running.stops())
    }

    /// Begins to prepare a statement.
    pub(super) fn begin(&self, is_repeatable: bool) {
        *locked(&self.seen) = Seen {
            is_repeatable,
            ..Seen::default()
        };
    }

    /// Why the statement was refused.
    pub(super) fn refused(&self) -> Option<String> {
        locked(&self.seen).refused.take()
    }

    /// Whether the statement may rename a table; SQLite does not ask about the new name.
    pub(super) fn alters(&self) -> bool {
        locked(&self.seen).changes == Some(Schema::Alter)
    }

    fn judge(&self, asked: &AuthContext<'_>) -> Authorization {
        if !self.as_agent.load(Ordering::Acquire) {
            return Authorization::Allow;
        }
        let mut seen = locked(&self.seen);
        match judge(asked, &mut seen) {
            Ok(()) => Authorization::Allow,
            Err(why) => {
                seen.refused.get_or_insert(why);
                Authorization::Deny
            }
        }
    }
}

/// Marks statements as an agent's until dropped.
pub(super) struct AsAgent<'a>(&'a Control);

impl Drop for AsAgent<'_> {
    fn drop(&mut self) {
        self.0.as_agent.store(false, Ordering::Release);
        *locked(&self.0.running) = None;
    }
}

fn set_limits(file: &Connection, limits: &TableLimits) -> Result<()> {
    let of = |n: usize| i32::try_from(n).unwrap_or(MOST_OF_RUNTIME);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, of(limits.max_value_bytes)),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, of(limits.max_sql_bytes)),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 16),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        file.set_limit(limit, most)?;
    }
    Ok(())
}

/// Decides on an action that SQLite asks about, with the reason of a refusal.
fn judge(asked: &AuthContext<'_>, seen: &mut Seen) -> std::result::Result<(), String> {
    if asked.database_name == Some("temp") && !is_search(asked.action, seen) {
        return Err(
            "tables, views and triggers that are temporary are not kept with a turn: \
                    make them without TEMP"
                .to_owned(),
        );
    }
    let refuse = |what: &str| Err(format!("{what} is not for the tables of an agent"));
    match asked.action {
        AuthAction::Select | AuthAction::Recursive => Ok(()),
        AuthAction::Function { function_name } => match has(REFUSED, function_name) {
            true => refuse(&format!("the function {function_name}")),
            false if seen.is_repeatable && has(NOT_REPEATABLE, function_name) => Err(format!(
                "{function_name} may give something else when the turn runs again, also as the \
                 default of a column: give the time, or what chance says, as a parameter"
            )),
            false => Ok(()),
        },
        // `CREATE TABLE` finds its row by rowid.
        AuthAction::Read {
            table_name,
            column_name: "ROWID",
        } if is_schema(table_name) && seen.changes.is_some() => Ok(()),
        AuthAction::Read { table_name, .. } => readable(table_name, seen),
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. } => writable(table_name, seen),
        AuthAction::CreateTable { table_name: name }
        | AuthAction::CreateView { view_name: name } => changes(&[name], Schema::Create, seen),
        AuthAction::DropTable { table_name: name } | AuthAction::DropView { view_name: name } => {
            changes(&[name], Schema::Drop, seen)
        }
        AuthAction::CreateIndex {
            index_name: name,
            table_name,
        }
        | AuthAction::CreateTrigger {
            trigger_name: name,
            table_name,
        } => changes(&[name, table_name], Schema::Create, seen),
        AuthAction::DropIndex {
            index_name: name,
            table_name,
        }
        | AuthAction::DropTrigger {
            trigger_name: name,
            table_name,
        } => changes(&[name, table_name], Schema::Drop, seen),
        AuthAction::AlterTable { table_name, .. } => changes(&[table_name], Schema::Alter, seen),
        AuthAction::Reindex { index_name } => visible(index_name),
        AuthAction::Pragma { pragma_name, .. } => refuse(&format!("PRAGMA {pragma_name}")),
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => refuse("another file"),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Err(
            "a turn is one transaction, which its commit ends: leave BEGIN, COMMIT, ROLLBACK \
             and SAVEPOINT out"
                .to_owned(),
        ),
        AuthAction::CreateVtable { module_name, .. }
        | AuthAction::DropVtable { module_name, .. } => {
            refuse(&format!("the virtual table {module_name}"))
        }
        AuthAction::Analyze { .. } => refuse("ANALYZE"),
        _ => refuse("this statement"),
    }
}

/// Whether `ALTER TABLE` is scanning temporary views and triggers, which do not exist here.
fn is_search(action: AuthAction<'_>, seen: &Seen) -> bool {
    let (AuthAction::Read { table_name, .. } | AuthAction::Update { table_name, .. }) = action
    else {
        return false;
    };
    let schema = ["sqlite_temp_master", "sqlite_temp_schema"];
    seen.changes == Some(Schema::Alter) && has(&schema, table_name)
}

fn has(list: &[&str], name: &str) -> bool {
    list.iter().any(|one| one.eq_ignore_ascii_case(name))
}

fn begins_with(name: &str, prefix: &str) -> bool {
    let start = name.as_bytes().get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Whether a name is reserved for the runtime.
pub(super) fn is_hidden(name: &str) -> bool {
    begins_with(name, HIDDEN)
}

fn visible(name: &str) -> std::result::Result<(), String> {
    match is_hidden(name) {
        false => Ok(()),
        true => Err(format!(
            "{name} is the runtime's, as are all names that begin with {HIDDEN}: take another"
        )),
    }
}

fn is_schema(name: &str) -> bool {
    has(&["sqlite_master", "sqlite_schema"], name)
}

/// The schema table is read during a drop or alteration, and only by SQLite: such a statement
/// selects no rows. SQLite refuses all writes to it.
fn of_schema(seen: &Seen) -> std::result::Result<(), String> {
    match seen.changes {
        Some(Schema::Alter | Schema::Drop) => Ok(()),
        Some(Schema::Create) | None => Err(
            "the table of tables is not read: the tables are those that the agent made".to_owned(),
        ),
    }
}

fn readable(table: &str, seen: &Seen) -> std::result::Result<(), String> {
    if is_schema(table) || (begins_with(table, "sqlite_temp_") && seen.changes.is_some()) {
        return of_schema(seen);
    }
    let is_of_sqlite = has(OF_SQLITE, table)
        || begins_with(table, "pragma_")
        || (begins_with(table, "sqlite_") && !has(&["sqlite_sequence"], table));
    match is_of_sqlite {
        true => Err(format!("{table} is not for the tables of an agent")),
        false => visible(table),
    }
}

fn writable(table: &str, seen: &Seen) -> std::result::Result<(), String> {
    match is_schema(table) {
        // SQLite asks about this before it announces the schema change.
        true => Ok(()),
        false => readable(table, seen),
    }
}

fn changes(names: &[&str], change: Schema, seen: &mut Seen) -> std::result::Result<(), String> {
    names.iter().try_for_each(|name| visible(name))?;
    seen.changes.get_or_insert(change);
    Ok(())
}
