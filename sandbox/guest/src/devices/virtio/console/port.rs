//! Port of the console: two queues, each moving bytes between the guest's buffers and a
//! ring.

use crate::channels::ByteRing;
use crate::devices::virtio::queue::{Chain, Queue, QueueFault};
use crate::ram::Ram;

/// A port of the console device.
#[derive(Debug, Default)]
pub(super) struct Port {
    /// Whether the guest has it open.
    pub guest_open: bool,
    chain: Chain,
    /// A chain that the ring had no room for, and how many of its bytes were moved.
    pending: Option<(Chain, usize)>,
}

impl Port {
    /// Whether output waits for room in the ring.
    pub(super) fn held_back(&self) -> bool {
        self.pending.is_some()
    }

    /// Moves bytes to the guest while it has buffers.
    pub(super) fn receive(
        &mut self,
        queue: &mut Queue,
        ram: &mut Ram,
        ring: &mut ByteRing,
    ) -> Result<(), QueueFault> {
        if !self.guest_open || ring.is_empty() {
            return Ok(());
        }
        for _ in 0..queue.available(ram)? {
            if ring.is_empty() {
                break;
            }
            queue.pop(ram, &mut self.chain)?;
            let mut written = 0;
            // A ring exposes its bytes in at most two runs.
            for _ in 0..2 {
                let count = self.chain.write(ram, written, ring.front());
                written += ring.consume(count);
            }
            queue.push(ram, self.chain.head, written)?;
        }
        Ok(())
    }

    /// Takes bytes while the ring has room; returns whether it took any.
    pub(super) fn send(
        &mut self,
        queue: &mut Queue,
        ram: &mut Ram,
        ring: &mut ByteRing,
    ) -> Result<bool, QueueFault> {
        let mut sent = false;
        if let Some((chain, skip)) = self.pending.take() {
            sent |= self.drain(chain, skip, queue, ram, ring)?;
        }
        for _ in 0..queue.available(ram)? {
            if self.held_back() {
                break;
            }
            let mut chain = std::mem::take(&mut self.chain);
            queue.pop(ram, &mut chain)?;
            sent |= self.drain(chain, 0, queue, ram, ring)?;
        }
        Ok(sent)
    }

    /// Moves a chain from byte `skip` on as far as it fits, and returns the chain once all
    /// is moved.
    fn drain(
        &mut self,
        chain: Chain,
        mut skip: usize,
        queue: &mut Queue,
        ram: &mut Ram,
        ring: &mut ByteRing,
    ) -> Result<bool, QueueFault> {
        let start = skip;
        let len = chain.readable_len();
        while skip < len {
            let count = chain.read(ram, skip, ring.space());
            if count == 0 {
                self.pending = Some((chain, skip));
                return Ok(skip > start);
            }
            skip += ring.commit(count);
        }
        queue.push(ram, chain.head, 0)?;
        self.chain = chain;
        Ok(len > start)
    }
}
