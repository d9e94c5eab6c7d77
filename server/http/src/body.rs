//! Bodies of requests, within their size and time.

use crate::error::{ServerCode, ServerError};
use crate::options::Limits;
use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Why a body ended early, for the response.
pub(crate) type Fault = Arc<OnceLock<ServerError>>;

/// A body that fails when it is too large or too slow.
pub(crate) struct LimitedBody {
    inner: Incoming,
    left: usize,
    time: Duration,
    /// Runs from the first time that bytes are missing.
    deadline: Option<Pin<Box<Sleep>>>,
    max: usize,
    fault: Fault,
}

impl LimitedBody {
    /// The body of a request, and where it reports a fault.
    ///
    /// # Errors
    /// If its declared length is too large.
    pub(crate) fn new(
        inner: Incoming,
        limits: &Limits,
    ) -> Result<(LimitedBody, Fault), ServerError> {
        let max = limits.max_body_bytes;
        if inner.size_hint().lower() > max as u64 {
            return Err(too_large(max));
        }
        let fault = Fault::default();
        let body = LimitedBody {
            inner,
            left: max,
            time: limits.body_timeout,
            deadline: None,
            max,
            fault: Arc::clone(&fault),
        };
        Ok((body, fault))
    }

    fn fail(&self, error: ServerError) -> axum::Error {
        axum::Error::new(self.fault.get_or_init(|| error).clone())
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
            let time = this.time;
            let deadline = this.deadline.get_or_insert_with(|| Box::pin(sleep(time)));
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Some(Err(this.fail(too_slow(time)))));
        };
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(axum::Error::new)?;
        let size = frame.data_ref().map_or(0, Bytes::len);
        match this.left.checked_sub(size) {
            Some(left) => this.left = left,
            None => return Poll::Ready(Some(Err(this.fail(too_large(this.max))))),
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn too_large(max: usize) -> ServerError {
    ServerError::new(
        ServerCode::BodyTooLarge,
        format!("the body has more than {max} bytes"),
        "send less at once",
    )
}

fn too_slow(time: Duration) -> ServerError {
    ServerError::new(
        ServerCode::BodyTimeout,
        format!("the body did not arrive within {} ms", time.as_millis()),
        "send it at once, and less of it",
    )
}
