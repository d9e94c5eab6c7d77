//! Loading: turns an agent's stored row into an awake agent.

use super::group_commit::GroupCommit;
use super::{Activation, Ended, Signal, Status};
use crate::agent::{Identity, Replay};
use crate::error::{AgentError, codes};
use crate::kill;
use crate::runner::{Runner, Work, settled};
use crate::shared::Shared;
use crate::tables::check_policy;
use a99_runtime_engine::{
    AgentRow, Body, Command, DeadLetter, Fence, Machine, Millis, NewState, PresenceAction,
    Progress, Recovered, Sender, Seq, Started, Trigger, TurnCommit,
};
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};

/// The newest events among which an agent looks for its joining.
const RECENT: usize = 256;

/// The dead letter's text for an interrupted turn under at-most-once delivery.
const LOST: &str = "the process was cut off while this turn ran, and delivery at most once does \
                    not run it again";

/// The dead letter of a lost turn. A hook or an ephemeral event gets none: it has no sequence
/// number from which it could be handled again.
pub(super) fn lost_letter(trigger: &Trigger, now: Millis) -> Option<DeadLetter> {
    (!matches!(trigger, Trigger::Once(_))).then(|| DeadLetter {
        trigger: trigger.clone(),
        code: codes::TURN_LOST.to_owned(),
        error: LOST.to_owned(),
        attempts: 1,
        at: now,
    })
}

/// The inputs of an activation.
pub(crate) struct Loading {
    pub(crate) shared: Arc<Shared>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) signals: mpsc::UnboundedReceiver<Signal>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) timers_changed: Arc<Notify>,
    /// Whether this is the first waking since the store was interrupted.
    pub(crate) was_cut_off: bool,
}

impl Loading {
    /// Wakes the agent and runs it until it sleeps.
    pub(crate) async fn live(self) -> Ended {
        match self.wake().await {
            Ok((activation, commands)) => activation.live(commands).await,
            Err(error) => Ended::Failed(error),
        }
    }

    /// The state of a row, migrated to the agent's version; earlier states are archived.
    async fn state(
        &self,
        row: &AgentRow,
        fence: &Fence,
    ) -> Result<(crate::runner::Output, u64), AgentError> {
        let (output, backups) = self.runner.read(&row.state, row.version).await?;
        if backups.is_empty() {
            return Ok((output, row.revision));
        }
        let state = NewState {
            json: output.json.clone(),
            version: self.runner.version(),
            base: row.revision,
        };
        let backups = backups.into_iter();
        let backups = backups.map(|(version, state)| (version, state.to_string()));
        let (agents, now) = (self.shared.agents(), self.shared.now());
        let kept = agents.migrate_state(fence.clone(), state, backups.collect(), now);
        Ok((output, kept.await?))
    }

    /// Where the agent joined: what was said since then is for it, although it wakes later. It is
    /// the head if the agent joined long ago, or another store records it.
    async fn joined(&self, head: Seq) -> Result<Seq, AgentError> {
        let key = &self.identity.key;
        let store = self.shared.hub().store();
        let last = store.read_before(key.channel(), head.saturating_add(1), RECENT);
        let joins = last.await?.into_iter().filter(|event| {
            let is_join = matches!(&event.body, Body::Presence { action, .. } if *action == PresenceAction::Join);
            is_join && event.sender.id == key.participant()
        });
        let newest = joins.filter_map(|event| event.seq).max();
        Ok(newest.map_or(head, |seq| seq.min(head)))
    }

