//! Battery and browser atoms (language section 2.8); a program can use them
//! only where the host registers them.

use super::{Builder, Operand};
use crate::chain::{chain, options};

options! {
    /// Optional inputs of [`Builder::store_search`].
    SearchOptions {
        /// Most results; 5.
        k,
        /// A filter for the store.
        filter,
    }
}

/// Optional inputs of [`Builder::llm_predict_battery`].
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// The system's message.
    pub system: Operand,
    /// The tools that the model may call.
    pub tools: Operand,
    /// The form of the answer.
    pub response_format: Operand,
}

/// Optional inputs of [`Builder::llm_vision`].
#[derive(Clone, Debug, Default)]
pub struct VisionOptions {
    /// The system's message.
    pub system: Operand,
    /// The form of the answer.
    pub response_format: Operand,
}

/// Optional inputs of [`Builder::llm_chat`] and [`Builder::llm_tool_loop`]; absent members are
/// left out.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// The conversation so far; the prompt follows it.
    pub messages: Operand,
    /// The system message.
    pub system: Operand,
    /// `auto`, `none`, `required`, or the name of a tool.
    pub tool_choice: Operand,
    /// The form of the answer: a JSON Schema, or OpenAI's `response_format`.
    pub response_format: Operand,
    /// Name of a model.
    pub model: Operand,
    /// Role whose model answers.
    pub role: Operand,
    /// Most tokens of an answer.
    pub max_tokens: Operand,
    /// Sampling temperature.
    pub temperature: Operand,
    /// Seed: equal seeds ask for equal answers.
    pub seed: Operand,
    /// Stop sequences, which end an answer.
    pub stop: Operand,
    /// Nucleus sampling: probability mass of the tokens to choose from.
    pub top_p: Operand,
    /// Reasoning effort: `low`, `medium`, `high`, and others.
    pub effort: Operand,
    /// `false` to accept an answer of `llmChat` even if it does not have the requested form.
    pub repair: Operand,
}

impl ChatOptions {
    /// All members except the conversation and `repair`.
    fn params(self) -> Vec<(&'static str, Operand)> {
        vec![
            ("system", self.system),
            ("toolChoice", self.tool_choice),
            ("responseFormat", self.response_format),
            ("model", self.model),
            ("role", self.role),
            ("maxTokens", self.max_tokens),
            ("temperature", self.temperature),
            ("seed", self.seed),
            ("stop", self.stop),
            ("topP", self.top_p),
            ("effort", self.effort),
        ]
    }
}

/// Limits of [`Builder::llm_tool_loop`]; absent members are left out.
#[derive(Clone, Debug, Default)]
pub struct LoopBounds {
    /// Concurrent calls of a round; 8.
    pub limit: Operand,
    /// Most rounds; 8.
    pub max_rounds: Operand,
    /// Token limit: no further round begins once this number is used.
    pub tokens: Operand,
    /// Expression over the round; no further round begins once it is truthy.
    pub stop_when: Operand,
    /// Name of the round in `stop_when`; `round`.
    pub round: Operand,
}

/// A tool of [`Builder::llm_tool_loop`].
#[derive(Debug)]
pub struct ChatTool {
    members: Vec<(&'static str, Operand)>,
    call: Option<Builder>,
}

impl ChatTool {
    /// A tool implemented by the call that `call` adds to a builder, which may read the model's
    /// input as the variable `input`.
    pub fn new(
        name: &str,
        description: &str,
        input_schema: impl Into<Operand>,
        call: impl FnOnce(Builder) -> Builder,
    ) -> ChatTool {
        ChatTool {
            members: vec![
                ("name", name.into()),
                ("description", description.into()),
                ("inputSchema", input_schema.into()),
                ("as", "input".into()),
            ],
            call: Some(call(Builder::new())),
        }
    }

    /// An atom, with the schema and description of its signature.
    pub fn atom(op: &str) -> ChatTool {
        ChatTool {
            members: vec![("atom", op.into())],
            call: None,
        }
    }

