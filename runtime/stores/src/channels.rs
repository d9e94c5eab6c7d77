//! Channels of a store: the operations of [`ChannelStore`], each in one transaction.

use crate::agents::refused;
use crate::encoded::{EncodedEvent, check_channel};
use crate::fault::{Fault, fault, unreadable};
use crate::log;
use crate::rows::{all, change, json, one, uint};
use crate::runtime::{Cx, Reply, SqliteRuntime};
use crate::sql::params;
use a99_runtime_engine::{
    Appended, BoxFuture, ChannelStore, Event, Fence, Millis, NewEvent, Seq, StoreCode, StoreError,
    Uuid,
};
use serde_json::{Map, Value};
use std::future::ready;
use std::sync::Arc;

const CONFIG: &str = "SELECT config FROM channel WHERE name = ?1";

fn config(
    cx: &Cx<'_>,
    sql: &'static str,
    channel: &str,
) -> Result<Option<Map<String, Value>>, Fault> {
    let text: Option<String> = one(cx, sql, [channel], |row| row.get(0))?;
    text.map(|text| match serde_json::from_str(&text)? {
        Value::Object(config) => Ok(config),
        _ => Err(unreadable(format!(
            "the configuration of the channel {channel} is no object"
        ))),
    })
    .transpose()
}

impl SqliteRuntime {
    /// Fails if this store does not hold channels.
    fn check_channels(&self) -> Result<(), StoreError> {
        match self.shared().options.has_channels {
            true => Ok(()),
            false => Err(StoreError::new(
                StoreCode::Input,
                "the logs of channels lie in another store",
            )),
        }
    }
}

impl ChannelStore for SqliteRuntime {
    fn append(
        &self,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        now: Millis,
    ) -> Reply<'_, Vec<Appended>> {
        let limits = &self.shared().options.limits;
        let events = events.into_iter().map(|new| EncodedEvent::of(new, limits));
        let events = events.collect::<Result<Vec<EncodedEvent>, _>>();
        match self.check_channels().and(events) {
            Ok(events) => {
                let bytes = events.iter().map(EncodedEvent::size).sum();
                self.write_bytes(bytes, move |cx| {
                    match &fence {
                        // Agents of another store have its epochs, and their server owns all shards.
                        Some(fence) => cx.own(fence.key.shard()).map(drop)?,
                        None => cx.own_any()?,
                    }
                    log::append(cx, events, fence.as_ref(), now)
                })
            }
            Err(error) => refused(error),
        }
    }

    fn append_each(
        &self,
        events: Vec<NewEvent>,
        now: Millis,
    ) -> BoxFuture<'_, Vec<Result<Appended, StoreError>>> {
        if let Err(error) = self.check_channels() {
            let refused = events.iter().map(|_| Err(error.clone()));
            return Box::pin(ready(refused.collect()));
        }
        let limits = &self.shared().options.limits;
        // What cannot be encoded is refused at its place; the others go into the transaction.
        let mut places = Vec::with_capacity(events.len());
        let mut packed = Vec::with_capacity(events.len());
        for event in events {
            places.push(EncodedEvent::of(event, limits).map(|event| packed.push(event)));
        }
        let bytes = packed.iter().map(EncodedEvent::size).sum();
        let appended = self.write_bytes(bytes, move |cx| {
            cx.own_any()?;
            log::append_each(cx, packed, now)
        });
        Box::pin(async move {
            let mut appended = appended.await.map(Vec::into_iter);
            let lost = || StoreError::new(StoreCode::InDoubt, "the store gave no place");
            let placed = places.into_iter().map(|place| {
                place?;
                match &mut appended {
                    Ok(appended) => appended.next().ok_or_else(lost)?,
                    Err(error) => Err(error.clone()),
                }
            });
            placed.collect()
        })
    }

    fn read(&self, channel: &str, after: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let channel = channel.to_owned();
        SqliteRuntime::read(self, move |cx| log::after(cx, &channel, after, most))
    }

    fn read_before(&self, channel: &str, before: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let channel = channel.to_owned();
        SqliteRuntime::read(self, move |cx| log::before(cx, &channel, before, most))
    }

    fn find(&self, channel: &str, id: Uuid) -> Reply<'_, Option<Arc<Event>>> {
        let channel = channel.to_owned();
        SqliteRuntime::read(self, move |cx| log::find(cx, &channel, id))
    }

    fn head(&self, channel: &str) -> Reply<'_, Seq> {
        let channel = channel.to_owned();
        SqliteRuntime::read(self, move |cx| log::head(cx, &channel))
    }

    fn channels(&self) -> Reply<'_, Vec<(String, Seq)>> {
        SqliteRuntime::read(self, |cx| {
            let sql = "SELECT name, head FROM channel ORDER BY name";
            all(cx, sql, params![], |row| {
                Ok((row.get(0)?, uint(row.get(1)?)?))
            })
        })
    }

    fn channel_config(&self, channel: &str) -> Reply<'_, Value> {
        let channel = channel.to_owned();
        SqliteRuntime::read(self, move |cx| {
            let config = config(cx, CONFIG, &channel)?;
            Ok(Value::Object(config.unwrap_or_default()))
        })
    }

    fn update_channel_config(&self, channel: &str, changes: Value) -> Reply<'_, Value> {
        let channel = channel.to_owned();
        let changes = match (self.check_channels().and(check_channel(&channel)), changes) {
            (Ok(()), Value::Object(changes)) => changes,
            (Ok(()), _) => {
                let message = "changes of a configuration are an object";
                return refused(StoreError::new(StoreCode::Input, message));
            }
            (Err(error), _) => return refused(error),
        };
        self.write(move |cx| {
            cx.own_any()?;
            let locked = "SELECT config FROM channel WHERE name = ?1 /*FOR UPDATE*/";
            let mut merged = match config(cx, locked, &channel)? {
                Some(config) => config,
                None => {
                    log::make(cx, &channel)?;
                    config(cx, locked, &channel)?.unwrap_or_default()
                }
            };
            merged.extend(changes);
            let merged = Value::Object(merged);
            let text = json("configuration", &merged)?;
            let most = cx.shared.options.limits.max_inline_bytes;
            if text.len() > most {
                let message = format!(
                    "the configuration of the channel {channel} would have {} bytes of at most \
                     {most}",
                    text.len()
                );
                return Err(fault(StoreCode::TooLarge, message));
            }
            let sql = "UPDATE channel SET config = ?2 WHERE name = ?1";
            change(cx, sql, params![channel, text])?;
            Ok(merged)
        })
    }
}
