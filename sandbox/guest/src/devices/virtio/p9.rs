//! 9p device (virtio 1.2 section 5.13 names the device; its layout is that of Linux
//! `net/9p/trans_virtio.c`): requests go to the embedder as messages, any number at once,
//! and its responses to the buffers that came with each request.
//!
//! The device does not parse the messages. The embedder serves the files.

use super::mmio::Device;
use super::queue::{Chain, Queue, QueueFault};
use crate::channels::{Channels, P9_MESSAGE_BYTES};
use crate::devices::Env;
use crate::host::Host;

/// Mount tag: `mount -t 9p -o trans=virtio agent99 ...`.
pub(crate) const MOUNT_TAG: &str = "agent99";

const QUEUE_SIZE: u16 = 128;
const F_MOUNT_TAG: u64 = 1;
/// Size of a message header in bytes: size, type and tag.
const MIN_MESSAGE_BYTES: usize = 7;

/// The 9p channel.
#[derive(Debug)]
pub struct P9 {
    config: Vec<u8>,
    chain: Chain,
    /// Response buffers of unanswered requests, by head.
    in_flight: Vec<Option<Chain>>,
    /// Number of resets, so that late responses do not reach a new driver.
    generation: u16,
    /// Whether requests wait for room in the channel.
    held_back: bool,
}

impl P9 {
    /// Creates a channel without requests.
    pub fn new() -> Self {
        let mut config = (MOUNT_TAG.len() as u16).to_le_bytes().to_vec();
        config.extend_from_slice(MOUNT_TAG.as_bytes());
        Self {
            config,
            chain: Chain::default(),
            in_flight: vec![None; usize::from(QUEUE_SIZE)],
            generation: 0,
            held_back: false,
        }
    }

    /// Number of requests taken from the guest and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.iter().flatten().count()
    }

    /// Moves responses to the guest.
    fn answer<H: Host>(
        &mut self,
        queue: &mut Queue,
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        while let Some(message) = env.channels.p9.input.front() {
            let head = message.tag as u16;
            let fresh = (message.tag >> 16) as u16 == self.generation;
            let slot = self.in_flight.get_mut(usize::from(head)).filter(|_| fresh);
            if let Some(chain) = slot.and_then(Option::take) {
                let written = chain.write(env.ram, 0, message.bytes);
                queue.push(env.ram, head, written)?;
            }
            env.channels.p9.input.pop();
        }
        Ok(())
    }

    /// Takes requests while the channel has room.
    fn ask<H: Host>(&mut self, queue: &mut Queue, env: &mut Env<'_, H>) -> Result<(), QueueFault> {
        let was_held_back = std::mem::take(&mut self.held_back);
        for _ in 0..queue.available(env.ram)? {
            queue.pop(env.ram, &mut self.chain)?;
            let len = self.chain.readable_len();
            if !(MIN_MESSAGE_BYTES..=P9_MESSAGE_BYTES).contains(&len) {
                return Err(QueueFault::Protocol);
            }
            let head = self.chain.head;
            let slot = &mut self.in_flight[usize::from(head)];
            if slot.is_some() {
                return Err(QueueFault::Protocol);
            }
            let Some(room) = env.channels.p9.output.reserve(len) else {
                queue.unpop();
                self.held_back = true;
                // Requested once: an embedder that is not ready is left alone.
                if !was_held_back {
                    env.channels.request_early_exit();
                }
                return Ok(());
            };
            self.chain.read(env.ram, 0, room);
            let tag = u32::from(self.generation) << 16 | u32::from(head);
            env.channels.p9.output.commit(tag, len);
            env.channels.request_early_exit();
            *slot = Some(std::mem::take(&mut self.chain));
        }
        Ok(())
    }
}

impl Default for P9 {
    fn default() -> Self {
        Self::new()
    }
}

impl Device for P9 {
    const ID: u32 = 9;
    const QUEUE_SIZES: &'static [u16] = &[QUEUE_SIZE];

