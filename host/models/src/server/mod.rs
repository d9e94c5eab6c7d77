//! A mock model server that plays a script over HTTP on the loopback, so that agents can be
//! tested without a model or a network.

mod anthropic;
mod gemini;
mod http;
mod openai;
mod responses;

use crate::limiter::lock;
use crate::wire::{Wire, map, parse};
use a99_capabilities::ai::{ModelFault, ModelScript, ModelTurn};
use a99_core::value::Value;
use http::{Answer, Request};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The name of the only model.
pub const MODEL: &str = "scripted";

/// Maximum concurrent connections.
const MAX_CONNECTIONS: usize = 256;

/// Timeout for receiving a request.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Maximum recorded requests.
const MAX_KEPT: usize = 1_000;

/// A received request.
#[derive(Clone, PartialEq)]
pub struct ModelRequest {
    /// The requested path, such as `/v1/messages`.
    pub path: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, `undefined` if it is not JSON.
    pub body: Value,
}

impl ModelRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The headers contain a key.
        f.debug_struct("ModelRequest")
            .field("path", &self.path)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    turns: Mutex<VecDeque<ModelTurn>>,
    requests: Mutex<VecDeque<ModelRequest>>,
    open: AtomicUsize,
    numbers: AtomicUsize,
}

impl State {
    fn keep(&self, request: ModelRequest) {
        let mut requests = lock(&self.requests);
        if requests.len() == MAX_KEPT {
            requests.pop_front();
        }
        requests.push_back(request);
    }
}

/// A mock server that answers each request with the next matching turn of a [`ModelScript`],
/// and with 503 after the last. It speaks all wire formats, streamed and whole:
///
/// | request | answer |
/// |---|---|
/// | `POST /v1/chat/completions` | a turn in OpenAI's format |
/// | `POST /v1/messages` | a turn in Anthropic's format |
/// | `POST /v1/responses` | a turn in the format of OpenAI's responses |
/// | `POST /v1/models/MODEL:generateContent`, `:streamGenerateContent` | a turn in Gemini's
/// format, under `/v1beta` too |
/// | `GET /v1/models` | the only model, [`MODEL`]; requests may use any name |
///
/// It listens on the loopback only. Dropping it stops it.
pub struct ModelServer {
    addr: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl ModelServer {
    /// Starts to play a script on a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(script: ModelScript) -> io::Result<ModelServer> {
        ModelServer::start_on(0, script).await
    }

    /// Starts to play a script on this port.
    ///
    /// # Errors
    /// If the port is taken.
    pub async fn start_on(port: u16, script: ModelScript) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State {
            turns: Mutex::new(script.turns.into()),
            ..State::default()
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(ModelServer { addr, state, task })
    }

    /// The listening address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address for a configuration: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The last thousand requests to models, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.state.requests).iter().cloned().collect()
    }

    /// Number of unfinished answers with a connected client.
    #[must_use]
    pub fn open_answers(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// Number of turns not played yet.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        lock(&self.state.turns).len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    // Dropping the set with this task ends all connections.
    let mut connections = tokio::task::JoinSet::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed, the only cause of an error.
        let place = Arc::clone(&room).acquire_owned().await.ok();
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely out of file descriptors: some will be free soon.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let _place = place;
            // A failed connection needs no answer.
            let _ = connection(stream, &state).await;
        });
    }
}

/// Answers one request; connections are not kept alive.
async fn connection(mut stream: TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let request = match timeout(REQUEST_TIME, http::read(&mut stream)).await {
        Ok(request) => request?,
        Err(_) => return Ok(()),
    };
    let request = match request {
        Ok(request) => request,
        Err(status) => {
            let answer = Answer::json(status, &failure(None, status, "no request for a model"));
            return answer.send(&mut stream).await;
        }
    };
    let wire = match (
        &*request.method,
        request.path.split('?').next().unwrap_or_default(),
    ) {
        ("POST", "/v1/chat/completions") => Wire::OpenAi,
        ("POST", "/v1/messages") => Wire::Anthropic,
        ("POST", "/v1/responses") => Wire::Responses,
        ("POST", path) if is_gemini(path) => Wire::Gemini,
        ("GET", "/v1/models") => {
            let answer = Answer::json(200, &models());
            return answer.send(&mut stream).await;
        }
        _ => {
            let paths = "POST /v1/chat/completions, POST /v1/messages, POST /v1/responses, POST \
                         /v1/models/MODEL:generateContent (or streamGenerateContent) and GET \
                         /v1/models";
            let text = format!("there are {paths}");
            let answer = Answer::json(404, &failure(None, 404, &text));
            return answer.send(&mut stream).await;
        }
    };
    model(&mut stream, state, wire, request).await
}

