//! Timers of agents.toml. They are stored before the host starts, and timers removed from the file
//! are removed from the store. A note in the channel's configuration lists the timers that came
//! from the file.

use super::config::AgentSpec;
use super::known::now;
use super::wire::Refusal;
use a99_runtime::{AgentKey, TimerRow, next_occurrence};
use a99_runtime_engine::{AgentStore, ChannelStore, Fence, TimerChange, TurnCommit};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Value as Json, json};

/// Member of a channel's configuration that lists the names, by agent.
const NOTE: &str = "a99.timers";

/// Sets the timers of a sleeping agent. An unchanged timer keeps its due time.
///
/// # Errors
/// Those of the store.
pub(super) async fn set(
    store: &SqliteRuntime,
    channels: &dyn ChannelStore,
    key: &AgentKey,
    spec: &AgentSpec,
) -> Result<(), Refusal> {
    let there = store.timers(key).await?;
    if there.is_empty() && spec.timers.is_empty() {
        // A process for each request: the channels may be far away.
        return Ok(());
    }
    let noted = channels.channel_config(key.channel()).await?;
    let before = noted[NOTE][key.as_str()].as_array();
    let before = before.into_iter().flatten().filter_map(Json::as_str);
    let mut changes: Vec<TimerChange> = before
        .filter(|name| spec.timers.iter().all(|timer| timer.name != *name))
        .map(|name| TimerChange::Remove(name.to_owned()))
        .collect();
    for timer in &spec.timers {
        let is_same = |row: &TimerRow| {
            row.name == timer.name
                && row.cron.as_ref() == Some(&timer.cron)
                && row.zone == timer.zone
                && row.payload == timer.payload
        };
        if !there.iter().any(is_same) {
            changes.push(TimerChange::Set(TimerRow {
                name: timer.name.clone(),
                due: next_occurrence(&timer.cron, timer.zone.as_deref(), now())?,
                cron: Some(timer.cron.clone()),
                zone: timer.zone.clone(),
                payload: timer.payload.clone(),
                hops: 1,
                set_at: None,
            }));
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let names: Vec<&String> = spec.timers.iter().map(|timer| &timer.name).collect();
    let mut all = noted[NOTE].clone();
    if !all.is_object() {
        all = json!({});
    }
    all[key.as_str()] = json!(names);
    channels
        .update_channel_config(key.channel(), json!({NOTE: all}))
        .await?;
    let fence = Fence {
        key: key.clone(),
        epoch: store.epoch(key),
    };
    let mut commit = TurnCommit::new(fence, now());
    commit.timers = changes;
    if let Err(error) = store.commit(commit).await {
        // The note lists no timers that were never set. The first error is the one to return.
        let before = json!({NOTE: noted[NOTE]});
        drop(channels.update_channel_config(key.channel(), before).await);
        return Err(error.into());
    }
    Ok(())
}
