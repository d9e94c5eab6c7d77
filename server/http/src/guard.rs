//! Checks of a request's head, before a handler sees it.

use crate::error::{ServerCode, ServerError};
use crate::options::ListenOptions;
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};
use std::net::{IpAddr, SocketAddr};

/// Names of parameters that carry tokens elsewhere (RFC 6750, section 2.3, and custom).
const TOKEN_PARAMETERS: [&str; 2] = ["token", "access_token"];

/// The names of a listener, and the origins that may use it.
#[derive(Debug)]
pub(crate) struct Guard {
    is_tls: bool,
    behind_proxy: bool,
    /// In lower case.
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// Takes hosts and origins from the options.
    pub(crate) fn new(options: &ListenOptions) -> Result<Guard, ServerError> {
        let hosts = options.hosts.iter().map(|host| {
            let text = host.to_ascii_lowercase();
            match split_host(&text) {
                Some(_) => Ok(text),
                None => Err(bad_option("host", host, "as in `agents.example.com`")),
            }
        });
        let origins = options.origins.iter().map(|origin| {
            let text = origin.trim_end_matches('/').to_ascii_lowercase();
            match text.split_once("://") {
                Some((scheme, host)) if !scheme.is_empty() && split_host(host).is_some() => {
                    Ok(text)
                }
                _ => Err(bad_option(
                    "origin",
                    origin,
                    "as in `https://app.example.com`",
                )),
            }
        });
        Ok(Guard {
            is_tls: options.tls.is_some(),
            behind_proxy: options.behind_proxy,
            hosts: hosts.collect::<Result<_, _>>()?,
            origins: origins.collect::<Result<_, _>>()?,
        })
    }

    /// Checks a request that arrived at this address.
    pub(crate) fn check(&self, local: SocketAddr, request: &Parts) -> Result<(), ServerError> {
        let host = only(&request.headers, &header::HOST).map(str::to_ascii_lowercase);
        let absolute = request.uri.authority();
        let host = host.filter(|host| {
            let agrees = absolute.is_none_or(|name| name.as_str().eq_ignore_ascii_case(host));
            agrees && self.is_own(host, local)
        });
        let Some(host) = host else {
            return Err(ServerError::new(
                ServerCode::WrongHost,
                "the request's Host does not name this server",
                "ask for it by its address, or add the name to the hosts of the server",
            ));
        };
        if request.headers.contains_key(header::ORIGIN) {
            let origin = only(&request.headers, &header::ORIGIN).map(str::to_ascii_lowercase);
            if !origin.is_some_and(|origin| self.may_come_from(&origin, &host)) {
                return Err(ServerError::new(
                    ServerCode::WrongOrigin,
                    "pages of this origin may not use the server",
                    "add the origin to the origins of the server, if its pages may",
                ));
            }
        }
        if request.uri.query().is_some_and(has_token) {
            return Err(ServerError::new(
                ServerCode::TokenInUrl,
                "a token stands in the URL, which logs and histories keep",
                "revoke it, and send another one as `Authorization: Bearer TOKEN`",
            ));
        }
        Ok(())
    }

    /// Whether a host, with or without a port, is this listener.
    fn is_own(&self, host: &str, local: SocketAddr) -> bool {
        let Some((name, port)) = split_host(host) else {
            return false;
        };
        if self.hosts.iter().any(|own| own == host || own == name) {
            return true;
        }
        let default = if self.is_tls { 443 } else { 80 };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let is_named = match bare.parse::<IpAddr>() {
            // No name resolves to it, so no other page has this host.
            Ok(ip) => ip.is_loopback() || ip.to_canonical() == local.ip().to_canonical(),
            Err(_) => name == "localhost",
        };
        is_named && port.unwrap_or(default) == local.port()
    }

    fn may_come_from(&self, origin: &str, host: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed == origin) {
            return true;
        }
        match origin.split_once("://") {
            Some((scheme, of)) if of == host => match scheme {
                "https" => self.is_tls || self.behind_proxy,
                "http" => !self.is_tls,
                _ => false,
            },
            _ => false,
        }
    }
}

/// The value of a header that a request has once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Name and port of a host; the name of an address of IPv6 has its brackets.
fn split_host(text: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match text.rfind(']') {
        Some(end) => (&text[..=end], &text[end + 1..]),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return None;
    }
    match port.strip_prefix(':') {
        Some(port) => Some((name, Some(port.parse().ok()?))),
        None => port.is_empty().then_some((name, None)),
    }
}

/// Whether a query has a parameter for tokens, under any spelling that decoding makes equal.
fn has_token(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| {
        let name = decoded(pair.split('=').next().unwrap_or_default());
        TOKEN_PARAMETERS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    })
}

/// Percent-decodes a name.
fn decoded(name: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut rest = name.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((&byte, behind)) = rest.split_first() {
        let code = digit(behind.first()).zip(digit(behind.get(1)));
        (rest, _) = match (byte, code) {
            (b'%', Some((high, low))) => (&behind[2..], out.push((high * 16 + low) as u8)),
            _ => (behind, out.push(byte)),
        };
    }
    out
}

fn bad_option(kind: &str, text: &str, help: &str) -> ServerError {
    let shown: String = text.chars().take(60).collect();
    ServerError::new(
        ServerCode::BadOption,
        format!("{shown:?} is no {kind}"),
        format!("write {help}"),
    )
}
