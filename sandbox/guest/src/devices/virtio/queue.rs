//! Split virtqueue, from the device's side (virtio 1.2 section 2.7), with indirect
//! descriptors and event indices.
//!
//! Packed virtqueues are not offered. The guest controls the queue's memory: each access is
//! checked, and each walk ends after a bounded number of steps.

use crate::ram::Ram;

/// Maximum descriptors of a chain. The largest of a Linux driver is 128 (`VIRTQUEUE_NUM` of
/// `net/9p/trans_virtio.c`); the specification allows the size of the queue, and none of
/// ours is larger.
pub(crate) const MAX_CHAIN: usize = 256;

const DESC_BYTES: u64 = 16;
const DESC_F_NEXT: u16 = 1;
const DESC_F_WRITE: u16 = 2;
const DESC_F_INDIRECT: u16 = 4;
/// Flag of the available ring: do not interrupt (section 2.7.6).
const AVAIL_F_NO_INTERRUPT: u16 = 1;

/// Violation of a queue's protocol by the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFault {
    /// A ring or an indirect table is not in RAM, or is misaligned.
    Ring,
    /// The index announces more buffers than the queue has room for.
    Index,
    /// A descriptor number is not below the size of its table.
    Descriptor,
    /// A chain is longer than [`MAX_CHAIN`], possibly a loop.
    TooLong,
    /// A buffer is not in RAM, or the buffers total 4 GiB or more.
    Buffer,
    /// A readable buffer follows a writable one.
    Order,
    /// An indirect table in an invalid place, or of an invalid size.
    Indirect,
    /// The contents of the buffers violate the device's protocol.
    Protocol,
}

/// A segment of guest memory, checked to be RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Guest physical address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
}

/// A descriptor chain: readable segments, then writable ones.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Number of the first descriptor, which identifies the chain.
    pub head: u16,
    /// Buffers to read, in order.
    pub readable: Vec<Segment>,
    /// Buffers to write, in order.
    pub writable: Vec<Segment>,
}

impl Chain {
    /// Total bytes to read.
    pub fn readable_len(&self) -> usize {
        total(&self.readable)
    }

    /// Total bytes that can be written.
    pub fn writable_len(&self) -> usize {
        total(&self.writable)
    }

    /// Copies the guest's bytes from offset `skip` on; returns the number of bytes copied
    /// to `buf`.
    pub fn read(&self, ram: &Ram, skip: usize, buf: &mut [u8]) -> usize {
        let mut done = 0;
        for (addr, len) in segments(&self.readable, skip, buf.len()) {
            let Some(from) = ram.slice(addr, len) else {
                break;
            };
            buf[done..done + len].copy_from_slice(from);
            done += len;
        }
        done
    }

    /// Copies `bytes` to the guest's buffers from offset `skip` on; returns the number of
    /// bytes that fit.
    pub fn write(&self, ram: &mut Ram, skip: usize, bytes: &[u8]) -> usize {
        let mut done = 0;
        for (addr, len) in segments(&self.writable, skip, bytes.len()) {
            let Some(to) = ram.slice_mut(addr, len) else {
                break;
            };
            to.copy_from_slice(&bytes[done..done + len]);
            done += len;
        }
        done
    }
}

/// Sum of lengths, which [`Queue::pop`] has checked to fit 32 bits.
fn total(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.len as usize).sum()
}

/// Parts of `segments` covered by the `len` bytes after the first `skip`.
fn segments(
    segments: &[Segment],
    mut skip: usize,
    mut len: usize,
) -> impl Iterator<Item = (u64, usize)> {
    segments.iter().filter_map(move |segment| {
        let size = segment.len as usize;
        let before = skip.min(size);
        skip -= before;
        let taken = (size - before).min(len);
        len -= taken;
        (taken > 0).then_some((segment.addr + before as u64, taken))
    })
}