    /// An agent of the host; `input_schema` is `()` for any object.
    pub fn agent(id: &str, description: &str, input_schema: impl Into<Operand>) -> ChatTool {
        ChatTool {
            members: vec![
                ("agent", id.into()),
                ("description", description.into()),
                ("inputSchema", input_schema.into()),
            ],
            call: None,
        }
    }
}

chain! {
    /// Battery atoms.
    impl Builder;

    /// `storeVectorize`: the embedding of a text; `()` as `model` leaves the choice to the
    /// host.
    store_vectorize = "storeVectorize" (text, model);

    /// `storeSearch`: a collection's nearest neighbours of a vector.
    store_search = "storeSearch" (collection, query_vector "queryVector") + SearchOptions;

    /// `storeCreateCollection`: makes a collection of vectors; `dimension` is
    /// optional (`()` for none).
    store_create_collection = "storeCreateCollection" (collection, dimension);

    /// `storeVectorAdd`: adds a document with its `embedding` to a collection.
    store_vector_add = "storeVectorAdd" (collection, doc);

    /// `storeVectorUpsert`: adds a document with its `embedding`, or replaces the one with its
    /// `id`.
    store_vector_upsert = "storeVectorUpsert" (collection, doc);

    /// `storeVectorDelete`: deletes the documents of a collection with an `id`; gives whether
    /// one existed.
    store_vector_delete = "storeVectorDelete" (collection, id);
}

impl Builder {
    /// `llmPredictBattery`: a chat model's message for the user's message.
    pub fn llm_predict_battery(self, user: impl Into<Operand>, options: LlmOptions) -> Self {
        let params = vec![
            ("system", options.system),
            ("user", user.into()),
            ("tools", options.tools),
            ("responseFormat", options.response_format),
        ];
        self.atom("llmPredictBattery", params)
    }

    /// `llmChat`: one answer of a chat model; `prompt` and `tools` are `()` for none.
    pub fn llm_chat(
        self,
        prompt: impl Into<Operand>,
        tools: impl Into<Operand>,
        options: ChatOptions,
    ) -> Self {
        let mut params = vec![
            ("prompt", prompt.into()),
            ("messages", options.messages.clone()),
            ("tools", tools.into()),
        ];
        let repair = options.repair.clone();
        params.extend(options.params());
        params.push(("repair", repair));
        self.atom("llmChat", params)
    }

    /// `llmToolLoop`: asks a chat model, calls the tools that it requests, and repeats until it
    /// answers (language section 2.11); `prompt` is `()` for none.
    ///
    /// ```
    /// # use a99_builder::{Builder, ChatOptions, ChatTool, LoopBounds};
    /// let tools = [ChatTool::atom("storeGet")];
    /// let program = Builder::new()
    ///     .llm_tool_loop("What is kept?", tools, LoopBounds::default(), ChatOptions::default())
    ///     .as_("answer");
    /// assert!(program.steps()[0].get("tools").is_some());
    /// ```
    pub fn llm_tool_loop(
        mut self,
        prompt: impl Into<Operand>,
        tools: impl IntoIterator<Item = ChatTool>,
        bounds: LoopBounds,
        options: ChatOptions,
    ) -> Self {
        let mut list = Vec::new();
        for (at, tool) in tools.into_iter().enumerate() {
            let mut members = tool.members;
            if let Some(call) = tool.call {
                let key = format!("tools/{at}/call");
                members.push(("call", self.one(&key, |_| call)));
            }
            list.push(Operand::object(members));
        }
        let tokens = bounds.tokens;
        let budget = match tokens.is_absent() {
            true => Operand::default(),
            false => Operand::from([("tokens", tokens)]),
        };
        let mut params = vec![
            ("prompt", prompt.into()),
            ("messages", options.messages.clone()),
            ("tools", list.into()),
            ("limit", bounds.limit),
            ("maxRounds", bounds.max_rounds),
            ("budget", budget),
            ("stopWhen", bounds.stop_when),
            ("as", bounds.round),
        ];
        params.extend(options.params());
        self.atom("llmToolLoop", params)
    }

    /// `llmVision`: a chat model's message for a prompt with images.
    pub fn llm_vision(
        self,
        prompt: impl Into<Operand>,
        images: impl Into<Operand>,
        options: VisionOptions,
    ) -> Self {
        let params = vec![
            ("system", options.system),
            ("prompt", prompt.into()),
            ("images", images.into()),
            ("responseFormat", options.response_format),
        ];
        self.atom("llmVision", params)
    }
}

chain! {
    /// Browser atoms; their inputs are taken literally.
    impl Builder;

    /// `domText`: the text of an element.
    dom_text = "domText" (selector: &str);

    /// `domValue`: the value of an input element.
    dom_value = "domValue" (selector: &str);

    /// `domClick`: clicks an element.
    dom_click = "domClick" (selector: &str);

    /// `domInput`: sets the value of an input element.
    dom_input = "domInput" (selector: &str, value);

    /// `localStorageGet`: the browser storage's value of a key.
    local_storage_get = "localStorageGet" (key: &str);

    /// `localStorageSet`: stores a value in the browser's storage.
    local_storage_set = "localStorageSet" (key: &str, value);
}
