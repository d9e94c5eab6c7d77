//! Pusher and receiver over loopback, with a channel server: what they promise while requests
//! are lost, doubled and out of order.

mod by_hand;
mod conformance;
mod harness;
mod killed;
mod pushing;
