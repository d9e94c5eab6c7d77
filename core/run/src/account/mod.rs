//! Accounts: limits and usage of runs besides fuel (calls, tokens and money).
//!
//! Accounts form a tree, as runs and their sub-agents do. Usage of an account also counts for
//! all its ancestors: none of them exceeds its limits, with any number of concurrent runs.
//! Amounts that are not known in advance, such as the tokens of an answer, are
//! [reserved](Account::reserve) and [settled](Reservation::settle) afterwards. A reservation
//! that does not fit next to others [waits](Account::reserve_within) until they are settled.

use a99_core::fuel::Fuel;
use smallvec::SmallVec;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

mod usage;

pub use usage::Usage;

/// Maximum accounts of a tree that are listed individually; others are included in their
/// parents' sums.
const MAX_LISTED: usize = 1024;

/// Maximum depth of a tree.
const MAX_DEPTH: usize = 64;

/// An amount of money, in millionths of a unit of the host's currency.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u64);

impl Money {
    /// No money.
    pub const ZERO: Money = Money(0);

    /// Creates an amount from millionths.
    #[must_use]
    pub const fn from_micro(micro: u64) -> Money {
        Money(micro)
    }

    /// The amount in millionths.
    #[must_use]
    pub const fn micro(self) -> u64 {
        self.0
    }

    /// The amount in units.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Converts an amount in units to the nearest millionth; `None` for an invalid amount:
    /// negative, not finite, or above 10^12.
    #[must_use]
    pub fn from_units(units: f64) -> Option<Money> {
        let fits = (0.0..=1e12).contains(&units);
        fits.then(|| Money((units * 1e6).round() as u64))
    }
}

/// An amount of calls, tokens and money.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Host calls that a run waited for.
    pub calls: u64,
    /// Tokens of language models.
    pub tokens: u64,
    /// Money.
    pub money: Money,
}

/// Amounts of the accounts from one to the root, in locking order.
type PerAccount = SmallVec<[Spend; 4]>;

impl Spend {
    /// One call.
    pub const CALL: Spend = Spend {
        calls: 1,
        tokens: 0,
        money: Money::ZERO,
    };

    /// Tokens, and their cost.
    #[must_use]
    pub const fn of_tokens(tokens: u64, money: Money) -> Spend {
        Spend {
            calls: 0,
            tokens,
            money,
        }
    }

    fn plus(self, other: Spend) -> Spend {
        Spend {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            money: Money(self.money.0.saturating_add(other.money.0)),
        }
    }

    fn minus(self, other: Spend) -> Spend {
        Spend {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            money: Money(self.money.0.saturating_sub(other.money.0)),
        }
    }

    fn least(self, other: Spend) -> Spend {
        Spend {
            calls: self.calls.min(other.calls),
            tokens: self.tokens.min(other.tokens),
            money: self.money.min(other.money),
        }
    }
}

/// Limits of an account; by default there are none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Maximum number of calls.
    pub calls: Option<u64>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
    /// Maximum amount of money.
    pub money: Option<Money>,
}

impl AccountLimits {
    /// The limits as an amount; unlimited resources have the maximum.
    fn most(self) -> Spend {
        Spend {
            calls: self.calls.unwrap_or(u64::MAX),
            tokens: self.tokens.unwrap_or(u64::MAX),
            money: self.money.unwrap_or(Money(u64::MAX)),
        }
    }
}

/// A limited resource.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Calls of the host.
    Calls,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

impl Resource {
    /// The name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Calls => "calls",
            Resource::Tokens => "tokens",
            Resource::Money => "money",
        }
    }

    /// The first resource of which `amount` has more than `other`.
    fn first_above(amount: Spend, other: Spend) -> Option<Resource> {
        if amount.calls > other.calls {
            Some(Resource::Calls)
        } else if amount.tokens > other.tokens {
            Some(Resource::Tokens)
        } else if amount.money > other.money {
            Some(Resource::Money)
        } else {
            None
        }
    }
}