    async fn wake(self) -> Result<(Activation, Vec<Command>), AgentError> {
        let key = self.identity.key.clone();
        let agents = Arc::clone(self.shared.agents());
        let fence = Fence {
            epoch: agents.epoch(&key),
            key: key.clone(),
        };
        self.runner.prepare().await?;
        let (tables, policy) = (self.runner.tables(), self.runner.policy());
        let has_tables = tables.is_some();
        check_policy(has_tables, &policy)?;
        let channel = self.shared.hub().channel(key.channel()).await?;
        if let Some(tables) = tables {
            let migrations = tables.migrations;
            agents.migrate_tables(fence.clone(), migrations).await?;
            kill::point("tables.migrated");
        }
        let reader = channel.reader();
        let row = agents.load(&key).await?;
        let (output, revision) = match &row {
            // An agent that has only filtered events so far has a row without a state.
            Some(row) if !row.state.is_empty() => self.state(row, &fence).await?,
            _ => (self.runner.initial()?, 0),
        };
        let replay_until = channel.head();
        let checkpoint = row.as_ref().map_or(0, |row| row.progress.checkpoint);
        let connect = self.runner.connect(&self.identity, checkpoint).await?;
        let progress = match &row {
            Some(row) => row.progress.clone(),
            None => Progress {
                checkpoint: match connect.replay {
                    Replay::All => 0,
                    Replay::After(seq) => seq.min(replay_until),
                    Replay::Skip => self.joined(replay_until).await?,
                },
                ..Progress::default()
            },
        };
        let started = row.iter().flat_map(|row| &row.started);
        let started = started.map(|(trigger, attempts)| Started {
            trigger: trigger.clone(),
            attempts: *attempts,
        });
        let recovered = Recovered {
            progress: progress.clone(),
            started: started.collect(),
            was_cut_off: self.was_cut_off,
        };
        if row.is_none() && progress.checkpoint > 0 {
            // Store the start of its stream now, in case it sleeps without a turn.
            let mut begins = TurnCommit::new(fence.clone(), self.shared.now());
            begins.progress = Some(progress.clone());
            agents.commit(begins).await?;
        }
        let (machine, mut commands) = Machine::new(policy, recovered, self.shared.now());
        let saved = row.as_ref().and_then(|row| row.settings.as_deref());
        let saved = saved.map(serde_json::from_str).transpose()?;
        let mut sender = Sender::agent(&key);
        sender.name = connect.name.or(sender.name);
        sender.kind = connect.kind.or(sender.kind);
        let filter = self.runner.event_options();
        let passing = filter.include_ephemeral.then(|| channel.passing());
        let commit_alone = self.status.borrow().commit_alone;
        let group_commit = GroupCommit::new(&policy, self.was_cut_off, commit_alone);
        self.status
            .send_modify(|status| status.commit_alone = false);
        let json: Arc<str> = output.json.into();
        let mut activation = Activation {
            sender: Arc::new(sender),
            delivery: policy.delivery,
            filter,
            machine,
            state: output.state,
            json: Arc::clone(&json),
            committed: json,
            revision,
            replays: row.as_ref().map_or(0, |row| row.replays),
            settings: Arc::new(Value::Null),
            saved_settings: saved.unwrap_or_else(|| Value::Object(Map::new())),
            reader,
            passing,
            suspect: None,
            cancel_isolation: None,
            cursor: progress.checkpoint,
            replay_until,
            subjects: HashMap::new(),
            unlogged: 0,
            max_loose: policy.max_queued.max(1),
            running: BTreeMap::new(),
            refusals: BTreeMap::new(),
            work: FuturesUnordered::new(),
            wake_at: None,
            signals: self.signals,
            status: self.status,
            timers_changed: self.timers_changed,
            has_tables,
            group_commit,
            counts: self.shared.metrics.of(key.agent()),
            is_draining: false,
            is_disconnected: false,
            fence,
            shared: self.shared,
            identity: self.identity,
            runner: self.runner,
        };
        activation.settle_settings();
        activation.runner.init(&activation.identity).await?;
        activation.show();
        let lost = commands.iter_mut().find_map(|command| match command {
            Command::Lost(lost) => Some(std::mem::take(lost)),
            _ => None,
        });
        if let Some(lost) = lost {
            activation.warn_lost(&lost);
            activation.remember_timers(&lost).await?;
            kill::point("lost.before");
            activation.hook(Work::Lost(lost)).await?;
            kill::point("lost.after");
        }
        kill::point("wake.before");
        activation.hook(Work::Wake).await?;
        kill::point("wake.after");
        Ok((activation, commands))
    }
}

impl Activation {
    /// Warns about interrupted turns that will not be retried.
    pub(super) fn warn_lost(&self, lost: &[Trigger]) {
        for trigger in lost {
            let error = AgentError::new(codes::TURN_LOST, LOST);
            self.warn(&error, &format!("{trigger} was lost"));
        }
    }

    /// The effective settings: defaults, then configuration, then the users' changes.
    pub(super) fn settle_settings(&mut self) {
        let settled = settled(&*self.runner, &self.identity, &self.saved_settings);
        self.settings = Arc::new(settled);
    }
}
