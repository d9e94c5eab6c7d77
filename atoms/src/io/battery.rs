//! The battery atoms (language section 2.8): embeddings, vector collections and chat models.

use super::llm::TIMEOUT_MS as LLM_TIMEOUT_MS;
use super::search::search_priced;
use super::store::offering;
use crate::def::{Adjust, Input, Kind, all_need, host, opt, req};
use crate::grants::{Answer, estimated, granted, inputs, models, payer, present, reply, required};
use crate::tool_loop::{CHAT_INPUTS, EARLIER_CHAT, MODEL_OPTIONS, chat_inputs};
use a99_capabilities::ai::{ChatRound, ProviderBattery, TextRequest, TokenEstimate};
use a99_capabilities::{LlmBattery, Store, StoreMethod};
use a99_core::costs::MICRO;
use a99_core::fuel::Fuel;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds, ShortPrompts};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply};
use std::sync::Arc;

/// Default time limit of embeddings in milliseconds (D22).
const EMBED_TIMEOUT_MS: u64 = 60_000;

/// Price of an embedding.
const VECTORIZE: i64 = 20 * MICRO;

/// Most texts of one call.
const MAX_TEXTS: usize = 2_048;

/// Default number of documents that a search returns.
const DEFAULT_K: f64 = 5.0;

/// Default system prompt.
const DEFAULT_SYSTEM: &str = "You are a helpful agent.";

pub(crate) fn atoms() -> Vec<AtomDef> {
    let mut all = stores();
    all.extend(chat_models());
    all.push(chat_atom());
    all
}

fn stores() -> Vec<AtomDef> {
    let all = vec![
        host(
            "storeVectorize",
            "The embedding of a text.",
            VECTORIZE,
            &[
                // The atom also takes a list of texts. The description does not mention it, because
                // recorded requests contain these words.
                req("text", Kind::Text, "Text to embed."),
                opt("model", Kind::Text, "Ignored: the host chooses the model."),
            ],
            vectorize,
        )
        .listed(ShortPrompts::Neither)
        .needs(Capability::Embedder)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ARRAY))
        .timeout_ms(EMBED_TIMEOUT_MS),
        search_priced(
            host(
                "storeSearch",
                "The k documents of a collection that are nearest to a vector.",
                5 * MICRO,
                &[
                    req(
                        "collection",
                        Kind::Text,
                        "Name of the collection to search.",
                    ),
                    req(
                        "queryVector",
                        Kind::Numbers,
                        "Embedding to compare with, as long as those of the collection; see \
                     `storeVectorize`.",
                    ),
                    opt(
                        "k",
                        Kind::Number,
                        "Maximum number of documents; each costs a unit of fuel.",
                    )
                    .whole(1.0, f64::INFINITY)
                    .default("5"),
                    opt(
                        "filter",
                        Kind::Record,
                        "Members that a document must have, in the form of the store.",
                    ),
                ],
                search,
            )
            .listed(ShortPrompts::Neither)
            .effect(Effect::Read)
            .gives(Gives::always(JsonKinds::ANY)),
        ),
        host(
            "storeCreateCollection",
            "Creates a collection of vectors.",
            5 * MICRO,
            &[
                req(
                    "collection",
                    Kind::Text,
                    "Name of the collection; an existing one with this dimension stays unchanged.",
                ),
                opt(
                    "dimension",
                    Kind::Number,
                    "Length of a vector; by default that of the first document.",
                )
                .whole(1.0, 65_536.0),
            ],
            create_collection,
        )
        .listed(ShortPrompts::Neither),
        host(
            "storeVectorAdd",
            "Adds a document with its embedding to a collection.",
            5 * MICRO,
            &[
                req(
                    "collection",
                    Kind::Text,
                    "Name of a collection that exists.",
                ),
                req(
                    "doc",
                    Kind::Any,
                    "The document, an object with an `embedding`, a list of numbers.",
                )
                .told(Kind::Record),
            ],
            vector_add,
        )
        .listed(ShortPrompts::Neither)
        .timeout_ms(EMBED_TIMEOUT_MS),
        host(
            "storeVectorUpsert",
            "Adds a document with its embedding, and replaces the one with its `id`.",
            5 * MICRO,
            &[
                req(
                    "collection",
                    Kind::Text,
                    "Name of a collection that exists.",
                ),
                req(
                    "doc",
                    Kind::Any,
                    "The document, an object with an `embedding`, a list of numbers, and an \
                     `id`, a text.",
                )
                .told(Kind::Record),
            ],
            vector_upsert,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Idempotent)
        .timeout_ms(EMBED_TIMEOUT_MS),
        host(
            "storeVectorDelete",
            "Deletes the documents of a collection with an `id`; returns whether one existed.",
            5 * MICRO,
            &[
                req(
                    "collection",
                    Kind::Text,
                    "Name of a collection that exists.",
                ),
                req("id", Kind::Text, "The `id` of the document."),
            ],
            vector_delete,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ANY)),
    ];
    all_need(Capability::Vectors, all)
}

