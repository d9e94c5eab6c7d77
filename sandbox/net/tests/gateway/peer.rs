//! Test guest for the gateway: a separate TCP/IP stack at the other end of the link, or
//! bare frames.

use a99_sandbox_net::{
    Checksums, Config, GATEWAY, GATEWAY_V6, GUEST, GUEST_V6, Gateway, Link, NETMASK,
};
use smoltcp::iface::{self, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant as Time;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Cidr, Ipv6Cidr};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The guest's address on the link.
pub const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// Time limit of any step on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Wakes the test from the gateway's thread.
#[derive(Default)]
struct Notifier {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Notifier {
    fn notify(&self) {
        *self.set.lock().expect("a notifier") = true;
        self.changed.notify_all();
    }

    fn wait(&self, time: Duration) {
        let set = self.set.lock().expect("a notifier");
        let (mut set, _) = self
            .changed
            .wait_timeout_while(set, time, |set| !*set)
            .expect("a notifier");
        *set = false;
    }
}

/// Net backend: a gateway and the guest's end of its link.
pub struct NetBackend {
    pub gateway: Gateway,
    link: Link,
    notifier: Arc<Notifier>,
    /// Frames that the link had no room for.
    kept: VecDeque<Vec<u8>>,
    mtu: usize,
    offloaded: bool,
}

impl NetBackend {
    pub fn new(config: &Config) -> Self {
        let notifier = Arc::new(Notifier::default());
        let notified = notifier.clone();
        let wake = Box::new(move || notified.notify());
        let (gateway, link) = Gateway::start(config, wake).expect("a gateway");
        Self {
            gateway,
            link,
            notifier,
            kept: VecDeque::new(),
            mtu: usize::from(config.mtu),
            offloaded: config.checksums == Checksums::Offloaded,
        }
    }

    /// Sends a frame, now or once there is room.
    pub fn send(&mut self, frame: Vec<u8>) {
        self.kept.push_back(frame);
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(frame) = self.kept.front() {
            if !self.link.send(frame) {
                return;
            }
            self.kept.pop_front();
        }
    }

    /// Returns the next frame within `time`.
    pub fn receive(&mut self, time: Duration) -> Option<Vec<u8>> {
        let until = Instant::now() + time;
        loop {
            self.flush();
            if let Some(frame) = self.link.receive() {
                assert!(self.offloaded || !frame.checksums_valid);
                return Some(frame.bytes);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.notifier.wait(left);
        }
    }

    /// Waits until a condition of the gateway holds.
    pub fn wait_until(&mut self, mut done: impl FnMut(&Gateway) -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !done(&self.gateway) {
            assert!(Instant::now() < until, "{:?}", self.gateway.stats());
            self.receive(Duration::from_millis(2));
        }
    }
}

pub struct Received(Vec<u8>);

pub struct Sent<'a>(&'a mut NetBackend);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.send(frame);
        result
    }
}

impl Device for NetBackend {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Time) -> Option<(Received, Sent<'_>)> {
        self.flush();
        let frame = self.link.receive()?;
        Some((Received(frame.bytes), Sent(self)))
    }

    fn transmit(&mut self, _: Time) -> Option<Sent<'_>> {
        self.flush();
        self.kept.is_empty().then_some(Sent(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 14 + self.mtu;
        if self.offloaded {
            capabilities.checksum.tcp = Checksum::None;
        }
        capabilities
    }
}

/// A guest with an address.
pub struct Guest {
    pub backend: NetBackend,
    pub interface: Interface,
    pub sockets: SocketSet<'static>,
    start: Instant,
    next_port: u16,
}

impl Guest {
    /// Creates a guest that is configured by hand.
    pub fn new(config: &Config) -> Self {
        let mut guest = Self::bare(config, MAC);
        guest.configure(
            Ipv4Cidr::from_netmask(GUEST, NETMASK).expect("a netmask"),
            GATEWAY,
        );
        guest
    }

    /// Creates a guest without an address.
    pub fn bare(config: &Config, mac: [u8; 6]) -> Self {
        let mut backend = NetBackend::new(config);
        let hardware = HardwareAddress::Ethernet(EthernetAddress(mac));
        let mut settings = iface::Config::new(hardware);
        settings.random_seed = 4;
        let interface = Interface::new(settings, &mut backend, Time::ZERO);
        Self {
            backend,
            interface,
            sockets: SocketSet::new(Vec::new()),
            start: Instant::now(),
            next_port: 10_000,
        }
    }

