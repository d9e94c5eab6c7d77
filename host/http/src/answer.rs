//! Answers: converts responses to a program's values (D56).

use crate::bodies::{Bodies, Held};
use crate::client::{check_end, lost};
use crate::decode::{Coding, Decoder, too_large};
use crate::error::{FetchCode, FetchError};
use crate::options::ResponseType;
use crate::target::{Origin, Target};
use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// Maximum fields in an answer's head.
pub(crate) const MAX_FIELDS: usize = 512;
/// Maximum nesting of JSON that may cross into a program (D21).
const MAX_JSON_DEPTH: u32 = 512;
/// Bytes of JSON that parse fast enough for the runtime's threads.
const QUICK_JSON_BYTES: usize = 256 << 10;
/// Maximum values and keys of one JSON text.
const MAX_JSON_NODES: u32 = 1 << 20;

/// Checks a head before any of it is used.
pub(crate) fn check_head<B>(
    response: &Response<B>,
    origin: &Origin,
    max_header_bytes: usize,
) -> Result<(), FetchError> {
    let fields = response.headers().iter();
    let bytes: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if bytes > max_header_bytes || response.headers().len() > MAX_FIELDS {
        return Err(head_too_large(max_header_bytes));
    }
    let wrong = |what: &str| {
        let text = format!("what {origin} answered is not HTTP: {what}");
        Err(FetchError::new(FetchCode::Protocol, text))
    };
    if response.status().is_informational() {
        return wrong("an interim answer where the answer should be");
    }
    let headers = response.headers();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // With two lengths, an intermediary may have used the other one.
        if headers.contains_key(header::CONTENT_LENGTH) {
            return wrong("two lengths of one body");
        }
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        let chunked = codings
            .next()
            .is_some_and(|c| c.as_bytes().eq_ignore_ascii_case(b"chunked"));
        if !chunked || codings.next().is_some() {
            return wrong("another transfer coding than chunked");
        }
    }
    Ok(())
}

pub(crate) fn head_too_large(limit: usize) -> FetchError {
    let text =
        format!("the answer's head is too large: at most {limit} bytes and {MAX_FIELDS} fields");
    FetchError::new(FetchCode::HeaderTooLarge, text)
}

/// The last answer of a fetch as a value.
pub(crate) async fn read(
    response: Response<Incoming>,
    target: &Target,
    method: &Method,
    response_type: ResponseType,
    max_body_bytes: usize,
    bodies: &Bodies,
) -> Result<Value, FetchError> {
    let status = response.status();
    if response_type == ResponseType::Default && status.as_u16() >= 400 {
        return Err(FetchError::new(FetchCode::Status, status_text(status)));
    }
    let (head, body) = response.into_parts();
    let mut held = bodies.hold();
    let body = collect(body, &head, target, max_body_bytes, &mut held).await?;
    let media = head.headers.get(header::CONTENT_TYPE);
    let media = media
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_json = media.to_ascii_lowercase().contains("application/json");
    // Servers send a content type with empty answers (D56). The request took effect, so this is
    // no error.
    let bodiless = body.is_empty()
        && (method == Method::HEAD || status.is_success() || status == StatusCode::NOT_MODIFIED);
    match response_type {
        ResponseType::Default if is_json && !bodiless => json(body, &target.origin, bodies).await,
        ResponseType::Default | ResponseType::Text => Ok(text(body)),
        ResponseType::Json if bodiless => Ok(text(body)),
        ResponseType::Json => json(body, &target.origin, bodies).await,
        ResponseType::DataUrl => Ok(data_url(media, &body)),
        ResponseType::Response => {
            let parsed = match is_json && !bodiless {
                true => {
                    held.grow(held.bytes().saturating_add(body.len()))?;
                    json(body.clone(), &target.origin, bodies).await.ok()
                }
                false => None,
            };
            let mut answer = Map::with_capacity(5);
            answer.insert("status", f64::from(status.as_u16()));
            answer.insert("statusText", status.canonical_reason().unwrap_or_default());
            answer.insert("url", target.url());
            answer.insert("headers", headers(&head.headers));
            answer.insert("body", parsed.unwrap_or_else(|| text(body)));
            Ok(answer.into())
        }
    }
}

