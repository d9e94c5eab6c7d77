//! Inspector: a page that shows channels and agents, and the routes that only it needs.

use super::error::Refusal;
use super::requests::allow;
use super::rest::{JsonBody, Token};
use super::{ChannelServer, Inner};
use a99_frame::WireError;
use a99_runtime::{AgentKey, Trigger};
use a99_runtime_engine::BoxFuture;
use a99_server::{Action, NewToken, Scopes};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderName, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The path of the page.
const PATH: &str = "/inspect";

/// How long a code of a link is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

/// How long the token is valid that a code is exchanged for.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// The page runs its script and has its style; whatever else a program smuggles in is inert, and
/// Trusted Types refuse HTML made of texts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The files of the page: path, media type, content.
const FILES: [(&str, &str, &str); 4] = [
    (
        PATH,
        "text/html; charset=utf-8",
        include_str!("../inspector/page.html"),
    ),
    (
        "/inspect/page.css",
        "text/css; charset=utf-8",
        include_str!("../inspector/page.css"),
    ),
    (
        "/inspect/page.js",
        "text/javascript; charset=utf-8",
        include_str!("../inspector/page.js"),
    ),
    (
        "/inspect/agents.js",
        "text/javascript; charset=utf-8",
        include_str!("../inspector/agents.js"),
    ),
];

/// The fate of an agent's dead letters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetters {
    /// The agent handles them again.
    Retry,
    /// They are discarded.
    Drop,
}

/// What only a host of agents knows and does. A server without agents has none.
pub trait Operator: Send + Sync {
    /// Number of events that wait in the outbox of the host, up to a limit of the host.
    fn outbox(&self) -> BoxFuture<'_, Result<usize, WireError>>;

    /// The triggers of an agent's kept turns, oldest first.
    fn turns<'a>(&'a self, agent: &'a AgentKey) -> BoxFuture<'a, Result<Vec<Trigger>, WireError>>;

    /// What a kept turn did; `None` if it is not kept.
    fn turn<'a>(
        &'a self,
        agent: &'a AgentKey,
        trigger: &'a Trigger,
    ) -> BoxFuture<'a, Result<Option<Value>, WireError>>;

    /// Changes the dead letters of an agent while it sleeps.
    fn dead_letters<'a>(
        &'a self,
        agent: &'a AgentKey,
        action: DeadLetters,
    ) -> BoxFuture<'a, Result<Value, WireError>>;
}

/// The page of a server, and who may open it without a token of the file.
#[derive(Default)]
pub struct Inspector {
    is_on: OnceLock<()>,
    operator: OnceLock<Arc<dyn Operator>>,
    link: Mutex<Option<Link>>,
}

struct Link {
    code: String,
    until: Instant,
    scopes: Scopes,
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on = self.is_on.get().is_some();
        f.debug_struct("Inspector")
            .field("is_on", &is_on)
            .finish_non_exhaustive()
    }
}

impl Inspector {
    /// Serves the page.
    pub fn turn_on(&self) {
        self.is_on.get_or_init(|| ());
    }

    /// Gives the page what only a host of agents knows. Only the first call has an effect.
    pub fn operate(&self, operator: Arc<dyn Operator>) {
        self.operator.get_or_init(|| operator);
    }

    /// A path with a code that opens the page once, within a minute. An earlier code ends.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn link(&self, may_write: bool) -> Result<String, WireError> {
        let mut random = [0; 32];
        let refused = |message: String| Refusal::new("server.tokens_file", message).0;
        getrandom::fill(&mut random).map_err(|error| refused(error.to_string()))?;
        let code: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let scopes: &[&str] = match may_write {
            true => &["read:*", "inspect:*", "write:*"],
            false => &["read:*", "inspect:*"],
        };
        let scopes = Scopes::parse(scopes).map_err(|error| refused(error.to_string()))?;
        let path = format!("{PATH}#code={code}");
        let until = Instant::now() + CODE_LIFETIME;
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *link = Some(Link {
            code,
            until,
            scopes,
        });
        Ok(path)
    }

    /// Takes the code of the link: it has no second use. A wrong code leaves it.
    fn take(&self, code: &str) -> Option<Scopes> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.take_if(|link| Instant::now() >= link.until);
        // Independent of how many bytes are right.
        let is_code = |link: &Link| {
            let pairs = link.code.bytes().zip(code.bytes());
            let differs = pairs.fold(0, |differs, (is, was)| differs | (is ^ was));
            link.code.len() == code.len() && differs == 0
        };
        link.take_if(|link| is_code(link)).map(|link| link.scopes)
    }
}

