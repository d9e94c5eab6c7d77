//! Atoms that use capabilities (language section 2.6), console and procedures (2.7).

use super::{Builder, Operand};
use crate::chain::{chain, options};

options! {
    /// Optional inputs of [`Builder::http_fetch`].
    FetchOptions {
        /// The HTTP method.
        method,
        /// An object of header fields.
        headers,
        /// The body.
        body,
        /// `json`, `text`, `dataUrl` or `response`, for any status (D56). By default the
        /// response's content type decides, and a status from 400 on is an error.
        response_type "responseType",
    }
}

/// Optional inputs of [`Builder::store_vector_search`].
#[derive(Clone, Debug, Default)]
pub struct VectorSearchOptions {
    /// The collection to search.
    pub collection: Operand,
    /// Most results; 5.
    pub k: Operand,
}

options! {
    /// Optional inputs of [`Builder::store_list`].
    PageOptions {
        /// Cursor of the previous page.
        cursor,
        /// Most keys; 100.
        limit,
    }
}

options! {
    /// Optional inputs of [`Builder::store_query_where`].
    QueryOptions {
        /// The collection to read.
        collection,
        /// Most results.
        limit,
    }
}

options! {
    /// Optional inputs of [`Builder::store_procedure`].
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

    /// `storeGet`: the store's value of a key.
    store_get = "storeGet" (key);

    /// `storeSet`: stores a value under a key.
    store_set = "storeSet" (key, value);

    /// `storeSet` of a key that expires after some milliseconds.
    store_set_for = "storeSet" (key, value, ttl_ms "ttlMs");

    /// `storeDelete`: deletes a key; gives whether it existed.
    store_delete = "storeDelete" (key);

    /// `storeList`: a page of the keys with a prefix (`()` for all), as
    /// `{keys, cursor}`.
    store_list = "storeList" (prefix) + PageOptions;

    /// `storeCompareAndSet`: sets a key that still has the expected value (`()` for an unset
    /// key), to expire after some milliseconds (`()` for never); gives whether it did.
    store_compare_and_set = "storeCompareAndSet" (key, expected, value, ttl_ms "ttlMs");

    /// `storeQuery`: the store's answer to a query.
    store_query = "storeQuery" (query);

    /// `storeQueryWhere`: the documents that satisfy a verified predicate.
    store_query_where = "storeQueryWhere" (predicate) + QueryOptions;

    /// `llmPredict`: a model's answer to a prompt; `options` are those of the capability (`()`
    /// for none).
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

    /// `consoleLog`: adds a message to the trace.
    console_log = "consoleLog" (message);

    /// `consoleWarn`: adds a message to the warnings of the run.
    console_warn = "consoleWarn" (message);

    /// `consoleError`: fails with a message.
    console_error = "consoleError" (message);

    /// `streamChunk`: sends data to the host while the program runs.
    stream_chunk = "streamChunk" (data);

    /// `sleep`: waits until some milliseconds have passed.
    sleep = "sleep" (ms);

    /// `storeProcedure`: stores a program and gives its token.
    store_procedure = "storeProcedure" (ast) + ProcedureOptions;

    /// `releaseProcedure`: deletes a procedure; gives whether it existed.
    release_procedure = "releaseProcedure" (token);

    /// `clearExpiredProcedures`: deletes expired procedures; gives their number.
    clear_expired_procedures = "clearExpiredProcedures" ();
}
