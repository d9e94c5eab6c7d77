//! Checks of logs: dense sequence numbers, idempotent appends, pages.

use super::{
    Check, Finding, Fixture, Outcome, attached, fence, holds, joined, key, refused, said, same,
};
use a99_runtime_engine::{
    Body, BoxFuture, ChannelStore, Epoch, EventKind, Fence, NewEvent, Sender, StoreCode,
    TRACEPARENT, derived,
};
use serde_json::json;
use std::sync::Arc;

/// Number of concurrent writers, and of events that each appends.
const WRITERS: usize = 8;
const EACH: usize = 25;

pub(super) fn checks<F: Fixture>() -> Vec<Check<F>> {
    vec![
        ("an identity is appended once", |f| Box::pin(once(f))),
        ("appended is all or nothing", |f| Box::pin(all_or_none(f))),
        ("of those appended by themselves each stands alone", |f| {
            Box::pin(each_alone(f))
        }),
        ("later epochs shut out earlier ones", |f| {
            Box::pin(epochs(f))
        }),
        ("places are dense", |f| Box::pin(dense(f))),
        ("logs are read in pages", |f| Box::pin(pages(f))),
        ("events come back as they were", |f| Box::pin(bodies(f))),
        ("configurations are merged", |f| Box::pin(configs(f))),
        ("what could not be read is not kept", |f| {
            Box::pin(unreadable(f))
        }),
    ]
}

async fn once<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let first = store.append(vec![said(&a, "x", "one")], None, 5).await?;
    let second = store.append(vec![said(&a, "x", "one")], None, 6).await?;
    let was_new = |appended: &[a99_runtime_engine::Appended]| {
        let new = appended.iter().map(|one| one.is_new);
        new.collect::<Vec<_>>()
    };
    same(&was_new(&first), &vec![true], "the first")?;
    same(&was_new(&second), &vec![false], "the second")?;
    let events = |appended: &[a99_runtime_engine::Appended]| {
        let events = appended.iter().map(|one| one.event.clone());
        events.collect::<Vec<_>>()
    };
    same(&events(&second), &events(&first), "what stands there")?;
    let twice = vec![said(&a, "y", "two"), said(&a, "y", "two")];
    let twice = store.append(twice, None, 7).await?;
    same(&was_new(&twice), &vec![true, false], "twice in one call")?;

    // Another attempt of a turn is another span.
    let mut traced = said(&a, "x", "one");
    if let Body::Message(message) = &mut traced.event.body {
        message.metadata = Some(json!({TRACEPARENT: "another"}));
    }
    let traced = store.append(vec![traced], None, 8).await?;
    same(&was_new(&traced), &vec![false], "in another trace")?;

    let mut stranger = said(&a, "x", "one");
    stranger.event.sender = Arc::new(Sender {
        id: derived(&["stranger"]),
        ..Sender::default()
    });
    for (other, what) in [
        (said(&a, "x", "two"), "another body"),
        (attached(said(&a, "x", "one"), b"1"), "another attachment"),
        (stranger, "another sender"),
    ] {
        let other = store.append(vec![other], None, 8).await;
        refused(other, StoreCode::ChangedBody, what)?;
    }
    // The sender may have been renamed meanwhile, and another channel has a separate log.
    let mut renamed = said(&a, "x", "one");
    renamed.event.sender = Arc::new(Sender {
        name: Some("renamed".to_owned()),
        ..Sender::agent(&a)
    });
    let mut elsewhere = said(&a, "x", "two");
    "other".clone_into(&mut elsewhere.channel);
    let both = store.append(vec![renamed, elsewhere], None, 9).await?;
    same(&was_new(&both), &vec![false, true], "renamed, elsewhere")?;
    let channels = vec![("general".to_owned(), 2), ("other".to_owned(), 1)];
    same(&store.channels().await?, &channels, "the channels")
}

async fn all_or_none<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    store.append(vec![said(&a, "x", "one")], None, 1).await?;
    let events = vec![said(&a, "new", "new"), said(&a, "x", "two")];
    let changed = store.append(events, None, 2).await;
    refused(changed, StoreCode::ChangedBody, "another body")?;
    let new = store.find("general", derived(&["new"])).await?;
    same(&new, &None, "what came with it")?;
    same(&store.head("general").await?, &1, "the head")
}

