//! Language models over HTTP: an [`AiProvider`](a99_capabilities::AiProvider) for services that
//! speak OpenAI's chat completions (LM Studio, Ollama, vLLM, llama.cpp and OpenAI among them)
//! or responses, Anthropic's messages, or Gemini's `generateContent`.
//!
//! ```
//! use a99_capabilities::ai::{AiProvider, TextRequest};
//! use a99_models::{ModelConfig, ModelProvider};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ModelConfig::single("http://localhost:1234/v1", "qwen3-8b", None);
//! let models = ModelProvider::new(config)?;
//! let answer = models.generate_text(TextRequest::new("Say hello")).await?;
//! println!("{}", answer.text);
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees for every request:
//!
//! - It goes through [`HttpFetch`](a99_http::HttpFetch), under a network policy that allows
//!   only its service (security N01). Redirects are not followed.
//! - An answer is complete once its stop reason came, with or without the stream's final mark.
//!   Otherwise it is an error that carries the partial answer (security N20).
//! - Lines, events, tools and answers have size limits. The first token, the time between two
//!   events and the whole answer have timeouts.
//! - Cancelling a stream closes its connection.
//! - Keys are [`Secret`]s. They are sent to their service over TLS, or to a loopback address.
//!   No error, log or printed value contains one, not even in texts of services.

#![warn(unreachable_pub)]

mod attempt;
mod audit;
mod config;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod limiter;
mod price;
mod price_list;
mod probe;
mod provider;
mod reader;
mod redact;
mod retry;
#[cfg(feature = "server")]
pub mod server;
mod service;
pub mod sse;
mod wire;

pub use a99_capabilities::Secret;
pub use audit::{Audit, ModelFinding, ModelKind};
pub use config::{ModelConfig, SINGLE, ServiceConfig, Timeouts};
pub use error::{ModelCode, ModelError};
pub use price::{LongPrice, Price};
pub use price_list::{CURRENCY, ListPrice, list_price};
pub use probe::ServiceReport;
pub use provider::{Builder, ModelProvider};
pub use retry::Retries;
pub use wire::Wire;
