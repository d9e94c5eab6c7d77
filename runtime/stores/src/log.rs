//! Log of a channel: idempotent appends at its head, and reads.

use crate::encoded::{EncodedEvent, Link};
use crate::fault::{Fault, fault, unreadable};
use crate::rows::{Hash, all, change, digest, int, limit, one, uint};
use crate::runtime::Cx;
use crate::sql::{Params, Row, params};
use a99_runtime_engine::{
    AgentKey, Appended, Attachment, Event, EventKind, Fence, Millis, Seq, StoreCode, StoreError,
    Uuid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A channel that is being appended to.
struct Head {
    name: String,
    id: i64,
    seq: Seq,
    hash: Hash,
}

impl Head {
    /// Opens a channel for an agent; a missing channel is created.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`] if a later epoch of the agent wrote to it.
    fn take(cx: &Cx<'_>, name: &str, fence: Option<&Fence>) -> Result<Head, Fault> {
        let find = "SELECT id, head, hash FROM channel WHERE name = ?1 /*FOR UPDATE*/";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found = match one(cx, find, [name], read)? {
            None => {
                make(cx, name)?;
                one(cx, find, [name], read)?
            }
            found => found,
        };
        let (id, seq, hash) =
            found.ok_or_else(|| unreadable(format!("the channel {name} is gone")))?;
        if let Some(fence) = fence {
            admit(cx, id, fence)?;
        }
        Ok(Head {
            name: name.to_owned(),
            id,
            seq: uint(seq)?,
            hash,
        })
    }

    fn put(&self, cx: &Cx<'_>) -> Result<(), Fault> {
        let sql = "UPDATE channel SET head = ?2, hash = ?3 WHERE id = ?1";
        match change(cx, sql, params![self.id, int(self.seq), self.hash])? {
            1 => Ok(()),
            _ => Err(unreadable(format!("the channel {} is gone", self.name))),
        }
    }
}

/// Creates an empty channel, unless another transaction just did.
pub(crate) fn make(cx: &Cx<'_>, name: &str) -> Result<(), Fault> {
    let sql = "INSERT INTO channel (name, head, hash, config) VALUES (?1, 0, ?2, '{}')
               ON CONFLICT (name) DO NOTHING";
    change(cx, sql, params![name, Hash::default()]).map(drop)
}

/// Records the highest epoch under which an agent writes, and refuses lower ones.
fn admit(cx: &Cx<'_>, channel: i64, fence: &Fence) -> Result<(), Fault> {
    let (key, epoch) = (fence.key.as_str(), int(fence.epoch.0));
    let find = "SELECT epoch FROM channel_epoch WHERE channel = ?1 AND key = ?2";
    let found: Option<i64> = one(cx, find, params![channel, key], |row| row.get(0))?;
    match found {
        Some(found) if found == epoch => Ok(()),
        Some(found) if found > epoch => Err(fault(
            StoreCode::Fenced,
            format!("{key} sent under epoch {found} already; this is {epoch}"),
        )),
        _ => {
            let keep = "INSERT INTO channel_epoch (channel, key, epoch) VALUES (?1, ?2, ?3)
                        ON CONFLICT (channel, key) DO UPDATE SET epoch = excluded.epoch";
            change(cx, keep, params![channel, key, epoch]).map(drop)
        }
    }
}

/// Appends all events in order, or none.
///
/// # Errors
/// [`StoreCode::Fenced`], [`StoreCode::ChangedBody`], and those of the file.
pub(crate) fn append(
    cx: &Cx<'_>,
    events: Vec<EncodedEvent>,
    fence: Option<&Fence>,
    now: Millis,
) -> Result<Vec<Appended>, Fault> {
    let mut heads = heads(cx, &events, fence)?;
    let mut appended = Vec::with_capacity(events.len());
    for packed in events {
        appended.push(append_one(cx, &mut heads, packed, now)?);
    }
    for head in heads.values() {
        head.put(cx)?;
    }
    Ok(appended)
}

/// Appends events in order, each by itself: one that is refused changes nothing.
///
/// # Errors
/// Those of the file. The result has the errors of each event.
pub(crate) fn append_each(
    cx: &Cx<'_>,
    events: Vec<EncodedEvent>,
    now: Millis,
) -> Result<Vec<Result<Appended, StoreError>>, Fault> {
    let mut heads = heads(cx, &events, None)?;
    let mut appended = Vec::with_capacity(events.len());
    for packed in events {
        appended.push(match append_one(cx, &mut heads, packed, now) {
            Ok(one) => Ok(one),
            // Only faults of the file come after a change.
            Err(Fault::Store(error)) => Err(error),
            Err(fault) => return Err(fault),
        });
    }
    for head in heads.values() {
        head.put(cx)?;
    }
    Ok(appended)
}

/// Opens the channels of events.
fn heads(
    cx: &Cx<'_>,
    events: &[EncodedEvent],
    fence: Option<&Fence>,
) -> Result<BTreeMap<String, Head>, Fault> {
    // In one order, so that concurrent transactions on a server do not wait for each other.
    let names: BTreeSet<&str> = events.iter().map(|new| new.channel.as_str()).collect();
    let open = |name: &str| Ok((name.to_owned(), Head::take(cx, name, fence)?));
    names.into_iter().map(open).collect()
}

fn append_one(
    cx: &Cx<'_>,
    heads: &mut BTreeMap<String, Head>,
    packed: EncodedEvent,
    now: Millis,
) -> Result<Appended, Fault> {
    let head = heads.get_mut(&packed.channel);
    let head = head.ok_or_else(|| unreadable("a channel was not opened"))?;
    let (seq, id) = (head.seq + 1, packed.event.id);
    let hash = packed.link(seq, now).after(&head.hash);
    let insert = "INSERT INTO channel_log
                      (channel, seq, id, ts, hops, type, attachments, hash, sender, body, blob)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                  ON CONFLICT (channel, id) DO NOTHING";
    let body = (!packed.is_blob).then_some(&packed.body);
    let blob = packed.is_blob.then_some(packed.body_digest);
    let claimed = change(
        cx,
        insert,
        params![
            head.id,
            int(seq),
            id.as_bytes(),
            int(now),
            packed.event.hops,
            packed.event.body.type_name(),
            limit(packed.attachments.len()),
            hash,
            packed.sender,
            body,
            blob,
        ],
    )?;
    if claimed != 1 {
        return repeated(cx, head, packed);
    }
    if packed.is_blob {
        put_blob(cx, &packed.body_digest, packed.body.as_bytes())?;
    }
    put_attachments(cx, head.id, seq, &packed)?;
    (head.seq, head.hash) = (seq, hash);
    let mut event = packed.event;
    event.seq = Some(seq);
    event.ts = now;
    event.kind = EventKind::Persisted;
    Ok(Appended {
        channel: packed.channel,
        event: Arc::new(event),
        is_new: true,
    })
}

/// The logged event with the same identity, provided that the contents are equal.
fn repeated(cx: &Cx<'_>, head: &Head, packed: EncodedEvent) -> Result<Appended, Fault> {
    let id = packed.event.id;
    let event = find(cx, &packed.channel, id)?;
    let event = event.ok_or_else(|| {
        let message = format!("the head of the channel {} is not its end", head.name);
        unreadable(message)
    })?;
    let find = "SELECT body = ?3 OR blob = ?4 FROM channel_log WHERE channel = ?1 AND id = ?2";
    let keys = params![head.id, id.as_bytes(), packed.body, packed.body_digest];
    let is_same = one(cx, find, keys, |row| row.get::<Option<bool>>(0))?;
    let is_same_body = is_same.flatten() == Some(true) || event.body.is_same(&packed.event.body);
    let is_same = is_same_body
        && event.sender.id == packed.event.sender.id
        && event.attachments == packed.event.attachments;
    if !is_same {
        let message = format!(
            "something else stands under {id} in the channel {}",
            head.name
        );
        return Err(fault(StoreCode::ChangedBody, message));
    }
    Ok(Appended {
        channel: packed.channel,
        event,
        is_new: false,
    })
}

fn put_blob(cx: &Cx<'_>, digest: &Hash, data: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT INTO blob (digest, size, data) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    change(cx, sql, params![digest, limit(data.len()), data]).map(drop)
}

fn put_attachments(
    cx: &Cx<'_>,
    channel: i64,
    seq: Seq,
    packed: &EncodedEvent,
) -> Result<(), Fault> {
    let attachments = packed.event.attachments.iter().zip(&packed.attachments);
    for (n, (attachment, digest)) in attachments.enumerate() {
        put_blob(cx, digest, &attachment.data)?;
        let sql = "INSERT INTO channel_attachment (channel, seq, n, id, mime_type, name, blob)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let Attachment {
            id,
            mime_type,
            name,
            ..
        } = attachment;
        let row = params![channel, int(seq), limit(n), id, mime_type, name, digest];
        change(cx, sql, row)?;
    }
    Ok(())
}

