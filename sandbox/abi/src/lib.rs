//! ABI between the emulator, which is a WebAssembly module, and its embedder, the
//! host: functions, channels, statuses, the report after a run, limits.
//!
//! Both sides are built from this: the emulator's exports and imports are declared
//! from the tables of [`functions`], the host links and calls them by the same.
//! Numbers are little-endian, as WebAssembly has them. An address and a length go
//! as one number ([`pair`]).

#![warn(unreachable_pub)]

pub mod functions;
mod report;
mod status;

pub use functions::{Export, Import, Signature, TYPES, Value};
pub use report::{Device, RunReport};
pub use status::{Answer, Status};

/// The channels by number; a set of them has bit `1 << number` for each.
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

/// Flags of a frame to the guest, in the tag of its message.
pub mod frame {
    /// The checksums are known to be right; the guest need not look.
    pub const CHECKSUMS_VALID: u32 = 1;
}

/// A disk, by the order of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Disk {
    /// The one that belongs to the image: read only, the same for all guests.
    Image = 0,
    /// The guest's own, if it has one.
    Own = 1,
}

impl Disk {
    /// The disk of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Image, Self::Own].get(number as usize).copied()
    }

    /// Whether it cannot be written.
    pub fn is_read_only(self) -> bool {
        self == Self::Image
    }

    /// What the guest knows it by, at most 20 bytes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Own => "disk",
        }
    }
}

/// Bytes for arguments that the emulator keeps ready: the longest command line of
/// Linux on RISC-V is 1024 bytes, and the head of a kernel `Image` 64.
pub const SCRATCH_BYTES: usize = 4096;

/// Largest 9p message in bytes: Linux offers at most 500 KiB over virtio
/// (`net/9p/trans_virtio.c`: 128 descriptors less three, of one page each).
pub const P9_MESSAGE_BYTES: usize = 512 << 10;

/// Most bytes of a module that the emulator asks the host to compile.
pub const MODULE_BYTES: usize = 256 << 10;

/// Integer registers of the hart, 64 bits each.
pub const REGISTERS: usize = 32;

/// Address and length in one: the address in the high half. Zero is "none".
pub const fn pair(address: u32, len: u32) -> u64 {
    (address as u64) << 32 | len as u64
}

/// Address and length of a [`pair`].
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
        for disk in [Disk::Image, Disk::Own] {
            assert_eq!(Disk::from_number(disk as u32), Some(disk));
            assert!(disk.name().len() <= 20);
        }
        assert_eq!(Disk::from_number(2), None);
        assert_eq!(unpair(pair(0xFFFF_FFFF, 7)), (0xFFFF_FFFF, 7));
    }
}
