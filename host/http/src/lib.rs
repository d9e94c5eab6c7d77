//! HTTP for programs: the capability [`Fetch`](a99_capabilities::Fetch) under a
//! network policy.
//!
//! [`HttpFetch`] speaks HTTP/1.1 and HTTP/2, in the clear and over TLS, with
//! what a [`Policy`] lets it reach, and by default it reaches nothing:
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
//! What holds for every request and every redirect of it:
//!
//! - One parser reads the URL (WHATWG), and what it found is judged and connected
//!   to. Schemes are `http` and `https`; user names in URLs are refused.
//! - The host is held against the policy before its name is looked up, each
//!   address that comes out is judged too, and the connection goes to an address
//!   that passed (D57). Connections are shared within one [`HttpFetch`] alone, and
//!   [`HttpFetch::set_policy`] ends those that were made before.
//! - Redirects are followed at most five times. A program's headers go along to
//!   another origin only if they cannot be credentials, a body never.
//! - Headers and bodies are bounded, before and after decompression, the bodies of
//!   all answers under way together, and so are the time and the numbers of requests
//!   and of hosts ([`FetchLimits`]).
//! - Nothing comes from the environment: no proxy, no cookies, no credentials.
//!   (Where the system keeps its certificate authorities may be said there, by
//!   `SSL_CERT_FILE` and `SSL_CERT_DIR`.)
//! - A host's credentials ([`Builder::credential`]) go to their origin alone.
//! - Errors name the origin and never the path, the query or a header.
//!
//! Hosts also read bodies as they come, by [`HttpFetch::open`], under the same policy.
//!
//! A request runs on the tokio runtime that polls it, which needs its I/O and time
//! drivers. Dropping it closes its connection.
//!
//! hyper does the protocol and rustls with ring the cryptography. reqwest tells
//! its resolver no port, so that an address cannot be held against rules about
//! ports; nor does it bound the head of an answer or let a transport count bytes.

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

pub use a99_egress::{Policy, PolicyError};
pub use builder::{Builder, FetchLimits};
pub use client::HttpFetch;
pub use error::{FetchCode, FetchError};
pub use network::{BoxStream, Dial, Resolve, Stream, SystemDialer, SystemResolver};
pub use streaming::{StreamRequest, StreamingAnswer};
pub use target::{Scheme, rule_for};
