//! Language models with streams: text, tools, thinking, usage, as events and whole.
//!
//! [`AiProvider`] is what a host implements, or takes from a crate that does. [`Llm`](crate::Llm)
//! and [`LlmBattery`](crate::LlmBattery), which programs ask, are made of one by
//! [`ProviderLlm`] and [`ProviderBattery`]. [`ScriptedAi`] plays a script in place of a model,
//! and a provider of one's own runs the cases of `suite::AiCase` in a test (feature `testing`).

mod adapters;
mod answer;
mod chat;
mod error;
mod estimate;
mod events;
mod metered;
mod model_script;
mod opaque;
mod payer;
mod read;
mod request;
mod scripted;
#[cfg(any(test, feature = "testing"))]
pub mod simulate;
mod stream;
#[cfg(feature = "testing")]
pub(crate) mod suite;

pub use adapters::{ProviderBattery, ProviderLlm};
pub use chat::ChatRound;
pub use error::{AiCode, AiError};
pub use estimate::TokenEstimate;
pub use events::{Cost, StopReason, StreamEvent, TextResult, ToolUse, Usage};
pub use metered::MeteredAi;
pub use model_script::{ModelFault, ModelScript, ModelScriptError, ModelTurn};
pub use opaque::{Opaque, Place, is_opaque_member};
pub use payer::{Paid, Payer, PriceOf, Request};
pub use request::{
    Effort, Format, Image, MediaKind, Message, Part, Role, TextRequest, Tool, ToolChoice,
};
pub use scripted::ScriptedAi;
pub use stream::{Done, MAX_ANSWER_BYTES, StreamHandle, StreamSink};

use crate::error::BoxFuture;
use std::collections::BTreeMap;

/// The role of a request that names neither role nor model.
pub const DEFAULT_ROLE: &str = "default";

/// Asks language models.
///
/// An implementation answers with events as they come; what it gives is bounded
/// ([`MAX_ANSWER_BYTES`]), it holds to the request's limits, and a stream that is cancelled
/// ends what it asked for. Errors say nothing secret: programs see their text.
pub trait AiProvider: Send + Sync {
    /// The roles that requests may name, such as `fast`, `smart`, `code` and
    /// [`DEFAULT_ROLE`], each with the model that stands for it first.
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>>;

    /// Begins an answer, without waiting for it. What is wrong with the request is the
    /// stream's error.
    fn stream_text(&self, request: TextRequest) -> StreamHandle;

    /// Begins an answer as [`AiProvider::stream_text`], of which this pays for each request:
    /// what a request may need is reserved before it is sent
    /// ([`Payer::reserve`]), and settled at its end ([`StreamSink::pay`]). For providers that
    /// send several requests for one answer; nothing by default, and the caller pays for one.
    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        let _ = (request, payer);
        None
    }

    /// What tokens of a model cost; of the one that a request without a model gets, if it is
    /// not named. Nothing where no price is known, as by default: a run whose money is
    /// limited asks no such model.
    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        let _ = (model, usage);
        None
    }

    /// The whole answer. Dropping the future cancels it.
    fn generate_text(&self, request: TextRequest) -> BoxFuture<'_, Result<TextResult, AiError>> {
        let stream = self.stream_text(request);
        Box::pin(async move { stream.done().await })
    }
}
