//! Limiter: client-side rate limit of a service, in requests and tokens a minute. Excess
//! requests queue in the order of their arrival.

use crate::config::ServiceConfig;
use a99_capabilities::Secret;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as Line, Notify};
use tokio::time::{Instant, timeout_at};

/// The period of the limits.
const MINUTE: Duration = Duration::from_secs(60);

/// The rate limiter of one service and key, shared by all providers of this process.
pub(crate) struct Limiter {
    requests: Option<u32>,
    tokens: Option<u64>,
    /// A minute, except in tests.
    span: Duration,
    /// Held by the request that is first in the queue.
    line: Line<()>,
    /// Notified when a request used fewer tokens than were reserved for it.
    eased: Notify,
    window: Mutex<Window>,
}

/// The requests of the last minute.
#[derive(Debug, Default)]
struct Window {
    sent: VecDeque<Sent>,
    tokens: u64,
    numbers: u64,
    /// Until when the service accepts no request.
    closed: Option<Instant>,
}

#[derive(Debug)]
struct Sent {
    at: Instant,
    number: u64,
    tokens: u64,
    /// Whether its tokens are still an estimate.
    is_open: bool,
}

/// The limiter has no room for a request yet.
#[derive(Debug)]
struct Full {
    /// When it has room at the latest.
    free: Instant,
    /// When it may have room if requests in flight use fewer tokens than reserved.
    eased: Option<Instant>,
}

/// A request in flight. Dropping it keeps its reservation until the minute is over.
pub(crate) struct Slot {
    limiter: Arc<Limiter>,
    number: u64,
}

/// A request's turn comes after its deadline. The value is the wait, if known.
pub(crate) struct TooLate(pub(crate) Option<Duration>);

/// An entry of the registry of limiters.
struct Known {
    base: String,
    key: Option<Secret>,
    limiter: Weak<Limiter>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Limiter {
    fn new(requests: Option<u32>, tokens: Option<u64>) -> Limiter {
        Limiter {
            requests,
            tokens,
            span: MINUTE,
            line: Line::new(()),
            eased: Notify::new(),
            window: Mutex::default(),
        }
    }

    /// The limiter for a service, shared by services with the same address, key and limits;
    /// `None` without limits.
    pub(crate) fn shared(base: &str, config: &ServiceConfig) -> Option<Arc<Limiter>> {
        static ALL: Mutex<Vec<Known>> = Mutex::new(Vec::new());
        let (requests, tokens) = (config.requests_per_minute, config.tokens_per_minute);
        if requests.is_none() && tokens.is_none() {
            return None;
        }
        let key = |key: &Option<Secret>| key.as_ref().map(|key| key.expose().to_owned());
        let mut all = lock(&ALL);
        all.retain(|known| known.limiter.strong_count() > 0);
        let mut alike = all.iter().filter(|known| {
            let same = known.base == base && key(&known.key) == key(&config.key);
            same && known
                .limiter
                .upgrade()
                .is_some_and(|limiter| (limiter.requests, limiter.tokens) == (requests, tokens))
        });
        if let Some(found) = alike.find_map(|known| known.limiter.upgrade()) {
            return Some(found);
        }
        let limiter = Arc::new(Limiter::new(requests, tokens));
        all.push(Known {
            base: base.to_owned(),
            key: config.key.clone(),
            limiter: Arc::downgrade(&limiter),
        });
        Some(limiter)
    }

    /// The limits, for messages.
    pub(crate) fn shown(&self) -> String {
        let requests = self.requests.map(|n| format!("{n} requests"));
        let tokens = self.tokens.map(|n| format!("{n} tokens"));
        let both: Vec<String> = requests.into_iter().chain(tokens).collect();
        both.join(" and ")
    }

    /// Whether a prompt of at least this many tokens can ever be sent.
    pub(crate) fn takes(&self, tokens: u64) -> bool {
        self.tokens.is_none_or(|most| tokens <= most)
    }

    /// Waits for the turn of a request with this estimate of tokens. Dropping the future leaves
    /// the queue.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tokens: u64,
        until: Instant,
    ) -> Result<Slot, TooLate> {
        let turn = timeout_at(until, self.line.lock()).await;
        let _turn = turn.map_err(|_| TooLate(None))?;
        loop {
            let eased = self.eased.notified();
            let now = Instant::now();
            let Full { free, eased: easy } = match self.admit(now, tokens) {
                Ok(number) => {
                    return Ok(Slot {
                        limiter: Arc::clone(self),
                        number,
                    });
                }
                Err(full) => full,
            };
            if free > until && easy.is_none_or(|easy| easy > until) {
                return Err(TooLate(Some(free - now)));
            }
            let woken = timeout_at(free.min(until), eased).await;
            if woken.is_err() && Instant::now() >= until {
                return Err(TooLate(Some(free.saturating_duration_since(now))));
            }
        }
    }

