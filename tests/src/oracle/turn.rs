//! The turn of an agent that lives: atoms of ours, so the rules are those of their own
//! documentation (D91).

use super::machine::{Machine, ScopeRef};
use super::steps::Node;
use super::value::{OVal, Obj, Res, js};

/// Whether an atom is one of a turn.
pub(super) fn is_of_turn(op: &str) -> bool {
    parts(op).is_some()
}

/// Method, inputs, and whether something is given.
fn parts(op: &str) -> Option<(&'static str, &'static [&'static str], bool)> {
    Some(match op {
        "agentState" => ("agentTurn.state", &[], true),
        "agentSetState" => ("agentTurn.setState", &["state", "replace"], false),
        "agentSettings" => ("agentTurn.settings", &[], true),
        "agentSetSettings" => ("agentTurn.setSettings", &["settings"], false),
        "agentIdentity" => ("agentTurn.identity", &[], true),
        "agentSend" => (
            "agentTurn.send",
            &[
                "content",
                "replyTo",
                "at",
                "contentType",
                "metadata",
                "partial",
            ],
            true,
        ),
        "agentUpdate" => (
            "agentTurn.update",
            &["id", "content", "contentType", "complete"],
            false,
        ),
        "agentFail" => ("agentTurn.fail", &["id", "error", "code"], false),
        "agentPublish" => ("agentTurn.publish", &["type", "payload", "persist"], true),
        "agentSetTimer" => (
            "agentTurn.setTimer",
            &["name", "at", "after", "cron", "zone", "payload"],
            false,
        ),
        "agentCancelTimer" => ("agentTurn.cancelTimer", &["name"], false),
        "agentStorageExec" => ("agentTurn.storage", &["sql"], true),
        "agentStorageRun" | "agentStorageGet" | "agentStorageQuery" => {
            ("agentTurn.storage", &["sql", "params"], true)
        }
        _ => return None,
    })
}

impl Machine<'_> {
    pub(super) fn turn_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let Some((method, keys, gives)) = parts(op) else {
            return Ok(OVal::Undef);
        };
        let mut args = self.inputs(keys, node, scope)?;
        if !self.host.provides("agentTurn.state") {
            return Err(self.missing("Capability 'agentTurn' missing"));
        }
        if !self.host.provides(method) {
            return Err(self.missing("Capability 'agentTurn.storage' missing"));
        }
        match op {
            "agentSetState" => args[1] = OVal::Bool(args[1].truthy()),
            "agentSetSettings" | "agentCancelTimer" => {}
            _ if method == "agentTurn.storage" => {
                let how = op.trim_start_matches("agentStorage").to_lowercase();
                args.insert(0, OVal::str(&how));
                args.resize_with(3, || OVal::Undef);
            }
            _ if keys.is_empty() => {}
            _ => {
                let members = keys.iter().zip(&args);
                let members = members.filter(|(_, value)| !matches!(value, OVal::Undef));
                let request = Obj::new();
                members.for_each(|(key, value)| request.insert(js(key), value.clone()));
                args = vec![OVal::object(request)];
            }
        }
        let reply = self.call_host(op, method, &args)?;
        Ok(if gives { reply } else { OVal::Undef })
    }
}
