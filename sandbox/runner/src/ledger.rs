//! Credit ledger of one command, kept by the host: a guest that sends more than it was
//! granted, or takes more than it was sent, breaks the protocol. So a slow reader buffers a
//! bounded amount on the host, even with a hostile guest.

use super::error::{VmCode, VmError};
use a99_sandbox_protocol::{Stream, WINDOW_BYTES};

/// Credit left to each side.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Bytes of standard output and error that the guest may send.
    room: [u64; 2],
    /// Bytes of standard input that were sent and not returned as credit.
    input: u64,
    /// The guest reported the start.
    started: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            room: [WINDOW_BYTES.into(); 2],
            input: 0,
            started: false,
        }
    }
}

fn broken(what: &str) -> VmError {
    let text = format!("the guest's agent broke the protocol: {what}");
    VmError::new(VmCode::Protocol, text)
}

impl Ledger {
    fn room(&mut self, stream: Stream) -> &mut u64 {
        &mut self.room[usize::from(stream == Stream::Stderr)]
    }

    /// Grants the guest more bytes of a stream.
    pub(crate) fn grant(&mut self, stream: Stream, bytes: u32) {
        let room = self.room(stream);
        *room = room.saturating_add(bytes.into());
    }

    /// Charges bytes that the guest sent.
    pub(crate) fn receive(&mut self, stream: Stream, bytes: usize) -> Result<(), VmError> {
        let room = self.room(stream);
        let left = room.checked_sub(bytes as u64);
        *room = left.ok_or_else(|| broken("more output than it has credit for"))?;
        Ok(())
    }

    /// Charges bytes of standard input that the host sends.
    pub(crate) fn send(&mut self, bytes: usize) {
        self.input = self.input.saturating_add(bytes as u64);
    }

    /// Accounts for credit that the guest returned.
    pub(crate) fn returned(&mut self, bytes: u32) -> Result<(), VmError> {
        let left = self.input.checked_sub(bytes.into());
        self.input = left.ok_or_else(|| broken("more credit than it was sent"))?;
        Ok(())
    }

    /// Records that the guest reported the start.
    pub(crate) fn start(&mut self) -> Result<(), VmError> {
        if std::mem::replace(&mut self.started, true) {
            return Err(broken("a command that starts twice"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_output_beyond_the_credit_breaks_the_protocol() {
        let mut ledger = Ledger::default();
        ledger
            .receive(Stream::Stdout, WINDOW_BYTES as usize)
            .unwrap();
        let error = ledger.receive(Stream::Stdout, 1).unwrap_err();
        assert_eq!(error.code, VmCode::Protocol);
        // Each stream has separate credit, and a grant adds exactly its bytes.
        ledger.receive(Stream::Stderr, 1).unwrap();
        ledger.grant(Stream::Stdout, 10);
        ledger.receive(Stream::Stdout, 10).unwrap();
        assert!(ledger.receive(Stream::Stdout, 1).is_err());
    }

    #[test]
    fn s4_credit_for_input_is_no_more_than_was_sent() {
        let mut ledger = Ledger::default();
        assert!(ledger.returned(1).is_err());
        ledger.send(100);
        ledger.returned(60).unwrap();
        ledger.returned(40).unwrap();
        assert_eq!(ledger.returned(1).unwrap_err().code, VmCode::Protocol);
        ledger.start().unwrap();
        assert!(ledger.start().is_err());
    }
}
