//! Checks of ownership: shards, leases and epochs of owners that share a store.

use super::agents::timer;
use super::{Check, Finding, Fixture, Outcome, fence, holds, refused, said, same, turn};
use a99_runtime_engine::{
    AgentKey, AgentStore, ChannelStore, Claim, Epoch, Registration, Shards, StoreCode, TakeOver,
    TimerChange, Trigger, TurnCommit,
};
use serde_json::json;

pub(super) fn checks<F: Fixture>() -> Vec<Check<F>> {
    vec![
        ("owners of disjoint shards work beside each other", |f| {
            Box::pin(disjoint(f))
        }),
        (
            "a shard that is taken over fences its owner only there",
            |f| Box::pin(taken_over(f)),
        ),
        ("a released shard is free at once", |f| {
            Box::pin(released(f))
        }),
        ("a lease ends by its time", |f| Box::pin(leases(f))),
        ("what other owners wait for hides nothing", |f| {
            Box::pin(listed(f))
        }),
        ("claims for the same shards give each to one", |f| {
            Box::pin(contended(f))
        }),
    ]
}

/// Two agents of different shards.
fn agents() -> Result<(AgentKey, AgentKey), Finding> {
    let (a, b) = (super::key("a")?, super::key("b")?);
    holds(a.shard() != b.shard(), "agents of different shards")?;
    Ok((a, b))
}

fn of(key: &AgentKey) -> Shards {
    [key.shard()].into_iter().collect()
}

/// A claim with a lease of 10 milliseconds from `now` on.
fn claim(owner: &str, shards: Shards, now: u64) -> Claim {
    Claim {
        shards,
        owner: owner.to_owned(),
        until: Some(now + 10),
        take_over: TakeOver::Never,
        now,
    }
}

async fn disjoint<F: Fixture>(fixture: &F) -> Outcome {
    let (one, two) = (fixture.share()?, fixture.share()?);
    let (a, b) = agents()?;
    same(&one.owned(), &Shards::NONE, "the shards before a claim")?;
    same(&one.epoch(&a), &Epoch(0), "the epoch before a claim")?;
    let code = StoreCode::Fenced;
    let early = one.commit(turn(fence(&one, &a), 1)).await;
    refused(early, code, "a turn before a claim")?;
    let nameless = one.acquire(claim("", of(&a), 1)).await;
    refused(nameless, StoreCode::Input, "an owner without a name")?;
    let others = Shards::ALL - of(&a);
    same(
        &one.acquire(claim("one", of(&a), 1)).await?,
        &of(&a),
        "the first",
    )?;
    same(
        &two.acquire(claim("two", Shards::ALL, 1)).await?,
        &others,
        "the rest",
    )?;
    same(&(one.owned(), two.owned()), &(of(&a), others), "the owners")?;
    same(&one.was_cut_off(), &Shards::NONE, "nobody was cut off")?;

    one.commit(turn(fence(&one, &a), 1)).await?;
    let mut of_b = TurnCommit::new(fence(&two, &b), 1);
    of_b.timers.push(TimerChange::Set(timer("y", 10)));
    two.commit(of_b).await?;
    let foreign = turn(fence(&two, &b), 1);
    refused(one.commit(foreign).await, code, "a turn of another's agent")?;
    let foreign = one
        .append(vec![said(&b, "b", "b")], Some(fence(&two, &b)), 1)
        .await;
    refused(foreign, code, "an event of another's agent")?;
    let registration = |key: &AgentKey| Registration {
        key: key.clone(),
        config: json!({}),
        registered_at: 1,
        metadata: None,
    };
    refused(
        one.register(registration(&b)).await,
        code,
        "another's agent",
    )?;
    one.register(registration(&a)).await?;
    two.register(registration(&b)).await?;
    one.record_start(fence(&one, &a), Trigger::Event(9), 1, None)
        .await?;
    two.record_start(fence(&two, &b), Trigger::Event(9), 1, None)
        .await?;
    // Events that belong to no agent may come from each of them.
    one.append(vec![said(&a, "x", "x")], None, 1).await?;
    two.append(vec![said(&a, "y", "y")], None, 1).await?;
    for (store, mine, due) in [(&one, &a, None), (&two, &b, Some(10))] {
        let registered = store.registrations().await?.into_iter();
        let registered: Vec<_> = registered.map(|one| one.key).collect();
        same(&registered, &vec![mine.clone()], "its agents")?;
        same(&store.behind().await?, &vec![mine.clone()], "who is behind")?;
        same(&store.next_due().await?, &due, "the next timer")?;
        let timers = store.timers_due(99, 9).await?.into_iter();
        let timers: Vec<_> = timers.map(|(key, _)| key).collect();
        same(
            &timers,
            &due.map(|_| mine.clone()).into_iter().collect(),
            "timers",
        )?;
    }
    Ok(())
}

