//! Rules of the machine, one by one.

use super::*;
use CommitFault::{Conflict, Fenced, InDoubt, Refused, Unavailable};
use Delivery::{AtLeastOnce, AtMostOnce, ExactlyOnceState};

fn timer(due: Millis) -> Trigger {
    Trigger::Timer("t".to_owned(), due)
}

fn once() -> Trigger {
    Trigger::Once(uuid::Uuid::from_u128(7))
}

fn started(trigger: Trigger, attempts: u32) -> Recovered {
    Recovered {
        progress: progress(4, &[]),
        started: vec![Started { trigger, attempts }],
        was_cut_off: true,
    }
}

#[test]
fn a_turn_runs_and_is_committed_with_the_progress() {
    for mode in [ExactlyOnceState, AtLeastOnce] {
        let mut w = World::new(policy(mode, 1));
        assert_eq!(w.event(1), [run(1, 1, 1)]);
        assert_eq!(w.event(2), [], "one at a time");
        let done = commit(1, 1, TurnEnd::Done, Some(progress(1, &[])));
        assert_eq!(w.done(1, 1), [done]);
        assert_eq!(w.machine.progress(), &progress(0, &[]), "not kept yet");
        assert_eq!(w.committed(1), [run(2, 2, 1)]);
        assert_eq!(w.machine.progress(), &progress(1, &[]));
        assert!(!w.machine.is_idle());
        w.done(2, 1);
        assert_eq!(w.committed(2), []);
        assert!(w.machine.is_idle());
    }
}

#[test]
fn what_comes_again_is_ignored_and_what_skips_is_held_back() {
    let (mut w, _) = World::load(
        policy(ExactlyOnceState, 1),
        Recovered {
            progress: progress(2, &[4]),
            ..Recovered::default()
        },
    );
    for seq in [0, 1, 2, 4] {
        assert_eq!(w.event(seq), []);
    }
    assert_eq!(w.event(5), [], "3 is missing");
    assert_eq!((w.machine.taken(), w.machine.is_idle()), (2, false));
    assert_eq!(w.event(3), [run(1, 3, 1)]);
    assert_eq!(w.machine.taken(), 5);
    assert_eq!(w.event(3), []);
    assert_eq!(w.event(5), []);
    let done = commit(1, 3, TurnEnd::Done, Some(progress(4, &[])));
    assert_eq!(w.done(1, 1), [done]);
    assert_eq!(w.committed(1), [run(2, 5, 1)]);
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let mut w = World::new(Policy {
        max_queued: 2,
        ..policy(ExactlyOnceState, 1)
    });
    w.event(1);
    assert_eq!(w.machine.room(), 2);
    for seq in [3, 4, 5] {
        w.event(seq);
    }
    assert_eq!(w.machine.taken(), 1, "3 and 4 are held back, 5 is not");
    w.event(2);
    assert_eq!((w.machine.taken(), w.machine.room()), (3, 0));
    w.event(4);
    assert_eq!(w.machine.taken(), 3);
    w.done(1, 1);
    assert_eq!(w.committed(1), [run(2, 2, 1)]);
    assert_eq!(w.machine.room(), 1);
}

#[test]
fn a_long_log_is_read_in_large_pieces() {
    let mut w = World::new(Policy {
        max_queued: 8,
        ..policy(ExactlyOnceState, 1)
    });
    assert_eq!(w.machine.wants(), 8);
    w.event(1);
    for seq in 2..=9 {
        w.event(seq);
    }
    assert_eq!((w.machine.room(), w.machine.wants()), (0, 0));
    for turn in 1..=3 {
        w.done(turn, 1);
        w.committed(turn);
        assert_eq!(w.machine.wants(), 0, "more than half of the queue waits");
    }
    assert_eq!(w.machine.room(), 3);
    w.done(4, 1);
    w.committed(4);
    assert_eq!(w.machine.wants(), 4);
}

#[test]
fn filtered_events_are_kept_lazily() {
    let mut w = World::new(policy(ExactlyOnceState, 1));
    assert_eq!(w.filtered(1), [Command::WakeAt(2_000)]);
    assert!(w.machine.is_idle());
    assert_eq!(w.later(999), [Command::WakeAt(2_000)], "woken too early");
    assert_eq!(w.later(1), [Command::Save(progress(1, &[]))]);
    assert_eq!(w.filtered(2), []);
    assert_eq!(
        w.input(Input::NotSaved(Unavailable)),
        [Command::WakeAt(2_100)]
    );
    assert_eq!(w.later(100), [Command::Save(progress(2, &[]))]);
    assert_eq!(w.input(Input::Saved), []);
    assert_eq!(w.input(Input::Saved), [], "once told");
    w.filtered(3);
    w.event(4);
    let done = commit(1, 4, TurnEnd::Done, Some(progress(4, &[])));
    assert_eq!(w.done(1, 1), [done], "a turn carries it");
    assert_eq!(w.committed(1), []);
    assert_eq!(w.later(9_000), []);
}

