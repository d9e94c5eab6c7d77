//! Laws of the machine: properties that hold for any inputs in any order.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Commands in progress, and their claims.
struct Watch {
    machine: Machine,
    policy: Policy,
    now: Millis,
    running: BTreeMap<TurnId, (u32, Trigger)>,
    write: Option<Command>,
    kept: Progress,
    /// Events that were filtered, recorded as begun, or are committed.
    passed: BTreeSet<Seq>,
    /// Number of commits, by trigger.
    commits: BTreeMap<Trigger, u32>,
    runs: u32,
    stopped: Option<StopReason>,
    filtered: BTreeSet<Seq>,
    /// Whether progress was not kept once.
    save_failed: bool,
}

impl Watch {
    fn see(&mut self, commands: Vec<Command>) {
        for command in commands {
            assert_eq!(self.stopped, None, "nothing follows a stop: {command:?}");
            match command {
                Command::Run {
                    turn,
                    trigger,
                    attempt,
                } => {
                    if let Trigger::Event(seq) = &trigger {
                        assert!(!self.filtered.contains(seq), "filtered: {seq}");
                    }
                    assert_eq!(
                        self.commits.get(&trigger).copied().unwrap_or_default(),
                        0,
                        "done: {trigger}"
                    );
                    self.runs += 1;
                    assert_eq!(self.running.insert(turn, (attempt, trigger)), None);
                    let most = usize::try_from(self.policy.concurrency.get()).expect("small");
                    assert!(self.running.len() <= most, "too many run");
                }
                Command::Record { .. } | Command::Commit { .. } | Command::Save(_) => {
                    self.judge_claim(&command);
                    assert_eq!(self.write.replace(command), None, "two writes");
                }
                Command::Cancel(turn) => assert!(self.running.contains_key(&turn)),
                Command::WakeAt(_) | Command::Lost(_) => {}
                Command::Stop(reason) => self.stopped = Some(reason),
            }
        }
    }

    /// A claim contains the stored progress, and no unprocessed event.
    fn judge_claim(&self, command: &Command) {
        let (claim, own) = match command {
            Command::Record {
                progress, trigger, ..
            }
            | Command::Commit {
                progress, trigger, ..
            } => (progress.as_ref(), trigger.seq()),
            Command::Save(progress) => (Some(progress), None),
            _ => (None, None),
        };
        let Some(claim) = claim else { return };
        assert!(claim.checkpoint >= self.kept.checkpoint, "backwards");
        assert!(self.kept.done.iter().all(|seq| claim.has(*seq)));
        for seq in (1..=claim.checkpoint).chain(claim.done.iter().copied()) {
            let holds = self.kept.has(seq) || self.passed.contains(&seq) || own == Some(seq);
            assert!(holds, "{command:?} claims {seq}");
        }
    }

    fn input(&mut self, input: Input) {
        let commands = self.machine.handle(self.now, input);
        self.see(commands);
    }

    fn event(&mut self, seq: Seq, deliver: bool) {
        if !deliver && !self.commits.contains_key(&Trigger::Event(seq)) {
            self.passed.insert(seq);
        }
        self.input(Input::Event { seq, deliver });
    }

    fn end(&mut self, result: TurnResult) {
        let Some((turn, (attempt, _))) = self.running.pop_first() else {
            return;
        };
        self.input(Input::Ended(turn, attempt, result));
    }

    fn answer(&mut self, fault: Option<CommitFault>) {
        let Some(write) = self.write.take() else {
            return;
        };
        self.save_failed |= fault.is_some() && matches!(write, Command::Save(_));
        if fault.is_none() {
            let (claim, own) = match &write {
                Command::Save(claim) => (Some(claim), None),
                Command::Record {
                    progress, trigger, ..
                } => (progress.as_ref(), progress.as_ref().and(trigger.seq())),
                Command::Commit {
                    progress,
                    trigger,
                    end,
                    ..
                } => {
                    // A hook may come again.
                    let is_hook = matches!(trigger, Trigger::Once(_)) && *end == TurnEnd::Lost;
                    *self.commits.entry(trigger.clone()).or_default() += u32::from(!is_hook);
                    (progress.as_ref(), trigger.seq())
                }
                _ => (None, None),
            };
            self.passed.extend(own);
            if let Some(claim) = claim {
                self.kept = claim.clone();
            }
        }
        self.input(match (write, fault) {
            (Command::Record { turn, .. }, None) => Input::Recorded(turn),
            (Command::Record { turn, .. }, Some(fault)) => Input::NotRecorded(turn, fault),
            (Command::Commit { turn, .. }, None) => Input::Committed(turn),
            (Command::Commit { turn, .. }, Some(fault)) => Input::NotCommitted(turn, fault),
            (_, None) => Input::Saved,
            (_, Some(fault)) => Input::NotSaved(fault),
        });
    }

