//! Conversation: a channel's log as the dialogue that language models read.

use a99_runtime_engine::{Body, Event, Seq, Uuid};
use std::collections::HashMap;
use std::sync::Arc;

/// The role of a message's author.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// A person.
    User,
    /// An agent, or any other participant that is not a person.
    Assistant,
}

/// A complete message of a dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The message's identity.
    pub id: Uuid,
    /// Its sequence number in the log.
    pub seq: Option<Seq>,
    /// The author's role.
    pub speaker: Speaker,
    /// The sender's identity.
    pub sender: Uuid,
    /// The whole text, with all appended parts.
    pub content: String,
}

/// Builds the dialogue of events, oldest first: message texts with the text appended later.
/// People (`panel`) are users, all others assistants. Failed messages, incomplete messages and
/// non-text messages (`typing`, `thinking`, ...) are omitted.
#[must_use]
pub fn conversation(events: &[Arc<Event>]) -> Vec<Said> {
    struct Found {
        said: Said,
        is_open: bool,
        is_bad: bool,
    }
    let mut found: Vec<Found> = Vec::new();
    let mut places: HashMap<Uuid, usize> = HashMap::new();
    for event in events {
        match &event.body {
            Body::Message(message) if message.content_type.is_none() => {
                let is_person = event.sender.kind.as_deref() == Some("panel");
                places.insert(message.id, found.len());
                found.push(Found {
                    said: Said {
                        id: message.id,
                        seq: event.seq,
                        speaker: match is_person {
                            true => Speaker::User,
                            false => Speaker::Assistant,
                        },
                        sender: event.sender.id,
                        content: message.content.clone(),
                    },
                    is_open: false,
                    is_bad: false,
                });
            }
            Body::UpdateMessage {
                id,
                content,
                complete,
                content_type: None,
            } => {
                let at = places.get(id).map(|at| &mut found[*at]);
                // Only its sender may extend a message.
                let own = at.filter(|found| found.said.sender == event.sender.id);
                if let Some(found) = own {
                    found.said.content.extend(content.as_deref());
                    found.is_open = !complete;
                }
            }
            Body::Error { id, .. } => {
                let at = places.get(id).map(|at| &mut found[*at]);
                if let Some(found) = at.filter(|found| found.said.sender == event.sender.id) {
                    found.is_bad = true;
                }
            }
            _ => {}
        }
    }
    let whole = found.into_iter().filter(|one| !one.is_open && !one.is_bad);
    whole.map(|one| one.said).collect()
}

#[cfg(test)]
mod tests {
    use super::{Speaker, conversation};
    use a99_runtime_engine::{Body, Event, EventKind, Message, Sender, Uuid};
    use std::sync::Arc;

    fn event(seq: u64, by: u128, kind: &str, body: Body) -> Arc<Event> {
        let sender = Sender {
            id: Uuid::from_u128(by),
            kind: Some(kind.to_owned()),
            ..Sender::default()
        };
        Arc::new(Event {
            id: Uuid::from_u128(u128::from(seq)),
            seq: Some(seq),
            kind: EventKind::Persisted,
            ts: 0,
            sender: Arc::new(sender),
            hops: 0,
            body,
            attachments: Vec::new(),
        })
    }

    fn message(id: u128, content: &str, content_type: Option<&str>) -> Body {
        Body::Message(Message {
            id: Uuid::from_u128(id),
            content_type: content_type.map(str::to_owned),
            ..Message::text(content)
        })
    }

    fn update(id: u128, content: &str, complete: bool) -> Body {
        Body::UpdateMessage {
            id: Uuid::from_u128(id),
            content: Some(content.to_owned()),
            complete,
            content_type: None,
        }
    }

    #[test]
    fn a_dialogue_has_whole_messages_only() {
        let failed = Body::Error {
            id: Uuid::from_u128(13),
            error: "no".to_owned(),
            code: None,
        };
        let events = [
            event(1, 1, "panel", message(10, "How far?", None)),
            event(2, 2, "agent", message(11, "Ten", None)),
            event(3, 2, "agent", message(12, "hm", Some("thinking"))),
            event(4, 2, "agent", update(11, " miles", false)),
            // Another one's words stay its own.
            event(5, 1, "panel", update(11, " not", true)),
            event(6, 2, "agent", update(11, ".", true)),
            event(7, 2, "agent", message(13, "Wrong", None)),
            event(8, 2, "agent", failed),
            event(9, 2, "agent", message(14, "Still", None)),
            event(10, 2, "agent", update(14, " going", false)),
        ];
        let said = conversation(&events);
        let told: Vec<_> = said
            .iter()
            .map(|said| (said.seq, said.speaker, said.content.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (Some(1), Speaker::User, "How far?"),
                (Some(2), Speaker::Assistant, "Ten miles."),
            ]
        );
    }
}
