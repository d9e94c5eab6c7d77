//! Tests of accounts.

use super::*;
use proptest::prelude::*;

fn tokens(tokens: u64) -> Spend {
    Spend::of_tokens(tokens, Money::ZERO)
}

fn limited(tokens: u64) -> AccountLimits {
    AccountLimits {
        tokens: Some(tokens),
        ..AccountLimits::default()
    }
}

#[test]
fn no_account_gets_beyond_its_own_or_those_above() {
    let all = Account::new("all", limited(100));
    let one = all.child("one", limited(80));
    let two = all.child("two", AccountLimits::default());
    let kept = one.reserve(tokens(70)).unwrap();
    assert_eq!(two.left().tokens, 30);
    let error = two.spend(tokens(31)).unwrap_err();
    assert_eq!((error.resource, &*error.account), (Resource::Tokens, "all"));
    assert_eq!(
        one.spend(tokens(11)).unwrap_err().to_string(),
        "the budget of tokens of `one` is used up"
    );
    kept.settle(tokens(10));
    two.spend(tokens(90)).unwrap();
    assert_eq!(all.left().tokens, 0);
    assert_eq!(one.left().tokens, 0, "what is above has no more");
    let usage = all.usage();
    let used: Vec<u64> = usage.children.iter().map(|c| c.spent.tokens).collect();
    assert_eq!((usage.spent.tokens, used), (100, vec![10, 90]));
}

#[test]
fn what_is_known_too_late_is_told_apart() {
    let all = Account::new("all", limited(100));
    all.reserve(tokens(50)).unwrap().settle(tokens(130));
    let usage = all.usage();
    assert_eq!((usage.spent.tokens, usage.overdrawn.tokens), (100, 30));
    drop(all.reserve(tokens(0)).unwrap());
    assert!(all.reserve(tokens(1)).is_err());
}

#[test]
fn calls_and_money_have_limits_too() {
    let limits = AccountLimits {
        calls: Some(1),
        money: Money::from_units(0.5),
        ..AccountLimits::default()
    };
    let all = Account::new("", limits);
    all.spend(Spend::CALL).unwrap();
    let error = all.spend(Spend::CALL).unwrap_err();
    assert_eq!(error.to_string(), "the budget of calls is used up");
    let dear = Spend::of_tokens(1, Money::from_micro(500_001));
    assert_eq!(all.spend(dear).unwrap_err().resource, Resource::Money);
    for units in [-1.0, f64::NAN, f64::INFINITY, 1e13] {
        assert_eq!(Money::from_units(units), None);
    }
}

#[test]
fn trees_are_bounded() {
    let all = Account::default();
    for _ in 0..2 * MAX_LISTED {
        all.child("x", AccountLimits::default())
            .spend(Spend::CALL)
            .unwrap();
    }
    let usage = all.usage();
    assert_eq!(usage.children.len(), MAX_LISTED);
    assert_eq!(usage.unlisted, MAX_LISTED as u64);
    assert_eq!(usage.spent.calls, 2 * MAX_LISTED as u64);
    let mut deep = Account::default();
    for _ in 0..10_000 {
        deep = deep.child("x", AccountLimits::default());
    }
    deep.spend(Spend::CALL).unwrap();
}

#[test]
fn runs_are_told_for_machines() {
    let all = Account::new("main", AccountLimits::default());
    let sub = all.child("sub", AccountLimits::default());
    sub.note_run(Fuel::from_micro(1_500_000), Duration::from_millis(7), true);
    sub.spend(Spend::of_tokens(3, Money::from_micro(20)))
        .unwrap();
    assert_eq!(
        all.usage().to_json().to_json_string(),
        r#"{"name":"main","runs":0,"fuel":0,"time_ms":0,"calls":0,"tokens":3,"money":0.00002,"children":[{"name":"sub","runs":1,"failed":1,"fuel":1.5,"time_ms":7,"calls":0,"tokens":3,"money":0.00002}]}"#
    );
}

/// An operation of a random run on the accounts of a tree.
#[derive(Clone, Debug)]
enum Act {
    Child(usize, Option<u64>),
    Spend(usize, u64),
    Reserve(usize, u64),
    Settle(usize, u64),
    Drop(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (any::<usize>(), proptest::option::of(0..200_u64)).prop_map(|(a, n)| Act::Child(a, n)),
        (any::<usize>(), 0..60_u64).prop_map(|(a, n)| Act::Spend(a, n)),
        (any::<usize>(), 0..60_u64).prop_map(|(a, n)| Act::Reserve(a, n)),
        (any::<usize>(), 0..120_u64).prop_map(|(a, n)| Act::Settle(a, n)),
        any::<usize>().prop_map(Act::Drop),
    ]
}

