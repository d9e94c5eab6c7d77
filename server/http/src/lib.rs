//! What every HTTP listener of Agent99 stands on.
//!
//! [`Listener`] accepts connections under [`Limits`], over TLS if it has files for it, and hands
//! requests to an [`axum::Router`] that passed these checks:
//!
//! - The `Host` header names this listener, so that a page whose name resolves to this machine
//!   (DNS rebinding) reaches nothing.
//! - An `Origin`, which browsers send, is the listener's own or one that the options name.
//! - No token stands in the query: logs and histories keep URLs.
//! - Head and body arrive in time and within their sizes.
//!
//! A listener beyond the loopback needs TLS, or the word that a proxy in front of it has TLS.
//!
//! [`Authority`] knows the tokens of a file, which `a99 token` writes: [`Authority::check_header`]
//! makes a request's token a [`Grant`], and [`Grant::allows`] says for what.
//! A server spawns [`Authority::watch_file`], so that a revoked token ends within a second, and
//! asks [`Authority::is_valid`] again for grants of long connections when [`Authority::changed`]
//! reports a new state of the file.
//!
//! ```
//! use a99_server::{Action, Authority, ListenOptions, Listener, ServerError};
//! use axum::{Router, extract::State, http::HeaderMap, routing::get};
//!
//! async fn page(State(tokens): State<Authority>, headers: HeaderMap) -> Result<String, ServerError> {
//!     let grant = tokens.check_header(&headers)?;
//!     match grant.allows(Action::Read, "general") {
//!         true => Ok(format!("hello, {}", grant.name)),
//!         false => Err(ServerError::forbidden(Action::Read, "general")),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ServerError> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("tokens.json");
//! let tokens = Authority::open(path)?;
//! tokio::spawn(tokens.watch_file());
//! let app = Router::new().route("/", get(page)).with_state(tokens);
//! let listener = Listener::bind(ListenOptions::default()).await?;
//! println!("listening on {}", listener.url());
//! # let interrupt = async {};
//! listener.serve(app, interrupt).await
//! # }
//! ```

mod authority;
mod body;
mod connection;
mod error;
mod file;
mod guard;
mod listener;
mod options;
mod scope;
mod tls;

pub use authority::{Authority, Grant, NewToken, bearer};
pub use error::{ApiError, ServerCode, ServerError};
pub use file::TokenRow;
pub use listener::Listener;
pub use options::{Limits, ListenOptions, TlsFiles};
pub use scope::{Action, Scope, Scopes};
