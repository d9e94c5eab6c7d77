//! Events and agents as text for people, escaped for a terminal.

use a99_core::text::escape_for_terminal;
use a99_runtime::program::PARTIAL;
use serde_json::Value as Json;

/// An event in a line; `None` for kinds that only programs read. Further lines of its text are
/// indented.
pub(super) fn event(event: &Json) -> Option<String> {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    if event["kind"] == "ephemeral" {
        return None;
    }
    let sender = &event["sender"];
    let who = match sender["handle"].as_str() {
        Some(handle) => format!("@{handle}"),
        None => text(&sender["name"]),
    };
    let said = match event["type"].as_str()? {
        "message" => text(&event["content"]),
        "update-message" => match event["content"].as_str() {
            Some(more) => format!("... {more}"),
            None => return None,
        },
        "error" => format!("error: {}", text(&event["error"])),
        "presence" | "agent-debug" => return None,
        "custom" => format!("{} {}", text(&event["name"]), event["payload"]),
        "method-call" => format!("calls {} {}", text(&event["methodName"]), event["args"]),
        "method-result" => format!("answers {}", event["content"]),
        other => other.to_owned(),
    };
    let lines: Vec<String> = said.lines().map(escape_for_terminal).collect();
    let seq = event["seq"].as_u64();
    let seq = seq.map_or_else(String::new, |seq| format!("{seq} "));
    let who = escape_for_terminal(&who);
    Some(format!("{seq}{who}: {}\n", lines.join("\n    ")))
}

/// Streamed pieces of model output: a line for each message.
#[derive(Default)]
pub(super) struct Pieces {
    /// The message whose line has not ended.
    open: Option<String>,
}

impl Pieces {
    /// The next piece, with its author before the first; `None` for another event.
    pub(super) fn next(&mut self, event: &Json) -> Option<String> {
        if event["kind"] != "ephemeral" {
            return None;
        }
        let content = escape_for_terminal(event["content"].as_str()?);
        let id = event["id"].as_str()?;
        match event["type"].as_str()? {
            "message" if event["contentType"] == PARTIAL => {
                let who = event["sender"]["handle"].as_str().unwrap_or_default();
                let begin = format!("{}@{}> ", self.end(), escape_for_terminal(who));
                self.open = Some(id.to_owned());
                Some(begin + &content)
            }
            "update-message" if self.open.as_deref() == Some(id) => Some(content),
            _ => None,
        }
    }

    /// Ends the open line.
    pub(super) fn end(&mut self) -> String {
        let ended = self.open.take();
        ended.map_or_else(String::new, |_| "\n".to_owned())
    }
}

/// A table of agents: key, status, checkpoint.
pub(super) fn list(agents: &[Json]) -> String {
    let mut rows = vec![["AGENT", "STATUS", "CHECKPOINT", "LAG", "DEAD"].map(str::to_owned)];
    for agent in agents {
        let number = |name: &str| agent[name].as_u64().unwrap_or_default().to_string();
        let dead = agent["deadLetters"].as_array().map_or(0, Vec::len);
        rows.push([
            escape_for_terminal(agent["key"].as_str().unwrap_or_default()),
            agent["status"].as_str().unwrap_or_default().to_owned(),
            number("checkpoint"),
            number("lag"),
            dead.to_string(),
        ]);
    }
    table(&rows)
}

/// Rows in columns.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

pub(super) fn agent(agent: &Json) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let lines: Vec<String> = value.lines().map(escape_for_terminal).collect();
        text.push_str(&format!("{name:12}{}\n", lines.join("\n            ")));
    };
    for (name, member) in [("agent", "key"), ("status", "status")] {
        line(name, agent[member].as_str().unwrap_or_default().to_owned());
    }
    line(
        "checkpoint",
        format!("{}, {} behind", agent["checkpoint"], agent["lag"]),
    );
    if let Some(events @ 1..) = agent["hopLimited"].as_u64() {
        line(
            "hop limit",
            format!("{events} events came through too many agents and were not handled"),
        );
    }
    line(
        "turns",
        format!(
            "{}, attempts that failed {}",
            agent["turns"], agent["failed"]
        ),
    );
    for name in ["state", "settings"] {
        if !agent[name].is_null() {
            line(name, crate::pretty::pretty(&agent[name].to_string()));
        }
    }
    for timer in agent["timers"].as_array().into_iter().flatten() {
        let name = timer["name"].as_str().unwrap_or_default();
        let cron = timer["cron"].as_str();
        let cron = cron.map_or_else(String::new, |cron| format!(", {cron}"));
        let due = a99_ecma::date::to_iso(timer["due"].as_f64().unwrap_or_default());
        line("timer", format!("{name} at {due}{cron}"));
    }
    for dead in agent["deadLetters"].as_array().into_iter().flatten() {
        let member = |name: &str| dead[name].as_str().unwrap_or_default().to_owned();
        let (code, error) = (member("code"), member("error"));
        line(
            "given up",
            format!("{}: {code}: {error}", trigger(&dead["trigger"])),
        );
    }
    if let Some(waiting @ 1..) = agent["outbox"].as_u64() {
        line(
            "outbox",
            format!("{waiting} events of the host wait for their channels"),
        );
    }
    if let Some([code, error]) = agent["lastError"].as_array().map(Vec::as_slice) {
        let member = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        line("last error", format!("{}: {}", member(code), member(error)));
    }
    text
}