async fn taken_over<F: Fixture>(fixture: &F) -> Outcome {
    let (one, two) = (fixture.share()?, fixture.share()?);
    let (a, b) = agents()?;
    one.acquire(claim("one", of(&a) | of(&b), 1)).await?;
    let (old_a, old_b) = (fence(&one, &a), fence(&one, &b));
    one.commit(turn(old_a.clone(), 1)).await?;
    same(
        &two.acquire(claim("two", of(&a), 1)).await?,
        &Shards::NONE,
        "a live lease",
    )?;
    let mut by_force = claim("two", of(&a), 1);
    by_force.take_over = TakeOver::Always;
    same(&two.acquire(by_force).await?, &of(&a), "a takeover")?;
    holds(two.epoch(&a) > old_a.epoch, "epochs rise")?;
    same(&two.was_cut_off(), &of(&a), "its owner was cut off")?;

    let code = StoreCode::Fenced;
    refused(
        one.commit(turn(old_a.clone(), 2)).await,
        code,
        "a late turn",
    )?;
    let late = one
        .append(vec![said(&a, "late", "late")], Some(old_a), 1)
        .await;
    refused(late, code, "a late event")?;
    // The other shard goes on, before and after the loss is noticed.
    one.commit(TurnCommit::new(old_b.clone(), 1)).await?;
    same(&one.renew(99).await?, &of(&a), "what was lost")?;
    same(&one.owned(), &of(&b), "what is left")?;
    one.commit(TurnCommit::new(old_b, 1)).await?;
    same(&one.renew(99).await?, &Shards::NONE, "nothing more is lost")?;
    same(&one.epoch(&a), &Epoch(0), "no epoch after a loss")?;
    let again = one.commit(turn(fence(&one, &a), 2)).await;
    refused(again, code, "a turn after a loss")?;
    // The refused owner neither keeps nor frees it.
    one.release(of(&a)).await?;
    same(
        &one.acquire(claim("one", of(&a), 2)).await?,
        &Shards::NONE,
        "a lost one",
    )?;
    two.commit(turn(fence(&two, &a), 2)).await?;
    same(
        &two.renew(99).await?,
        &Shards::NONE,
        "the new owner loses nothing",
    )
}

async fn released<F: Fixture>(fixture: &F) -> Outcome {
    let (one, two) = (fixture.share()?, fixture.share()?);
    let (a, b) = agents()?;
    one.acquire(claim("one", of(&a) | of(&b), 1)).await?;
    let old = fence(&one, &a);
    one.commit(turn(old.clone(), 1)).await?;
    one.release(of(&a)).await?;
    same(&one.owned(), &of(&b), "what is left")?;
    let code = StoreCode::Fenced;
    refused(
        one.commit(turn(old.clone(), 2)).await,
        code,
        "a turn after a release",
    )?;
    same(
        &two.acquire(claim("two", of(&a), 1)).await?,
        &of(&a),
        "a released shard",
    )?;
    same(&two.was_cut_off(), &Shards::NONE, "it was released")?;
    // Another release, or one of shards that were never owned, takes nothing from their owner.
    one.release(Shards::ALL - of(&b)).await?;
    two.commit(turn(fence(&two, &a), 2)).await?;
    same(&two.renew(99).await?, &Shards::NONE, "nothing is lost")?;
    // It comes back under a new epoch.
    two.release(of(&a)).await?;
    one.acquire(claim("one", of(&a), 1)).await?;
    refused(one.commit(turn(old, 3)).await, code, "a turn of before")?;
    one.commit(turn(fence(&one, &a), 3)).await?;
    // Acquired anew, an own shard has a new epoch, too.
    let before = fence(&one, &a);
    same(
        &one.acquire(claim("one", of(&a), 1)).await?,
        &of(&a),
        "an own shard",
    )?;
    refused(one.commit(turn(before, 4)).await, code, "a turn of before")?;
    same(&one.was_cut_off(), &Shards::NONE, "nobody was cut off")
}

