//! The server: its state, and an answer to each message.

use crate::complete::{complete, resolve};
use crate::document::{Document, Form};
use crate::hover::hover;
use crate::queue::{Incoming, Queue};
use crate::text::{Encoding, Text};
use crate::transport;
use agent99::Engine;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

/// Lays out the text of a program in JSON; `None` for a text that is no valid program.
pub type Layout<'s> = &'s dyn Fn(&str) -> Option<String>;

/// How a session ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With `exit` after `shutdown`.
    Exit,
    /// With `exit` before `shutdown`, at the end of the input, or because the input was broken.
    Early,
}

/// Serves an editor until it ends the session. The findings are those of the engine, so its lint
/// pass should be on.
///
/// # Errors
/// The writer failed.
pub fn serve(
    engine: &Engine,
    layout: Layout<'_>,
    reader: impl BufRead + Send + 'static,
    writer: impl Write,
) -> io::Result<Ending> {
    run(engine, layout, Queue::start(reader)?, writer)
}

/// Answers the messages of a queue.
fn run(
    engine: &Engine,
    layout: Layout<'_>,
    queue: Queue,
    writer: impl Write,
) -> io::Result<Ending> {
    let mut server = Server {
        engine,
        layout,
        writer,
        queue,
        documents: BTreeMap::new(),
        stage: Stage::New,
        encoding: Encoding::Utf16,
    };
    loop {
        let incoming = match server.queue.next_waiting() {
            Some(incoming) => incoming,
            // Nothing else to do: findings of one document, unless a message comes.
            None if server.publish_next()? => continue,
            None => server.queue.next(),
        };
        match incoming {
            Incoming::Message(message) => {
                if let Some(ending) = server.message(&message)? {
                    return Ok(ending);
                }
            }
            Incoming::Invalid(text) => {
                server.refuse(&Json::Null, Refusal::new(code::PARSE, text))?;
            }
            Incoming::Broken(text) => {
                server.refuse(&Json::Null, Refusal::new(code::PARSE, text))?;
                return Ok(Ending::Early);
            }
            Incoming::End => return Ok(Ending::Early),
        }
    }
}

/// Codes of errors, as the protocol numbers them.
mod code {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const UNKNOWN_METHOD: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
    pub(super) const NOT_INITIALIZED: i32 = -32002;
    pub(super) const CONTENT_MODIFIED: i32 = -32801;
    pub(super) const CANCELLED: i32 = -32800;
}

/// Why a request has no result.
struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    fn new(code: i32, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
        }
    }

    fn params(what: &str) -> Refusal {
        Refusal::new(code::INVALID_PARAMS, what)
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Ended,
}

struct Server<'s, W> {
    engine: &'s Engine,
    layout: Layout<'s>,
    writer: W,
    queue: Queue,
    /// Open documents by their address.
    documents: BTreeMap<String, Document>,
    stage: Stage,
    encoding: Encoding,
}

