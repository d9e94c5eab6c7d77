//! Wire: a connection as hyper sees it, with a count of what came.
//!
//! hyper bounds the head of one answer, but reads as many interim answers (1xx)
//! as a server sends, and passes no count of bytes on.

use crate::network::{BoxStream, Stream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

/// What hyper may read beyond a head before the answer is looked at: its buffers,
/// with the beginning of the body.
const READ_AHEAD: u64 = 512 << 10;
/// Bytes on the wire for each byte of a body, at most: chunks of one byte.
const CHUNKED: u64 = 8;

/// The count of a connection, shared with the fetch that uses it.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Count>);

#[derive(Debug)]
struct Count {
    /// Several answers at once share a connection of HTTP/2, which has limits of
    /// its own.
    shared: bool,
    resting: AtomicBool,
    read: AtomicU64,
    limit: AtomicU64,
    head_limit: u64,
}

/// More came than an answer may have.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WireFull;

impl fmt::Display for WireFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more bytes than an answer may have")
    }
}

impl std::error::Error for WireFull {}

impl Wire {
    pub(crate) fn new(shared: bool, max_header_bytes: usize) -> Wire {
        let head_limit = (max_header_bytes as u64).saturating_add(READ_AHEAD);
        Wire(Arc::new(Count {
            shared,
            resting: AtomicBool::new(true),
            read: AtomicU64::new(0),
            limit: AtomicU64::new(head_limit),
            head_limit,
        }))
    }

    /// A request is written: its answer begins.
    fn wrote(&self) {
        if self.0.resting.swap(false, Ordering::Relaxed) {
            self.0.read.store(0, Ordering::Relaxed);
            self.0.limit.store(self.0.head_limit, Ordering::Relaxed);
        }
    }

    /// The head came; now the body does, until the answer is dropped.
    pub(crate) fn head_came(&self, max_body_bytes: usize) -> Answering {
        let body = (max_body_bytes as u64).saturating_mul(CHUNKED);
        let limit = self.0.head_limit.saturating_add(body);
        self.0.limit.store(limit, Ordering::Relaxed);
        Answering(self.clone())
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let read = self.0.read.fetch_add(bytes as u64, Ordering::Relaxed);
        let total = read.saturating_add(bytes as u64);
        match self.0.shared || total <= self.0.limit.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(io::Error::other(WireFull)),
        }
    }
}

/// An answer on its way. Whatever is written after it was dropped is another
/// request.
pub(crate) struct Answering(Wire);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.resting.store(true, Ordering::Relaxed);
    }
}

/// What a connection runs over.
enum Transport {
    Plain(BoxStream),
    Tls(Box<TlsStream<BoxStream>>),
}

/// A connection.
pub(crate) struct Link {
    transport: Transport,
    wire: Wire,
}

impl Link {
    pub(crate) fn plain(stream: BoxStream, max_header_bytes: usize) -> Link {
        Link {
            transport: Transport::Plain(stream),
            wire: Wire::new(false, max_header_bytes),
        }
    }

    pub(crate) fn tls(stream: TlsStream<BoxStream>, max_header_bytes: usize) -> Link {
        let shared = is_h2(&stream);
        Link {
            transport: Transport::Tls(Box::new(stream)),
            wire: Wire::new(shared, max_header_bytes),
        }
    }

    fn stream(&mut self) -> Pin<&mut (dyn Stream + '_)> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream),
            Transport::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

fn is_h2(stream: &TlsStream<BoxStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.wire.clone());
        match &self.transport {
            Transport::Tls(stream) if is_h2(stream) => connected.negotiated_h2(),
            _ => connected,
        }
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream().poll_read(cx, buffer))?;
        Poll::Ready(self.wire.read(buffer.filled().len() - before))
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.wrote();
        self.stream().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
