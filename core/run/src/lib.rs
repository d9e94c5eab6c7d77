//! What is shared by those who run a program and those who serve its calls: the
//! [accounts](account) that limit calls, tokens and money, and the [events](events) that a
//! host receives.

#![warn(unreachable_pub)]

pub mod account;
pub mod events;
