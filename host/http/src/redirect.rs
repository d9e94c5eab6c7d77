//! Redirects: RFC 9110 section 15.4. Credentials stay with their origin (security N05).

use crate::error::{FetchCode, FetchError};
use crate::options::Request;
use crate::target::Target;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

/// Maximum redirects of a request.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Headers that follow a redirect to another origin, because they cannot be credentials.
/// Services use arbitrary header names for keys, so all others are dropped.
const SAFE_HEADERS: [HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::PRAGMA,
    header::RANGE,
    header::USER_AGENT,
    // Depth of nested requests (language section 2.6).
    HeaderName::from_static("x-agent-depth"),
];

/// Headers about a body; they are dropped together with it.
const BODY_HEADERS: [HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
];

/// The redirect target of an answer; `None` if it is the last one.
pub(crate) fn location(
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<&str>, FetchError> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let mut locations = headers.get_all(header::LOCATION).iter();
    let Some(location) = locations.next() else {
        return Ok(None);
    };
    let nowhere = |text: &str| FetchError::new(FetchCode::Redirect, text);
    if locations.next().is_some_and(|other| other != location) {
        return Err(nowhere("the redirect names several places"));
    }
    let location = std::str::from_utf8(location.as_bytes());
    location
        .map(Some)
        .map_err(|_| nowhere("the redirect names no URL"))
}

/// Changes a request for its next target.
pub(crate) fn follow(
    request: &mut Request,
    status: StatusCode,
    from: &Target,
    to: &Target,
) -> Result<(), FetchError> {
    let drops_body = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if drops_body {
        request.method = Method::GET;
        request.body = None;
        for name in BODY_HEADERS {
            request.headers.remove(name);
        }
    }
    if from.origin == to.origin {
        return Ok(());
    }
    if request.body.is_some() {
        let text = format!(
            "the redirect to {} would send the body again, which goes to one origin alone",
            to.origin
        );
        return Err(FetchError::new(FetchCode::Body, text));
    }
    request.is_cross_origin = true;
    // Dropped headers stay dropped, even if a redirect leads back.
    let names: Vec<HeaderName> = request.headers.keys().cloned().collect();
    for name in names.iter().filter(|name| !SAFE_HEADERS.contains(name)) {
        request.headers.remove(name);
    }
    Ok(())
}
