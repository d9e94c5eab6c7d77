//! Types shared by runs and by the services that answer their calls: the [accounts](mod@account)
//! that limit calls, tokens and money, and the events ([`events`]) that a host receives.

#![warn(unreachable_pub)]

pub mod account;
pub mod events;
