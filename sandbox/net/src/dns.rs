//! DNS messages (RFC 1035), limited to a server that answers only with addresses.

use std::net::IpAddr;

/// Port of the server.
pub(super) const PORT: u16 = 53;

/// Record types and class.
const TYPE_A: u16 = 1;
const TYPE_PTR: u16 = 12;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;

const HEADER_BYTES: usize = 12;
/// Maximum bytes of a name in wire form.
const MAX_NAME_BYTES: usize = 255;
/// Maximum bytes of an answer without EDNS (RFC 1035 section 4.2.1). Answers within it need
/// no truncation and amplify nothing.
const MAX_BYTES: usize = 512;
/// Maximum records of an answer with IPv6 addresses.
pub(super) const MAX_V6_RECORDS: usize = MAX_BYTES / (RECORD_BYTES + 16);
/// Size of an address record with a compressed name, without the address.
const RECORD_BYTES: usize = 12;

/// Response codes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Rcode {
    NoError = 0,
    FormErr = 1,
    ServFail = 2,
    NxDomain = 3,
    NotImp = 4,
    Refused = 5,
}

/// Type of a query.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryKind {
    /// IPv4 addresses.
    V4,
    /// IPv6 addresses.
    V6,
    /// The name of an address.
    Reverse,
    /// Any other type; answered without records.
    Other,
}

/// A query with one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query {
    /// Host name in lower case; `None` if the name is not a host name.
    pub(super) name: Option<String>,
    pub(super) kind: QueryKind,
    id: [u8; 2],
    recursion_desired: bool,
    /// The question's original bytes, letter case included (clients check that).
    question: Vec<u8>,
}

/// Parses a query; `Err` holds the error response, if the message deserves one.
pub(super) fn parse(message: &[u8]) -> Result<Query, Option<Vec<u8>>> {
    let (header, rest) = message.split_at_checked(HEADER_BYTES).ok_or(None)?;
    let flags = header[2];
    if flags & 0x80 != 0 {
        return Err(None);
    }
    let mut query = Query {
        name: None,
        kind: QueryKind::Other,
        id: [header[0], header[1]],
        recursion_desired: flags & 1 != 0,
        question: Vec::new(),
    };
    if flags & 0x78 != 0 {
        return Err(Some(query.answer(Rcode::NotImp, &[], 0)));
    }
    let questions = u16::from_be_bytes([header[4], header[5]]);
    let parsed = (questions == 1).then(|| parse_question(rest)).flatten();
    let Some((name, kind, length)) = parsed else {
        return Err(Some(query.answer(Rcode::FormErr, &[], 0)));
    };
    query.name = name;
    query.kind = kind;
    query.question = rest[..length].to_vec();
    Ok(query)
}

/// Parses the name, the query type, and the length of the question.
fn parse_question(bytes: &[u8]) -> Option<(Option<String>, QueryKind, usize)> {
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        if length == 0 {
            break;
        }
        // Pointers and extended labels cannot occur: no name precedes the question.
        if length > 63 || at + length + 2 > MAX_NAME_BYTES {
            return None;
        }
        if at > 0 {
            name.push(b'.');
        }
        let label = bytes.get(at + 1..at + 1 + length)?;
        // A dot inside a label would change the name.
        name.extend(label.iter().map(|byte| {
            if *byte == b'.' {
                0
            } else {
                byte.to_ascii_lowercase()
            }
        }));
        at += 1 + length;
    }
    let fields = bytes.get(at + 1..at + 5)?;
    let kind = match (
        u16::from_be_bytes([fields[0], fields[1]]),
        u16::from_be_bytes([fields[2], fields[3]]),
    ) {
        (TYPE_A, CLASS_IN) => QueryKind::V4,
        (TYPE_AAAA, CLASS_IN) => QueryKind::V6,
        (TYPE_PTR, CLASS_IN) => QueryKind::Reverse,
        _ => QueryKind::Other,
    };
    let inside = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    let name = String::from_utf8(name)
        .ok()
        .filter(|name| !name.is_empty() && name.as_bytes().iter().all(inside));
    Some((name, kind, at + 5))
}