fn chat_models() -> Vec<AtomDef> {
    const SYSTEM: Input =
        opt("system", Kind::Text, "The system prompt.").default("\"You are a helpful agent.\"");
    const FORMAT: Input = opt(
        "responseFormat",
        Kind::Any,
        "Form of the answer, such as a JSON Schema, in the form of the host's model; by default \
         the model chooses.",
    )
    .told(Kind::TextOrRecord);
    let all = vec![
        host(
            "llmPredictBattery",
            "Asks a chat model, with tools and structured output.",
            100 * MICRO,
            &[
                SYSTEM,
                req(
                    "user",
                    Kind::Any,
                    "The prompt: a text, a list of messages, or `{text, images}`.",
                )
                .told(Kind::TextOrData),
                opt(
                    "tools",
                    Kind::List,
                    "Tools that the model may call, in the form of the host's model.",
                ),
                FORMAT,
            ],
            predict,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY))
        .timeout_ms(LLM_TIMEOUT_MS),
        host(
            "llmVision",
            "Asks a chat model about images.",
            150 * MICRO,
            &[
                SYSTEM,
                req("prompt", Kind::Text, "The question about the images."),
                req(
                    "images",
                    Kind::Texts,
                    "The images, each a URL or a `data:` URL, as the host's model accepts them.",
                ),
                FORMAT,
            ],
            vision,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY))
        .timeout_ms(LLM_TIMEOUT_MS),
    ];
    all_need(Capability::LlmBattery, all)
}

/// One round of a conversation, at the price of `llmPredictBattery`.
fn chat_atom() -> AtomDef {
    host(
        "llmChat",
        "One answer of a chat model, with its tool calls: `{text, toolCalls: [{id, name, input}], \
         stopReason, message, usage: {inputTokens, outputTokens}}`; append `message` to \
         `messages`.",
        100 * MICRO,
        &chat_inputs(),
        chat,
    )
    .listed(ShortPrompts::Neither)
    .needs(Capability::Ai)
    .effect(Effect::Read)
    .gives(Gives::always(JsonKinds::OBJECT))
    .earlier(EARLIER_CHAT)
    .timeout_ms(LLM_TIMEOUT_MS)
}

fn store(call: &HostCall, method: StoreMethod) -> Result<Arc<dyn Store>, AtomError> {
    offering(call, method).ok_or_else(|| {
        let name = method.as_str();
        AtomError::missing(format!(
            "Capability 'store' missing or does not support {name}."
        ))
    })
}

/// Calls the host's chat model, or one adapted from its provider.
async fn ask(
    call: &HostCall,
    images: usize,
    [system, user, tools, format]: [Value; 4],
) -> Result<HostReply, AtomError> {
    if let Some(battery) = granted(call, |c| &c.llm_battery) {
        let text = match images {
            0 => &user,
            _ => user.get("text").unwrap_or(&Value::Undefined),
        };
        let told = [&system, text, &tools].map(TokenEstimate::of_value);
        let shown = (0..images).map(|_| TokenEstimate::IMAGE);
        let none = TokenEstimate::default();
        let told = told
            .into_iter()
            .chain(shown)
            .fold(none, TokenEstimate::plus);
        let asked = battery.predict(system, user, tools, format);
        return reply(estimated(call, "llmBattery", told, asked).await);
    }
    let missing = || AtomError::missing("Capability 'llmBattery' missing or invalid.");
    let models = models(call).ok_or_else(missing)?;
    let battery = ProviderBattery::new(models, TextRequest::default());
    let battery = battery.with_network(granted(call, |c| &c.fetch));
    reply(battery.predict(system, user, tools, format).await)
}