/// A query for events of a channel; the channel's name is the first parameter.
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT seq, id, ts, hops, attachments, sender, channel,
                 coalesce(body, (SELECT CAST(data AS TEXT) FROM blob WHERE digest = blob))
             FROM channel_log WHERE channel = (SELECT id FROM channel WHERE name = ?1) ",
            $end
        )
    };
}

/// Events after a sequence number.
pub(crate) fn after(
    cx: &Cx<'_>,
    channel: &str,
    after: Seq,
    most: usize,
) -> Result<Vec<Arc<Event>>, Fault> {
    let sql = select!("AND seq > ?2 ORDER BY seq LIMIT ?3");
    events(cx, sql, params![channel, int(after), limit(most)])
}

/// Events before a sequence number, newest first.
pub(crate) fn before(
    cx: &Cx<'_>,
    channel: &str,
    before: Seq,
    most: usize,
) -> Result<Vec<Arc<Event>>, Fault> {
    let sql = select!("AND seq < ?2 ORDER BY seq DESC LIMIT ?3");
    events(cx, sql, params![channel, int(before), limit(most)])
}

/// The event with this identity.
pub(crate) fn find(cx: &Cx<'_>, channel: &str, id: Uuid) -> Result<Option<Arc<Event>>, Fault> {
    let sql = select!("AND id = ?2");
    Ok(events(cx, sql, params![channel, id.as_bytes()])?.pop())
}

