//! The turn of a long-lived agent, kept by the host.

use super::{Done, RequestHost, Requests};
use crate::error::Reply;
use crate::{AgentTurn, TurnQuery};
use a99_core::value::Value;

/// Names of the methods as requests.
pub(super) const METHODS: &[&str] = &[
    "agentTurn.state",
    "agentTurn.setState",
    "agentTurn.settings",
    "agentTurn.setSettings",
    "agentTurn.identity",
    "agentTurn.send",
    "agentTurn.update",
    "agentTurn.fail",
    "agentTurn.publish",
    "agentTurn.setTimer",
    "agentTurn.cancelTimer",
    "agentTurn.roster",
    "agentTurn.callMethod",
    "agentTurn.methodResult",
    "agentTurn.invite",
    "agentTurn.remove",
    "agentTurn.storage",
];

/// Methods that pass their arguments on.
macro_rules! passed_on {
    ($($method:ident($($arg:ident),*) = $name:literal, $kind:ident $by:ident;)*) => {
        $(fn $method(&self, $($arg: Value),*) -> $kind<'_> {
            self.$by($name, vec![$($arg),*])
        })*
    };
}

impl<H: RequestHost> AgentTurn for Requests<H> {
    passed_on! {
        state() = "agentTurn.state", Reply ask;
        settings() = "agentTurn.settings", Reply ask;
        set_settings(settings) = "agentTurn.setSettings", Done tell;
        identity() = "agentTurn.identity", Reply ask;
        send(message) = "agentTurn.send", Reply ask;
        update(update) = "agentTurn.update", Done tell;
        fail(failure) = "agentTurn.fail", Done tell;
        publish(event) = "agentTurn.publish", Reply ask;
        set_timer(timer) = "agentTurn.setTimer", Done tell;
        cancel_timer(name) = "agentTurn.cancelTimer", Done tell;
        roster() = "agentTurn.roster", Reply ask;
        call_method(call) = "agentTurn.callMethod", Reply ask;
        method_result(part) = "agentTurn.methodResult", Done tell;
        invite(guest) = "agentTurn.invite", Reply ask;
        remove(guest) = "agentTurn.remove", Reply ask;
    }

    fn set_state(&self, state: Value, replace: bool) -> Done<'_> {
        self.tell("agentTurn.setState", vec![state, replace.into()])
    }

    fn has_storage(&self) -> bool {
        self.0.offers("agentTurn.storage")
    }

    fn storage(&self, how: TurnQuery, sql: Value, params: Value) -> Reply<'_> {
        let how = match how {
            TurnQuery::Exec => "exec",
            TurnQuery::Run => "run",
            TurnQuery::Get => "get",
            TurnQuery::All => "query",
        };
        self.ask("agentTurn.storage", vec![how.into(), sql, params])
    }
}
