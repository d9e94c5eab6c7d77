//! What reaches the world through capabilities (language section 2.6), and
//! console and procedures (2.7).

use super::{Builder, Operand};

/// What [`Builder::http_fetch`] may be told.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    /// The HTTP method.
    pub method: Operand,
    /// An object of header fields.
    pub headers: Operand,
    /// The body.
    pub body: Operand,
    /// `json`, `text`, `dataUrl` or `response`, whatever the status (D56); by
    /// default the response's content type decides, and a status from 400 on is an
    /// error.
    pub response_type: Operand,
}

/// What [`Builder::store_vector_search`] may be told.
#[derive(Clone, Debug, Default)]
pub struct VectorSearchOptions {
    /// The collection to search.
    pub collection: Operand,
    /// How many results; 5.
    pub k: Operand,
}

/// What [`Builder::store_list`] may be told.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// The cursor of the page before.
    pub cursor: Operand,
    /// How many keys at most; 100.
    pub limit: Operand,
}

/// What [`Builder::store_query_where`] may be told.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// The collection to read.
    pub collection: Operand,
    /// The most results.
    pub limit: Operand,
}

/// What [`Builder::store_procedure`] may be told.
#[derive(Clone, Debug, Default)]
pub struct ProcedureOptions {
    /// Milliseconds until it expires; an hour.
    pub ttl: Operand,
    /// The largest program, in characters of its JSON.
    pub max_size: Operand,
}

/// Network, store, models and agents (language section 2.6).
impl Builder {
    /// `httpFetch`: a request by the `fetch` capability.
    ///
    /// ```
    /// # use a99_builder::{Builder, FetchOptions, args};
    /// let program = Builder::new()
    ///     .http_fetch(
    ///         args("url"),
    ///         FetchOptions {
    ///             method: "POST".into(),
    ///             ..FetchOptions::default()
    ///         },
    ///     )
    ///     .as_("response");
    /// # assert_eq!(program.steps()[0].get("method"), Some(&"POST".into()));
    /// ```
    pub fn http_fetch(self, url: impl Into<Operand>, options: FetchOptions) -> Self {
        let params = vec![
            ("url", url.into()),
            ("method", options.method),
            ("headers", options.headers),
            ("body", options.body),
            ("responseType", options.response_type),
        ];
        self.atom("httpFetch", params)
    }

    /// `storeGet`: what the store has under a key.
    pub fn store_get(self, key: impl Into<Operand>) -> Self {
        self.atom("storeGet", vec![("key", key.into())])
    }

    /// `storeSet`: puts a value into the store.
    pub fn store_set(self, key: impl Into<Operand>, value: impl Into<Operand>) -> Self {
        let params = vec![("key", key.into()), ("value", value.into())];
        self.atom("storeSet", params)
    }

