//! Gateway: start and end of a guest's network thread.

use super::config::Config;
use super::error::{NetCode, NetError};
use super::forward;
use super::link::{Link, Shared};
use super::worker::Worker;
use super::{GATEWAY, GATEWAY_V6, MAX_MTU, MIN_MTU, is_gateway};
use a99_egress::{HOST_NAME, Host, Net, Ports, Rule};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// Network gateway of a guest: one thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    forwards: Vec<SocketAddr>,
}

/// Counts of a gateway's open connections and sessions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Open TCP connections.
    pub tcp: usize,
    /// TCP connections that wait for the host to connect.
    pub connecting: usize,
    /// Open UDP sessions.
    pub udp: usize,
    /// Open echo sessions.
    pub ping: usize,
    /// Frames and packets dropped since the start, malformed or for lack of room.
    pub dropped: u64,
}

/// Checks that a rule can match: the guest's link has only its own addresses, and the
/// host's loopback needs named ports.
fn check_rule(rule: &Rule) -> Result<(), NetError> {
    let Host::Net(net) = &rule.host else {
        return Ok(());
    };
    // Both gateways have the number 1 on their link.
    let links = [
        Net::new(Ipv4Addr::from_bits(GATEWAY.to_bits() - 1).into(), 24),
        Net::new(Ipv6Addr::from_bits(GATEWAY_V6.to_bits() - 1).into(), 64),
    ];
    let on_link = links.iter().flatten().any(|link| link.covers(*net));
    let is_host = net.is_host() && is_gateway(net.address()) && rule.ports != Ports::ALL;
    if !on_link || is_host {
        return Ok(());
    }
    let text = format!(
        "the rule {rule} is about the guest's own link, where it opens nothing: for a port of this \
         computer write {HOST_NAME}:PORT"
    );
    Err(NetError::new(NetCode::Link, text))
}

impl Gateway {
    /// Starts a gateway.
    ///
    /// The gateway's thread calls `wake` when the link has frames for the guest after it
    /// was empty, or room after it was full. The callback must return quickly.
    ///
    /// # Errors
    /// If the MTU is out of range, a forward's address is taken, or the system has no
    /// descriptor or thread left.
    pub fn start(config: &Config, wake: Box<dyn Fn() + Send>) -> Result<(Self, Link), NetError> {
        if !(MIN_MTU..=MAX_MTU).contains(&config.mtu) {
            let text = format!(
                "the MTU is {}, but must be {MIN_MTU} to {MAX_MTU}",
                config.mtu
            );
            return Err(NetError::new(NetCode::Mtu, text));
        }
        config.policy.rules().iter().try_for_each(check_rule)?;
        let resources = |error: std::io::Error| {
            let text = format!("cannot start the network: {error}");
            NetError::new(NetCode::Resources, text)
        };
        let listeners = forward::listen(&config.forwards)?;
        let forwards: Result<_, _> = listeners.iter().map(forward::Listener::address).collect();
        let forwards = forwards?;
        let shared = Shared::new().map_err(resources)?;
        let worker = Worker::new(config, listeners, shared.clone(), wake)?;
        let builder = std::thread::Builder::new().name("a99-net".to_owned());
        let thread = builder.spawn(move || worker.run()).map_err(resources)?;
        let link = Link::new(shared.clone());
        let gateway = Self {
            shared,
            thread: Some(thread),
            forwards,
        };
        Ok((gateway, link))
    }

    /// Addresses of the listeners, in the order of the forwards.
    pub fn forwards(&self) -> &[SocketAddr] {
        &self.forwards
    }

    /// Counts at the end of the last step.
    pub fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        Stats {
            tcp: counters.tcp.load(Ordering::Relaxed),
            connecting: counters.connecting.load(Ordering::Relaxed),
            udp: counters.udp.load(Ordering::Relaxed),
            ping: counters.ping.load(Ordering::Relaxed),
            dropped: counters.dropped.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // The panic hook already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_may_go_to_other_threads() {
        fn goes<T: Send + 'static>(_: T) {}
        let config = Config::new(a99_egress::Policy::off());
        let (gateway, link) = Gateway::start(&config, Box::new(|| ())).expect("a gateway");
        assert_eq!(
            (gateway.stats(), gateway.forwards()),
            (Stats::default(), &[][..])
        );
        goes(link);
        goes(gateway);
        goes(config);
    }

    #[test]
    fn s10_rules_about_the_guests_link_mean_something_or_are_refused() {
        let check = |policy: &str| {
            let policy: a99_egress::Policy = policy.parse().expect("a policy");
            policy.rules().iter().try_for_each(check_rule)
        };
        for good in [
            "allow:192.168.127.1:80",
            "allow:192.168.127.254:80-90",
            "allow:192.168.0.0/16",
            "full:localhost:80",
            "allow:0.0.0.0/0",
            "allow:[fda9:9a99:127::1]:80",
            "allow:[fda9:9a99:127::254]:80-90",
            "allow:[fc00::/7]",
            "allow:[::/0]",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "allow:192.168.127.1",
            "allow:192.168.127.3:80",
            "allow:192.168.127.0/24:80",
            "full:192.168.127.128/25",
            "allow:[fda9:9a99:127::1]",
            "allow:[fda9:9a99:127::3]:80",
            "full:[fda9:9a99:127::/64]",
            "full:[fda9:9a99:127::/65]:80",
        ] {
            let error = check(bad).expect_err(bad);
            assert_eq!(error.code, NetCode::Link);
            assert!(error.text.contains(HOST_NAME), "{error}");
        }
    }
}
