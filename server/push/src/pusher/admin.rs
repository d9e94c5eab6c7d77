//! Requests that change the registrations of a pusher, for the listener of its channel server.

use super::{Pusher, Registration};
use crate::codes::{BAD_REGISTRATION, BAD_REQUEST};
use crate::signature::Secret;
use a99_runtime::{AgentError, AgentKey};
use a99_server::{Action, ApiError, Authority, ServerError};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The path of a request that registers an agent, or changes its registration.
pub const REGISTER: &str = "/v1/push/register";
/// The path of the list of registered agents.
pub const AGENTS: &str = "/v1/push/agents";
/// The path of a request that removes an agent.
pub const UNREGISTER: &str = "/v1/push/unregister";
/// The path of a request that pushes dead letters again.
pub const RETRY: &str = "/v1/push/retry";

#[derive(Clone)]
struct Admin {
    pusher: Pusher,
    authority: Authority,
}

/// A registration; a new secret is made for one without.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Register {
    agent: AgentKey,
    url: String,
    #[serde(default)]
    secret: Option<String>,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    ephemeral: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfAgent {
    agent: AgentKey,
}

/// Why a request is refused.
struct Refused(ApiError);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<ServerError> for Refused {
    fn from(error: ServerError) -> Refused {
        Refused(error.into())
    }
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Refused {
        let status = match error.code() {
            BAD_REGISTRATION => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refused(ApiError::new(
            status,
            error.code().to_owned(),
            error.to_string(),
            "",
        ))
    }
}

type Answered<T> = Result<Json<T>, Refused>;

impl Pusher {
    /// Routes that list and change the registrations. They need a token with the scope `admin`.
    pub fn router(&self, authority: Authority) -> Router {
        let pusher = self.clone();
        Router::new()
            .route(REGISTER, post(register))
            .route(AGENTS, get(agents))
            .route(UNREGISTER, post(unregister))
            .route(RETRY, post(retry))
            .with_state(Admin { pusher, authority })
    }
}

impl Admin {
    /// Parses a request, and refuses what its token does not allow.
    fn asked<T: DeserializeOwned>(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        agent: impl FnOnce(&T) -> &AgentKey,
    ) -> Result<T, Refused> {
        let grant = self.authority.check_header(headers)?;
        let parsed = serde_json::from_slice(body).map_err(|error| {
            let message = format!("the body: {error}");
            Refused(ApiError::new(
                StatusCode::BAD_REQUEST,
                BAD_REQUEST,
                message,
                "",
            ))
        })?;
        let channel = agent(&parsed).channel();
        match grant.allows(Action::Admin, channel) {
            true => Ok(parsed),
            false => Err(ServerError::forbidden(Action::Admin, channel).into()),
        }
    }
}

/// The answer to a registration. Only this one has the secret.
#[derive(Serialize)]
struct Registered {
    secret: String,
}

async fn register(
    State(admin): State<Admin>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered<Registered> {
    let asked: Register = admin.asked(&headers, &body, |asked: &Register| &asked.agent)?;
    let secret = match asked.secret {
        Some(secret) => secret,
        None => Secret::new()?.text(),
    };
    let registration = Registration {
        agent: asked.agent,
        url: asked.url,
        secret: secret.clone(),
        config: asked.config,
        types: asked.types,
        ephemeral: asked.ephemeral,
    };
    admin.pusher.add(registration).await?;
    Ok(Json(Registered { secret }))
}

async fn agents(State(admin): State<Admin>, headers: HeaderMap) -> Answered<Vec<super::Status>> {
    let grant = admin.authority.check_header(&headers)?;
    let mut all = admin.pusher.list().await?;
    all.retain(|status| grant.allows(Action::Admin, status.agent.channel()));
    Ok(Json(all))
}

async fn unregister(
    State(admin): State<Admin>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered<Value> {
    let asked: OfAgent = admin.asked(&headers, &body, |asked: &OfAgent| &asked.agent)?;
    let present = admin.pusher.remove(&asked.agent).await?;
    Ok(Json(json!({ "present": present })))
}

async fn retry(State(admin): State<Admin>, headers: HeaderMap, body: Bytes) -> Answered<Value> {
    let asked: OfAgent = admin.asked(&headers, &body, |asked: &OfAgent| &asked.agent)?;
    let present = admin.pusher.retry(&asked.agent);
    Ok(Json(json!({ "present": present })))
}
