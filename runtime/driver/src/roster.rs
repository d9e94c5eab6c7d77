//! Rosters: their changes, the metadata that participants announce, and conflicts of tool roles.

use crate::bus::Participant;
use crate::changes::Changes;
use crate::error::AgentError;
use crate::event_bus::{CHANNEL_CONFIG, tool_role_winner};
use crate::hub::locked;
use crate::subscription::Subscription;
use a99_runtime_engine::{Body, BoxFuture, Event, Millis, Sender, Uuid};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Members of announced metadata that the host sets.
const OF_HOST: [&str; 3] = ["name", "type", "handle"];

/// The participants of a channel after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct RosterChange {
    /// The participants, in the order in which the host first saw them.
    pub participants: Vec<Participant>,
    /// When the roster changed, in milliseconds since the Unix epoch.
    pub ts: Millis,
}

/// Several participants provide one group of tools: their metadata have
/// `toolRoles: { GROUP: { providing: true, priority? } }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRoleConflict {
    /// The group's name.
    pub group: String,
    /// Those who provide it, in the order in which the host first saw them.
    pub providers: Vec<Uuid>,
    /// The one that keeps it: the lowest `priority` (none is the highest), then the one that the
    /// host saw first, then the smallest identity.
    pub winner: Uuid,
}

/// Metadata as a presence event announces it: what the participant set, and what the host knows.
pub(crate) fn announced(metadata: Map<String, Value>, who: &Sender) -> Map<String, Value> {
    let mut metadata = metadata;
    for (name, value) in OF_HOST.into_iter().zip([&who.name, &who.kind, &who.handle]) {
        match value {
            Some(value) => metadata.insert(name.to_owned(), Value::from(value.as_str())),
            None => metadata.remove(name),
        };
    }
    metadata
}

/// The part of announced metadata that the participant set.
pub(crate) fn own_metadata(announced: &Map<String, Value>) -> Map<String, Value> {
    let mut own = announced.clone();
    own.retain(|name, _| !OF_HOST.contains(&name.as_str()));
    own
}

/// Reads the roster of a channel.
pub(crate) type ReadRoster =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<Participant>, AgentError>> + Send + Sync>;

/// The roster after an event; `None` for an event that changes none.
async fn after(event: &Event, read: ReadRoster) -> Result<Option<Vec<Participant>>, AgentError> {
    match &event.body {
        Body::Presence { .. } => read().await.map(Some),
        _ => Ok(None),
    }
}

/// The roster if anybody is there, then its changes; a slow reader gets the newest. `events` began
/// before the first reading.
pub(crate) async fn roster_changes(
    events: Subscription,
    now: Millis,
    read: ReadRoster,
) -> Result<Changes<RosterChange>, AgentError> {
    let participants = read().await?;
    let last = Arc::new(Mutex::new(participants.clone()));
    let first = RosterChange {
        participants,
        ts: now,
    };
    let first = (!first.participants.is_empty()).then_some(first);
    Ok(Changes::new(events, first, move |event| {
        let (read, last) = (Arc::clone(&read), Arc::clone(&last));
        Box::pin(async move {
            let ts = event.ts;
            let Some(participants) = after(&event, read).await? else {
                return Ok(Vec::new());
            };
            if *locked(&last) == participants {
                return Ok(Vec::new());
            }
            locked(&last).clone_from(&participants);
            Ok(vec![RosterChange { participants, ts }])
        })
    }))
}

/// A provider of a group, as [`tool_role_winner`] compares it.
type Rank = (Uuid, Option<f64>, Duration);

/// The conflicts of tool roles in a roster, by group.
fn conflicts_of(roster: &[Participant]) -> BTreeMap<String, ToolRoleConflict> {
    let mut groups: BTreeMap<&String, Vec<Rank>> = BTreeMap::new();
    // The position stands for the time at which the host first saw a participant.
    for (who, at) in roster.iter().zip(0..) {
        let roles = who.metadata.get("toolRoles").and_then(Value::as_object);
        for (group, role) in roles.into_iter().flatten() {
            if role["providing"] == true {
                let rank = (who.id, role["priority"].as_f64(), Duration::from_nanos(at));
                groups.entry(group).or_default().push(rank);
            }
        }
    }
    let contested = groups.into_iter().filter(|(_, ranks)| ranks.len() > 1);
    let conflicts = contested.filter_map(|(group, ranks)| {
        let conflict = ToolRoleConflict {
            group: group.clone(),
            winner: tool_role_winner(&ranks)?,
            providers: ranks.into_iter().map(|rank| rank.0).collect(),
        };
        Some((group.clone(), conflict))
    });
    conflicts.collect()
}

/// Conflicts of tool roles: those that there are, then each new or changed one.
pub(crate) async fn conflict_changes(
    events: Subscription,
    read: ReadRoster,
) -> Result<Changes<ToolRoleConflict>, AgentError> {
    let known = conflicts_of(&read().await?);
    let first: Vec<_> = known.values().cloned().collect();
    let known = Arc::new(Mutex::new(known));
    Ok(Changes::new(events, first, move |event| {
        let (read, known) = (Arc::clone(&read), Arc::clone(&known));
        Box::pin(async move {
            let Some(roster) = after(&event, read).await? else {
                return Ok(Vec::new());
            };
            let now = conflicts_of(&roster);
            let before = std::mem::replace(&mut *locked(&known), now.clone());
            let mut changed = now;
            changed.retain(|group, conflict| before.get(group) != Some(conflict));
            Ok(changed.into_values().collect())
        })
    }))
}

/// The titles that a channel gets.
pub(crate) fn title_changes(events: Subscription) -> Changes<String> {
    Changes::new(events, None, |event| {
        let title = match &event.body {
            Body::Custom { name, payload } if name == CHANNEL_CONFIG => payload["title"].as_str(),
            _ => None,
        };
        Box::pin(ready(Ok(title.map(str::to_owned).into_iter().collect())))
    })
}