/// A virtqueue.
#[derive(Debug)]
pub struct Queue {
    /// Maximum size that the device accepts.
    pub max_size: u16,
    /// Number of descriptors, a power of two.
    pub size: u16,
    /// Whether the driver has finished setting it up.
    pub ready: bool,
    /// Guest physical address of the descriptor table.
    pub desc: u64,
    /// Guest physical address of the available ring.
    pub driver: u64,
    /// Guest physical address of the used ring.
    pub device: u64,
    event_idx: bool,
    next_avail: u16,
    next_used: u16,
    /// `next_used` when the driver was last interrupted; `None` before.
    signalled: Option<u16>,
    /// Whether a chain was returned since then.
    news: bool,
}

impl Queue {
    /// Creates a queue that is not set up.
    pub fn new(max_size: u16) -> Self {
        Self {
            max_size,
            size: max_size,
            ready: false,
            desc: 0,
            driver: 0,
            device: 0,
            event_idx: false,
            next_avail: 0,
            next_used: 0,
            signalled: None,
            news: false,
        }
    }

    /// Starts the queue, after the driver has written size and addresses.
    ///
    /// # Errors
    /// If they violate section 2.7.
    pub fn start(&mut self, ram: &Ram, event_idx: bool) -> Result<(), QueueFault> {
        if !self.size.is_power_of_two() || self.size > self.max_size {
            return Err(QueueFault::Ring);
        }
        let size = u64::from(self.size);
        let areas = [
            (self.desc, DESC_BYTES, DESC_BYTES * size),
            (self.driver, 2, 6 + 2 * size),
            (self.device, 4, 6 + 8 * size),
        ];
        for (addr, alignment, len) in areas {
            if addr % alignment != 0 || ram.slice(addr, len as usize).is_none() {
                return Err(QueueFault::Ring);
            }
        }
        self.event_idx = event_idx;
        self.next_avail = 0;
        self.next_used = 0;
        self.signalled = None;
        self.news = false;
        self.ready = true;
        Ok(())
    }

    /// Number of chains to take. With event indices it also requests a notification about
    /// the next one.
    ///
    /// # Errors
    /// [`QueueFault::Index`] if there are more than the queue has room for.
    pub fn available(&self, ram: &mut Ram) -> Result<u16, QueueFault> {
        if !self.ready {
            return Ok(0);
        }
        let announced = ram.read_u16(self.driver + 2).ok_or(QueueFault::Ring)?;
        let waiting = announced.wrapping_sub(self.next_avail);
        if waiting > self.size {
            return Err(QueueFault::Index);
        }
        if self.event_idx {
            let avail_event = self.device + 4 + 8 * u64::from(self.size);
            ram.write_u16(avail_event, announced)
                .ok_or(QueueFault::Ring)?;
        }
        Ok(waiting)
    }

    /// Takes the next chain into `chain`. The caller has checked with [`Queue::available`]
    /// that there is one.
    ///
    /// # Errors
    /// If the chain violates section 2.7.5.
    pub fn pop(&mut self, ram: &Ram, chain: &mut Chain) -> Result<(), QueueFault> {
        let slot = u64::from(self.next_avail & (self.size - 1));
        let head = ram
            .read_u16(self.driver + 4 + 2 * slot)
            .ok_or(QueueFault::Ring)?;
        self.next_avail = self.next_avail.wrapping_add(1);
        chain.head = head;
        chain.readable.clear();
        chain.writable.clear();
        self.walk(ram, chain)
    }

    /// Returns the chain taken last to the front.
    pub fn unpop(&mut self) {
        self.next_avail = self.next_avail.wrapping_sub(1);
    }

    /// Collects the buffers of a chain, through at most one indirect table.
    fn walk(&self, ram: &Ram, chain: &mut Chain) -> Result<(), QueueFault> {
        let mut table = (self.desc, u32::from(self.size));
        let mut index = u32::from(chain.head);
        let mut indirect = false;
        let mut bytes = 0u64;
        let mut steps = 0;
        loop {
            if index >= table.1 {
                return Err(QueueFault::Descriptor);
            }
            let desc = Descriptor::read(ram, table.0 + u64::from(index) * DESC_BYTES)?;
            if desc.flags & DESC_F_INDIRECT != 0 {
                if indirect || desc.flags & DESC_F_NEXT != 0 {
                    return Err(QueueFault::Indirect);
                }
                table = (desc.addr, desc.indirect_entries(ram)?);
                indirect = true;
                index = 0;
                continue;
            }
            steps += 1;
            if steps > MAX_CHAIN {
                return Err(QueueFault::TooLong);
            }
            bytes += u64::from(desc.len);
            if bytes > u64::from(u32::MAX) {
                return Err(QueueFault::Buffer);
            }
            desc.collect(ram, chain)?;
            if desc.flags & DESC_F_NEXT == 0 {
                return Ok(());
            }
            index = u32::from(desc.next);
        }
    }

