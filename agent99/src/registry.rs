//! Registry of sub-agents: the agents that a program may call with `agentRun`, and their
//! share of the caller's budget.

use crate::capabilities::{
    AgentCall, AgentOutcome, AgentReply, AgentRunner, BoxFuture, Capabilities, CapabilityError,
};
use crate::{Agent, Engine, Fuel, Outcome, RunOptions, Value};
use a99_core::artifact::{DecodeOptions, EncodeOptions};
use a99_core::diag::{excerpt, suggest};
use a99_core::text::hex;
use a99_run::account::AccountLimits;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Prefix of an agent's id by content hash.
const HASH_PREFIX: &str = "sha256:";

/// Share of the caller's fuel that a sub-agent may use.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Share {
    /// All fuel that the caller has left; in a `callAll` each call gets an equal share.
    #[default]
    All,
    /// A fraction of the caller's fuel, from 0 to 1.
    Part(f64),
    /// At most this amount of the caller's fuel.
    AtMost(Fuel),
    /// A separate budget that the caller does not pay.
    Own(Fuel),
}

/// An agent of a registry, with its budget and grants.
#[derive(Clone, Debug)]
pub struct SubAgent {
    agent: Agent,
    share: Share,
    limits: AccountLimits,
    options: RunOptions,
    granted: Option<Capabilities>,
}

impl SubAgent {
    /// Creates a sub-agent with all fuel of its callers and the grants of the registry.
    #[must_use]
    pub fn new(agent: Agent) -> SubAgent {
        SubAgent {
            agent,
            share: Share::All,
            limits: AccountLimits::default(),
            options: RunOptions::new(),
            granted: None,
        }
    }

    /// Sets the share of the caller's fuel.
    #[must_use]
    pub fn share(self, share: Share) -> SubAgent {
        SubAgent { share, ..self }
    }

    /// Limits each run's use of the caller's account: calls, tokens, money.
    #[must_use]
    pub fn limits(self, limits: AccountLimits) -> SubAgent {
        SubAgent { limits, ..self }
    }

    /// Sets options of the runs: limits, quotas, prices, timeouts. Fuel, context, depth,
    /// parent and account come from the call.
    #[must_use]
    pub fn options(self, options: RunOptions) -> SubAgent {
        SubAgent { options, ..self }
    }

    /// Replaces the grants of the registry. The agents of the registry are granted in any
    /// case.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> SubAgent {
        SubAgent {
            granted: Some(granted),
            ..self
        }
    }
}

/// Agents by name and by content hash: the capability of `agentRun` (D83).
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// use agent99::capabilities::Capabilities;
/// use agent99::{AgentRegistry, Engine, RunOptions, json};
///
/// let engine = Engine::new();
/// let double = engine.compile(r#"{"a99": 4, "op": "seq", "steps": [
///     {"op": "return", "value": {"=": "n * 2"}}
/// ]}"#)?;
/// let agents = AgentRegistry::builder(&engine)
///     .agent("double", double)
///     .granted(Capabilities::none())
///     .build()?;
/// let main = engine.compile(r#"{"a99": 4, "op": "seq", "steps": [
///     {"op": "agentRun", "agentId": "double", "input": {"n": 21}, "result": "answer"},
///     {"op": "return", "value": "answer"}
/// ]}"#)?;
/// let outcome = engine.run(&main, json!({}), RunOptions::new(), agents.capabilities()).await;
/// assert_eq!(outcome.result, 42.0.into());
/// let usage = outcome.usage.expect("a call was made");
/// assert_eq!(usage.children[0].name, "double");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AgentRegistry {
    inner: Arc<Inner>,
    driver: Option<Arc<dyn RunDriver>>,
}

struct Inner {
    engine: Engine,
    agents: BTreeMap<String, SubAgent>,
    /// Names by hash.
    hashes: BTreeMap<String, String>,
    granted: Capabilities,
}

/// Drives the runs of a registry's agents instead of [`Engine::run`], for instance to keep a
/// journal of their calls. `options.parent` is the call that the run answers.
pub trait RunDriver: Send + Sync {
    /// Runs an agent to completion.
    fn drive<'a>(
        &'a self,
        engine: &'a Engine,
        agent: &'a Agent,
        input: Value,
        options: RunOptions,
        granted: Capabilities,
    ) -> BoxFuture<'a, Outcome>;
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.inner.agents.keys()).finish()
    }
}

/// Builds an [`AgentRegistry`].
#[derive(Debug)]
pub struct AgentRegistryBuilder {
    engine: Engine,
    agents: Vec<(String, SubAgent)>,
    granted: Capabilities,
}

/// A registry that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryError(String);

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RegistryError {}

impl AgentRegistryBuilder {
    /// Adds an agent with the defaults of [`SubAgent::new`].
    #[must_use]
    pub fn agent(self, name: impl Into<String>, agent: Agent) -> AgentRegistryBuilder {
        self.sub_agent(name, SubAgent::new(agent))
    }

    /// Adds an agent.
    #[must_use]
    pub fn sub_agent(mut self, name: impl Into<String>, agent: SubAgent) -> AgentRegistryBuilder {
        self.agents.push((name.into(), agent));
        self
    }

