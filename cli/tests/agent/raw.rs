//! A client that speaks the local protocol by hand.

use crate::hosted::Hosted;
use a99_frame::{Envelope, Frame, Incoming, Step, encode};
use serde_json::Value as Json;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// The protocol's version.
pub const PROTOCOL: u32 = 4;

/// A connection to a host.
pub struct Raw(pub UnixStream);

impl Raw {
    pub fn to(host: &Hosted) -> Raw {
        Raw(UnixStream::connect(host.socket()).expect("a host"))
    }

    /// Sends a request.
    pub fn ask(&mut self, protocol: Option<u32>, method: &str, params: &Json, text: &str) {
        let envelope = Envelope::Request(3, method.to_owned(), protocol);
        let frame = encode(envelope, Some(params), text.as_bytes());
        self.write(&frame.expect("a frame"));
    }

    /// Writes bytes; the host may stop reading before all are written.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// The next frame.
    pub fn next(&mut self) -> Frame {
        let mut incoming = Incoming::default();
        loop {
            let count = self.0.read(incoming.room()).expect("bytes");
            match incoming.advance(count).expect("a frame") {
                Step::More => {}
                Step::Frame(frame) => return frame,
                Step::End => panic!("the host has gone"),
            }
        }
    }

    /// Notifications up to the answer, and the answer: its result, or code and text of its error.
    pub fn answer(&mut self) -> (Vec<Json>, Result<Json, (String, String)>) {
        let mut told = Vec::new();
        loop {
            let frame = self.next();
            match frame.envelope {
                Envelope::Notice(_) => told.push(frame.body.json().expect("JSON")),
                Envelope::Answer(_) => return (told, Ok(frame.body.json().expect("JSON"))),
                Envelope::Failed(_, error) => return (told, Err((error.code, error.message))),
                Envelope::Request(..) => panic!("{frame:?}"),
            }
        }
    }
}