    /// Returns a chain, with `written` bytes at its writable start. Does nothing if the
    /// driver has stopped the queue meanwhile.
    ///
    /// # Errors
    /// [`QueueFault::Ring`] if the ring is not in RAM.
    pub fn push(&mut self, ram: &mut Ram, head: u16, written: usize) -> Result<(), QueueFault> {
        if !self.ready {
            return Ok(());
        }
        let slot = u64::from(self.next_used & (self.size - 1));
        let element = u64::from(head) | (written as u64) << 32;
        ram.write_u64(self.device + 4 + 8 * slot, element)
            .ok_or(QueueFault::Ring)?;
        self.next_used = self.next_used.wrapping_add(1);
        ram.write_u16(self.device + 2, self.next_used)
            .ok_or(QueueFault::Ring)?;
        self.news = true;
        Ok(())
    }

    /// Whether the driver wants an interrupt for chains returned since the last call
    /// (section 2.7.7).
    pub fn take_interrupt(&mut self, ram: &Ram) -> bool {
        if !std::mem::take(&mut self.news) {
            return false;
        }
        if !self.event_idx {
            let flags = ram.read_u16(self.driver).unwrap_or(0);
            return flags & AVAIL_F_NO_INTERRUPT == 0;
        }
        let old = self.signalled.replace(self.next_used);
        let used_event = ram.read_u16(self.driver + 4 + 2 * u64::from(self.size));
        let (Some(old), Some(event)) = (old, used_event) else {
            return true;
        };
        let passed = self.next_used.wrapping_sub(event).wrapping_sub(1);
        passed < self.next_used.wrapping_sub(old)
    }
}

/// A descriptor (section 2.7.5).
struct Descriptor {
    addr: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn read(ram: &Ram, at: u64) -> Result<Self, QueueFault> {
        let word = |offset| ram.read_u64(at + offset).ok_or(QueueFault::Ring);
        let (addr, rest) = (word(0)?, word(8)?);
        Ok(Self {
            addr,
            len: rest as u32,
            flags: (rest >> 32) as u16,
            next: (rest >> 48) as u16,
        })
    }

    /// Number of entries in this descriptor's indirect table, without those beyond the
    /// maximum length of a chain.
    fn indirect_entries(&self, ram: &Ram) -> Result<u32, QueueFault> {
        if self.len == 0 || u64::from(self.len) % DESC_BYTES != 0 {
            return Err(QueueFault::Indirect);
        }
        if ram.slice(self.addr, self.len as usize).is_none() {
            return Err(QueueFault::Ring);
        }
        Ok(self.len / DESC_BYTES as u32)
    }