impl<W: Write> Server<'_, W> {
    /// Takes a message in; the ending if it is the last.
    fn message(&mut self, message: &Json) -> io::Result<Option<Ending>> {
        self.queue.reached(message);
        let method = message["method"].as_str();
        let id = message.get("id");
        let Some(method) = method else {
            // Answers of the client have a result or an error; the server asks nothing.
            let is_answer =
                id.is_some() && (message.get("result").is_some() || message.get("error").is_some());
            if !is_answer {
                let refusal = Refusal::new(code::INVALID_REQUEST, "a message has a method");
                self.refuse(id.unwrap_or(&Json::Null), refusal)?;
            }
            return Ok(None);
        };
        let params = &message["params"];
        match id {
            Some(id) => {
                match self.request(method, id, params) {
                    Ok(result) => {
                        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?
                    }
                    Err(refusal) => self.refuse(id, refusal)?,
                }
                Ok(None)
            }
            None if method == "exit" => Ok(Some(match self.stage {
                Stage::Ended => Ending::Exit,
                Stage::New | Stage::Running => Ending::Early,
            })),
            None => {
                if self.stage == Stage::Running {
                    self.notification(method, params)?;
                }
                Ok(None)
            }
        }
    }

    fn send(&mut self, message: &Json) -> io::Result<()> {
        transport::write(&mut self.writer, message)
    }

    fn refuse(&mut self, id: &Json, refusal: Refusal) -> io::Result<()> {
        let error = json!({"code": refusal.code, "message": refusal.message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    fn request(&mut self, method: &str, id: &Json, params: &Json) -> Result<Json, Refusal> {
        match (self.stage, method) {
            (Stage::New, "initialize") => return Ok(self.initialize(params)),
            (Stage::New, _) => {
                return Err(Refusal::new(
                    code::NOT_INITIALIZED,
                    "`initialize` comes first",
                ));
            }
            (Stage::Ended, _) => {
                return Err(Refusal::new(
                    code::INVALID_REQUEST,
                    "the session was shut down",
                ));
            }
            (Stage::Running, "initialize") => {
                return Err(Refusal::new(
                    code::INVALID_REQUEST,
                    "`initialize` comes once",
                ));
            }
            (Stage::Running, _) => {}
        }
        if self.queue.is_cancelled(id) {
            return Err(Refusal::new(code::CANCELLED, "the request was cancelled"));
        }
        match method {
            "shutdown" => {
                self.stage = Stage::Ended;
                Ok(Json::Null)
            }
            "textDocument/hover" => {
                let engine = self.engine;
                let document = self.document(params)?.1;
                Ok(hover(engine, document, position(document, params)?))
            }
            "textDocument/completion" => {
                let engine = self.engine;
                let document = self.document(params)?.1;
                Ok(complete(engine, document, position(document, params)?))
            }
            "completionItem/resolve" => match params.is_object() {
                true => Ok(resolve(self.engine, params.clone())),
                false => Err(Refusal::params("an item is an object")),
            },
            "textDocument/codeAction" => self.actions(params),
            "textDocument/formatting" => {
                let layout = self.layout;
                let document = self.document(params)?.1;
                if document.form != Some(Form::Json) {
                    return Ok(Json::Null);
                }
                let new = layout(document.text.as_str());
                Ok(new.map_or(Json::Null, |new| document.text.edits_to(&new).into()))
            }
            _ => {
                let text = format!("there is no method `{}`", a99_core::diag::excerpt(method));
                Err(Refusal::new(code::UNKNOWN_METHOD, text))
            }
        }
    }

    fn initialize(&mut self, params: &Json) -> Json {
        self.stage = Stage::Running;
        self.encoding =
            Encoding::preferred(&params["capabilities"]["general"]["positionEncodings"]);
        json!({
            "capabilities": {
                "positionEncoding": self.encoding.name(),
                "textDocumentSync": {"openClose": true, "change": 2},
                "hoverProvider": true,
                "completionProvider": {
                    "triggerCharacters": [".", "\"", "'"],
                    "resolveProvider": true,
                },
                "codeActionProvider": {"codeActionKinds": ["quickfix"]},
                "documentFormattingProvider": true,
            },
            "serverInfo": {"name": "a99", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// The document that a request is about, with its address. One whose newer text already waits
    /// is refused: the answer would be about the older.
    fn document(&mut self, params: &Json) -> Result<(String, &mut Document), Refusal> {
        let uri = params["textDocument"]["uri"].as_str();
        let uri = uri.ok_or_else(|| Refusal::params("the request names no document"))?;
        if self.queue.is_outdated(uri) {
            return Err(Refusal::new(
                code::CONTENT_MODIFIED,
                "the document has changed",
            ));
        }
        let document = self.documents.get_mut(uri);
        let document = document.ok_or_else(|| Refusal::params("the document is not open"))?;
        Ok((uri.to_owned(), document))
    }

    /// Fixes of the findings in a range.
    fn actions(&mut self, params: &Json) -> Result<Json, Refusal> {
        let engine = self.engine;
        let only = params["context"]["only"].as_array();
        let is_asked = only.is_none_or(|kinds| {
            let kinds = kinds.iter().filter_map(Json::as_str);
            let mut kinds = kinds.filter(|kind| matches!(*kind, "" | "quickfix"));
            kinds.next().is_some()
        });
        let (uri, document) = self.document(params)?;
        let range = document.text.offsets(&params["range"]);
        let range = range.ok_or_else(|| Refusal::params("the range is none"))?;
        if !is_asked {
            return Ok(json!([]));
        }
        let fixes = document.fixes(engine, &range);
        let text = &document.text;
        let actions = fixes.into_iter().map(|(diagnostic, fix)| {
            let edit = json!({"range": text.range(&fix.place), "newText": fix.new});
            json!({
                "title": fix.title,
                "kind": "quickfix",
                "isPreferred": true,
                "diagnostics": [diagnostic],
                "edit": {"changes": {uri.as_str(): [edit]}},
            })
        });
        Ok(actions.collect())
    }

    fn notification(&mut self, method: &str, params: &Json) -> io::Result<()> {
        let document = &params["textDocument"];
        let Some(uri) = document["uri"].as_str() else {
            return Ok(());
        };
        match method {
            "textDocument/didOpen" => {
                let text = document["text"].as_str().unwrap_or_default();
                let text = Text::new(text.to_owned(), self.encoding);
                let id = document["languageId"].as_str().unwrap_or_default();
                let opened = Document::new(uri, id, document["version"].clone(), text);
                self.documents.insert(uri.to_owned(), opened);
            }
            "textDocument/didChange" => {
                let Some(changed) = self.documents.get_mut(uri) else {
                    return Ok(());
                };
                let changes = params["contentChanges"].as_array();
                for change in changes.into_iter().flatten() {
                    // An empty change leaves the text as it is.
                    let _ = changed.text.apply(change);
                }
                changed.version = document["version"].clone();
                changed.changed();
            }
            "textDocument/didClose" => {
                let closed = self.documents.remove(uri);
                if closed.is_some_and(|closed| closed.form.is_some()) {
                    self.publish(uri, &Json::Null, Vec::new())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Publishes the findings of a document that has changed; false if no document has. Those of a
    /// text that is outdated by then are dropped.
    fn publish_next(&mut self) -> io::Result<bool> {
        let (engine, queue) = (self.engine, &self.queue);
        let mut dirty = self.documents.iter_mut();
        let Some((uri, document)) =
            dirty.find(|(uri, document)| document.is_dirty && !queue.is_outdated(uri))
        else {
            return Ok(false);
        };
        let found = document.diagnostics(engine);
        if queue.is_outdated(uri) {
            return Ok(true);
        }
        document.is_dirty = false;
        let (uri, version) = (uri.clone(), document.version.clone());
        self.publish(&uri, &version, found)?;
        Ok(true)
    }

    fn publish(&mut self, uri: &str, version: &Json, found: Vec<Json>) -> io::Result<()> {
        let mut params = json!({"uri": uri, "diagnostics": found});
        if version.is_i64() || version.is_u64() {
            params["version"] = version.clone();
        }
        let method = "textDocument/publishDiagnostics";
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }
}

/// The offset of a request's position.
fn position(document: &Document, params: &Json) -> Result<usize, Refusal> {
    let offset = document.text.offset(&params["position"]);
    offset.ok_or_else(|| Refusal::params("the position is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u32, method: &str, params: Json) -> Json {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn note(method: &str, params: Json) -> Json {
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    }

    /// What the server says to messages that have all arrived before it begins.
    fn said(messages: &[Json], has_arrived: impl Fn(&Queue) -> bool) -> (Ending, Vec<Json>) {
        let mut input = Vec::new();
        for message in messages {
            transport::write(&mut input, message).unwrap();
        }
        let queue = Queue::start(io::Cursor::new(input)).unwrap();
        while !has_arrived(&queue) {
            std::thread::yield_now();
        }
        let engine = Engine::builder().lint(true).build();
        let mut output = Vec::new();
        let ending = run(&engine, &|_| None, queue, &mut output).unwrap();
        let mut output = io::Cursor::new(output);
        let mut said = Vec::new();
        while let Some(message) = transport::read(&mut output).unwrap() {
            said.push(serde_json::from_slice(&message).unwrap());
        }
        (ending, said)
    }

    const URI: &str = "file:///a.json";

    fn opened(text: &str) -> Json {
        note(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": URI, "languageId": "json", "version": 1, "text": text}}),
        )
    }

    fn changed(version: u32, text: &str) -> Json {
        let params = json!({"textDocument": {"uri": URI, "version": version},
            "contentChanges": [{"text": text}]});
        note("textDocument/didChange", params)
    }

    fn hover_at(id: u32) -> Json {
        let position = json!({"line": 0, "character": 9});
        let params = json!({"textDocument": {"uri": URI}, "position": position});
        request(id, "textDocument/hover", params)
    }

    #[test]
    fn cancelled_and_outdated_requests_are_refused() {
        let program = r#"{"op": "seq", "steps": [{"op": "nope"}]}"#;
        let messages = [
            request(1, "initialize", json!({})),
            opened(program),
            hover_at(2),
            changed(2, program),
            hover_at(3),
            hover_at(4),
            note("$/cancelRequest", json!({"id": 3})),
        ];
        let cancelled = json!(3);
        let (ending, said) = said(&messages, |queue| queue.is_cancelled(&cancelled));
        assert_eq!(ending, Ending::Early);
        let answer = |id: u32| said.iter().find(|one| one["id"] == id).unwrap();
        assert_eq!(answer(2)["error"]["code"], code::CONTENT_MODIFIED);
        assert_eq!(answer(3)["error"]["code"], code::CANCELLED);
        let docs = &answer(4)["result"]["contents"]["value"];
        assert!(docs.as_str().unwrap().contains("seq({ steps })"), "{docs}");
        // The findings of the first text were never published.
        let versions: Vec<&Json> = said
            .iter()
            .filter(|one| one["method"] == "textDocument/publishDiagnostics")
            .map(|one| &one["params"]["version"])
            .collect();
        assert!(
            versions.iter().all(|version| **version == 2),
            "{versions:?}"
        );
    }

    #[test]
    fn requests_come_in_the_order_of_the_protocol() {
        let other = "file:///b.json";
        let messages = [
            hover_at(1),
            note("textDocument/didOpen", json!(5)),
            request(2, "initialize", json!(null)),
            request(3, "initialize", json!({})),
            hover_at(4),
            request(5, "textDocument/hover", json!({})),
            request(6, "textDocument/hover", json!({"textDocument": {"uri": 7}})),
            request(7, "workspace/nothing", json!([])),
            request(8, "completionItem/resolve", json!("x")),
            note(
                "textDocument/didOpen",
                json!({"textDocument": {"uri": other}}),
            ),
            note(
                "textDocument/didChange",
                json!({"textDocument": {"uri": "nowhere"}}),
            ),
            note(
                "textDocument/didChange",
                json!({"textDocument": {"uri": other},
                "contentChanges": [7, {"text": "{"}, {"range": {}, "text": ""}]}),
            ),
            request(
                9,
                "textDocument/formatting",
                json!({"textDocument": {"uri": other}}),
            ),
            json!([request(10, "shutdown", json!(null))]),
            json!("text"),
            json!({"id": 11}),
            json!({"id": 12, "result": null}),
            request(13, "shutdown", json!(null)),
            request(14, "shutdown", json!(null)),
            note("exit", json!(null)),
        ];
        let (ending, said) = said(&messages, |_| true);
        assert_eq!(ending, Ending::Exit);
        let codes: Vec<(Json, i64)> = said
            .iter()
            .filter(|one| one.get("method").is_none())
            .map(|one| {
                (
                    one["id"].clone(),
                    one["error"]["code"].as_i64().unwrap_or(0),
                )
            })
            .collect();
        let expected = [
            (1, -32002),
            (2, 0),
            (3, -32600),
            (4, -32602),
            (5, -32602),
            (6, -32602),
            (7, -32601),
            (8, -32602),
            (9, 0),
            (-1, -32600),
            (-1, -32600),
            (11, -32600),
            (13, 0),
            (14, -32600),
        ];
        let expected = expected.map(|(id, code)| match id {
            -1 => (Json::Null, code),
            id => (json!(id), code),
        });
        assert_eq!(codes, expected);
    }
}
