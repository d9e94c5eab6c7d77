//! HTTP routes of a channel server, and `a99 channels inspect`: what a server says of its agents.

use super::net::{over_http, patiently};
use super::wire::Refusal;
use super::{line, show};
use crate::args::{ChannelInspectArgs, ServerArgs};
use crate::failure::{Exit, Failure};
use crate::output;
use a99_push::api::{Api, encoded};
use a99_runtime::AgentKey;
use serde_json::{Value as Json, json};

/// A server that is reached over HTTP.
pub(super) struct Server<'a> {
    address: &'a str,
    api: Api,
}

impl Server<'_> {
    /// # Errors
    /// No token; an address that no token may go to.
    pub(super) fn of(args: &ServerArgs) -> Result<Server<'_>, Failure> {
        let api = Api::new(over_http(&args.address, &args.token)?);
        let address = &args.address;
        let api = api.map_err(|error| Refusal::from(error).failure())?;
        Ok(Server { address, api })
    }

    /// # Errors
    /// The server's.
    pub(super) async fn get(&self, path: &str) -> Result<Json, Refusal> {
        patiently(self.address, async || self.api.get(path).await).await
    }

    /// # Errors
    /// The server's.
    pub(super) async fn post(&self, path: &str, content: &Json) -> Result<Json, Refusal> {
        let post = async || self.api.post(path, content, &[]).await;
        patiently(self.address, post).await
    }

    async fn status(&self, key: &str) -> Result<Json, Refusal> {
        let status = self.get(&format!("/v1/agents/{}", encoded(key))).await;
        status.map_err(|refusal| match refusal.code.as_str() {
            "store.not_found" => refusal.helped(format!(
                "`a99 channels inspect {}` lists its agents; a host elsewhere shows its own with \
                 `a99 agent inspect`",
                self.address
            )),
            _ => refusal,
        })
    }

    /// The last kept turns of an agent, oldest first.
    async fn turns(&self, key: &str, most: usize) -> Result<Vec<Json>, Refusal> {
        let path = format!("/v1/turns?agent={}", encoded(key));
        let kept = self.get(&path).await?;
        let kept = kept["turns"].as_array().cloned().unwrap_or_default();
        let mut turns = Vec::new();
        for turn in &kept[kept.len().saturating_sub(most)..] {
            let name = turn.as_str().unwrap_or_default();
            match self.get(&format!("{path}&turn={}", encoded(name))).await {
                Ok(mut found) => {
                    found["turn"] = turn.clone();
                    turns.push(found);
                }
                // Newer turns took its place meanwhile.
                Err(refusal) if refusal.code == "store.not_found" => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(turns)
    }
}

/// An agent's key.
///
/// # Errors
/// `agent.bad_key`
pub(super) fn key(text: &str) -> Result<AgentKey, Failure> {
    text.parse().map_err(|error: a99_runtime::KeyError| {
        Refusal::new(error.code(), error.to_string()).failure()
    })
}

pub(super) async fn inspect(args: &ChannelInspectArgs) -> Result<Exit, Failure> {
    let server = Server::of(&args.server)?;
    match args.what.as_deref() {
        Some(agent) if agent.contains('/') => {
            let key = key(agent)?;
            one(&server, key.as_str(), args).await
        }
        channel => all(&server, channel, args).await,
    }
    .map_err(Refusal::failure)?;
    Ok(Exit::Ok)
}

async fn one(server: &Server<'_>, key: &str, args: &ChannelInspectArgs) -> Result<(), Refusal> {
    let mut status = server.status(key).await?;
    let turns = server.turns(key, args.turns).await?;
    if args.server.json {
        status["keptTurns"] = turns.into();
        line(&status);
        return Ok(());
    }
    output::out(&show::agent(&status));
    for turn in &turns {
        output::out(&show::turn(turn));
    }
    Ok(())
}

async fn all(
    server: &Server<'_>,
    channel: Option<&str>,
    args: &ChannelInspectArgs,
) -> Result<(), Refusal> {
    let found = server.get("/v1/agents").await?;
    let mut agents = Vec::new();
    for key in found["agents"].as_array().into_iter().flatten() {
        let key = key.as_str().unwrap_or_default();
        if channel.is_none() || key.split('/').nth(1) == channel {
            agents.push(server.status(key).await?);
        }
    }
    if args.server.json {
        line(&json!({"agents": agents}));
        return Ok(());
    }
    output::out(&show::list(&agents));
    match agents.first().map(|agent| &agent["outbox"]) {
        None => output::note(
            "note",
            "the server hosts no such agents; hosts elsewhere show theirs with `a99 agent inspect`",
        ),
        Some(Json::Number(waiting)) => {
            output::note(
                "outbox",
                &format!("{waiting} events wait for their channels"),
            );
        }
        Some(_) => {}
    }
    Ok(())
}
