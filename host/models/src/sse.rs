//! Server-sent events, by the rules of the WHATWG (HTML, section 9.2.6).
//!
//! Bytes may be split anywhere; events come out one at a time. Memory is bounded by one line
//! and one event, which both have a limit.

use std::fmt;

/// Maximum bytes of a line.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// Maximum bytes of an event's data.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// The byte order mark that UTF-8 text may begin with.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type; `message` by default.
    pub event: String,
    /// The data.
    pub data: String,
    /// The last id of the stream, empty if there was none.
    pub id: String,
}

/// A violation of the limits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EventError {
    /// A line of more than [`MAX_LINE_BYTES`].
    LongLine,
    /// Data of more than [`MAX_EVENT_BYTES`].
    LargeEvent,
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventError::LongLine => write!(f, "a line has more than {MAX_LINE_BYTES} bytes"),
            EventError::LargeEvent => write!(f, "an event has more than {MAX_EVENT_BYTES} bytes"),
        }
    }
}

impl std::error::Error for EventError {}

/// Parses an event stream.
///
/// ```
/// use a99_models::sse::EventParser;
///
/// let mut parser = EventParser::new();
/// let mut rest: &[u8] = b"data: Hel";
/// assert_eq!(parser.next(&mut rest)?, None);
/// let mut rest: &[u8] = b"lo\n\n";
/// assert_eq!(parser.next(&mut rest)?.unwrap().data, "Hello");
/// # Ok::<(), a99_models::sse::EventError>(())
/// ```
#[derive(Debug, Default)]
pub struct EventParser {
    /// The line so far.
    line: Vec<u8>,
    /// Whether the first line was read.
    begun: bool,
    /// Whether the last line ended with CR, which an LF may complete.
    after_cr: bool,
    kind: String,
    data: String,
    has_data: bool,
    id: String,
    retry: Option<u64>,
}

impl EventParser {
    /// A parser at the beginning of a stream.
    #[must_use]
    pub fn new() -> EventParser {
        EventParser::default()
    }

    /// Takes bytes from the front of `bytes` until an event is complete; `None` if all bytes
    /// were taken before. An event that the stream's end interrupts is dropped.
    ///
    /// # Errors
    /// If a line or an event is too large; later results are meaningless.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, EventError> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > MAX_LINE_BYTES {
                return Err(EventError::LongLine);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else {
                *bytes = &[];
                break;
            };
            self.after_cr = bytes[end] == b'\r';
            *bytes = &bytes[end + 1..];
            if let Some(event) = self.end_line()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The reconnection time of the stream, in milliseconds.
    #[must_use]
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn end_line(&mut self) -> Result<Option<Event>, EventError> {
        let line = std::mem::take(&mut self.line);
        let mut text = &line[..];
        if !std::mem::replace(&mut self.begun, true) {
            text = text.strip_prefix(BOM).unwrap_or(text);
        }
        let event = match text.is_empty() {
            true => self.dispatch(),
            false => {
                self.field(text)?;
                None
            }
        };
        // Reuse the line's buffer, unless an unusually long line grew it.
        const KEPT: usize = 64 << 10;
        if line.capacity() <= KEPT {
            self.line = line;
            self.line.clear();
        }
        Ok(event)
    }