/// An account or an ancestor has too little left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The exhausted resource.
    pub resource: Resource,
    /// The name of the account.
    pub account: String,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.resource.name();
        match self.account.is_empty() {
            true => write!(f, "the budget of {name} is used up"),
            false => write!(f, "the budget of {name} of `{}` is used up", self.account),
        }
    }
}

impl std::error::Error for Exhausted {}

/// The mutable state of an account.
#[derive(Default)]
struct State {
    spent: Spend,
    reserved: Spend,
    overdrawn: Spend,
    fuel: Fuel,
    time: Duration,
    runs: u64,
    failed: u64,
    children: Vec<Arc<Ledger>>,
    unlisted: u64,
    /// Reservations that wait for others to be settled.
    waiting: Vec<Waker>,
}

/// Whether an account can reserve an amount.
enum Fit {
    /// It can reserve this amount.
    Kept(Spend),
    /// It cannot until other reservations are settled.
    Busy,
    /// It never can.
    Lacking(Resource),
}

/// An account without its link to the parent.
struct Ledger {
    name: String,
    limits: AccountLimits,
    state: Mutex<State>,
}

impl Ledger {
    /// The amount that is neither spent nor reserved.
    fn left(&self, state: &State) -> Spend {
        let taken = state.spent.plus(state.reserved);
        let left = self.limits.most().minus(taken);
        // Unlimited resources never decrease.
        Spend {
            calls: self.limits.calls.map_or(u64::MAX, |_| left.calls),
            tokens: self.limits.tokens.map_or(u64::MAX, |_| left.tokens),
            money: self.limits.money.map_or(Money(u64::MAX), |_| left.money),
        }
    }

    /// The first resource that is insufficient for `want`.
    fn lacks(&self, state: &State, want: Spend) -> Option<Resource> {
        Resource::first_above(want, self.left(state))
    }

    /// The amount to reserve of `most`: all of it, or, without other reservations of the
    /// resource, the amount left, which must be at least `least`.
    fn fit(&self, state: &State, least: Spend, most: Spend) -> Fit {
        let left = self.left(state);
        if Resource::first_above(most, left).is_none() {
            return Fit::Kept(most);
        }
        // Settling can return at most the reserved amount.
        let at_best = left.plus(state.reserved);
        if let Some(resource) = Resource::first_above(least, at_best) {
            return Fit::Lacking(resource);
        }
        let tight = Spend {
            calls: if most.calls > left.calls {
                state.reserved.calls
            } else {
                0
            },
            tokens: if most.tokens > left.tokens {
                state.reserved.tokens
            } else {
                0
            },
            money: if most.money > left.money {
                state.reserved.money
            } else {
                Money::ZERO
            },
        };
        match tight == Spend::default() {
            true => Fit::Kept(most.least(left)),
            false => Fit::Busy,
        }
    }

    fn usage(&self) -> Usage {
        let state = lock(&self.state);
        let children = state.children.clone();
        let mut usage = Usage {
            name: self.name.clone(),
            runs: state.runs,
            failed: state.failed,
            fuel: state.fuel,
            time: state.time,
            spent: state.spent,
            overdrawn: state.overdrawn,
            children: Vec::new(),
            unlisted: state.unlisted,
        };
        // Unlock first: spending locks a child before its parent.
        drop(state);
        usage.children = children.iter().map(|child| child.usage()).collect();
        usage
    }
}

struct Node {
    ledger: Arc<Ledger>,
    parent: Option<Account>,
    /// Number of individually listed accounts in the tree.
    listed: Arc<AtomicUsize>,
    /// Distance from the root.
    depth: usize,
}

