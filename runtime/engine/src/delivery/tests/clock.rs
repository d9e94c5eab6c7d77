//! A clock that is set back: waits last as long as they would have.

use super::*;
use CommitFault::Unavailable;
use Delivery::ExactlyOnceState;

const DAY: Millis = 86_400_000;

/// A world at a time from which a clock can be set back.
fn world() -> World {
    let mut w = World::new(policy(ExactlyOnceState, 1));
    assert_eq!(w.later(2 * DAY), []);
    w
}

#[test]
fn t4_a_pause_before_a_retry_outlasts_no_clock_that_is_set_back() {
    let mut w = world();
    w.event(1);
    let at = w.now + 10;
    assert_eq!(w.ended(1, 1, failed(false)), [Command::WakeAt(at)]);
    w.later(4);
    assert_eq!(w.set_back(DAY), [Command::WakeAt(w.now + 6)]);
    assert_eq!(w.set_back(1), [Command::WakeAt(w.now + 6)]);
    assert_eq!(w.later(6), [run(1, 1, 2)]);
    // Beyond where the clock begins.
    w.ended(1, 2, failed(false));
    w.now = 0;
    assert_eq!(w.input(Input::Time), [Command::WakeAt(20)]);
    assert_eq!(w.later(20), [run(1, 1, 3)]);
}

#[test]
fn t4_a_commit_that_is_made_again_waits_for_no_clock_that_is_set_back() {
    let mut w = world();
    w.event(1);
    let done = commit(1, 1, TurnEnd::Done, Some(progress(1, &[])));
    assert_eq!(w.done(1, 1), std::slice::from_ref(&done));
    let at = w.now + 100;
    assert_eq!(w.fault(1, Unavailable), [Command::WakeAt(at)]);
    assert_eq!(w.set_back(DAY), [Command::WakeAt(w.now + 100)]);
    assert_eq!(w.later(100), [done]);
}

#[test]
fn t4_progress_is_kept_in_its_time_though_the_clock_is_set_back() {
    let mut w = world();
    let at = w.now + 1_000;
    assert_eq!(w.filtered(1), [Command::WakeAt(at)]);
    assert_eq!(w.set_back(DAY), [Command::WakeAt(w.now + 1_000)]);
    assert_eq!(w.later(1_000), [Command::Save(progress(1, &[]))]);
}
