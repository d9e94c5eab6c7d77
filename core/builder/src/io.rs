//! What reaches the world through capabilities (language section 2.6), and
//! console and procedures (2.7).

use super::{Builder, Operand};
use crate::chain::{chain, options};

options! {
    /// What [`Builder::http_fetch`] may be told.
    FetchOptions {
        /// The HTTP method.
        method,
        /// An object of header fields.
        headers,
        /// The body.
        body,
        /// `json`, `text`, `dataUrl` or `response`, whatever the status (D56); by
        /// default the response's content type decides, and a status from 400 on is an
        /// error.
        response_type "responseType",
    }
}

/// What [`Builder::store_vector_search`] may be told.
#[derive(Clone, Debug, Default)]
pub struct VectorSearchOptions {
    /// The collection to search.
    pub collection: Operand,
    /// How many results; 5.
    pub k: Operand,
}

options! {
    /// What [`Builder::store_list`] may be told.
    PageOptions {
        /// The cursor of the page before.
        cursor,
        /// How many keys at most; 100.
        limit,
    }
}

options! {
    /// What [`Builder::store_query_where`] may be told.
    QueryOptions {
        /// The collection to read.
        collection,
        /// The most results.
        limit,
    }
}

options! {
    /// What [`Builder::store_procedure`] may be told.
    ProcedureOptions {
        /// Milliseconds until it expires; an hour.
        ttl,
        /// The largest program, in characters of its JSON.
        max_size "maxSize",
    }
}

chain! {
    /// Network, store, models and agents (language section 2.6).
    impl Builder;

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
    http_fetch = "httpFetch" (url) + FetchOptions;

    /// `storeGet`: what the store has under a key.
    store_get = "storeGet" (key);

    /// `storeSet`: puts a value into the store.
    store_set = "storeSet" (key, value);

    /// `storeSet` of a key that is gone after some milliseconds.
    store_set_for = "storeSet" (key, value, ttl_ms "ttlMs");

    /// `storeDelete`: deletes a key; whether it was there.
    store_delete = "storeDelete" (key);

    /// `storeList`: a page of the keys with a prefix (`()` for all), as
    /// `{keys, cursor}`.
    store_list = "storeList" (prefix) + PageOptions;

    /// `storeCompareAndSet`: sets a key that still has the expected value (`()` for a
    /// key that is not set), for some milliseconds (`()` for good); whether it did.
    store_compare_and_set = "storeCompareAndSet" (key, expected, value, ttl_ms "ttlMs");

    /// `storeQuery`: what the store answers to a query.
    store_query = "storeQuery" (query);

    /// `storeQueryWhere`: what the store has for a verified predicate.
    store_query_where = "storeQueryWhere" (predicate) + QueryOptions;

    /// `llmPredict`: a model's answer to a prompt; `options` are the
    /// capability's (`()` for none).
    llm_predict = "llmPredict" (prompt, options);

    /// `agentRun`: another agent's result for an input.
    agent_run = "agentRun" (agent_id "agentId", input);

    /// `xmlParse`: the value of an XML text, by capability.
    xml_parse = "xmlParse" (str);

    /// `transpileCode`: the program of a source text, by capability.
    transpile_code = "transpileCode" (code);

    /// `runCode`: transpiles source code and runs it in a child scope with
    /// `args`, an object of operands (`()` for none).
    run_code = "runCode" (code, args);
}

impl Builder {
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
}

chain! {
    /// Console and procedures (language section 2.7).
    impl Builder;

    /// `consoleLog`: a message into the trace.
    console_log = "consoleLog" (message);

    /// `consoleWarn`: a message into the warnings of the run.
    console_warn = "consoleWarn" (message);

    /// `consoleError`: fails with a message.
    console_error = "consoleError" (message);

    /// `streamChunk`: data for the host while the program runs.
    stream_chunk = "streamChunk" (data);

    /// `storeProcedure`: keeps a program and gives its token.
    store_procedure = "storeProcedure" (ast) + ProcedureOptions;

    /// `releaseProcedure`: forgets a procedure; whether there was one.
    release_procedure = "releaseProcedure" (token);

    /// `clearExpiredProcedures`: forgets what has expired; how many there were.
    clear_expired_procedures = "clearExpiredProcedures" ();
}