    /// Admits a request, or gives the time when there is room for it.
    fn admit(&self, now: Instant, tokens: u64) -> Result<u64, Full> {
        let mut window = lock(&self.window);
        window.forget(now, self.span);
        if let Some(free) = window.closed.filter(|closed| *closed > now) {
            return Err(Full { free, eased: None });
        }
        let most = self.tokens.unwrap_or(u64::MAX);
        // A request larger than the limit waits for an empty window.
        let tokens = tokens.min(most);
        let mut over = window.sent.len().saturating_add(1);
        over = over.saturating_sub(self.requests.map_or(usize::MAX, |n| n as usize));
        let mut room = most.saturating_sub(window.tokens);
        let may_ease = room < tokens && window.sent.iter().any(|sent| sent.is_open);
        let (mut free, mut eased) = (None, may_ease.then_some(now));
        for sent in &window.sent {
            if over == 0 && room >= tokens {
                break;
            }
            let gone = sent.at + self.span;
            if over > 0 {
                eased = eased.map(|_| gone);
            }
            over = over.saturating_sub(1);
            room = room.saturating_add(sent.tokens).min(most);
            free = Some(gone);
        }
        if let Some(free) = free {
            return Err(Full { free, eased });
        }
        window.numbers += 1;
        let number = window.numbers;
        window.tokens = window.tokens.saturating_add(tokens);
        window.sent.push_back(Sent {
            at: now,
            number,
            tokens,
            is_open: true,
        });
        Ok(number)
    }

    /// Admits no request for a time that the service asked for.
    pub(crate) fn close_for(&self, time: Duration) {
        let until = Instant::now().checked_add(time);
        let mut window = lock(&self.window);
        window.closed = window.closed.max(until);
    }
}

impl Window {
    /// Removes requests older than `span`.
    fn forget(&mut self, now: Instant, span: Duration) {
        while let Some(first) = self.sent.front() {
            if first.at + span > now {
                break;
            }
            self.tokens = self.tokens.saturating_sub(first.tokens);
            self.sent.pop_front();
        }
    }
}

impl Slot {
    /// Replaces the estimate with the tokens that the request used.
    pub(crate) fn settle(self, tokens: u64) {
        self.close(Some(tokens));
    }

