//! Driver's side of a virtqueue, for tests: it allocates descriptors, adds buffers and
//! takes back used ones, as Linux does.

use super::mmio::{Device, F_EVENT_IDX, F_INDIRECT_DESC, F_VERSION_1, Mmio, status};
use super::queue::Queue;
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::MemoryHost;
use crate::ram::{RAM_BASE, Ram};

/// Size of a driver's RAM in bytes, buffers included.
const DRIVER_BYTES: u64 = 2 << 20;
/// Offset of the rings and buffers from a driver's base address.
const AVAIL: u64 = 0x4000;
const USED: u64 = 0x8000;
const BUFFERS: u64 = 0x1_0000;

/// A driver of one queue, with a separate range of RAM.
#[derive(Debug)]
pub(super) struct Driver {
    base: u64,
    size: u16,
    avail: u16,
    seen: u16,
    free: Vec<u16>,
    /// For each head: its descriptors, writable buffers, and indirect table.
    owned: Vec<Option<Owned>>,
    next_buffer: u64,
    buffer_bytes: u64,
}

#[derive(Clone, Debug)]
struct Owned {
    descriptors: Vec<u16>,
    writable: Vec<(u64, u32)>,
    table: u64,
}

impl Driver {
    /// Creates a driver that lays out its queue from `base` on (64 KiB) and its buffers
    /// after it, to the end of 2 MiB or of RAM.
    pub(super) fn new(ram: &mut Ram, base: u64, size: u16) -> Self {
        let area = ram
            .slice_mut(base, BUFFERS as usize)
            .expect("RAM for the driver");
        area.fill(0);
        let end = (base + DRIVER_BYTES).min(RAM_BASE + ram.size() as u64);
        Self {
            buffer_bytes: end - base - BUFFERS,
            base,
            size,
            avail: 0,
            seen: 0,
            free: (0..size).rev().collect(),
            owned: vec![None; usize::from(size)],
            next_buffer: 0,
        }
    }

    /// The addresses of descriptor table, available ring and used ring.
    pub(super) fn areas(&self) -> [u64; 3] {
        [self.base, self.base + AVAIL, self.base + USED]
    }

    /// A device's queue over the same memory.
    pub(super) fn queue(&self, ram: &Ram, event_idx: bool) -> Queue {
        let mut queue = Queue::new(self.size);
        [queue.desc, queue.driver, queue.device] = self.areas();
        queue.start(ram, event_idx).expect("a good set-up");
        queue
    }

    /// Address of a descriptor.
    pub(super) fn desc(&self, index: u16) -> u64 {
        self.base + 16 * u64::from(index)
    }

    /// Address of the indirect table of a chain.
    pub(super) fn table_of(&self, ram: &Ram, head: u16) -> u64 {
        ram.read_u64(self.desc(head)).expect("RAM")
    }

    /// Number of free descriptors.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    fn buffer(&mut self, len: usize) -> u64 {
        let len = len.next_multiple_of(8) as u64;
        if self.next_buffer + len > self.buffer_bytes {
            self.next_buffer = 0;
        }
        let at = self.base + BUFFERS + self.next_buffer;
        self.next_buffer += len;
        at
    }

    /// Allocates buffers for a chain: address, length, writable.
    fn buffers(&mut self, ram: &mut Ram, read: &[&[u8]], write: &[u32]) -> Vec<(u64, u32, bool)> {
        let mut buffers = Vec::new();
        for bytes in read {
            let at = self.buffer(bytes.len());
            ram.slice_mut(at, bytes.len())
                .expect("RAM")
                .copy_from_slice(bytes);
            buffers.push((at, bytes.len() as u32, false));
        }
        for &len in write {
            buffers.push((self.buffer(len as usize), len, true));
        }
        buffers
    }

    fn put(ram: &mut Ram, at: u64, (addr, len, writable): (u64, u32, bool), next: Option<u16>) {
        let flags = u16::from(next.is_some()) | u16::from(writable) << 1;
        ram.write_u64(at, addr).expect("RAM");
        ram.write_u32(at + 8, len).expect("RAM");
        ram.write_u16(at + 12, flags).expect("RAM");
        ram.write_u16(at + 14, next.unwrap_or(0)).expect("RAM");
    }

    fn publish(&mut self, ram: &mut Ram, head: u16) {
        let slot = u64::from(self.avail % self.size);
        ram.write_u16(self.base + AVAIL + 4 + 2 * slot, head)
            .expect("RAM");
        self.avail = self.avail.wrapping_add(1);
        ram.write_u16(self.base + AVAIL + 2, self.avail)
            .expect("RAM");
    }

    /// Adds a chain; returns its head.
    pub(super) fn add(&mut self, ram: &mut Ram, read: &[&[u8]], write: &[u32]) -> u16 {
        let buffers = self.buffers(ram, read, write);
        let descriptors: Vec<u16> = buffers
            .iter()
            .map(|_| self.free.pop().expect("free"))
            .collect();
        for (i, buffer) in buffers.iter().enumerate() {
            let next = descriptors.get(i + 1).copied();
            Self::put(ram, self.desc(descriptors[i]), *buffer, next);
        }
        self.own(descriptors, &buffers, 0, ram)
    }

    /// Adds a chain by an indirect table; returns its head.
    pub(super) fn add_indirect(&mut self, ram: &mut Ram, read: &[&[u8]], write: &[u32]) -> u16 {
        let buffers = self.buffers(ram, read, write);
        let table = self.buffer(16 * buffers.len()).next_multiple_of(16);
        for (i, buffer) in buffers.iter().enumerate() {
            let next = (i + 1 < buffers.len()).then_some(i as u16 + 1);
            Self::put(ram, table + 16 * i as u64, *buffer, next);
        }
        let head = self.free.pop().expect("free");
        let at = self.desc(head);
        Self::put(ram, at, (table, 16 * buffers.len() as u32, false), None);
        ram.write_u16(at + 12, 4).expect("RAM");
        self.own(vec![head], &buffers, table, ram)
    }

    fn own(
        &mut self,
        descriptors: Vec<u16>,
        buffers: &[(u64, u32, bool)],
        table: u64,
        ram: &mut Ram,
    ) -> u16 {
        let head = descriptors[0];
        let writable = buffers.iter().filter(|b| b.2).map(|b| (b.0, b.1)).collect();
        self.owned[usize::from(head)] = Some(Owned {
            descriptors,
            writable,
            table,
        });
        self.publish(ram, head);
        head
    }

    /// Takes the next chain that the device returned: its head and the bytes written.
    pub(super) fn used(&mut self, ram: &mut Ram) -> Option<(u16, Vec<u8>)> {
        let used = self.base + USED;
        if ram.read_u16(used + 2).expect("RAM") == self.seen {
            return None;
        }
        let slot = u64::from(self.seen % self.size);
        let head = ram.read_u32(used + 4 + 8 * slot).expect("RAM") as u16;
        let mut left = ram.read_u32(used + 8 + 8 * slot).expect("RAM") as usize;
        self.seen = self.seen.wrapping_add(1);
        let owned = self.owned[usize::from(head)]
            .take()
            .expect("given back once");
        assert!(owned.table == 0 || owned.descriptors.len() == 1);
        self.free.extend(owned.descriptors);
        let mut bytes = Vec::new();
        for (addr, len) in owned.writable {
            let len = left.min(len as usize);
            bytes.extend_from_slice(ram.slice(addr, len).expect("RAM"));
            left -= len;
        }
        assert_eq!(left, 0, "more is said to be written than fits");
        Some((head, bytes))
    }
}

