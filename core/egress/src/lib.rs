//! What may be reached over the network: one policy for fetches of agents and
//! for the network of Linux guests.
//!
//! A [`Policy`] is data with two questions: may this name be looked up
//! ([`Policy::allows_name`]), and may this address and port be reached
//! ([`Policy::check`])? Addresses that lead to the host itself, to its private
//! networks or to a cloud's metadata are refused unless a rule names just them;
//! IPv6 addresses that carry an IPv4 address are judged by the latter.
//!
//! A client that knows by which name it got to an address asks more exactly:
//! [`Policy::check_destination`] before it looks a name up, and
//! [`Policy::check_connection`] about each address that came out.
//!
//! This crate does no I/O: it resolves nothing and connects nowhere. Whoever
//! does must ask about the address that it then connects to, not about a name
//! that is looked up once more.
//!
//! ```
//! use a99_egress::{Policy, Refusal};
//!
//! let policy: Policy = "allow:*.example.com:443,10.1.2.0/24".parse()?;
//! assert!(policy.allows_name("api.example.com"));
//! assert!(policy.check("10.1.2.9".parse().unwrap(), 22, []).is_ok());
//! assert_eq!(
//!     policy.check("127.0.0.1".parse().unwrap(), 22, []),
//!     Err(Refusal::Special(a99_egress::Class::Loopback)),
//! );
//! # Ok::<(), a99_egress::PolicyError>(())
//! ```

#![warn(unreachable_pub)]

mod address;
mod connection;
mod error;
mod policy;
mod rule;

pub use address::{Class, Net, classify, embedded_v4};
pub use connection::{Denial, Destination};
pub use error::{PolicyCode, PolicyError};
pub use policy::{Mode, Policy, Refusal};
pub use rule::{HOST_NAME, Host, Ports, Rule};
