//! Resume request: the settings of a guest at the start of its life.

use super::Limits;
use super::codec::{Reader, Writer};

/// The start of a guest's life, from an image or from a saved guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The time, in nanoseconds since 1970-01-01T00:00:00Z.
    pub wall_ns: u64,
    /// Random bytes from the host, mixed into the kernel's generator.
    pub entropy: Vec<u8>,
    /// The guest's name.
    pub hostname: Option<Vec<u8>>,
    /// Variables that every command and the session shell start with.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Limits of a command that has none of its own, and of the session.
    pub limits: Limits,
    /// The guest was saved while somebody used it: end what runs.
    pub interrupt: bool,
    /// Its network; none is set up without.
    pub network: Option<Network>,
    /// Its mounts, in the order in which they are made.
    pub mounts: Vec<Mount>,
    /// It has a disk of its own, which is empty.
    pub disk: bool,
}

/// A network as the guest sees it: one interface, IPv4 only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The guest's address.
    pub address: [u8; 4],
    /// Bits of the network's part of the address.
    pub prefix: u8,
    /// The router.
    pub gateway: [u8; 4],
    /// The name server.
    pub dns: [u8; 4],
    /// Largest packet in bytes.
    pub mtu: u32,
    /// Address of the interface; its own if absent.
    pub mac: Option<[u8; 6]>,
    /// Names that are known without a name server.
    pub hosts: Vec<([u8; 4], Vec<u8>)>,
}

/// How a mount may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// Nothing can be written.
    #[default]
    ReadOnly = 0,
    /// What is written goes to the host.
    ReadWrite = 1,
    /// What is written stays in the guest's memory.
    Overlay = 2,
}

impl Access {
    fn from_number(number: u8) -> Option<Self> {
        [Self::ReadOnly, Self::ReadWrite, Self::Overlay]
            .get(usize::from(number))
            .copied()
    }
}

/// A folder of the host in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its name in the root of the file server.
    pub entry: Vec<u8>,
    /// Where the guest sees it; an absolute path.
    pub path: Vec<u8>,
    /// How.
    pub access: Access,
}

impl Resume {
    pub(super) fn write(&self, w: &mut Writer<'_>) {
        w.u64(self.wall_ns);
        w.bytes(&self.entropy);
        w.option(self.hostname.as_ref(), |w, name| w.bytes(name));
        w.list(&self.env, |w, (name, value)| {
            w.bytes(name);
            w.bytes(value);
        });
        self.limits.write(w);
        w.u8(u8::from(self.interrupt));
        w.option(self.network.as_ref(), |w, network| network.write(w));
        w.list(&self.mounts, |w, mount| {
            w.bytes(&mount.entry);
            w.bytes(&mount.path);
            w.u8(mount.access as u8);
        });
        w.u8(u8::from(self.disk));
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            wall_ns: r.u64(),
            entropy: r.bytes(),
            hostname: r.option(Reader::bytes),
            env: r.list(|r| (r.bytes(), r.bytes())),
            limits: Limits::read(r),
            interrupt: r.flag(),
            network: r.option(Network::read),
            mounts: r.list(|r| Mount {
                entry: r.bytes(),
                path: r.bytes(),
                access: {
                    let number = r.u8();
                    r.check(Access::from_number(number))
                },
            }),
            disk: r.flag(),
        }
    }
}

impl Network {
    fn write(&self, w: &mut Writer<'_>) {
        w.rest(&self.address);
        w.u8(self.prefix);
        w.rest(&self.gateway);
        w.rest(&self.dns);
        w.u32(self.mtu);
        w.option(self.mac.as_ref(), |w, mac| w.rest(mac));
        w.list(&self.hosts, |w, (address, name)| {
            w.rest(address);
            w.bytes(name);
        });
    }

    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            address: r.array(),
            prefix: r.u8(),
            gateway: r.array(),
            dns: r.array(),
            mtu: r.u32(),
            mac: r.option(Reader::array),
            hosts: r.list(|r| (r.array(), r.bytes())),
        }
    }
}
