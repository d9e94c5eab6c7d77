//! Reload of a host: it reads its file again and updates the changed agents, each after its turns
//! have ended, while all others run on.

use super::config::{AgentSpec, AgentsFile};
use super::host::{Live, warn};
use super::program::{Program, Programs};
use super::timers;
use super::wire::Refusal;
use a99_runtime::{AgentKey, Held};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The first error of several tasks.
#[derive(Default)]
struct First(Option<Refusal>);

impl First {
    /// The value of a task, unless it failed.
    fn of<T>(&mut self, done: Result<T, Refusal>) -> Option<T> {
        match done {
            Ok(done) => Some(done),
            Err(refusal) => {
                self.0.get_or_insert(refusal);
                None
            }
        }
    }
}

impl Live {
    /// Reloads the file. A mistake in it changes nothing.
    ///
    /// # Errors
    /// The mistake; the first agent that could not be updated and keeps its old program.
    pub(super) async fn reload(self: &Arc<Live>) -> Result<Json, Refusal> {
        // Lock before reading the file: of two reloads, the later one must win.
        let mut current = self.current.lock().await;
        let new = self.read().await?;
        let telling = current.telling.hear(&self.host, &new, self.report);
        telling.await?;
        let updated = self.update(&mut current.programs, new).await;
        let current = &mut *current;
        current.telling.keep(&current.programs);
        let (changed, left) = updated?;
        let keys = self.host.agents();
        let members = [
            ("agents", json!(keys)),
            ("changed", json!(changed)),
            ("left", json!(left)),
        ];
        self.report.did("reloaded", &members);
        Ok(json!({"ok": true, "agents": keys, "changed": changed, "left": left}))
    }

    /// Reads the file and its programs in the background.
    async fn read(self: &Arc<Live>) -> Result<Programs, Refusal> {
        let live = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let file = AgentsFile::read(&live.config, live.named)?;
            warn(&file, live.report);
            Programs::prepare(&file.agents)
        });
        match read.await {
            Ok(programs) => programs.map_err(|failure| Refusal::of(&failure)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(Refusal::new("host.stopping", error.to_string())),
        }
    }

    /// Returns the changed or new agents, and the removed ones.
    async fn update(
        self: &Arc<Live>,
        programs: &mut Programs,
        new: Programs,
    ) -> Result<(Vec<AgentKey>, Vec<AgentKey>), Refusal> {
        let there: BTreeSet<AgentKey> = self.host.agents().into_iter().collect();
        let wanted: BTreeSet<AgentKey> = new.keys().map(|(key, _)| key.clone()).collect();
        let left: Vec<AgentKey> = there.difference(&wanted).cloned().collect();
        let mut leaving = JoinSet::new();
        for key in left.clone() {
            let live = Arc::clone(self);
            leaving.spawn(async move { (key.clone(), live.take_off(key).await) });
        }
        let named: BTreeSet<String> = new.0.keys().cloned().collect();
        let mut changing = JoinSet::new();
        // Serializes read-modify-write of a channel's note about timers.
        let gate = Arc::new(tokio::sync::Mutex::const_new(()));
        for (name, program) in new.0 {
            match programs.0.get(&name) {
                Some(old) if old.shape == program.shape => program.close(),
                _ => {
                    let keys = program.spec.keys.iter();
                    let keys = keys.filter(|key| there.contains(key)).cloned().collect();
                    let old = programs.0.get(&name).map(|old| Arc::clone(&old.spec));
                    let live = Arc::clone(self);
                    changing.spawn(live.replace(program, old, keys, Arc::clone(&gate)));
                }
            }
        }
        let mut first = First::default();
        let mut staying = BTreeSet::new();
        for (key, done) in leaving.join_all().await {
            if first.of(done).is_none() {
                staying.insert(key);
            }
        }
        // A turn that is still running needs the stores of its program.
        let stays = |program: &Program| program.spec.keys.iter().any(|key| staying.contains(key));
        let mut changed = Vec::new();
        for done in changing.join_all().await {
            let Some(program) = first.of(done) else {
                continue;
            };
            changed.extend(program.spec.keys.iter().cloned());
            let old = programs.0.insert(program.spec.name.clone(), program);
            if let Some(old) = old.filter(|old| !stays(old)) {
                old.close();
            }
        }
        let gone = programs.0.iter();
        let gone = gone.filter(|(name, old)| !named.contains(*name) && !stays(old));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.host.undefine(&name);
            if let Some(old) = programs.0.remove(&name) {
                old.close();
            }
        }
        for (key, spec) in programs.keys() {
            if there.contains(key) || !wanted.contains(key) {
                continue;
            }
            let invited = async {
                timers::set(&self.store, &**self.host.channel_store(), key, spec).await?;
                Ok(self.host.invite(key, spec.config.clone()).await?)
            };
            first.of(invited.await);
        }
        match first.0 {
            Some(refusal) => Err(refusal),
            None => Ok((changed, left)),
        }
    }

    /// Removes an agent from its channel after its turns have ended.
    async fn take_off(self: Arc<Live>, key: AgentKey) -> Result<(), Refusal> {
        let _held = self.hold(&key).await?;
        self.host.remove(&key).await?;
        Ok(())
    }

    /// Replaces the program of an agent on its channels. On failure the agent gets its old timers
    /// and settings back.
    async fn replace(
        self: Arc<Live>,
        program: Program,
        old: Option<Arc<AgentSpec>>,
        keys: Vec<AgentKey>,
        gate: Arc<tokio::sync::Mutex<()>>,
    ) -> Result<Program, Refusal> {
        let mut holding = JoinSet::new();
        for key in keys.clone() {
            let live = Arc::clone(&self);
            holding.spawn(async move { live.hold(&key).await });
        }
        let held: Result<Vec<Held>, Refusal> = holding.join_all().await.into_iter().collect();
        let _held = held?;
        let _gate = gate.lock().await;
        if let Err(refusal) = self.settle(&keys, &program.spec).await {
            if let Some(old) = old {
                // The first error is the one to return.
                drop(self.settle(&keys, &old).await);
            }
            return Err(refusal);
        }
        program.define(&self.host);
        Ok(program)
    }

    /// Gives held agents the timers and settings of their file.
    async fn settle(&self, keys: &[AgentKey], spec: &AgentSpec) -> Result<(), Refusal> {
        for key in keys {
            timers::set(&self.store, &**self.host.channel_store(), key, spec).await?;
            self.host.invite(key, spec.config.clone()).await?;
        }
        Ok(())
    }
}
