//! Frozen sandboxes between processes: the daemon of a sandbox sends its state, and the
//! descriptors of the memory and disk that a copy shares, to another process of its user.

use super::client::Connection;
use super::name::Name;
use super::runtime_dir::RuntimeDir;
use super::wire::Request;
use crate::local::{ID, Refusal, invalid};
use a99_frame::{Envelope, encode};
use a99_sandbox::Frozen;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::json;
use std::io::{IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Bytes for the descriptors of one message: `cmsg_space!` needs a constant's literal.
const ANCILLARY_BYTES: usize = rustix::cmsg_space!(ScmRights(64));

/// The byte that carries the descriptors: a message without bytes carries none.
const CARRIER: [u8; 1] = [b'F'];

/// Sends a frozen sandbox as the answer to [`Request::Freeze`].
pub(super) fn send(
    mut stream: &UnixStream,
    frozen: &Frozen,
    ram: Option<u64>,
) -> std::io::Result<()> {
    let (description, files) = frozen.parts();
    let count = json!({ "descriptors": files.len(), "ram": ram });
    let frame = encode(Envelope::Answer(ID), Some(&count), &description).map_err(invalid)?;
    stream.write_all(&frame)?;
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let bytes = [IoSlice::new(&CARRIER)];
    sendmsg(stream, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the descriptors that follow the answer.
pub(super) fn receive(stream: &UnixStream) -> std::io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = [0];
    let mut bytes = [IoSliceMut::new(&mut carrier)];
    recvmsg(stream, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            files.extend(descriptors);
        }
    }
    Ok(files)
}

/// Freezes the sandbox of that name, which runs on.
///
/// # Errors
/// Those of [`Connection::frozen`].
pub(crate) fn frozen(dir: &RuntimeDir, name: &Name) -> Result<Frozen, Refusal> {
    Ok(Connection::open(dir, name, &Request::Freeze)?.frozen()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_sandbox::vm::MAX_DESCRIPTORS;

    #[test]
    fn descriptors_arrive_as_many_as_a_sandbox_can_have() {
        let (here, there) = UnixStream::pair().expect("sockets");
        let file = tempfile::tempfile().expect("a file");
        let files = vec![std::os::fd::AsFd::as_fd(&file); MAX_DESCRIPTORS];
        let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        let bytes = [IoSlice::new(&CARRIER)];
        sendmsg(&here, &bytes, &mut ancillary, SendFlags::empty()).expect("sent");
        assert_eq!(receive(&there).expect("received").len(), MAX_DESCRIPTORS);
        drop(here);
        assert!(receive(&there).expect("the end").is_empty());
    }
}
