//! Host atoms with rules that the oracle does not know: shells, models, turns of agents. It
//! resolves their inputs and knows their errors without a grant. A run that reaches a granted
//! one is not judged: recorded vectors judge those.

use super::machine::{Machine, ScopeRef};
use super::steps::Node;
use super::value::{Fail, OVal, Res};

/// The required method, the inputs in order of resolution, and the error without a grant.
type Row = (&'static str, &'static [&'static str], &'static str);

const SHELL: &str = "Capability 'shell' missing";
const TURN: &str = "Capability 'agentTurn' missing";

fn row(op: &str) -> Option<Row> {
    Some(match op {
        "llmChat" => (
            "ai.generate",
            &[
                "prompt",
                "messages",
                "tools",
                "system",
                "toolChoice",
                "responseFormat",
                "model",
                "role",
                "maxTokens",
                "temperature",
                "seed",
                "stop",
                "topP",
                "effort",
                "repair",
            ],
            "Capability 'ai' missing",
        ),
        "shellExec" => (
            "shell.exec",
            &["command", "cwd", "env", "stdin", "timeoutMs", "encoding"],
            SHELL,
        ),
        "shellWriteFile" => (
            "shell.writeFile",
            &["path", "content", "encoding", "mode"],
            SHELL,
        ),
        "shellReadFile" => ("shell.readFile", &["path", "encoding", "maxBytes"], SHELL),
        "agentState" | "agentSettings" | "agentIdentity" => ("agentTurn.state", &[], TURN),
        "agentSetState" => ("agentTurn.state", &["state", "replace"], TURN),
        "agentSetSettings" => ("agentTurn.state", &["settings"], TURN),
        "agentSend" => (
            "agentTurn.state",
            &[
                "content",
                "replyTo",
                "at",
                "contentType",
                "metadata",
                "partial",
            ],
            TURN,
        ),
        "agentUpdate" => (
            "agentTurn.state",
            &["id", "content", "contentType", "complete"],
            TURN,
        ),
        "agentFail" => ("agentTurn.state", &["id", "error", "code"], TURN),
        "agentPublish" => ("agentTurn.state", &["type", "payload", "persist"], TURN),
        "agentSetTimer" => (
            "agentTurn.state",
            &["name", "at", "after", "cron", "zone", "payload"],
            TURN,
        ),
        "agentCancelTimer" => ("agentTurn.state", &["name"], TURN),
        "agentRoster" => ("agentTurn.state", &[], TURN),
        "agentCallMethod" => (
            "agentTurn.state",
            &["to", "method", "args", "timeoutMs"],
            TURN,
        ),
        "agentMethodResult" => ("agentTurn.state", &["callId", "content", "progress"], TURN),
        "agentInvite" => ("agentTurn.state", &["agent", "handle", "config"], TURN),
        "agentRemove" => ("agentTurn.state", &["agent", "handle"], TURN),
        "agentStorageExec" => ("agentTurn.state", &["sql"], TURN),
        "agentStorageRun" | "agentStorageGet" | "agentStorageQuery" => {
            ("agentTurn.state", &["sql", "params"], TURN)
        }
        _ => return None,
    })
}

/// True for one of these atoms.
pub(super) fn is_of_host(op: &str) -> bool {
    row(op).is_some()
}

impl Machine<'_> {
    /// Runs such an atom: the error of a missing grant, or the end of judging.
    pub(super) fn host_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let Some((method, keys, missing)) = row(op) else {
            return Err(self.not_judged(op));
        };
        let inputs = self.inputs(keys, node, scope)?;
        if self.host.provides(method) {
            return Err(self.not_judged(op));
        }
        if op == "llmChat" {
            inputs.iter().try_for_each(|v| self.export(v).map(drop))?;
        }
        Err(self.missing(missing))
    }

    /// Ends the run at an atom whose rules the oracle does not know.
    pub(super) fn not_judged(&mut self, op: &str) -> Fail {
        self.not_judged.get_or_insert_with(|| op.to_owned());
        self.aborted()
    }
}
