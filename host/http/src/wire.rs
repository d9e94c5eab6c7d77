//! Wire: a connection below hyper that counts received bytes.
//!
//! hyper limits the head of one answer, but reads any number of interim answers (1xx) and
//! exposes no count of bytes.

use crate::frames::{FLOOD, Frames};
use crate::network::{BoxStream, Stream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

/// Bytes that hyper may read beyond a head before the answer is checked: its buffers, with the
/// beginning of the body.
const READ_AHEAD: u64 = 512 << 10;
/// Maximum bytes on the wire for each byte of a body: chunks of one byte.
const CHUNKED: u64 = 8;
/// The same for HTTP/2: frames of one byte, with some others between them.
const FRAMED: u64 = 16;
/// Maximum bytes on an HTTP/2 connection without a request in flight: the rest of an abandoned
/// answer, and a few frames about the connection.
const QUIET: u64 = 8 << 20;

/// The requests of all connections of a pool.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    begun: AtomicU64,
    under_way: AtomicUsize,
}

impl Activity {
    /// Registers a request until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Active {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Active(Arc::clone(self))
    }

    /// Number of finished requests.
    fn over(&self) -> u64 {
        let under_way = self.under_way.load(Ordering::Relaxed) as u64;
        let begun = self.begun.load(Ordering::Relaxed);
        begun.saturating_sub(under_way)
    }
}

/// A request in flight.
pub(crate) struct Active(Arc<Activity>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Limits of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_header_bytes: usize,
    pub(crate) max_body_bytes: usize,
    pub(crate) activity: Arc<Activity>,
}

/// The count of a connection, shared with the fetch that uses it.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Count>);

#[derive(Debug)]
struct Count {
    /// Whether it is an HTTP/2 connection, which concurrent answers share. It may carry the
    /// bytes of all requests together, and few without any.
    shared: bool,
    quiet: AtomicU64,
    activity: Arc<Activity>,
    /// Requests of the pool that had finished before this connection.
    before: u64,
    each: u64,
    resting: AtomicBool,
    read: AtomicU64,
    limit: AtomicU64,
    head_limit: u64,
}

/// An answer exceeded its limit.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WireFull;

impl fmt::Display for WireFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more bytes than an answer may have")
    }
}

impl std::error::Error for WireFull {}

impl Wire {
    fn new(shared: bool, bounds: &Bounds) -> Wire {
        let head_limit = (bounds.max_header_bytes as u64).saturating_add(READ_AHEAD);
        let body = (bounds.max_body_bytes as u64).saturating_mul(FRAMED);
        Wire(Arc::new(Count {
            shared,
            quiet: AtomicU64::new(0),
            activity: Arc::clone(&bounds.activity),
            before: bounds.activity.over(),
            each: head_limit.saturating_add(body),
            resting: AtomicBool::new(true),
            read: AtomicU64::new(0),
            limit: AtomicU64::new(head_limit),
            head_limit,
        }))
    }

    /// A request is written: its answer begins.
    fn wrote(&self) {
        if !self.0.shared && self.0.resting.swap(false, Ordering::Relaxed) {
            self.0.read.store(0, Ordering::Relaxed);
            self.0.limit.store(self.0.head_limit, Ordering::Relaxed);
        }
    }

    /// The head arrived; the body follows until the guard is dropped.
    pub(crate) fn head_came(&self, max_body_bytes: usize) -> Answering {
        let body = (max_body_bytes as u64).saturating_mul(CHUNKED);
        let limit = self.0.head_limit.saturating_add(body);
        self.0.limit.store(limit, Ordering::Relaxed);
        Answering(self.clone())
    }

    /// Requests made since the connection exists.
    fn served(&self) -> u64 {
        let begun = self.0.activity.begun.load(Ordering::Relaxed);
        begun.saturating_sub(self.0.before)
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let read = self.0.read.fetch_add(bytes as u64, Ordering::Relaxed);
        let total = read.saturating_add(bytes as u64);
        let fits = match self.0.shared {
            true => self.shared_fits(total, bytes as u64),
            false => total <= self.0.limit.load(Ordering::Relaxed),
        };
        match fits {
            true => Ok(()),
            false => Err(io::Error::other(WireFull)),
        }
    }

    fn shared_fits(&self, total: u64, bytes: u64) -> bool {
        let Count {
            activity, quiet, ..
        } = &*self.0;
        if activity.under_way.load(Ordering::Relaxed) > 0 {
            quiet.store(0, Ordering::Relaxed);
            let each = self.0.each.saturating_mul(self.served());
            return total <= QUIET.saturating_add(each);
        }
        quiet
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes)
            <= QUIET
    }
}

/// An answer in flight. After it is dropped, the next write begins another request.
pub(crate) struct Answering(Wire);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.resting.store(true, Ordering::Relaxed);
    }
}

/// The transport of a connection.
enum Transport {
    Plain(BoxStream),
    Tls(Box<TlsStream<BoxStream>>),
}

/// A connection.
pub(crate) struct Link {
    transport: Transport,
    wire: Wire,
    /// Frame counter of an HTTP/2 connection.
    frames: Option<Frames>,
}

impl Link {
    pub(crate) fn plain(stream: BoxStream, bounds: &Bounds) -> Link {
        Link {
            transport: Transport::Plain(stream),
            wire: Wire::new(false, bounds),
            frames: None,
        }
    }

    pub(crate) fn tls(stream: TlsStream<BoxStream>, bounds: &Bounds) -> Link {
        let shared = is_h2(&stream);
        Link {
            transport: Transport::Tls(Box::new(stream)),
            wire: Wire::new(shared, bounds),
            frames: shared.then(Frames::new),
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
        let this = &mut *self;
        if let Some(frames) = &mut this.frames
            && !frames.came(&buffer.filled()[before..], this.wire.served())
        {
            return Poll::Ready(Err(io::Error::other(FLOOD)));
        }
        Poll::Ready(this.wire.read(buffer.filled().len() - before))
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.wrote();
        let written = ready!(self.stream().poll_write(cx, bytes))?;
        if let Some(frames) = &mut self.frames {
            frames.sent(written);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n08_a_connection_owes_nothing_to_requests_before_it() {
        let bounds = Bounds {
            max_header_bytes: 0,
            max_body_bytes: 0,
            activity: Arc::default(),
        };
        let total = |requests: u64| QUIET + READ_AHEAD * requests;
        for _ in 0..100 {
            drop(bounds.activity.begin());
        }
        let _under_way = bounds.activity.begin();
        let wire = Wire::new(true, &bounds);
        assert!(wire.read(total(1) as usize).is_ok());
        assert!(wire.read(1).is_err());
        let _another = bounds.activity.begin();
        assert!(wire.read(READ_AHEAD as usize - 1).is_ok());
        assert!(wire.read(1).is_err());
    }
}