pub(super) fn routes() -> Router<ChannelServer> {
    let mut router = Router::new()
        .route("/inspect/session", post(session))
        .route("/v1/agents/{*key}", get(agent))
        .route("/v1/turns", get(turns))
        .route("/v1/dead-letters", post(dead_letters));
    for (path, kind, content) in FILES {
        let file =
            async move |State(server): State<ChannelServer>| match server.0.inspector.is_on.get() {
                Some(()) => file(kind, content),
                None => StatusCode::NOT_FOUND.into_response(),
            };
        router = router.route(path, get(file));
    }
    router
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers: [(HeaderName, &str); 6] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, content).into_response()
}

/// Parameters of `/inspect/session`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

/// Exchanges the code of the link for a token.
async fn session(
    State(server): State<ChannelServer>,
    JsonBody(asked): JsonBody<Code>,
) -> Result<impl IntoResponse, Refusal> {
    let scopes = server.0.inspector.take(&asked.code).ok_or_else(|| {
        let message = "the code of the link was used, or is older than a minute";
        let help =
            "start the server again, or open `/inspect` with a token: `a99 token new` creates one";
        Refusal::new("server.unauthorized", message).help(help)
    })?;
    let new = NewToken {
        name: "inspector".to_owned(),
        scopes,
        lifetime: Some(SESSION_LIFETIME),
    };
    let token = server.0.authority.issue_in_memory(&new)?;
    let headers = [(header::CACHE_CONTROL, "no-store")];
    Ok((headers, Json(json!({"token": token}))))
}

/// An agent of the host.
fn known(server: &Inner, key: &str) -> Result<AgentKey, Refusal> {
    let key: AgentKey = key.parse()?;
    match server.host.agents().contains(&key) {
        true => Ok(key),
        false => Err(Refusal::new(
            "store.not_found",
            format!("{key} is no agent of this host"),
        )),
    }
}

fn operator(server: &Inner) -> Result<&Arc<dyn Operator>, Refusal> {
    server.inspector.operator.get().ok_or_else(|| {
        let message = "this server hosts no agents: their hosts know turns and dead letters";
        Refusal::new("store.not_found", message)
    })
}

/// The status of an agent.
async fn agent(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    Path(key): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let key: AgentKey = key.parse()?;
    allow(&grant, Action::Inspect, key.channel())?;
    let key = known(&server.0, key.as_str())?;
    let info = server.0.host.inspect(&key).await?;
    let mut status = serde_json::to_value(info).unwrap_or_default();
    if let Some(operator) = server.0.inspector.operator.get() {
        status["outbox"] = operator.outbox().await.map_err(Refusal)?.into();
    }
    Ok(Json(status))
}

/// Parameters of `/v1/turns`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turns {
    agent: AgentKey,
    #[serde(default)]
    turn: Option<String>,
}

/// The kept turns of an agent, or what one of them did.
async fn turns(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    asked: Result<Query<Turns>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    allow(&grant, Action::Inspect, asked.agent.channel())?;
    let key = known(&server.0, asked.agent.as_str())?;
    let operator = operator(&server.0)?;
    let Some(turn) = asked.turn else {
        let turns = operator.turns(&key).await.map_err(Refusal)?;
        let turns: Vec<String> = turns.iter().map(ToString::to_string).collect();
        return Ok(Json(json!({"turns": turns})));
    };
    let turn: Trigger = turn.parse()?;
    let found = operator.turn(&key, &turn).await.map_err(Refusal)?;
    found.map(Json).ok_or_else(|| {
        let message = format!("the turn {turn} of {key} is not kept");
        Refusal::new("store.not_found", message)
    })
}

/// Parameters of `/v1/dead-letters`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    agent: AgentKey,
    action: DeadLetters,
}

/// Retries or drops the dead letters of an agent.
async fn dead_letters(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Change>,
) -> Result<Json<Value>, Refusal> {
    allow(&grant, Action::Admin, asked.agent.channel())?;
    let key = known(&server.0, asked.agent.as_str())?;
    let operator = Arc::clone(operator(&server.0)?);
    // It ends although the client leaves.
    let change = tokio::spawn(async move { operator.dead_letters(&key, asked.action).await });
    let changed = change.await;
    let changed = changed.map_err(|error| Refusal::new("execution-error", error.to_string()))?;
    Ok(Json(changed.map_err(Refusal)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_ends_after_a_minute() {
        let inspector = Inspector::default();
        for (age, is_valid) in [(59, true), (61, false)] {
            let path = inspector.link(false).expect("a link");
            let mut link = inspector.link.lock().expect("no panic");
            let until = &mut link.as_mut().expect("a link").until;
            *until = until.checked_sub(Duration::from_secs(age)).expect("a time");
            drop(link);
            let code = path.split('=').next_back().expect("a code");
            assert_eq!(inspector.take(code).is_some(), is_valid, "{age} s");
            assert!(inspector.take(code).is_none());
        }
    }
}
