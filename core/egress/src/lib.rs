//! Network policy: one format for fetches of agents and for the network of Linux guests.
//!
//! A [`Policy`] is data with two questions: may this name be looked up
//! ([`Policy::allows_name`]), and may this address and port be reached ([`Policy::check`])?
//! Addresses of the host itself, of private networks or of a cloud's metadata service are
//! refused unless a rule names exactly them. IPv6 addresses that embed an IPv4 address are
//! judged by the latter.
//!
//! A client that knows the name behind an address asks more precisely:
//! [`Policy::check_destination`] before it resolves the name, and
//! [`Policy::check_connection`] for each resolved address.
//!
//! The crate does no I/O: it resolves and connects nothing. Callers must check the address
//! that they then connect to, not a name that is resolved once more.
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
