//! Classes of IP addresses, and ranges of them.
//!
//! The table follows the IANA registries of special-purpose addresses (RFC 6890): every
//! address that is not globally reachable unicast is special. Of overlapping rows the
//! narrowest counts, so that opening the link-local range does not open the metadata service
//! in it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A host of the Internet.
    Public,
    /// "This network" (RFC 791): Linux treats 0.0.0.0 as itself.
    Unspecified,
    /// The host itself.
    Loopback,
    /// Private use (RFC 1918), unique local addresses (RFC 4193).
    Private,
    /// Shared between a carrier and its customers (RFC 6598).
    SharedCarrier,
    /// The link (RFC 3927, RFC 4291).
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// Multicast groups (RFC 5771, RFC 4291).
    Multicast,
    /// All hosts of the link.
    Broadcast,
    /// Reserved, for documentation, for benchmarks, or obsolete.
    Reserved,
}

impl Class {
    /// The class in words, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Class::Public => "public",
            Class::Unspecified => "unspecified",
            Class::Loopback => "loopback",
            Class::Private => "private",
            Class::SharedCarrier => "carrier-shared",
            Class::LinkLocal => "link-local",
            Class::Metadata => "cloud metadata",
            Class::Multicast => "multicast",
            Class::Broadcast => "broadcast",
            Class::Reserved => "reserved",
        }
    }
}

/// A range of addresses in CIDR notation, or a single address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

impl Net {
    /// The range with the first `prefix` bits of `address`; `None` if the prefix is longer
    /// than the address or bits after it are set.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let width = width(address);
        (prefix <= width && high_bits(address, prefix) == bits(address))
            .then_some(Self { address, prefix })
    }

    /// The range of a single address.
    pub fn host(address: IpAddr) -> Self {
        Self {
            address,
            prefix: width(address),
        }
    }

    /// The first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Number of bits that its addresses share.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether it is a single address.
    pub fn is_host(self) -> bool {
        self.prefix == width(self.address)
    }

    /// Whether it contains `address`, of the same family.
    pub fn contains(self, address: IpAddr) -> bool {
        width(address) == width(self.address)
            && high_bits(address, self.prefix) == bits(self.address)
    }

    /// Whether it contains all of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.is_host()) {
            (IpAddr::V4(address), true) => write!(f, "{address}"),
            (IpAddr::V4(address), false) => write!(f, "{address}/{}", self.prefix),
            (IpAddr::V6(address), true) => write!(f, "[{address}]"),
            (IpAddr::V6(address), false) => write!(f, "[{address}/{}]", self.prefix),
        }
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address, left-aligned in 128 bits.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn high_bits(address: IpAddr, prefix: u8) -> u128 {
    match prefix {
        0 => 0,
        _ => bits(address) & (u128::MAX << (128 - u32::from(prefix.min(128)))),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, class: Class) -> (Net, Class) {
    let address = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    (Net { address, prefix }, class)
}

const fn v6(high: [u16; 3], last: u16, prefix: u8, class: Class) -> (Net, Class) {
    let [a, b, c] = high;
    let address = IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last));
    (Net { address, prefix }, class)
}

