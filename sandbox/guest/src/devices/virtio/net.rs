//! Network device (virtio 1.2 section 5.1): whole Ethernet frames, one queue pair, checksum
//! offload in both directions.
//!
//! The host computes checksums far faster than the guest's emulated hart. The device offers
//! no segmentation offload, control queue or mergeable buffers.

use super::mmio::Device;
use super::queue::{Chain, Queue, QueueFault};
use crate::channels::{Channels, frame};
use crate::devices::Env;
use crate::host::Host;

/// The device completes checksums of frames from the driver.
const F_CSUM: u64 = 1 << 0;
/// The driver accepts frames whose checksum need not be verified.
const F_GUEST_CSUM: u64 = 1 << 1;
const F_MTU: u64 = 1 << 3;
const F_MAC: u64 = 1 << 5;
const F_STATUS: u64 = 1 << 16;

const HDR_F_NEEDS_CSUM: u8 = 1;
const HDR_F_DATA_VALID: u8 = 2;
/// `struct virtio_net_hdr` with its `num_buffers` (section 5.1.6).
const HEADER_BYTES: usize = 12;
/// Ethernet header, VLAN tag and the largest MTU.
const MAX_FRAME_BYTES: usize = 18 + 65535;
const STATUS_LINK_UP: u16 = 1;

const QUEUE_SIZE: u16 = 256;

/// Configuration of the interface.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// MAC address.
    pub mac: [u8; 6],
    /// MTU in bytes (68 to 65535).
    pub mtu: u16,
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            mac: [0x02, 0, 0, 0, 0, 0x01],
            mtu: 1500,
        }
    }
}

/// The network interface.
#[derive(Debug)]
pub struct Net {
    config: [u8; 12],
    chain: Chain,
    guest_csum: bool,
    /// Whether guest frames wait for room in the channel.
    held_back: bool,
}

impl Net {
    /// Creates an interface with its link up.
    pub fn new(config: &NetConfig) -> Self {
        let mut bytes = [0; 12];
        bytes[..6].copy_from_slice(&config.mac);
        bytes[6..8].copy_from_slice(&STATUS_LINK_UP.to_le_bytes());
        bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
        bytes[10..].copy_from_slice(&config.mtu.max(68).to_le_bytes());
        Self {
            config: bytes,
            chain: Chain::default(),
            guest_csum: false,
            held_back: false,
        }
    }

    /// Moves frames to the guest while it has buffers. A frame that exceeds its buffer is
    /// dropped, as on a wire.
    fn receive<H: Host>(
        &mut self,
        queue: &mut Queue,
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        if env.channels.net.input.is_empty() {
            return Ok(());
        }
        for _ in 0..queue.available(env.ram)? {
            queue.pop(env.ram, &mut self.chain)?;
            let room = self.chain.writable_len();
            if room < HEADER_BYTES {
                return Err(QueueFault::Protocol);
            }
            while let Some(message) = env.channels.net.input.front() {
                if HEADER_BYTES + message.bytes.len() <= room {
                    break;
                }
                env.channels.net.input.pop();
            }
            let Some(message) = env.channels.net.input.front() else {
                queue.unpop();
                return Ok(());
            };
            let mut header = [0; HEADER_BYTES];
            if self.guest_csum && message.tag & frame::CHECKSUMS_VALID != 0 {
                header[0] = HDR_F_DATA_VALID;
            }
            header[10] = 1;
            let written = self.chain.write(env.ram, 0, &header)
                + self.chain.write(env.ram, HEADER_BYTES, message.bytes);
            env.channels.net.input.pop();
            queue.push(env.ram, self.chain.head, written)?;
        }
        Ok(())
    }

