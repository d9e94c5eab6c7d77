//! Acknowledgement of the guest, kept to be given to smoltcp once more.
//!
//! A guest that is short of memory drops segments that it had promised room
//! for, and says so with a closed window. smoltcp then probes the window, and
//! when it opens has no timer for what was on its way: at the end of a transfer
//! nothing moves again. Three duplicates of an acknowledgement have it send the
//! first missing segment (RFC 5681, section 3.2), with which its timer runs
//! again.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpEndpoint, IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr,
    TcpSeqNumber,
};

/// What the guest said last.
#[derive(Copy, Clone, Debug)]
pub(super) struct Acknowledgement {
    /// Of the guest's next segment.
    sequence: TcpSeqNumber,
    number: TcpSeqNumber,
    /// As in the header.
    window: u16,
}

impl Acknowledgement {
    /// That of a segment; a SYN's window has another scale.
    pub(super) fn of(tcp: &TcpPacket<&[u8]>) -> Option<Self> {
        let counts = tcp.ack() && !tcp.syn() && !tcp.rst();
        counts.then(|| Self {
            sequence: tcp.seq_number() + tcp.segment_len(),
            number: tcp.ack_number(),
            window: tcp.window_len(),
        })
    }

    pub(super) fn number(self) -> TcpSeqNumber {
        self.number
    }

    /// Whether the guest takes bytes.
    pub(super) fn is_open(self) -> bool {
        self.window > 0
    }

    /// The packets that have smoltcp send again. A changed window first, since
    /// the duplicates that it has counted before would be too many. If the window
    /// is closed, one has it probe.
    pub(super) fn duplicates(self, guest: IpEndpoint, peer: IpEndpoint) -> Vec<Vec<u8>> {
        let open = self.window;
        let windows: &[u16] = match open {
            0 => &[0],
            _ => &[open ^ 1, open, open, open, open],
        };
        let packet = |window: &u16| self.packet(guest, peer, *window);
        windows.iter().map(packet).collect()
    }

    fn packet(self, guest: IpEndpoint, peer: IpEndpoint, window: u16) -> Vec<u8> {
        let (IpAddress::Ipv4(from), IpAddress::Ipv4(to)) = (guest.addr, peer.addr);
        let tcp = TcpRepr {
            src_port: guest.port,
            dst_port: peer.port,
            control: TcpControl::None,
            seq_number: self.sequence,
            ack_number: Some(self.number),
            window_len: window,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let ip = Ipv4Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let caps = ChecksumCapabilities::default();
        let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        ip.emit(&mut packet, &caps);
        let segment = &mut TcpPacket::new_unchecked(packet.payload_mut());
        tcp.emit(segment, &guest.addr, &peer.addr, &caps);
        bytes
    }
}
