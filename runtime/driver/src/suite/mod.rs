//! Conformance suite for every target: where agents run, and how events reach them.
//!
//! A test gives [`run`] a way to make its [`Target`], which runs the agents of [`agents`].
//! [`Hosts`] is a target made of a host, for all that are.

mod actor;
mod channel;
mod delivery;
mod hosts;
mod limits;
mod members;
mod methods;
mod stage;
mod state;

use crate::error::AgentError;
use crate::host::Host;
#[cfg(unix)]
use crate::process::AgentProcess;
use crate::{HostBuilder, HostOptions};
use a99_capabilities::ScriptedAi;
use a99_runtime_engine::{AgentKey, BoxFuture, StoreError};
use a99_runtime_stores::{StoreLimits, StoreOptions};
use actor::Actor;
use futures_util::stream::{StreamExt as _, iter};
pub use hosts::{Connect, Hosts};
use serde_json::Value;
use stage::Stage;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Cases that run at the same time.
const AT_ONCE: usize = 6;

/// After how long without an event an agent sleeps.
const IDLE: Duration = Duration::from_millis(100);

/// How long a case waits for anything.
const LIMIT: Duration = Duration::from_secs(30);

/// The code of operations on what does not run.
const NO_HOST: &str = "suite.no_host";

/// A violation that a case found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(pub String);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<AgentError> for Finding {
    fn from(error: AgentError) -> Finding {
        Finding(format!("{}: {error}", error.code()))
    }
}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Finding {
        Finding(format!("{}: {error}", error.code().name()))
    }
}

type Outcome = Result<(), Finding>;

/// The result of an operation on a target.
pub type Done<'a> = BoxFuture<'a, Result<(), AgentError>>;

/// A target under test: a host of channels, where people are, and one with agents. Its stores have
/// [`StoreLimits::SMALL`].
pub trait Target: Send + Sync {
    /// Its name, as agents see it.
    fn mode(&self) -> &'static str;

    /// The host of the channels, if it runs.
    fn channels(&self) -> Option<Host>;

    /// The host of the agents, if there is one outside of requests.
    fn host(&self) -> Option<Host>;

    /// The file with the agents' states.
    fn store(&self) -> PathBuf;

    /// Starts the agents' host, and at first that of the channels.
    fn start(&mut self) -> Done<'_>;

    /// Makes the channels reachable while the agents' host is down, where it has them.
    fn serve(&mut self) -> Done<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Stops the agents' host cleanly.
    fn stop(&mut self) -> Done<'_>;

    /// Ends the agents' host as a crash does: it does nothing more.
    fn kill(&mut self) -> Done<'_>;

    /// Adds an agent, or changes its configuration.
    fn invite<'a>(&'a self, key: &'a AgentKey, config: Value) -> Done<'a> {
        Box::pin(async move { running(self.host())?.invite(key, config).await })
    }

    /// Removes an agent from its channel.
    fn remove<'a>(&'a self, key: &'a AgentKey) -> Done<'a> {
        Box::pin(async move { running(self.host())?.remove(key).await.map(drop) })
    }
}

fn running(host: Option<Host>) -> Result<Host, AgentError> {
    host.ok_or_else(|| AgentError::new(NO_HOST, "the target has no host to ask"))
}

/// Options of the stores of a target.
#[must_use]
pub fn store_options(has_channels: bool) -> StoreOptions {
    StoreOptions {
        limits: StoreLimits::SMALL,
        has_channels,
        ..StoreOptions::default()
    }
}

/// Hosts that were built: the models of all give different answers.
static HOSTS: AtomicU64 = AtomicU64::new(0);

/// A host without agents, with what the cases need of it.
#[must_use]
pub fn host() -> HostBuilder {
    let options = HostOptions {
        idle_debounce: IDLE,
        ..HostOptions::default()
    };
    let n = HOSTS.fetch_add(1, Ordering::Relaxed);
    let model = ScriptedAi::replies([1, 2].map(|answer| format!("answer {answer} of {n}")));
    Host::builder().options(options).ai(model)
}

/// Defines the agents of the cases.
#[must_use]
pub fn agents(builder: HostBuilder) -> HostBuilder {
    builder.agent("actor", Actor::new)
}

