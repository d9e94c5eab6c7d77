//! Target of a request: a URL, parsed once by one parser (security N07).

use crate::error::{FetchCode, FetchError};
use a99_egress::Destination;
use http::Uri;
use std::fmt;
use std::net::IpAddr;
use url::Url;

/// Maximum bytes of a URL.
const MAX_BYTES: usize = 16 << 10;

/// A supported scheme.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// In lower-case ASCII, without a final dot.
    Name(String),
    Address(IpAddr),
}

impl Host {
    pub(crate) fn destination(&self) -> Destination<'_> {
        match self {
            Host::Name(name) => Destination::Name(name),
            Host::Address(address) => Destination::Address(*address),
        }
    }
}

/// The peer of a connection; credentials are bound to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, to) = (self.scheme.name(), self.host.destination());
        write!(f, "{scheme}://{to}:{}", self.port)
    }
}

impl Origin {
    /// The origin of a URI that this module wrote.
    pub(crate) fn of(uri: &Uri) -> Result<Origin, FetchError> {
        // A URI of this module, reduced to its origin, always parses.
        let scheme = uri.scheme_str().unwrap_or_default();
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        Target::parse(&format!("{scheme}://{authority}/")).map(|target| target.origin)
    }
}

/// The target of a request.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Url,
    pub(crate) origin: Origin,
}

impl Target {
    /// Parses a URL.
    pub(crate) fn parse(text: &str) -> Result<Target, FetchError> {
        check_text(text)?;
        let url = Url::parse(text.trim_matches(' ')).map_err(not_a_url)?;
        check_user(text)?;
        Target::of(url)
    }

    /// Parses the location of a redirect, which may be relative.
    pub(crate) fn join(&self, location: &str) -> Result<Target, FetchError> {
        check_text(location)?;
        let url = self.url.join(location.trim_matches(' '));
        let url = url.map_err(not_a_url)?;
        if has_user(&url) {
            return Err(credentials());
        }
        Target::of(url)
    }

    fn of(mut url: Url) -> Result<Target, FetchError> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(other_scheme()),
        };
        if has_user(&url) {
            return Err(credentials());
        }
        let host = match url.host() {
            Some(url::Host::Domain(name)) => {
                let bare = name.strip_suffix('.').unwrap_or(name);
                if bare.is_empty() || bare.ends_with('.') {
                    let text = "the host of the URL has an empty part";
                    return Err(FetchError::new(FetchCode::Url, text));
                }
                Host::Name(bare.to_ascii_lowercase())
            }
            Some(url::Host::Ipv4(address)) => Host::Address(IpAddr::V4(address)),
            Some(url::Host::Ipv6(address)) => Host::Address(IpAddr::V6(address)),
            None => return Err(FetchError::new(FetchCode::Url, "the URL has no host")),
        };
        if let Host::Name(name) = &host
            && url.host_str() != Some(name)
        {
            // The request and the certificate check use this name too.
            url.set_host(Some(name)).map_err(not_a_url)?;
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if port == 0 {
            return Err(FetchError::new(FetchCode::Url, "the URL has port 0"));
        }
        url.set_fragment(None);
        let origin = Origin { scheme, host, port };
        Ok(Target { url, origin })
    }

    /// Whether it is an origin without a path.
    pub(crate) fn is_bare(&self) -> bool {
        self.url.path() == "/" && self.url.query().is_none()
    }

    /// The URI for the request.
    pub(crate) fn uri(&self) -> Result<Uri, FetchError> {
        let uri = self.url.as_str().parse();
        uri.map_err(|_| FetchError::new(FetchCode::Url, "the URL cannot be sent as it is"))
    }

    /// The whole URL, for programs that ask for an answer's source.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }
}