async fn leases<F: Fixture>(fixture: &F) -> Outcome {
    let (one, two) = (fixture.share()?, fixture.share()?);
    let (a, b) = agents()?;
    one.acquire(claim("one", of(&a) | of(&b), 100)).await?;
    // Also a clock that was set back finds it owned.
    for now in [0, 109] {
        let none = two.acquire(claim("two", of(&a), now)).await?;
        same(&none, &Shards::NONE, "a lease that has not ended")?;
    }
    one.renew(120).await?;
    let none = two.acquire(claim("two", of(&a), 119)).await?;
    same(&none, &Shards::NONE, "a renewed lease")?;
    // An owner whose lease has ended goes on until another one comes.
    one.commit(turn(fence(&one, &a), 1)).await?;
    same(
        &two.acquire(claim("two", of(&a), 120)).await?,
        &of(&a),
        "an ended one",
    )?;
    same(&two.was_cut_off(), &of(&a), "its owner was cut off")?;
    same(
        &one.renew(200).await?,
        &of(&a),
        "the renewal comes too late",
    )?;
    let late = one.commit(turn(fence(&one, &a), 2)).await;
    refused(late, StoreCode::Fenced, "a turn after the lease")?;
    // The next process of an owner does not wait for its own lease.
    let next = fixture.share()?;
    let mut of_one = claim("one", of(&a) | of(&b), 125);
    of_one.take_over = TakeOver::SameName;
    same(&next.acquire(of_one).await?, &of(&b), "those of its name")?;
    // Without a lease a shard is owned until it is released.
    two.release(Shards::ALL).await?;
    let mut forever = claim("three", of(&a), 130);
    forever.until = None;
    let three = fixture.share()?;
    three.acquire(forever).await?;
    let none = two.acquire(claim("two", of(&a), u64::MAX >> 2)).await?;
    same(&none, &Shards::NONE, "a shard without a lease")?;
    // An owner that has the store alone takes everything at once.
    let alone = fixture.open()?;
    same(&alone.owned(), &Shards::ALL, "all shards")?;
    same(
        &alone.was_cut_off(),
        &(of(&a) | of(&b)),
        "whose owners were cut off",
    )
}

async fn listed<F: Fixture>(fixture: &F) -> Outcome {
    let (one, two) = (fixture.share()?, fixture.share()?);
    let (a, b) = agents()?;
    one.acquire(claim("one", of(&a), 1)).await?;
    two.acquire(claim("two", of(&b), 1)).await?;
    let mut many = TurnCommit::new(fence(&one, &a), 1);
    let timers = (0..10).map(|n| TimerChange::Set(timer(&format!("t{n}"), n)));
    many.timers = timers.collect();
    one.commit(many).await?;
    let mut late = TurnCommit::new(fence(&two, &b), 1);
    late.timers.push(TimerChange::Set(timer("late", 50)));
    two.commit(late).await?;
    let due = two.timers_due(99, 2).await?;
    same(
        &due,
        &vec![(b.clone(), timer("late", 50))],
        "behind ten of another",
    )?;
    same(&two.next_due().await?, &Some(50), "the next")?;
    same(
        &one.timers_due(99, 2).await?.len(),
        &2,
        "the page of the other",
    )?;
    // An agent can be read by every owner, its timers included.
    same(&one.timers(&b).await?.len(), &1, "timers of one agent")?;
    same(&one.load(&b).await?.is_some(), &true, "the row of an agent")?;
    // What is lost is not listed any more.
    let mut by_force = claim("two", of(&a), 1);
    by_force.take_over = TakeOver::Always;
    two.acquire(by_force).await?;
    one.renew(9).await?;
    same(&one.next_due().await?, &None, "timers after the loss")?;
    same(&two.timers_due(99, 99).await?.len(), &11, "timers of both")
}

async fn contended<F: Fixture>(fixture: &F) -> Outcome {
    let stores = (0..4).map(|_| fixture.share());
    let stores = stores.collect::<Result<Vec<_>, _>>()?;
    let claims = stores.iter().enumerate();
    let claims = claims.map(|(n, store)| store.acquire(claim(&n.to_string(), Shards::ALL, 1)));
    let taken = super::joined(claims.collect()).await;
    let taken = taken.into_iter().collect::<Result<Vec<_>, _>>()?;
    let count: usize = taken.iter().map(Shards::len).sum();
    same(&count, &Shards::ALL.len(), "each shard has one owner")?;
    for (store, taken) in stores.iter().zip(taken) {
        same(&store.owned(), &taken, "what an owner knows")?;
        same(&store.renew(99).await?, &Shards::NONE, "nothing is lost")?;
    }
    Ok(())
}
