//! Tests of the judge: a sound history, and one broken by hand for each kind of violation.

use super::*;

const EPOCH: Epoch = Epoch(1);

fn setup(delivery: Delivery) -> Setup {
    Setup {
        delivery,
        concurrency: 1,
        max_attempts: 3,
        max_deaths: 3,
        on_dead: OnDead::Continue,
    }
}

fn at(checkpoint: Seq) -> Progress {
    Progress {
        checkpoint,
        ..Progress::default()
    }
}

fn timer() -> Trigger {
    Trigger::Timer("t".to_owned(), 9)
}

fn committed(trigger: Trigger, end: TurnEnd) -> Committed {
    let is_done = end == TurnEnd::Done;
    Committed {
        agent: 0,
        epoch: EPOCH,
        progress: trigger.seq().map(at),
        value: if is_done { 5 } else { 0 },
        sends: if is_done {
            vec![Send::Reply]
        } else {
            Vec::new()
        },
        trigger,
        end,
        run: 1,
        timers: Vec::new(),
        was_gone: false,
    }
}

fn dead(trigger: Trigger, code: &str, attempts: u32) -> Fact {
    let (code, error) = (code.to_owned(), String::new());
    let end = TurnEnd::Dead {
        code,
        error,
        attempts,
    };
    Fact::Committed(committed(trigger, end))
}

fn reply(seq: Seq, trigger: Trigger) -> Fact {
    Fact::Appended(seq, Origin::Sent(0, trigger, Send::Reply))
}

fn began(trigger: Trigger) -> Fact {
    Fact::Began(0, EPOCH, trigger, 1)
}

/// A turn that goes well, without its reply.
fn turn(trigger: &Trigger, timers: &[(String, Option<Millis>)]) -> Vec<Fact> {
    let commit = Committed {
        timers: timers.to_vec(),
        ..committed(trigger.clone(), TurnEnd::Done)
    };
    vec![
        began(trigger.clone()),
        Fact::Step(0, trigger.clone()),
        Fact::StepKept(0, trigger.clone()),
        Fact::Effect(0, trigger.clone()),
        Fact::Committed(commit),
    ]
}

/// Two events and a timer, each with its reply.
fn sound() -> History {
    let [first, second] = [1, 2].map(Trigger::Event);
    let mut facts = vec![
        Fact::Opened(EPOCH),
        Fact::Appended(1, Origin::Published(5, vec![0])),
        Fact::Appended(2, Origin::Published(5, vec![0])),
    ];
    facts.extend(turn(&first, &[("t".to_owned(), Some(9))]));
    facts.push(reply(3, first));
    facts.extend(turn(&second, &[]));
    facts.push(reply(4, second));
    facts.extend(turn(&timer(), &[]));
    facts.push(reply(5, timer()));
    facts.push(Fact::Saved(0, EPOCH, at(5)));
    History {
        agents: vec![setup(Delivery::ExactlyOnceState)],
        facts,
        finals: vec![Final {
            progress: at(5),
            sum: 15,
            is_stopped: false,
        }],
        is_settled: true,
    }
}

fn place(history: &History, is_it: impl Fn(&Fact) -> bool) -> usize {
    let place = history.facts.iter().position(is_it);
    place.expect("the fact is there")
}

fn commit_of(history: &History, trigger: &Trigger) -> usize {
    let is_it = |fact: &Fact| matches!(fact, Fact::Committed(c) if c.trigger == *trigger);
    place(history, is_it)
}

fn edit_commit(history: &mut History, trigger: &Trigger, edit: impl Fn(&mut Committed)) {
    let at = commit_of(history, trigger);
    if let Fact::Committed(commit) = &mut history.facts[at] {
        edit(commit);
    }
}

/// Breaks the sound history, and expects this violation.
#[track_caller]
fn broken(kind: Kind, edit: impl FnOnce(&mut History)) {
    let mut history = sound();
    edit(&mut history);
    let found = check(&history);
    let kinds: Vec<Kind> = found.iter().map(|violation| violation.kind).collect();
    assert!(kinds.contains(&kind), "{kind:?} is not among {found:?}");
}

#[test]
fn a_sound_history_breaks_nothing() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn what_is_lost_or_wrong_in_the_end_is_found() {
    broken(Kind::Lost, |h| h.finals[0].progress = at(4));
    broken(Kind::Lost, |h| {
        // Neither run nor committed, and claimed by the turn before it.
        let [first, last] = [began(Trigger::Event(2)), reply(4, Trigger::Event(2))]
            .map(|fact| place(h, |other| *other == fact));
        h.facts.drain(first..last);
    });
    broken(Kind::WrongState, |h| h.finals[0].sum = 10);
    broken(Kind::Stuck, |h| h.is_settled = false);
}

