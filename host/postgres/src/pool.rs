//! Connections: made when they are needed, used again, and given up when nobody knows what
//! state they are in.

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

/// How often work is begun anew because others were in the way.
const MAX_ATTEMPTS: u32 = 20;

/// After this time a connection that nobody used is asked whether it still is one.
const FRESH: Duration = Duration::from_secs(1);

/// After this time a connection that nobody used is closed.
const STALE: Duration = Duration::from_secs(600);

/// After this time what was given up and is not over is cancelled once more.
const CANCEL_AGAIN: Duration = Duration::from_millis(50);

/// Longest pause before another attempt.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Work on a connection.
pub(crate) trait Call: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Whether it changes anything: then nobody knows what a broken connection left.
    const WRITES: bool;

    /// Does it, from the beginning each time.
    fn run(
        &self,
        connection: &mut Connection,
    ) -> impl Future<Output = Result<Self::Output, PostgresError>> + Send;
}

/// A connection to the server, and the statements that it has prepared.
pub(crate) struct Connection {
    pub(crate) client: Client,
    cancel: CancelToken,
    driver: JoinHandle<()>,
    /// Why it ended, if it did by itself.
    broken: Arc<OnceLock<PostgresError>>,
    pub(crate) statements: HashMap<&'static str, Statement>,
    used: Instant,
}

impl Connection {
    /// The statement of a text.
    pub(crate) async fn prepare(&mut self, sql: &'static str) -> Result<Statement, PostgresError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

/// The connections to a server, at most as many as its options allow.
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
            // A server that vanished is no longer waited for.
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

    /// The same error with the place of the server, unless it is for programs.
    pub(crate) fn placed(&self, error: PostgresError) -> PostgresError {
        match error.code() {
            PostgresCode::Input | PostgresCode::Quota | PostgresCode::Stopped => error,
            _ => error.at(&self.place),
        }
    }

    /// Does work on a connection, again where others were in the way. Dropped in between,
    /// it is given up on the server too.
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

    /// Tells in `is_asked` whether the server is at work.
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
                // What only reads may be done twice.
                Fate::Lost if !C::WRITES && attempt == 1 => {}
                Fate::Lost if C::WRITES => return Err(in_doubt(&error.to_string())),
                _ => return Err(error),
            }
        }
    }

    /// A connection that works, as far as can be known.
    async fn lease(self: &Arc<Pool>) -> Result<Lease, PostgresError> {
        let permits = Arc::clone(&self.permits);
        // What it waits for is bounded by the time of the call.
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

    /// The connection that was used last, unless it has ended.
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
                // Nothing was asked of it yet.
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

    /// Lets nobody in any more, and closes connections; waits for a moment until the
    /// server was told.
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
    /// Why a connection was lost, of which a caller learns only that it is closed.
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

    /// Closes it in the middle of something. A server passes over a cancellation that comes
    /// before what it is meant for, so it is told until it is done.
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

/// Sleeps longer each time, and never as long as others do.
async fn pause(attempt: u32) {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let part = f64::from(nanos.wrapping_mul(0x9E37_79B9) >> 24) / 256.0;
    let base = Duration::from_millis(2).saturating_mul(1 << attempt.min(10));
    sleep(base.min(MAX_PAUSE).mul_f64(0.5 + part / 2.0)).await;
}

/// A connection that is in use. One that nobody gave back may be in the middle of
/// something: what it does is cancelled, and it is closed.
struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    /// Whether nothing was asked of it.
    is_known: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    fn connection(&mut self) -> Result<&mut Connection, PostgresError> {
        self.connection.as_mut().ok_or_else(stopped)
    }

    /// Whether the server still answers.
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
        // Its place is taken until the server is done with it.
        self.pool.handle.spawn(async move {
            let time = pool.connect_timeout.saturating_mul(2);
            drop(timeout(time, connection.give_up(&pool.tls)).await);
            drop(permit);
        });
    }
}
