//! Tests of the listener over real sockets, and of tokens in real files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod heads;
mod limits;
mod plain;
mod scopes;
mod stop;
mod tls;
mod tokens;
mod upgrades;