#[test]
fn turns_at_the_same_time_claim_what_is_done() {
    let mut w = World::new(policy(ExactlyOnceState, 2));
    assert_eq!(w.event(1), [run(1, 1, 1)]);
    assert_eq!(w.event(2), [run(2, 2, 1)]);
    w.filtered(3);
    assert_eq!(w.event(4), []);
    let second = commit(2, 2, TurnEnd::Done, Some(progress(0, &[2, 3])));
    assert_eq!(w.done(2, 1), [second]);
    assert_eq!(w.done(1, 1), [], "one write at a time");
    let first = commit(1, 1, TurnEnd::Done, Some(progress(3, &[])));
    assert_eq!(w.committed(2), [run(3, 4, 1), first]);
    assert_eq!(w.committed(1), []);
}

#[test]
fn at_most_once_is_recorded_before_it_runs_and_not_tried_again() {
    let mut w = World::new(policy(AtMostOnce, 1));
    let start = record(1, Trigger::Event(1), 1, Some(progress(1, &[])));
    assert_eq!(w.event(1), std::slice::from_ref(&start));
    let unavailable = Input::NotRecorded(TurnId(1), Unavailable);
    assert_eq!(w.input(unavailable), [Command::WakeAt(1_100)]);
    assert_eq!(w.later(100), [start]);
    assert_eq!(w.recorded(1), [run(1, 1, 1)]);
    assert_eq!(w.recorded(1), []);
    let end = dead("no", "not today", 1);
    assert_eq!(w.ended(1, 1, failed(false)), [commit(1, 1, end, None)]);
    assert_eq!(w.committed(1), []);
    w.event(2);
    w.recorded(2);
    assert_eq!(w.done(2, 1), [commit(2, 2, TurnEnd::Done, None)]);
    let end = dead(
        "turn.conflict",
        "the state was changed since the turn read it",
        1,
    );
    assert_eq!(w.fault(2, Conflict), [commit(2, 2, end, None)]);
}

#[test]
fn a_failed_turn_is_tried_again_and_given_up_in_the_end() {
    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.event(1);
    w.event(2);
    assert_eq!(w.ended(1, 1, failed(false)), [Command::WakeAt(1_010)]);
    assert_eq!(w.later(10), [run(1, 1, 2)]);
    assert_eq!(w.done(1, 1), [], "an attempt that was outlived");
    assert_eq!(
        w.ended(1, 2, TurnResult::Cancelled),
        [Command::WakeAt(1_030)]
    );
    assert_eq!(w.later(20), [run(1, 1, 3)]);
    let end = dead("no", "not today", 3);
    let end = commit(1, 1, end, Some(progress(1, &[])));
    assert_eq!(w.ended(1, 3, failed(false)), [end]);
    assert_eq!(w.committed(1), [run(2, 2, 1)]);
    let end = commit(2, 2, dead("no", "not today", 1), Some(progress(2, &[])));
    assert_eq!(w.ended(2, 1, failed(true)), [end], "final at once");
}

#[test]
fn others_go_on_while_one_waits() {
    let mut w = World::new(policy(ExactlyOnceState, 2));
    w.event(1);
    w.event(2);
    w.event(3);
    w.ended(1, 1, failed(false));
    w.done(2, 1);
    assert_eq!(w.committed(2), [run(3, 3, 1)]);
}

#[test]
fn a_policy_may_stop_in_front() {
    let policy = Policy {
        on_dead: OnDead::Stop,
        ..policy(ExactlyOnceState, 2)
    };
    let mut w = World::new(policy);
    w.event(1);
    w.event(2);
    assert_eq!(w.ended(1, 1, failed(true)), []);
    assert_eq!(w.event(3), []);
    let other = commit(2, 2, TurnEnd::Done, Some(progress(0, &[2])));
    assert_eq!(w.done(2, 1), [other], "what runs ends");
    assert_eq!(w.committed(2), [Command::Stop(StopReason::Dead)]);
    assert_eq!(w.event(4), []);

    let mut w = World::new(Policy {
        delivery: AtMostOnce,
        ..policy
    });
    w.event(1);
    w.recorded(1);
    let end = commit(1, 1, dead("no", "not today", 1), None);
    assert_eq!(w.ended(1, 1, failed(false)), [end]);
    assert_eq!(w.committed(1), [Command::Stop(StopReason::Dead)]);
}

