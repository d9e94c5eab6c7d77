//! One connection: its slot, its timers, and what it counts.

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// How long the rest of a refused request is dropped before the connection is closed.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Open connections, altogether and of each address.
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    per_address: Option<usize>,
    addresses: Mutex<HashMap<IpAddr, usize>>,
}

/// The right to have a connection, until it is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Slots {
    pub(crate) fn new(all: usize, per_address: Option<usize>) -> Arc<Slots> {
        Arc::new(Slots {
            all: Arc::new(Semaphore::new(all)),
            per_address,
            addresses: Mutex::default(),
        })
    }

    /// A slot, if there is one for this address.
    pub(crate) fn take(self: &Arc<Slots>, address: IpAddr) -> Option<Slot> {
        let permit = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let address = address.to_canonical();
        if let Some(most) = self.per_address {
            let mut addresses = self.addresses();
            let count = addresses.entry(address).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        Some(Slot {
            slots: Arc::clone(self),
            address,
            _permit: permit,
        })
    }

    /// Waits until all of this number are free again.
    pub(crate) async fn all_free(&self, all: usize) {
        // Nothing closes the semaphore.
        let _ = self
            .all
            .acquire_many(u32::try_from(all).unwrap_or(u32::MAX))
            .await;
    }

    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.slots.per_address.is_some() {
            let mut addresses = self.slots.addresses();
            if let Some(count) = addresses.get_mut(&self.address) {
                *count -= 1;
                if *count == 0 {
                    addresses.remove(&self.address);
                }
            }
        }
    }
}

/// What a connection does.
#[derive(Clone, Default)]
pub(crate) struct Phase(Arc<AtomicU8>);

impl Phase {
    /// Waits for the rest of a head, or for the first one.
    const HEAD: u8 = 0;
    /// Serves a request, or is upgraded.
    pub(crate) const BUSY: u8 = 1;
    /// Waits for the next request.
    pub(crate) const IDLE: u8 = 2;
    /// Has refused a request, and reads no other.
    pub(crate) const CLOSING: u8 = 3;

    pub(crate) fn is_head(&self) -> bool {
        self.get() == Phase::HEAD
    }

    /// A request has arrived.
    pub(crate) fn begin(&self) {
        self.set(Phase::BUSY);
    }

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Release);
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
}

/// The body of a response. When it is dropped, the request has ended.
pub(crate) struct Answer {
    inner: axum::body::Body,
    phase: Phase,
    next: u8,
}

impl Answer {
    pub(crate) fn new(inner: axum::body::Body, phase: Phase, next: u8) -> Answer {
        Answer { inner, phase, next }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.phase.set(self.next);
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A socket that fails when a head is slow or its peer takes nothing. An upgraded connection keeps
/// it, and with it the slot.
pub(crate) struct Socket<S> {
    inner: S,
    phase: Phase,
    header_timeout: Duration,
    /// Runs while a head arrives or the next request is awaited.
    wait: Option<(u8, Pin<Box<Sleep>>)>,
    idle: Duration,
    /// Runs while the peer takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    /// Runs while the peer still sends what is not read.
    linger: Option<Pin<Box<Sleep>>>,
    _slot: Slot,
}

impl<S> Socket<S> {
    pub(crate) fn new(
        inner: S,
        phase: Phase,
        times: (Duration, Duration),
        slot: Slot,
    ) -> Socket<S> {
        let (header_timeout, idle) = times;
        Socket {
            inner,
            phase,
            header_timeout,
            wait: None,
            idle,
            stall: None,
            linger: None,
            _slot: slot,
        }
    }

    /// After its body has ended a response is still being written: the idle time begins again.
    fn moved(&mut self, poll: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(_)), Some((Phase::IDLE, wait))) = (poll, &mut self.wait) {
            wait.as_mut().reset(Instant::now() + self.idle);
        }
    }

    /// Passes what a write gave, and fails if writes wait too long.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stall = None;
            return poll;
        }
        let idle = self.idle;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(idle)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let poll = Pin::new(&mut this.inner).poll_read(cx, buf);
        let mut phase = this.phase.get();
        if phase == Phase::IDLE && buf.filled().len() > before {
            phase = Phase::HEAD;
            this.phase.set(phase);
            this.wait = None;
        }
        let time = match phase {
            Phase::HEAD => this.header_timeout,
            Phase::IDLE => this.idle,
            _ => {
                this.wait = None;
                return poll;
            }
        };
        let wait = match &mut this.wait {
            Some((of, wait)) if *of == phase => wait,
            other => &mut other.insert((phase, Box::pin(sleep(time)))).1,
        };
        match (poll, wait.as_mut().poll(cx)) {
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            (poll, _) => poll,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.moved(&poll);
        self.written(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.moved(&poll);
        self.written(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_flush(cx);
        self.written(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let poll = Pin::new(&mut this.inner).poll_shutdown(cx);
        ready!(this.written(cx, poll))?;
        if this.phase.get() != Phase::CLOSING {
            return Poll::Ready(Ok(()));
        }
        // To close a socket with bytes in it resets the connection, and the client may lose the
        // response that says why its request was refused.
        let linger = this
            .linger
            .get_or_insert_with(|| Box::pin(sleep(LINGER_TIME)));
        while linger.as_mut().poll(cx).is_pending() {
            let mut bytes = [0; 4096];
            let mut buf = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
