//! Stores on a server that the tests start: what comes back, what others see of it, and
//! what is left of it when processes or the server are killed.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![cfg(unix)]

mod cluster;
mod conformance;
mod connections;
mod contention;
mod limits;
mod namespaces;
mod processes;
mod schemas;
mod values;

use a99_capabilities::CapabilityError;
use a99_core::value::Value;
use a99_postgres::{PostgresError, PostgresOptions, PostgresStore};
use cluster::Database;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future without any runtime, as a host may.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn open(url: &str) -> Result<PostgresStore, PostgresError> {
    PostgresStore::open(PostgresOptions::of_url(url)?)
}

/// A store in a database of the test.
fn store() -> (Database, PostgresStore) {
    let database = cluster::shared().database();
    let store = open(&database.url()).unwrap();
    (database, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}
