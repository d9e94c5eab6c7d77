//! Requests to models.

use super::{AiCode, AiError};
use crate::Fetch;
use a99_core::value::Value;

/// A request for text. [`TextRequest::new`] makes one with a single message; all fields are
/// public.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRequest {
    /// Role whose model answers, by default [`DEFAULT_ROLE`](super::DEFAULT_ROLE).
    pub role: Option<String>,
    /// Model in the provider's naming; it takes precedence over the role.
    pub model: Option<String>,
    /// System message.
    pub system: Option<String>,
    /// The conversation so far, oldest message first.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, from 0 to 2; some services accept less.
    pub temperature: Option<f64>,
    /// Nucleus sampling: probability mass of the tokens to choose from, from 0 to 1.
    pub top_p: Option<f64>,
    /// Reasoning effort.
    pub effort: Option<Effort>,
    /// Stop sequences.
    pub stop_sequences: Vec<String>,
    /// Tools offered to the model.
    pub tools: Vec<Tool>,
    /// Whether the model has to call a tool.
    pub tool_choice: ToolChoice,
    /// The form of the answer's text.
    pub format: Format,
    /// Sampling seed: equal seeds ask for equal answers, if the service supports it.
    pub seed: Option<u64>,
}

/// Reasoning effort. Each service supports some of the levels.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Effort {
    /// No reasoning.
    None,
    /// Least reasoning.
    Minimal,
    /// Little reasoning.
    Low,
    /// Enough for most questions.
    Medium,
    /// Much reasoning.
    High,
    /// More than [`High`](Effort::High).
    XHigh,
    /// The model's maximum.
    Max,
}

impl Effort {
    /// All efforts, in order.
    pub const ALL: &'static [Effort] = &[
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];

    /// The effort as text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// Most reasoning tokens, for services that count them.
    #[must_use]
    pub const fn tokens(self) -> u32 {
        match self {
            Effort::None => 0,
            Effort::Minimal | Effort::Low => 1_024,
            Effort::Medium => 8_192,
            Effort::High | Effort::XHigh | Effort::Max => 24_576,
        }
    }

    /// The effort of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Effort> {
        Effort::ALL
            .iter()
            .copied()
            .find(|effort| effort.name() == name)
    }
}

/// Author of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user; also results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Author.
    pub role: Role,
    /// Parts of the message.
    pub content: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// An image, of the user.
    Image(Image),
    /// A tool call of the model.
    ToolUse(super::ToolUse),
    /// An opaque part of an answer, returned only to the service that sent it.
    Opaque {
        /// The model that sent it, as in [`TextResult::model`](super::TextResult::model);
        /// `None` for a part that the program wrote in a wire format.
        from: Option<String>,
        /// The part.
        part: super::Opaque,
    },
    /// The result of a tool.
    ToolResult {
        /// Id of the tool call.
        id: String,
        /// The result as text.
        content: String,
        /// Whether the tool failed.
        is_error: bool,
    },
}

/// An image; other media types make it a document or audio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// An address that the service fetches itself.
    Url(String),
    /// Embedded data in Base64.
    Base64 {
        /// Media type, such as `image/png`.
        media_type: String,
        /// Base64 text of the data.
        data: String,
    },
}

/// Kind of an embedded part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// An image, and any unknown media type.
    Image,
    /// A document: PDF.
    Document,
    /// Audio, in this format.
    Audio(&'static str),
}

impl Image {
    /// The kind, by the media type.
    #[must_use]
    pub fn kind(&self) -> MediaKind {
        let Image::Base64 { media_type, .. } = self else {
            return MediaKind::Image;
        };
        match &*media_type.to_ascii_lowercase() {
            "application/pdf" => MediaKind::Document,
            "audio/wav" | "audio/x-wav" | "audio/wave" => MediaKind::Audio("wav"),
            "audio/mp3" | "audio/mpeg" => MediaKind::Audio("mp3"),
            "audio/flac" => MediaKind::Audio("flac"),
            "audio/ogg" | "audio/opus" => MediaKind::Audio("ogg"),
            _ => MediaKind::Image,
        }
    }

    /// An image by address; a `data:` URL has the embedded data.
    #[must_use]
    pub fn of_url(url: &str) -> Image {
        let rest = url.get("data:".len()..);
        let inner = rest.filter(|_| starts_with(url, "data:")).and_then(|rest| {
            let (head, data) = rest.split_once(',')?;
            Some((head.strip_suffix(";base64")?, data))
        });
        match inner {
            Some((media_type, data)) => Image::Base64 {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
            None => Image::Url(url.to_owned()),
        }
    }

    /// The image as an address.
    #[must_use]
    pub fn to_url(&self) -> String {
        match self {
            Image::Url(url) => url.clone(),
            Image::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        }
    }
}

/// A tool offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Name: at most 64 letters, digits, `_` and `-`.
    pub name: String,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema of the input, of type `object`.
    pub input_schema: Value,
}

/// Requirement to call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Tool(String),
}

/// Requested form of an answer's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// Text.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// JSON that satisfies a schema.
    Schema {
        /// Name: letters, digits, `_` and `-`.
        name: String,
        /// The JSON Schema.
        schema: Value,
    },
}

impl Message {
    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Message {
        Message {
            role: Role::User,
            content: vec![Part::Text(text.into())],
        }
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Message {
        Message {
            role: Role::Assistant,
            content: vec![Part::Text(text.into())],
        }
    }
}

impl TextRequest {
    /// A request with one message of the user.
    pub fn new(text: impl Into<String>) -> TextRequest {
        TextRequest {
            messages: vec![Message::user(text)],
            ..TextRequest::default()
        }
    }

