//! The scripted turn of a long-lived agent.

use super::vm_engine::{Answer, Scripted};
use a99_core::value::Value;
use agent99::capabilities::{AgentTurn, Done, TurnQuery};

impl Scripted {
    fn done(&self, method: &'static str, args: Vec<Value>) -> Done<'_> {
        let answer = self.reply(method, args);
        Box::pin(async move { answer.await.map(drop) })
    }
}

impl AgentTurn for Scripted {
    fn state(&self) -> Answer<'_> {
        self.reply("agentTurn.state", vec![])
    }

    fn set_state(&self, state: Value, replace: bool) -> Done<'_> {
        self.done("agentTurn.setState", vec![state, replace.into()])
    }

    fn settings(&self) -> Answer<'_> {
        self.reply("agentTurn.settings", vec![])
    }

    fn set_settings(&self, settings: Value) -> Done<'_> {
        self.done("agentTurn.setSettings", vec![settings])
    }

    fn identity(&self) -> Answer<'_> {
        self.reply("agentTurn.identity", vec![])
    }

    fn send(&self, message: Value) -> Answer<'_> {
        self.reply("agentTurn.send", vec![message])
    }

    fn update(&self, update: Value) -> Done<'_> {
        self.done("agentTurn.update", vec![update])
    }

    fn fail(&self, failure: Value) -> Done<'_> {
        self.done("agentTurn.fail", vec![failure])
    }

    fn publish(&self, event: Value) -> Answer<'_> {
        self.reply("agentTurn.publish", vec![event])
    }

    fn set_timer(&self, timer: Value) -> Done<'_> {
        self.done("agentTurn.setTimer", vec![timer])
    }

    fn cancel_timer(&self, name: Value) -> Done<'_> {
        self.done("agentTurn.cancelTimer", vec![name])
    }

    fn roster(&self) -> Answer<'_> {
        self.reply("agentTurn.roster", vec![])
    }

    fn call_method(&self, call: Value) -> Answer<'_> {
        self.reply("agentTurn.callMethod", vec![call])
    }

    fn method_result(&self, part: Value) -> Done<'_> {
        self.done("agentTurn.methodResult", vec![part])
    }

    fn invite(&self, guest: Value) -> Answer<'_> {
        self.reply("agentTurn.invite", vec![guest])
    }

    fn remove(&self, guest: Value) -> Answer<'_> {
        self.reply("agentTurn.remove", vec![guest])
    }

    fn has_storage(&self) -> bool {
        self.provides("agentTurn.storage")
    }

    fn storage(&self, how: TurnQuery, sql: Value, params: Value) -> Answer<'_> {
        let how = match how {
            TurnQuery::Exec => "exec",
            TurnQuery::Run => "run",
            TurnQuery::Get => "get",
            TurnQuery::All => "query",
        };
        self.reply("agentTurn.storage", vec![how.into(), sql, params])
    }
}
