//! `a99 agent receive` and `a99 agent handle`: agents that run only while requests come.

use super::config::{AgentsFile, FILE};
use super::host::{Keyed, Signals, builder, settle, warn};
use super::net::{listener, over_http, read};
use super::place::resolved;
use super::program::Programs;
use super::report::Report;
use super::wire::Refusal;
use crate::args::{HandleArgs, ReceiveArgs, ReceiverArgs, StorePlace};
use crate::failure::{Exit, Failure};
use crate::input::{STDIN, name_of};
use crate::output;
use a99_push::codes::BAD_REGISTRATION;
use a99_push::function::Call;
use a99_push::reception::{Reception, ReceptionOptions, Reply};
use a99_push::signature::{Secret, Verifier};
use a99_push::transport::HttpTransport;
use a99_runtime::AgentError;
use a99_runtime_stores::StoreOptions;
use serde_json::Value as Json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The variable with the secret of the requests.
const SECRET: &str = "A99_PUSH_SECRET";

/// How long one request waits for the process of another.
const PATIENCE: Duration = Duration::from_secs(5);

/// Room for an event around a request's body: its characters may be escaped.
const EVENT: usize = 4;

/// The agents of a file, for requests.
struct Receiver {
    reception: Reception,
    programs: Programs,
    store: PathBuf,
    agents: usize,
    max_bytes: usize,
}

fn failure(error: AgentError) -> Failure {
    Refusal::from(error).failure()
}

/// The secrets of a file, or of the variable.
///
/// # Errors
/// No secret, or one of another form.
fn secrets(file: Option<&Path>) -> Result<Vec<Secret>, Failure> {
    let text = match file {
        Some(path) => String::from_utf8_lossy(&read(path)?).into_owned(),
        None => std::env::var(SECRET).unwrap_or_default(),
    };
    if text.trim().is_empty() {
        let text = "the requests of the channel server need a secret";
        let help = format!(
            "set {SECRET}, or name a file with `--secret-file`; `a99 channels push add` prints one"
        );
        return Err(Failure::coded(BAD_REGISTRATION, text, help));
    }
    let secrets = text.split_whitespace().map(Secret::parse);
    secrets.collect::<Result<_, _>>().map_err(failure)
}

impl Receiver {
    /// `idle` as in [`ReceptionOptions`].
    fn new(
        args: &ReceiverArgs,
        report: Report,
        idle: Duration,
        patience: Duration,
    ) -> Result<Receiver, Failure> {
        let config = args.config.clone().unwrap_or_else(|| FILE.into());
        let file = AgentsFile::read(&config, args.config.is_some())?;
        warn(&file, report);
        let store = args.store.clone();
        let store = store.unwrap_or_else(|| StorePlace::File(file.store.clone()));
        let store = match resolved(store) {
            StorePlace::File(path) => path,
            server @ StorePlace::Server(_) => {
                let text =
                    format!("--store: a receiver keeps its agents in a file, not at {server}");
                return Err(Failure::usage(text));
            }
        };
        let verifier = Verifier::new(secrets(args.secret_file.as_deref())?).map_err(failure)?;
        let transport = over_http(&args.channels, &args.token)?;
        let transport = HttpTransport::new(transport).map_err(failure)?;
        let programs = Programs::prepare(&file.agents)?;
        let keys = file
            .keys()
            .map(|(key, spec)| (key.clone(), Arc::clone(spec)));
        let keys: Arc<Keyed> = Arc::new(keys.collect());
        let options = ReceptionOptions {
            store_options: StoreOptions {
                durability: args.durability.map_or(file.durability, Into::into),
                refuses_copies: !args.moved,
                ..StoreOptions::default()
            },
            request_time: args.request_time,
            drain: args.drain,
            idle,
            patience,
            agents: Some(keys.iter().map(|(key, _)| key.clone()).collect()),
            ..ReceptionOptions::new(&store)
        };
        let (agents, max_bytes) = (keys.len(), options.max_body_bytes);
        let (add, keep_turns) = (Arc::new(programs.adder()), file.keep_turns);
        let build = move |store, transport: HttpTransport| -> a99_push::reception::Building {
            let (keys, add) = (Arc::clone(&keys), Arc::clone(&add));
            Box::pin(async move {
                let settled = settle(&store, &transport, &keys).await;
                settled.map_err(|refusal| AgentError::new(refusal.code, refusal.message))?;
                Ok(add(builder(keep_turns, report)))
            })
        };
        Ok(Receiver {
            reception: Reception::preparing(options, transport, verifier, build),
            programs,
            store,
            agents,
            max_bytes,
        })
    }