/// The sequence number of the last event.
pub(crate) fn head(cx: &Cx<'_>, channel: &str) -> Result<Seq, Fault> {
    let sql = "SELECT head FROM channel WHERE name = ?1";
    let head = one(cx, sql, [channel], |row| row.get(0))?;
    uint(head.unwrap_or_default())
}

/// Fails if an agent's progress passes the end of its channel's log.
///
/// # Errors
/// [`StoreCode::Unreadable`]
pub(crate) fn check_done(cx: &Cx<'_>, key: &AgentKey, done: Seq) -> Result<(), Fault> {
    let head = head(cx, key.channel())?;
    if done <= head {
        return Ok(());
    }
    Err(fault(
        StoreCode::Unreadable,
        format!(
            "{key} has done its channel up to event {done}, but the log ends at {head}: events \
             were lost, as when a file is put together of parts from different times; put a \
             whole backup of the file in its place, or call `set_back` to let the agent go on \
             from the end of the log"
        ),
    ))
}

fn events(cx: &Cx<'_>, sql: &'static str, params: impl Params) -> Result<Vec<Arc<Event>>, Fault> {
    all(cx, sql, params, |row| Ok(Arc::new(event(cx, row)?)))
}

fn event(cx: &Cx<'_>, row: &Row<'_>) -> Result<Event, Fault> {
    let seq: i64 = row.get(0)?;
    let attachments = match row.get::<i64>(4)? {
        0 => Vec::new(),
        _ => attachments(cx, row.get(6)?, seq)?,
    };
    Ok(Event {
        id: Uuid::from_bytes(row.get(1)?),
        seq: Some(uint(seq)?),
        kind: EventKind::Persisted,
        ts: uint(row.get(2)?)?,
        sender: Arc::new(serde_json::from_str(row.text(5)?)?),
        hops: row.get(3)?,
        body: serde_json::from_str(row.text(7)?)?,
        attachments,
    })
}

/// The sequence number and hash to which the rows of a log lead.
///
/// # Errors
/// [`StoreCode::Unreadable`] if a sequence number is missing.
pub(crate) fn chain(cx: &Cx<'_>, channel: &str) -> Result<(Seq, Hash), Fault> {
    let (mut last, mut hash) = (0, Hash::default());
    all(cx, select!("ORDER BY seq"), [channel], |row| {
        let event = event(cx, row)?;
        last += 1;
        if event.seq != Some(last) {
            let message = format!("the log of the channel {channel} has no event {last}");
            return Err(fault(StoreCode::Unreadable, message));
        }
        let data = event.attachments.iter().map(|a| digest(&a.data));
        let data: Vec<Hash> = data.collect();
        let link = Link {
            seq: last,
            ts: event.ts,
            id: event.id,
            hops: event.hops,
            // Hash the stored text: a number has several JSON forms.
            body: digest(row.text(7)?.as_bytes()),
            sender: row.text(5)?,
            attachments: &event.attachments,
            data: &data,
        };
        hash = link.after(&hash);
        Ok(())
    })?;
    Ok((last, hash))
}

fn attachments(cx: &Cx<'_>, channel: i64, seq: i64) -> Result<Vec<Attachment>, Fault> {
    let sql = "SELECT id, mime_type, name, data FROM channel_attachment
               JOIN blob ON digest = blob WHERE channel = ?1 AND seq = ?2 ORDER BY n";
    all(cx, sql, [channel, seq], |row| {
        Ok(Attachment {
            id: row.get(0)?,
            mime_type: row.get(1)?,
            name: row.get(2)?,
            data: row.get(3)?,
        })
    })
}
