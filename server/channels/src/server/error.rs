//! Refusals: why a request has no result.

use super::metrics::RefusedCode;
use crate::codes::{BAD_REQUEST, TOO_LARGE, TOO_MANY};
use a99_frame::{FrameError, WireError};
use a99_runtime::AgentError;
use a99_runtime_engine::{KeyError, StoreCode, StoreError};
use a99_server::{ApiError, ServerError};
use axum::response::{IntoResponse, Response};
use http::StatusCode;

/// Why a request has no result.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) WireError);

impl Refusal {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Refusal {
        Refusal(WireError {
            code: code.to_owned(),
            message: message.into(),
            is_final: true,
            ..WireError::default()
        })
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Refusal {
        self.0.help = Some(help.into());
        self
    }

    /// A limit that another moment may allow.
    pub(super) fn busy(message: impl Into<String>) -> Refusal {
        let mut refusal = Refusal::new(TOO_MANY, message);
        refusal.0.is_final = false;
        refusal
    }

    fn status(&self) -> StatusCode {
        match self.0.code.as_str() {
            "server.unauthorized" | "server.token_expired" => StatusCode::UNAUTHORIZED,
            "server.forbidden" => StatusCode::FORBIDDEN,
            TOO_MANY => StatusCode::TOO_MANY_REQUESTS,
            "store.changed_body" | "handle-conflict" => StatusCode::CONFLICT,
            "store.too_large" | TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
            "provider-not-found" | "method-not-found" | "store.not_found" => StatusCode::NOT_FOUND,
            "timeout" => StatusCode::GATEWAY_TIMEOUT,
            _ if self.0.is_final => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Refusal {
        let mut wire = WireError::from(&error);
        if wire.code == a99_runtime::codes::CHANGED_BODY {
            // The code of turns, which clients do not have.
            StoreCode::ChangedBody.name().clone_into(&mut wire.code);
            wire.is_final = true;
        }
        Refusal(wire)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        AgentError::from(error).into()
    }
}

impl From<KeyError> for Refusal {
    fn from(error: KeyError) -> Refusal {
        AgentError::from(error).into()
    }
}

impl From<ServerError> for Refusal {
    fn from(error: ServerError) -> Refusal {
        Refusal::new(error.code().name(), error.to_string()).help(error.help())
    }
}

impl From<FrameError> for Refusal {
    fn from(error: FrameError) -> Refusal {
        let code = match error {
            FrameError::TooLarge(_) => TOO_LARGE,
            _ => BAD_REQUEST,
        };
        Refusal::new(code, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let help = self.0.help.unwrap_or_default();
        let code = RefusedCode(self.0.code.clone());
        let error = ApiError::new(status, self.0.code, self.0.message, help);
        let mut response = error.into_response();
        response.extensions_mut().insert(code);
        response
    }
}