    /// Ends the request; without `tokens` the estimate stands.
    fn close(&self, tokens: Option<u64>) {
        let mut window = lock(&self.limiter.window);
        let mut sent = window.sent.iter_mut();
        let Some(sent) = sent.find(|sent| sent.number == self.number && sent.is_open) else {
            return;
        };
        sent.is_open = false;
        let tokens = tokens.unwrap_or(sent.tokens);
        let kept = std::mem::replace(&mut sent.tokens, tokens);
        window.tokens = window.tokens.saturating_sub(kept).saturating_add(tokens);
        drop(window);
        self.limiter.eased.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.close(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    fn limiter(requests: Option<u32>, tokens: Option<u64>, span: Duration) -> Arc<Limiter> {
        Arc::new(Limiter {
            span,
            ..Limiter::new(requests, tokens)
        })
    }

    #[test]
    fn d14_no_minute_has_more_requests_or_tokens_than_it_may() {
        let limiter = limiter(Some(3), Some(100), MINUTE);
        let started = Instant::now();
        let (mut now, mut at) = (started, Vec::new());
        for tokens in [30, 30, 30, 10, 90, 20, 500, 1] {
            // As soon as there is room, which may take several looks.
            while let Err(full) = limiter.admit(now, tokens) {
                assert!(full.free > now);
                now = full.free;
            }
            at.push((now - started).as_secs());
            now += Duration::from_secs(1);
        }
        // Three at once; the fourth a minute after the first, the fifth when there is room for
        // 90 again, and so on. The seventh goes alone.
        assert_eq!(at, [0, 1, 2, 60, 62, 122, 182, 242]);
    }

    #[test]
    fn d14_requests_wait_in_order_and_leave_the_line() {
        runtime().block_on(async {
            let limiter = limiter(Some(1), None, Duration::from_millis(50));
            let order = Arc::new(Mutex::new(Vec::new()));
            let started = Instant::now();
            let mut tasks = Vec::new();
            for number in 0..5_u64 {
                let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
                tasks.push(tokio::spawn(async move {
                    if limiter.enter(1, far()).await.is_ok() {
                        lock(&order).push(number);
                    }
                }));
                tokio::task::yield_now().await;
            }
            // A cancelled request does not take another one's turn.
            tasks[2].abort();
            for task in tasks {
                let _ = task.await;
            }
            assert_eq!(*lock(&order), [0, 1, 3, 4]);
            assert!(started.elapsed() >= Duration::from_millis(150));
        });
    }

    #[test]
    fn d14_a_turn_that_comes_too_late_is_told_at_once() {
        runtime().block_on(async {
            let limiter = limiter(Some(1), None, MINUTE);
            assert!(limiter.enter(1, far()).await.is_ok());
            let soon = Instant::now() + Duration::from_secs(30);
            let TooLate(late) = limiter.enter(1, soon).await.err().unwrap();
            assert!(late.is_some_and(|late| late > Duration::from_secs(31)));
            assert!(Instant::now() < soon);
            // A service's requested wait applies to all requests.
            limiter.close_for(Duration::from_secs(100));
            let next = Instant::now() + Duration::from_secs(70);
            let free = limiter.admit(next, 1).unwrap_err().free;
            assert!(free > next + Duration::from_secs(25));
            assert!(limiter.admit(free, 1).is_ok());
        });
    }

    #[test]
    fn d14_tokens_that_were_kept_and_not_used_make_room() {
        runtime().block_on(async {
            let limiter = limiter(None, Some(100), MINUTE);
            let first = limiter.enter(100, far()).await.ok().unwrap();
            let other = Arc::clone(&limiter);
            let waits = tokio::spawn(async move { other.enter(60, far()).await.is_ok() });
            tokio::task::yield_now().await;
            assert!(!waits.is_finished());
            first.settle(40);
            assert!(waits.await.unwrap());
        });
    }

    #[test]
    fn d14_nobody_waits_for_room_that_cannot_come_in_time() {
        runtime().block_on(async {
            let soon = Duration::from_secs(30);
            let limiter = limiter(Some(3), Some(100), MINUTE);
            let first = limiter.enter(90, far()).await.ok().unwrap();
            // The one under way may take less: then there is room at once.
            let full = limiter.admit(Instant::now(), 50).unwrap_err();
            assert!(full.eased.is_some_and(|eased| eased <= Instant::now()));
            first.settle(90);
            let late = limiter
                .enter(50, Instant::now() + soon)
                .await
                .err()
                .unwrap();
            assert!(late.0.is_some_and(|late| late > soon));
            // A service that closes its doors for a day.
            drop(limiter.enter(5, far()).await.ok().unwrap());
            limiter.close_for(Duration::from_secs(86_400));
            let late = limiter.enter(1, far()).await.err().unwrap();
            assert!(
                late.0
                    .is_some_and(|late| late > Duration::from_secs(80_000))
            );
        });
    }

    #[test]
    fn d14_services_share_what_one_key_may() {
        let config = |requests, key: &str| ServiceConfig {
            requests_per_minute: requests,
            key: Some(Secret::new(key)),
            ..ServiceConfig::new(Wire::OpenAi, "http://limits.example")
        };
        let of = |base: &str, config: &ServiceConfig| Limiter::shared(base, config);
        let one = of("a", &config(Some(5), "k")).unwrap();
        assert!(Arc::ptr_eq(&one, &of("a", &config(Some(5), "k")).unwrap()));
        for (base, other) in [
            ("a", config(Some(6), "k")),
            ("a", config(Some(5), "l")),
            ("b", config(Some(5), "k")),
        ] {
            assert!(!Arc::ptr_eq(&one, &of(base, &other).unwrap()));
        }
        assert!(of("a", &config(None, "k")).is_none());
    }
}
