//! Battery and browser atoms (language section 2.8); a program can use them
//! only where the host registers them.

use super::{Builder, Operand};

/// What [`Builder::store_search`] may be told.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// How many results; 5.
    pub k: Operand,
    /// A filter for the store.
    pub filter: Operand,
}

/// What [`Builder::llm_predict_battery`] may be told.
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// The system's message.
    pub system: Operand,
    /// The tools that the model may call.
    pub tools: Operand,
    /// The form of the answer.
    pub response_format: Operand,
}

/// What [`Builder::llm_vision`] may be told.
#[derive(Clone, Debug, Default)]
pub struct VisionOptions {
    /// The system's message.
    pub system: Operand,
    /// The form of the answer.
    pub response_format: Operand,
}

/// Battery atoms.
impl Builder {
    /// `storeVectorize`: the embedding of a text; `model` is up to the host
    /// (`()` for none).
    pub fn store_vectorize(self, text: impl Into<Operand>, model: impl Into<Operand>) -> Self {
        let params = vec![("text", text.into()), ("model", model.into())];
        self.atom("storeVectorize", params)
    }

    /// `storeSearch`: a collection's nearest neighbours of a vector.
    pub fn store_search(
        self,
        collection: impl Into<Operand>,
        query_vector: impl Into<Operand>,
        options: SearchOptions,
    ) -> Self {
        let params = vec![
            ("collection", collection.into()),
            ("queryVector", query_vector.into()),
            ("k", options.k),
            ("filter", options.filter),
        ];
        self.atom("storeSearch", params)
    }

    /// `storeCreateCollection`: makes a collection of vectors; `dimension` is
    /// optional (`()` for none).
    pub fn store_create_collection(
        self,
        collection: impl Into<Operand>,
        dimension: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("collection", collection.into()),
            ("dimension", dimension.into()),
        ];
        self.atom("storeCreateCollection", params)
    }

    /// `storeVectorAdd`: puts a document with its `embedding` into a
    /// collection.
    pub fn store_vector_add(self, collection: impl Into<Operand>, doc: impl Into<Operand>) -> Self {
        let params = vec![("collection", collection.into()), ("doc", doc.into())];
        self.atom("storeVectorAdd", params)
    }

    /// `storeVectorUpsert`: puts a document with its `embedding` in place of the one
    /// with its `id`.
    pub fn store_vector_upsert(
        self,
        collection: impl Into<Operand>,
        doc: impl Into<Operand>,
    ) -> Self {
        let params = vec![("collection", collection.into()), ("doc", doc.into())];
        self.atom("storeVectorUpsert", params)
    }

    /// `storeVectorDelete`: deletes the documents of a collection with an `id`; whether
    /// there was one.
    pub fn store_vector_delete(
        self,
        collection: impl Into<Operand>,
        id: impl Into<Operand>,
    ) -> Self {
        let params = vec![("collection", collection.into()), ("id", id.into())];
        self.atom("storeVectorDelete", params)
    }

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

/// Browser atoms; their inputs are taken as written.
impl Builder {
    /// `domText`: the text of an element.
    pub fn dom_text(self, selector: &str) -> Self {
        self.atom("domText", vec![("selector", selector.into())])
    }

    /// `domValue`: the value of an input element.
    pub fn dom_value(self, selector: &str) -> Self {
        self.atom("domValue", vec![("selector", selector.into())])
    }

    /// `domClick`: clicks an element.
    pub fn dom_click(self, selector: &str) -> Self {
        self.atom("domClick", vec![("selector", selector.into())])
    }

    /// `domInput`: sets the value of an input element.
    pub fn dom_input(self, selector: &str, value: impl Into<Operand>) -> Self {
        let params = vec![("selector", selector.into()), ("value", value.into())];
        self.atom("domInput", params)
    }

    /// `localStorageGet`: what the browser's storage has under a key.
    pub fn local_storage_get(self, key: &str) -> Self {
        self.atom("localStorageGet", vec![("key", key.into())])
    }

    /// `localStorageSet`: puts a value into the browser's storage.
    pub fn local_storage_set(self, key: &str, value: impl Into<Operand>) -> Self {
        let params = vec![("key", key.into()), ("value", value.into())];
        self.atom("localStorageSet", params)
    }
}