/// A kept turn with its calls, each in a line.
#[cfg(feature = "server")]
pub(super) fn turn(turn: &Json) -> String {
    let number = |json: &Json| json.as_f64().unwrap_or_default();
    let text = |json: &Json| escape_for_terminal(json.as_str().unwrap_or_default());
    let calls = turn["calls"].as_array();
    let calls: Vec<&Json> = calls.into_iter().flatten().collect();
    let began = number(&turn["began"]);
    let mut head = format!(
        "{} at {}",
        text(&turn["turn"]),
        a99_ecma::date::to_iso(began)
    );
    head += &format!(", fuel {}, sent {}", turn["fuel"], turn["sent"]);
    let sum = |name: &str| calls.iter().map(|call| number(&call[name])).sum::<f64>();
    let (input, output) = (sum("inputTokens"), sum("outputTokens"));
    if input + output > 0.0 {
        head += &format!(", tokens {input} + {output}");
    }
    if let Some([code, error]) = turn["error"].as_array().map(Vec::as_slice) {
        head += &format!(", given up: {}: {}", text(code), text(error));
    }
    let mut lines = format!("turn        {head}\n");
    for call in &calls {
        let after = number(&call["at"]) - began;
        let mut said = format!(
            "{} after {after} ms, fuel {}",
            text(&call["atom"]),
            call["fuel"]
        );
        if !call["inputTokens"].is_null() {
            let tokens = (number(&call["inputTokens"]), number(&call["outputTokens"]));
            said += &format!(", tokens {} + {}", tokens.0, tokens.1);
        }
        if !call["error"].is_null() {
            said += &format!(", {}", text(&call["error"]));
        }
        lines += &format!("            {said}\n");
    }
    let more = number(&turn["count"]) - calls.len() as f64;
    if more > 0.0 {
        lines += &format!("            and {more} calls more\n");
    }
    lines
}

/// The trigger of a turn.
pub(super) fn trigger(trigger: &Json) -> String {
    match (&trigger["event"], &trigger["timer"]) {
        (Json::Number(seq), _) => format!("event {seq}"),
        (_, Json::Array(parts)) => {
            let name = parts.first().and_then(Json::as_str).unwrap_or_default();
            format!("timer {name}")
        }
        _ => "a hook".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_escaped() {
        let said = json!({
            "type": "message",
            "seq": 3,
            "sender": {"handle": "ann"},
            "content": "a\u{1b}[31m\nb",
        });
        let shown = event(&said).expect("a line");
        assert!(
            shown.starts_with("3 @ann: a") && !shown.contains('\u{1b}'),
            "{shown:?}"
        );
        assert!(shown.ends_with("\n    b\n"), "{shown:?}");
    }
}

#[cfg(all(test, feature = "server"))]
mod turns {
    use serde_json::json;

    #[test]
    fn turns_have_their_calls_and_tokens() {
        let call = |atom: &str| json!({"atom": atom, "at": 1_120.0, "fuel": 0.5, "value": "1"});
        let mut model = call("llmChat\u{1b}");
        model["inputTokens"] = 12.into();
        model["outputTokens"] = 3.into();
        let mut failed = call("httpFetch");
        failed["error"] = "atom.failed: no".into();
        let turn = json!({"turn": "event:7", "began": 1_000.0, "fuel": 2.5, "count": 4,
            "calls": [call("storeGet"), model, failed], "sent": 1, "timers": 0,
            "error": ["run.timeout", "late"]});
        let shown = super::turn(&turn);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "turn        event:7 at 1970-01-01T00:00:01.000Z, fuel 2.5, sent 1, tokens 12 + 3, \
             given up: run.timeout: late"
        );
        assert!(
            lines[1].ends_with("storeGet after 120 ms, fuel 0.5"),
            "{shown}"
        );
        assert!(
            lines[2].ends_with(", tokens 12 + 3") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        assert!(lines[3].ends_with(", atom.failed: no"), "{shown}");
        assert_eq!(lines[4].trim(), "and 1 calls more");
    }
}

#[cfg(test)]
mod pieces {
    use super::Pieces;
    use serde_json::{Value as Json, json};

    fn said(kind: &str, id: &str, content: &str, content_type: &str) -> Json {
        json!({"kind": "ephemeral", "type": kind, "id": id, "content": content,
               "contentType": content_type, "sender": {"handle": "shop"}})
    }

    #[test]
    fn pieces_of_a_message_are_a_line() {
        let mut pieces = Pieces::default();
        let shown = [
            said("message", "a", "thinks", "thinking"),
            said("message", "a", "He", "partial"),
            said("update-message", "a", "y", ""),
            said("update-message", "other", "no", ""),
            said("message", "b", "You\u{1b}[2J", "partial"),
            json!({"kind": "persisted", "type": "message", "id": "a", "content": "whole"}),
        ]
        .map(|event| pieces.next(&event));
        let shown: Vec<_> = shown.iter().map(Option::as_deref).collect();
        assert_eq!(shown[0], None);
        assert_eq!(shown[1..4], [Some("@shop> He"), Some("y"), None]);
        let second = shown[4].expect("a piece");
        assert!(second.starts_with("\n@shop> You") && !second.contains('\u{1b}'));
        assert_eq!(shown[5], None);
        assert_eq!((pieces.end().as_str(), pieces.end().as_str()), ("\n", ""));
    }
}
