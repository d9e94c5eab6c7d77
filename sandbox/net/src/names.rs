//! DNS server: queries the host's resolver in the background and applies the policy to
//! names and to their addresses.
//!
//! Lookups block, so a few threads run them. The threads start on demand, end when idle,
//! and belong to one guest: names that time out delay only the guest that asks for them.

use super::dns::{self, Query, QueryKind, Rcode};
use super::egress_filter::EgressFilter;
use super::link::Shared;
use super::resolver::{ResolveError, Resolver};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum lookup threads of a guest.
const MAX_THREADS: usize = 4;
/// Time that a thread waits for the next name before it ends.
const THREAD_IDLE: Duration = Duration::from_secs(5);
/// Stack of a thread in bytes: a few frames of the C library and of a custom resolver.
const THREAD_STACK_BYTES: usize = 256 << 10;
/// Maximum names being looked up or queued.
const MAX_PENDING: usize = 64;
/// Maximum queries that wait for one name.
const MAX_WAITERS: usize = 16;
/// Maximum names in the cache.
const MAX_KEPT: usize = 512;
/// How long answers are cached, here and by the guest: the host's resolver does not report
/// their real TTL.
const TTL: Duration = Duration::from_secs(60);
/// How long negative answers are cached.
const NEGATIVE_TTL: Duration = Duration::from_secs(5);

type Found = Result<Vec<IpAddr>, ResolveError>;

/// A query, and the guest's port that it came from.
type Waiter = (u16, Query);

/// Names that the guest asks for: cache and pending lookups.
pub(super) struct Names {
    pool: Arc<Pool>,
    pending: HashMap<String, Vec<Waiter>>,
    kept: HashMap<String, (Found, Instant)>,
}

impl Names {
    pub(super) fn new(resolver: Arc<dyn Resolver>, link: Arc<Shared>) -> Self {
        Self {
            pool: Arc::new(Pool {
                jobs: Mutex::default(),
                changed: Condvar::new(),
                resolver,
                link,
            }),
            pending: HashMap::new(),
            kept: HashMap::new(),
        }
    }

    /// Handles a query from `port`; returns the answer if it is known at once.
    pub(super) fn query(
        &mut self,
        message: &[u8],
        port: u16,
        filter: &mut EgressFilter,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let query = match dns::parse(message) {
            Ok(query) => query,
            Err(answer) => return answer,
        };
        let refuse = |rcode| Some(query.answer(rcode, &[], 0));
        let name = match (&query.name, query.kind) {
            (_, QueryKind::Reverse) | (None, _) => return refuse(Rcode::NxDomain),
            (Some(name), _) => name.clone(),
        };
        if name == a99_egress::HOST_NAME {
            let host = match query.kind {
                QueryKind::V4 | QueryKind::V6 => [super::HOST.into(), super::HOST_V6.into()],
                _ => return refuse(Rcode::NoError),
            };
            return Some(query.answer(Rcode::NoError, &host, TTL.as_secs() as u32));
        }
        if !filter.allows_name(&name) {
            return refuse(Rcode::Refused);
        }
        if query.kind == QueryKind::Other {
            return refuse(Rcode::NoError);
        }
        if let Some((found, until)) = self.kept.get(&name).filter(|(_, until)| *until > now) {
            return Some(answer(&query, &name, found, *until - now, filter, now));
        }
        self.enqueue(name, (port, query))
    }

    /// Queues a name for lookup; returns the answer if that is not possible.
    fn enqueue(&mut self, name: String, waiter: Waiter) -> Option<Vec<u8>> {
        let pending = self.pending.len();
        if let Some(waiters) = self.pending.get_mut(&name) {
            // If it is dropped, the client's retry will be answered.
            if waiters.len() < MAX_WAITERS {
                waiters.push(waiter);
            }
            return None;
        }
        if pending == MAX_PENDING || !self.pool.submit(&name) {
            return Some(waiter.1.answer(Rcode::ServFail, &[], 0));
        }
        self.pending.insert(name, vec![waiter]);
        None
    }

    /// Returns the answers of finished lookups, each with its destination port.
    pub(super) fn finished(
        &mut self,
        filter: &mut EgressFilter,
        now: Instant,
    ) -> Vec<(u16, Vec<u8>)> {
        let done = std::mem::take(&mut self.pool.jobs().done);
        let mut answers = Vec::new();
        for (name, found) in done {
            let ttl = match found {
                Ok(_) => TTL,
                Err(_) => NEGATIVE_TTL,
            };
            for (port, query) in self.pending.remove(&name).unwrap_or_default() {
                answers.push((port, answer(&query, &name, &found, ttl, filter, now)));
            }
            if found == Err(ResolveError::Failed) {
                continue;
            }
            if self.kept.len() >= MAX_KEPT {
                self.expire(now);
            }
            if self.kept.len() < MAX_KEPT {
                self.kept.insert(name, (found, now + ttl));
            }
        }
        answers
    }