/// Special ranges; see the module.
const SPECIAL: &[(Net, Class)] = &[
    v4(0, 0, 0, 0, 8, Class::Unspecified),
    v4(10, 0, 0, 0, 8, Class::Private),
    v4(100, 64, 0, 0, 10, Class::SharedCarrier),
    // Alibaba Cloud's metadata service is in the carriers' range, Oracle's and Azure's
    // platform addresses in others.
    v4(100, 100, 100, 200, 32, Class::Metadata),
    v4(127, 0, 0, 0, 8, Class::Loopback),
    v4(168, 63, 129, 16, 32, Class::Metadata),
    v4(169, 254, 0, 0, 16, Class::LinkLocal),
    // Tencent's and Scaleway's metadata services, next to the usual address.
    v4(169, 254, 0, 23, 32, Class::Metadata),
    v4(169, 254, 42, 42, 32, Class::Metadata),
    v4(169, 254, 169, 254, 32, Class::Metadata),
    // Credentials of containers on Amazon ECS, and of pods on EKS.
    v4(169, 254, 170, 2, 32, Class::Metadata),
    v4(169, 254, 170, 23, 32, Class::Metadata),
    v4(172, 16, 0, 0, 12, Class::Private),
    v4(192, 0, 0, 0, 24, Class::Reserved),
    v4(192, 0, 0, 192, 32, Class::Metadata),
    v4(192, 0, 2, 0, 24, Class::Reserved),
    v4(192, 88, 99, 0, 24, Class::Reserved),
    v4(192, 168, 0, 0, 16, Class::Private),
    v4(198, 18, 0, 0, 15, Class::Reserved),
    v4(198, 51, 100, 0, 24, Class::Reserved),
    v4(203, 0, 113, 0, 24, Class::Reserved),
    v4(224, 0, 0, 0, 4, Class::Multicast),
    v4(240, 0, 0, 0, 4, Class::Reserved),
    v4(255, 255, 255, 255, 32, Class::Broadcast),
    v6([0, 0, 0], 0, 128, Class::Unspecified),
    v6([0, 0, 0], 1, 128, Class::Loopback),
    // Outside 2000::/3 no address is global unicast (RFC 4291).
    v6([0, 0, 0], 0, 3, Class::Reserved),
    v6([0x4000, 0, 0], 0, 2, Class::Reserved),
    v6([0x8000, 0, 0], 0, 1, Class::Reserved),
    v6([0x2001, 0, 0], 0, 23, Class::Reserved),
    v6([0x2001, 0xdb8, 0], 0, 32, Class::Reserved),
    v6([0x3fff, 0, 0], 0, 20, Class::Reserved),
    v6([0xfc00, 0, 0], 0, 7, Class::Private),
    v6([0xfd00, 0x42, 0], 0x42, 128, Class::Metadata),
    v6([0xfd00, 0xec2, 0], 0x23, 128, Class::Metadata),
    v6([0xfd00, 0xec2, 0], 0x254, 128, Class::Metadata),
    v6([0xfd20, 0xce, 0], 0x254, 128, Class::Metadata),
    v6([0xfe80, 0, 0], 0, 10, Class::LinkLocal),
    v6([0xfec0, 0, 0], 0, 10, Class::Private),
    v6([0xff00, 0, 0], 0, 8, Class::Multicast),
];

/// The IPv4 address that finally receives packets to `address`: IPv4-mapped and -compatible
/// addresses (RFC 4291), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), ISATAP (RFC 5214) and
/// Teredo's clients (RFC 4380).
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let at = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let [first, second, third, ..] = s;
    if s[..5] == [0; 5] && s[5] == 0xffff {
        return Some(at(s[6], s[7]));
    }
    // Except :: and ::1, which are addresses in their own right.
    if s[..6] == [0; 6] && address.to_bits() > 1 {
        return Some(at(s[6], s[7]));
    }
    match (first, second, third) {
        // SIIT's translated form ::ffff:0:a.b.c.d.
        (0, 0, 0) if s[3..6] == [0, 0xffff, 0] => Some(at(s[6], s[7])),
        (0x64, 0xff9b, 0) if s[3..6] == [0; 3] => Some(at(s[6], s[7])),
        // A network's own prefix may be shorter and place the address elsewhere; such a form
        // stays reserved.
        (0x64, 0xff9b, 1) if s[3..6] == [0; 3] => Some(at(s[6], s[7])),
        (0x2002, ..) => Some(at(s[1], s[2])),
        (0x2001, 0, _) => Some(at(!s[6], !s[7])),
        // An interface in any network may have such a number, so the embedded address must
        // not open a special network that contains the whole one.
        _ if matches!(s[4], 0 | 0x200) && s[5] == 0x5efe => {
            let inner = at(s[6], s[7]);
            let plain = narrowest(IpAddr::V6(address)).is_none();
            (plain || narrowest(IpAddr::V4(inner)).is_some()).then_some(inner)
        }
        _ => None,
    }
}

