//! The string formats of the subset (language section 2.9), hand-written: this crate has no regular
//! expressions.

use super::data::{Gauge, PIECE, all_bytes, chars_of, find_byte, rfind_byte};

/// The checked formats; unknown formats match everything.
#[derive(Copy, Clone, Debug)]
pub(super) enum Format {
    Email,
    Uuid,
    Uri,
    Ipv4,
    DateTime,
    /// Matched by a pattern, which the caller does.
    Emoji,
}

/// Upper bound for the length of an address, a date without a fraction, a zone and a port.
const SHORT: usize = 64;

impl Format {
    pub(super) fn named(name: &[u8]) -> Option<Format> {
        Some(match name {
            b"email" => Format::Email,
            b"uuid" => Format::Uuid,
            b"uri" => Format::Uri,
            b"ipv4" => Format::Ipv4,
            b"date-time" => Format::DateTime,
            b"emoji" => Format::Emoji,
            _ => return None,
        })
    }

    /// True if the text has the format. Long text is checked piece by piece.
    pub(super) fn fits<G: Gauge>(self, gauge: &mut G, text: &[u8]) -> Result<bool, G::Stop> {
        Ok(match self {
            Format::Email => is_email(gauge, text)?,
            Format::Uuid => is_uuid(text),
            Format::Uri => is_uri(gauge, text)?,
            Format::Ipv4 => is_ipv4(text),
            Format::DateTime => is_date_time(gauge, text)?,
            Format::Emoji => true,
        })
    }
}

/// The text if it is short enough for a single pass and has no lone surrogates, which match none of
/// the formats that call this.
fn short(text: &[u8]) -> Option<&str> {
    let text = (text.len() <= SHORT).then_some(text)?;
    std::str::from_utf8(text).ok()
}

/// White space of ECMAScript patterns (ECMA-262 §22.2.2.9, `\s`).
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{FEFF}'
}

/// Matches `^\S+@\S+\.\S+$`.
fn is_email<G: Gauge>(gauge: &mut G, text: &[u8]) -> Result<bool, G::Stop> {
    let mut next = 0;
    for (at, c) in chars_of(text) {
        if at >= next {
            gauge.passes(4 * PIECE)?;
            next = at + PIECE;
        }
        if is_space(c) {
            return Ok(false);
        }
    }
    // The first @ after the first character leaves the longest domain.
    let first = chars_of(text).nth(1).map_or(text.len(), |(at, _)| at);
    let Some(at) = find_byte(gauge, &text[first..], |byte| byte == b'@')? else {
        return Ok(false);
    };
    let domain = &text[first + at + 1..];
    // The domain needs a point with a character before and after it.
    let inner = match domain.len() {
        0..=2 => return Ok(false),
        len => &domain[1..len - 1],
    };
    Ok(find_byte(gauge, inner, |byte| byte == b'.')?.is_some())
}

fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Matches four numbers up to 255, of at most three digits.
fn is_ipv4(text: &[u8]) -> bool {
    let mut parts = 0;
    short(text).is_some_and(|text| {
        text.split('.').all(|part| {
            parts += 1;
            (1..=3).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse::<u16>().is_ok_and(|number| number <= 255)
        })
    }) && parts == 4
}

