//! Transactions of other crates: work on a thread that sends one statement after another to the
//! server.

use crate::error::{Fate, PostgresCode, PostgresError};
use crate::pool::{Call, Connection, stopped};
use futures_util::TryStreamExt;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, IsolationLevel, Row, Statement, Transaction};

/// Parameters of a statement; the first is `$1`.
pub type Parameters = Vec<Box<dyn ToSql + Send + Sync>>;

/// Batches in flight to the thread, and the rows and approximate bytes of a batch.
const BATCHES: usize = 2;
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 256 << 10;

/// A statement with the channel of its answer.
struct Asked {
    sql: &'static str,
    parameters: Parameters,
    answer: mpsc::Sender<Answer>,
}

/// Part of a statement's answer; an answer without [`Answer::Done`] broke off.
enum Answer {
    Rows(Vec<Row>),
    /// Number of rows changed or returned.
    Done(u64),
    Failed(PostgresError),
}

/// A transaction for work on a dedicated thread. The work may run again from the beginning
/// after a conflict.
pub struct Tx {
    asks: mpsc::Sender<Asked>,
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

impl Tx {
    /// Fails once the caller gave up; long work calls it regularly.
    ///
    /// # Errors
    /// [`PostgresCode::Stopped`]
    pub fn go_on(&self) -> Result<(), PostgresError> {
        match self.asks.is_closed() {
            true => Err(stopped()),
            false => Ok(()),
        }
    }

    /// Yields the rows of a statement in order until `f` has enough. The server still sends the
    /// rest, so bound the statement with a `LIMIT`.
    ///
    /// # Errors
    /// Errors of the server and of `f`.
    pub fn query(
        &self,
        sql: &'static str,
        parameters: Parameters,
        mut f: impl FnMut(&Row) -> Result<ControlFlow<()>, PostgresError>,
    ) -> Result<(), PostgresError> {
        let mut answers = self.ask(sql, parameters)?;
        loop {
            match answers.blocking_recv() {
                Some(Answer::Rows(rows)) => {
                    for row in &rows {
                        if f(row)?.is_break() {
                            return Ok(());
                        }
                    }
                }
                Some(Answer::Done(_)) => return Ok(()),
                Some(Answer::Failed(error)) => return Err(error),
                None => return Err(stopped()),
            }
        }
    }

    /// Runs a statement; returns the number of changed rows.
    ///
    /// # Errors
    /// Errors of the server.
    pub fn execute(&self, sql: &'static str, parameters: Parameters) -> Result<u64, PostgresError> {
        let mut answers = self.ask(sql, parameters)?;
        loop {
            match answers.blocking_recv() {
                Some(Answer::Rows(_)) => {}
                Some(Answer::Done(count)) => return Ok(count),
                Some(Answer::Failed(error)) => return Err(error),
                None => return Err(stopped()),
            }
        }
    }

    fn ask(
        &self,
        sql: &'static str,
        parameters: Parameters,
    ) -> Result<mpsc::Receiver<Answer>, PostgresError> {
        let (answer, answers) = mpsc::channel(BATCHES);
        let asked = Asked {
            sql,
            parameters,
            answer,
        };
        self.asks.blocking_send(asked).map_err(|_| stopped())?;
        Ok(answers)
    }
}

impl Asked {
    /// Runs a statement and forwards its rows while the receiver exists.
    async fn answer(
        self,
        transaction: &Transaction<'_>,
        statements: &mut HashMap<&'static str, Statement>,
    ) {
        let last = match self.rows(transaction, statements).await {
            Ok(count) => Answer::Done(count),
            Err(error) => Answer::Failed(error),
        };
        // The receiver may have enough.
        drop(self.answer.send(last).await);
    }

    async fn rows(
        &self,
        transaction: &Transaction<'_>,
        statements: &mut HashMap<&'static str, Statement>,
    ) -> Result<u64, PostgresError> {
        let statement = match statements.get(self.sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = transaction.prepare(self.sql).await?;
                statements.insert(self.sql, statement.clone());
                statement
            }
        };
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|parameter| &**parameter as &(dyn ToSql + Sync));
        let parameters: Vec<_> = parameters.collect();
        let rows = transaction.query_raw(&statement, parameters).await?;
        let mut rows = pin!(rows);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.try_next().await? {
            bytes += row.raw_size_bytes();
            batch.push(row);
            if batch.len() == BATCH_ROWS || bytes >= BATCH_BYTES {
                bytes = 0;
                let rows = Answer::Rows(std::mem::take(&mut batch));
                if self.answer.send(rows).await.is_err() {
                    return Ok(0);
                }
            }
        }
        if !batch.is_empty() {
            drop(self.answer.send(Answer::Rows(batch)).await);
        }
        Ok(rows.rows_affected().unwrap_or(0))
    }
}

/// Work on one snapshot, read-only.
pub(crate) struct Reading<F>(pub(crate) Arc<F>);

/// Work that writes.
pub(crate) struct Writing<F>(pub(crate) Arc<F>);

impl<T, F> Call for Reading<F>
where
    T: Send + 'static,
    F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
{
    type Output = T;
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<T, PostgresError> {
        run(connection, &self.0, true).await
    }
}

impl<T, F> Call for Writing<F>
where
    T: Send + 'static,
    F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
{
    type Output = T;
    const WRITES: bool = true;

    async fn run(&self, connection: &mut Connection) -> Result<T, PostgresError> {
        run(connection, &self.0, false).await
    }
}

async fn begin(client: &mut Client, reads: bool) -> Result<Transaction<'_>, PostgresError> {
    let transaction = client.build_transaction();
    let transaction = match reads {
        true => transaction
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true),
        false => transaction.isolation_level(IsolationLevel::ReadCommitted),
    };
    Ok(transaction.start().await?)
}

async fn run<T, F>(connection: &mut Connection, f: &Arc<F>, reads: bool) -> Result<T, PostgresError>
where
    T: Send + 'static,
    F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
{
    let Connection {
        client, statements, ..
    } = connection;
    let transaction = begin(client, reads).await?;
    let (asks, mut asked) = mpsc::channel(1);
    let f = Arc::clone(f);
    let work = tokio::task::spawn_blocking(move || f(&Tx { asks }));
    // Until the work drops its transaction.
    while let Some(asked) = asked.recv().await {
        asked.answer(&transaction, statements).await;
    }
    let done = work.await.unwrap_or_else(|_| {
        let message = "the work ended in a fault";
        Err(PostgresError::new(PostgresCode::Failed, message))
    });
    match done {
        Ok(output) => {
            transaction.commit().await?;
            Ok(output)
        }
        Err(error) if error.fate() == Fate::Lost => Err(error),
        Err(error) => {
            transaction.rollback().await?;
            Err(error)
        }
    }
}