    /// Takes frames while the channel has room.
    fn transmit<H: Host>(
        &mut self,
        queue: &mut Queue,
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let was_held_back = std::mem::take(&mut self.held_back);
        for _ in 0..queue.available(env.ram)? {
            queue.pop(env.ram, &mut self.chain)?;
            let len = self.chain.readable_len();
            if !(HEADER_BYTES..=HEADER_BYTES + MAX_FRAME_BYTES).contains(&len) {
                return Err(QueueFault::Protocol);
            }
            if !self.send(len - HEADER_BYTES, env) {
                queue.unpop();
                self.held_back = true;
                // Requested once: an embedder that wants no frames is left alone.
                if !was_held_back {
                    env.channels.request_early_exit();
                }
                return Ok(());
            }
            queue.push(env.ram, self.chain.head, 0)?;
        }
        Ok(())
    }

    /// Copies the chain's frame of `len` bytes to the channel; `false` if it has no room.
    fn send<H: Host>(&self, len: usize, env: &mut Env<'_, H>) -> bool {
        let Channels { net, .. } = &mut *env.channels;
        let Some(room) = net.output.reserve(len) else {
            return false;
        };
        let mut header = [0; HEADER_BYTES];
        self.chain.read(env.ram, 0, &mut header);
        self.chain.read(env.ram, HEADER_BYTES, room);
        if header[0] & HDR_F_NEEDS_CSUM != 0 {
            let half = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
            complete_checksum(room, half(6), half(8));
        }
        net.output.commit(0, len);
        env.channels.request_early_exit();
        true
    }
}