    /// Everything goes well from here on, and all events come again in order.
    fn settle(&mut self, events: &[bool]) {
        for _ in 0..2_000 {
            if self.stopped.is_some() {
                return;
            }
            self.now += 40_000;
            self.input(Input::Time);
            let taken = usize::try_from(self.machine.taken()).expect("small");
            for (at, deliver) in events
                .iter()
                .enumerate()
                .skip(taken)
                .take(self.machine.room())
            {
                self.event(u64::try_from(at).expect("small") + 1, *deliver);
            }
            self.end(TurnResult::Done);
            self.answer(None);
        }
    }
}

fn a_policy() -> impl Strategy<Value = Policy> {
    let modes = prop_oneof![
        Just(Delivery::AtMostOnce),
        Just(Delivery::AtLeastOnce),
        Just(Delivery::ExactlyOnceState)
    ];
    (modes, 1_u32..4, any::<bool>(), 1_usize..9).prop_map(|(mode, slots, stops, most)| Policy {
        on_dead: if stops {
            OnDead::Stop
        } else {
            OnDead::Continue
        },
        max_queued: most,
        lazy: 50,
        ..policy(mode, slots)
    })
}

fn a_trigger() -> impl Strategy<Value = Trigger> {
    prop_oneof![
        (1_u64..9).prop_map(Trigger::Event),
        (0_u64..3).prop_map(|due| Trigger::Timer("t".to_owned(), due)),
        (0_u128..3).prop_map(|id| Trigger::Once(uuid::Uuid::from_u128(id))),
    ]
}

fn a_recovery() -> impl Strategy<Value = Recovered> {
    let done = proptest::collection::btree_set(1_u64..9, 0..4);
    let started = proptest::collection::btree_map(a_trigger(), 0_u32..5, 0..3);
    (0_u64..4, done, started, any::<bool>()).prop_map(|(checkpoint, done, started, was_cut_off)| {
        let mut progress = progress(checkpoint, &[]);
        done.into_iter().for_each(|seq| progress.add(seq));
        let started = started.into_iter();
        Recovered {
            progress,
            started: started
                .map(|(trigger, attempts)| Started { trigger, attempts })
                .collect(),
            was_cut_off,
        }
    })
}

fn watch(policy: Policy, recovered: Recovered, events: &[bool]) -> Watch {
    let kept = recovered.progress.clone();
    let (machine, commands) = Machine::new(policy, recovered, 0);
    let filtered = events.iter().enumerate().filter(|(_, deliver)| !**deliver);
    let filtered = filtered.map(|(at, _)| u64::try_from(at).expect("small") + 1);
    let mut watch = Watch {
        machine,
        policy,
        now: 0,
        running: BTreeMap::new(),
        write: None,
        kept,
        passed: BTreeSet::new(),
        commits: BTreeMap::new(),
        runs: 0,
        stopped: None,
        filtered: filtered.collect(),
        save_failed: false,
    };
    watch.see(commands);
    watch
}

fn a_fault() -> impl Strategy<Value = CommitFault> {
    prop_oneof![
        6 => Just(CommitFault::Unavailable),
        4 => Just(CommitFault::Conflict),
        4 => Just(CommitFault::Refused),
        1 => Just(CommitFault::Fenced),
        1 => Just(CommitFault::InDoubt)
    ]
}

fn a_result() -> impl Strategy<Value = TurnResult> {
    prop_oneof![
        4 => Just(TurnResult::Done),
        2 => any::<bool>().prop_map(failed),
        1 => Just(TurnResult::Cancelled)
    ]
}

