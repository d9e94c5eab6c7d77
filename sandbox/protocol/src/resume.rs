//! Resume request: the settings that a guest starts with.

use super::Limits;
use super::codec::{Reader, Writer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Settings of a guest that starts from an image or a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Wall-clock time in nanoseconds since 1970-01-01T00:00:00Z.
    pub wall_ns: u64,
    /// Random bytes from the host, mixed into the kernel's generator.
    pub entropy: Vec<u8>,
    /// Host name of the guest.
    pub hostname: Option<Vec<u8>>,
    /// Variables that every command and the session shell start with.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Limits of the session, and of commands without explicit limits.
    pub limits: Limits,
    /// The snapshot was taken while commands ran: end them.
    pub interrupt: bool,
    /// Network settings; `None` sets up no network.
    pub network: Option<Network>,
    /// Mounts, in the order in which they are made.
    pub mounts: Vec<Mount>,
    /// Whether the guest has its own disk, which is empty.
    pub disk: bool,
    /// Layers over the image's root, on the drives of the layers; the first wins.
    pub layers: u8,
    /// The layers replace the image's root: no file of it is seen but the agent's.
    pub replace_root: bool,
    /// Who the ordinary user is; absent, it is that of our image.
    pub identity: Option<Identity>,
    /// Memory that was added to the machine, from its first physical address to its end.
    pub memory: Option<(u64, u64)>,
    /// Keep all files in memory: there is no disk for more.
    pub swap_off: bool,
}

/// The ordinary user of a guest whose root is another image's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// User. The administrator's number gives the rights of [`User::Root`](super::User).
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// Working directory of commands that name none.
    pub folder: Vec<u8>,
}

/// Network of the guest, with one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The guest's address.
    pub address: [u8; 4],
    /// Prefix length of the network.
    pub prefix: u8,
    /// Address of the default gateway.
    pub gateway: [u8; 4],
    /// Address of the name server.
    pub dns: [u8; 4],
    /// Largest packet in bytes.
    pub mtu: u32,
    /// MAC address of the interface; unchanged if absent.
    pub mac: Option<[u8; 6]>,
    /// Entries of the hosts file.
    pub hosts: Vec<(IpAddr, Vec<u8>)>,
    /// IPv6 on the same interface; `None` sets up none.
    pub ipv6: Option<Ipv6>,
}

/// IPv6 settings of the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ipv6 {
    /// The guest's address.
    pub address: [u8; 16],
    /// Prefix length of the network.
    pub prefix: u8,
    /// Address of the default gateway.
    pub gateway: [u8; 16],
}

/// How a mount may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// Writes fail.
    #[default]
    ReadOnly = 0,
    /// Writes go to the host.
    ReadWrite = 1,
    /// Writes stay in the guest's memory.
    Overlay = 2,
}

impl Access {
    fn from_number(number: u8) -> Option<Self> {
        [Self::ReadOnly, Self::ReadWrite, Self::Overlay]
            .get(usize::from(number))
            .copied()
    }
}

/// A folder of the host, mounted in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Name in the root of the file server.
    pub entry: Vec<u8>,
    /// Absolute path in the guest.
    pub path: Vec<u8>,
    /// Access mode.
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
        w.u8(self.layers);
        w.u8(u8::from(self.replace_root));
        w.option(self.identity.as_ref(), |w, identity| {
            w.u32(identity.uid);
            w.u32(identity.gid);
            w.list(&identity.groups, |w, group| w.u32(*group));
            w.bytes(&identity.folder);
        });
        w.option(self.memory.as_ref(), |w, (start, end)| {
            w.u64(*start);
            w.u64(*end);
        });
        w.u8(u8::from(self.swap_off));
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
            layers: r.u8(),
            replace_root: r.flag(),
            identity: r.option(|r| Identity {
                uid: r.u32(),
                gid: r.u32(),
                groups: r.list(Reader::u32),
                folder: r.bytes(),
            }),
            memory: r.option(|r| (r.u64(), r.u64())),
            swap_off: r.flag(),
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
            match address {
                IpAddr::V4(address) => w.bytes(&address.octets()),
                IpAddr::V6(address) => w.bytes(&address.octets()),
            }
            w.bytes(name);
        });
        w.option(self.ipv6.as_ref(), |w, ipv6| {
            w.rest(&ipv6.address);
            w.u8(ipv6.prefix);
            w.rest(&ipv6.gateway);
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
            hosts: r.list(|r| (address(r), r.bytes())),
            ipv6: r.option(|r| Ipv6 {
                address: r.array(),
                prefix: r.u8(),
                gateway: r.array(),
            }),
        }
    }
}

/// Reads an address of either family.
fn address(r: &mut Reader<'_>) -> IpAddr {
    let bytes = r.bytes();
    let v4 = <[u8; 4]>::try_from(&bytes[..]).map(|bytes| Ipv4Addr::from(bytes).into());
    let v6 = <[u8; 16]>::try_from(&bytes[..]).map(|bytes| Ipv6Addr::from(bytes).into());
    let address = v4.or(v6).ok();
    r.check(address.map(|_| ()));
    address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}
