//! JSON of events that several subscriptions send, encoded once.

use a99_runtime::Event;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Texts that are kept. The identity of an event is random, and chooses its place.
const PLACES: usize = 512;

/// Longer texts are encoded for each subscription.
const MAX_BYTES: usize = 8 << 10;

/// An event and its text.
type Kept = Option<(Weak<Event>, Arc<str>)>;

/// The texts of the newest events.
pub(super) struct EncodedEvents(Vec<Mutex<Kept>>);

impl Default for EncodedEvents {
    fn default() -> EncodedEvents {
        EncodedEvents((0..PLACES).map(|_| Mutex::default()).collect())
    }
}

impl EncodedEvents {
    /// The JSON of an event.
    ///
    /// # Errors
    /// It has no JSON form.
    pub(super) fn json(&self, event: &Arc<Event>) -> serde_json::Result<Arc<str>> {
        let [.., high, low] = event.id.into_bytes();
        let at = usize::from(u16::from_be_bytes([high, low])) % PLACES;
        let place = self.0.get(at).map(|place| place.lock());
        let mut place = place.map(|place| place.unwrap_or_else(PoisonError::into_inner));
        if let Some(Some((of, text))) = place.as_deref()
            // While there is a weak reference, no other event has the address.
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(event))
        {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = serde_json::to_string(event)?.into();
        if let Some(place) = place.as_deref_mut()
            && text.len() <= MAX_BYTES
        {
            *place = Some((Arc::downgrade(event), Arc::clone(&text)));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::EncodedEvents;
    use a99_runtime::{Body, Message, Sender, Uuid};
    use a99_runtime_engine::NewEvent;
    use std::sync::Arc;

    #[test]
    fn events_with_one_identity_keep_their_texts_apart() {
        let encoded = EncodedEvents::default();
        let event = |text: &str| {
            let body = Body::Message(Message::text(text));
            Arc::new(NewEvent::new("c", Uuid::nil(), Arc::new(Sender::default()), 0, body).event)
        };
        let (one, other) = (event("one"), event("other"));
        let text = encoded.json(&one).expect("JSON");
        assert!(Arc::ptr_eq(&text, &encoded.json(&one).expect("JSON")));
        assert_eq!(*text, *serde_json::to_string(&one).expect("JSON"));
        let text = encoded.json(&other).expect("JSON");
        assert_eq!(*text, *serde_json::to_string(&other).expect("JSON"));
        let long = event(&"x".repeat(super::MAX_BYTES));
        let text = encoded.json(&long).expect("JSON");
        assert!(!Arc::ptr_eq(&text, &encoded.json(&long).expect("JSON")));
    }
}
