//! HTTP for programs: the capability [`Fetch`](a99_capabilities::Fetch) under a network policy.
//!
//! [`HttpFetch`] speaks HTTP/1.1 and HTTP/2, with and without TLS, to the hosts that a
//! [`Policy`] allows. The default policy allows none:
//!
//! ```
//! use a99_http::{HttpFetch, Policy};
//!
//! let policy: Policy = "allow:api.example.com:443".parse()?;
//! let fetch = HttpFetch::builder().policy(policy).build()?;
//! let granted = a99_capabilities::Capabilities::none().with_fetch(fetch);
//! assert_eq!(granted.granted(), ["fetch"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Guarantees for every request and every redirect of it:
//!
//! - One parser reads the URL (WHATWG); its result is both checked and connected to. Schemes
//!   are `http` and `https`; user names in URLs are refused.
//! - The host is checked against the policy before its name is looked up, each resolved address
//!   is checked too, and the connection goes to a checked address (D57). Connections are shared
//!   within one [`HttpFetch`] only, and [`HttpFetch::set_policy`] ends the earlier ones.
//! - At most five redirects are followed. A program's headers go to another origin only if they
//!   cannot be credentials, a body never.
//! - Limits apply to headers and bodies, before and after decompression, to the bodies of all
//!   answers in flight together, to the time, and to the numbers of requests and of hosts
//!   ([`FetchLimits`]).
//! - The environment has no influence: no proxy, no cookies, no credentials. (Only the location
//!   of the system's certificate authorities may be set there, by `SSL_CERT_FILE` and
//!   `SSL_CERT_DIR`.)
//! - A host's credentials ([`Builder::credential`]) go to their origin only.
//! - Errors name the origin and never the path, the query or a header.
//!
//! Hosts can also stream bodies with [`HttpFetch::open`], under the same policy.
//!
//! A request runs on the tokio runtime that polls it, which needs its I/O and time drivers.
//! Dropping it closes its connection.
//!
//! hyper implements the protocol and rustls with ring the cryptography. reqwest does not fit:
//! it passes its resolver no port, so that an address cannot be checked against rules about
//! ports; nor does it limit the head of an answer or let a transport count bytes.

#![warn(unreachable_pub)]

mod answer;
mod bodies;
mod brotli;
mod builder;
mod client;
mod connect;
mod credential;
mod decode;
mod error;
mod frames;
mod network;
mod options;
mod quota;
mod redirect;
mod streaming;
mod target;
mod tls;
mod wire;

pub use a99_capabilities::Secret;
pub use a99_egress::{Policy, PolicyError};
pub use builder::{Builder, FetchLimits};
pub use client::HttpFetch;
pub use error::{FetchCode, FetchError};
pub use network::{BoxStream, Dial, Resolve, Stream, SystemDialer, SystemResolver};
pub use streaming::{StreamRequest, StreamingAnswer};
pub use target::{Scheme, rule_for};