    /// Drops expired answers.
    pub(super) fn expire(&mut self, now: Instant) {
        self.kept.retain(|_, (_, until)| *until > now);
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.pool.jobs().closed = true;
        self.pool.changed.notify_all();
    }
}

fn answer(
    query: &Query,
    name: &str,
    found: &Found,
    ttl: Duration,
    filter: &mut EgressFilter,
    now: Instant,
) -> Vec<u8> {
    let ttl = ttl.as_secs().max(1) as u32;
    match found {
        Ok(addresses) => {
            let mut allowed = filter.answer(name, addresses, now);
            // The policy refuses every address, of both families: programs ask for both, and
            // take a refusal of one for a failure.
            let refused = allowed.is_empty() && !addresses.is_empty();
            let rcode = if refused {
                Rcode::Refused
            } else {
                Rcode::NoError
            };
            if query.kind == QueryKind::V6 {
                allowed.retain(IpAddr::is_ipv6);
                // More do not fit in an answer.
                allowed.truncate(dns::MAX_V6_RECORDS);
                allowed.retain(|address| filter.is_reachable(*address));
            }
            query.answer(rcode, &allowed, ttl)
        }
        Err(ResolveError::NotFound) => query.answer(Rcode::NxDomain, &[], 0),
        Err(ResolveError::Failed) => query.answer(Rcode::ServFail, &[], 0),
    }
}

/// State shared with the threads.
struct Pool {
    jobs: Mutex<Jobs>,
    changed: Condvar,
    resolver: Arc<dyn Resolver>,
    link: Arc<Shared>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<String>,
    done: Vec<(String, Found)>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // The resolver, which may panic, is not called under the lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a name for a thread; `false` if no thread can start.
    fn submit(self: &Arc<Self>, name: &str) -> bool {
        let mut jobs = self.jobs();
        jobs.waiting.push_back(name.to_owned());
        if jobs.idle >= jobs.waiting.len() {
            self.changed.notify_one();
            return true;
        }
        if jobs.threads < MAX_THREADS {
            let pool = self.clone();
            let builder = std::thread::Builder::new().name("a99-names".to_owned());
            let thread = builder
                .stack_size(THREAD_STACK_BYTES)
                .spawn(move || pool.run());
            jobs.threads += usize::from(thread.is_ok());
        }
        if jobs.threads == 0 {
            jobs.waiting.pop_back();
        }
        jobs.threads > 0
    }

    /// Main loop of a thread.
    fn run(&self) {
        while let Some(name) = self.next() {
            let resolve = AssertUnwindSafe(|| self.resolver.resolve(&name));
            let found = catch_unwind(resolve).unwrap_or(Err(ResolveError::Failed));
            self.jobs().done.push((name, found));
            self.link.notify();
        }
    }

    /// Waits for the next name; `None` ends the thread.
    fn next(&self) -> Option<String> {
        let mut jobs = self.jobs();
        let until = Instant::now() + THREAD_IDLE;
        loop {
            if jobs.closed {
                jobs.threads -= 1;
                return None;
            }
            if let Some(name) = jobs.waiting.pop_front() {
                return Some(name);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                jobs.threads -= 1;
                return None;
            }
            jobs.idle += 1;
            let waited = self.changed.wait_timeout(jobs, left);
            jobs = waited.unwrap_or_else(PoisonError::into_inner).0;
            jobs.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
    const PUBLIC_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111));

    /// Resolves names by their first letter.
    struct Scripted;

    impl Resolver for Scripted {
        fn resolve(&self, name: &str) -> Found {
            match name.as_bytes()[0] {
                b'p' => Ok(vec![PUBLIC]),
                b'm' => Ok(vec![Ipv4Addr::new(10, 0, 0, 1).into(), PUBLIC]),
                b'd' => Ok(vec![PUBLIC, PUBLIC_V6, Ipv6Addr::LOCALHOST.into()]),
                b's' => Ok(vec![PUBLIC_V6]),
                b'i' => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
                b'e' => Ok(vec![]),
                b'n' => Err(ResolveError::NotFound),
                b'x' => panic!("a resolver that fails badly"),
                _ => Err(ResolveError::Failed),
            }
        }
    }

    struct Rig {
        names: Names,
        filter: EgressFilter,
        now: Instant,
    }

    fn rig(policy: &str, resolver: impl Resolver + 'static) -> Rig {
        let link = Shared::new().expect("an eventfd");
        Rig {
            names: Names::new(Arc::new(resolver), link),
            filter: EgressFilter::new(policy.parse().expect("a policy")),
            now: Instant::now(),
        }
    }

