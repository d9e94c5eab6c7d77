//! `a99 agent`: runs and controls long-lived agents.

use crate::args::{AgentArgs, AgentCommand};
use crate::failure::{Exit, Failure};

#[cfg(all(feature = "agent", unix))]
pub(crate) fn run(args: &AgentArgs) -> Result<Exit, Failure> {
    use crate::live;
    match &args.command {
        AgentCommand::New(args) => live::new::run(args),
        AgentCommand::Host(args) => live::host::run(args),
        #[cfg(feature = "server")]
        AgentCommand::Receive(args) => live::receive::run(args),
        #[cfg(feature = "server")]
        AgentCommand::Handle(args) => live::receive::handle(args),
        #[cfg(not(feature = "server"))]
        AgentCommand::Receive(_) => Err(Failure::missing_feature("`a99 agent receive`", "server")),
        #[cfg(not(feature = "server"))]
        AgentCommand::Handle(_) => Err(Failure::missing_feature("`a99 agent handle`", "server")),
        AgentCommand::Send(args) => live::send::run(args),
        AgentCommand::Call(args) => live::call::run(args),
        AgentCommand::Logs(args) => live::logs::run(args),
        AgentCommand::Inspect(args) => live::inspect::run(args),
        AgentCommand::Checkpoint(args) => live::checkpoint::run(args),
        AgentCommand::Replay(args) => live::replay::run(args),
        AgentCommand::Reload(args) => live::reload::run(args),
    }
}

/// Reports how to install the command.
#[cfg(not(all(feature = "agent", unix)))]
pub(crate) fn run(args: &AgentArgs) -> Result<Exit, Failure> {
    let name = match &args.command {
        AgentCommand::New(_) => "new",
        AgentCommand::Host(_) => "host",
        AgentCommand::Receive(_) => "receive",
        AgentCommand::Handle(_) => "handle",
        AgentCommand::Send(_) => "send",
        AgentCommand::Call(_) => "call",
        AgentCommand::Logs(_) => "logs",
        AgentCommand::Inspect(_) => "inspect",
        AgentCommand::Checkpoint(_) => "checkpoint",
        AgentCommand::Replay(_) => "replay",
        AgentCommand::Reload(_) => "reload",
    };
    Err(Failure::missing_feature(
        &format!("`a99 agent {name}`"),
        "agent",
    ))
}
