//! Block device (virtio 1.2 section 5.2), backed by the embedder.
//!
//! Each request is answered before the driver's notification returns: the embedder copies
//! directly between its file and guest memory. A limit on the bytes moved at once keeps a
//! guest from blocking the embedder; the rest waits for the next run.

use super::mmio::Device;
use super::queue::{Chain, Queue, QueueFault, Segment};
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::{Disk, Host};

/// Size of a sector in bytes, the unit of all addresses (section 5.2.4).
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Size of a block in bytes: the driver's preferred I/O size.
const BLOCK_BYTES: u32 = 4096;

const QUEUE_SIZE: u16 = 128;
/// Maximum buffers of a request, beside its header and its status.
const MAX_SEGMENTS: u32 = QUEUE_SIZE as u32 - 2;
/// Maximum ranges of one discard or write-zeroes request.
const MAX_RANGES: u32 = 32;
/// Maximum sectors of such a range: 1 GiB.
const MAX_RANGE_SECTORS: u32 = 1 << 21;
/// Bytes moved before control returns to the embedder.
const MAX_BYTES_AT_ONCE: u64 = 4 << 20;

/// Features (section 5.2.3).
const F_SEG_MAX: u64 = 1 << 2;
const F_RO: u64 = 1 << 5;
const F_BLK_SIZE: u64 = 1 << 6;
const F_FLUSH: u64 = 1 << 9;
const F_DISCARD: u64 = 1 << 13;
const F_WRITE_ZEROES: u64 = 1 << 14;

/// Request types (section 5.2.6).
const T_IN: u32 = 0;
const T_OUT: u32 = 1;
const T_FLUSH: u32 = 4;
const T_GET_ID: u32 = 8;
const T_DISCARD: u32 = 11;
const T_WRITE_ZEROES: u32 = 13;

/// Request statuses.
const S_OK: u8 = 0;
const S_IOERR: u8 = 1;
const S_UNSUPP: u8 = 2;

/// Sizes in bytes of a request's header, its status, a range, and an identifier.
const HEADER_BYTES: usize = 16;
const STATUS_BYTES: usize = 1;
const RANGE_BYTES: usize = 16;
const ID_BYTES: usize = 20;

/// Size of the configuration in bytes.
const CONFIG_BYTES: usize = 60;

/// A block device.
#[derive(Debug)]
pub struct Blk {
    disk: Disk,
    sectors: u64,
    config: [u8; CONFIG_BYTES],
    chain: Chain,
    /// Whether requests wait until control has returned to the embedder.
    held_back: bool,
}

