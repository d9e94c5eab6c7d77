//! Fetches against servers of this test on the loopback, behind a resolver and a
//! dialer that know nothing else: no packet of a test leaves the machine.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod answers;
mod attacks;
mod corpus;
mod credentials;
mod frames;
mod hostile;
mod http2;
mod network;
mod policy;
mod redirects;
mod requests;
mod secrets;
mod server;
mod streaming;
mod tls;
mod urls;
mod vectors;
