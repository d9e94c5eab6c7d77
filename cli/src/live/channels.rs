//! `a99 channels`: serves channels, and reaches those of a server.

use super::host::{LOOK, Signals};
use super::net::{Network, connect};
use super::otlp::Spans;
use super::place::{Place, resolved};
use super::report::Report;
use super::wire::Refusal;
use super::{line, push, remote, runtime, show};
use crate::args::{
    ChannelCallArgs, ChannelLogsArgs, ChannelSendArgs, ChannelsArgs, ChannelsCommand, ServeArgs,
};
use crate::failure::{Exit, Failure};
use crate::output;
use a99_channels::wire::{Call, Publish};
use a99_runtime::{AgentError, Body, Event, Host, LogEntry, Message};
use a99_runtime_engine::StoreCode;
use a99_runtime_stores::{RuntimeStore, StoreOptions};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(args: &ChannelsArgs) -> Result<Exit, Failure> {
    match &args.command {
        ChannelsCommand::Serve(args) => serve(args),
        ChannelsCommand::Send(args) => runtime()?.block_on(send(args)),
        ChannelsCommand::Logs(args) => runtime()?.block_on(logs(args)),
        ChannelsCommand::Call(args) => runtime()?.block_on(call(args)),
        ChannelsCommand::Inspect(args) => runtime()?.block_on(remote::inspect(args)),
        ChannelsCommand::Push(args) => runtime()?.block_on(push::run(args)),
    }
}

fn failure(error: AgentError) -> Failure {
    Refusal::from(error).failure()
}

fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    let report = Report { is_json: args.json };
    let place = resolved(args.store.clone());
    let options = StoreOptions {
        durability: args.durability.into(),
        refuses_copies: !args.moved,
        ..StoreOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let network = Network::at(args.listen, &args.listening).await?;
        let store = Place::own(&place, None, &options).await;
        let store = Arc::new(store.map_err(Refusal::failure)?);
        let spans = Spans::start(args.otlp.as_deref(), "a99-channels", report)?;
        let host = spans
            .of(Host::builder())
            .logger(move |entry: &LogEntry<'_>| report.entry(entry))
            .start(Arc::clone(&store));
        let host = host.await.map_err(failure)?;
        let members = [
            ("store", place.to_string().into()),
            ("pid", std::process::id().into()),
        ];
        report.did("started", &members);
        let served = network.serve(&host, report)?;
        let lost = loop {
            tokio::select! {
                () = signals.end() => break None,
                () = tokio::time::sleep(LOOK) => match store.check_owned().await {
                    Err(error)
                        if matches!(error.code(), StoreCode::NotFound | StoreCode::Fenced) =>
                    {
                        break Some(Refusal::from(error));
                    }
                    // An I/O error may be temporary.
                    Ok(()) | Err(_) => {}
                },
            }
        };
        served.stop().await;
        spans.stop().await;
        if let Some(refusal) = lost {
            return Err(refusal.failure());
        }
        host.drain(Duration::ZERO).await.map_err(failure)?;
        let closed = RuntimeStore::clone(&store).close();
        closed.map_err(|error| Refusal::from(error).failure())?;
        report.did("stopped", &[("store", place.to_string().into())]);
        Ok(Exit::Ok)
    })
}

async fn send(args: &ChannelSendArgs) -> Result<Exit, Failure> {
    let server = &args.server;
    let client = connect(&server.at).await?;
    let publish = Publish {
        channel: server.channel.clone(),
        body: Body::Message(Message::text(super::send::text(&args.text)?)),
        participant: None,
        key: args.key.clone(),
        persist: true,
        attachments: Vec::new(),
    };
    let sent = client.publish(publish, Vec::new()).await.map_err(failure)?;
    match server.at.json {
        true => line(&json!({"ok": true, "seq": sent.seq, "id": sent.id, "isNew": sent.is_new})),
        false => {
            let seq = sent.seq.unwrap_or_default();
            let what = if sent.is_new { "sent" } else { "sent before" };
            output::note(what, &format!("event {seq} of {}", server.channel));
        }
    }
    Ok(Exit::Ok)
}

async fn logs(args: &ChannelLogsArgs) -> Result<Exit, Failure> {
    let server = &args.server;
    let client = connect(&server.at).await?;
    let channel = json!({"channel": server.channel});
    let head: u64 = client.request("head", &channel).await.map_err(failure)?;
    if args.after >= head && !args.follow {
        return Ok(Exit::Ok);
    }
    let events = client.subscribe(&server.channel, Some(args.after), args.follow);
    let mut events = events.await.map_err(failure)?;
    while args.follow || events.cursor() < head {
        let event = events.next().await.map_err(failure)?;
        print(&event, server.at.json);
    }
    Ok(Exit::Ok)
}

fn print(event: &Event, is_json: bool) {
    let event = serde_json::to_value(event).unwrap_or_default();
    match is_json {
        true => line(&event),
        false => output::out(&show::event(&event).unwrap_or_default()),
    }
}

async fn call(args: &ChannelCallArgs) -> Result<Exit, Failure> {
    let server = &args.server;
    let parsed: Result<Json, _> = serde_json::from_str(&args.args);
    let parsed = parsed.map_err(|error| Failure::about("the arguments", error))?;
    let client = connect(&server.at).await?;
    let call = Call {
        channel: server.channel.clone(),
        provider: args.handle.clone(),
        method: args.method.clone(),
        args: parsed,
        participant: None,
        call_id: None,
        timeout_ms: args.timeout.map(crate::duration::milliseconds),
    };
    let answer = client.call(call).await.map_err(failure)?;
    match server.at.json {
        true => line(&json!({"ok": true, "answer": answer})),
        false => line(&answer),
    }
    Ok(Exit::Ok)
}
