//! Locks that a process holds on a database as long as it is connected.

use crate::error::{Fate, PostgresCode, PostgresError};
use crate::pool::Pool;
use crate::runtime::Task;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;

/// Interval at which the connection of a lock is checked.
const LOOK: Duration = Duration::from_secs(2);

/// How long a check may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Pause before a lost lock is taken again, and interval at which a closed connection is noticed:
/// the first process that reaches a restarted server gets the lock.
const AGAIN: Duration = Duration::from_millis(100);

/// The server ends the connection of a machine that vanished after about 15 seconds.
const TAKE: &str = "SET tcp_keepalives_idle TO 5; SET tcp_keepalives_interval TO 3;
    SET tcp_keepalives_count TO 3; SET tcp_user_timeout TO 15000";

const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || $1, 0))";
const SHARE: &str =
    "SELECT pg_try_advisory_lock_shared(hashtextextended(current_schema() || $1, 0))";

/// A lock, which ends when this is dropped or the process ends.
///
/// After a lost connection it is taken again as soon as it is free. Meanwhile another process
/// may have held it: what it protects needs a fencing token, too.
#[derive(Debug)]
pub struct HeldLock {
    _task: Task<()>,
}

/// Takes the lock of a name and keeps it. Reports whether it was free.
pub(crate) async fn hold(
    pool: Arc<Pool>,
    name: &'static str,
    is_shared: bool,
    taken: oneshot::Sender<Result<bool, PostgresError>>,
) -> Result<(), PostgresError> {
    let first = take(&pool, name, is_shared).await;
    let (mut held, answer) = match first {
        Ok((client, is_free)) => (is_free.then_some(client), Ok(is_free)),
        Err(error) => (None, Err(pool.placed(error))),
    };
    let goes_on = held.is_some();
    if taken.send(answer).is_err() || !goes_on {
        return Ok(());
    }
    let mut looked = Instant::now();
    loop {
        sleep(AGAIN).await;
        held = match held {
            Some(client) if client.is_closed() => None,
            Some(client) if looked.elapsed() < LOOK => Some(client),
            Some(client) => {
                looked = Instant::now();
                let answer = timeout(ANSWER, client.simple_query("")).await;
                matches!(answer, Ok(Ok(_))).then_some(client)
            }
            None => match take(&pool, name, is_shared).await {
                Ok((client, true)) => Some(client),
                Ok((_, false)) | Err(_) => None,
            },
        };
    }
}

async fn take(pool: &Pool, name: &str, is_shared: bool) -> Result<(Client, bool), PostgresError> {
    let work = async {
        let client = pool.dial().await?;
        client.batch_execute(TAKE).await?;
        let lock = if is_shared { SHARE } else { LOCK };
        let is_free = client.query_one(lock, &[&name]).await?.try_get(0)?;
        Ok((client, is_free))
    };
    timeout(ANSWER, work).await.unwrap_or_else(|_| {
        let error = PostgresError::new(PostgresCode::Unreachable, "connecting took too long");
        Err(error.with_fate(Fate::Kept))
    })
}

impl HeldLock {
    pub(crate) fn new(task: Task<()>) -> HeldLock {
        HeldLock { _task: task }
    }
}