/// A process with the agents of the cases: [`AGENTS`].
#[cfg(unix)]
#[must_use]
pub fn process() -> AgentProcess {
    AgentProcess::new().agent("actor", Actor::new)
}

/// The names of the agents of the cases.
pub const AGENTS: [&str; 1] = ["actor"];

type Case = (
    &'static str,
    for<'s> fn(&'s mut Stage) -> BoxFuture<'s, Outcome>,
);

/// A list of cases: names and functions.
macro_rules! list {
    ($($name:literal => $case:ident,)*) => {
        pub(super) const CASES: &[super::Case] = &[$(($name, |stage| Box::pin($case(stage)))),*];
    };
}
use list;

/// Waits until something holds.
macro_rules! until {
    ($what:expr, $holds:expr) => {{
        let end = tokio::time::Instant::now() + super::LIMIT;
        while !$holds {
            if tokio::time::Instant::now() > end {
                return Err(super::Finding(format!("it does not come: {}", $what)));
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }};
}
use until;

fn cases() -> impl Iterator<Item = &'static Case> {
    let all = [
        delivery::CASES,
        channel::CASES,
        members::CASES,
        methods::CASES,
        state::CASES,
        limits::CASES,
    ];
    all.into_iter().flatten()
}

/// Fails with the expectation if it does not hold.
fn holds(it_does: bool, what: &str) -> Outcome {
    match it_does {
        true => Ok(()),
        false => Err(Finding(format!("expected: {what}"))),
    }
}

fn same<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(found: T, expected: U, what: &str) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(Finding(format!(
            "{what}: {found:?} where {expected:?} was expected"
        ))),
    }
}

/// The cases that a page declares a target cannot do: rows `case | target | reason` of a table.
///
/// # Errors
/// A row without a reason, or of a case that the suite has not.
pub fn declared<'p>(page: &'p str, target: &str) -> Result<Vec<&'p str>, Finding> {
    let (_, table) = page
        .split_once("| case | target | reason |")
        .ok_or_else(|| Finding("the page has no table of cases".to_owned()))?;
    let mut declared = Vec::new();
    for row in table.lines().skip(2).take_while(|row| row.starts_with('|')) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [case, of, reason] = cells[..] else {
            return Err(Finding(format!("a row has other cells: {row}")));
        };
        holds(!reason.is_empty(), &format!("a reason in {row}"))?;
        let is_case = cases().any(|(name, _)| *name == case);
        holds(is_case, &format!("a case that is called {case}"))?;
        if of == target {
            declared.push(case);
        }
    }
    Ok(declared)
}

/// Runs all cases, each on a target in an empty folder below `root`. Those in `cannot` must fail.
/// The environment variable `A99_SUITE_CASE` chooses those whose names contain it.
///
/// # Errors
/// The cases that failed, and those in `cannot` that did not.
pub async fn run(
    root: &Path,
    cannot: &[&str],
    make: impl Fn(&Path) -> Box<dyn Target>,
) -> Result<(), Finding> {
    let only = std::env::var("A99_SUITE_CASE").unwrap_or_default();
    let chosen = cases().filter(|(name, _)| name.contains(&only));
    let runs = chosen.enumerate().map(|(n, (name, case))| {
        let folder = root.join(n.to_string());
        let target = std::fs::create_dir(&folder).map(|()| make(&folder));
        let run = async move {
            let target = target.map_err(|error| Finding(error.to_string()))?;
            let mut stage = Stage::new(target).await?;
            let outcome = case(&mut stage).await;
            stage.end().await;
            outcome
        };
        let run = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(run));
        let outcome = tokio::spawn(run);
        async move {
            let panics = || Err(Finding("it panics".to_owned()));
            let outcome = outcome.await.ok().and_then(Result::ok);
            match (outcome.unwrap_or_else(panics), cannot.contains(name)) {
                (Ok(()), false) | (Err(_), true) => None,
                (Ok(()), true) => Some(format!("{name}: the page says that it fails")),
                (Err(finding), false) => Some(format!("{name}: {finding}")),
            }
        }
    });
    let found: Vec<_> = iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let found: Vec<_> = found.into_iter().flatten().collect();
    match found.is_empty() {
        true => Ok(()),
        false => Err(Finding(found.join("\n"))),
    }
}