async fn model(
    stream: &mut TcpStream,
    state: &State,
    wire: Wire,
    request: Request,
) -> io::Result<()> {
    let prompt_bytes = request.body.len();
    let body = std::str::from_utf8(&request.body).ok().and_then(parse);
    let is_object = body.as_ref().is_some_and(|body| body.as_object().is_some());
    let body = body.unwrap_or(Value::Undefined);
    let of_path = request.path.split("/models/").nth(1);
    let of_path = of_path.and_then(|rest| rest.split_once(':'));
    let streams = match (wire, of_path) {
        (Wire::Gemini, Some((_, method))) => method.starts_with("stream"),
        _ => body.get("stream").and_then(Value::as_bool) == Some(true),
    };
    let named = body.get("model").and_then(Value::as_str);
    let model = named
        .or(of_path.map(|(model, _)| model))
        .unwrap_or(MODEL)
        .to_owned();
    let turn = match is_object {
        true => ModelTurn::next(&mut lock(&state.turns), |text| {
            [
                "system",
                "messages",
                "instructions",
                "input",
                "systemInstruction",
                "contents",
            ]
            .iter()
            .any(|key| body.get(key).is_some_and(|value| says(value, text)))
        }),
        false => None,
    };
    state.keep(ModelRequest {
        path: request.path,
        headers: request.headers,
        body,
    });
    if !is_object {
        let text = "the body of a request is a JSON object";
        return Answer::json(400, &failure(Some(wire), 400, text))
            .send(stream)
            .await;
    }
    let Some(turn) = turn else {
        let text = "the script has no more turns";
        return Answer::json(503, &failure(Some(wire), 503, text))
            .send(stream)
            .await;
    };
    if let Some(status) = turn.status {
        let text = turn.message.clone();
        let text = text.unwrap_or_else(|| format!("the script answers with {status}"));
        let mut answer = Answer::json(status, &failure(Some(wire), status, &text));
        answer.retry_after = turn.retry_after;
        return answer.send(stream).await;
    }
    let number = state.numbers.fetch_add(1, Ordering::SeqCst);
    let parts = match streams {
        true => streamed(wire, &turn, &model, prompt_bytes, number),
        false => vec![Part::end(whole(wire, &turn, &model, prompt_bytes, number))],
    };
    let media = match streams {
        true => "text/event-stream",
        false => "application/json",
    };
    let _open = Open::new(&state.open);
    play(stream, &turn, parts, media, streams).await
}

/// Whether a path is one of Gemini's methods, in any version.
fn is_gemini(path: &str) -> bool {
    let rest = path
        .strip_prefix("/v1/models/")
        .or_else(|| path.strip_prefix("/v1beta/models/"));
    let method = rest
        .and_then(|rest| rest.rsplit_once(':'))
        .map(|(_, method)| method);
    matches!(method, Some("generateContent" | "streamGenerateContent"))
}

/// Whether a text inside a value contains this text. JSON limits the recursion.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(map) => map.iter().any(|(_, member)| says(member, text)),
        _ => value.as_str().is_some_and(|said| said.contains(text)),
    }
}

/// Counts an unfinished answer.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn new(count: &'a AtomicUsize) -> Open<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Open(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A part of an answer's body.
struct Part {
    bytes: Vec<u8>,
    /// Whether it begins a piece of the turn.
    begins_piece: bool,
    /// Whether it follows the last piece.
    ends: bool,
}

impl Part {
    fn end(bytes: Vec<u8>) -> Part {
        Part {
            bytes,
            begins_piece: false,
            ends: true,
        }
    }
}

/// The source of a model's events.
enum Said {
    /// Before the first piece.
    Start(String),
    /// The events of a piece.
    Piece(Vec<String>),
    /// After the last piece.
    End(String),
}

