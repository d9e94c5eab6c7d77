//! Pusher: sends the events of channels to agents whose hosts sleep between requests.
//!
//! Each agent has a task, and one request in flight. What is slow or fails delays no other agent.

mod admin;
mod call;
mod delivery;
mod file;

pub use admin::{AGENTS, REGISTER, RETRY, UNREGISTER};
pub use file::{Dead, Registration};

use crate::codes::BAD_REGISTRATION;
use crate::fed::locked;
use crate::signature::Secret;
use crate::wire::{SHUTDOWN, Shutdown};
use a99_http::{FetchLimits, HttpFetch, Policy, StreamRequest, rule_for};
use a99_runtime::{AgentError, AgentKey, Host, Seq};
use a99_runtime_engine::Millis;
use file::{Row, unusable};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// How often acknowledged checkpoints are written. After a crash what is older is pushed again,
/// as duplicates.
const SAVE_PAUSE: Duration = Duration::from_secs(1);

/// Options of a pusher.
#[derive(Clone, Debug)]
pub struct PusherOptions {
    /// The file of the registrations.
    pub file: PathBuf,
    /// Where requests may go. A loopback address without TLS must be named by it.
    pub policy: Policy,
    /// The certificate authorities, PEM; the system's without any.
    pub authorities: Vec<u8>,
    /// The limit of a request; more than a receiver takes for one.
    pub timeout: Duration,
    /// Pauses between attempts, which double.
    pub first_pause: Duration,
    /// The longest of them.
    pub max_pause: Duration,
    /// Attempts of one batch, then it becomes a dead letter.
    pub max_attempts: u32,
    /// The time of one batch, then it becomes a dead letter.
    pub max_age: Duration,
    /// Maximum registrations.
    pub max_agents: usize,
}

impl PusherOptions {
    /// To any public address; 30 seconds for a request; pauses of 0.5 to 60 seconds; 20 attempts
    /// or 24 hours; 1,000 agents.
    pub fn new(file: impl Into<PathBuf>) -> PusherOptions {
        PusherOptions {
            file: file.into(),
            policy: Policy::full(),
            authorities: Vec::new(),
            timeout: Duration::from_secs(30),
            first_pause: Duration::from_millis(500),
            max_pause: Duration::from_secs(60),
            max_attempts: 20,
            max_age: Duration::from_secs(24 * 3_600),
            max_agents: 1_000,
        }
    }
}

/// What [`Pusher::list`] says of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The agent.
    pub agent: AgentKey,
    /// Where its events go.
    pub url: String,
    /// Whether it took its `init`.
    pub is_ready: bool,
    /// The last event that it acknowledged.
    pub acknowledged: Seq,
    /// Events after it.
    pub lag: Seq,
    /// When it is called without events.
    pub wake_at: Option<Millis>,
    /// The events that were given up.
    pub dead: Option<Dead>,
    /// Code and message of the last failure, until a request succeeds.
    pub last_error: Option<(String, String)>,
}

/// Pushes events to agents. Clones share it; it stops with the last of them.
#[derive(Clone)]
pub struct Pusher(
    Arc<Inner>,
    #[expect(dead_code, reason = "stops when it is dropped")] Arc<Stop>,
);

/// Ends the tasks, which hold what they use.
struct Stop(Weak<Inner>);

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.abort();
            inner.changed.notify_one();
        }
    }
}

struct Inner {
    host: Host,
    options: PusherOptions,
    fetch: HttpFetch,
    agents: Mutex<BTreeMap<AgentKey, (Arc<Agent>, AbortHandle)>>,
    changed: Arc<Notify>,
    saving: tokio::sync::Mutex<()>,
    weak: Weak<Inner>,
}

/// A registered agent.
struct Agent {
    row: Mutex<Row>,
    secret: Secret,
    fetch: HttpFetch,
    last_error: Mutex<Option<(String, String)>>,
    /// Notified when its dead letters are to be tried again, or a failed request at once.
    retry: Notify,
}

