//! Run report: the state that the host reads after each run.

use super::Channel;
use std::mem::offset_of;

/// The report that the emulator keeps for the host and renews with each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RunReport {
    /// Host monotonic time in nanoseconds to continue at, valid with
    /// [`Status::Wait`](super::Status::Wait); all ones if only input can wake the guest.
    pub until_ns: u64,
    /// Instructions retired since the machine was created.
    pub retired: u64,
    /// Channels with output, by [`Channel::bit`].
    pub output: u32,
    /// Channels whose input the guest has not taken yet, by [`Channel::bit`].
    pub input: u32,
    /// Unanswered file requests.
    pub requests: u32,
    /// 1 while a program in the guest has the agent port open.
    pub agent_open: u32,
    /// Devices whose driver violated the protocol and that stay dead until the guest resets
    /// them, by [`Device::bit`].
    pub broken: u32,
    /// Number of code entries that lead to AOT regions.
    pub aot_entries: u32,
}

impl RunReport {
    /// Size of a report in bytes.
    pub const BYTES: usize = size_of::<Self>();

    /// The report before the first run: only input can wake the guest.
    pub const NEW: Self = Self {
        until_ns: u64::MAX,
        retired: 0,
        output: 0,
        input: 0,
        requests: 0,
        agent_open: 0,
        broken: 0,
        aot_entries: 0,
    };

    /// Parses a report from linear memory.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Self {
            until_ns: long(offset_of!(Self, until_ns)),
            retired: long(offset_of!(Self, retired)),
            output: word(offset_of!(Self, output)),
            input: word(offset_of!(Self, input)),
            requests: word(offset_of!(Self, requests)),
            agent_open: word(offset_of!(Self, agent_open)),
            broken: word(offset_of!(Self, broken)),
            aot_entries: word(offset_of!(Self, aot_entries)),
        }
    }

    /// Whether a channel has output.
    pub fn has_output(&self, channel: Channel) -> bool {
        self.output & channel.bit() != 0
    }
}

/// The devices that a driver can break, numbered by their bit in [`RunReport::broken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Device {
    /// Console and agent port.
    Console = 0,
    /// Network interface.
    Net = 1,
    /// Mounts.
    P9 = 2,
    /// Randomness.
    Rng = 3,
    /// The image's disk.
    ImageDisk = 4,
    /// The guest's own disk.
    Disk = 5,
    /// Memory balloon.
    Balloon = 6,
    /// Layer 0.
    Layer0 = 7,
    /// Layer 1.
    Layer1 = 8,
    /// Layer 2.
    Layer2 = 9,
    /// Layer 3.
    Layer3 = 10,
    /// Layer 4.
    Layer4 = 11,
    /// Layer 5.
    Layer5 = 12,
    /// Layer 6.
    Layer6 = 13,
    /// Layer 7.
    Layer7 = 14,
    /// Where files in memory go when that is short.
    Swap = 15,
}

impl Device {
    /// All devices, by bit.
    pub const ALL: [Self; 16] = [
        Self::Console,
        Self::Net,
        Self::P9,
        Self::Rng,
        Self::ImageDisk,
        Self::Disk,
        Self::Balloon,
        Self::Layer0,
        Self::Layer1,
        Self::Layer2,
        Self::Layer3,
        Self::Layer4,
        Self::Layer5,
        Self::Layer6,
        Self::Layer7,
        Self::Swap,
    ];

    /// The device's bit in a set of devices.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The device's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Net => "network",
            Self::P9 => "mounts",
            Self::Rng => "randomness",
            Self::ImageDisk => "image's disk",
            Self::Disk => "disk",
            Self::Balloon => "balloon",
            Self::Layer0
            | Self::Layer1
            | Self::Layer2
            | Self::Layer3
            | Self::Layer4
            | Self::Layer5
            | Self::Layer6
            | Self::Layer7 => "layer",
            Self::Swap => "swap",
        }
    }

    /// Iterates over the devices of a set, skipping unknown bits.
    pub fn in_set(set: u32) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |device| set & device.bit() != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_lies_in_memory() {
        assert_eq!(RunReport::BYTES, 40);
        let mut bytes = [0; RunReport::BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = at as u8;
        }
        let report = RunReport::parse(&bytes);
        assert_eq!(report.until_ns, 0x0706_0504_0302_0100);
        assert_eq!(report.retired, 0x0F0E_0D0C_0B0A_0908);
        assert_eq!(report.output, 0x1312_1110);
        assert_eq!(report.aot_entries, 0x2726_2524);
        assert!(report.has_output(Channel::Console) == (report.output & 1 != 0));
    }

    #[test]
    fn devices_of_a_set_are_named() {
        for (bit, device) in Device::ALL.into_iter().enumerate() {
            assert_eq!(device.bit(), 1 << bit);
        }
        let set = Device::Net.bit() | Device::Balloon.bit() | 1 << 31;
        let names: Vec<&str> = Device::in_set(set).map(Device::name).collect();
        assert_eq!(names, ["network", "balloon"]);
    }
}