/// An account; clones share it.
///
/// ```
/// use a99_run::account::{Account, AccountLimits, Money, Spend};
///
/// let limits = AccountLimits { tokens: Some(100), ..AccountLimits::default() };
/// let all = Account::new("all", limits);
/// let one = all.child("one", AccountLimits::default());
/// one.spend(Spend::of_tokens(60, Money::ZERO))?;
/// assert!(one.spend(Spend::of_tokens(60, Money::ZERO)).is_err());
/// assert_eq!(all.usage().spent.tokens, 60);
/// # Ok::<(), a99_run::account::Exhausted>(())
/// ```
#[derive(Clone)]
pub struct Account(Arc<Node>);

/// Locks data that stays valid if a holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Account {
    /// An account without name and limits.
    fn default() -> Account {
        Account::new("", AccountLimits::default())
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Account");
        out.field("name", &self.0.ledger.name)
            .field("limits", &self.0.ledger.limits);
        out.finish_non_exhaustive()
    }
}

impl Account {
    fn of(name: String, limits: AccountLimits, parent: Option<Account>) -> Account {
        let ledger = Arc::new(Ledger {
            name,
            limits,
            state: Mutex::default(),
        });
        let above = parent.as_ref().map(|parent| &parent.0);
        Account(Arc::new(Node {
            ledger,
            listed: above.map_or_else(Arc::default, |above| Arc::clone(&above.listed)),
            depth: above.map_or(0, |above| above.depth + 1),
            parent,
        }))
    }

    /// Creates the root account of a tree.
    pub fn new(name: impl Into<String>, limits: AccountLimits) -> Account {
        Account::of(name.into(), limits, None)
    }

    /// Creates a child account with additional limits; it can use only what this one can. At
    /// a depth of 64 the account itself is returned: its limits apply, and its usage includes
    /// the child's.
    #[must_use]
    pub fn child(&self, name: impl Into<String>, limits: AccountLimits) -> Account {
        if self.0.depth >= MAX_DEPTH {
            return self.clone();
        }
        let child = Account::of(name.into(), limits, Some(self.clone()));
        let mut state = lock(&self.0.ledger.state);
        if self.0.listed.fetch_add(1, Ordering::Relaxed) < MAX_LISTED {
            state.children.push(Arc::clone(&child.0.ledger));
        } else {
            state.unlisted += 1;
        }
        drop(state);
        child
    }