    pub fn configure(&mut self, address: Ipv4Cidr, router: Ipv4Addr) {
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            addresses.push(IpCidr::Ipv4(address)).expect("room");
            let v6 = Ipv6Cidr::new(GUEST_V6, 64);
            addresses.push(IpCidr::Ipv6(v6)).expect("room");
        });
        let routes = self.interface.routes_mut();
        routes.add_default_ipv4_route(router).expect("room");
        routes.add_default_ipv6_route(GATEWAY_V6).expect("room");
    }

    fn time(&self) -> Time {
        Time::from_micros(self.start.elapsed().as_micros() as i64)
    }

    /// Lets the stack work, without sleeping; returns whether it did any.
    pub fn poll(&mut self) -> bool {
        let time = self.time();
        let (backend, sockets) = (&mut self.backend, &mut self.sockets);
        self.interface.poll(time, backend, sockets) == PollResult::SocketStateChanged
    }

    /// Lets the stack work, or sleeps until it has work.
    pub fn step(&mut self) {
        if self.poll() {
            return;
        }
        let delay = self.interface.poll_delay(self.time(), &self.sockets);
        let longest = Duration::from_millis(20);
        let delay = delay.map_or(longest, |delay| Duration::from(delay).min(longest));
        if !delay.is_zero() {
            self.backend.notifier.wait(delay);
        }
    }

    /// Steps until a condition of the gateway holds.
    pub fn wait_until(&mut self, mut done: impl FnMut(&Gateway) -> bool) {
        self.until(|guest| done(&guest.backend.gateway).then_some(()));
    }

    /// Steps until there is a result.
    pub fn until<T>(&mut self, mut result: impl FnMut(&mut Self) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(result) = result(self) {
                return result;
            }
            assert!(
                Instant::now() < until,
                "nothing happens; {:?}",
                self.backend.gateway.stats()
            );
            self.step();
        }
    }

    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Creates a TCP socket with buffers of `bytes`.
    pub fn socket(&mut self, bytes: usize) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(None);
        self.sockets.add(socket)
    }

    /// Starts connecting.
    pub fn dial(&mut self, to: impl Into<IpAddr>, port: u16, bytes: usize) -> SocketHandle {
        let handle = self.socket(bytes);
        self.next_port = if self.next_port == 60_000 {
            10_000
        } else {
            self.next_port + 1
        };
        let from = self.next_port;
        let context = self.interface.context();
        let socket: &mut tcp::Socket<'_> = self.sockets.get_mut(handle);
        socket
            .connect(context, (to.into(), port), from)
            .expect("a connection");
        handle
    }

    /// Connects; `None` if refused.
    pub fn connect(&mut self, to: impl Into<IpAddr>, port: u16) -> Option<SocketHandle> {
        let handle = self.dial(to, port, 512 << 10);
        self.until(|guest| match guest.tcp(handle).state() {
            tcp::State::Established | tcp::State::CloseWait => Some(Some(handle)),
            tcp::State::Closed => Some(None),
            _ => None,
        })
    }

    /// Sends all of `bytes`.
    pub fn write(&mut self, handle: SocketHandle, bytes: &[u8]) {
        let mut sent = 0;
        self.until(|guest| {
            sent += guest
                .tcp(handle)
                .send_slice(&bytes[sent..])
                .expect("an open connection");
            (sent == bytes.len()).then_some(())
        });
    }

    /// Reads all bytes up to the peer's end; `Err` after a reset.
    pub fn read_to_end(&mut self, handle: SocketHandle) -> Result<Vec<u8>, Vec<u8>> {
        let mut bytes = Vec::new();
        self.until(|guest| {
            read_some(guest.tcp(handle), &mut bytes).map(
                |ended| {
                    if ended { Ok(()) } else { Err(()) }
                },
            )
        })
        .map(|()| std::mem::take(&mut bytes))
        .map_err(|()| bytes)
    }

    /// Drops a socket.
    pub fn close(&mut self, handle: SocketHandle) {
        self.tcp(handle).close();
        self.until(|guest| {
            (!guest.tcp(handle).is_active() || guest.tcp(handle).state() == tcp::State::TimeWait)
                .then_some(())
        });
        self.poll();
        self.sockets.remove(handle);
    }
}

/// Reads available bytes; returns whether the peer ended, `Some(false)` by a reset.
pub fn read_some(socket: &mut tcp::Socket<'_>, bytes: &mut Vec<u8>) -> Option<bool> {
    loop {
        let read = socket.recv(|room| {
            bytes.extend_from_slice(room);
            (room.len(), room.len())
        });
        match read {
            Ok(0) => return None,
            Ok(_) => {}
            Err(tcp::RecvError::Finished) => return Some(true),
            Err(tcp::RecvError::InvalidState) => return Some(false),
        }
    }
}

/// Bytes without short repetitions.
pub fn pattern(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(8)).flat_map(|_| word()).collect();
    bytes.truncate(count);
    bytes
}
