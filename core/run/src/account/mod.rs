//! Account: what a run and the runs below it may use beside fuel (calls, tokens and money),
//! and what each of them used.
//!
//! Accounts form a tree, as runs and their sub-agents do. Whatever is used below an account is
//! used of it, too, and of those above it: none of them gets beyond its limits, however many
//! are under way at once. What is not known before, such as the tokens of an answer, is
//! [reserved](Account::reserve) and [settled](Reservation::settle) afterwards; a reservation
//! that does not fit beside others [waits](Account::reserve_within) until they are settled.

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

/// Accounts of a tree that are kept one by one; of others their parents know the sums.
const MAX_LISTED: usize = 1024;

/// Accounts above each other.
const MAX_DEPTH: usize = 64;

/// An amount of money: millionths of a unit of the host's currency.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);

    /// So many millionths.
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

    /// An amount in units, to the nearest millionth; none for what is no amount: negative,
    /// not finite, or above 10^12.
    #[must_use]
    pub fn from_units(units: f64) -> Option<Money> {
        let fits = (0.0..=1e12).contains(&units);
        fits.then(|| Money((units * 1e6).round() as u64))
    }
}

/// What may be used, or was.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Calls of the host that a run waited for.
    pub calls: u64,
    /// Tokens of language models.
    pub tokens: u64,
    /// Money.
    pub money: Money,
}

/// A tree's accounts in the order in which they are locked, each with its amount.
type PerAccount = SmallVec<[Spend; 4]>;

impl Spend {
    /// One call.
    pub const CALL: Spend = Spend {
        calls: 1,
        tokens: 0,
        money: Money::ZERO,
    };

    /// Tokens, and what they cost.
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

/// What an account may use; nothing is limited by default.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Calls, if they are limited.
    pub calls: Option<u64>,
    /// Tokens, if they are limited.
    pub tokens: Option<u64>,
    /// Money, if it is limited.
    pub money: Option<Money>,
}

impl AccountLimits {
    /// The limits as an amount.
    fn most(self) -> Spend {
        Spend {
            calls: self.calls.unwrap_or(u64::MAX),
            tokens: self.tokens.unwrap_or(u64::MAX),
            money: self.money.unwrap_or(Money(u64::MAX)),
        }
    }
}

/// What is used up.
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
    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Calls => "calls",
            Resource::Tokens => "tokens",
            Resource::Money => "money",
        }
    }

    /// The first resource of which an amount has more than another.
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

/// An account, or one above it, has no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Of what.
    pub resource: Resource,
    /// The account's name.
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

/// What changes of an account.
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

/// Whether an account can keep an amount.
enum Fit {
    /// It keeps this.
    Kept(Spend),
    /// Not while others are under way.
    Busy,
    /// Not any more.
    Lacking(Resource),
}

/// An account as those above it know it.
struct Ledger {
    name: String,
    limits: AccountLimits,
    state: Mutex<State>,
}

impl Ledger {
    /// What is neither spent nor reserved.
    fn left(&self, state: &State) -> Spend {
        let taken = state.spent.plus(state.reserved);
        let left = self.limits.most().minus(taken);
        // What has no limit never gets less.
        Spend {
            calls: self.limits.calls.map_or(u64::MAX, |_| left.calls),
            tokens: self.limits.tokens.map_or(u64::MAX, |_| left.tokens),
            money: self.limits.money.map_or(Money(u64::MAX), |_| left.money),
        }
    }

    /// What of an amount there is too little of.
    fn lacks(&self, state: &State, want: Spend) -> Option<Resource> {
        Resource::first_above(want, self.left(state))
    }

    /// What it keeps of `most`: all of it, or, if nothing of the kind is under way, as much as
    /// is left, which must be `least`.
    fn fit(&self, state: &State, least: Spend, most: Spend) -> Fit {
        let left = self.left(state);
        if Resource::first_above(most, left).is_none() {
            return Fit::Kept(most);
        }
        // Settling others cannot give back more than they keep.
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
        // Who spends locks a child before its parent.
        drop(state);
        usage.children = children.iter().map(|child| child.usage()).collect();
        usage
    }
}

struct Node {
    ledger: Arc<Ledger>,
    parent: Option<Account>,
    /// Accounts of the tree that are kept one by one.
    listed: Arc<AtomicUsize>,
    /// How far below the top it is.
    depth: usize,
}

/// An account. Clones are the same one.
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

/// Locks data that stays valid whatever a panicking holder did.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Account {
    /// One without name and limits.
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

    /// The account at the top of a tree.
    pub fn new(name: impl Into<String>, limits: AccountLimits) -> Account {
        Account::of(name.into(), limits, None)
    }

    /// An account below this one, which may use what this one may, within limits of its own.
    /// Below 64 others it is the one above itself: their limits hold, and their use is told
    /// in one sum.
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

    /// Does something to this account and those above it, all or none of them.
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

    /// Takes an amount, here and above, if all of them have it.
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

    /// Keeps an amount for what is about to be done, here and above.
    ///
    /// # Errors
    /// If this account, or one above it, has less left than that. Nothing is kept then.
    pub fn reserve(&self, want: Spend) -> Result<Reservation, Exhausted> {
        self.take(want, |state| &mut state.reserved)?;
        let mut kept = PerAccount::new();
        kept.resize(self.0.depth + 1, want);
        Ok(Reservation {
            account: self.clone(),
            kept,
        })
    }

    /// Keeps what is about to be done may need at most, here and above. An account that has
    /// too little left for that waits until the reservations of others are settled, and keeps
    /// what is left, at least `least`, when it has no others: so of all that it paid for, one
    /// reservation at a time may turn out to need more than was kept. Whoever waits keeps
    /// nothing. Dropping the future ends the wait.
    ///
    /// # Errors
    /// If this account, or one above it, will not have `least` left. Nothing is kept then.
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

    /// Uses an amount, here and above.
    ///
    /// # Errors
    /// If this account, or one above it, has less left than that. Nothing is used then.
    pub fn spend(&self, amount: Spend) -> Result<(), Exhausted> {
        self.take(amount, |state| &mut state.spent)
    }

    /// What may be used here; the largest numbers where there is no limit.
    #[must_use]
    pub fn left(&self) -> Spend {
        let most = AccountLimits::default().most();
        self.with_all(|accounts| {
            let left = accounts.iter().map(|(ledger, state)| ledger.left(state));
            left.fold(most, Spend::least)
        })
    }

    /// Notes a run that this is the account of.
    pub fn note_run(&self, fuel: Fuel, time: Duration, failed: bool) {
        let mut state = lock(&self.0.ledger.state);
        state.runs += 1;
        state.failed += u64::from(failed);
        state.fuel = state.fuel.saturating_add(fuel);
        state.time = state.time.saturating_add(time);
    }

    /// What it and those below it used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.ledger.usage()
    }
}

/// An amount that is kept for something. Dropping it gives all of it back.
#[derive(Debug)]
#[must_use = "what is not settled is given back"]
pub struct Reservation {
    account: Account,
    /// What each account keeps, from the own one up.
    kept: PerAccount,
}

impl Reservation {
    /// What all accounts keep for it.
    #[must_use]
    pub fn room(&self) -> Spend {
        let most = AccountLimits::default().most();
        self.kept.iter().copied().fold(most, Spend::least)
    }

    /// Uses what was really needed, and gives the rest back. What is more than was kept is
    /// used as far as there is any; the rest of it is told as [`Usage::overdrawn`].
    pub fn settle(mut self, used: Spend) {
        self.give_back(used);
    }

    /// Gives back what is kept and uses this.
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
            // From the top, so that none of those below spent what those above did not.
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