/// The address for rules and classes: the embedded IPv4 address, or the address itself.
pub(crate) fn effective(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => embedded_v4(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The narrowest special range around an address, ignoring embedded addresses.
fn narrowest(address: IpAddr) -> Option<(Net, Class)> {
    let around = SPECIAL.iter().filter(|(net, _)| net.contains(address));
    around.max_by_key(|(net, _)| net.prefix).copied()
}

/// The narrowest special range around the effective address.
pub(crate) fn special(address: IpAddr) -> Option<(Net, Class)> {
    narrowest(effective(address))
}

/// The class of an address.
pub fn classify(address: IpAddr) -> Class {
    special(address).map_or(Class::Public, |(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(text: &str) -> Class {
        classify(text.parse().expect("an address"))
    }

    #[test]
    fn the_table_is_of_ranges() {
        for &(net, class) in SPECIAL {
            assert_eq!(Net::new(net.address, net.prefix), Some(net), "{class:?}");
            assert_eq!(
                classify(net.address),
                special(net.address).expect("special").1
            );
        }
    }

    #[test]
    fn addresses_have_classes() {
        let table = [
            ("8.8.8.8", Class::Public),
            ("1.1.1.1", Class::Public),
            ("223.255.255.255", Class::Public),
            ("0.0.0.0", Class::Unspecified),
            ("0.1.2.3", Class::Unspecified),
            ("127.0.0.1", Class::Loopback),
            ("127.255.255.255", Class::Loopback),
            ("10.255.0.1", Class::Private),
            ("172.15.255.255", Class::Public),
            ("172.16.0.0", Class::Private),
            ("172.31.255.255", Class::Private),
            ("172.32.0.0", Class::Public),
            ("192.168.1.1", Class::Private),
            ("100.63.255.255", Class::Public),
            ("100.64.0.0", Class::SharedCarrier),
            ("100.127.255.255", Class::SharedCarrier),
            ("100.128.0.0", Class::Public),
            ("169.254.0.1", Class::LinkLocal),
            ("169.254.169.254", Class::Metadata),
            ("224.0.0.251", Class::Multicast),
            ("239.255.255.255", Class::Multicast),
            ("240.0.0.1", Class::Reserved),
            ("255.255.255.255", Class::Broadcast),
            ("::", Class::Unspecified),
            ("::1", Class::Loopback),
            ("2606:4700::1111", Class::Public),
            ("2001:db8::1", Class::Reserved),
            ("fc00::1", Class::Private),
            ("fdff::1", Class::Private),
            ("fd00:ec2::254", Class::Metadata),
            ("fe80::1", Class::LinkLocal),
            ("ff02::1", Class::Multicast),
            ("::ffff:127.0.0.1", Class::Loopback),
            ("::ffff:8.8.8.8", Class::Public),
            ("::127.0.0.1", Class::Loopback),
            ("64:ff9b::a9fe:a9fe", Class::Metadata),
            ("64:ff9b::808:808", Class::Public),
            ("64:ff9b:1::10.0.0.1", Class::Private),
            ("2002:7f00:1::", Class::Loopback),
            ("2002:808:808::1", Class::Public),
            ("2001:0:1::80ff:fffe", Class::Loopback),
            ("::ffff:0:10.0.0.1", Class::Private),
            ("fe80::5efe:7f00:1", Class::Loopback),
            ("fe80::5efe:808:808", Class::LinkLocal),
            ("fd00::200:5efe:808:808", Class::Private),
            ("2606:4700::5efe:808:808", Class::Public),
            ("2606:4700::5efe:10.0.0.1", Class::Private),
            // Local NAT64 by a prefix of 48 bits: the address is at the front.
            ("64:ff9b:1:a9fe:a9:fe00:808:808", Class::Reserved),
            ("64:ff9b:1::8.8.8.8", Class::Public),
            ("64:ff9b::ff9b:808:808", Class::Reserved),
            ("100::1", Class::Reserved),
            ("5f00::1", Class::Reserved),
            ("2001:2::1", Class::Reserved),
            ("fec0::1", Class::Private),
            ("192.0.0.192", Class::Metadata),
            ("168.63.129.16", Class::Metadata),
            ("100.100.100.200", Class::Metadata),
            ("169.254.170.23", Class::Metadata),
            ("fd20:ce::254", Class::Metadata),
            ("198.18.0.1", Class::Reserved),
            ("203.0.113.9", Class::Reserved),
        ];
        for (text, expected) in table {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_are_exact() {
        let address = "10.1.0.0".parse().expect("an address");
        assert_eq!(Net::new(address, 15), None);
        assert_eq!(Net::new(address, 33), None);
        let net = Net::new(address, 16).expect("a range");
        assert!(net.contains("10.1.255.255".parse().expect("an address")));
        assert!(!net.contains("10.2.0.0".parse().expect("an address")));
        assert!(!net.contains("::10.1.0.0".parse().expect("an address")));
        assert!(net.covers(Net::host(address)) && !Net::host(address).covers(net));
        let all = Net::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0).expect("everything");
        assert!(all.covers(net) && all.contains(address));
    }

    proptest! {
        /// Embedding an IPv4 address does not change its class.
        #[test]
        fn wrapping_changes_no_class(bits in any::<u32>(), low in any::<u16>()) {
            let inner = Ipv4Addr::from_bits(bits);
            let [a, b] = [(bits >> 16) as u16, bits as u16];
            let wrapped = [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, low, 0, 0, 0, low),
            ];
            for address in wrapped {
                prop_assert_eq!(embedded_v4(address), Some(inner));
                prop_assert_eq!(classify(address.into()), classify(inner.into()));
            }
        }

        #[test]
        fn a_range_holds_what_shares_its_bits(bits in any::<u32>(), other in any::<u32>(), prefix in 0u8..=32) {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            let address = IpAddr::V4(Ipv4Addr::from_bits(bits & mask));
            let net = Net::new(address, prefix).expect("a range");
            let inside = other & mask == bits & mask;
            prop_assert_eq!(net.contains(IpAddr::V4(Ipv4Addr::from_bits(other))), inside);
        }
    }
}
