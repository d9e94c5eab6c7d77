//! Signed requests to a receiver.

use super::{Agent, Inner};
use crate::codes::BAD_ANSWER;
use crate::fed::locked;
use crate::request::{Lost, Response, send};
use crate::signature::{ID, SIGNATURE, TIMESTAMP};
use crate::wire::Answer;
use a99_http::{FetchCode, StreamRequest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// Why a request failed.
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) message: String,
    /// When the receiver wants the next attempt.
    pub(super) retry_after: Option<Duration>,
    /// Whether another attempt is of no use.
    pub(super) is_final: bool,
    pub(super) is_too_large: bool,
}

#[derive(Deserialize)]
struct Refused {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: String,
    message: String,
}

impl Failure {
    fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.into(),
            retry_after: None,
            is_final: false,
            is_too_large: false,
        }
    }

    fn of(answer: &Response) -> Failure {
        let failure = match serde_json::from_slice(&answer.body) {
            Ok(Refused { error }) => Failure::new(&error.code, error.message),
            Err(_) => {
                let message = format!("the receiver answers with status {}", answer.status);
                Failure::new(BAD_ANSWER, message)
            }
        };
        Failure {
            retry_after: answer.retry_after.map(Duration::from_secs),
            is_final: answer.status == 410,
            is_too_large: answer.status == 413,
            ..failure
        }
    }
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// A new id: each attempt has its own, so that a receiver takes it although it took the one
/// whose answer was lost. Sequence numbers make events unique.
fn fresh() -> Result<String, Failure> {
    let mut bytes = [0; 18];
    getrandom::fill(&mut bytes).map_err(|error| Failure::new(BAD_ANSWER, error.to_string()))?;
    Ok(format!("msg_{}", URL_SAFE_NO_PAD.encode(bytes)))
}

impl Inner {
    /// Sends a request, and notes how it ended.
    pub(super) async fn call(
        &self,
        agent: &Agent,
        path: &str,
        params: &impl Serialize,
    ) -> Result<Answer, Failure> {
        let called = self.send(agent, path, params).await;
        *locked(&agent.last_error) = match &called {
            Ok(_) => None,
            Err(failure) => Some((failure.code.clone(), failure.message.clone())),
        };
        called
    }

    async fn send(
        &self,
        agent: &Agent,
        path: &str,
        params: &impl Serialize,
    ) -> Result<Answer, Failure> {
        let url = locked(&agent.row).registration.url.clone();
        let url = format!("{}{path}", url.trim_end_matches('/'));
        let body = serde_json::to_vec(params)
            .map_err(|error| Failure::new(BAD_ANSWER, error.to_string()))?;
        let (id, timestamp) = (fresh()?, now() / 1_000);
        let signature = agent.secret.sign(&id, timestamp, &body);
        let request = StreamRequest::post(url, body)
            .header("content-type", "application/json")
            .header(ID, id)
            .header(TIMESTAMP, timestamp.to_string())
            .header(SIGNATURE, signature)
            .max_body_bytes(MAX_ANSWER);
        let answer = match send(&agent.fetch, request, self.options.timeout).await {
            Ok(answer) => answer,
            Err(Lost::Late) => return Err(Failure::new(BAD_ANSWER, Lost::Late.to_string())),
            Err(Lost::Fetch(error)) => {
                let code = error.code();
                let failure = Failure::new(BAD_ANSWER, error.to_string());
                let is_final = matches!(code, FetchCode::Denied | FetchCode::Url);
                let is_too_large = matches!(code, FetchCode::Body);
                return Err(Failure {
                    is_final,
                    is_too_large,
                    ..failure
                });
            }
        };
        if !matches!(answer.status, 200 | 202) {
            return Err(Failure::of(&answer));
        }
        let parsed: Result<Answer, _> = serde_json::from_slice(&answer.body);
        let mut parsed = parsed
            .map_err(|error| Failure::new(BAD_ANSWER, format!("the receiver's answer: {error}")))?;
        if answer.status == 202 && parsed.retry_after.is_none() {
            parsed.retry_after = Some(answer.retry_after.unwrap_or(1).saturating_mul(1_000));
        }
        Ok(parsed)
    }
}
