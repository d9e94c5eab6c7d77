//! Statements of agents: prepared under the policy, run within limits, with rows as JSON.

use super::policy::{Control, Running, is_hidden};
use super::values::{to_json, to_sql};
use crate::options::TableLimits;
use a99_runtime_engine::{Row, RunResult, Statement, StoreCode, StoreError};
use a99_sqlite::rusqlite::fallible_iterator::FallibleIterator;
use a99_sqlite::rusqlite::{self, Batch, Connection, ErrorCode, StatementStatus};
use serde_json::Value;
use std::sync::Arc;

/// Maximum characters of an error's text.
const MAX_SHOWN: usize = 300;

/// An agent's work on a connection, in its transaction.
pub(super) struct Sql<'a> {
    pub(super) file: &'a Connection,
    pub(super) control: &'a Control,
    pub(super) limits: &'a TableLimits,
    pub(super) running: &'a Arc<Running>,
}

fn input(text: impl Into<String>) -> StoreError {
    StoreError::new(StoreCode::Input, text)
}

fn too_large(text: impl Into<String>) -> StoreError {
    StoreError::new(StoreCode::TooLarge, text)
}

impl Sql<'_> {
    /// Runs all statements of a text.
    pub(super) fn exec(&self, statement: &Statement) -> Result<(), StoreError> {
        let mut batch = Batch::new(self.file, &statement.sql);
        while let Some(mut prepared) = self.prepare(&mut batch, statement)? {
            if prepared.parameter_count() > 0 {
                let text = "statements of exec take no parameters: run one by one with `run`";
                return Err(input(text));
            }
            self.all_rows(&mut prepared, statement, |_| Ok(true))?;
        }
        Ok(())
    }

    /// Runs one statement.
    pub(super) fn run(&self, statement: Statement) -> Result<RunResult, StoreError> {
        let before = self.file.total_changes();
        self.one(statement, |_| Ok(true))?;
        let changes = match self.file.total_changes() == before {
            // `changes` keeps the count of the previous statement if this one changes no rows.
            true => 0,
            false => self.file.changes(),
        };
        Ok(RunResult {
            changes,
            last_insert_rowid: self.file.last_insert_rowid(),
        })
    }

    /// The rows of one statement.
    pub(super) fn query(&self, statement: Statement, first: bool) -> Result<Vec<Row>, StoreError> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let limits = self.limits;
        self.one(statement, |row| {
            let (row, size) = json_row(row)?;
            bytes = bytes.saturating_add(size);
            if bytes > limits.max_result_bytes {
                let most = limits.max_result_bytes;
                let text = format!("the rows have more than {most} bytes: select less at a time");
                return Err(too_large(text));
            }
            if rows.len() >= limits.max_rows {
                let most = limits.max_rows;
                let text =
                    format!("there are more than {most} rows: add LIMIT, and go on after it");
                return Err(too_large(text));
            }
            rows.push(row);
            Ok(!first)
        })?;
        Ok(rows)
    }

    fn one(
        &self,
        statement: Statement,
        row: impl FnMut(&rusqlite::Row<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let mut batch = Batch::new(self.file, &statement.sql);
        let Some(mut prepared) = self.prepare(&mut batch, &statement)? else {
            return Err(input("there is no statement in the text"));
        };
        if self.prepare(&mut batch, &statement)?.is_some() {
            return Err(input("there are several statements: exec runs them"));
        }
        let (wanted, given) = (prepared.parameter_count(), statement.params.len());
        if wanted != given {
            let text = format!("the statement has {wanted} parameters, and {given} are given");
            return Err(input(text));
        }
        for (at, value) in statement.params.iter().enumerate() {
            let value = to_sql(at + 1, value.clone())?;
            let bound = prepared.raw_bind_parameter(at + 1, value);
            bound.map_err(|error| self.failed(&error))?;
        }
        self.all_rows(&mut prepared, &statement, row)
    }

    /// Prepares the next statement of a text.
    fn prepare<'c>(
        &self,
        batch: &mut Batch<'c, '_>,
        statement: &Statement,
    ) -> Result<Option<rusqlite::Statement<'c>>, StoreError> {
        if statement.sql.len() > self.limits.max_sql_bytes {
            let most = self.limits.max_sql_bytes;
            return Err(too_large(format!(
                "the statement has more than {most} bytes"
            )));
        }
        if statement.sql.contains('\0') {
            return Err(input("the statement has a character of the code 0"));
        }
        self.control.begin(statement.is_repeatable);
        let prepared = batch.next().map_err(|error| self.failed(&error))?;
        if prepared.as_ref().is_some_and(|one| one.is_explain() != 0) {
            return Err(input("EXPLAIN is not for the tables of an agent"));
        }
        Ok(prepared)
    }

    /// Runs a statement to its end, or until `f` wants no more rows.
    fn all_rows(
        &self,
        prepared: &mut rusqlite::Statement<'_>,
        statement: &Statement,
        mut f: impl FnMut(&rusqlite::Row<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let alters = self.control.alters();
        let mut rows = prepared.raw_query();
        let done = loop {
            match rows.next() {
                Ok(None) => break Ok(()),
                Ok(Some(row)) => match f(row) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                },
                Err(error) => break Err(self.failed(&error)),
            }
        };
        drop(rows);
        if let Some(steps) = &statement.steps {
            let taken = prepared.get_status(StatementStatus::VmStep);
            steps.add(u64::try_from(taken).unwrap_or_default());
        }
        match (alters, done) {
            (true, Ok(())) => self.names_are_free(),
            (_, done) => done,
        }
    }

    /// Checks after a rename that no table has a reserved name.
    fn names_are_free(&self) -> Result<(), StoreError> {
        let sql = "SELECT name FROM sqlite_schema WHERE name NOT IN ('a99_component', 'a99_turn')";
        let seen = self.control.aside(|| -> rusqlite::Result<Option<String>> {
            let mut find = self.file.prepare(sql)?;
            let mut names = find.query([])?;
            while let Some(row) = names.next()? {
                let name: String = row.get(0)?;
                if is_hidden(&name) {
                    return Ok(Some(name));
                }
            }
            Ok(None)
        });
        match seen.map_err(|error| self.failed(&error))? {
            None => Ok(()),
            Some(name) => {
                // The changes must not commit even if the agent ignores the error.
                let undone = self.control.aside(|| self.file.execute_batch("ROLLBACK"));
                undone.map_err(|error| self.failed(&error))?;
                Err(input(format!(
                    "{name} is a name of the runtime's: the turn's changes are given up"
                )))
            }
        }
    }

    /// Converts an error for the agent.
    pub(super) fn failed(&self, error: &rusqlite::Error) -> StoreError {
        if let Some(why) = self.control.refused() {
            return input(why);
        }
        let text = said(error);
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => self.running.why(self.limits),
            Some(ErrorCode::ConstraintViolation) => StoreError::new(StoreCode::Constraint, text),
            Some(ErrorCode::TooBig) => too_large(format!(
                "{text}: a value has at most {} bytes, a statement {}",
                self.limits.max_value_bytes, self.limits.max_sql_bytes
            )),
            Some(ErrorCode::OutOfMemory) => too_large(text),
            Some(ErrorCode::DiskFull) if self.is_full() => too_large(format!(
                "the tables would take more than {} bytes, and what the turn changed is undone: \
                 delete rows first",
                self.limits.max_file_bytes
            )),
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen,
            ) => StoreError::new(StoreCode::Unavailable, text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::new(StoreCode::Unreadable, text)
            }
            _ => input(text),
        }
    }

    /// Whether the file has reached its size limit.
    fn is_full(&self) -> bool {
        let pragma = |name: &str| -> rusqlite::Result<i64> {
            self.file.pragma_query_value(None, name, |row| row.get(0))
        };
        let looked = self
            .control
            .aside(|| Ok((pragma("page_count")?, pragma("max_page_count")?)));
        let looked: rusqlite::Result<(i64, i64)> = looked;
        // A rolled-back statement may have needed several pages, which are not counted any
        // more.
        looked.is_ok_and(|(pages, most)| pages.saturating_add(FULL_WITHIN) >= most)
    }
}

/// Pages that a failed statement may have needed.
const FULL_WITHIN: i64 = 1 << 10;

/// SQLite's message, with the position in the text if it gives one.
fn said(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => {
            format!("{msg}, at byte {offset}")
        }
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        error => error.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// A row as JSON, and its size.
fn json_row(row: &rusqlite::Row<'_>) -> Result<(Row, usize), StoreError> {
    let statement = row.as_ref();
    let (mut found, mut bytes) = (Row::new(), 2_usize);
    for at in 0..statement.column_count() {
        let name = statement.column_name(at).unwrap_or_default();
        let value = row.get_ref(at).map_err(|error| input(error.to_string()))?;
        let (value, size) = to_json(name, value)?;
        bytes = bytes.saturating_add(size).saturating_add(name.len() + 4);
        let _: Option<Value> = found.insert(name.to_owned(), value);
    }
    Ok((found, bytes))
}
