//! Channels between the machine and its embedder.
//!
//! Console and agent port are byte streams, the network carries frames and 9p carries
//! messages. Each direction is a bounded ring in the machine's own memory, so that an
//! embedder on the other side of a WebAssembly boundary copies bytes directly. A full ring
//! blocks its device, which then takes no more descriptors of the guest; no data is lost.
//!
//! The machine requests an *early exit* for output that should not wait for the end of a
//! budget: `run` then returns early.

mod bytes;
mod messages;

pub(crate) use bytes::ByteRing;
pub(crate) use messages::{Message, MessageRing};

pub(crate) use a99_sandbox_abi::{Channel, P9_MESSAGE_BYTES, frame};

/// Size of a console ring in bytes. A screen of output is far less; `hvc` writes 16 bytes
/// at a time and waits when it is full.
pub(crate) const CONSOLE_RING_BYTES: usize = 64 << 10;

/// Size of an agent port ring in bytes: several pipe buffers of output, so that one return
/// to the host moves them all.
pub(crate) const AGENT_RING_BYTES: usize = 256 << 10;

/// Size of a frame ring in bytes: over 300 frames of an Ethernet MTU, or eight of the
/// largest.
pub(crate) const NET_RING_BYTES: usize = 512 << 10;

/// Size of a 9p ring in bytes: two of the largest messages, so that one can be answered
/// while the next is written.
pub(crate) const P9_RING_BYTES: usize = 2 * P9_MESSAGE_BYTES + (4 << 10);

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
    early_exit: bool,
}

impl Channels {
    /// Creates empty channels of the default sizes.
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
            early_exit: false,
        }
    }

    /// Requests an early return to the embedder.
    pub fn request_early_exit(&mut self) {
        self.early_exit = true;
    }

    /// Whether an early return was requested since the last call.
    pub fn take_early_exit(&mut self) -> bool {
        std::mem::take(&mut self.early_exit)
    }

    /// Channels (bits of [`Channel::bit`]) whose output waits for the embedder.
    pub fn output(&self) -> u32 {
        let set = [
            (Channel::Console, self.console.output.is_empty()),
            (Channel::Agent, self.agent.output.is_empty()),
            (Channel::Net, self.net.output.is_empty()),
            (Channel::P9, self.p9.output.is_empty()),
        ];
        bits(&set)
    }

    /// Channels whose input waits for the guest.
    pub fn input(&self) -> u32 {
        let set = [
            (Channel::Console, self.console.input.is_empty()),
            (Channel::Agent, self.agent.input.is_empty()),
            (Channel::Net, self.net.input.is_empty()),
            (Channel::P9, self.p9.input.is_empty()),
        ];
        bits(&set)
    }

    /// The oldest output of a channel, for the embedder to copy: the next run of bytes,
    /// with tag 0, or one message. `None` if the channel is empty.
    pub fn front(&self, channel: Channel) -> Option<Message<'_>> {
        let bytes = match channel {
            Channel::Console => self.console.output.front(),
            Channel::Agent => self.agent.output.front(),
            Channel::Net => return self.net.output.front(),
            Channel::P9 => return self.p9.output.front(),
        };
        (!bytes.is_empty()).then_some(Message { tag: 0, bytes })
    }

    /// Drops `count` bytes of [`Channels::front`], or the whole message.
    pub fn take(&mut self, channel: Channel, count: usize) {
        match channel {
            Channel::Console => drop(self.console.output.consume(count)),
            Channel::Agent => drop(self.agent.output.consume(count)),
            Channel::Net => drop(self.net.output.pop()),
            Channel::P9 => drop(self.p9.output.pop()),
        }
    }

    /// Returns room for input, to be filled in place and [committed]. For bytes it is the
    /// next run, possibly shorter than `len`; for messages all of `len`. `None` if there is
    /// no room.
    ///
    /// [committed]: Channels::commit
    pub fn space(&mut self, channel: Channel, len: usize) -> Option<&mut [u8]> {
        let space = match channel {
            Channel::Console => self.console.input.space(),
            Channel::Agent => self.agent.input.space(),
            Channel::Net => return self.net.input.reserve(len),
            Channel::P9 => return self.p9.input.reserve(len),
        };
        let len = space.len().min(len);
        (len > 0).then(|| &mut space[..len])
    }

    /// Commits the first `len` bytes of [`Channels::space`]: bytes, or a message with a
    /// tag. `false`, without an effect, if there was no such room.
    pub fn commit(&mut self, channel: Channel, tag: u32, len: usize) -> bool {
        let ring = match channel {
            Channel::Console => &mut self.console.input,
            Channel::Agent => &mut self.agent.input,
            Channel::Net => return self.net.input.commit(tag, len),
            Channel::P9 => return self.p9.input.commit(tag, len),
        };
        len <= ring.space().len() && ring.commit(len) == len
    }

    /// Overwrites old contents of empty rings with zeros, so that a snapshot neither grows
    /// by old data nor reveals it.
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
    }

    #[test]
    fn the_embedder_copies_in_place() {
        let mut channels = Channels::new();
        for channel in Channel::ALL {
            assert_eq!(channels.front(channel), None);
            let room = channels.space(channel, 3).expect("empty");
            room.copy_from_slice(b"in!");
            assert!(channels.commit(channel, 5, 2));
            assert_eq!(channels.input() & channel.bit(), channel.bit());
            assert!(!channels.commit(channel, 5, 1 << 30));
        }
        assert_eq!(channels.agent.input.front(), b"in");
        let request = Message {
            tag: 5,
            bytes: b"in",
        };
        assert_eq!(channels.p9.input.front(), Some(request));

        assert!(channels.p9.output.push(9, b"message"));
        channels.console.output.push(b"bytes");
        channels.take(Channel::Console, 2);
        channels.take(Channel::P9, 0);
        assert_eq!(
            channels.front(Channel::Console).map(|m| m.bytes),
            Some(&b"tes"[..])
        );
        assert_eq!(channels.front(Channel::P9), None);
        let fill = channels.console.input.free();
        channels.console.input.push(&vec![0; fill]);
        assert_eq!(channels.space(Channel::Console, 1), None);
        assert!(!channels.commit(Channel::Console, 0, 1));
    }

    #[test]
    fn an_early_exit_is_told_once() {
        let mut channels = Channels::new();
        assert!(!channels.take_early_exit());
        channels.request_early_exit();
        assert!(channels.take_early_exit());
        assert!(!channels.take_early_exit());
    }
}