#[test]
fn what_is_in_no_log_is_tried_once() {
    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.filtered(1);
    w.input(Input::Trigger(once()));
    assert_eq!(w.input(Input::Trigger(once())), []);
    let commands = w.ended(1, 1, failed(false));
    let [
        Command::Commit {
            end,
            progress: claim,
            ..
        },
    ] = commands.as_slice()
    else {
        panic!("{commands:?}")
    };
    assert_eq!(*end, dead("no", "not today", 1));
    assert_eq!(*claim, Some(progress(1, &[])), "what was filtered");
    w.committed(1);
    w.input(Input::Trigger(timer(5)));
    assert_eq!(w.ended(2, 1, failed(false)), [Command::WakeAt(1_010)]);
    w.later(10);
    let commands = w.done(2, 2);
    let [Command::Commit { progress: None, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
}

#[test]
fn after_a_process_was_cut_off_the_first_turn_is_written_ahead_and_runs_alone() {
    let recovered = Recovered {
        was_cut_off: true,
        ..Recovered::default()
    };
    let (mut w, _) = World::load(policy(ExactlyOnceState, 2), recovered);
    assert_eq!(w.event(1), [record(1, Trigger::Event(1), 1, None)]);
    assert_eq!(w.event(2), []);
    assert_eq!(w.recorded(1), [run(1, 1, 1)]);
    let done = commit(1, 1, TurnEnd::Done, Some(progress(1, &[])));
    assert_eq!(w.done(1, 1), [done]);
    assert_eq!(w.committed(1), [run(2, 2, 1)]);
    assert_eq!(w.event(3), [run(3, 3, 1)]);
}

#[test]
fn a_turn_under_which_the_process_died_too_often_is_given_up() {
    let policy = policy(ExactlyOnceState, 1);
    let (mut w, _) = World::load(policy, started(Trigger::Event(6), 2));
    w.event(5);
    w.recorded(1);
    w.done(1, 1);
    w.committed(1);
    assert_eq!(w.event(6), [record(2, Trigger::Event(6), 3, None)]);

    let (mut w, _) = World::load(policy, started(Trigger::Event(5), 3));
    let error = "the process was cut off 3 times while this turn ran";
    let end = dead("turn.killed_the_process", error, 3);
    let end = commit(1, 5, end, Some(progress(5, &[])));
    assert_eq!(w.event(5), [end]);

    let recovered = Recovered {
        was_cut_off: false,
        ..started(Trigger::Event(5), 3)
    };
    let (mut w, _) = World::load(policy, recovered);
    let again = record(1, Trigger::Event(5), 3, None);
    assert_eq!(w.event(5), [again], "the last one was no death");
}

#[test]
fn what_was_cut_off_at_most_once_is_lost() {
    let recovered = Recovered {
        progress: progress(4, &[]),
        started: [Trigger::Event(4), timer(9), once(), Trigger::Event(6)]
            .map(|trigger| Started {
                trigger,
                attempts: 1,
            })
            .to_vec(),
        was_cut_off: true,
    };
    let (mut w, commands) = World::load(policy(AtMostOnce, 1), recovered.clone());
    let all = [Trigger::Event(4), timer(9), once(), Trigger::Event(6)];
    let first = commit(1, 4, TurnEnd::Lost, None);
    assert_eq!(commands, [Command::Lost(all.to_vec()), first]);
    assert_eq!(w.event(5), []);
    w.committed(1);
    w.committed(2);
    let last = commit(4, 6, TurnEnd::Lost, Some(progress(4, &[6])));
    assert_eq!(w.committed(3), [last]);
    let next = record(5, Trigger::Event(5), 1, Some(progress(6, &[])));
    assert_eq!(w.committed(4), [next], "lost ones first, before any runs");

    // In other modes only triggers that never come again.
    let (mut w, commands) = World::load(policy(ExactlyOnceState, 1), recovered);
    let first = commit(1, 4, TurnEnd::Lost, None);
    assert_eq!(commands, [Command::Lost(vec![Trigger::Event(4)]), first]);
    w.event(5);
    let commands = w.committed(1);
    assert!(matches!(commands.as_slice(), [Command::Lost(lost), _] if *lost == [once()]));
}

#[test]
fn faults_of_commits_stop_wait_or_run_again() {
    let stops = [(Fenced, StopReason::Fenced), (InDoubt, StopReason::Reload)];
    for (fault, reason) in stops {
        let mut w = World::new(policy(ExactlyOnceState, 2));
        w.event(1);
        w.event(2);
        w.done(1, 1);
        let stop = [Command::Cancel(TurnId(2)), Command::Stop(reason)];
        assert_eq!(w.fault(1, fault), stop);
        assert_eq!(w.ended(2, 1, TurnResult::Cancelled), []);
    }
    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.event(1);
    let done = commit(1, 1, TurnEnd::Done, Some(progress(1, &[])));
    assert_eq!(w.done(1, 1), std::slice::from_ref(&done));
    for wait in [
        100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000,
    ] {
        assert_eq!(w.fault(1, Unavailable), [Command::WakeAt(w.now + wait)]);
        assert_eq!(w.committed(1), [], "it is not under way");
        assert_eq!(w.later(wait), std::slice::from_ref(&done));
    }
    for attempt in 2..33 {
        assert_eq!(w.fault(1, Conflict), [run(1, 1, attempt)]);
        w.done(1, attempt);
    }
    let wait = w.now + 10;
    assert_eq!(w.fault(1, Conflict), [Command::WakeAt(wait)], "a failure");
    assert_eq!(w.later(10), [run(1, 1, 33)]);
    w.done(1, 33);
    let wait = w.now + 20;
    assert_eq!(w.fault(1, Refused), [Command::WakeAt(wait)]);
    assert_eq!(w.later(20), [run(1, 1, 34)]);
    w.done(1, 34);
    let error = "the store refused what the turn changed";
    let end = commit(1, 1, dead("turn.refused", error, 3), Some(progress(1, &[])));
    assert_eq!(w.fault(1, Refused), [end]);
    let wait = w.now + 100;
    assert_eq!(w.fault(1, Refused), [Command::WakeAt(wait)], "for ever");
}

#[test]
fn drained_it_ends_what_runs_and_keeps_the_progress() {
    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.event(1);
    w.event(2);
    w.filtered(3);
    assert_eq!(w.input(Input::Drain), []);
    assert_eq!((w.machine.room(), w.event(4)), (0, vec![]));
    let done = commit(1, 1, TurnEnd::Done, Some(progress(1, &[])));
    assert_eq!(w.done(1, 1), [done]);
    assert_eq!(w.committed(1), [Command::Stop(StopReason::Drained)]);

    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.filtered(1);
    assert_eq!(w.input(Input::Drain), [Command::Save(progress(1, &[]))]);
    assert_eq!(w.input(Input::Saved), [Command::Stop(StopReason::Drained)]);

    let mut w = World::new(policy(ExactlyOnceState, 1));
    w.event(1);
    w.ended(1, 1, failed(false));
    assert_eq!(w.input(Input::Drain), [Command::Stop(StopReason::Drained)]);
}

#[test]
fn halted_it_cancels_and_waits() {
    for mode in [ExactlyOnceState, AtMostOnce] {
        let mut w = World::new(policy(mode, 1));
        w.event(1);
        if mode == AtMostOnce {
            w.recorded(1);
        }
        assert_eq!(w.input(Input::Halt), [Command::Cancel(TurnId(1))]);
        assert_eq!(w.input(Input::Halt), []);
        let stop = [Command::Stop(StopReason::Drained)];
        if mode == AtMostOnce {
            let end = dead("turn.cancelled", "the agent was stopped", 1);
            let end = [commit(1, 1, end, None)];
            assert_eq!(w.ended(1, 1, TurnResult::Cancelled), end);
            assert_eq!(w.committed(1), stop);
        } else {
            assert_eq!(w.ended(1, 1, TurnResult::Cancelled), stop);
        }
    }
}

#[test]
fn what_was_lost_is_listed_once() {
    let (mut w, commands) = World::load(policy(AtMostOnce, 1), started(once(), 1));
    assert!(matches!(commands.as_slice(), [Command::Lost(lost), _] if *lost == [once()]));
    assert_eq!(w.committed(1), []);
    assert!(w.machine.is_idle());
}

#[test]
fn a_start_that_killed_nothing_is_taken_back() {
    let (mut w, _) = World::load(policy(ExactlyOnceState, 1), started(Trigger::Event(5), 1));
    w.event(5);
    w.recorded(1);
    assert_eq!(w.input(Input::Halt), [Command::Cancel(TurnId(1))]);
    let back = record(1, Trigger::Event(5), 1, None);
    assert_eq!(
        w.ended(1, 1, TurnResult::Cancelled),
        std::slice::from_ref(&back)
    );
    let again = Input::NotRecorded(TurnId(1), Unavailable);
    assert_eq!(w.input(again), [Command::WakeAt(1_100)]);
    assert_eq!(w.input(Input::Drain), []);
    assert_eq!(w.later(100), [back]);
    assert_eq!(w.recorded(1), [Command::Stop(StopReason::Drained)]);
}