    /// Adds the buffer to its chain.
    fn collect(&self, ram: &Ram, chain: &mut Chain) -> Result<(), QueueFault> {
        let writable = self.flags & DESC_F_WRITE != 0;
        if !writable && !chain.writable.is_empty() {
            return Err(QueueFault::Order);
        }
        if self.len == 0 {
            return Ok(());
        }
        if ram.slice(self.addr, self.len as usize).is_none() {
            return Err(QueueFault::Buffer);
        }
        let list = if writable {
            &mut chain.writable
        } else {
            &mut chain.readable
        };
        list.push(Segment {
            addr: self.addr,
            len: self.len,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Driver;
    use crate::ram::RAM_BASE;

    fn pop(queue: &mut Queue, ram: &Ram) -> Result<Chain, QueueFault> {
        let mut chain = Chain::default();
        queue.pop(ram, &mut chain).map(|()| chain)
    }

    #[test]
    fn a_chain_is_read_written_and_given_back() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 8);
        let mut queue = driver.queue(&ram, false);
        let head = driver.add(&mut ram, &[b"hello ", b"", b"world"], &[4, 0, 8]);
        assert_eq!(queue.available(&mut ram), Ok(1));
        let chain = pop(&mut queue, &ram).expect("fine");
        assert_eq!(
            (chain.head, chain.readable_len(), chain.writable_len()),
            (head, 11, 12)
        );
        let mut buf = [0; 32];
        assert_eq!(chain.read(&ram, 0, &mut buf), 11);
        assert_eq!(&buf[..11], b"hello world");
        assert_eq!(chain.read(&ram, 4, &mut buf[..5]), 5);
        assert_eq!(&buf[..5], b"o wor");
        assert_eq!(chain.write(&mut ram, 0, b"abcdef"), 6);
        assert_eq!(chain.write(&mut ram, 6, b"0123456789"), 6);
        queue.push(&mut ram, chain.head, 12).expect("fine");
        assert!(queue.take_interrupt(&ram));
        assert!(!queue.take_interrupt(&ram));
        assert_eq!(
            driver.used(&mut ram),
            Some((head, b"abcdef012345".to_vec()))
        );
        assert_eq!(driver.used(&mut ram), None);
    }

    #[test]
    fn rings_wrap_around() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 4);
        let mut queue = driver.queue(&ram, true);
        for round in 0..70_000u32 {
            let text = round.to_le_bytes();
            let head = driver.add(&mut ram, &[&text], &[4]);
            assert_eq!(queue.available(&mut ram), Ok(1));
            let chain = pop(&mut queue, &ram).expect("fine");
            let mut buf = [0; 4];
            chain.read(&ram, 0, &mut buf);
            chain.write(&mut ram, 0, &buf);
            queue.push(&mut ram, head, 4).expect("fine");
            assert_eq!(driver.used(&mut ram), Some((head, text.to_vec())));
        }
    }

    #[test]
    fn a_chain_put_back_comes_again() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 4);
        let mut queue = driver.queue(&ram, false);
        let first = driver.add(&mut ram, &[b"1"], &[]);
        let second = driver.add(&mut ram, &[b"2"], &[]);
        assert_eq!(pop(&mut queue, &ram).map(|c| c.head), Ok(first));
        queue.unpop();
        assert_eq!(queue.available(&mut ram), Ok(2));
        assert_eq!(pop(&mut queue, &ram).map(|c| c.head), Ok(first));
        assert_eq!(pop(&mut queue, &ram).map(|c| c.head), Ok(second));
    }

    #[test]
    fn indirect_tables_are_followed_once() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 4);
        let mut queue = driver.queue(&ram, false);
        let head = driver.add_indirect(&mut ram, &[b"in", b"direct"], &[3, 3]);
        let chain = pop(&mut queue, &ram).expect("fine");
        let mut buf = [0; 8];
        assert_eq!(chain.read(&ram, 0, &mut buf), 8);
        assert_eq!(&buf, b"indirect");
        assert_eq!((chain.head, chain.writable_len()), (head, 6));

        let table = driver.table_of(&ram, head);
        ram.write_u16(table + 12, DESC_F_INDIRECT).expect("RAM");
        queue.unpop();
        assert_eq!(pop(&mut queue, &ram).err(), Some(QueueFault::Indirect));
        for bad in [0, 8, 17] {
            ram.write_u32(driver.desc(head) + 8, bad).expect("RAM");
            queue.unpop();
            assert_eq!(pop(&mut queue, &ram).err(), Some(QueueFault::Indirect));
        }
        ram.write_u32(driver.desc(head) + 8, 0xffff_fff0)
            .expect("RAM");
        queue.unpop();
        assert_eq!(pop(&mut queue, &ram).err(), Some(QueueFault::Ring));
    }

    #[test]
    fn broken_chains_are_told_apart() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 4);
        let mut queue = driver.queue(&ram, false);
        let head = driver.add(&mut ram, &[b"a"], &[1]);
        let at = driver.desc(head);
        let mut check = |ram: &mut Ram, want| {
            assert_eq!(pop(&mut queue, ram).err(), Some(want));
            queue.unpop();
        };
        // The chain's second descriptor becomes readable after writable.
        ram.write_u16(at + 12, DESC_F_NEXT | DESC_F_WRITE)
            .expect("RAM");
        let next = ram.read_u16(at + 14).expect("RAM");
        ram.write_u16(driver.desc(next) + 12, 0).expect("RAM");
        check(&mut ram, QueueFault::Order);
        // It points to itself.
        ram.write_u16(at + 14, head).expect("RAM");
        check(&mut ram, QueueFault::TooLong);
        ram.write_u16(at + 14, 4).expect("RAM");
        check(&mut ram, QueueFault::Descriptor);
        for (addr, len) in [
            (0, 1),
            (RAM_BASE + (1 << 20), 1),
            (u64::MAX, 1),
            (RAM_BASE, u32::MAX),
        ] {
            ram.write_u64(at, addr).expect("RAM");
            ram.write_u32(at + 8, len).expect("RAM");
            check(&mut ram, QueueFault::Buffer);
        }
    }

    #[test]
    fn the_index_cannot_run_ahead() {
        let mut ram = Ram::new(1 << 20);
        let driver = Driver::new(&mut ram, RAM_BASE, 4);
        let queue = driver.queue(&ram, false);
        ram.write_u16(queue.driver + 2, 4).expect("RAM");
        assert_eq!(queue.available(&mut ram), Ok(4));
        ram.write_u16(queue.driver + 2, 5).expect("RAM");
        assert_eq!(queue.available(&mut ram), Err(QueueFault::Index));
    }

    #[test]
    fn bad_set_up_is_refused() {
        let ram = Ram::new(1 << 16);
        let start = |size, desc, driver, device| {
            let mut queue = Queue::new(8);
            (queue.size, queue.desc, queue.driver, queue.device) = (size, desc, driver, device);
            queue.start(&ram, false)
        };
        let base = RAM_BASE;
        assert_eq!(start(8, base, base + 256, base + 512), Ok(()));
        for (size, desc, driver, device) in [
            (0, base, base + 256, base + 512),
            (3, base, base + 256, base + 512),
            (16, base, base + 256, base + 512),
            (8, base + 8, base + 256, base + 512),
            (8, base, base + 257, base + 512),
            (8, base, base + 256, base + 514),
            (8, base, base + 256, base + 65536 - 8),
            (8, 0, base + 256, base + 512),
            (8, base, u64::MAX - 1, base + 512),
        ] {
            assert_eq!(start(size, desc, driver, device), Err(QueueFault::Ring));
        }
    }

    #[test]
    fn interrupts_come_when_asked_for() {
        let mut ram = Ram::new(1 << 20);
        let mut driver = Driver::new(&mut ram, RAM_BASE, 8);
        let mut queue = driver.queue(&ram, false);
        let serve = |queue: &mut Queue, driver: &mut Driver, ram: &mut Ram| {
            driver.add(ram, &[b"x"], &[]);
            let chain = pop(queue, ram).expect("fine");
            queue.push(ram, chain.head, 0).expect("fine");
            driver.used(ram).expect("given back");
        };
        ram.write_u16(queue.driver, AVAIL_F_NO_INTERRUPT)
            .expect("RAM");
        serve(&mut queue, &mut driver, &mut ram);
        assert!(!queue.take_interrupt(&ram));
        ram.write_u16(queue.driver, 0).expect("RAM");
        serve(&mut queue, &mut driver, &mut ram);
        assert!(queue.take_interrupt(&ram));

        // Event index: an interrupt when entry `used_event` is given back.
        let mut driver = Driver::new(&mut ram, RAM_BASE, 8);
        let mut queue = driver.queue(&ram, true);
        let used_event = queue.driver + 4 + 16;
        ram.write_u16(used_event, 2).expect("RAM");
        let mut signalled = Vec::new();
        for _ in 0..5 {
            serve(&mut queue, &mut driver, &mut ram);
            signalled.push(queue.take_interrupt(&ram));
        }
        // The first is always signalled: no earlier state is known.
        assert_eq!(signalled, [true, false, true, false, false]);
        let avail_event = queue.device + 4 + 64;
        queue.available(&mut ram).expect("fine");
        assert_eq!(ram.read_u16(avail_event), Some(5));
    }
}