fn or_default(value: Value, default: impl Into<Value>) -> Value {
    if value.is_nullish() {
        default.into()
    } else {
        value
    }
}

/// The host chooses the model; the step's model is ignored.
fn vectorize(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [text] = inputs(&mut call);
        const MISSING: &str = "Capability 'vector' missing. Ensure vector battery is loaded.";
        let embedder = required(&call, |c| &c.embedder, MISSING)?;
        let Value::Array(texts) = text else {
            return reply(embedder.embed_paid(text, &payer(&call)).await);
        };
        if texts.len() > MAX_TEXTS {
            let text = format!("storeVectorize: at most {MAX_TEXTS} texts are embedded at once");
            return Err(AtomError::new(text));
        }
        // The step's price covers one text.
        let more = texts.len().saturating_sub(1) as i64;
        let price = Fuel::from_micro(VECTORIZE * more);
        call.locals.charge(price);
        if price > call.fuel_left {
            return Err(AtomError::new(
                "storeVectorize: the fuel pays for fewer texts",
            ));
        }
        reply(embedder.embed_all(texts, &payer(&call)).await)
    })
}

fn search(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, vector, k, filter] = inputs(&mut call);
        let store = store(&call, StoreMethod::VectorSearch)?;
        let k = or_default(k, DEFAULT_K);
        reply(store.vector_search(collection, vector, k, filter).await)
    })
}

fn create_collection(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, dimension] = inputs(&mut call);
        let store = store(&call, StoreMethod::CreateCollection)?;
        reply(
            store
                .create_collection(collection, Value::Undefined, dimension)
                .await,
        )
    })
}

fn vector_add(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, document] = inputs(&mut call);
        let store = store(&call, StoreMethod::VectorAdd)?;
        reply(store.vector_add(collection, document).await)
    })
}

fn vector_upsert(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, document] = inputs(&mut call);
        let store = store(&call, StoreMethod::VectorUpsert)?;
        reply(store.vector_upsert(collection, document).await)
    })
}

fn vector_delete(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, id] = inputs(&mut call);
        let store = store(&call, StoreMethod::VectorDelete)?;
        reply(store.vector_delete(collection, id).await)
    })
}

fn predict(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [system, user, tools, format] = inputs(&mut call);
        let system = or_default(system, DEFAULT_SYSTEM);
        ask(&call, 0, [system, user, tools, format]).await
    })
}

fn vision(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [system, prompt, images, format] = inputs(&mut call);
        let shown = images.as_array().map_or(1, <[Value]>::len);
        let user = present([("text", prompt), ("images", images)]);
        let system = or_default(system, DEFAULT_SYSTEM);
        ask(&call, shown, [system, user, Value::Undefined, format]).await
    })
}

