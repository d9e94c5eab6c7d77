//! ABI between the emulator, a WebAssembly module, and its embedder, the host: functions,
//! channels, statuses, run reports and limits.
//!
//! Both sides build from this crate. The tables of [`functions`] declare the emulator's
//! exports and imports, and the host links and calls them by the same tables. Numbers are
//! little-endian, as in WebAssembly. An address and a length travel as one number
//! ([`pair`]).

#![warn(unreachable_pub)]

pub mod functions;
mod report;
mod status;

pub use functions::{Export, Import, Signature, TYPES, Value};
pub use report::{Device, RunReport};
pub use status::{Answer, Status};

/// A data channel. In a set of channels, each has the bit `1 << number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Channel {
    /// The console `hvc0`, a byte stream.
    Console = 0,
    /// The port `agent99.agent`, a byte stream.
    Agent = 1,
    /// Ethernet frames. The tag of a message is a set of [`frame`] flags.
    Net = 2,
    /// 9p messages. A response carries the tag of its request.
    P9 = 3,
}

impl Channel {
    /// All channels, by number.
    pub const ALL: [Self; 4] = [Self::Console, Self::Agent, Self::Net, Self::P9];

    /// Returns the channel with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The channel's bit in a set of channels.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Flags of a frame to the guest, carried in its message tag.
pub mod frame {
    /// The checksums are valid; the guest need not verify them.
    pub const CHECKSUMS_VALID: u32 = 1;
}

/// A disk, numbered in the order of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The image's disk: read-only and shared by all guests.
    Image,
    /// The guest's own disk, if it has one.
    Own,
    /// A layer of the root's files, below [`LAYERS`]: read-only and shared.
    Layer(u8),
    /// Where the guest's kernel puts files of its memory when that is short.
    Swap,
}

/// Maximum number of layers of a guest. Each has a drive, which is empty without one.
pub const LAYERS: u8 = 8;

/// Size of [`Disk::Swap`] in bytes. The guest's kernel has 3.2 MB of tables for it, which
/// cost the host no memory before they are used.
pub const SWAP_BYTES: u64 = 4 << 30;

/// Number of [`Disk::Swap`], after the layers.
const SWAP: u32 = 2 + LAYERS as u32;

impl Disk {
    /// Returns the disk with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Image),
            1 => Some(Self::Own),
            SWAP => Some(Self::Swap),
            _ => {
                let layer = u8::try_from(number - 2).ok()?;
                (layer < LAYERS).then_some(Self::Layer(layer))
            }
        }
    }

    /// The disk's number.
    pub const fn number(self) -> u32 {
        match self {
            Self::Image => 0,
            Self::Own => 1,
            Self::Layer(layer) => 2 + layer as u32,
            Self::Swap => SWAP,
        }
    }

    /// Whether the disk rejects writes.
    pub fn is_read_only(self) -> bool {
        !matches!(self, Self::Own | Self::Swap)
    }

    /// The disk's serial number in the guest, at most 20 bytes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Own => "disk",
            Self::Layer(_) => "layer",
            Self::Swap => "swap",
        }
    }
}

/// Guest physical address of the first byte of RAM.
pub const RAM_BASE: u64 = 0x8000_0000;

/// Size of the emulator's argument buffer in bytes: the longest command line of Linux on
/// RISC-V is 1024 bytes, and the head of a kernel `Image` 64.
pub const SCRATCH_BYTES: usize = 4096;

/// Maximum size of a 9p message in bytes: Linux offers at most 500 KiB over virtio
/// (`net/9p/trans_virtio.c`: 128 descriptors less three, of one page each).
pub const P9_MESSAGE_BYTES: usize = 512 << 10;

/// Maximum bytes of a translated function.
pub const FUNCTION_BYTES: usize = 256 << 10;

/// Size of a page of code in bytes.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of the next page that an instruction on this one may extend to.
pub const NEXT_BYTES: usize = 2;

/// Maximum hot entries of a request for a translation.
pub const MAX_ENTRIES: usize = 16;

/// Maximum requests for translations that wait for an answer.
pub const MAX_REQUESTS: usize = 64;

/// Number of 32-bit words of a context layout: the linear addresses that translated code
/// accesses, and the version of the translator (the last two words).
pub const LAYOUT_WORDS: usize = 18;

/// An entry of a translated function as one number.
pub mod entry {
    /// Packs the offset in the page and the node of the function.
    pub const fn pack(offset: u16, node: u8) -> u32 {
        offset as u32 | (node as u32) << 16
    }

    /// Unpacks offset and node.
    pub const fn unpack(entry: u32) -> (u16, u8) {
        (entry as u16, (entry >> 16) as u8)
    }
}

/// Number of integer registers of the hart, 64 bits each.
pub const REGISTERS: usize = 32;

/// Packs an address (high half) and a length into one number; zero means "none".
pub const fn pair(address: u32, len: u32) -> u64 {
    (address as u64) << 32 | len as u64
}

/// Unpacks the address and the length of a [`pair`].
pub const fn unpair(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (number, channel) in Channel::ALL.into_iter().enumerate() {
            assert_eq!(channel as usize, number);
            assert_eq!(Channel::from_number(number as u32), Some(channel));
        }
        assert_eq!(Channel::from_number(4), None);
        let layers = (0..LAYERS).map(Disk::Layer);
        let disks = [Disk::Image, Disk::Own].into_iter().chain(layers);
        let disks = disks.chain([Disk::Swap]);
        for (number, disk) in disks.enumerate() {
            assert_eq!(disk.number(), number as u32);
            assert_eq!(Disk::from_number(disk.number()), Some(disk));
            assert!(disk.name().len() <= 20);
        }
        for number in [SWAP + 1, 258, u32::MAX] {
            assert_eq!(Disk::from_number(number), None);
        }
        assert_eq!(unpair(pair(0xFFFF_FFFF, 7)), (0xFFFF_FFFF, 7));
    }
}