    /// Sets the grants of the agents. They can always call each other.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> AgentRegistryBuilder {
        AgentRegistryBuilder { granted, ..self }
    }

    /// Builds the registry.
    ///
    /// # Errors
    /// Two agents have the same name; a name is empty or reserved (`proc_...` is a stored
    /// program, `sha256:...` a hash); a share is outside 0 to 1.
    pub fn build(self) -> Result<AgentRegistry, RegistryError> {
        let mut agents = BTreeMap::new();
        let mut hashes = BTreeMap::new();
        for (name, agent) in self.agents {
            let shown = excerpt(&name);
            if name.is_empty() || name.starts_with("proc_") || name.starts_with(HASH_PREFIX) {
                return Err(RegistryError(format!("`{shown}` is no name of an agent")));
            }
            if let Share::Part(part) = agent.share
                && !(0.0..=1.0).contains(&part)
            {
                let text = format!("the share of `{shown}` is from 0 to 1, and not {part}");
                return Err(RegistryError(text));
            }
            if let Some(hash) = agent.agent.hash() {
                hashes.insert(hash, name.clone());
            }
            if agents.insert(name, agent).is_some() {
                return Err(RegistryError(format!("two agents are called `{shown}`")));
            }
        }
        let (engine, granted) = (self.engine, self.granted);
        Ok(AgentRegistry {
            inner: Arc::new(Inner {
                engine,
                agents,
                hashes,
                granted,
            }),
            driver: None,
        })
    }
}

impl Agent {
    /// The agent's content hash: `sha256:` and the hash of its artifact without signature, as
    /// `a99 inspect` shows it. `None` if the program is too large for an artifact.
    #[must_use]
    pub fn hash(&self) -> Option<String> {
        let bytes = self.to_bytes(&EncodeOptions::default()).ok()?;
        let header = a99_core::artifact::header(&bytes, &DecodeOptions::default()).ok()?;
        Some(format!("{HASH_PREFIX}{}", hex(&header.content_hash)))
    }
}

impl AgentRegistry {
    /// Starts a registry whose agents run on this engine.
    #[must_use]
    pub fn builder(engine: &Engine) -> AgentRegistryBuilder {
        AgentRegistryBuilder {
            engine: engine.clone(),
            agents: Vec::new(),
            granted: Capabilities::none(),
        }
    }

    /// The grants of the registry together with its agents, for a run that calls them.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.inner.granted.clone().with_agent(self.clone())
    }

    /// The same registry with runs driven by `driver`.
    #[must_use]
    pub fn driven_by(&self, driver: Arc<dyn RunDriver>) -> AgentRegistry {
        AgentRegistry {
            inner: self.inner.clone(),
            driver: Some(driver),
        }
    }

    /// The names of the agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.agents.keys().map(String::as_str)
    }
}

impl Inner {
    /// Finds an agent by name or hash.
    fn find(&self, id: &Value) -> Result<(&str, &SubAgent), CapabilityError> {
        let Some(id) = id.as_text() else {
            return Err(CapabilityError::new(
                "agentRun: the agent's id must be a text",
            ));
        };
        let id = id.to_string_lossy();
        let name = self.hashes.get(&*id).map_or(&*id, String::as_str);
        if let Some((name, agent)) = self.agents.get_key_value(name) {
            return Ok((name, agent));
        }
        let shown = excerpt(&id);
        let near = suggest(&id, self.agents.keys().map(String::as_str));
        Err(CapabilityError::new(match near {
            Some(near) => format!("agentRun: no agent is called `{shown}`; did you mean `{near}`?"),
            None => format!("agentRun: no agent is called `{shown}`"),
        }))
    }
}

impl AgentRegistry {
    async fn run_agent(
        &self,
        id: Value,
        input: Value,
        call: AgentCall,
    ) -> Result<AgentReply, CapabilityError> {
        let (name, agent) = self.inner.find(&id)?;
        let left = call.fuel_left.max(Fuel::ZERO);
        let (fuel, pays) = match agent.share {
            Share::All => (left, true),
            // Rounded down, so that the parts never sum to more than the whole.
            Share::Part(part) => (Fuel::from_micro((left.micro() as f64 * part) as i64), true),
            Share::AtMost(most) => (left.min(most), true),
            Share::Own(own) => (own, false),
        };
        let mut options = agent.options.clone();
        options.fuel = fuel;
        options.context = call.context;
        options.depth = call.depth.saturating_add(1);
        options.parent = Some(Arc::new(call.id));
        options.account = Some(call.account.child(name, agent.limits));
        options.events = call.events.map(|events| events.in_agent(name));
        let most = options.limits.agent_depth;
        if options.depth > most {
            let text = format!("Agent depth limit exceeded (max {most}).");
            return Err(CapabilityError::new(text));
        }
        let (engine, program) = (&self.inner.engine, &agent.agent);
        let granted = agent.granted.as_ref().unwrap_or(&self.inner.granted);
        let granted = granted.clone().with_agent(self.clone());
        // Boxed: otherwise nested runs would nest on the stack of the host.
        let outcome = match &self.driver {
            Some(driver) => driver.drive(engine, program, input, options, granted).await,
            None => Box::pin(engine.run(program, input, options, granted)).await,
        };
        let result = match outcome.error {
            None => AgentOutcome::Result(outcome.result),
            Some(error) => AgentOutcome::Failed(CapabilityError::new(error.message)),
        };
        Ok(AgentReply {
            outcome: result,
            fuel_used: pays.then_some(outcome.fuel_used),
        })
    }
}

impl AgentRunner for AgentRegistry {
    fn run(
        &self,
        id: Value,
        input: Value,
        call: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>> {
        Box::pin(self.run_agent(id, input, call))
    }
}
