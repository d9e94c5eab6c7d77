//! Stores in files: what comes back, what others see of it, and what is left of it when
//! processes are killed, disks are full, or files are damaged.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod backups;
mod conformance;
mod damaged;
mod database;
mod limits;
mod namespaces;
mod processes;
mod values;

use a99_capabilities::CapabilityError;
use a99_core::value::Value;
use a99_sqlite::SqliteStore;
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

/// A store in a folder of the test.
fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    (folder, store)
}

fn text(error: &CapabilityError) -> String {
    error.message.to_string()
}

fn object(members: &[(&'static str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}
