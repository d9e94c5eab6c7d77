//! Stream of a program's run: what its models write and what it sends while it runs, shown on
//! the channel to those who are there.

use crate::error::AgentError;
use crate::turn::{SendOptions, TurnClient};
use a99_core::call_id::CallId;
use a99_core::text::Text;
use a99_runtime_engine::Uuid;
use agent99::{EventStream, RunEventKind};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// The content type of messages that are pieces of what a turn will say whole.
pub const PARTIAL: &str = "partial";

/// The content type of what a model thinks.
const THINKING: &str = "thinking";

/// The type of events that a program sends by `streamChunk`.
pub const STREAM_CHUNK: &str = "stream-chunk";

/// Events of a run that wait to be shown.
pub(super) const WAITING: usize = 64;

/// Which of a call's messages: the call, of which sub-agent, and whether it is thinking.
type Place = (Arc<[Text]>, CallId, bool);

/// Shows events of a run until it ends.
pub(super) async fn show(client: &TurnClient, mut events: EventStream) {
    let mut shown: HashMap<Place, Uuid> = HashMap::new();
    while let Some(event) = events.next().await {
        let agents = event.agents;
        let done = match event.kind {
            RunEventKind::Text { call, text } => {
                piece(client, &mut shown, (agents, call, false), text).await
            }
            RunEventKind::Thinking { call, text } => {
                piece(client, &mut shown, (agents, call, true), text).await
            }
            RunEventKind::Chunk { value, .. } => match super::turn::json_of(&value) {
                Ok(payload) => client.publish(STREAM_CHUNK, payload, false).await,
                // What JSON cannot say is not shown.
                Err(_) => Ok(()),
            },
            RunEventKind::CallEnded { call, .. } => {
                shown.remove(&(Arc::clone(&agents), call.clone(), false));
                shown.remove(&(agents, call, true));
                Ok(())
            }
            _ => Ok(()),
        };
        if done.is_err() {
            // The turn is over: whoever sends is not held up.
            return;
        }
    }
}

/// Shows a piece: the first of a call begins a message.
async fn piece(
    client: &TurnClient,
    shown: &mut HashMap<Place, Uuid>,
    place: Place,
    text: String,
) -> Result<(), AgentError> {
    if let Some(id) = shown.get(&place) {
        return client.update_ephemeral(*id, text).await;
    }
    let agents: Vec<String> = place
        .0
        .iter()
        .map(|name| name.to_string_lossy().into())
        .collect();
    let options = SendOptions {
        content_type: Some(if place.2 { THINKING } else { PARTIAL }.to_owned()),
        metadata: Some(json!({"call": place.1.to_string(), "agents": agents})),
        ..SendOptions::default()
    };
    let id = client.send_ephemeral(text, options).await?;
    shown.insert(place, id);
    Ok(())
}