#[test]
fn turns_that_end_twice_or_out_of_order_are_found() {
    let [first, second] = [1, 2].map(Trigger::Event);
    broken(Kind::Duplicated, |h| {
        let at = commit_of(h, &second);
        h.facts.insert(at, h.facts[at].clone());
    });
    broken(Kind::OutOfOrder, |h| {
        let [a, b] = [&first, &second].map(|trigger| commit_of(h, trigger));
        h.facts.swap(a, b);
    });
    broken(Kind::Outlived, |h| {
        let at = commit_of(h, &first);
        h.facts.insert(at, Fact::Began(0, EPOCH, first.clone(), 2));
    });
    broken(Kind::LostAgain, |h| {
        edit_commit(h, &first, |commit| commit.end = TurnEnd::Lost);
    });
    broken(Kind::RanTwice, |h| {
        h.agents[0].delivery = Delivery::AtMostOnce;
        let at = commit_of(h, &first);
        h.facts.insert(at, began(first.clone()));
    });
    broken(Kind::EffectMissing, |h| {
        h.facts
            .retain(|fact| *fact != Fact::Effect(0, second.clone()));
    });
    broken(Kind::ActedAhead, |h| {
        let at = commit_of(h, &first);
        h.facts.insert(at, Fact::Step(0, second.clone()));
    });
    broken(Kind::StepRepeated, |h| {
        let at = commit_of(h, &first);
        h.facts.insert(at, Fact::Step(0, first.clone()));
    });
}

#[test]
fn what_is_sent_wrongly_is_found() {
    let [first, second] = [1, 2].map(Trigger::Event);
    broken(Kind::SendMissing, |h| {
        let at = place(h, |fact| *fact == reply(5, timer()));
        h.facts[at] = Fact::Appended(5, Origin::Published(0, Vec::new()));
    });
    broken(Kind::SendDuplicated, |h| {
        h.facts.push(reply(6, second.clone()))
    });
    broken(Kind::SendOutOfOrder, |h| {
        let early = place(h, |fact| *fact == reply(3, first.clone()));
        h.facts[early] = Fact::Appended(3, Origin::Published(0, Vec::new()));
        h.facts.push(reply(6, first.clone()));
    });
    broken(Kind::SentEarly, |h| {
        let late = place(h, |fact| *fact == reply(3, first.clone()));
        let fact = h.facts.remove(late);
        h.facts.insert(3, fact);
    });
    broken(Kind::LogHole, |h| h.facts.push(reply(7, Trigger::Event(9))));
}

#[test]
fn progress_that_lies_is_found() {
    let [first, second] = [1, 2].map(Trigger::Event);
    broken(Kind::ProgressBack, |h| {
        edit_commit(h, &second, |commit| commit.progress = Some(at(0)));
    });
    broken(Kind::BeyondHead, |h| {
        edit_commit(h, &second, |commit| commit.progress = Some(at(9)));
    });
    broken(Kind::ClaimsUndone, |h| {
        edit_commit(h, &first, |commit| commit.progress = Some(at(2)));
    });
    broken(Kind::ClaimsUndone, |h| {
        h.facts.insert(3, Fact::Saved(0, EPOCH, at(1)))
    });
    broken(Kind::OldOwner, |h| {
        h.facts.insert(3, Fact::Opened(Epoch(2)))
    });
}

#[test]
fn turns_that_are_given_up_early_are_found() {
    let second = Trigger::Event(2);
    let give_up = |code: &'static str, attempts, before: Vec<Fact>| {
        move |h: &mut History| {
            let place = commit_of(h, &Trigger::Event(2));
            h.facts[place] = dead(Trigger::Event(2), code, attempts);
            h.facts.splice(place..place, before);
            h.facts.retain(|fact| *fact != reply(4, Trigger::Event(2)));
        }
    };
    let failed = Fact::Failed(0, EPOCH, second.clone(), false);
    broken(
        Kind::DeadEarly,
        give_up("turn.failed", 1, vec![failed.clone()]),
    );
    broken(Kind::DeadEarly, give_up("turn.failed", 3, vec![failed; 2]));
    let recorded = Fact::Recorded(0, EPOCH, second, None);
    broken(
        Kind::DeadEarly,
        give_up("turn.killed_the_process", 3, vec![recorded]),
    );
    broken(Kind::DeadEarly, |h| {
        h.agents[0].on_dead = OnDead::Stop;
        give_up(
            "turn.failed",
            1,
            vec![Fact::Failed(0, EPOCH, Trigger::Event(2), true)],
        )(h);
    });
    let mut history = sound();
    let is_final = vec![Fact::Failed(0, EPOCH, Trigger::Event(2), true)];
    give_up("turn.failed", 1, is_final)(&mut history);
    let found = check(&history);
    assert!(found.iter().all(|v| v.kind != Kind::DeadEarly), "{found:?}");
}

#[test]
fn timers_that_fire_wrongly_are_found() {
    let first = Trigger::Event(1);
    broken(Kind::TimerTwice, |h| {
        let at = commit_of(h, &timer());
        h.facts.insert(at, h.facts[at].clone());
    });
    broken(Kind::TimerUnset, |h| {
        edit_commit(h, &first, |commit| commit.timers.clear());
    });
    broken(Kind::TimerNever, |h| {
        edit_commit(h, &first, |commit| {
            commit.timers.push(("u".to_owned(), Some(9)))
        });
    });
}
