//! Stream of a program's run: model output and sent chunks, shown live on the channel.

use crate::error::AgentError;
use crate::turn::{SendOptions, TurnClient};
use a99_core::call_id::CallId;
use a99_core::text::Text;
use a99_runtime_engine::Uuid;
use agent99::{EventStream, RunEventKind};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// The content type of messages with pieces of an answer that the turn will send whole.
pub const PARTIAL: &str = "partial";

/// The content type of a model's reasoning.
const THINKING: &str = "thinking";

/// The type of events that a program sends with `streamChunk`.
pub const STREAM_CHUNK: &str = "stream-chunk";

/// Maximum events of a run that wait to be shown.
pub(super) const WAITING: usize = 64;

/// The key of a message: the sub-agents, the call, and whether it is reasoning.
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
                // Values without a JSON form are not shown.
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
            // The turn is over. Dropping the stream does not delay the sender.
            return;
        }
    }
}

/// Shows a piece: the first one of a call begins a message.
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