    fn field(&mut self, line: &[u8]) -> Result<(), EventError> {
        let colon = line.iter().position(|b| *b == b':');
        let (name, value) = match colon {
            // A comment.
            Some(0) => return Ok(()),
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match name {
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                // An invalid byte becomes three.
                let value = String::from_utf8_lossy(value);
                if self.data.len() + value.len() + 1 > MAX_EVENT_BYTES {
                    return Err(EventError::LargeEvent);
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&value);
            }
            b"id" if !value.contains(&0) => {
                self.id = String::from_utf8_lossy(value).into_owned();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).ok();
                self.retry = digits.and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<Event> {
        let kind = std::mem::take(&mut self.kind);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let data = std::mem::take(&mut self.data);
        Some(Event {
            event: match kind.is_empty() {
                true => "message".to_owned(),
                false => kind,
            },
            data,
            id: self.id.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let mut parser = EventParser::new();
        let mut found = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(event) = parser.next(&mut rest).unwrap() {
                found.push(event);
            }
            assert!(rest.is_empty());
        }
        found
    }

    fn shown(stream: &[u8]) -> String {
        let events = events(&[stream]);
        let shown = events
            .iter()
            .map(|e| format!("{}|{}|{}", e.event, e.data, e.id));
        shown.collect::<Vec<_>>().join(" ; ")
    }

    /// Streams and their events as `type|data|id`. The first ones are those of the
    /// standard.
    const STREAMS: &[(&str, &str)] = &[
        (
            "data: YHOO\ndata: +2\ndata: 10\n\n",
            "message|YHOO\n+2\n10|",
        ),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            "message|first event|1 ; message|second event| ; message| third event|",
        ),
        ("data\n\ndata\ndata\n\ndata:", "message|| ; message|\n|"),
        (
            "data:test\n\ndata: test\n\n",
            "message|test| ; message|test|",
        ),
        ("", ""),
        ("\n\n\n", ""),
        ("data: a", ""),
        ("data: a\n", ""),
        ("data: a\r\n\r\n", "message|a|"),
        ("data: a\r\r", "message|a|"),
        ("data: a\r\n\rdata: b\n\r\n", "message|a| ; message|b|"),
        ("data: a\n\rdata: b\r\r\n", "message|a| ; message|b|"),
        ("\u{feff}data: a\n\n", "message|a|"),
        ("\u{feff}\u{feff}data: a\n\ndata: b\n\n", "message|b|"),
        ("\n\u{feff}data: a\n\n", ""),
        ("event: x\n\ndata: a\n\n", "message|a|"),
        (
            "event: x\nevent: y\ndata: a\n\ndata: b\n\n",
            "y|a| ; message|b|",
        ),
        ("event:\ndata: a\n\n", "message|a|"),
        ("id: 1\0\ndata: a\n\n", "message|a|"),
        ("id: 7\n\ndata: a\n\n", "message|a|7"),
        ("Data: a\n data: b\ndata : c\nxdata: d\n\n", ""),
        ("data: a:b: c\n\n", "message|a:b: c|"),
        (":\n:data: a\ndata: b\n\n", "message|b|"),
        (
            "data: \u{fc}ber \u{1f980}\n\n",
            "message|\u{fc}ber \u{1f980}|",
        ),
        (
            "data: a\u{2028}b\u{85}c\u{b}\n\n",
            "message|a\u{2028}b\u{85}c\u{b}|",
        ),
    ];

    #[test]
    fn streams_are_read_by_the_standard() {
        for (stream, expected) in STREAMS {
            assert_eq!(shown(stream.as_bytes()), *expected, "{stream:?}");
        }
        let stream = b"data: a\xff\xc3\xf0\x9f\n\n";
        assert_eq!(shown(stream), "message|a\u{fffd}\u{fffd}\u{fffd}|");
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        for (stream, _) in STREAMS {
            let bytes = stream.as_bytes();
            let whole = events(&[bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(&single), whole, "{stream:?} byte by byte");
            for at in 0..=bytes.len() {
                let (a, b) = bytes.split_at(at);
                assert_eq!(events(&[a, b]), whole, "{stream:?} at {at}");
                assert_eq!(events(&[a, b"", b]), whole, "{stream:?} at {at}");
                let some = events(&[a]);
                assert!(whole.starts_with(&some), "{stream:?} ends at {at}");
            }
        }
    }

    #[test]
    fn the_time_to_wait_is_digits() {
        for (stream, expected) in [
            ("retry: 1500\n", Some(1500)),
            ("retry:7\nretry: x\n", Some(7)),
            ("retry: -1\nretry: 1.5\nretry:\nretry:  3\n", None),
            ("retry: 99999999999999999999999\n", None),
        ] {
            let mut parser = EventParser::new();
            assert_eq!(parser.next(&mut stream.as_bytes()), Ok(None));
            assert_eq!(parser.retry(), expected, "{stream:?}");
        }
    }

    #[test]
    fn n20_lines_and_events_are_bounded() {
        let mut parser = EventParser::new();
        let chunk = vec![b'x'; 64 << 10];
        let mut taken = 0;
        let error = loop {
            match parser.next(&mut &chunk[..]) {
                Ok(None) => taken += chunk.len(),
                other => break other.unwrap_err(),
            }
            assert!(parser.line.capacity() <= 2 * MAX_LINE_BYTES);
        };
        assert_eq!(error, EventError::LongLine);
        assert!(taken <= MAX_LINE_BYTES);
        let mut parser = EventParser::new();
        let line = b"data: 0123456789\n";
        let mut taken = 0;
        let error = loop {
            match parser.next(&mut &line[..]) {
                Ok(None) => taken += line.len(),
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error, EventError::LargeEvent);
        assert!(taken <= 2 * MAX_EVENT_BYTES);
        // Bytes that are no UTF-8 grow when they are read.
        let mut parser = EventParser::new();
        let mut stream = b"data:".to_vec();
        stream.resize(MAX_LINE_BYTES, 0xFF);
        stream.extend_from_slice(b"\n\n");
        assert_eq!(parser.next(&mut &stream[..]), Err(EventError::LargeEvent));
    }

    /// The fragments of streams.
    const FRAGMENTS: &[&[u8]] = &[
        b"data",
        b"event",
        b"id",
        b"retry",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\xEF\xBB\xBF",
        b"\xE6\x97",
        b"\xA5",
        b"\0",
        b"7",
        b"x",
    ];

    proptest! {
        #[test]
        fn any_bytes_are_the_same_however_they_are_cut(
            picked in proptest::collection::vec(0..FRAGMENTS.len(), 0..40),
            size in 1..9usize,
        ) {
            let bytes: Vec<u8> = picked.iter().flat_map(|at| FRAGMENTS[*at].to_vec()).collect();
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(events(&pieces), events(&[&bytes]));
        }
    }
}