fn chat(mut call: HostCall) -> Answer {
    Box::pin(async move {
        // Programs from before `repair` keep the old behaviour for answers with tools.
        let is_earlier = call.args.len() < CHAT_INPUTS;
        let [prompt, messages, tools, rest @ ..] = inputs::<CHAT_INPUTS>(&mut call);
        let missing = || AtomError::missing("Capability 'ai' missing");
        let models = models(&call).ok_or_else(missing)?;
        let [system, tool_choice, response_format, options @ .., repair] = rest;
        let repair = match is_earlier && !tools.is_nullish() {
            true => Value::Bool(false),
            false => repair,
        };
        let names = MODEL_OPTIONS.iter().skip(3).map(Input::name);
        let given = names
            .zip(options)
            .filter(|(_, value)| !value.is_undefined());
        let round = ChatRound {
            messages,
            prompt,
            system,
            tools,
            tool_choice,
            response_format,
            options: given.collect(),
            repair,
        };
        let network = granted(&call, |c| &c.fetch);
        reply(round.ask(&*models, network.as_deref()).await)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, HashEmbedder, MemoryStore, ScriptedLlmBattery};
    use std::sync::Arc;

    #[test]
    fn vectors_go_in_and_come_back() {
        let set = Capabilities::none()
            .with_store(MemoryStore::new())
            .with_embedder(HashEmbedder::new(4));
        let bench = Bench::with(set);
        let vector = bench
            .call("storeVectorize", r#"["red fox", "any"]"#)
            .unwrap();
        bench.call("storeCreateCollection", r#"["c", 4]"#).unwrap();
        let doc = format!(r#"["c", {{"id":1,"embedding":{vector}}}]"#);
        bench.call("storeVectorAdd", &doc).unwrap();
        let found = bench
            .call("storeSearch", &format!(r#"["c", {vector}]"#))
            .unwrap();
        assert!(found.starts_with(r#"[{"id":1,"#));
        let none = bench.call("storeSearch", &format!(r#"["c", {vector}, 5, {{"id":2}}]"#));
        assert_eq!(none.unwrap(), "[]");
        let doc = format!(r#"["c", {{"id":"x","embedding":{vector}}}]"#);
        bench.call("storeVectorUpsert", &doc).unwrap();
        let gone = bench.call("storeVectorDelete", r#"["c", "x"]"#).unwrap();
        assert_eq!(gone, "true");
    }

    #[test]
    fn d14_lists_of_texts_are_embedded_in_order() {
        let poor = Bench::with(Capabilities::none().with_embedder(HashEmbedder::new(4)));
        let bench = poor.with_fuel(100);
        let call = |args: &str| bench.call("storeVectorize", args);
        assert!(poor.call("storeVectorize", r#"[["one", "two"]]"#).is_err());
        let (fox, tea) = (
            call(r#"["red fox"]"#).unwrap(),
            call(r#"["green tea"]"#).unwrap(),
        );
        let both = call(r#"[["red fox", "green tea"]]"#).unwrap();
        assert_eq!(both, format!("[{fox},{tea}]"));
        assert_eq!(call("[[]]").unwrap(), "[]");
        assert!(call(r#"[["red fox", 1]]"#).is_err());
        let many = format!("[[{}]]", vec!["\"x\""; 2_049].join(","));
        assert!(call(&many).is_err());
    }

    #[test]
    fn d14_programs_of_before_are_those_that_link() {
        use super::*;
        for (known, inputs) in EARLIER_CHAT {
            let inputs = &chat_inputs()[..usize::from(*inputs)];
            let then = host("llmChat", "", 0, inputs, chat);
            assert_eq!(then.sig.fingerprint(), *known);
        }
    }

    #[test]
    fn models_get_their_defaults() {
        let llm = Arc::new(ScriptedLlmBattery::replies(["a", "b"]));
        let mut set = Capabilities::none();
        set.llm_battery = Some(llm.clone());
        let bench = Bench::with(set);
        bench.call("llmPredictBattery", r#"[null, "hi"]"#).unwrap();
        bench
            .call("llmVision", r#"["Look.", "what?", ["data:x"]]"#)
            .unwrap();
        let calls = llm.calls();
        assert_eq!(calls[0][0].as_str(), Some("You are a helpful agent."));
        assert_eq!(
            calls[1][1].to_json_string(),
            r#"{"text":"what?","images":["data:x"]}"#
        );
    }

    #[test]
    fn missing_batteries_say_so() {
        let error = |op, args| Bench::new().call(op, args).unwrap_err();
        assert!(error("storeVectorize", "[1]").starts_with("Capability 'vector' missing."));
        let text = "Capability 'store' missing or does not support vectorSearch.";
        assert_eq!(error("storeSearch", r#"["c",[1]]"#), text);
        assert_eq!(
            error("llmVision", "[]"),
            "Capability 'llmBattery' missing or invalid."
        );
    }
}