    /// Changes this account and its ancestors atomically.
    fn with_all<T>(&self, act: impl FnOnce(&mut [(&Ledger, MutexGuard<'_, State>)]) -> T) -> T {
        let mut locked: SmallVec<[(&Ledger, MutexGuard<'_, State>); 4]> = SmallVec::new();
        let mut at = Some(self);
        while let Some(account) = at {
            let ledger = &*account.0.ledger;
            locked.push((ledger, lock(&ledger.state)));
            at = account.0.parent.as_ref();
        }
        act(&mut locked)
    }

    /// Takes an amount from this account and its ancestors, if all of them have it.
    fn take(&self, want: Spend, into: impl Fn(&mut State) -> &mut Spend) -> Result<(), Exhausted> {
        self.with_all(|accounts| {
            for (ledger, state) in accounts.iter() {
                if let Some(resource) = ledger.lacks(state, want) {
                    let account = ledger.name.clone();
                    return Err(Exhausted { resource, account });
                }
            }
            for (_, state) in accounts {
                let taken = into(state);
                *taken = taken.plus(want);
            }
            Ok(())
        })
    }

    /// Reserves an amount for a pending operation, here and in all ancestors.
    ///
    /// # Errors
    /// This account or an ancestor has less than the amount left. Nothing is reserved then.
    pub fn reserve(&self, want: Spend) -> Result<Reservation, Exhausted> {
        self.take(want, |state| &mut state.reserved)?;
        let mut kept = PerAccount::new();
        kept.resize(self.0.depth + 1, want);
        Ok(Reservation {
            account: self.clone(),
            kept,
        })
    }

    /// Reserves the maximum of a pending operation, here and in all ancestors, and waits if
    /// necessary.
    ///
    /// An account with less than `most` left waits until other reservations are settled.
    /// Without other reservations it reserves the amount left, at least `least`. So of all
    /// operations that it pays for, only one at a time can turn out to need more than was
    /// reserved. A waiting future reserves nothing. Dropping it ends the wait.
    ///
    /// # Errors
    /// This account or an ancestor will not have `least` left. Nothing is reserved then.
    pub fn reserve_within(
        &self,
        least: Spend,
        most: Spend,
    ) -> impl Future<Output = Result<Reservation, Exhausted>> + Send + '_ {
        poll_fn(move |cx| {
            self.with_all(|accounts| {
                let mut kept = PerAccount::new();
                let mut busy = None;
                for (at, (ledger, state)) in accounts.iter().enumerate() {
                    match ledger.fit(state, least, most) {
                        Fit::Kept(amount) => kept.push(amount),
                        Fit::Busy => busy = Some(at),
                        Fit::Lacking(resource) => {
                            let account = ledger.name.clone();
                            return Poll::Ready(Err(Exhausted { resource, account }));
                        }
                    }
                }
                if let Some(at) = busy {
                    let waiting = &mut accounts[at].1.waiting;
                    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
                for ((_, state), amount) in accounts.iter_mut().zip(&kept) {
                    state.reserved = state.reserved.plus(*amount);
                }
                Poll::Ready(Ok(Reservation {
                    account: self.clone(),
                    kept,
                }))
            })
        })
    }

    /// Spends an amount, here and in all ancestors.
    ///
    /// # Errors
    /// This account or an ancestor has less than the amount left. Nothing is spent then.
    pub fn spend(&self, amount: Spend) -> Result<(), Exhausted> {
        self.take(amount, |state| &mut state.spent)
    }

    /// The amount left here; the maximum values for unlimited resources.
    #[must_use]
    pub fn left(&self) -> Spend {
        let most = AccountLimits::default().most();
        self.with_all(|accounts| {
            let left = accounts.iter().map(|(ledger, state)| ledger.left(state));
            left.fold(most, Spend::least)
        })
    }

    /// Records a run of this account.
    pub fn note_run(&self, fuel: Fuel, time: Duration, failed: bool) {
        let mut state = lock(&self.0.ledger.state);
        state.runs += 1;
        state.failed += u64::from(failed);
        state.fuel = state.fuel.saturating_add(fuel);
        state.time = state.time.saturating_add(time);
    }

    /// Usage of this account and its descendants.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.ledger.usage()
    }
}

/// A reserved amount. Dropping it releases all of it.
#[derive(Debug)]
#[must_use = "what is not settled is given back"]
pub struct Reservation {
    account: Account,
    /// The amounts reserved in each account, from this one to the root.
    kept: PerAccount,
}

impl Reservation {
    /// The amount reserved in every account.
    #[must_use]
    pub fn room(&self) -> Spend {
        let most = AccountLimits::default().most();
        self.kept.iter().copied().fold(most, Spend::least)
    }

    /// Spends the actual amount and releases the rest. An excess over the reservation is
    /// spent as far as the accounts allow; the remainder is reported as [`Usage::overdrawn`].
    pub fn settle(mut self, used: Spend) {
        self.give_back(used);
    }

    /// Releases the reservation and spends `used`.
    fn give_back(&mut self, used: Spend) {
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return;
        }
        let woken = self.account.with_all(|accounts| {
            for ((_, state), kept) in accounts.iter_mut().zip(&kept) {
                state.reserved = state.reserved.minus(*kept);
            }
            let mut woken = Vec::new();
            // From the root, so that no account spends more than its ancestors.
            let mut there = used;
            for (ledger, state) in accounts.iter_mut().rev() {
                there = there.least(ledger.left(state));
                state.spent = state.spent.plus(there);
                state.overdrawn = state.overdrawn.plus(used.minus(there));
                woken.append(&mut state.waiting);
            }
            woken
        });
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(Spend::default());
    }
}

#[cfg(test)]
mod tests;