/// The policy rule that allows only a URL's host and port: prefix it with `allow:` for a
/// policy.
///
/// ```
/// let rule = a99_http::rule_for("http://localhost:1234/v1")?;
/// assert_eq!(rule, "localhost:1234");
/// # Ok::<(), a99_http::FetchError>(())
/// ```
///
/// # Errors
/// If it is not a URL that can be fetched.
pub fn rule_for(url: &str) -> Result<String, FetchError> {
    let origin = Target::parse(url)?.origin;
    Ok(origin.host.destination().rule(origin.port))
}

/// Refuses characters that the parser would change: control characters, which it drops, and
/// backslashes, which it treats as slashes. Other programs interpret them differently.
fn check_text(text: &str) -> Result<(), FetchError> {
    let what = if text.len() > MAX_BYTES {
        format!(
            "the URL has {} bytes, at most {MAX_BYTES} are read",
            text.len()
        )
    } else if text.chars().any(char::is_control) {
        "the URL has a control character in it".to_owned()
    } else if text.contains('\\') {
        "the URL has a backslash in it".to_owned()
    } else {
        return Ok(());
    };
    Err(FetchError::new(FetchCode::Url, what))
}

/// Refuses a user name, even an empty one, which the parser would drop.
fn check_user(text: &str) -> Result<(), FetchError> {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let authority = rest.trim_start_matches('/').split(['/', '?', '#']).next();
    match authority.is_some_and(|authority| authority.contains('@')) {
        // Other schemes have other forms.
        true if text
            .trim_start()
            .get(..4)
            .is_some_and(|s| s.eq_ignore_ascii_case("http")) =>
        {
            Err(credentials())
        }
        _ => Ok(()),
    }
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn credentials() -> FetchError {
    let text = "the URL has a user name; credentials go into a header";
    FetchError::new(FetchCode::Credentials, text)
}

fn other_scheme() -> FetchError {
    let text = "Fetch denied: only http: and https: URLs are fetched";
    FetchError::new(FetchCode::Scheme, text)
}

fn not_a_url(error: url::ParseError) -> FetchError {
    let text = match error {
        url::ParseError::RelativeUrlWithoutBase => {
            "not an absolute URL; it begins with https:// or http://".to_owned()
        }
        error => format!("not a URL: {error}"),
    };
    FetchError::new(FetchCode::Url, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_have_one_form() {
        for (text, expected) in [
            ("HTTP://Good.Test", "http://good.test:80"),
            ("https://good.test./", "https://good.test:443"),
            ("http://127.1:8080", "http://127.0.0.1:8080"),
            ("http://[0:0::1]/", "http://[::1]:80"),
            ("https://b\u{fc}cher.test", "https://xn--bcher-kva.test:443"),
            (" http://a.test/x y ", "http://a.test:80"),
        ] {
            let target = Target::parse(text).expect(text);
            assert_eq!(target.origin.to_string(), expected);
            assert!(!target.url().contains(' '));
        }
    }

    proptest! {
        /// For any spelling of a URL, the checked origin is the one that is connected to.
        #[test]
        fn n07_the_request_names_the_origin_that_was_judged(
            text in "(https?|HTTP|ftp)?:?[/\\\\]{0,3}([a-z@:.%#?\\[\\]\\\\/\t ]|127|0x7f|::1|good\\.test|%2e|%40|\u{3002}|\u{ff0f}|\\PC){0,8}(:[0-9]{1,3})?([/?#@][a-z@:/]{0,6})?",
        ) {
            if let Ok(target) = Target::parse(&text) {
                let uri = target.uri();
                if let Ok(uri) = &uri {
                    let connected = Origin::of(uri).expect("an origin");
                    prop_assert_eq!(&connected, &target.origin, "{}", uri);
                    let authority = uri.authority().map_or("", |a| a.as_str());
                    prop_assert!(!authority.contains('@'), "{}", uri);
                }
                let again = Target::parse(target.url()).expect("a URL");
                prop_assert_eq!(again.origin, target.origin);
                prop_assert_eq!(again.url, target.url);
            }
        }
    }
}