/// Each account is within its limit, and its usage is at least that of its descendants.
fn holds(ledger: &Ledger) -> bool {
    let state = lock(&ledger.state);
    let within = state.spent.tokens + state.reserved.tokens <= ledger.limits.most().tokens;
    let below = state.children.iter().map(|child| {
        let state = lock(&child.state);
        (state.spent.tokens, state.reserved.tokens)
    });
    let (spent, reserved) = below.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    within
        && spent <= state.spent.tokens
        && reserved <= state.reserved.tokens
        && state.children.iter().all(|child| holds(child))
}

proptest! {
    #[test]
    fn sums_never_exceed_the_root(acts in proptest::collection::vec(act(), 1..200)) {
        let root = Account::new("root", limited(300));
        let mut accounts = vec![root.clone()];
        let mut kept = Vec::new();
        let mut used = 0_u64;
        for act in acts {
            match act {
                Act::Child(at, limit) => {
                    let tokens = limit;
                    let limits = AccountLimits { tokens, ..AccountLimits::default() };
                    let child = accounts[at % accounts.len()].child("c", limits);
                    accounts.push(child);
                }
                Act::Spend(at, n) => {
                    let left = accounts[at % accounts.len()].left().tokens;
                    let done = accounts[at % accounts.len()].spend(tokens(n)).is_ok();
                    prop_assert_eq!(done, n <= left);
                    used += if done { n } else { 0 };
                }
                Act::Reserve(at, n) => {
                    kept.extend(accounts[at % accounts.len()].reserve(tokens(n)));
                }
                Act::Settle(at, n) if !kept.is_empty() => {
                    let at = at % kept.len();
                    let before = root.usage();
                    kept.swap_remove(at).settle(tokens(n));
                    let after = root.usage();
                    let spent = after.spent.tokens - before.spent.tokens;
                    let over = after.overdrawn.tokens - before.overdrawn.tokens;
                    prop_assert_eq!(spent + over, n, "nothing is lost");
                    used += spent;
                }
                Act::Drop(at) if !kept.is_empty() => {
                    let at = at % kept.len();
                    drop(kept.swap_remove(at));
                }
                _ => {}
            }
            prop_assert!(holds(&root.0.ledger));
            prop_assert_eq!(root.usage().spent.tokens, used);
        }
        drop(kept);
        prop_assert_eq!(root.left().tokens, 300 - used, "what was kept comes back");
    }
}

fn poll<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(Waker::noop()))
}

#[test]
fn d12_a_reservation_waits_for_others_and_fails_only_when_there_are_none() {
    let all = Account::new("all", limited(100));
    let one = all.child("one", AccountLimits::default());
    let first = one.reserve(tokens(80)).unwrap();
    let mut second = Box::pin(one.reserve_within(tokens(10), tokens(60)));
    assert!(poll(&mut second).is_pending(), "the first may give back");
    first.settle(tokens(10));
    let Poll::Ready(Ok(kept)) = poll(&mut second) else {
        panic!("there is room now");
    };
    assert_eq!(kept.room(), tokens(60));
    // Even with all reservations released, the amount is not available.
    let mut never = Box::pin(all.reserve_within(tokens(91), tokens(91)));
    let Poll::Ready(Err(error)) = poll(&mut never) else {
        panic!("nothing can give that back");
    };
    assert_eq!(error.resource, Resource::Tokens);
    // Less is left than the maximum: it runs alone, with all that is left.
    let mut alone = Box::pin(all.reserve_within(tokens(20), tokens(200)));
    assert!(poll(&mut alone).is_pending());
    drop(kept);
    let Poll::Ready(Ok(kept)) = poll(&mut alone) else {
        panic!("it is alone");
    };
    assert_eq!((kept.room(), all.left().tokens), (tokens(90), 0));
    kept.settle(tokens(30));
    assert_eq!((all.left().tokens, all.usage().overdrawn.tokens), (60, 0));
}

#[test]
fn d12_an_account_below_goes_alone_while_one_above_keeps_all_that_may_be_needed() {
    let all = Account::new("all", limited(1_000));
    let small = all.child("small", limited(50));
    let other = all.reserve(tokens(300)).unwrap();
    let mut wanted = Box::pin(small.reserve_within(tokens(10), tokens(200)));
    let Poll::Ready(Ok(kept)) = poll(&mut wanted) else {
        panic!("nothing of `small` is under way");
    };
    assert_eq!((kept.room(), all.left().tokens), (tokens(50), 500));
    kept.settle(tokens(70));
    let usage = all.usage();
    assert_eq!(
        (usage.spent.tokens, usage.overdrawn.tokens),
        (70, 0),
        "it has room for it"
    );
    let below = &usage.children[0];
    assert_eq!((below.spent.tokens, below.overdrawn.tokens), (50, 20));
    drop(other);
    assert_eq!(all.left().tokens, 930);
}