/// Matches an absolute URL. Acceptance follows the parser of the URL standard: a scheme, and for
/// web schemes a host without forbidden characters and a port in range.
fn is_uri<G: Gauge>(gauge: &mut G, text: &[u8]) -> Result<bool, G::Stop> {
    let seen = |byte: u8| byte > b' ';
    let Some(start) = find_byte(gauge, text, seen)? else {
        return Ok(false);
    };
    let end = rfind_byte(gauge, text, seen)?.unwrap_or(start);
    let text = &text[start..=end];
    let Some(colon) = find_byte(gauge, text, |byte| byte == b':')? else {
        return Ok(false);
    };
    let (scheme, rest) = (&text[..colon], &text[colon + 1..]);
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !all_bytes(gauge, scheme, letter)? {
        return Ok(false);
    }
    const WEB: [&[u8]; 5] = [b"http", b"https", b"ws", b"wss", b"ftp"];
    if !WEB.iter().any(|name| scheme.eq_ignore_ascii_case(name)) {
        return Ok(true);
    }
    let slash = |byte: u8| matches!(byte, b'/' | b'\\');
    let start = find_byte(gauge, rest, |byte| !slash(byte))?.unwrap_or(rest.len());
    let rest = &rest[start..];
    let ends = |byte: u8| matches!(byte, b'/' | b'\\' | b'?' | b'#');
    let end = find_byte(gauge, rest, ends)?.unwrap_or(rest.len());
    let authority = &rest[..end];
    let user = rfind_byte(gauge, authority, |byte| byte == b'@')?;
    let host_port = &authority[user.map_or(0, |at| at + 1)..];
    if let Some(v6) = host_port.strip_prefix(b"[") {
        return Ok(short(v6).is_some_and(|v6| {
            v6.split_once(']').is_some_and(|(address, port)| {
                address.parse::<core::net::Ipv6Addr>().is_ok()
                    && port.strip_prefix(':').map_or(port.is_empty(), is_port)
            })
        }));
    }
    let colon = find_byte(gauge, host_port, |byte| byte == b':')?;
    let (host, port) = match colon {
        Some(at) => (&host_port[..at], &host_port[at + 1..]),
        None => (host_port, &host_port[..0]),
    };
    if host.is_empty() || !is_long_port(gauge, port)? {
        return Ok(false);
    }
    let mut next = 0;
    for (at, c) in chars_of(host) {
        if at >= next {
            gauge.passes(4 * PIECE)?;
            next = at + PIECE;
        }
        if is_forbidden_in_host(c) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// [`is_port`] for texts of any length: leading zeros are allowed.
fn is_long_port<G: Gauge>(gauge: &mut G, port: &[u8]) -> Result<bool, G::Stop> {
    let zeros = find_byte(gauge, port, |byte| byte != b'0')?.unwrap_or(port.len());
    let rest = short(&port[zeros..]);
    Ok(rest.is_some_and(is_port))
}

fn is_port(port: &str) -> bool {
    port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

/// The forbidden domain code points of the URL standard, without `%`, which may start an escape.
fn is_forbidden_in_host(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            ' ' | '"'
                | '#'
                | '<'
                | '>'
                | '?'
                | '@'
                | '['
                | '\\'
                | ']'
                | '^'
                | '`'
                | '{'
                | '|'
                | '}'
                | ':'
        )
}

/// Matches the date-time string format of ECMA-262 §21.4.1.32, where a space may replace the `T`.
/// Other forms that some engines accept do not match.
fn is_date_time<G: Gauge>(gauge: &mut G, text: &[u8]) -> Result<bool, G::Stop> {
    // Only a fraction can be long. The rest is checked with the fraction cut to one digit.
    let point = text.iter().take(SHORT).position(|byte| *byte == b'.');
    let Some(start) = point.map(|at| at + 1) else {
        return Ok(short(text).is_some_and(is_short_date_time));
    };
    let rest = &text[start..];
    let digits = find_byte(gauge, rest, |byte| !byte.is_ascii_digit())?.unwrap_or(rest.len());
    let zone = &rest[digits..];
    if zone.len() > SHORT {
        return Ok(false);
    }
    let mut whole = text[..start].to_vec();
    whole.extend_from_slice(&rest[..digits.min(1)]);
    whole.extend_from_slice(zone);
    Ok(std::str::from_utf8(&whole).is_ok_and(is_short_date_time))
}

fn is_short_date_time(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    is_date(date) && time.is_none_or(is_time)
}

/// Matches a number of exactly `width` digits within a range.
fn field(text: &str, width: usize, least: u32, most: u32) -> bool {
    text.len() == width
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text
            .parse()
            .is_ok_and(|number| (least..=most).contains(&number))
}

fn is_date(date: &str) -> bool {
    let (sign, body) = match date.strip_prefix(['+', '-']) {
        Some(body) => (true, body),
        None => (false, date),
    };
    let mut parts = body.split('-');
    let year = parts.next().unwrap_or_default();
    let month = parts.next();
    let day = parts.next();
    field(year, if sign { 6 } else { 4 }, 0, 999_999)
        && !date.starts_with("-000000")
        && month.is_none_or(|month| field(month, 2, 1, 12))
        && day.is_none_or(|day| field(day, 2, 1, 31))
        && parts.next().is_none()
}

fn is_time(time: &str) -> bool {
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let mut parts = clock.split(':');
    let hour = parts.next().unwrap_or_default();
    let minute = parts.next().unwrap_or_default();
    let second = parts.next();
    let midnight = hour == "24" && minute == "00" && second.is_none_or(|second| second == "00");
    (midnight || field(hour, 2, 0, 23))
        && field(minute, 2, 0, 59)
        && second.is_none_or(|second| field(second, 2, 0, 59))
        && parts.next().is_none()
        && fraction.is_none_or(|digits| {
            second.is_some() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        })
        && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    match zone.strip_prefix(['+', '-']) {
        Some(offset) => offset
            .split_once(':')
            .is_some_and(|(hour, minute)| field(hour, 2, 0, 23) && field(minute, 2, 0, 59)),
        None => matches!(zone, "" | "Z" | "z"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::Unmetered;
    use super::*;

    fn matches_format(format: &str, text: &str) -> bool {
        Format::named(format.as_bytes()).is_none_or(|format| {
            let Ok(fits) = format.fits(&mut Unmetered, text.as_bytes());
            fits
        })
    }

    #[test]
    fn long_texts() {
        let long = |n: usize| "7".repeat(n);
        for (format, good, bad) in [
            (
                "email",
                format!("{}@b.c", long(100_000)),
                format!("{}@bc", long(100_000)),
            ),
            (
                "date-time",
                format!("2024-01-01T00:00:00.{}Z", long(100_000)),
                format!("2024-01-01T00:00:00.{}x", long(100_000)),
            ),
            (
                "uri",
                format!("http://a:{}80/", "0".repeat(100_000)),
                format!("http://a:1{}", "0".repeat(100_000)),
            ),
            (
                "uri",
                format!("https://{}@{}é/", long(50_000), long(50_000)),
                format!("https://{} ", long(100_000)).replace("7 ", "^"),
            ),
            (
                "ipv4",
                "1.2.3.4".to_owned(),
                format!("1.2.3.{}", long(100_000)),
            ),
            ("uri", format!("a{}:", long(100_000)), long(100_000)),
        ] {
            assert!(matches_format(format, &good), "{format}");
            assert!(!matches_format(format, &bad), "{format}");
        }
    }

    #[test]
    fn formats() {
        for (format, good, bad) in [
            ("email", "a@b.fi", "a@b"),
            ("email", "@@b.c", "a b@c.d"),
            ("email", "a@b.c.d", "@b.c"),
            ("email", "a@b..", "a@.b"),
            ("uuid", "123e4567-E89B-12d3-a456-426614174000", "123"),
            ("uri", "https://x.y/z", "not a uri"),
            ("uri", "mailto:a@b", "http://"),
            ("uri", "http://[::1]:80/", "http://a b/"),
            ("uri", "https://u:p@h:8080?q", "http://h:99999"),
            ("ipv4", "10.0.0.255", "256.1.1.1"),
            ("ipv4", "01.002.3.4", "1.2.3"),
            ("date-time", "2024-01-01T00:00:00Z", "someday"),
            ("date-time", "2024-01-01 10:20:30.5+02:00", "2024-13-01"),
            ("date-time", "2024", "2024-01-01T25:00"),
            ("date-time", "2024-01-01T24:00", "2024-01-01T"),
        ] {
            assert!(matches_format(format, good), "{format} {good}");
            assert!(!matches_format(format, bad), "{format} {bad}");
        }
        assert!(matches_format("phone", "whatever"));
        for text in ["", "\u{1F600}", "T", "-", "http:", ":", "é@é.é", "[", "+00"] {
            for format in ["email", "uuid", "uri", "ipv4", "date-time"] {
                let _ = matches_format(format, text);
            }
        }
    }
}
