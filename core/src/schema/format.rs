//! The string formats of the subset (language section 2.9), written out by hand:
//! this crate has no regular expressions.

/// Whether text has a format; unknown formats always match.
pub(super) fn matches_format(format: &str, text: &str) -> bool {
    match format {
        "email" => is_email(text),
        "uuid" => is_uuid(text),
        "uri" => is_uri(text),
        "ipv4" => is_ipv4(text),
        "date-time" => is_date_time(text),
        _ => true,
    }
}

/// White space of ECMAScript patterns (ECMA-262 §22.2.2.9, `\s`).
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{FEFF}'
}

/// `^\S+@\S+\.\S+$`.
fn is_email(text: &str) -> bool {
    if text.chars().any(is_space) {
        return false;
    }
    let mut chars = text.char_indices();
    chars.next();
    // The first @ that something precedes leaves most for the rest.
    let Some((at, _)) = chars.find(|&(_, c)| c == '@') else {
        return false;
    };
    let domain = &text[at + 1..];
    // A point with something before and after it.
    domain
        .char_indices()
        .any(|(at, c)| c == '.' && at > 0 && at + 1 < domain.len())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Four numbers up to 255, of at most three digits.
fn is_ipv4(text: &str) -> bool {
    let mut parts = 0;
    text.split('.').all(|part| {
        parts += 1;
        (1..=3).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u16>().is_ok_and(|number| number <= 255)
    }) && parts == 4
}

/// An absolute URL as the URL standard parses it, as far as that decides
/// between accepting and refusing: a scheme, and for web schemes a host
/// without forbidden characters and a port in range.
fn is_uri(text: &str) -> bool {
    let text = text.trim_matches(|c: char| c <= ' ');
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let scheme = scheme.to_ascii_lowercase();
    let mut letters = scheme.bytes();
    let named = letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !named {
        return false;
    }
    if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss" | "ftp") {
        return true;
    }
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if let Some(v6) = host_port.strip_prefix('[') {
        return v6.split_once(']').is_some_and(|(address, port)| {
            address.parse::<std::net::Ipv6Addr>().is_ok()
                && port.strip_prefix(':').map_or(port.is_empty(), is_port)
        });
    }
    let (host, port) = host_port.split_once(':').unwrap_or((host_port, ""));
    !host.is_empty() && !host.chars().any(is_forbidden_in_host) && is_port(port)
}

fn is_port(port: &str) -> bool {
    port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

/// The forbidden domain code points of the URL standard, `%` left out because
/// it may start an escape.
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

/// The date-time string format of ECMA-262 §21.4.1.32, with a space allowed
/// for the `T`. Other forms that some engines guess at do not match.
fn is_date_time(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    is_date(date) && time.is_none_or(is_time)
}

/// A number of exactly `width` digits within a range.
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
    use super::*;

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