    /// `storeSet` of a key that is gone after some milliseconds.
    pub fn store_set_for(
        self,
        key: impl Into<Operand>,
        value: impl Into<Operand>,
        ttl_ms: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("key", key.into()),
            ("value", value.into()),
            ("ttlMs", ttl_ms.into()),
        ];
        self.atom("storeSet", params)
    }

    /// `storeDelete`: deletes a key; whether it was there.
    pub fn store_delete(self, key: impl Into<Operand>) -> Self {
        self.atom("storeDelete", vec![("key", key.into())])
    }

    /// `storeList`: a page of the keys with a prefix (`()` for all), as
    /// `{keys, cursor}`.
    pub fn store_list(self, prefix: impl Into<Operand>, options: PageOptions) -> Self {
        let params = vec![
            ("prefix", prefix.into()),
            ("cursor", options.cursor),
            ("limit", options.limit),
        ];
        self.atom("storeList", params)
    }

    /// `storeCompareAndSet`: sets a key that still has the expected value (`()` for a
    /// key that is not set), for some milliseconds (`()` for good); whether it did.
    pub fn store_compare_and_set(
        self,
        key: impl Into<Operand>,
        expected: impl Into<Operand>,
        value: impl Into<Operand>,
        ttl_ms: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("key", key.into()),
            ("expected", expected.into()),
            ("value", value.into()),
            ("ttlMs", ttl_ms.into()),
        ];
        self.atom("storeCompareAndSet", params)
    }

    /// `storeQuery`: what the store answers to a query.
    pub fn store_query(self, query: impl Into<Operand>) -> Self {
        self.atom("storeQuery", vec![("query", query.into())])
    }

    /// `storeVectorSearch`: the store's nearest neighbours of a vector.
    pub fn store_vector_search(
        self,
        vector: impl Into<Operand>,
        options: VectorSearchOptions,
    ) -> Self {
        let params = vec![
            ("collection", options.collection),
            ("vector", vector.into()),
            ("k", options.k),
        ];
        self.atom("storeVectorSearch", params)
    }

    /// `storeQueryWhere`: what the store has for a verified predicate.
    pub fn store_query_where(self, predicate: impl Into<Operand>, options: QueryOptions) -> Self {
        let params = vec![
            ("predicate", predicate.into()),
            ("collection", options.collection),
            ("limit", options.limit),
        ];
        self.atom("storeQueryWhere", params)
    }

    /// `llmPredict`: a model's answer to a prompt; `options` are the
    /// capability's (`()` for none).
    pub fn llm_predict(self, prompt: impl Into<Operand>, options: impl Into<Operand>) -> Self {
        let params = vec![("prompt", prompt.into()), ("options", options.into())];
        self.atom("llmPredict", params)
    }

    /// `agentRun`: another agent's result for an input.
    pub fn agent_run(self, agent_id: impl Into<Operand>, input: impl Into<Operand>) -> Self {
        let params = vec![("agentId", agent_id.into()), ("input", input.into())];
        self.atom("agentRun", params)
    }

    /// `xmlParse`: the value of an XML text, by capability.
    pub fn xml_parse(self, str: impl Into<Operand>) -> Self {
        self.atom("xmlParse", vec![("str", str.into())])
    }

    /// `transpileCode`: the program of a source text, by capability.
    pub fn transpile_code(self, code: impl Into<Operand>) -> Self {
        self.atom("transpileCode", vec![("code", code.into())])
    }

    /// `runCode`: transpiles source code and runs it in a child scope with
    /// `args`, an object of operands (`()` for none).
    pub fn run_code(self, code: impl Into<Operand>, args: impl Into<Operand>) -> Self {
        let params = vec![("code", code.into()), ("args", args.into())];
        self.atom("runCode", params)
    }
}

/// Console and procedures (language section 2.7).
impl Builder {
    /// `consoleLog`: a message into the trace.
    pub fn console_log(self, message: impl Into<Operand>) -> Self {
        self.atom("consoleLog", vec![("message", message.into())])
    }

    /// `consoleWarn`: a message into the warnings of the run.
    pub fn console_warn(self, message: impl Into<Operand>) -> Self {
        self.atom("consoleWarn", vec![("message", message.into())])
    }

    /// `consoleError`: fails with a message.
    pub fn console_error(self, message: impl Into<Operand>) -> Self {
        self.atom("consoleError", vec![("message", message.into())])
    }

    /// `streamChunk`: data for the host while the program runs.
    pub fn stream_chunk(self, data: impl Into<Operand>) -> Self {
        self.atom("streamChunk", vec![("data", data.into())])
    }

    /// `storeProcedure`: keeps a program and gives its token.
    pub fn store_procedure(self, ast: impl Into<Operand>, options: ProcedureOptions) -> Self {
        let params = vec![
            ("ast", ast.into()),
            ("ttl", options.ttl),
            ("maxSize", options.max_size),
        ];
        self.atom("storeProcedure", params)
    }

    /// `releaseProcedure`: forgets a procedure; whether there was one.
    pub fn release_procedure(self, token: impl Into<Operand>) -> Self {
        self.atom("releaseProcedure", vec![("token", token.into())])
    }

    /// `clearExpiredProcedures`: forgets what has expired; how many there were.
    pub fn clear_expired_procedures(self) -> Self {
        self.atom("clearExpiredProcedures", vec![])
    }
}