    fn features(&self) -> u64 {
        F_MOUNT_TAG
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn start(&mut self, _features: u64) {}

    fn reset(&mut self) {
        self.in_flight.fill(None);
        self.held_back = false;
        self.generation = self.generation.wrapping_add(1);
    }

    fn wants_service(&self, channels: &Channels) -> bool {
        self.held_back || !channels.p9.input.is_empty()
    }

    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let [queue] = queues else { return Ok(()) };
        if !queue.ready {
            return Ok(());
        }
        self.answer(queue, env)?;
        self.ask(queue, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Rig;

    fn request(rig: &Rig<P9>) -> Option<(u32, Vec<u8>)> {
        let message = rig.channels.p9.output.front()?;
        Some((message.tag, message.bytes.to_vec()))
    }

    #[test]
    fn tells_its_mount_tag() {
        let rig = Rig::new(P9::new(), F_MOUNT_TAG);
        assert_eq!(rig.device.read_config(0x100, 2), 7);
        assert_eq!(
            rig.device.read_config(0x102, 8),
            u64::from_le_bytes(*b"agent99\0")
        );
    }

    #[test]
    fn answers_find_their_requests_in_any_order() {
        let mut rig = Rig::new(P9::new(), F_MOUNT_TAG);
        let first = rig.add(0, &[b"request", b" one"], &[4, 100]);
        let second = rig.add(0, &[b"request two"], &[8]);
        rig.notify(0);
        assert!(rig.channels.take_early_exit());
        let (tag_one, bytes) = request(&rig).expect("asked");
        assert_eq!(bytes, b"request one");
        rig.channels.p9.output.pop();
        let (tag_two, bytes) = request(&rig).expect("asked");
        assert_eq!(bytes, b"request two");
        rig.channels.p9.output.pop();
        assert_eq!(rig.device.device.in_flight(), 2);
        assert_eq!(rig.used(0), None);

        assert!(
            rig.channels
                .p9
                .input
                .push(tag_two, b"answer that is too long")
        );
        assert!(rig.channels.p9.input.push(tag_one, b"answer one"));
        assert!(rig.channels.p9.input.push(tag_one, b"answered twice"));
        rig.poll();
        assert_eq!(rig.used(0), Some((second, b"answer t".to_vec())));
        assert_eq!(rig.used(0), Some((first, b"answer one".to_vec())));
        assert_eq!(rig.used(0), None);
        assert_eq!(rig.device.device.in_flight(), 0);
        assert!(rig.device.interrupt() && rig.device.live());
    }

    #[test]
    fn a_full_channel_holds_requests_back() {
        let mut rig = Rig::new(P9::new(), F_MOUNT_TAG);
        let big = vec![7; 30_000];
        let mut sent = 0;
        let mut seen = 0;
        while sent < 200 {
            while sent < 200 && rig.drivers[0].free() >= 2 {
                let number = [&big[..], &[sent]].concat();
                rig.add(0, &[&number], &[4]);
                sent += 1;
            }
            rig.notify(0);
            let (tag, bytes) = request(&rig).expect("something is there");
            assert_eq!(bytes.last(), Some(&seen), "in order, none lost");
            assert_eq!(bytes.len(), big.len() + 1);
            rig.channels.p9.output.pop();
            assert!(rig.channels.p9.input.push(tag, &[seen; 4]));
            rig.poll();
            assert_eq!(rig.used(0).map(|used| used.1), Some(vec![seen; 4]));
            seen += 1;
        }
        assert!(rig.device.live());
    }

    #[test]
    fn late_answers_do_not_reach_a_new_driver() {
        let mut rig = Rig::new(P9::new(), F_MOUNT_TAG);
        rig.add(0, &[b"request"], &[8]);
        rig.notify(0);
        let (old, _) = request(&rig).expect("asked");
        rig.channels.p9.output.pop();
        rig.start(F_MOUNT_TAG);
        rig.add(0, &[b"request"], &[8]);
        rig.notify(0);
        rig.channels.p9.input.push(old, b"late");
        rig.channels.p9.input.push(u32::MAX, b"never asked");
        rig.poll();
        assert_eq!(rig.used(0), None);
        assert!(rig.device.live());
    }

    #[test]
    fn messages_of_impossible_sizes_are_faults() {
        for len in [0, 6, P9_MESSAGE_BYTES + 1] {
            let mut rig = Rig::new(P9::new(), F_MOUNT_TAG);
            let head = rig.add(0, &[b"1234567"], &[8]);
            let at = rig.drivers[0].desc(head) + 8;
            rig.ram.write_u32(at, len as u32).expect("RAM");
            rig.notify(0);
            assert_eq!(rig.device.fault(), Some(QueueFault::Protocol));
            assert!(!rig.device.live());
        }
    }
}