    /// Lets turns that go on end, and closes the store.
    async fn close(self) {
        self.reception.close().await;
        self.programs.close();
    }
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| Failure::about("cannot start the runtime", error))
}

pub(crate) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let report = Report { is_json: args.json };
    runtime()?.block_on(async {
        let receiver = Receiver::new(&args.receiver, report, args.idle, Duration::ZERO)?;
        let mut signals = Signals::new()?;
        let limits = a99_server::Limits {
            // The receiver answers what is just too large.
            max_body_bytes: receiver.max_bytes + (1 << 16),
            ..a99_server::Limits::default()
        };
        let listener = listener(args.listen, &args.listening, limits).await?;
        let store = name_of(&receiver.store);
        let members = [
            ("store", store.as_str().into()),
            ("pid", std::process::id().into()),
            ("agents", receiver.agents.into()),
        ];
        report.did("started", &members);
        report.did("listening", &[("address", listener.url().into())]);
        let served = listener.serve(receiver.reception.router(), async move {
            signals.end().await;
        });
        served.await.map_err(|error| {
            Failure::coded(error.code().name(), error.to_string(), error.help())
        })?;
        let within = format!("{:?}", args.receiver.drain);
        report.did("stopping", &[("within", within.into())]);
        // Signals from now on.
        let mut again = Signals::new()?;
        tokio::select! {
            () = receiver.close() => report.did("stopped", &[("store", store.into())]),
            () = again.end() => std::process::exit(i32::from(Exit::Aborted.code())),
        }
        Ok(Exit::Ok)
    })
}

/// A request, at most as long as it may be; `None` for a longer one.
fn bounded(path: &Path, most: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let got = match path == Path::new(STDIN) {
        true => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    match got {
        Ok(count) => Ok((count <= most).then_some(bytes)),
        Err(error) => Err(Failure::of_file(&name_of(path), path, &error)),
    }
}

/// The call that a platform hands over; `None` if it is too large.
fn called(args: &HandleArgs, most: usize) -> Result<Option<Call>, Failure> {
    if !args.cgi {
        let event = bounded(&args.request, most.saturating_mul(EVENT))?;
        let call = event.map(|event| Call::of_event(&event)).transpose();
        return call.map_err(failure);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let length = variable("CONTENT_LENGTH").and_then(|length| length.parse().ok());
    // A server may keep standard input open behind the body.
    let length: usize = length.unwrap_or(most);
    if length > most {
        return Ok(None);
    }
    let mut body = Vec::new();
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    let got = std::io::stdin().lock().take(limit).read_to_end(&mut body);
    got.map_err(|error| Failure::of_file(&name_of(Path::new(STDIN)), Path::new(STDIN), &error))?;
    Ok(Some(Call::of_cgi(variable, body)))
}

pub(crate) fn handle(args: &HandleArgs) -> Result<Exit, Failure> {
    let report = Report { is_json: false };
    runtime()?.block_on(async {
        let receiver = Receiver::new(&args.receiver, report, Duration::ZERO, PATIENCE)?;
        let reply = match called(args, receiver.max_bytes)? {
            Some(call) => receiver.reception.call(call).await,
            None => Reply::too_large(receiver.max_bytes),
        };
        match args.cgi {
            true => output::bytes(&reply.cgi()),
            false => output::out(&format!("{}\n", reply.event())),
        }
        receiver.close().await;
        if reply.status < 400 {
            return Ok(Exit::Ok);
        }
        let body: Json = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |member: &str| body["error"][member].as_str().unwrap_or_default();
        let refusal = Refusal::new(text("code"), text("message"));
        let refusal = match text("code") {
            // Of the agents or of their channels.
            "store.unavailable" => {
                refusal.helped("see that the channel server runs, and that the disk has room")
            }
            _ if text("help").is_empty() => refusal,
            _ => refusal.helped(text("help")),
        };
        refusal.failure().show();
        Ok(Exit::Error)
    })
}
