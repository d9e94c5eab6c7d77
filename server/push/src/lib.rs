//! Push over HTTP: agents whose hosts sleep between requests.
//!
//! A [`Pusher`](pusher::Pusher) beside a channel server sends the events of a channel to the
//! address of an agent, in signed requests. [`Reception`](reception::Reception) is the other
//! end: it opens the store of its agents, runs their turns over an
//! [`HttpTransport`](transport::HttpTransport), and answers with the checkpoint that is durable.
//! `docs/push.md` describes both.

#![warn(unreachable_pub)]

pub mod api;
pub mod codes;
mod fed;
pub mod function;
pub mod pusher;
pub mod reception;
mod request;
pub mod signature;
pub mod transport;
pub mod wire;

/// Compiles the Rust examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/push.md")]
struct Guide;
