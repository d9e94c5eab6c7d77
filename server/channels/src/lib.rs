//! Channels over the network.
//!
//! A [server](server::ChannelServer) gives the channels of a host to clients over WebSocket, and
//! to clients without a socket over HTTP. A [client](client::Client) reconnects by itself and
//! loses or repeats no event. `docs/channels.md` describes the protocol.

#![warn(unreachable_pub)]

pub mod client;
pub mod codes;
pub mod forward;
mod message;
pub mod server;
pub mod wire;

/// Compiles the Rust examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/channels.md")]
struct Guide;
