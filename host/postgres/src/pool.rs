//! Connection pool: connects on demand, reuses connections, and discards one whose state is
//! unknown.

use crate::error::{Fate, PostgresCode, PostgresError};
use crate::options::PostgresOptions;
use crate::tls::Tls;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{CancelToken, Client, Config, Statement};

/// Most attempts of work that conflicts with other transactions.
const MAX_ATTEMPTS: u32 = 20;

/// Idle time after which a connection is checked before its next use.
const FRESH: Duration = Duration::from_secs(1);

/// Idle time after which a connection is closed.
const STALE: Duration = Duration::from_secs(600);

/// Interval at which the cancellation of running work is repeated.
const CANCEL_AGAIN: Duration = Duration::from_millis(50);

/// Longest pause before a retry.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Work on a connection.
pub(crate) trait Call: Send + Sync + 'static {
    type Output: Send + 'static;

    /// True if the work changes data: a broken connection then leaves its outcome unknown.
    const WRITES: bool;

    /// Runs the work, from the beginning in each attempt.
    fn run(
        &self,
        connection: &mut Connection,
    ) -> impl Future<Output = Result<Self::Output, PostgresError>> + Send;
}

/// A connection with its prepared statements.
pub(crate) struct Connection {
    pub(crate) client: Client,
    cancel: CancelToken,
    driver: JoinHandle<()>,
    /// The error that ended the connection, if any.
    broken: Arc<OnceLock<PostgresError>>,
    pub(crate) statements: HashMap<&'static str, Statement>,
    used: Instant,
}

impl Connection {
    /// Prepares a statement once for each connection.
    pub(crate) async fn prepare(&mut self, sql: &'static str) -> Result<Statement, PostgresError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

/// Pool of connections to a server, bounded by its options.
pub(crate) struct Pool {
    config: Config,
    tls: Tls,
    settings: String,
    place: String,
    connect_timeout: Duration,
    call_timeout: Duration,
    handle: Handle,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(options: &PostgresOptions, handle: Handle) -> Result<Pool, PostgresError> {
        options.check()?;
        let mut config = options.config.clone();
        config.connect_timeout(options.connect_timeout);
        if config.get_tcp_user_timeout().is_none() {
            // Bounds the wait for a server that vanished.
            config.tcp_user_timeout(options.connect_timeout);
        }
        let tls = Tls::new(options.verify, &options.trust)?.meter(&mut config);
        Ok(Pool {
            config,
            tls,
            settings: options.settings(),
            place: options.place(),
            connect_timeout: options.connect_timeout,
            call_timeout: options
                .connect_timeout
                .saturating_add(options.statement_timeout),
            handle,
            permits: Arc::new(Semaphore::new(options.connections.clamp(1, 10_000))),
            idle: Mutex::default(),
        })
    }

    /// Adds the server's place to an error, unless programs see it.
    pub(crate) fn placed(&self, error: PostgresError) -> PostgresError {
        match error.code() {
            PostgresCode::Input | PostgresCode::Quota | PostgresCode::Stopped => error,
            _ => error.at(&self.place),
        }
    }

    /// Runs work on a connection and retries conflicts. Dropping the future cancels the work on
    /// the server.
    pub(crate) async fn run<C: Call>(self: Arc<Pool>, call: C) -> Result<C::Output, PostgresError> {
        let is_asked = AtomicBool::new(false);
        let done = match timeout(self.call_timeout, self.attempts(&call, &is_asked)).await {
            Ok(done) => done,
            Err(_) if !is_asked.load(Ordering::Relaxed) => Err(PostgresError::new(
                PostgresCode::Busy,
                "all connections were in use, or nothing else came to an end",
            )),
            Err(_) if C::WRITES => Err(in_doubt("it did not end in time")),
            Err(_) => Err(PostgresError::new(
                PostgresCode::Timeout,
                "it did not end in time",
            )),
        };
        done.map_err(|error| self.placed(error))
    }

    /// Sets `is_asked` while the server works.
    async fn attempts<C: Call>(
        self: &Arc<Pool>,
        call: &C,
        is_asked: &AtomicBool,
    ) -> Result<C::Output, PostgresError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut lease = self.lease().await?;
            is_asked.store(true, Ordering::Relaxed);
            let done = call.run(lease.connection()?).await;
            is_asked.store(false, Ordering::Relaxed);
            let error = match done {
                Ok(output) => {
                    lease.give_back();
                    return Ok(output);
                }
                Err(error) => lease.connection()?.why(error),
            };
            if error.fate() != Fate::Lost {
                lease.give_back();
            }
            match error.fate() {
                Fate::Conflict if attempt < MAX_ATTEMPTS => pause(attempt).await,
                // Only read-only work may run twice.
                Fate::Lost if !C::WRITES && attempt == 1 => {}
                Fate::Lost if C::WRITES => return Err(in_doubt(&error.to_string())),
                _ => return Err(error),
            }
        }
    }

