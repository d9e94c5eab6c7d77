//! Replies: what a request is answered with, and why one is refused.

use crate::codes::{BAD_SIGNATURE, NOT_OWNER, OLD, REPLAYED};
use crate::wire::Answer;
use a99_runtime::{AgentError, codes};
use a99_runtime_engine::StoreError;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use std::time::Duration;

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status: 200 if the work is done, 202 if it goes on.
    pub status: u16,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// The JSON of an [`Answer`], or of an error.
    pub body: Vec<u8>,
}

impl Reply {
    /// The reply to a request whose body has more than this many bytes.
    #[must_use]
    pub fn too_large(most: usize) -> Reply {
        super::too_large(most).reply()
    }

    pub(super) fn ok(answer: &Answer) -> Reply {
        Reply {
            status: if answer.retry_after.is_some() {
                202
            } else {
                200
            },
            retry_after: answer.retry_after.map(|after| after.div_ceil(1_000)),
            body: serde_json::to_vec(answer).unwrap_or_default(),
        }
    }

    pub(super) fn response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(after) = self.retry_after {
            let after = HeaderValue::from(after);
            response.headers_mut().insert(header::RETRY_AFTER, after);
        }
        response
    }
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    status: u16,
    code: String,
    message: String,
    help: &'static str,
    after: Option<Duration>,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            code: code.to_owned(),
            message: message.into(),
            help: "",
            after: None,
        }
    }

    pub(super) fn help(self, help: &'static str) -> Refusal {
        Refusal { help, ..self }
    }

    /// After how long another attempt may succeed.
    pub(super) fn after(self, after: Duration) -> Refusal {
        let after = Some(after);
        Refusal { after, ..self }
    }

    pub(super) fn reply(self) -> Reply {
        let error = json!({"code": self.code, "message": self.message, "help": self.help});
        Reply {
            status: self.status,
            retry_after: self.after.map(|after| after.as_secs().max(1)),
            body: json!({ "error": error }).to_string().into_bytes(),
        }
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Refusal {
        let message = error.to_string();
        match error.code() {
            // The store has another owner, or is about to have one.
            "store.locked" | "store.fenced" | "store.not_found" | codes::STOPPING => {
                let help = "send the request again later";
                let refusal = Refusal::new(503, NOT_OWNER, message).help(help);
                refusal.after(super::OWNED)
            }
            code @ (BAD_SIGNATURE | OLD) => Refusal::new(401, code, message),
            code @ (codes::HANDLE_CONFLICT | REPLAYED) => Refusal::new(409, code, message),
            code @ (codes::UNKNOWN_AGENT | codes::NOT_REGISTERED) => {
                Refusal::new(404, code, message)
            }
            code if error.is_final() => Refusal::new(400, code, message),
            code => Refusal::new(503, code, message).after(super::OWNED),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        AgentError::from(error).into()
    }
}