async fn each_alone<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    store.append(vec![said(&a, "x", "one")], None, 1).await?;
    let (mut nameless, mut elsewhere) = (said(&a, "bad", ""), said(&a, "x", "two"));
    nameless.channel.clear();
    "other".clone_into(&mut elsewhere.channel);
    let events = vec![
        said(&a, "before", "1"),
        nameless,
        said(&a, "x", "two"),
        elsewhere,
        said(&a, "after", "2"),
        said(&a, "after", "2"),
    ];
    let placed: Vec<_> = store
        .append_each(events, 2)
        .await
        .into_iter()
        .map(|one| {
            let one = one.map_err(|error| error.code())?;
            Ok((one.channel, one.event.seq, one.event.ts, one.is_new))
        })
        .collect();
    let general = |seq, is_new| Ok(("general".to_owned(), Some(seq), 2, is_new));
    let expected = vec![
        general(2, true),
        Err(StoreCode::Input),
        Err(StoreCode::ChangedBody),
        Ok(("other".to_owned(), Some(1), 2, true)),
        general(3, true),
        general(3, false),
    ];
    same(&placed, &expected, "the places")?;
    let events = store.read("general", 0, 10).await?;
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    let expected = ["x", "before", "after"]
        .map(|name| derived(&[name]))
        .to_vec();
    same(&ids, &expected, "the log")?;
    // The chain of hashes goes on where the group ended.
    let next = store.append(vec![said(&a, "next", "3")], None, 3).await?;
    same(
        &next.first().and_then(|one| one.event.seq),
        &Some(4),
        "the next",
    )
}

async fn epochs<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    // An agent in another store writes under epochs of that store.
    let under = |epoch| {
        Some(Fence {
            key: a.clone(),
            epoch: Epoch(epoch),
        })
    };
    let event = |n: u64| vec![said(&a, &format!("epoch {n}"), "x")];
    store.append(event(7), under(7), 1).await?;
    store.append(event(8), under(7), 1).await?;
    let low = store.append(event(9), under(6), 1).await;
    refused(low, StoreCode::Fenced, "an earlier epoch")?;
    store.append(event(9), under(8), 1).await?;
    let low = store.append(event(10), under(7), 1).await;
    refused(low, StoreCode::Fenced, "an epoch of before")?;
    same(&store.head("general").await?, &3, "the head")
}

async fn dense<F: Fixture>(fixture: &F) -> Outcome {
    let store = fixture.open()?;
    let mut writers: Vec<BoxFuture<'_, Outcome>> = Vec::new();
    for writer in 0..WRITERS {
        let (store, key) = (&store, key(&writer.to_string())?);
        writers.push(Box::pin(async move {
            for n in 0..EACH {
                let event = said(&key, &format!("{writer}/{n}"), "x");
                let fence = (n % 2 == 0).then(|| fence(store, &key));
                store.append(vec![event], fence, 1).await?;
            }
            Ok(())
        }));
    }
    joined(writers).await.into_iter().collect::<Outcome>()?;
    let events = store.read("general", 0, usize::MAX).await?;
    let places: Vec<_> = events.iter().filter_map(|event| event.seq).collect();
    let count = u64::try_from(WRITERS * EACH).unwrap_or_default();
    let expected: Vec<u64> = (1..=count).collect();
    same(&places, &expected, "the places of all events")
}