/// An action of a test.
#[derive(Clone, Debug)]
enum Act {
    Event(usize),
    Next,
    Trigger(Trigger),
    End(TurnResult),
    Answer(Option<CommitFault>),
    Later(Millis),
    Stray(u64, u32, CommitFault),
    Drain,
    Halt,
}

fn an_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_usize..30).prop_map(Act::Event),
        12 => Just(Act::Next),
        2 => a_trigger().prop_map(Act::Trigger),
        12 => a_result().prop_map(Act::End),
        12 => Just(Act::Answer(None)),
        4 => a_fault().prop_map(|fault| Act::Answer(Some(fault))),
        6 => (0_u64..200).prop_map(Act::Later),
        1 => (0_u64..50, 0_u32..9, a_fault()).prop_map(|(id, n, f)| Act::Stray(1_000 + id, n, f)),
        1 => Just(Act::Drain),
        1 => Just(Act::Halt),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn laws_hold_in_any_order(
        policy in a_policy(),
        recovered in a_recovery(),
        events in proptest::collection::vec(any::<bool>(), 9..30),
        acts in proptest::collection::vec(an_act(), 0..120),
    ) {
        let mut watch = watch(policy, recovered.clone(), &events);
        let mut ends = false;
        for act in acts {
            match act {
                Act::Event(at) => {
                    let at = at % events.len();
                    watch.event(u64::try_from(at).expect("small") + 1, events[at]);
                }
                Act::Next => {
                    let at = usize::try_from(watch.machine.taken()).expect("small");
                    if let Some(deliver) = events.get(at) {
                        watch.event(u64::try_from(at).expect("small") + 1, *deliver);
                    }
                }
                Act::Trigger(trigger) => {
                    if trigger.seq().is_none() && watch.commits.get(&trigger).is_none_or(|n| *n == 0) {
                        watch.input(Input::Trigger(trigger));
                    }
                }
                Act::End(result) => watch.end(result),
                Act::Answer(fault) => watch.answer(fault),
                Act::Later(millis) => {
                    watch.now += millis;
                    watch.input(Input::Time);
                }
                Act::Stray(id, attempt, fault) => {
                    watch.input(Input::Ended(TurnId(id), attempt, TurnResult::Done));
                    watch.input(Input::Committed(TurnId(id)));
                    watch.input(Input::Recorded(TurnId(id)));
                    watch.input(Input::NotRecorded(TurnId(id), fault));
                    watch.input(Input::NotCommitted(TurnId(id), fault));
                }
                Act::Drain => { ends = true; watch.input(Input::Drain); }
                Act::Halt => { ends = true; watch.input(Input::Halt); }
            }
        }
        watch.settle(&events);
        match watch.stopped {
            None => {
                prop_assert!(!ends, "it was to stop");
                prop_assert!(watch.machine.is_idle());
                let all = u64::try_from(events.len()).expect("small");
                let head = all.max(recovered.progress.checkpoint);
                prop_assert_eq!(watch.kept.checkpoint, head, "all is done, and kept");
                prop_assert_eq!(&watch.kept, watch.machine.progress());
                for (at, deliver) in events.iter().enumerate() {
                    let seq = u64::try_from(at).expect("small") + 1;
                    let was_done = recovered.progress.has(seq) || !deliver;
                    let commits = watch.commits.get(&Trigger::Event(seq));
                    prop_assert!(was_done || commits == Some(&1), "{}: {:?}", seq, commits);
                }
            }
            Some(StopReason::Drained) => {
                prop_assert!(ends && watch.running.is_empty() && watch.write.is_none());
                prop_assert!(watch.save_failed || &watch.kept == watch.machine.progress());
            }
            Some(StopReason::Dead) => prop_assert_eq!(policy.on_dead, OnDead::Stop),
            Some(StopReason::Fenced | StopReason::Reload) => {}
        }
        if policy.delivery == Delivery::AtMostOnce {
            let commits: u32 = watch.commits.values().sum();
            prop_assert!(watch.runs <= commits + u32::from(watch.stopped.is_some()) * 9);
        }
    }
}
