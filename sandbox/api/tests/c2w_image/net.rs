//! The network interface: QEMU's frames over a socket, and a DHCP client
//! (RFC 2131) as the image's boot runs it.

use crate::wasi;

/// Default MAC address of the interface.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Transaction id of the DHCP exchange.
const XID: [u8; 4] = [0xc2, 0x3a, 0x5e, 0x01];

/// Maximum frame size of the buffers.
const MAX_FRAME: usize = 1514;

pub struct Net {
    listen: u32,
    connection: Option<u32>,
    pub mac: [u8; 6],
    /// Assigned address.
    pub lease: Option<[u8; 4]>,
    discovered: bool,
    /// Received frames of the tests' own type.
    pub received: Vec<Vec<u8>>,
}

/// An address of six numbers.
pub fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    bytes?.try_into().ok()
}

impl Net {
    pub fn new(listen: u32, mac: Option<[u8; 6]>) -> Self {
        Self {
            listen,
            connection: None,
            mac: mac.unwrap_or(MAC),
            lease: None,
            discovered: false,
            received: Vec::new(),
        }
    }

    /// Runs the network's part of a turn.
    pub fn turn(&mut self, delay: u64, accepts: bool) {
        let Some(fd) = self.connection else {
            if accepts {
                match wasi::accept(self.listen) {
                    Ok(fd) => self.connection = Some(fd),
                    Err(wasi::AGAIN) => {}
                    Err(errno) => fail("sock_accept", errno),
                }
            }
            return;
        };
        if !self.discovered {
            self.discovered = true;
            let discover = self.dhcp(1, None);
            self.send(&discover);
        }
        if wasi::poll(Some(fd), delay) {
            self.receive(fd);
        }
    }

    fn receive(&mut self, fd: u32) {
        let mut header = [0; 4];
        match wasi::receive(fd, &mut header) {
            Ok(4) => {}
            Ok(count) => fail("a length in pieces", count as u16),
            Err(wasi::AGAIN) => return,
            Err(errno) => fail("sock_recv", errno),
        }
        let len = u32::from_be_bytes(header) as usize;
        if len > MAX_FRAME {
            fail("a long frame", len as u16);
        }
        let mut frame = vec![0; len];
        let mut have = 0;
        while have < len {
            match wasi::receive(fd, &mut frame[have..]) {
                Ok(count) => have += count,
                Err(wasi::AGAIN) => {}
                Err(errno) => fail("sock_recv", errno),
            }
        }
        self.take(frame);
    }

    fn take(&mut self, frame: Vec<u8>) {
        if frame.len() < 14 {
            return;
        }
        match (&frame[12..14], self.reply(&frame)) {
            // Local experimental EtherType, used by our tests.
            ([0x88, 0xb5], _) => self.received.push(frame),
            (_, Some((2, address))) => {
                let request = self.dhcp(3, Some(address));
                self.send(&request);
            }
            (_, Some((5, address))) => self.lease = Some(address),
            _ => {}
        }
    }

    /// Type and address of a DHCP reply to us.
    fn reply(&self, frame: &[u8]) -> Option<(u8, [u8; 4])> {
        let udp = frame.get(34..)?;
        let bootp = udp.get(8..)?;
        let is_ours = frame[12..14] == [8, 0]
            && frame[23] == 17
            && udp[2..4] == [0, 68]
            && bootp.get(4..8)? == XID
            && bootp.get(28..34)? == self.mac;
        let mut options = bootp.get(240..)?;
        while let [code, len, rest @ ..] = options {
            if *code == 53 && is_ours {
                let address = bootp.get(16..20)?.try_into().ok()?;
                return Some((*rest.first()?, address));
            }
            options = rest.get(usize::from(*len)..)?;
        }
        None
    }

    /// A frame of the DHCP exchange.
    fn dhcp(&self, kind: u8, address: Option<[u8; 4]>) -> Vec<u8> {
        let mut bootp = vec![0; 236];
        bootp[..4].copy_from_slice(&[1, 1, 6, 0]);
        bootp[4..8].copy_from_slice(&XID);
        bootp[28..34].copy_from_slice(&self.mac);
        bootp.extend([99, 130, 83, 99, 53, 1, kind]);
        if let Some(address) = address {
            bootp.extend([50, 4]);
            bootp.extend(address);
        }
        bootp.push(255);
        let udp_len = 8 + bootp.len() as u16;
        let mut ip = vec![0x45, 0];
        ip.extend((20 + udp_len).to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]);
        let sum: u32 = ip
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        ip[10..12].copy_from_slice(&folded.to_be_bytes());
        let mut frame = vec![0xff; 6];
        frame.extend(self.mac);
        frame.extend([8, 0]);
        frame.extend(ip);
        frame.extend([0, 68, 0, 67]);
        frame.extend(udp_len.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(bootp);
        frame
    }

    /// Sends length and frame separately, as TinyEMU does.
    pub fn send(&mut self, frame: &[u8]) {
        let Some(fd) = self.connection else { return };
        for part in [&(frame.len() as u32).to_be_bytes()[..], frame] {
            match wasi::send(fd, part) {
                Ok(count) if count == part.len() => {}
                Ok(count) => fail("a short write", count as u16),
                Err(errno) => fail("sock_send", errno),
            }
        }
    }
}

/// Fails where an emulator would close the wrong file.
fn fail(what: &str, errno: u16) -> ! {
    eprintln!("{what}: {errno}");
    std::process::exit(98)
}
