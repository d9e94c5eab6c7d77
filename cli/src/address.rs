//! Addresses of servers, as options, files and messages have them.

/// Whether it is a URL and not a path.
pub(crate) fn is_address(from: &str) -> bool {
    from.starts_with("https://") || from.starts_with("http://")
}

/// Normalized origin of a URL: scheme, host and port, in lower case, always with the port.
pub(crate) fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.to_ascii_lowercase();
    let after = authority
        .rsplit_once(']')
        .map_or(&*authority, |(_, after)| after);
    let port = match (after.contains(':'), &*scheme) {
        (true, _) => "",
        (false, "http") => ":80",
        (false, _) => ":443",
    };
    format!("{scheme}://{authority}{port}")
}

/// Whether a URL holds a user or a password.
pub(crate) fn has_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}

/// A URL for messages, without user, password and query, which may be secrets.
pub(crate) fn shown_address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let more = if place.len() < rest.len() { "..." } else { "" };
    match place == rest {
        true => url.to_owned(),
        false => format!("{scheme}://{more}{place}"),
    }
}

/// Removes the text before each `@`: in a URL that is a user and a password.
pub(crate) fn without_logins(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "'\"`/(,".contains(c);
    let mut out = String::with_capacity(text.len());
    for (number, part) in text.split('@').enumerate() {
        if number > 0 {
            let login = out.rfind(is_end).map_or(0, |at| at + 1);
            if login < out.len() {
                out.truncate(login);
                out.push_str("...");
            }
            out.push('@');
        }
        out.push_str(part);
    }
    out
}
