//! Talks with a model: `llmChat` and `llmToolLoop`, and what a model answers.

use super::{Generator, Kind};
use serde_json::{Map, Value as Json, json};

/// Names that a model asks for.
const ASKED: &[&str] = &["look", "join", "storeGet", "hash", "helper", "nobody"];

/// Schemas of tools.
const SCHEMAS: &[&str] = &[
    r#"{"type":"object"}"#,
    r#"{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}}}"#,
    r#"{"type":"object","properties":{"n":{"type":["number","string"]}},"required":["n"]}"#,
    r#"{"type":"object","properties":{"xs":{"type":"array","items":{"type":"integer"}}},"additionalProperties":false}"#,
    r#"{"type":["object","null"],"properties":{"n":{"type":"number","minimum":1}}}"#,
];

const STOPS: &[&str] = &[
    "round.number > 1",
    "round.calls[0].error",
    "n > 1",
    "round.text == s",
];

impl Generator<'_> {
    /// A step that talks with a model.
    pub(super) fn talk(&mut self) -> Json {
        self.talks = true;
        let mut step = Map::new();
        if self.choices.one_in(4) {
            step.insert("op".into(), json!("llmChat"));
            step.insert("prompt".into(), self.value(Kind::Text));
            if self.choices.one_in(3) {
                let tools = json!([{"name": "look", "inputSchema": {"type": "object"}}]);
                step.insert("tools".into(), tools);
            }
            return self.bound(step, Kind::Record);
        }
        step.insert("op".into(), json!("llmToolLoop"));
        step.insert("prompt".into(), json!({"$expr": "literal", "value": "go"}));
        let count = self.choices.below(4);
        let tools: Vec<Json> = (0..count).map(|at| self.tool(at)).collect();
        step.insert("tools".into(), json!(tools));
        if self.choices.one_in(3) {
            step.insert("maxRounds".into(), json!(*self.pick(&[1, 2, 3, 0])));
        }
        if self.choices.one_in(4) {
            step.insert("budget".into(), json!({"tokens": *self.pick(&[5, 20, 40])}));
        }
        if self.choices.one_in(4) {
            step.insert("stopWhen".into(), json!(*self.pick(STOPS)));
        }
        if self.choices.one_in(4) {
            let format = json!({"type": "object", "properties": {"n": {"type": "number"}}});
            step.insert("responseFormat".into(), format);
        }
        if self.choices.one_in(5) {
            step.insert("limit".into(), json!(*self.pick(&[1, 2, 64])));
        }
        self.bound(step, Kind::Record)
    }

    fn tool(&mut self, at: usize) -> Json {
        let schema: Json = serde_json::from_str(self.pick::<&str>(SCHEMAS)).unwrap_or_default();
        match self.choices.below(5) {
            0 => json!({"atom": *self.pick(&["storeGet", "hash", "join", "len", "merge"])}),
            1 => json!({"agent": "helper", "description": "Helps.", "inputSchema": schema}),
            2 => json!({"atom": "host", "description": "The host's."}),
            _ => {
                let name = ["look", "join", "find"][at % 3];
                let was = (self.loops, self.jumps);
                self.loops += 1;
                let mut tool = json!({"name": name, "description": "Looks.", "inputSchema": schema,
                    "call": self.data_atom()});
                (self.loops, self.jumps) = was;
                if self.choices.one_in(2) {
                    tool["as"] = json!(*self.pick(&["item", "o", "input"]));
                }
                tool
            }
        }
    }

    /// What models and stores answer.
    pub(super) fn talk_answers(&mut self) -> Vec<Json> {
        (0..12).map(|_| self.talk_answer()).collect()
    }

    fn talk_answer(&mut self) -> Json {
        match self.choices.below(12) {
            10 => json!({"method": "store.get", "args": [], "result": self.data(Kind::Any, 2)}),
            11 => json!({"method": "ai.generate", "args": [], "error": {"message": "down"}}),
            _ => {
                let count = self.choices.below(4);
                let calls: Vec<Json> = (0..count).map(|at| self.asked(at)).collect();
                let text = *self.pick(&["", "a", "{\"n\":1}", "{\"n\":\"x\"}", "[1"]);
                let mut said = json!({"text": text, "toolCalls": calls,
                    "usage": {"inputTokens": 1 + self.choices.below(9), "outputTokens": 3}});
                if self.choices.one_in(5) {
                    said["stopReason"] = json!(*self.pick(&["max_tokens", "refusal"]));
                }
                json!({"method": "ai.generate", "args": [], "result": said})
            }
        }
    }

    fn asked(&mut self, at: usize) -> Json {
        let input = match self.choices.below(6) {
            0 => json!({}),
            1 => json!({"n": self.data(Kind::Num, 1)}),
            2 => json!({"s": self.data(Kind::Text, 1), "key": "a", "value": "x"}),
            3 => json!({"xs": self.data(Kind::List, 1), "list": self.data(Kind::List, 1)}),
            4 => json!({"n": self.data(Kind::Any, 2)}),
            _ => json!(*self.pick(&["{", "no", "7"])),
        };
        json!({"id": format!("c{at}"), "name": *self.pick(ASKED), "input": input})
    }
}
