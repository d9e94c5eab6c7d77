//! Device backends: the server of a guest's mounts, and the backend of its network
//! interface. The guest's thread calls both, so they must not block.

/// Answers the requests of a guest's mounts.
pub trait FileServer: Send {
    /// Appends the response to one 9P2000.L message to `reply`.
    fn answer(&mut self, request: &[u8], reply: &mut Vec<u8>);

    /// State that a saved guest needs to find its open files again.
    fn state(&self) -> serde_json::Value;
}

/// Backend of a guest's network interface.
pub trait NetBackend: Send {
    /// Accepts an Ethernet frame; `false` if the backend is full and will wake the guest's
    /// thread once it has room.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Returns the next frame for the guest, and whether its checksums are known to be
    /// valid.
    fn receive(&mut self) -> Option<(Vec<u8>, bool)>;
}

/// Backends of a guest; a device without a backend has no effect.
#[derive(Default)]
pub struct Backends {
    /// Server of the mounts.
    pub files: Option<Box<dyn FileServer>>,
    /// Backend of the network interface.
    pub net: Option<Box<dyn NetBackend>>,
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backends")
            .field("files", &self.files.is_some())
            .field("net", &self.net.is_some())
            .finish()
    }
}

/// Size of a 9p message header in bytes: size, type, tag.
const HEADER_BYTES: usize = 7;

/// `Rlerror` of 9P2000.L, and the Linux error number "no such device".
const RLERROR: u8 = 7;
const ENODEV: u32 = 19;

/// Fails a request of a guest that has no file server.
pub(super) fn no_files(request: &[u8], reply: &mut Vec<u8>) {
    let tag = request.get(5..HEADER_BYTES).unwrap_or(&[0xff, 0xff]);
    let len = (HEADER_BYTES + 4) as u32;
    reply.extend(len.to_le_bytes());
    reply.push(RLERROR);
    reply.extend(tag);
    reply.extend(ENODEV.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_every_message_is_an_error_with_its_tag() {
        let mut reply = Vec::new();
        no_files(&[19, 0, 0, 0, 100, 0xab, 0xcd, 1, 2], &mut reply);
        assert_eq!(reply, [11, 0, 0, 0, 7, 0xab, 0xcd, 19, 0, 0, 0]);
        reply.clear();
        no_files(&[1], &mut reply);
        assert_eq!(reply[..7], [11, 0, 0, 0, 7, 0xff, 0xff]);
    }
}