impl Blk {
    /// Creates a drive with a disk of `sectors` sectors; zero is an empty drive.
    pub fn new(disk: Disk, sectors: u64) -> Self {
        let mut config = [0; CONFIG_BYTES];
        let fields = [
            (12, MAX_SEGMENTS),
            (20, BLOCK_BYTES),
            (36, MAX_RANGE_SECTORS),
            (40, MAX_RANGES),
            (44, BLOCK_BYTES / SECTOR_BYTES as u32),
            (48, MAX_RANGE_SECTORS),
            (52, MAX_RANGES),
            // Write-zeroes may deallocate.
            (56, 1),
        ];
        for (at, value) in fields {
            config[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        let mut blk = Self {
            disk,
            sectors: 0,
            config,
            chain: Chain::default(),
            held_back: false,
        };
        blk.resize(sectors);
        blk
    }

    /// Changes the number of sectors. The driver must be notified
    /// ([`Mmio::tell_config`](super::mmio::Mmio::tell_config)).
    pub fn resize(&mut self, sectors: u64) {
        self.sectors = sectors;
        self.config[..8].copy_from_slice(&sectors.to_le_bytes());
    }

    /// Handles the request of the chain; returns the status, and the bytes written before
    /// it.
    fn answer<H: Host>(&self, env: &mut Env<'_, H>) -> (u8, usize) {
        let mut header = [0; HEADER_BYTES];
        self.chain.read(env.ram, 0, &mut header);
        let field = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or([0; 4]));
        let sector = u64::from(field(8)) | u64::from(field(12)) << 32;
        let room = self.chain.writable_len() - STATUS_BYTES;
        let writes = !self.disk.is_read_only();
        match field(0) {
            T_IN => match self.read(sector, room, env) {
                true => (S_OK, room),
                false => (S_IOERR, 0),
            },
            T_OUT if writes => (status(self.write(sector, env)), 0),
            T_FLUSH => (status(env.host.disk_flush(self.disk)), 0),
            T_GET_ID => {
                let mut id = [0; ID_BYTES];
                let name = self.disk.name().as_bytes();
                id[..name.len()].copy_from_slice(name);
                let len = room.min(ID_BYTES);
                (S_OK, self.chain.write(env.ram, 0, &id[..len]))
            }
            kind @ (T_DISCARD | T_WRITE_ZEROES) if writes => {
                (status(self.discard(kind == T_WRITE_ZEROES, env)), 0)
            }
            _ => (S_UNSUPP, 0),
        }
    }

    /// Disk offset of `len` bytes, if they are whole sectors within the disk.
    fn offset(&self, sector: u64, len: u64) -> Option<u64> {
        let end = sector.checked_add(len.div_ceil(SECTOR_BYTES))?;
        let fits = end <= self.sectors && len.is_multiple_of(SECTOR_BYTES);
        fits.then(|| sector.saturating_mul(SECTOR_BYTES))
    }

    fn read<H: Host>(&self, sector: u64, len: usize, env: &mut Env<'_, H>) -> bool {
        let Some(mut offset) = self.offset(sector, len as u64) else {
            return false;
        };
        let mut left = len;
        for Segment { addr, len } in &self.chain.writable {
            // The status comes last.
            let len = (*len as usize).min(left);
            let Some(to) = env.ram.slice_mut(*addr, len) else {
                return false;
            };
            if !env.host.disk_read(self.disk, offset, to) {
                return false;
            }
            offset += len as u64;
            left -= len;
        }
        true
    }

    fn write<H: Host>(&self, sector: u64, env: &mut Env<'_, H>) -> bool {
        let len = self.chain.readable_len() - HEADER_BYTES;
        let Some(mut offset) = self.offset(sector, len as u64) else {
            return false;
        };
        let mut skip = HEADER_BYTES;
        for Segment { addr, len } in &self.chain.readable {
            let before = skip.min(*len as usize);
            skip -= before;
            let len = *len as usize - before;
            let Some(from) = env.ram.slice(addr + before as u64, len) else {
                return false;
            };
            if !env.host.disk_write(self.disk, offset, from) {
                return false;
            }
            offset += len as u64;
        }
        true
    }

    /// Discards ranges, which must read as zeros afterwards if `zero` is set.
    fn discard<H: Host>(&self, zero: bool, env: &mut Env<'_, H>) -> bool {
        let len = self.chain.readable_len() - HEADER_BYTES;
        let count = len / RANGE_BYTES;
        if !len.is_multiple_of(RANGE_BYTES) || count > MAX_RANGES as usize {
            return false;
        }
        (0..count).all(|number| {
            let mut range = [0; RANGE_BYTES];
            let at = HEADER_BYTES + number * RANGE_BYTES;
            self.chain.read(env.ram, at, &mut range);
            let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, ..] = range;
            let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
            let sectors = u32::from_le_bytes([n0, n1, n2, n3]);
            let len = u64::from(sectors) * SECTOR_BYTES;
            let offset = self.offset(sector, len);
            let offset = offset.filter(|_| sectors <= MAX_RANGE_SECTORS);
            offset.is_some_and(|offset| env.host.disk_discard(self.disk, offset, len, zero))
        })
    }
}

fn status(done: bool) -> u8 {
    match done {
        true => S_OK,
        false => S_IOERR,
    }
}

impl Device for Blk {
    const ID: u32 = 2;
    const QUEUE_SIZES: &'static [u16] = &[QUEUE_SIZE];