/// `HTTP 404 Not Found`, with the standard's reason phrase, not the server's.
fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// The body, decompressed.
async fn collect(
    mut body: Incoming,
    head: &Parts,
    target: &Target,
    limit: usize,
    held: &mut Held<'_>,
) -> Result<Vec<u8>, FetchError> {
    // A `HEAD` over HTTP/2 has a length and no body.
    if !body.is_end_stream() && body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut decoder = Decoder::new(Coding::of(&head.headers)?, limit);
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| lost(&error, &target.origin))?;
        let Ok(data) = frame.into_data() else {
            // Trailers are ignored.
            continue;
        };
        received += data.len();
        if received > limit {
            return Err(too_large(limit));
        }
        decoder.push(&data)?;
        held.grow(decoder.held().saturating_add(decoder.working()))?;
    }
    check_end(&body, head.version, &target.origin)?;
    decoder.finish(received)
}

/// Decodes text like `fetch` in browsers: as UTF-8, regardless of the content type, with U+FFFD
/// for invalid bytes, and without a byte order mark.
fn text(bytes: Vec<u8>) -> Value {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match text.strip_prefix('\u{FEFF}') {
        Some(rest) => rest.into(),
        None => text.into(),
    }
}

/// Parses JSON; long texts on a blocking thread, so that the runtime's threads can stop a run
/// meanwhile.
async fn json(bytes: Vec<u8>, origin: &Origin, bodies: &Bodies) -> Result<Value, FetchError> {
    if bytes.len() <= QUICK_JSON_BYTES {
        return parse(bytes, origin);
    }
    // One at a time: parsed JSON takes several times the memory of its text.
    let turn = bodies.turn().await;
    let origin = origin.clone();
    let reading = tokio::task::spawn_blocking(move || {
        // The next one waits even if the fetch is dropped meanwhile.
        let _turn = turn;
        parse(bytes, &origin)
    });
    let parsed = reading.await;
    let ended = |_| FetchError::new(FetchCode::Runtime, "the tokio runtime has ended");
    parsed.map_err(ended)?
}

fn parse(bytes: Vec<u8>, origin: &Origin) -> Result<Value, FetchError> {
    let limits = Limits {
        max_bytes: bytes.len(),
        max_depth: MAX_JSON_DEPTH,
        max_nodes: MAX_JSON_NODES,
    };
    let document = Document::parse_data(bytes, &limits).map_err(|refused| {
        // The text is not repeated: it may be anything.
        let first = refused.iter().next();
        let (code, at) = first.map_or(("", 0), |d| {
            (d.code, d.span.as_ref().map_or(0, |s| s.start))
        });
        let text = format!("the answer of {origin} is not JSON ({code} at byte {at})");
        FetchError::new(FetchCode::Json, text)
    })?;
    Ok(document.to_value(document.root()))
}

fn data_url(media: &str, bytes: &[u8]) -> Value {
    // Characters that would end the media type in the URL (RFC 2397) invalidate it.
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'#');
    let media = match media.bytes().all(|byte| plain(byte) || byte == b' ') {
        true if !media.is_empty() => media,
        _ => "application/octet-stream",
    };
    let mut url = format!("data:{media};base64,");
    STANDARD.encode_string(bytes, &mut url);
    url.into()
}

/// An object with a text for each lower-case name: values of one name are joined with commas,
/// cookies with line feeds (RFC 9110 section 5.3).
fn headers(headers: &HeaderMap) -> Value {
    let mut map = Map::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let between: &[u8] = match *name == header::SET_COOKIE {
            true => b"\n",
            false => b", ",
        };
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(|v| v.as_bytes()).collect();
        let text = String::from_utf8_lossy(&values.join(between)).into_owned();
        map.insert(name.as_str(), Text::from(text));
    }
    map.into()
}