impl std::fmt::Debug for Pusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pusher").finish_non_exhaustive()
    }
}

fn bad(message: impl std::fmt::Display) -> AgentError {
    AgentError::new(BAD_REGISTRATION, message.to_string()).fatal()
}

/// Refuses an address that no request may go to.
fn check_url(url: &str) -> Result<(), AgentError> {
    let rule = rule_for(url).map_err(bad)?;
    StreamRequest::post(url, []).check().map_err(bad)?;
    let host = rule.rsplit_once(':').map_or(&*rule, |(host, _)| host);
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_loopback = host == "localhost" || address.is_some_and(|ip| ip.is_loopback());
    match url.starts_with("https://") || is_loopback {
        true => Ok(()),
        false => Err(bad("an address beyond the loopback needs https")),
    }
}

impl Pusher {
    /// Reads the registrations and starts to push.
    ///
    /// # Errors
    /// `push.bad_registration` if the file is damaged or cannot be read, or the authorities
    /// cannot.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open(host: Host, options: PusherOptions) -> Result<Pusher, AgentError> {
        let rows = file::read(&options.file)?;
        let limits = FetchLimits {
            max_requests: None,
            max_hosts: None,
            ..FetchLimits::default()
        };
        let policy = options.policy.clone();
        let mut fetch = HttpFetch::builder().policy(policy).limits(limits);
        if !options.authorities.is_empty() {
            fetch = fetch.ca_pem(&options.authorities);
        }
        let fetch = fetch.build().map_err(bad)?;
        let changed = Arc::new(Notify::new());
        let inner = Arc::new_cyclic(|weak| Inner {
            host,
            options,
            fetch,
            agents: Mutex::default(),
            changed: Arc::clone(&changed),
            saving: tokio::sync::Mutex::const_new(()),
            weak: weak.clone(),
        });
        let stop = Arc::new(Stop(Arc::downgrade(&inner)));
        let pusher = Pusher(inner, stop);
        for row in rows {
            pusher.0.start(row)?;
        }
        let weak = Arc::downgrade(&pusher.0);
        tokio::spawn(async move {
            loop {
                changed.notified().await;
                let Some(inner) = weak.upgrade() else { return };
                // What cannot be written now is written with the next change.
                drop(inner.save().await);
                drop(inner);
                tokio::time::sleep(SAVE_PAUSE).await;
            }
        });
        Ok(pusher)
    }

    /// Registers an agent, or changes its registration: it continues where it was. This is
    /// durable when it returns.
    ///
    /// # Errors
    /// `push.bad_registration`
    pub async fn add(&self, registration: Registration) -> Result<(), AgentError> {
        check_url(&registration.url)?;
        Secret::parse(&registration.secret)?;
        let mut row = Row::new(registration);
        let key = row.registration.agent.clone();
        {
            let mut agents = locked(&self.0.agents);
            if agents.len() >= self.0.options.max_agents && !agents.contains_key(&key) {
                let most = self.0.options.max_agents;
                return Err(bad(format!("at most {most} agents are registered")));
            }
            if let Some((before, task)) = agents.remove(&key) {
                task.abort();
                let before = locked(&before.row);
                row.acknowledged = before.acknowledged;
                row.dead.clone_from(&before.dead);
            }
        }
        self.0.start(row)?;
        self.0.save().await
    }

    /// Removes an agent, and sends its receiver a `shutdown`, once. Gives whether it was there.
    ///
    /// # Errors
    /// `push.bad_registration` if the file cannot be written.
    pub async fn remove(&self, key: &AgentKey) -> Result<bool, AgentError> {
        let Some((agent, task)) = locked(&self.0.agents).remove(key) else {
            return Ok(false);
        };
        task.abort();
        self.0.save().await?;
        let shutdown = Shutdown { agent: key.clone() };
        // A receiver that is away has no events to handle any more.
        drop(self.0.call(&agent, SHUTDOWN, &shutdown).await);
        let left = self.0.host.leave(key.channel(), key.participant());
        left.await?;
        Ok(true)
    }

    /// All registered agents.
    ///
    /// # Errors
    /// Errors of the store of the channels.
    pub async fn list(&self) -> Result<Vec<Status>, AgentError> {
        let agents: Vec<_> = locked(&self.0.agents)
            .values()
            .map(|(agent, _)| Arc::clone(agent))
            .collect();
        let mut all = Vec::with_capacity(agents.len());
        for agent in agents {
            let row = locked(&agent.row).clone();
            let key = row.registration.agent;
            let head = self.0.host.channel_store().head(key.channel()).await?;
            all.push(Status {
                lag: head.saturating_sub(row.acknowledged),
                agent: key,
                url: row.registration.url,
                is_ready: row.is_ready,
                acknowledged: row.acknowledged,
                wake_at: row.wake_at,
                dead: row.dead,
                last_error: locked(&agent.last_error).clone(),
            });
        }
        Ok(all)
    }

    /// Pushes the dead letters of an agent again, and ends its pause. Gives whether it is there.
    #[must_use]
    pub fn retry(&self, key: &AgentKey) -> bool {
        let agents = locked(&self.0.agents);
        let Some((agent, _)) = agents.get(key) else {
            return false;
        };
        {
            let mut row = locked(&agent.row);
            if let Some(dead) = row.dead.take() {
                row.acknowledged = row.acknowledged.min(dead.first.saturating_sub(1));
                row.wake_at = Some(0);
            }
        }
        agent.retry.notify_one();
        self.0.changed.notify_one();
        true
    }

    /// Stops and writes what was acknowledged.
    ///
    /// # Errors
    /// `push.bad_registration` if the file cannot be written.
    pub async fn stop(&self) -> Result<(), AgentError> {
        self.0.abort();
        self.0.save().await
    }
}