    fn features(&self) -> u64 {
        let kind = match self.disk.is_read_only() {
            true => F_RO,
            false => F_FLUSH | F_DISCARD | F_WRITE_ZEROES,
        };
        F_SEG_MAX | F_BLK_SIZE | kind
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn start(&mut self, _features: u64) {}

    fn reset(&mut self) {
        self.held_back = false;
    }

    fn wants_service(&self, _channels: &Channels) -> bool {
        self.held_back
    }

    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let [queue] = queues else { return Ok(()) };
        self.held_back = false;
        let mut moved = 0;
        for _ in 0..queue.available(env.ram)? {
            if moved >= MAX_BYTES_AT_ONCE {
                self.held_back = true;
                env.channels.request_early_exit();
                break;
            }
            let mut chain = std::mem::take(&mut self.chain);
            let popped = queue.pop(env.ram, &mut chain);
            self.chain = chain;
            popped?;
            let (read, room) = (self.chain.readable_len(), self.chain.writable_len());
            if read < HEADER_BYTES || room < STATUS_BYTES {
                return Err(QueueFault::Protocol);
            }
            moved += (read + room) as u64;
            let (status, written) = self.answer(env);
            self.chain.write(env.ram, room - STATUS_BYTES, &[status]);
            // The status is the last byte written (section 5.2.6.2).
            let written = match written {
                0 => STATUS_BYTES,
                written => written + STATUS_BYTES,
            };
            queue.push(env.ram, self.chain.head, written)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Rig;

    const SECTOR: usize = SECTOR_BYTES as usize;

    fn rig(disk: Disk, sectors: u64) -> Rig<Blk> {
        let blk = Blk::new(disk, sectors);
        let features = blk.features();
        let mut rig = Rig::new(blk, features);
        rig.host.disk = vec![0; sectors as usize * SECTOR];
        rig
    }

    fn header(kind: u32, sector: u64) -> Vec<u8> {
        let mut header = kind.to_le_bytes().to_vec();
        header.extend([0; 4]);
        header.extend(sector.to_le_bytes());
        header
    }

    /// Sends a request; returns the bytes before the status, and the status.
    fn ask(rig: &mut Rig<Blk>, read: &[&[u8]], write: &[u32]) -> (Vec<u8>, u8) {
        let write: Vec<u32> = write.iter().copied().chain([1]).collect();
        rig.add(0, read, &write);
        rig.notify(0);
        let (_, mut bytes) = rig.used(0).expect("answered");
        let status = bytes.pop().expect("a status");
        (bytes, status)
    }

    #[test]
    fn sectors_are_kept() {
        let mut rig = rig(Disk::Own, 16);
        let one = [1; SECTOR];
        let two = [2; SECTOR];
        assert_eq!(ask(&mut rig, &[&header(T_OUT, 3), &one, &two], &[]).1, S_OK);
        let (bytes, status) = ask(&mut rig, &[&header(T_IN, 2)], &[512, 1024]);
        assert_eq!(status, S_OK);
        assert_eq!(bytes, [[0; SECTOR], one, two].concat());
        assert_eq!(ask(&mut rig, &[&header(T_FLUSH, 0)], &[]).1, S_OK);
        let (id, status) = ask(&mut rig, &[&header(T_GET_ID, 0)], &[20]);
        assert_eq!((&id[..5], status), (&b"disk\0"[..], S_OK));
    }

    #[test]
    fn what_is_not_on_the_disk_is_an_error() {
        let mut rig = rig(Disk::Own, 16);
        let data = [1; SECTOR];
        for sector in [16, 17, u64::MAX, u64::MAX / SECTOR_BYTES] {
            let status = ask(&mut rig, &[&header(T_OUT, sector), &data], &[]).1;
            assert_eq!(status, S_IOERR, "{sector}");
        }
        let (_, status) = ask(&mut rig, &[&header(T_OUT, 15), &data, &data], &[]);
        assert_eq!(status, S_IOERR);
        let (_, status) = ask(&mut rig, &[&header(T_OUT, 1), &data[..100]], &[]);
        assert_eq!(status, S_IOERR, "no whole sector");
        assert_eq!(rig.host.disk, vec![0; 16 * SECTOR]);
        let (_, status) = ask(&mut rig, &[&header(77, 0)], &[]);
        assert_eq!(status, S_UNSUPP);
    }

    #[test]
    fn a_read_only_disk_is_not_written() {
        let mut rig = rig(Disk::Image, 16);
        let data = [1; SECTOR];
        let (_, status) = ask(&mut rig, &[&header(T_OUT, 0), &data], &[]);
        assert_eq!(status, S_UNSUPP);
        let range = [0; RANGE_BYTES];
        let (_, status) = ask(&mut rig, &[&header(T_WRITE_ZEROES, 0), &range], &[]);
        assert_eq!(status, S_UNSUPP);
        assert_eq!(ask(&mut rig, &[&header(T_IN, 0)], &[512]).1, S_OK);
    }

    #[test]
    fn ranges_are_zeroed() {
        let mut rig = rig(Disk::Own, 16);
        rig.host.disk.fill(9);
        let range = |sector: u64, sectors: u32| {
            let mut range = sector.to_le_bytes().to_vec();
            range.extend(sectors.to_le_bytes());
            range.extend([0; 4]);
            range
        };
        let ranges = [range(0, 2), range(15, 1)].concat();
        let (_, status) = ask(&mut rig, &[&header(T_WRITE_ZEROES, 0), &ranges], &[]);
        assert_eq!(status, S_OK);
        let zero = |sector: usize| rig.host.disk[sector * SECTOR..][..SECTOR] == [0; SECTOR];
        let zeros: Vec<usize> = (0..16).filter(|sector| zero(*sector)).collect();
        assert_eq!(zeros, [0, 1, 15]);
        for bad in [range(16, 1), range(0, 17), range(u64::MAX, 1)] {
            let (_, status) = ask(&mut rig, &[&header(T_DISCARD, 0), &bad], &[]);
            assert_eq!(status, S_IOERR);
        }
        let (_, status) = ask(&mut rig, &[&header(T_DISCARD, 0), &ranges[..20]], &[]);
        assert_eq!(status, S_IOERR);
    }

    #[test]
    fn the_embedder_has_its_turn_between_large_requests() {
        let mut rig = rig(Disk::Own, 16 << 11);
        for _ in 0..6 {
            rig.add(0, &[&header(T_IN, 0)], &[1 << 20, 1]);
        }
        rig.notify(0);
        let answered = |rig: &mut Rig<Blk>| std::iter::from_fn(|| rig.used(0)).count();
        assert_eq!(answered(&mut rig), 4);
        assert!(rig.channels.take_early_exit());
        rig.poll();
        assert_eq!(answered(&mut rig), 2);
        assert!(!rig.channels.take_early_exit());
    }

    #[test]
    fn requests_without_header_or_status_are_faults() {
        for (read, write) in [
            (&header(T_IN, 0)[..15], &[512][..]),
            (&header(T_IN, 0), &[]),
        ] {
            let mut rig = rig(Disk::Own, 16);
            rig.add(0, &[read], write);
            rig.notify(0);
            assert_eq!(rig.device.fault(), Some(QueueFault::Protocol));
        }
    }

    #[test]
    fn a_disk_that_comes_later_is_told() {
        let mut rig = rig(Disk::Own, 0);
        assert_eq!(ask(&mut rig, &[&header(T_IN, 1)], &[]).1, S_IOERR);
        let generation = rig.device.read(0x0fc);
        rig.device.device.resize(8);
        rig.device.tell_config();
        assert_ne!(rig.device.read(0x0fc), generation);
        assert_eq!(rig.device.read(0x060) & 2, 2);
        assert_eq!(rig.device.read_config(0x100, 8), 8);
    }
}
