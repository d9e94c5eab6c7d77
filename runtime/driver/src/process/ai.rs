//! Language model over the socket: the host asks its provider and keeps the keys.

use super::peer::{AI_TIMEOUT, Peer};
use super::remote::RemoteTurn;
use super::wire::OfTurn;
use crate::error::{AgentError, codes};
use a99_capabilities::ai::{
    AiCode, AiError, Effort, Format, Image, Message, Opaque, Part, Place, Role, StopReason,
    StreamEvent, StreamHandle, StreamSink, TextRequest, Tool, ToolChoice, ToolUse, Usage,
};
use a99_capabilities::{AiProvider, BoxFuture};
use agent99::Value;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A [`TextRequest`], with the number of its event stream.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) stream: u64,
    role: Option<String>,
    model: Option<String>,
    system: Option<String>,
    messages: Vec<WireMessage>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    stop_sequences: Vec<String>,
    tools: Vec<(String, Option<String>, Value)>,
    tool_choice: WireChoice,
    format: WireFormat,
    seed: Option<u64>,
    top_p: Option<f64>,
    effort: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WireMessage {
    is_assistant: bool,
    content: Vec<WirePart>,
}

#[derive(Serialize, Deserialize)]
enum WirePart {
    Text(String),
    Url(String),
    Base64(String, String),
    Use(#[serde(with = "WireUse")] ToolUse),
    Result(String, String, bool),
    Opaque(Option<String>, WireOpaque),
}

/// An opaque part and its position.
#[derive(Serialize, Deserialize)]
pub(super) struct WireOpaque {
    place: WirePlace,
    value: Value,
}

#[derive(Serialize, Deserialize)]
enum WirePlace {
    Message,
    Content(usize, usize),
    Call(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolUse")]
struct WireUse {
    id: String,
    name: String,
    input: Value,
}

#[derive(Serialize, Deserialize)]
enum WireChoice {
    Auto,
    None,
    Required,
    Tool(String),
}

#[derive(Serialize, Deserialize)]
enum WireFormat {
    Text,
    Json,
    Schema(String, Value),
}

/// An event of an answer, except its end.
#[derive(Serialize, Deserialize)]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
    Use(#[serde(with = "WireUse")] ToolUse),
    Opaque(WireOpaque),
    Usage([u64; 5]),
}

/// The end of an answer.
#[derive(Serialize, Deserialize)]
pub(super) struct End {
    model: Option<String>,
    end: Ending,
}

#[derive(Serialize, Deserialize)]
enum Ending {
    Done(String),
    Cancelled,
    Failed {
        code: String,
        message: String,
        retry_after: Option<Duration>,
    },
}

impl From<Opaque> for WireOpaque {
    fn from(part: Opaque) -> WireOpaque {
        WireOpaque {
            place: match part.place {
                Place::Message => WirePlace::Message,
                Place::Content { text, calls } => WirePlace::Content(text, calls),
                Place::Call(id) => WirePlace::Call(id),
            },
            value: part.value,
        }
    }
}

impl From<WireOpaque> for Opaque {
    fn from(part: WireOpaque) -> Opaque {
        Opaque {
            place: match part.place {
                WirePlace::Message => Place::Message,
                WirePlace::Content(text, calls) => Place::Content { text, calls },
                WirePlace::Call(id) => Place::Call(id),
            },
            value: part.value,
        }
    }
}

fn invalid(what: &str) -> AiError {
    AiError::new(
        AiCode::Invalid,
        format!("{what} is not known between processes"),
    )
}

impl Request {
    fn of(stream: u64, request: TextRequest) -> Result<Request, AiError> {
        let part = |part: Part| {
            Ok(match part {
                Part::Text(text) => WirePart::Text(text),
                Part::Image(Image::Url(url)) => WirePart::Url(url),
                Part::Image(Image::Base64 { media_type, data }) => {
                    WirePart::Base64(media_type, data)
                }
                Part::ToolUse(used) => WirePart::Use(used),
                Part::ToolResult {
                    id,
                    content,
                    is_error,
                } => WirePart::Result(id, content, is_error),
                Part::Opaque { from, part } => WirePart::Opaque(from, part.into()),
                _ => return Err(invalid("a part of a message")),
            })
        };
        let message = |message: Message| {
            let content: Result<Vec<_>, AiError> = message.content.into_iter().map(part).collect();
            Ok(WireMessage {
                is_assistant: message.role == Role::Assistant,
                content: content?,
            })
        };
        let messages: Result<Vec<_>, AiError> = request.messages.into_iter().map(message).collect();
        let tools = request.tools.into_iter();
        Ok(Request {
            stream,
            role: request.role,
            model: request.model,
            system: request.system,
            messages: messages?,
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            stop_sequences: request.stop_sequences,
            tools: tools
                .map(|tool| (tool.name, tool.description, tool.input_schema))
                .collect(),
            tool_choice: match request.tool_choice {
                ToolChoice::Auto => WireChoice::Auto,
                ToolChoice::None => WireChoice::None,
                ToolChoice::Required => WireChoice::Required,
                ToolChoice::Tool(name) => WireChoice::Tool(name),
            },
            format: match request.format {
                Format::Text => WireFormat::Text,
                Format::Json => WireFormat::Json,
                Format::Schema { name, schema } => WireFormat::Schema(name, schema),
            },
            seed: request.seed,
            top_p: request.top_p,
            effort: request.effort.map(|effort| effort.name().to_owned()),
        })
    }
}

impl From<Request> for TextRequest {
    fn from(wire: Request) -> TextRequest {
        let part = |part: WirePart| match part {
            WirePart::Text(text) => Part::Text(text),
            WirePart::Url(url) => Part::Image(Image::Url(url)),
            WirePart::Base64(media_type, data) => Part::Image(Image::Base64 { media_type, data }),
            WirePart::Use(used) => Part::ToolUse(used),
            WirePart::Result(id, content, is_error) => Part::ToolResult {
                id,
                content,
                is_error,
            },
            WirePart::Opaque(from, part) => Part::Opaque {
                from,
                part: part.into(),
            },
        };
        let message = |message: WireMessage| Message {
            role: match message.is_assistant {
                true => Role::Assistant,
                false => Role::User,
            },
            content: message.content.into_iter().map(part).collect(),
        };
        let tool = |(name, description, input_schema)| Tool {
            name,
            description,
            input_schema,
        };
        TextRequest {
            role: wire.role,
            model: wire.model,
            system: wire.system,
            messages: wire.messages.into_iter().map(message).collect(),
            max_tokens: wire.max_tokens,
            temperature: wire.temperature,
            stop_sequences: wire.stop_sequences,
            tools: wire.tools.into_iter().map(tool).collect(),
            tool_choice: match wire.tool_choice {
                WireChoice::Auto => ToolChoice::Auto,
                WireChoice::None => ToolChoice::None,
                WireChoice::Required => ToolChoice::Required,
                WireChoice::Tool(name) => ToolChoice::Tool(name),
            },
            format: match wire.format {
                WireFormat::Text => Format::Text,
                WireFormat::Json => Format::Json,
                WireFormat::Schema(name, schema) => Format::Schema { name, schema },
            },
            seed: wire.seed,
            top_p: wire.top_p,
            effort: wire.effort.as_deref().and_then(Effort::named),
        }
    }
}

fn failed(error: AiError) -> Ending {
    Ending::Failed {
        code: error.code.name().to_owned(),
        message: error.message,
        retry_after: error.retry_after,
    }
}

/// The roles of a provider, or the code and text of its error.
type Roles = Result<BTreeMap<String, String>, (String, String)>;

pub(super) async fn roles(model: &Arc<dyn AiProvider>) -> Result<Roles, AgentError> {
    let roles = model.list_roles().await;
    Ok(roles.map_err(|error| (error.code.name().to_owned(), error.message)))
}

/// Asks the host's provider and forwards its events as they arrive. Dropping the future drops
/// the stream.
pub(super) async fn serve(
    peer: &Peer,
    model: &dyn AiProvider,
    request: Request,
) -> Result<End, AgentError> {
    let stream_id = request.stream;
    let request = TextRequest::from(request);
    // An agent in another process has no network policy to check addresses against.
    if let Err(error) = request.check_addresses(None) {
        let end = failed(error);
        return Ok(End { model: None, end });
    }
    let mut stream = model.stream_text(request);
    let mut end = Ending::Cancelled;
    while let Some(event) = stream.next().await {
        let piece = match event {
            StreamEvent::Text(text) => Piece::Text(text),
            StreamEvent::Thinking(text) => Piece::Thinking(text),
            StreamEvent::ToolUse(used) => Piece::Use(used),
            StreamEvent::Opaque(part) => Piece::Opaque(part.into()),
            StreamEvent::Usage(usage) => Piece::Usage([
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.cached_tokens,
                usage.reasoning_tokens,
                usage.written_tokens,
            ]),
            StreamEvent::Done(reason) => {
                end = Ending::Done(reason.name().to_owned());
                continue;
            }
            StreamEvent::Error(error) => {
                end = failed(error);
                continue;
            }
            StreamEvent::Cancelled => continue,
            _ => {
                let message = "the model gave an event that is not known between processes";
                end = failed(AiError::new(AiCode::Malformed, message));
                break;
            }
        };
        peer.notify("ai.event", &(stream_id, piece)).await?;
    }
    let model = match end {
        Ending::Done(_) => stream.done().await.ok().and_then(|result| result.model),
        _ => None,
    };
    Ok(End { model, end })
}

/// Streams of answers over a connection.
#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<HashMap<u64, Arc<StreamSink>>>,
    next: std::sync::atomic::AtomicU64,
}

impl Streams {
    /// Takes an event. Events of a stream without a reader are dropped.
    pub(super) fn take(&self, stream: u64, piece: Piece) {
        let sink = crate::hub::locked(&self.open).get(&stream).cloned();
        let Some(sink) = sink else { return };
        sink.send(match piece {
            Piece::Text(text) => StreamEvent::Text(text),
            Piece::Thinking(text) => StreamEvent::Thinking(text),
            Piece::Use(used) => StreamEvent::ToolUse(used),
            Piece::Opaque(part) => StreamEvent::Opaque(part.into()),
            Piece::Usage([prompt, completion, cached, reasoning, written]) => {
                StreamEvent::Usage(Usage {
                    prompt_tokens: prompt,
                    completion_tokens: completion,
                    cached_tokens: cached,
                    reasoning_tokens: reasoning,
                    written_tokens: written,
                })
            }
        });
    }
}

/// An error of the model or of the connection.
fn ai_error(code: &str, message: String) -> AiError {
    let known = AiCode::ALL.iter().find(|known| known.name() == code);
    let code = match code {
        codes::NO_AI => Some(AiCode::Denied),
        codes::CALL_LATE => Some(AiCode::TotalTimeout),
        codes::MESSAGE_TOO_LARGE => Some(AiCode::TooLarge),
        _ => known.copied(),
    };
    AiError::new(code.unwrap_or(AiCode::Unreachable), message)
}

/// The language model of a host in another process.
pub(super) struct RemoteAi(pub(super) Arc<RemoteTurn>);

impl AiProvider for RemoteAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async move {
            match self.0.call::<Roles>("ai.roles", ()).await {
                Ok(roles) => roles.map_err(|(code, message)| ai_error(&code, message)),
                Err(error) => Err(ai_error(error.code(), error.to_string())),
            }
        })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let turn = Arc::clone(&self.0);
        let streams = Arc::clone(&turn.streams);
        let id = streams
            .next
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("process-{id}");
        let request = match Request::of(id, request) {
            Ok(request) => request,
            Err(error) => return StreamHandle::failed(name, error),
        };
        let (sink, handle) = StreamHandle::new(name);
        let sink = Arc::new(sink);
        crate::hub::locked(&streams.open).insert(id, Arc::clone(&sink));
        turn.runtime.clone().spawn(async move {
            let asked = OfTurn {
                turn: turn.turn,
                epoch: turn.epoch,
                params: request,
            };
            let ended = tokio::select! {
                ended = turn.peer.request::<End>("ai.stream", &asked, Some(AI_TIMEOUT)) => Some(ended),
                // Dropping the request cancels it.
                () = sink.closed() => None,
            };
            crate::hub::locked(&streams.open).remove(&id);
            match ended {
                None => {}
                Some(Ok(End { model, end })) => {
                    if let Some(model) = model {
                        sink.answered_by(model);
                    }
                    match end {
                        Ending::Done(reason) => sink.finish(StopReason::named(&reason)),
                        Ending::Cancelled => {
                            let message = "the host gave the answer up";
                            sink.fail(AiError::new(AiCode::CutOff, message));
                        }
                        Ending::Failed {
                            code,
                            message,
                            retry_after,
                        } => sink.fail(ai_error(&code, message).retry_after(retry_after)),
                    }
                }
                Some(Err(error)) => {
                    turn.heed(&error);
                    sink.fail(ai_error(error.code(), error.to_string()));
                }
            }
        });
        handle
    }
}