    fn message(name: &str, kind: u8) -> Vec<u8> {
        let mut message = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(label.len() as u8);
            message.extend_from_slice(label.as_bytes());
        }
        message.extend([0, 0, kind, 0, 1]);
        message
    }

    impl Rig {
        fn ask(&mut self, name: &str, kind: u8) -> Option<Vec<u8>> {
            let message = message(name, kind);
            self.names.query(&message, 999, &mut self.filter, self.now)
        }

        fn wait(&mut self) -> Vec<(u16, Vec<u8>)> {
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until {
                let answers = self.names.finished(&mut self.filter, self.now);
                if !answers.is_empty() {
                    return answers;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("no answer");
        }

        /// Response code and number of records.
        fn outcome(&mut self, name: &str) -> (u8, u8) {
            self.outcome_of(name, 1)
        }

        fn outcome_of(&mut self, name: &str, kind: u8) -> (u8, u8) {
            let answer = self.ask(name, kind);
            let answer = answer.unwrap_or_else(|| self.wait().remove(0).1);
            (answer[3] & 15, answer[7])
        }
    }

    #[test]
    fn names_are_answered_by_the_policy() {
        let mut rig = rig("allow:*.test", Scripted);
        for (name, outcome) in [
            ("p.test", (0, 1)),
            // Only addresses that the policy allows.
            ("m.test", (0, 1)),
            ("i.test", (5, 0)),
            ("e.test", (0, 0)),
            ("n.test", (3, 0)),
            ("f.test", (2, 0)),
            ("x.test", (2, 0)),
            ("p.other", (5, 0)),
            ("host.agent99.internal", (0, 1)),
        ] {
            assert_eq!(rig.outcome(name), outcome, "{name}");
        }
        assert!(rig.filter.target(PUBLIC, 1, rig.now).is_ok());
    }

    #[test]
    fn addresses_of_both_families_are_answered() {
        let mut rig = rig("allow:*.test,[2606:4700::/32]:443", Scripted);
        for (name, v4, v6) in [
            ("p.test", (0, 1), (0, 0)),
            ("d.test", (0, 1), (0, 1)),
            ("s.test", (0, 0), (0, 1)),
            ("i.test", (5, 0), (5, 0)),
            ("n.test", (3, 0), (3, 0)),
            ("host.agent99.internal", (0, 1), (0, 1)),
        ] {
            assert_eq!(rig.outcome_of(name, 28), v6, "{name}");
            assert_eq!(rig.outcome_of(name, 1), v4, "{name}");
        }
        assert!(rig.filter.target(PUBLIC_V6, 443, rig.now).is_ok());
    }

    #[test]
    fn one_lookup_serves_both_families() {
        let mut rig = rig("allow:*.test,[2606:4700::/32]:443", Scripted);
        let both = [rig.ask("d.test", 1), rig.ask("d.test", 28)];
        assert_eq!((both, rig.names.pending.len()), ([None, None], 1));
        let answers = rig.wait();
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|(_, answer)| answer[7] == 1));
    }

    #[test]
    fn other_records_are_none() {
        let mut rig = rig("allow:p.test", Scripted);
        for name in ["p.test", "host.agent99.internal"] {
            let answer = rig.ask(name, 15).expect("at once");
            assert_eq!((answer[3] & 15, answer[7]), (0, 0));
        }
        let reverse = rig.ask("1.127.168.192.in-addr.arpa", 12).expect("at once");
        assert_eq!(reverse[3] & 15, 3);
        assert_eq!(rig.ask("q.test", 28).expect("at once")[3] & 15, 5);
    }

    #[test]
    fn answers_are_kept_for_their_time() {
        let mut rig = rig("full", Scripted);
        assert_eq!(rig.outcome("p.test"), (0, 1));
        rig.now += Duration::from_secs(50);
        let again = rig.ask("p.test", 1).expect("kept");
        assert_eq!(
            again[again.len() - 10..again.len() - 6],
            10u32.to_be_bytes()
        );
        rig.now += Duration::from_secs(11);
        assert_eq!(rig.ask("p.test", 1), None);
    }

    #[test]
    fn s05_floods_of_queries_are_bounded() {
        struct Silent;
        impl Resolver for Silent {
            fn resolve(&self, _: &str) -> Found {
                std::thread::sleep(Duration::from_millis(300));
                Err(ResolveError::Failed)
            }
        }
        let mut rig = rig("full", Silent);
        let mut failed = 0;
        for number in 0..1000 {
            failed += usize::from(rig.ask(&format!("n{number}.test"), 1).is_some());
            // One of the first names, so the query waits for it.
            assert_eq!(rig.ask("same.test", 1), None);
        }
        assert_eq!(failed, 1000 - (MAX_PENDING - 1));
        assert_eq!(rig.names.pending.len(), MAX_PENDING);
        assert_eq!(rig.names.pending["same.test"].len(), MAX_WAITERS);
        assert_eq!(rig.names.pool.jobs().threads, MAX_THREADS);
    }

    #[test]
    fn threads_end_with_their_guest() {
        let mut rig = rig("full", Scripted);
        rig.outcome("p.test");
        let pool = rig.names.pool.clone();
        drop(rig);
        let until = Instant::now() + Duration::from_secs(10);
        while pool.jobs().threads > 0 {
            assert!(Instant::now() < until, "a thread goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
