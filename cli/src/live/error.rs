//! Errors of stores, hosts and the socket as failures of the command.

use super::wire::Refusal;
use crate::failure::{Failure, USAGE};
#[cfg(feature = "server")]
use a99_push::codes::ALL as PUSH;
use a99_runtime::AgentError;
use a99_runtime_engine::StoreError;

/// The host sent an invalid answer, closed the connection, or does not respond.
pub(crate) const NO_ANSWER: &str = "cli.no_answer";
/// The command needs a running host.
pub(crate) const NO_HOST: &str = "cli.no_host";
/// A request is invalid.
pub(crate) const BAD_REQUEST: &str = "cli.bad_request";
/// The host has too many clients of this kind.
pub(crate) const BUSY: &str = "cli.busy";
/// The agent does not exist.
pub(crate) const UNKNOWN: &str = "cli.unknown_agent";
/// A change of a checkpoint is invalid.
pub(crate) const BAD_CHECKPOINT: &str = "cli.bad_checkpoint";
/// The turn is not among the kept ones.
pub(crate) const NOT_KEPT: &str = "cli.turn_not_kept";
/// A turn became a dead letter.
pub(crate) const GIVEN_UP: &str = "cli.given_up";
/// An agent did not handle an event for it: it could not start, or stopped.
pub(crate) const FAILED: &str = "cli.agent_failed";
/// The agents were not done in time.
pub(crate) const NOT_DONE: &str = "cli.not_done";

/// Codes of other crates, as static strings: a failure needs a static code.
const KNOWN: &[&str] = &[
    NO_ANSWER,
    NO_HOST,
    BAD_REQUEST,
    BUSY,
    UNKNOWN,
    BAD_CHECKPOINT,
    NOT_KEPT,
    GIVEN_UP,
    FAILED,
    NOT_DONE,
    "agent.bad_key",
    "agent.not_registered",
    "agent.unknown",
    "handle-conflict",
    "host.stopping",
    "program.missing",
    "provider-not-found",
    "store.changed_body",
    "store.conflict",
    "store.copied",
    "store.fenced",
    "store.in_doubt",
    "store.input",
    "store.locked",
    "store.not_found",
    "store.too_large",
    "store.unavailable",
    "store.unreadable",
    "channels.bad_frame",
    "channels.bad_request",
    "channels.bad_server",
    "channels.beyond_head",
    "channels.event_too_large",
    "channels.late",
    "channels.lost",
    "channels.not_joined",
    "channels.protocol",
    "channels.too_many",
    "execution-error",
    "cli.missing_feature",
    "postgres.busy",
    "postgres.config",
    "postgres.corrupt",
    "postgres.denied",
    "postgres.failed",
    "postgres.foreign",
    "postgres.full",
    "postgres.in_doubt",
    "postgres.login",
    "postgres.newer",
    "postgres.not_found",
    "postgres.old_server",
    "postgres.read_only",
    "postgres.timeout",
    "postgres.tls",
    "postgres.too_many_connections",
    "postgres.unreachable",
    "method-not-found",
    "server.forbidden",
    "server.token_expired",
    "server.unauthorized",
    "server.wrong_host",
    "timeout",
    "config.syntax",
    "config.unknown_key",
    "config.bad_value",
];

#[cfg(not(feature = "server"))]
const PUSH: [&str; 0] = [];

impl Refusal {
    /// Adds help.
    pub(super) fn helped(self, help: impl Into<String>) -> Refusal {
        Refusal {
            help: Some(help.into()),
            ..self
        }
    }

    pub(super) fn failure(self) -> Failure {
        let known = KNOWN.iter().chain(&PUSH).find(|known| **known == self.code);
        let help = self.help.unwrap_or_else(|| help(&self.code).to_owned());
        Failure::coded(known.copied().unwrap_or(USAGE[0]), self.message, help)
    }

    /// A failure as a refusal, for another process.
    pub(super) fn of(failure: &Failure) -> Refusal {
        let json = failure.to_json();
        let error = json.get("error");
        let member = |name: &str| {
            let text = error?.get(name)?.as_text()?;
            Some(text.to_string_lossy().into_owned())
        };
        let (text, advice) = failure.told();
        Refusal {
            code: member("code").unwrap_or_else(|| USAGE[0].to_owned()),
            message: text,
            help: Some(advice).filter(|advice| !advice.is_empty()),
            exit: None,
            output: None,
        }
    }
}

/// Default help for an error without help.
fn help(code: &str) -> &'static str {
    match code {
        "store.locked" => "end that process, or name another file with `--store FILE`",
        "store.unreadable" => {
            "put a backup of the file in its place; `a99 agent checkpoint KEY --set N` sets an \
             agent back that is beyond its log"
        }
        "store.copied" => {
            "host the other one; or take this one: `a99 agent host --moved`, once, with the same \
             `--store` or `--config`"
        }
        "store.changed_body" => "give another `--key`: this one names another message",
        "store.not_found" => "make the folder first, or name another file with `--store FILE`",
        "store.unavailable" => "see that the disk has room and the file may be written",
        "channels.lost" | "channels.late" => "see that the server runs: `a99 channels serve`",
        "channels.bad_server" => "write one as ws://127.0.0.1:7420 or wss://channels.example.com",
        "push.bad_registration" => "see `a99 channels push add --help`",
        "push.bad_answer" => {
            "see that a channel server answers there; registrations need its option `--push FILE`"
        }
        "push.bad_request" => "`a99 agent handle --help` describes requests",
        "push.bad_signature" => {
            "requests come from a channel server that has the secret: `a99 channels push add`"
        }
        "push.old_timestamp" => "see that the clocks of both machines are right",
        "push.not_owner" => "another process has the agents: send the request again later",
        "push.unknown_agent" => "`a99 channels push add` registers an agent",
        "agent.unknown" => "name it in agents.toml, or register another",
        "agent.bad_key" => "write AGENT/CHANNEL/HANDLE, as in `echo/general/echo`",
        "server.unauthorized" | "server.token_expired" | "server.forbidden" => {
            "`a99 token list` shows what tokens allow, `a99 token new` makes one"
        }
        _ => "see `a99 agent --help`",
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::new(error.code().name(), error.to_string())
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Refusal {
        Refusal::new(error.code(), error.to_string())
    }
}
