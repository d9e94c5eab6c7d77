//! The channels between the machine and its embedder.
//!
//! Console and agent port are byte streams, the network carries frames and 9p
//! carries messages. Each direction is a bounded ring in the machine's own
//! memory, so an embedder on the other side of a WebAssembly boundary copies
//! bytes straight in and out. A full ring holds its device back (which then
//! takes no more descriptors of the guest); nothing is lost.
//!
//! The machine sets a *kick* when it leaves something that should not wait for
//! the end of a budget: then `run` returns early.

mod bytes;
mod messages;

pub use bytes::ByteRing;
pub use messages::{Message, MessageRing};

/// Bytes of a console ring. A screen of output is far less; `hvc` writes 16
/// bytes at a time and waits when it is full.
pub const CONSOLE_RING_BYTES: usize = 64 << 10;

/// Bytes of a ring of the agent port: some pipe buffers of output, so that one
/// return to the host moves many of them.
pub const AGENT_RING_BYTES: usize = 256 << 10;

/// Bytes of a ring of frames: over 300 frames of an Ethernet MTU, or eight of
/// the largest.
pub const NET_RING_BYTES: usize = 512 << 10;

/// Largest 9p message: Linux offers at most 500 KiB over virtio
/// (`net/9p/trans_virtio.c`: 128 descriptors less three, of one page each).
pub const P9_MESSAGE_BYTES: usize = 512 << 10;

/// Bytes of a ring of 9p messages: two of the largest, so that one can be
/// answered while the next is written.
pub const P9_RING_BYTES: usize = 2 * P9_MESSAGE_BYTES + (4 << 10);

/// The channels by number, as the embedder names them; the machine's status
/// sets bit `1 << number` for each that has output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Channel {
    /// The console, `hvc0`: bytes.
    Console = 0,
    /// The port `agent99.agent`: bytes.
    Agent = 1,
    /// Ethernet frames. A message's tag is a set of [`frame`] flags.
    Net = 2,
    /// 9p messages. A request's tag comes back with its response.
    P9 = 3,
}

/// Flags of a frame from the embedder, in the tag of its message.
pub mod frame {
    /// The checksums are known to be right; the guest need not look.
    pub const CHECKSUMS_VALID: u32 = 1;
}

impl Channel {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Console, Self::Agent, Self::Net, Self::P9];

    /// The channel of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Its bit in a set of channels.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Both directions of a channel.
#[derive(Debug)]
pub struct Duplex<R> {
    /// From the embedder to the guest.
    pub input: R,
    /// From the guest to the embedder.
    pub output: R,
}

/// All channels of a machine.
#[derive(Debug)]
pub struct Channels {
    /// The console, `hvc0`.
    pub console: Duplex<ByteRing>,
    /// The port `agent99.agent`.
    pub agent: Duplex<ByteRing>,
    /// Ethernet frames.
    pub net: Duplex<MessageRing>,
    /// 9p messages.
    pub p9: Duplex<MessageRing>,
    kick: bool,
}

impl Channels {
    /// Empty channels of the usual sizes.
    pub fn new() -> Self {
        let bytes = |size| Duplex {
            input: ByteRing::new(size),
            output: ByteRing::new(size),
        };
        let messages = |size| Duplex {
            input: MessageRing::new(size),
            output: MessageRing::new(size),
        };
        Self {
            console: bytes(CONSOLE_RING_BYTES),
            agent: bytes(AGENT_RING_BYTES),
            net: messages(NET_RING_BYTES),
            p9: messages(P9_RING_BYTES),
            kick: false,
        }
    }

    /// Asks for an early return to the embedder.
    pub fn kick(&mut self) {
        self.kick = true;
    }

    /// Whether an early return was asked for since the last call.
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kick)
    }

    /// The set of channels (bits of [`Channel::bit`]) whose output waits for
    /// the embedder.
    pub fn output(&self) -> u32 {
        let set = [
            (Channel::Console, self.console.output.is_empty()),
            (Channel::Agent, self.agent.output.is_empty()),
            (Channel::Net, self.net.output.is_empty()),
            (Channel::P9, self.p9.output.is_empty()),
        ];
        bits(&set)
    }

    /// The set of channels whose input waits for the guest.
    pub fn input(&self) -> u32 {
        let set = [
            (Channel::Console, self.console.input.is_empty()),
            (Channel::Agent, self.agent.input.is_empty()),
            (Channel::Net, self.net.input.is_empty()),
            (Channel::P9, self.p9.input.is_empty()),
        ];
        bits(&set)
    }

    /// Overwrites what the rings held with zeros, so that a snapshot neither
    /// grows by nor tells old data. Rings that are not empty keep theirs.
    pub fn scrub(&mut self) {
        for duplex in [&mut self.console, &mut self.agent] {
            duplex.input.scrub();
            duplex.output.scrub();
        }
        for duplex in [&mut self.net, &mut self.p9] {
            duplex.input.scrub();
            duplex.output.scrub();
        }
    }
}

impl Default for Channels {
    fn default() -> Self {
        Self::new()
    }
}

/// The bits of the channels that are not empty.
fn bits(channels: &[(Channel, bool)]) -> u32 {
    let waiting = channels.iter().filter(|(_, empty)| !empty);
    waiting.fold(0, |set, (channel, _)| set | channel.bit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_told_by_bit() {
        let mut channels = Channels::new();
        assert_eq!((channels.output(), channels.input()), (0, 0));
        channels.agent.output.push(b"x");
        assert!(channels.p9.output.push(1, b"y"));
        assert!(channels.net.input.push(0, b"z"));
        assert_eq!(channels.output(), 0b1010);
        assert_eq!(channels.input(), 0b0100);
        assert_eq!(Channel::from_number(3), Some(Channel::P9));
        assert_eq!(Channel::from_number(4), None);
    }

    #[test]
    fn a_kick_is_told_once() {
        let mut channels = Channels::new();
        assert!(!channels.take_kick());
        channels.kick();
        assert!(channels.take_kick());
        assert!(!channels.take_kick());
    }
}
