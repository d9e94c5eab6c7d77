//! The mock server's HTTP/1.1: one request a connection, with size limits, and chunked bodies
//! that can end early.

use a99_core::value::Value;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Maximum bytes of a request's body.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Write buffer in bytes.
const BUFFER_BYTES: usize = 32 << 10;

pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Reads a request, or gives the status that rejects it.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<Result<Request, u16>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Ok(Err(431));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(Err(400));
        }
    };
    let mut body = bytes.split_off(head_end);
    let Some(mut request) = head(&bytes) else {
        return Ok(Err(400));
    };
    let values = |name: &str| {
        let headers = request.headers.iter().filter(|(key, _)| key == name);
        headers
            .map(|(_, value)| value.clone())
            .collect::<Vec<String>>()
    };
    if values("expect")
        .iter()
        .any(|value| value.eq_ignore_ascii_case("100-continue"))
    {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    let length = match (&lengths[..], &codings[..]) {
        ([], []) => Some(0),
        ([length], []) => match length.parse() {
            Ok(length) => Some(length),
            Err(_) => return Ok(Err(400)),
        },
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => None,
        _ => return Ok(Err(400)),
    };
    match length {
        Some(length) if length > MAX_BODY_BYTES => return Ok(Err(413)),
        Some(length) => {
            while body.len() < length {
                if stream.read_buf(&mut body).await? == 0 {
                    return Ok(Err(400));
                }
            }
            body.truncate(length);
            request.body = body;
        }
        None => match chunks(stream, body).await? {
            Ok(body) => request.body = body,
            Err(status) => return Ok(Err(status)),
        },
    }
    Ok(Ok(request))
}

/// Parses the request line and headers.
fn head(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return None;
    }
    let mut headers = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Vec::new(),
    })
}

/// Reads a chunked body; `bytes` were read before.
async fn chunks(
    stream: &mut (impl AsyncRead + Unpin),
    mut bytes: Vec<u8>,
) -> io::Result<Result<Vec<u8>, u16>> {
    /// Maximum bytes of a chunk-size line.
    const MAX_LINE: usize = 1024;
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            if bytes.len() > MAX_LINE || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(Err(400));
            }
            continue;
        };
        let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = line.split(';').next().unwrap_or_default().trim();
        let Ok(length) = usize::from_str_radix(length, 16) else {
            return Ok(Err(400));
        };
        if length > MAX_BODY_BYTES - body.len() {
            return Ok(Err(413));
        }
        bytes.drain(..end + 2);
        if length == 0 {
            // Trailers are ignored.
            return Ok(Ok(body));
        }
        while bytes.len() < length + 2 {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(Err(400));
            }
        }
        body.extend_from_slice(&bytes[..length]);
        if &bytes[length..length + 2] != b"\r\n" {
            return Ok(Err(400));
        }
        bytes.drain(..length + 2);
    }
}

/// The standard reason phrase of a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

/// A short answer.
pub(super) struct Answer {
    status: u16,
    body: Vec<u8>,
    pub(super) retry_after: Option<Duration>,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Answer {
        Answer {
            status,
            body: body.to_json_string().into_bytes(),
            retry_after: None,
        }
    }

    pub(super) async fn send(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let (status, length) = (self.status, self.body.len());
        let after = self
            .retry_after
            .map(|after| format!("Retry-After: {}\r\n", after.as_secs()));
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             {}Connection: close\r\n\r\n",
            reason(status),
            after.unwrap_or_default(),
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&self.body).await?;
        stream.shutdown().await
    }
}

/// A chunked body that may be cut after a number of bytes.
pub(super) struct Body<W> {
    to: W,
    waiting: Vec<u8>,
    left: Option<usize>,
}

impl<W: AsyncWrite + Unpin> Body<W> {
    pub(super) fn new(to: W, cut: Option<usize>) -> Body<W> {
        Body {
            to,
            waiting: Vec::new(),
            left: cut,
        }
    }

    pub(super) async fn head(&mut self, media: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nCache-Control: no-cache\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
        self.to.write_all(head.as_bytes()).await
    }

    /// Writes bytes. Gives whether the body continues, which it does not after the cut.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let most = self.left.unwrap_or(usize::MAX);
        let fits = bytes.len() < most;
        let bytes = &bytes[..bytes.len().min(most)];
        self.left = self.left.map(|left| left - bytes.len());
        self.waiting.extend_from_slice(bytes);
        if !fits || self.waiting.len() >= BUFFER_BYTES {
            self.flush().await?;
        }
        Ok(fits)
    }

    /// Flushes the buffer.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let head = format!("{:x}\r\n", self.waiting.len());
            self.waiting.splice(..0, head.into_bytes());
            self.waiting.extend_from_slice(b"\r\n");
            self.to.write_all(&self.waiting).await?;
            self.waiting.clear();
        }
        self.to.flush().await
    }

    /// Ends the body regularly.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.to.write_all(b"0\r\n\r\n").await?;
        self.to.shutdown().await
    }
}

/// Waits until the client closes the connection.
pub(super) async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut buffer = [0; 256];
    // Bytes after a request are ignored.
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// The result of the future that is ready first.
pub(super) async fn first<T>(a: impl Future<Output = T>, b: impl Future<Output = T>) -> T {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Pending => b.as_mut().poll(cx),
        ready => ready,
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_text(text: &[u8]) -> Result<Request, u16> {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(text).await.unwrap();
        theirs.shutdown().await.unwrap();
        read(&mut ours).await.unwrap()
    }

    #[tokio::test]
    async fn requests_are_read_within_bounds() {
        for (text, expected) in [
            ("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", Ok("")),
            ("POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nabc", Ok("ab")),
            (
                "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
                Ok("abc"),
            ),
            ("GET /a HTTP/2\r\n\r\n", Err(400)),
            ("GET /a b HTTP/1.1\r\n\r\n", Err(400)),
            ("GET /a HTTP/1.1\r\nx\r\n\r\n", Err(400)),
            ("GET /a HTTP/1.1\r\n", Err(400)),
            ("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", Err(400)),
            ("POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", Err(400)),
            (
                "POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
                Err(400),
            ),
            (
                "POST /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
                Err(400),
            ),
            (
                "POST /a HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                Err(413),
            ),
            (
                "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                Err(413),
            ),
            (
                "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                Err(400),
            ),
            (
                "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                Err(400),
            ),
        ] {
            let found = read_text(text.as_bytes()).await;
            let found = found.map(|request| String::from_utf8(request.body).unwrap());
            assert_eq!(
                found.as_deref().map_err(|status| *status),
                expected,
                "{text:?}"
            );
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD_BYTES + 1));
        assert_eq!(read_text(long.as_bytes()).await.err(), Some(431));
    }
}