/// A device with a driver for each queue, on a separate machine.
pub(super) struct Rig<D: Device> {
    pub device: Mmio<D>,
    pub drivers: Vec<Driver>,
    pub ram: Ram,
    pub channels: Channels,
    pub host: MemoryHost,
}

impl<D: Device> Rig<D> {
    /// Starts `device` with a driver that accepts `features`.
    pub(super) fn new(device: D, features: u64) -> Self {
        let mut rig = Self {
            device: Mmio::new(device),
            drivers: Vec::new(),
            ram: Ram::new(16 << 20),
            channels: Channels::new(),
            host: MemoryHost::new(1),
        };
        rig.start(features);
        rig
    }

    /// Resets the device and sets it up again (virtio 1.2 section 3.1.1).
    pub(super) fn start(&mut self, features: u64) {
        let features = features | F_VERSION_1 | F_EVENT_IDX | F_INDIRECT_DESC;
        for value in [0, status::ACKNOWLEDGE, status::ACKNOWLEDGE | status::DRIVER] {
            self.write(0x70, value);
        }
        for half in 0..2 {
            self.write(0x24, half);
            self.write(0x20, (features >> (32 * half)) as u32);
        }
        let agreed = status::ACKNOWLEDGE | status::DRIVER | status::FEATURES_OK;
        self.write(0x70, agreed);
        assert_eq!(self.device.read(0x70), agreed);
        self.drivers.clear();
        for number in 0..D::QUEUE_SIZES.len() as u32 {
            self.set_up_queue(number);
        }
        self.write(0x70, agreed | status::DRIVER_OK);
        assert!(self.device.live());
    }

    fn set_up_queue(&mut self, number: u32) {
        self.write(0x30, number);
        let size = self.device.read(0x34);
        let base = RAM_BASE + u64::from(number) * DRIVER_BYTES;
        let driver = Driver::new(&mut self.ram, base, size as u16);
        self.write(0x38, size);
        for (register, area) in [0x80, 0x90, 0xa0].into_iter().zip(driver.areas()) {
            self.write(register, area as u32);
            self.write(register + 4, (area >> 32) as u32);
        }
        self.write(0x44, 1);
        assert_eq!(self.device.read(0x44), 1);
        self.drivers.push(driver);
    }

    /// Writes a register.
    pub(super) fn write(&mut self, offset: u64, value: u32) {
        let mut env = Env {
            ram: &mut self.ram,
            channels: &mut self.channels,
            host: &mut self.host,
        };
        self.device.write(offset, value, &mut env);
    }

    /// Polls as the machine does between budgets.
    pub(super) fn poll(&mut self) {
        let mut env = Env {
            ram: &mut self.ram,
            channels: &mut self.channels,
            host: &mut self.host,
        };
        self.device.poll(&mut env);
    }

    /// Adds a chain to a queue; returns its head.
    pub(super) fn add(&mut self, queue: usize, read: &[&[u8]], write: &[u32]) -> u16 {
        self.drivers[queue].add(&mut self.ram, read, write)
    }

    /// Notifies the device about a queue.
    pub(super) fn notify(&mut self, queue: u32) {
        self.write(0x50, queue);
    }

    /// Takes the next chain that came back on a queue.
    pub(super) fn used(&mut self, queue: usize) -> Option<(u16, Vec<u8>)> {
        self.drivers[queue].used(&mut self.ram)
    }
}
