//! Lossy guest: it drops segments when it is short of memory, as Linux does. It forgets
//! segments that it had promised room for, announces a closed window, and opens the window
//! later. All lost segments must be sent again.

use crate::frames::{answer, bare, tcp};
use crate::peer::{NetBackend, TIMEOUT, pattern};
use crate::{config, listener};
use a99_sandbox_net::HOST;
use smoltcp::wire::{TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 4000;
/// Window, times eight as the SYN announces.
const OPEN: u16 = 65_000;
const MSS: usize = 1460;
/// Less than the window and the gateway's buffer, so that all of it can be in flight at
/// once.
const BYTES: usize = 100 * MSS;
/// How long the window stays closed: shorter and longer than the gateway waits for an
/// acknowledgement.
const CLOSED: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(1500)];

/// Behaviour of the guest in a connection.
#[derive(Copy, Clone, Debug)]
struct Case {
    /// Segments with payload that it accepts before it drops.
    takes: usize,
    /// Maximum segments that it drops before it has memory again.
    drops: usize,
    /// Whether it drops without an acknowledgement.
    silent: bool,
    /// Whether it acknowledges accepted segments together with the first dropped one.
    delayed_ack: bool,
    closed: Duration,
    /// Whether it ends its half before it reads.
    guest_ends: bool,
    /// Whether the peer ends its half after its bytes.
    peer_ends: bool,
}

/// The receiving half of a TCP that drops out-of-order segments.
struct Receiver {
    backend: NetBackend,
    port: u16,
    sequence: i32,
    next: i32,
    window: u16,
    bytes: Vec<u8>,
    ended: bool,
}

impl Receiver {
    fn connect(port: u16) -> Self {
        let mut receiver = Self {
            backend: NetBackend::new(&config(&[port])),
            port,
            sequence: 1000,
            next: 0,
            window: OPEN,
            bytes: Vec::new(),
            ended: false,
        };
        receiver.send(TcpControl::Syn);
        let (_, _, bytes) = answer(&mut receiver.backend).expect("an answer");
        let packet = TcpPacket::new_checked(&bytes[..]).expect("a segment");
        assert!(packet.syn() && packet.ack());
        receiver.next = packet.seq_number().0.wrapping_add(1);
        receiver.send(TcpControl::None);
        receiver
    }

    fn send(&mut self, control: TcpControl) {
        let syn = control == TcpControl::Syn;
        let repr = TcpRepr {
            seq_number: TcpSeqNumber(self.sequence),
            ack_number: (!syn).then_some(TcpSeqNumber(self.next)),
            window_len: self.window,
            window_scale: syn.then_some(3),
            max_seg_size: syn.then_some(MSS as u16),
            ..bare(PORT, self.port, control)
        };
        self.backend.send(tcp(HOST, &repr));
        self.sequence += control.len() as i32;
    }

    /// Accepts segments until all bytes, and the end if there is one, have arrived.
    fn receive(&mut self, case: Case) {
        let (mut takes, mut drops) = (case.takes, case.drops);
        let mut opens: Option<Instant> = None;
        let until = Instant::now() + TIMEOUT;
        while self.bytes.len() < BYTES || (case.peer_ends && !self.ended) {
            let now = Instant::now();
            assert!(now < until, "{case:?}: {} bytes", self.bytes.len());
            if opens.is_some_and(|at| at <= now) {
                opens = None;
                drops = 0;
                self.window = OPEN;
                self.send(TcpControl::None);
            }
            let Some(frame) = self.backend.receive(Duration::from_millis(1)) else {
                continue;
            };
            let packet = TcpPacket::new_checked(&frame.as_slice()[34..]).expect("a segment");
            assert!(!packet.rst(), "{case:?}: {} bytes", self.bytes.len());
            let (first, fin) = (packet.seq_number().0, packet.fin());
            let payload = packet.payload().to_vec();
            if payload.is_empty() && !fin && first == self.next {
                continue;
            }
            let dropped = takes == 0 && drops > 0;
            if dropped {
                drops -= 1;
                if case.silent {
                    continue;
                }
                self.window = 0;
                opens.get_or_insert(Instant::now() + case.closed);
            } else if first == self.next && self.window > 0 {
                takes = takes.saturating_sub(usize::from(!payload.is_empty()));
                self.bytes.extend_from_slice(&payload);
                self.ended |= fin;
                self.next = first.wrapping_add(payload.len() as i32 + i32::from(fin));
                if case.delayed_ack && drops > 0 {
                    continue;
                }
            }
            self.send(TcpControl::None);
        }
    }
}

fn run(case: Case) {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        if case.guest_ends {
            stream.read_to_end(&mut Vec::new()).expect("an orderly end");
        }
        stream.write_all(&pattern(BYTES, 3)).expect("open");
        if case.peer_ends {
            stream.shutdown(Shutdown::Write).expect("open");
        }
        stream
    });
    let mut receiver = Receiver::connect(port);
    if case.guest_ends {
        receiver.send(TcpControl::Fin);
    }
    receiver.receive(case);
    assert!(receiver.bytes == pattern(BYTES, 3), "{case:?}");
    drop(server.join().expect("a server"));
}

#[test]
fn what_a_guest_drops_comes_again_when_it_has_room() {
    let mut cases = Vec::new();
    for takes in [0, 1, 60, 98, 99] {
        for drops in [1, 3, 200] {
            for bits in 0..16 {
                cases.push(Case {
                    takes,
                    drops,
                    silent: false,
                    delayed_ack: bits & 1 != 0,
                    closed: CLOSED[bits >> 1 & 1],
                    guest_ends: bits & 4 != 0,
                    peer_ends: bits & 8 != 0,
                });
            }
        }
    }
    thread::scope(|scope| {
        let threads: Vec<_> = cases
            .iter()
            .map(|case| (case, scope.spawn(|| run(*case))))
            .collect();
        let failed: Vec<_> = threads
            .into_iter()
            .filter_map(|(case, thread)| thread.join().is_err().then_some(case))
            .collect();
        assert!(
            failed.is_empty(),
            "{} of {}: {failed:#?}",
            failed.len(),
            cases.len()
        );
    });
}

/// The last segment is lost three times. smoltcp's timer alone would send it after 1, 2 and
/// 4 s, as on the Internet.
#[test]
fn what_is_lost_in_silence_comes_again_soon() {
    let start = Instant::now();
    run(Case {
        takes: 99,
        drops: 3,
        silent: true,
        delayed_ack: false,
        closed: CLOSED[0],
        guest_ends: false,
        peer_ends: false,
    });
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}
