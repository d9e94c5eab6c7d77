//! Language models with streams: text, tools, reasoning and usage, as events and as whole
//! answers.
//!
//! Hosts implement [`AiProvider`], or take it from another crate. [`ProviderLlm`] and
//! [`ProviderBattery`] turn it into [`Llm`](crate::Llm) and [`LlmBattery`](crate::LlmBattery),
//! which programs use. [`ScriptedAi`] is a mock model. Tests of a provider run the conformance
//! cases `suite::AiCase` (feature `testing`).

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
mod value;

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
pub use value::{play_value, request_value};

use crate::error::BoxFuture;
use std::collections::BTreeMap;

/// The role of a request that names neither role nor model.
pub const DEFAULT_ROLE: &str = "default";

/// A provider of language models.
///
/// An implementation sends events as they arrive, bounds the answer ([`MAX_ANSWER_BYTES`]),
/// enforces the request's limits, and ends its request when the stream is cancelled. Error
/// texts contain no secrets: programs see them.
pub trait AiProvider: Send + Sync {
    /// The available roles, such as `fast`, `smart`, `code` and [`DEFAULT_ROLE`], each with its
    /// first model.
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>>;

    /// Starts an answer without waiting for it. An invalid request becomes the stream's error.
    fn stream_text(&self, request: TextRequest) -> StreamHandle;

    /// Like [`AiProvider::stream_text`], but pays for each request: it reserves the dearest
    /// price before sending ([`Payer::reserve`]) and settles at the end ([`StreamSink::pay`]).
    /// For providers that send several requests for one answer. The default is `None`, and the
    /// caller pays for one request.
    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        let _ = (request, payer);
        None
    }

    /// Cost of tokens of a model, or of the model that serves requests without a name. The
    /// default is no price: a run with limited money cannot use such a model.
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
