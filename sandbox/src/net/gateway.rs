//! Starting and ending a gateway.

use super::config::Config;
use super::error::{NetCode, NetError};
use super::forward;
use super::link::{Link, Shared};
use super::worker::Worker;
use super::{MAX_MTU, MIN_MTU};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// A guest's way to the world: one thread, ended when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    forwards: Vec<SocketAddr>,
}

/// What a gateway has open.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// TCP connections.
    pub tcp: usize,
    /// Of these, those that wait for the host to connect.
    pub connecting: usize,
    /// UDP sessions.
    pub udp: usize,
    /// Echo sessions.
    pub ping: usize,
    /// Frames and packets that were malformed, or had no room, since the start.
    pub dropped: u64,
}

impl Gateway {
    /// Starts a gateway. `wake` is called from its thread when the link has
    /// frames for the guest after it had none, or room after it was full; it
    /// must return soon.
    ///
    /// # Errors
    /// If the MTU is out of range, a forward's address is taken, or the system
    /// has no descriptor or thread left.
    pub fn start(config: &Config, wake: Box<dyn Fn() + Send>) -> Result<(Self, Link), NetError> {
        if !(MIN_MTU..=MAX_MTU).contains(&config.mtu) {
            let text = format!(
                "the MTU is {}, but must be {MIN_MTU} to {MAX_MTU}",
                config.mtu
            );
            return Err(NetError::new(NetCode::Mtu, text));
        }
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

    /// Where the forwards listen, in their order.
    pub fn forwards(&self) -> &[SocketAddr] {
        &self.forwards
    }

    /// What was open at the end of the last turn.
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
            // A panic of the thread was reported by its own hook.
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
}
