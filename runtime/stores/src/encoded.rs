//! Events encoded for a log: texts and digests, computed before the transaction.

use crate::options::StoreLimits;
use crate::rows::{Hash, digest, json};
use a99_runtime_engine::{
    Attachment, Event, Millis, NewEvent, Seq, StoreCode, StoreError, Uuid, check_part,
};
use sha2::{Digest, Sha256};

/// Checks the name of a channel by the rules of agent keys.
///
/// # Errors
/// [`StoreCode::Input`]
pub(crate) fn check_channel(name: &str) -> Result<(), StoreError> {
    let named = check_part("channel", name);
    named.map_err(|error| StoreError::new(StoreCode::Input, error.to_string()))
}

/// An encoded event.
#[derive(Clone)]
pub(crate) struct EncodedEvent {
    pub(crate) channel: String,
    pub(crate) event: Event,
    pub(crate) body: String,
    pub(crate) sender: String,
    pub(crate) body_digest: Hash,
    /// Digests of the attachments' data.
    pub(crate) attachments: Vec<Hash>,
    /// Whether the body is stored as a blob.
    pub(crate) is_blob: bool,
}

impl EncodedEvent {
    /// Bytes of its texts and attachments.
    pub(crate) fn size(&self) -> usize {
        let attachments = self.event.attachments.iter().map(|a| a.data.len());
        self.body.len() + self.sender.len() + attachments.sum::<usize>()
    }

    /// Encodes an event.
    ///
    /// # Errors
    /// [`StoreCode::TooLarge`], and [`StoreCode::Input`] if it has no JSON form.
    pub(crate) fn of(new: NewEvent, limits: &StoreLimits) -> Result<EncodedEvent, StoreError> {
        let NewEvent { channel, event } = new;
        check_channel(&channel)?;
        if let Some(fault) = event.body.fault() {
            return Err(StoreError::new(StoreCode::Input, fault));
        }
        let body = json("body of the event", &event.body)?;
        let sender = json("sender of the event", &*event.sender)?;
        let fits = |what: &str, bytes: usize| match bytes <= limits.max_blob_bytes {
            true => Ok(()),
            false => Err(StoreError::new(
                StoreCode::TooLarge,
                format!(
                    "the {what} of the event {} has {bytes} bytes of at most {}",
                    event.id, limits.max_blob_bytes
                ),
            )),
        };
        fits("body", body.len())?;
        for attachment in &event.attachments {
            fits("attachment", attachment.data.len())?;
        }
        let attachments = event.attachments.iter().map(|a| digest(&a.data));
        Ok(EncodedEvent {
            attachments: attachments.collect(),
            body_digest: digest(body.as_bytes()),
            is_blob: body.len() > limits.max_inline_bytes,
            channel,
            body,
            sender,
            event,
        })
    }

    /// The event's link in the hash chain, at a sequence number.
    pub(crate) fn link(&self, seq: Seq, ts: Millis) -> Link<'_> {
        Link {
            seq,
            ts,
            id: self.event.id,
            hops: self.event.hops,
            body: self.body_digest,
            sender: &self.sender,
            attachments: &self.event.attachments,
            data: &self.attachments,
        }
    }
}

/// An event's contribution to the hash chain of a log.
pub(crate) struct Link<'a> {
    pub(crate) seq: Seq,
    pub(crate) ts: Millis,
    pub(crate) id: Uuid,
    pub(crate) hops: u8,
    /// The digest of the body's text.
    pub(crate) body: Hash,
    pub(crate) sender: &'a str,
    pub(crate) attachments: &'a [Attachment],
    /// Digests of the attachments' data.
    pub(crate) data: &'a [Hash],
}

impl Link<'_> {
    /// The hash of the chain that continues from `last`.
    pub(crate) fn after(&self, last: &Hash) -> Hash {
        let mut hash = Sha256::new();
        hash.update(last);
        hash.update(self.seq.to_le_bytes());
        hash.update(self.ts.to_le_bytes());
        hash.update(self.id);
        hash.update([self.hops]);
        hash.update(self.body);
        let mut part = |bytes: &[u8]| {
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(bytes);
        };
        part(self.sender.as_bytes());
        for (attachment, data) in self.attachments.iter().zip(self.data) {
            part(attachment.id.as_bytes());
            part(attachment.mime_type.as_bytes());
            part(attachment.name.as_deref().unwrap_or_default().as_bytes());
            part(data);
        }
        hash.finalize().into()
    }
}
