//! Meter of the server's messages. The client streams rows, but buffers or skips all other
//! messages: a hostile server could use those to exhaust its memory or keep it busy.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::io;

/// Bytes of messages before the server is ready, and of parameters and notices between two
/// ready states.
const MAX_UNASKED: usize = 1 << 20;

/// Bytes of a row, above every stored value.
const MAX_ROW: usize = 256 << 20;

/// Bytes of any other message.
const MAX_MESSAGE: usize = 1 << 20;

/// Bytes of a parameter with its name.
const MAX_PARAMETER: usize = 64 << 10;

/// Distinct parameters of a server; PostgreSQL has about fifteen.
const MAX_PARAMETERS: usize = 256;

/// Bytes before a message's body: its tag and its length.
const HEADER: usize = 5;

const READY: u8 = b'Z';
const ROW: u8 = b'D';
const PARAMETER: u8 = b'S';
const NOTICE: u8 = b'N';
const NOTIFICATION: u8 = b'A';

/// Tracks the messages of a connection.
#[derive(Default)]
pub(crate) struct Meter {
    header: [u8; HEADER],
    /// Bytes of the header received so far.
    taken: usize,
    /// Bytes of the body still to come.
    left: usize,
    /// True once the server was ready.
    is_up: bool,
    unasked: usize,
    /// Hashes of parameter names.
    parameters: HashSet<u64>,
    /// Hasher while a parameter's name arrives.
    name: Option<DefaultHasher>,
}

impl Meter {
    /// Accounts for received bytes.
    ///
    /// # Errors
    /// A message or its total exceeds a limit.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.taken < HEADER {
                let n = bytes.len().min(HEADER - self.taken);
                self.header[self.taken..self.taken + n].copy_from_slice(&bytes[..n]);
                self.taken += n;
                bytes = &bytes[n..];
                if self.taken == HEADER {
                    self.begin()?;
                }
            } else {
                let (body, rest) = bytes.split_at(bytes.len().min(self.left));
                self.name_of(body)?;
                self.left -= body.len();
                bytes = rest;
            }
            if self.taken == HEADER && self.left == 0 {
                self.end();
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let [tag, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        let Some(left) = length.checked_sub(size_of::<u32>()) else {
            return Err(refused(
                "a message that is shorter than its length".to_owned(),
            ));
        };
        self.left = left;
        let most = match tag {
            ROW => MAX_ROW,
            PARAMETER => MAX_PARAMETER,
            _ => MAX_MESSAGE,
        };
        if length > most {
            return Err(refused(format!(
                "a message of {length} bytes, of at most {most}"
            )));
        }
        let is_unasked = matches!(tag, PARAMETER | NOTICE | NOTIFICATION);
        if is_unasked || !self.is_up {
            self.unasked = self.unasked.saturating_add(length);
            if self.unasked > MAX_UNASKED {
                return Err(refused(format!(
                    "more than {MAX_UNASKED} bytes of parameters and notices that answer nothing"
                )));
            }
        }
        self.name = (tag == PARAMETER).then(DefaultHasher::new);
        Ok(())
    }

    /// Counts distinct parameter names, because a client keeps them.
    fn name_of(&mut self, body: &[u8]) -> io::Result<()> {
        let Some(name) = &mut self.name else {
            return Ok(());
        };
        let end = body.iter().position(|byte| *byte == 0);
        name.write(&body[..end.unwrap_or(body.len())]);
        if end.is_none() {
            return Ok(());
        }
        self.parameters.insert(name.finish());
        self.name = None;
        match self.parameters.len() > MAX_PARAMETERS {
            true => Err(refused(format!("more than {MAX_PARAMETERS} parameters"))),
            false => Ok(()),
        }
    }

    fn end(&mut self) {
        self.taken = 0;
        if self.header[0] == READY {
            self.is_up = true;
            self.unasked = 0;
        }
    }
}

fn refused(what: String) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the server sent {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("a length");
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    fn header(tag: u8, length: u32) -> Vec<u8> {
        [&[tag][..], &length.to_be_bytes()].concat()
    }

    fn parameter(n: usize) -> Vec<u8> {
        message(PARAMETER, format!("name{n}\0value\0").as_bytes())
    }

    #[test]
    fn what_a_server_sends_passes_in_pieces_of_any_size() {
        let mut sent = message(b'R', &[0; 4]);
        sent.extend((0..20).flat_map(parameter));
        sent.extend(message(READY, b"I"));
        for _ in 0..100 {
            // Repeated parameters, notices and long rows are allowed.
            sent.extend((0..20).flat_map(parameter));
            sent.extend(message(NOTICE, &[1; 9_000]));
            sent.extend(message(ROW, &[2; 20_000]));
            sent.extend(message(READY, b"I"));
        }
        for size in [1, 3, 4_096, sent.len()] {
            let mut meter = Meter::default();
            for piece in sent.chunks(size) {
                meter.take(piece).expect("usual");
            }
            assert_eq!((meter.taken, meter.parameters.len()), (0, 20));
        }
    }

    #[test]
    fn d13_what_no_server_has_reason_to_send_is_refused() {
        let ready = message(READY, b"I");
        let endless: Vec<(&str, Vec<u8>)> = vec![
            ("256 parameters", (0..300).flat_map(parameter).collect()),
            ("answer nothing", message(NOTICE, &[1; 60_000]).repeat(20)),
            ("answer nothing", message(NOTIFICATION, b"").repeat(300_000)),
            ("answer nothing", parameter(1).repeat(100_000)),
            ("of at most", header(PARAMETER, 1 << 17)),
            ("of at most", header(b'E', 1 << 30)),
            ("of at most", header(b'T', 1 << 24)),
            ("of at most", header(ROW, u32::MAX)),
            ("shorter", header(ROW, 3)),
        ];
        for (told, bytes) in endless {
            for before in [&ready[..], &[]] {
                let mut meter = Meter::default();
                meter.take(before).expect("usual");
                let error = meter.take(&bytes).expect_err(told).to_string();
                let is_told = error.contains(told) || before.is_empty();
                assert!(is_told && error.starts_with("the server sent"), "{error}");
            }
        }
        // Every message counts before the server is ready.
        let mut meter = Meter::default();
        let error = meter.take(&message(b'R', &[0; 1_000]).repeat(2_000));
        assert!(error.is_err());
    }
}
