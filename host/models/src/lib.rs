//! Language models over HTTP: an [`AiProvider`](a99_capabilities::AiProvider) for services
//! that speak OpenAI's chat completions (LM Studio, Ollama, vLLM, llama.cpp and OpenAI among
//! them) or responses, Anthropic's messages, or Gemini's `generateContent`.
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
//! What holds for every request:
//!
//! - It goes through [`HttpFetch`](a99_http::HttpFetch), under a network policy that lets it
//!   reach its service and nothing else (security N01). Redirects are not followed.
//! - An answer is whole when its stop reason came, with or without the stream's final mark.
//!   Otherwise it is an error that carries what came (security N20).
//! - Lines, events, tools and answers have limits, and so have the first token, the time
//!   between two events and the whole.
//! - Cancelling a stream closes its connection.
//! - Keys are [`Secret`]s. They go to their service over TLS, or to an address of the
//!   loopback; no error, log or printed value has one, in texts of services neither.

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
