//! Options of a request: converts a program's values.

use crate::error::{FetchCode, FetchError};
use a99_core::value::{Map, Value};
use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// The supported methods of RFC 9110 and RFC 5789.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Headers that belong to the connection, or that hyper writes (security N09).
const RESERVED_HEADERS: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Maximum header fields of a request.
const MAX_HEADERS: usize = 100;
/// Maximum bytes of their names and values.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Whether a header belongs to the connection.
pub(crate) fn is_connection_header(name: &HeaderName) -> bool {
    RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// The form of the answer that the program asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseType {
    /// By its content type; a status from 400 on is an error (D56).
    Default,
    Json,
    Text,
    DataUrl,
    /// Status, headers and body.
    Response,
}

/// A request without its target.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    pub(crate) response_type: ResponseType,
    /// Whether a redirect led to another origin: since then a server determines the target.
    pub(crate) is_cross_origin: bool,
}

pub(crate) fn url(value: &Value) -> Result<&str, FetchError> {
    let Some(text) = value.as_text() else {
        let kind = value.kind();
        return Err(input(format!("the URL must be a string, not {kind}")));
    };
    text.to_str()
        .ok_or_else(|| input("the URL has half of a surrogate pair in it"))
}

impl Request {
    pub(crate) fn read(options: &Value, max_body: usize) -> Result<Request, FetchError> {
        let none = Map::new();
        let options = match options {
            Value::Object(map) => map,
            Value::Undefined | Value::Null => &none,
            other => {
                let kind = other.kind();
                return Err(input(format!("the options must be an object, not {kind}")));
            }
        };
        const KNOWN: [&str; 4] = ["method", "headers", "body", "responseType"];
        if let Some(key) = options
            .keys()
            .find(|key| !KNOWN.iter().any(|k| **key == **k))
        {
            let (key, known) = (shown(&key.to_string_lossy()), KNOWN.join(", "));
            return Err(input(format!("unknown option {key}; known are {known}")));
        }
        let option = |key: &str| options.get(key).filter(|value| !value.is_nullish());
        let method = method(option("method"))?;
        let response_type = response_type(option("responseType"))?;
        let mut headers = headers(option("headers"))?;
        let body = option("body")
            .map(|value| body(value, max_body))
            .transpose()?;
        if body.is_some() && [Method::GET, Method::HEAD].contains(&method) {
            let text = format!("a {method} request has no body; name another method");
            return Err(FetchError::new(FetchCode::Body, text));
        }
        let body = body.map(|(bytes, media)| {
            if !headers.contains_key(CONTENT_TYPE) {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
            }
            bytes
        });
        Ok(Request {
            method,
            headers,
            body,
            response_type,
            is_cross_origin: false,
        })
    }
}

fn method(value: Option<&Value>) -> Result<Method, FetchError> {
    let Some(value) = value else {
        return Ok(Method::GET);
    };
    let text = value.as_str().unwrap_or_default();
    let known = METHODS
        .iter()
        .find(|m| m.as_str().eq_ignore_ascii_case(text));
    known.cloned().ok_or_else(|| {
        let known = METHODS
            .iter()
            .map(Method::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!(
            "{} is no method of fetches; they are {known}",
            described(value)
        );
        FetchError::new(FetchCode::Method, text)
    })
}

fn response_type(value: Option<&Value>) -> Result<ResponseType, FetchError> {
    let Some(value) = value else {
        return Ok(ResponseType::Default);
    };
    match value.as_str() {
        Some("json") => Ok(ResponseType::Json),
        Some("text") => Ok(ResponseType::Text),
        Some("dataUrl") => Ok(ResponseType::DataUrl),
        Some("response") => Ok(ResponseType::Response),
        _ => Err(input(format!(
            "responseType {} is none; known are json, text, dataUrl and response",
            described(value)
        ))),
    }
}

/// Header fields of a request, within limits.
#[derive(Default)]
pub(crate) struct Fields {
    headers: HeaderMap,
    bytes: usize,
}

fn wrong_header(text: String) -> FetchError {
    FetchError::new(FetchCode::Header, text)
}

impl Fields {
    /// Checks a field name that the caller may set.
    pub(crate) fn name(text: &[u8]) -> Result<HeaderName, FetchError> {
        let name = HeaderName::from_bytes(text).map_err(|_| {
            let label = shown(&String::from_utf8_lossy(text));
            wrong_header(format!("{label} is no name of a header"))
        })?;
        match is_connection_header(&name) {
            true => Err(wrong_header(format!(
                "the header {name} is not a program's to set"
            ))),
            false => Ok(name),
        }
    }

    /// Adds a field; a duplicate is an error.
    pub(crate) fn add(&mut self, name: HeaderName, text: &str) -> Result<(), FetchError> {
        let text = text.trim_matches([' ', '\t']);
        let plain = |byte: u8| byte == b'\t' || (0x20..0x7F).contains(&byte);
        // The value may be a secret and is not shown.
        let value = HeaderValue::from_str(text)
            .ok()
            .filter(|_| text.bytes().all(plain));
        let value = value.ok_or_else(|| {
            wrong_header(format!(
                "the header {name} has a character that headers have not"
            ))
        })?;
        self.bytes += name.as_str().len() + value.len();
        if self.headers.len() == MAX_HEADERS || self.bytes > MAX_HEADER_BYTES {
            return Err(wrong_header(format!(
                "the headers are more than {MAX_HEADERS} or {MAX_HEADER_BYTES} bytes"
            )));
        }
        if self.headers.contains_key(&name) {
            return Err(wrong_header(format!("the header {name} is there twice")));
        }
        self.headers.insert(name, value);
        Ok(())
    }

    pub(crate) fn into_headers(self) -> HeaderMap {
        self.headers
    }
}

fn headers(value: Option<&Value>) -> Result<HeaderMap, FetchError> {
    let mut headers = Fields::default();
    let fields = match value {
        None => return Ok(HeaderMap::new()),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            let kind = other.kind();
            return Err(input(format!("headers must be an object, not {kind}")));
        }
    };
    for (name, value) in fields {
        if value.is_undefined() {
            continue;
        }
        let name = Fields::name(name.as_bytes())?;
        let text = match value {
            Value::String(text) => text.to_string_lossy().into_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_json_string(),
            other => {
                let kind = other.kind();
                return Err(wrong_header(format!(
                    "the header {name} must be a string, not {kind}"
                )));
            }
        };
        headers.add(name, &text)?;
    }
    Ok(headers.into_headers())
}

/// The bytes and media type of a body: a text is sent unchanged, other values as JSON (D58).
fn body(value: &Value, most: usize) -> Result<(Bytes, &'static str), FetchError> {
    let (bytes, media) = match value {
        Value::String(text) => {
            let text = text.to_string_lossy().into_owned();
            (text.into_bytes(), "text/plain;charset=UTF-8")
        }
        other => {
            let mut bytes = Vec::new();
            other.write_json(&mut bytes);
            (bytes, "application/json")
        }
    };
    if bytes.len() > most {
        let text = format!(
            "the body has {} bytes, at most {most} are sent",
            bytes.len()
        );
        return Err(FetchError::new(FetchCode::Body, text));
    }
    Ok((bytes.into(), media))
}

fn input(text: impl Into<String>) -> FetchError {
    FetchError::new(FetchCode::Input, text)
}

/// Describes a value that should have been a text.
fn described(value: &Value) -> String {
    match value {
        Value::String(text) => shown(&text.to_string_lossy()),
        other => other.kind().to_owned(),
    }
}

/// A short form of a program's text for messages.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("{short:?}")
}