/// Completes the Internet checksum (RFC 1071) of `frame` from byte `start` to the end,
/// whose field at `start + offset` holds the pseudo header's sum (section 5.1.6.2). Invalid
/// offsets are ignored: only the guest's own frame suffers.
fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) {
    let at = start + offset;
    if start >= frame.len() || at + 2 > frame.len() {
        return;
    }
    let words = frame[start..].chunks(2);
    let sum: u64 = words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    // In UDP, zero means "no checksum" (RFC 768); in TCP both forms are equal.
    let checksum = match !(folded as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

impl Device for Net {
    const ID: u32 = 1;
    const QUEUE_SIZES: &'static [u16] = &[QUEUE_SIZE, QUEUE_SIZE];

    fn features(&self) -> u64 {
        F_CSUM | F_GUEST_CSUM | F_MTU | F_MAC | F_STATUS
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn start(&mut self, features: u64) {
        self.guest_csum = features & F_GUEST_CSUM != 0;
    }

    fn reset(&mut self) {
        self.guest_csum = false;
        self.held_back = false;
    }

    fn wants_service(&self, channels: &Channels) -> bool {
        self.held_back || !channels.net.input.is_empty()
    }

    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let [rx, tx] = queues else { return Ok(()) };
        self.receive(rx, env)?;
        self.transmit(tx, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Rig;

    const RX: usize = 0;
    const TX: usize = 1;

    fn rig() -> Rig<Net> {
        let net = Net::new(&NetConfig::default());
        Rig::new(net, F_CSUM | F_GUEST_CSUM | F_MAC)
    }

    fn sent(rig: &mut Rig<Net>) -> Option<Vec<u8>> {
        let bytes = rig.channels.net.output.front()?.bytes.to_vec();
        rig.channels.net.output.pop();
        Some(bytes)
    }

    #[test]
    fn tells_address_link_and_mtu() {
        let rig = rig();
        assert_eq!(rig.device.read_config(0x100, 8), 0x0001_0100_0000_0002);
        assert_eq!(rig.device.read_config(0x10a, 2), 1500);
        assert_eq!(rig.device.read_config(0x10c, 4), 0);
    }

    #[test]
    fn frames_go_out_whole_and_in_order() {
        let mut rig = rig();
        rig.add(TX, &[&[0; 12], b"first"], &[]);
        rig.add(TX, &[&[0; 4], &[0; 10], b"second"], &[]);
        rig.notify(TX as u32);
        assert!(rig.channels.take_early_exit());
        assert_eq!(sent(&mut rig), Some(b"first".to_vec()));
        assert_eq!(sent(&mut rig), Some(b"\0\0second".to_vec()));
        assert_eq!(sent(&mut rig), None);
        assert!(rig.used(TX).is_some() && rig.used(TX).is_some());
    }

    #[test]
    fn frames_come_in_as_buffers_come() {
        let mut rig = rig();
        assert!(rig.channels.net.input.push(0, b"early"));
        assert!(
            rig.channels
                .net
                .input
                .push(frame::CHECKSUMS_VALID, b"checked")
        );
        assert!(rig.channels.net.input.push(0, &[9; 200]));
        assert!(
            rig.channels
                .net
                .input
                .push(0, b"after a frame that does not fit")
        );
        rig.poll();
        for _ in 0..3 {
            rig.add(RX, &[], &[12, 100]);
        }
        rig.notify(0);
        let mut got = || rig.used(RX).expect("a frame").1;
        assert_eq!(got(), b"\0\0\0\0\0\0\0\0\0\0\x01\0early");
        assert_eq!(got(), b"\x02\0\0\0\0\0\0\0\0\0\x01\0checked");
        assert_eq!(got()[12..], b"after a frame that does not fit"[..]);
        assert!(rig.used(RX).is_none());
    }

    #[test]
    fn a_full_channel_holds_frames_back() {
        let mut rig = rig();
        let mut added = 0u32;
        let mut seen = 0u32;
        let body = vec![1; 1500];
        while seen < 3000 {
            while added < 3000 && rig.drivers[TX].free() >= 2 {
                rig.add(
                    TX,
                    &[&[0; 12], &[&added.to_le_bytes()[..], &body].concat()],
                    &[],
                );
                added += 1;
                rig.notify(TX as u32);
            }
            rig.poll();
            while rig.used(TX).is_some() {}
            // A slow embedder takes one frame in each round.
            let frame = sent(&mut rig).expect("a frame");
            assert_eq!(frame[..4], seen.to_le_bytes());
            seen += 1;
        }
        assert!(rig.device.live());
    }

    #[test]
    fn a_slow_reader_is_asked_once() {
        let mut rig = rig();
        let frame = [0; 12 + 1500];
        while rig.channels.net.output.fits(1500) {
            rig.add(TX, &[&frame], &[]);
            rig.notify(TX as u32);
            while rig.used(TX).is_some() {}
        }
        rig.channels.take_early_exit();
        rig.add(TX, &[&frame], &[]);
        rig.notify(TX as u32);
        assert!(rig.channels.take_early_exit());
        rig.poll();
        assert!(!rig.channels.take_early_exit());
        assert_eq!(rig.used(TX), None);
        sent(&mut rig);
        rig.poll();
        assert!(rig.channels.take_early_exit() && rig.used(TX).is_some());
    }

    #[test]
    fn checksums_are_completed() {
        // A UDP datagram whose pseudo header sums to 0x1234, odd length.
        let mut frame = vec![0u8; 14];
        frame.extend_from_slice(&[0x12, 0x34, 0xab, 0xcd, 0xff, 0xff, 0x01]);
        let mut header = [0; 12];
        header[0] = HDR_F_NEEDS_CSUM;
        header[6] = 14;
        let mut rig = rig();
        rig.add(TX, &[&header, &frame], &[]);
        rig.notify(TX as u32);
        let got = sent(&mut rig).expect("sent");
        // 1234 + abcd + ffff + 0100 = 1bf00 -> bf01 -> ~ = 40fe
        assert_eq!(got[14..16], [0x40, 0xfe]);
        assert_eq!(got[16..], frame[16..]);
        let mut zero = [0xff, 0xff, 0, 0];
        complete_checksum(&mut zero, 0, 2);
        assert_eq!(zero, [0xff, 0xff, 0xff, 0xff]);
        for (start, offset) in [(0, 4), (0, 3), (4, 0), (65535, 65535)] {
            let mut frame = [1, 2, 3, 4];
            complete_checksum(&mut frame, start, offset);
            assert_eq!(frame, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn impossible_frames_are_faults() {
        let mut rig = rig();
        rig.add(TX, &[&[0; 11]], &[]);
        rig.notify(TX as u32);
        assert_eq!(rig.device.fault(), Some(QueueFault::Protocol));
    }
}