impl Inner {
    fn abort(&self) {
        for (_, task) in locked(&self.agents).values() {
            task.abort();
        }
    }

    fn start(&self, row: Row) -> Result<(), AgentError> {
        let agent = Arc::new(Agent {
            secret: Secret::parse(&row.registration.secret)?,
            // Connections and lookups apart from those of other agents.
            fetch: self.fetch.for_tenant(self.options.policy.clone()),
            last_error: Mutex::default(),
            retry: Notify::new(),
            row: Mutex::new(row),
        });
        let key = agent.key();
        let task = tokio::spawn(delivery::serve(self.weak.clone(), Arc::clone(&agent)));
        let task = task.abort_handle();
        if let Some((_, before)) = locked(&self.agents).insert(key, (agent, task)) {
            before.abort();
        }
        Ok(())
    }

    async fn save(&self) -> Result<(), AgentError> {
        let _one = self.saving.lock().await;
        let rows: Vec<Row> = locked(&self.agents)
            .values()
            .map(|(agent, _)| locked(&agent.row).clone())
            .collect();
        let path = self.options.file.clone();
        let written = tokio::task::spawn_blocking(move || {
            let written = file::write(&path, &rows);
            written.map_err(|error| unusable(&path, &error))
        });
        written.await.unwrap_or_else(|fault| Err(bad(fault)))
    }
}

impl Agent {
    fn key(&self) -> AgentKey {
        locked(&self.row).registration.agent.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_tls_beyond_the_loopback() {
        for url in [
            "https://example.com/agents",
            "http://127.0.0.1:8080",
            "http://localhost:8080/x",
            "http://[::1]:8080",
        ] {
            check_url(url).expect(url);
        }
        for url in [
            "http://example.com",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
            "ftp://example.com",
            "https://user@example.com",
            "",
        ] {
            assert_eq!(check_url(url).expect_err(url).code(), BAD_REGISTRATION);
        }
    }
}