async fn pages<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let empty = store.read("general", 0, 10).await?;
    same(&empty.len(), &0, "a channel that is not there")?;
    same(&store.head("general").await?, &0, "its head")?;
    let events = (1..=10).map(|n| said(&a, &format!("page {n}"), &n.to_string()));
    store.append(events.collect(), None, 77).await?;
    let places = |events: Vec<Arc<a99_runtime_engine::Event>>| {
        let places = events.iter().filter_map(|event| event.seq);
        places.collect::<Vec<_>>()
    };
    let page = store.read("general", 3, 4).await?;
    let is_kept = page
        .iter()
        .all(|event| event.kind == EventKind::Persisted && event.ts == 77);
    holds(is_kept, "events are persisted, with the time of the log")?;
    same(&places(page), &vec![4, 5, 6, 7], "a page")?;
    let end = store.read("general", 8, 4).await?;
    same(&places(end), &vec![9, 10], "the last page")?;
    let back = store.read_before("general", 4, 2).await?;
    same(&places(back), &vec![3, 2], "a page backwards")?;
    let back = store.read_before("general", u64::MAX, 1).await?;
    same(&places(back), &vec![10], "the newest")?;
    let past = store.read("general", u64::MAX, 1).await?;
    same(
        &places(past),
        &Vec::new(),
        "what follows the last place of all",
    )
}

async fn bodies<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let long = "\u{e9}'\"\0\u{1f600}".repeat(crate::StoreLimits::SMALL.max_inline_bytes / 8);
    let mut events: Vec<NewEvent> = vec![
        said(&a, "short", ""),
        said(&a, "long", &long),
        attached(attached(said(&a, "with", "data"), &[0, 255]), &[]),
        attached(said(&a, "again", "data"), &[0, 255]),
    ];
    let appended = store.append(events.clone(), None, 3).await?;
    let found = store.read("general", 0, 10).await?;
    let told: Vec<_> = appended.into_iter().map(|one| one.event).collect();
    same(&found, &told, "what is read and what was told")?;
    for (n, (new, found)) in events.iter_mut().zip(&found).enumerate() {
        new.event.ts = 3;
        new.event.seq = u64::try_from(n + 1).ok();
        same(&**found, &new.event, "an event")?;
        let one = store.find("general", new.event.id).await?;
        same(&one.as_ref(), &Some(found), "an event by its identity")?;
    }
    let again = store.append(vec![said(&a, "long", &long)], None, 4).await?;
    let is_old = again.iter().all(|one| !one.is_new);
    holds(is_old, "a long body is known again")?;
    let other = vec![said(&a, "long", &format!("{long}."))];
    let other = store.append(other, None, 4).await;
    refused(other, StoreCode::ChangedBody, "another long body")
}

async fn unreadable<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let nested = |levels| {
        let mut event = said(&a, &format!("{levels} levels"), "");
        let mut payload = json!("]]][[[\"[[[");
        for _ in 0..levels {
            payload = json!([payload]);
        }
        let name = "nested".to_owned();
        event.event.body = Body::Custom { name, payload };
        event
    };
    let deep = store.append(vec![nested(500)], None, 1).await;
    refused(deep, StoreCode::Input, "an event that is nested deep")?;
    store.append(vec![nested(100)], None, 1).await?;
    same(&store.read("general", 0, 10).await?.len(), &1, "the log")?;
    for name in ["", "a/b", "a\n"] {
        let mut event = said(&a, "named", "");
        name.clone_into(&mut event.channel);
        let named = store.append(vec![event], None, 1).await;
        refused(named, StoreCode::Input, "a channel without a proper name")?;
        let config = store.update_channel_config(name, json!({})).await;
        refused(config, StoreCode::Input, "a channel without a proper name")?;
    }
    Ok(())
}

async fn configs<F: Fixture>(fixture: &F) -> Outcome {
    let store = fixture.open()?;
    let none = store.channel_config("general").await?;
    same(&none, &json!({}), "the configuration of no channel")?;
    for (changes, expected) in [
        (
            json!({"a": {"b": 1}, "c": 2}),
            json!({"a": {"b": 1}, "c": 2}),
        ),
        (json!({"a": {"d": 1}}), json!({"a": {"d": 1}, "c": 2})),
    ] {
        let merged = store.update_channel_config("general", changes).await?;
        same(&merged, &expected, "what is there now")?;
        let kept = store.channel_config("general").await?;
        same(&kept, &expected, "what is kept")?;
    }
    let list = store.update_channel_config("general", json!([])).await;
    refused(list, StoreCode::Input, "a list")?;
    let channels = store.channels().await?;
    let channel = vec![("general".to_owned(), 0)];
    same(&channels, &channel, "a channel without events")
        .map_err(|finding| Finding(format!("{finding}; a configuration makes a channel")))
}
