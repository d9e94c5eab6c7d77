//! `a99 channels push`: agents whose events a server pushes.

use super::net::read;
use super::remote::{Server, key};
use super::wire::Refusal;
use super::{line, show};
use crate::args::{PushAddArgs, PushArgs, PushCommand, PushedArgs, ServerArgs};
use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::text::escape_for_terminal;
use a99_push::codes::UNKNOWN_AGENT;
use a99_push::pusher::{AGENTS, REGISTER, RETRY, UNREGISTER};
use a99_push::signature::Secret;
use serde_json::{Value as Json, json};

pub(super) async fn run(args: &PushArgs) -> Result<Exit, Failure> {
    match &args.command {
        PushCommand::Add(args) => add(args).await?,
        PushCommand::List(args) => list(args).await?,
        PushCommand::Remove(args) => change(args, UNREGISTER, "removed").await?,
        PushCommand::Retry(args) => change(args, RETRY, "retried").await?,
    }
    Ok(Exit::Ok)
}

async fn add(args: &PushAddArgs) -> Result<(), Failure> {
    let key = key(&args.agent)?;
    let mut asked = json!({
        "agent": key,
        "url": args.url,
        "types": args.types,
        "ephemeral": args.ephemeral,
    });
    if let Some(path) = &args.secret_file {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        let secret = Secret::parse(&text).map_err(|error| Refusal::from(error).failure())?;
        asked["secret"] = secret.text().into();
    }
    if let Some(settings) = &args.settings {
        asked["config"] = settings.object("--settings")?.to_json();
    }
    let answer = Server::of(&args.server)?.post(REGISTER, &asked).await;
    let answer = answer.map_err(Refusal::failure)?;
    // A secret of a file is known.
    let secret = answer["secret"]
        .as_str()
        .filter(|_| args.secret_file.is_none());
    if args.server.json {
        let mut said = json!({"ok": true, "agent": key});
        if let Some(secret) = secret {
            said["secret"] = secret.into();
        }
        line(&said);
        return Ok(());
    }
    output::note("registered", &format!("{key}, pushed to {}", args.url));
    if let Some(secret) = secret {
        output::out(&format!("{secret}\n"));
        output::note(
            "hint",
            "keep the secret for its receiver: it is not shown again",
        );
    }
    Ok(())
}

async fn list(args: &ServerArgs) -> Result<(), Failure> {
    let agents = Server::of(args)?.get(AGENTS).await;
    let agents = agents.map_err(Refusal::failure)?;
    if args.json {
        line(&json!({"agents": agents}));
        return Ok(());
    }
    let titles = ["AGENT", "URL", "ACKNOWLEDGED", "LAG", "DEAD", "LAST ERROR"];
    let mut rows = vec![titles.map(str::to_owned)];
    for agent in agents.as_array().into_iter().flatten() {
        let text = |json: &Json| escape_for_terminal(json.as_str().unwrap_or_default());
        let (dead, error) = (&agent["dead"], &agent["lastError"]);
        rows.push([
            text(&agent["agent"]),
            text(&agent["url"]),
            match agent["isReady"].as_bool() {
                Some(true) => agent["acknowledged"].to_string(),
                _ => "no init".to_owned(),
            },
            agent["lag"].to_string(),
            match dead.is_null() {
                true => "-".to_owned(),
                false => format!("{}-{}", dead["first"], dead["last"]),
            },
            match error.is_null() {
                true => "-".to_owned(),
                false => format!("{}: {}", text(&error[0]), text(&error[1])),
            },
        ]);
    }
    output::out(&show::table(&rows));
    Ok(())
}

/// Changes a registered agent.
async fn change(args: &PushedArgs, path: &str, did: &str) -> Result<(), Failure> {
    let key = key(&args.agent)?;
    let changed = Server::of(&args.server)?
        .post(path, &json!({"agent": key}))
        .await;
    let changed = changed.map_err(Refusal::failure)?;
    if changed["present"] != true {
        let text = format!("{key} is not registered at {}", args.server.address);
        let help = "`a99 channels push list` shows the registered agents";
        return Err(Refusal::new(UNKNOWN_AGENT, text).helped(help).failure());
    }
    match args.server.json {
        true => line(&json!({"ok": true, "agent": key})),
        false => output::note(did, key.as_str()),
    }
    Ok(())
}