/// The events of a turn.
fn streamed(
    wire: Wire,
    turn: &ModelTurn,
    model: &str,
    prompt_bytes: usize,
    number: usize,
) -> Vec<Part> {
    let said = match wire {
        Wire::OpenAi => openai::events(turn, model, prompt_bytes, number),
        Wire::Anthropic => anthropic::events(turn, model, prompt_bytes, number),
        Wire::Gemini => gemini::events(turn, model, prompt_bytes, number),
        Wire::Responses => responses::events(turn, model, prompt_bytes, number),
    };
    let part = |text: String, begins_piece, ends| Part {
        bytes: text.into_bytes(),
        begins_piece,
        ends,
    };
    let mut parts = Vec::new();
    for said in said {
        match said {
            Said::Start(text) => parts.push(part(text, false, false)),
            Said::Piece(events) => {
                let events = events.into_iter().enumerate();
                parts.extend(events.map(|(at, text)| part(text, at == 0, false)));
            }
            Said::End(text) => parts.push(part(text, false, true)),
        }
    }
    parts
}

/// A turn as one JSON value.
fn whole(wire: Wire, turn: &ModelTurn, model: &str, prompt_bytes: usize, number: usize) -> Vec<u8> {
    let value = match wire {
        Wire::OpenAi => openai::whole(turn, model, prompt_bytes, number),
        Wire::Anthropic => anthropic::whole(turn, model, prompt_bytes, number),
        Wire::Gemini => gemini::whole(turn, model, prompt_bytes, number),
        Wire::Responses => responses::whole(turn, model, prompt_bytes, number),
    };
    value.to_json_string().into_bytes()
}

/// The body of an answer without faults, for tests without a network.
#[must_use]
pub fn body(wire: Wire, turn: &ModelTurn, stream: bool) -> Vec<u8> {
    match stream {
        true => {
            let parts = streamed(wire, turn, MODEL, 0, 0);
            parts.into_iter().flat_map(|part| part.bytes).collect()
        }
        false => whole(wire, turn, MODEL, 0, 0),
    }
}

/// Data that is invalid in every wire format.
const NO_EVENT: &[u8] = b"data: {\"this is\": no event\n\n";

/// Sends the parts of an answer with the turn's fault.
async fn play(
    stream: &mut TcpStream,
    turn: &ModelTurn,
    parts: Vec<Part>,
    media: &str,
    streams: bool,
) -> io::Result<()> {
    let cut = match turn.fault {
        Some(ModelFault::Cut(bytes)) => Some(bytes),
        _ => None,
    };
    let (mut reading, writing) = stream.split();
    let mut body = http::Body::new(writing, cut);
    let playing = async {
        body.head(media).await?;
        let mut pieces = 0;
        // Buffer parts without a delay in one write, like a fast service.
        for part in parts {
            let ends = part.begins_piece || part.ends;
            match turn.fault {
                Some(ModelFault::Stall(most)) if ends && (pieces == most || part.ends) => {
                    body.flush().await?;
                    std::future::pending::<()>().await;
                }
                Some(ModelFault::Malformed(most)) if ends && (pieces == most || part.ends) => {
                    let wrong: &[u8] = match streams {
                        true => NO_EVENT,
                        false => b"{\"this is\": no answer",
                    };
                    body.send(wrong).await?;
                    return body.finish().await;
                }
                _ => {}
            }
            if part.begins_piece {
                pieces += 1;
                if !turn.delay.is_zero() {
                    body.flush().await?;
                    tokio::time::sleep(turn.delay).await;
                }
            }
            if !body.send(&part.bytes).await? {
                // Cut: the connection is closed.
                return Ok(());
            }
        }
        match cut {
            Some(_) => body.flush().await,
            None => body.finish().await,
        }
    };
    // Notice a client that disconnects, even while no data is sent.
    let left = http::until_closed(&mut reading);
    http::first(playing, left).await
}

fn models() -> Value {
    let model = map([("id", MODEL.into()), ("object", "model".into())]);
    map([("object", "list".into()), ("data", vec![model].into())])
}

/// The body of an error.
fn failure(wire: Option<Wire>, status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let error = map([("type", kind.into()), ("message", message.into())]);
    match wire {
        Some(Wire::Anthropic) => map([("type", "error".into()), ("error", error)]),
        _ => map([("error", error)]),
    }
}