impl Query {
    /// Builds a response with a code and as many addresses as fit, of the family that is
    /// asked for, valid for `ttl` seconds.
    pub(super) fn answer(&self, rcode: Rcode, addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
        let size = match self.kind {
            QueryKind::V6 => RECORD_BYTES + 16,
            _ => RECORD_BYTES + 4,
        };
        let room = MAX_BYTES.saturating_sub(HEADER_BYTES + self.question.len()) / size;
        let asked = |address: &&IpAddr| address.is_ipv6() == (self.kind == QueryKind::V6);
        let addresses: Vec<&IpAddr> = addresses.iter().filter(asked).take(room).collect();
        let mut message = Vec::with_capacity(MAX_BYTES);
        message.extend_from_slice(&self.id);
        // Response flag; recursion is available.
        message.push(0x80 | u8::from(self.recursion_desired));
        message.push(0x80 | rcode as u8);
        let questions = u16::from(!self.question.is_empty());
        for count in [questions, addresses.len() as u16, 0, 0] {
            message.extend_from_slice(&count.to_be_bytes());
        }
        message.extend_from_slice(&self.question);
        for address in addresses {
            // Points to the name in the question.
            message.extend_from_slice(&[0xc0, HEADER_BYTES as u8]);
            let (kind, bytes): (u16, &[u8]) = match address {
                IpAddr::V4(address) => (TYPE_A, &address.octets()),
                IpAddr::V6(address) => (TYPE_AAAA, &address.octets()),
            };
            message.extend_from_slice(&kind.to_be_bytes());
            message.extend_from_slice(&CLASS_IN.to_be_bytes());
            message.extend_from_slice(&ttl.to_be_bytes());
            message.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
            message.extend_from_slice(bytes);
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn query(name: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name {
            message.push(label.len() as u8);
            message.extend_from_slice(label);
        }
        message.extend([0, (kind >> 8) as u8, kind as u8, 0, 1]);
        message
    }

    #[test]
    fn questions_are_read_and_repeated() {
        let message = query(&[b"WWW", b"Example", b"com"], 1);
        let parsed = parse(&message).expect("a query");
        assert_eq!(parsed.name.as_deref(), Some("www.example.com"));
        assert_eq!(parsed.kind, QueryKind::V4);
        let address = Ipv4Addr::new(1, 2, 3, 4).into();
        let other = Ipv6Addr::LOCALHOST.into();
        let answer = parsed.answer(Rcode::NoError, &[address, other, address], 60);
        assert_eq!(
            answer[..12],
            [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0]
        );
        assert_eq!(answer[12..message.len()], message[12..]);
        assert_eq!(
            answer[message.len()..][..16],
            [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4]
        );
        let message = query(&[b"a"], 28);
        let parsed = parse(&message).expect("a query");
        let answer = parsed.answer(Rcode::NoError, &[address, other], 60);
        assert_eq!((parsed.kind, answer[7]), (QueryKind::V6, 1));
        assert_eq!(
            answer[message.len()..][..13],
            [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0]
        );
        assert_eq!(answer.len(), message.len() + 28);
        assert_eq!(
            parse(&query(&[b"a"], 15)).map(|query| query.kind),
            Ok(QueryKind::Other)
        );
        assert_eq!(
            parse(&query(&[b"1", b"in-addr", b"arpa"], 12)).map(|query| query.kind),
            Ok(QueryKind::Reverse)
        );
    }

    #[test]
    fn answers_fit_a_datagram() {
        let name: [&[u8]; 4] = [&[b'a'; 60], &[b'b'; 60], &[b'c'; 60], &[b'd'; 60]];
        for (kind, address) in [
            (1, Ipv4Addr::LOCALHOST.into()),
            (28, Ipv6Addr::LOCALHOST.into()),
        ] {
            let parsed = parse(&query(&name, kind)).expect("a query");
            let answer = parsed.answer(Rcode::NoError, &[address; 100], 1);
            assert!(answer.len() <= 512 && answer.len() > 480);
        }
    }

    #[test]
    fn names_that_are_none_are_known_as_such() {
        let names: [&[&[u8]]; 5] = [&[], &[b"a.b"], &[b"a b"], &[b"\xff"], &[b"a", b"\0"]];
        for name in names {
            let parsed = parse(&query(name, 1)).expect("a query");
            assert_eq!(parsed.name, None, "{name:?}");
        }
    }

    #[test]
    fn what_is_no_query_is_answered_or_ignored() {
        let code =
            |message: &[u8]| parse(message).map_err(|answer| answer.map(|answer| answer[3] & 15));
        let mut message = query(&[b"a"], 1);
        message[2] = 0x81;
        assert_eq!(code(&message), Err(None));
        assert_eq!(code(&message[..11]), Err(None));
        message[2] = 0x10;
        assert_eq!(code(&message), Err(Some(4)));
        message[2] = 1;
        assert_eq!(code(&message[..message.len() - 1]), Err(Some(1)));
        message[5] = 2;
        assert_eq!(code(&message), Err(Some(1)));
        let pointer = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1];
        assert_eq!(code(&pointer), Err(Some(1)));
        let long = query(&[&[b'a'; 63][..]; 4], 1);
        assert_eq!(code(&long), Err(Some(1)));
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_short_answer_or_none(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let answer = match parse(&bytes) {
                Ok(query) => Some(query.answer(Rcode::Refused, &[Ipv4Addr::LOCALHOST.into(); 99], 1)),
                Err(answer) => answer,
            };
            prop_assert!(answer.is_none_or(|answer| answer.len() <= MAX_BYTES));
        }
    }
}