    /// Sets the role.
    #[must_use]
    pub fn role(self, role: impl Into<String>) -> TextRequest {
        TextRequest {
            role: Some(role.into()),
            ..self
        }
    }

    /// Sets the model.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> TextRequest {
        TextRequest {
            model: Some(model.into()),
            ..self
        }
    }

    /// Sets the system message.
    #[must_use]
    pub fn system(self, system: impl Into<String>) -> TextRequest {
        TextRequest {
            system: Some(system.into()),
            ..self
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> TextRequest {
        self.tools.push(tool);
        self
    }

    /// Bytes of the prompt: texts, tools, images.
    #[must_use]
    pub fn prompt_bytes(&self) -> usize {
        let of_value = |value: &Value| crate::value_bytes(value);
        let part = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Image(Image::Url(url)) => url.len(),
            Part::Image(Image::Base64 { data, .. }) => data.len(),
            Part::ToolUse(used) => used.name.len().saturating_add(of_value(&used.input)),
            Part::ToolResult { content, .. } => content.len(),
            Part::Opaque { part, .. } => of_value(&part.value),
        };
        let parts = self.messages.iter().flat_map(|message| &message.content);
        let tools = self.tools.iter().map(|tool| {
            let description = tool.description.as_ref().map_or(0, String::len);
            let named = tool.name.len().saturating_add(description);
            named.saturating_add(of_value(&tool.input_schema))
        });
        let system = self.system.as_ref().map_or(0, String::len);
        let sizes = parts.map(part).chain(tools);
        sizes.fold(system, usize::saturating_add)
    }

    /// True if a text of the request contains `text`: the system message, messages, results of
    /// tools.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        let part = |part: &Part| match part {
            Part::Text(said) | Part::ToolResult { content: said, .. } => said.contains(text),
            Part::Image(_) | Part::ToolUse(_) | Part::Opaque { .. } => false,
        };
        let mut parts = self.messages.iter().flat_map(|message| &message.content);
        let system = self.system.as_ref();
        system.is_some_and(|system| system.contains(text)) || parts.any(part)
    }

    /// Checks addresses that the model's service would fetch: the run's network must allow
    /// each. `data:` URLs are embedded; any scheme other than HTTP's is refused.
    ///
    /// # Errors
    /// [`AiCode::Denied`] for another address.
    pub fn check_addresses(&self, network: Option<&dyn Fetch>) -> Result<(), AiError> {
        let parts = self.messages.iter().flat_map(|message| &message.content);
        for part in parts {
            let Part::Image(Image::Url(url)) = part else {
                continue;
            };
            if starts_with(url, "data:") {
                continue;
            }
            let is_http = starts_with(url, "http://") || starts_with(url, "https://");
            if !is_http || !network.is_some_and(|network| network.allows(url)) {
                let url = a99_core::diag::excerpt(url);
                return Err(AiError::new(
                    AiCode::Denied,
                    format!(
                        "the model's service is not given the address `{url}`: the network of the \
                         run does not allow it; give the image as a `data:` URL"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Checks limits that hold for every service.
    ///
    /// # Errors
    /// [`AiCode::Invalid`] for a request without messages, an invalid or repeated tool name, a
    /// choice of a tool that is not offered, a temperature or `top_p` out of range, and limits
    /// of 0.
    pub fn check(&self) -> Result<(), AiError> {
        let wrong = |text: String| Err(AiError::new(AiCode::Invalid, text));
        if self
            .messages
            .iter()
            .all(|message| message.content.is_empty())
        {
            return wrong("a request needs a message".to_owned());
        }
        for (at, tool) in self.tools.iter().enumerate() {
            if !is_name(&tool.name) {
                return wrong(format!(
                    "`{}` is no name of a tool: use 1 to 64 of A-Z, a-z, 0-9, _ and -",
                    a99_core::diag::excerpt(&tool.name)
                ));
            }
            if self.tools[..at].iter().any(|other| other.name == tool.name) {
                return wrong(format!("two tools are called `{}`", tool.name));
            }
        }
        if let ToolChoice::Tool(name) = &self.tool_choice
            && !self.tools.iter().any(|tool| tool.name == *name)
        {
            let name = a99_core::diag::excerpt(name);
            return wrong(format!(
                "`{name}` is to be called and no tool that is offered"
            ));
        }
        if self.tool_choice == ToolChoice::Required && self.tools.is_empty() {
            return wrong("a tool is to be called and none is offered".to_owned());
        }
        if self
            .temperature
            .is_some_and(|t| !(0.0..=100.0).contains(&t))
        {
            return wrong("the temperature is a number from 0 on".to_owned());
        }
        if self.top_p.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
            return wrong("`topP` is a number from 0 to 1".to_owned());
        }
        if self.max_tokens == Some(0) {
            return wrong("an answer has at least one token".to_owned());
        }
        if let Format::Schema { name, .. } = &self.format
            && !is_name(name)
        {
            let name = a99_core::diag::excerpt(name);
            return wrong(format!(
                "`{name}` is no name of a schema: use 1 to 64 of A-Z, a-z, 0-9, _ and -"
            ));
        }
        Ok(())
    }
}

fn starts_with(url: &str, scheme: &str) -> bool {
    let start = url.get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// True for a name that services accept for a tool or a schema.
fn is_name(name: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(part)
}
