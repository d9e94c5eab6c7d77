//! The guest's last acknowledgement, kept for replay to smoltcp.
//!
//! A guest that is short of memory drops segments although it had promised room, and
//! announces a closed window. smoltcp then probes the window, and when it opens has no
//! timer for the lost segments: at the end of a transfer the connection stalls. Three
//! duplicates of an acknowledgement make it send the first missing segment (RFC 5681,
//! section 3.2), which also restarts its timer.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpEndpoint, IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

/// The guest's last acknowledgement.
#[derive(Copy, Clone, Debug)]
pub(super) struct Acknowledgement {
    /// Sequence number of the guest's next segment.
    sequence: TcpSeqNumber,
    number: TcpSeqNumber,
    /// Window as in the header, unscaled.
    window: u16,
}

impl Acknowledgement {
    /// Extracts a segment's acknowledgement. A SYN is skipped: its window has another
    /// scale.
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

    /// Whether the guest's window is open.
    pub(super) fn is_open(self) -> bool {
        self.window > 0
    }

    /// Packets that make smoltcp retransmit. The first has a changed window, since
    /// duplicates that it counted before would otherwise add up. If the window is closed,
    /// one packet makes it probe.
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
        // Both are ends of one socket, so of one family.
        let ip = IpRepr::new(guest.addr, peer.addr, IpProtocol::Tcp, tcp.buffer_len(), 64);
        let caps = ChecksumCapabilities::default();
        let mut bytes = vec![0; ip.buffer_len()];
        ip.emit(&mut bytes, &caps);
        let segment = &mut TcpPacket::new_unchecked(&mut bytes[ip.header_len()..]);
        tcp.emit(segment, &guest.addr, &peer.addr, &caps);
        bytes
    }
}