    /// Leases a connection that recently worked, was checked, or is new.
    async fn lease(self: &Arc<Pool>) -> Result<Lease, PostgresError> {
        let permits = Arc::clone(&self.permits);
        // The timeout of the call bounds this wait.
        let permit = permits.acquire_owned().await.map_err(|_| stopped())?;
        let mut lease = Lease {
            pool: Arc::clone(self),
            connection: None,
            is_known: true,
            permit: Some(permit),
        };
        while let Some(connection) = self.take_idle() {
            let is_fresh = connection.used.elapsed() < FRESH;
            lease.connection = Some(connection);
            if is_fresh || lease.works().await {
                lease.is_known = false;
                return Ok(lease);
            }
            lease.connection = None;
        }
        lease.connection = Some(self.connect().await?);
        lease.is_known = false;
        Ok(lease)
    }

    /// The most recently used connection that is still open.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|connection| {
            !connection.client.is_closed() && connection.used.elapsed() < STALE
        });
        idle.pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects; waits for a server that is starting.
    async fn connect(&self) -> Result<Connection, PostgresError> {
        let started = Instant::now();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let rest = self.connect_timeout.saturating_sub(started.elapsed());
            let connected = timeout(rest, self.connect_once()).await;
            match connected.unwrap_or_else(|_| Err(too_slow())) {
                Err(error)
                    if error.fate() == Fate::Starting
                        && started.elapsed() < self.connect_timeout =>
                {
                    pause(attempt).await;
                }
                // Connecting sends no work, so the outcome is known.
                Err(error) => return Err(error.with_fate(Fate::Kept)),
                Ok(connection) => return Ok(connection),
            }
        }
    }

    async fn connect_once(&self) -> Result<Connection, PostgresError> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        let broken = Arc::<OnceLock<PostgresError>>::default();
        let why = Arc::clone(&broken);
        let driver = self.handle.spawn(async move {
            if let Err(error) = connection.await {
                drop(why.set(error.into()));
            }
        });
        let connection = Connection {
            cancel: client.cancel_token(),
            client,
            driver,
            broken,
            statements: HashMap::new(),
            used: Instant::now(),
        };
        let set = connection.client.batch_execute(&self.settings).await;
        set.map_err(|error| connection.why(error.into()))?;
        Ok(connection)
    }

    /// A connection outside the pool, which ends when its client is dropped.
    pub(crate) async fn dial(&self) -> Result<Client, PostgresError> {
        Ok(self.connect_once().await?.client)
    }

    /// Stops new leases and closes idle connections; waits briefly for the server to receive
    /// that.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        let closing = async {
            for connection in idle {
                connection.close().await;
            }
        };
        drop(timeout(MAX_PAUSE, closing).await);
    }
}

impl Connection {
    /// The error behind a lost connection; callers would otherwise see only that it is closed.
    fn why(&self, error: PostgresError) -> PostgresError {
        match self.broken.get() {
            Some(broken) if error.fate() == Fate::Lost => broken.clone(),
            _ => error,
        }
    }

    async fn close(self) {
        drop(self.client);
        drop(self.driver.await);
    }

    /// Closes a connection in the middle of work. A server ignores a cancellation that arrives
    /// before its statement, so it is repeated until the connection ends.
    async fn give_up(mut self, tls: &Tls) {
        drop(self.client);
        loop {
            drop(self.cancel.cancel_query(tls.clone()).await);
            if timeout(CANCEL_AGAIN, &mut self.driver).await.is_ok() {
                return;
            }
        }
    }
}

fn too_slow() -> PostgresError {
    PostgresError::new(PostgresCode::Unreachable, "connecting took too long")
}

fn in_doubt(why: &str) -> PostgresError {
    let message = format!("nobody knows whether this was written: {why}");
    PostgresError::new(PostgresCode::InDoubt, message)
}

pub(crate) fn stopped() -> PostgresError {
    PostgresError::new(
        PostgresCode::Stopped,
        "the store was closed, or the work given up",
    )
}

/// Sleeps with exponential back-off and jitter.
async fn pause(attempt: u32) {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let part = f64::from(nanos.wrapping_mul(0x9E37_79B9) >> 24) / 256.0;
    let base = Duration::from_millis(2).saturating_mul(1 << attempt.min(10));
    sleep(base.min(MAX_PAUSE).mul_f64(0.5 + part / 2.0)).await;
}

/// A connection in use. Dropping the lease without giving it back cancels its work and closes
/// it, because it may be in the middle of a statement.
struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    /// True while the connection has been sent no work.
    is_known: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    fn connection(&mut self) -> Result<&mut Connection, PostgresError> {
        self.connection.as_mut().ok_or_else(stopped)
    }

    /// True if the server still answers.
    async fn works(&self) -> bool {
        let Some(connection) = &self.connection else {
            return false;
        };
        let check = connection.client.check_connection();
        matches!(timeout(self.pool.connect_timeout, check).await, Ok(Ok(())))
    }

    fn give_back(mut self) {
        if let Some(mut connection) = self.connection.take()
            && !connection.client.is_closed()
            && !self.pool.permits.is_closed()
        {
            connection.used = Instant::now();
            self.pool.idle().push(connection);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(connection), Some(permit)) = (self.connection.take(), self.permit.take()) else {
            return;
        };
        if self.is_known || connection.client.is_closed() {
            return;
        }
        let pool = Arc::clone(&self.pool);
        // The permit stays taken until the server has finished.
        self.pool.handle.spawn(async move {
            let time = pool.connect_timeout.saturating_mul(2);
            drop(timeout(time, connection.give_up(&pool.tls)).await);
            drop(permit);
        });
    }
}
