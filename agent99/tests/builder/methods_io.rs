//! The part of [`crate::methods`] for atoms with external effects.

use crate::methods::{Row, new};
use agent99::builder::{
    ChatOptions, ChatTool, FetchOptions, LlmOptions, LoopBounds, PageOptions, ProcedureOptions,
    QueryOptions, ReadFileOptions, SearchOptions, ShellOptions, VectorSearchOptions, VisionOptions,
    WriteFileOptions, args,
};
use agent99::{Value, json};

pub(crate) fn io() -> Vec<Row> {
    vec![
        (
            new().http_fetch("u", FetchOptions::default()),
            r#"{"op":"httpFetch","url":"u"}"#,
        ),
        (
            new().http_fetch(
                "u",
                FetchOptions {
                    method: "PUT".into(),
                    headers: [("accept", "text/plain")].into(),
                    body: args("b"),
                    response_type: "json".into(),
                },
            ),
            r#"{"op":"httpFetch","url":"u","method":"PUT","headers":{"accept":"text/plain"},"body":{"$kind":"arg","path":"b"},"responseType":"json"}"#,
        ),
        (new().store_get("k"), r#"{"op":"storeGet","key":"k"}"#),
        (
            new().store_set("k", 1),
            r#"{"op":"storeSet","key":"k","value":1}"#,
        ),
        (
            new().store_set_for("k", 1, 500),
            r#"{"op":"storeSet","key":"k","value":1,"ttlMs":500}"#,
        ),
        (new().store_delete("k"), r#"{"op":"storeDelete","key":"k"}"#),
        (
            new().store_list(
                "p",
                PageOptions {
                    cursor: "c".into(),
                    limit: 5.into(),
                },
            ),
            r#"{"op":"storeList","prefix":"p","cursor":"c","limit":5}"#,
        ),
        (
            new().store_compare_and_set("k", 1, 2, 500),
            r#"{"op":"storeCompareAndSet","key":"k","expected":1,"value":2,"ttlMs":500}"#,
        ),
        (new().store_query("q"), r#"{"op":"storeQuery","query":"q"}"#),
        (
            new().store_vector_search(
                "v",
                VectorSearchOptions {
                    collection: "c".into(),
                    k: 3.into(),
                },
            ),
            r#"{"op":"storeVectorSearch","collection":"c","vector":"v","k":3}"#,
        ),
        (
            new().store_query_where(
                "p",
                QueryOptions {
                    collection: "c".into(),
                    limit: 3.into(),
                },
            ),
            r#"{"op":"storeQueryWhere","predicate":"p","collection":"c","limit":3}"#,
        ),
        (
            new().llm_predict("p", [("temperature", 0)]),
            r#"{"op":"llmPredict","prompt":"p","options":{"temperature":0}}"#,
        ),
        (
            new().agent_run("a", [("q", "x")]),
            r#"{"op":"agentRun","agentId":"a","input":{"q":"x"}}"#,
        ),
        (new().xml_parse("s"), r#"{"op":"xmlParse","str":"s"}"#),
        (
            new().transpile_code("s"),
            r#"{"op":"transpileCode","code":"s"}"#,
        ),
        (
            new().run_code("s", [("a", 1)]),
            r#"{"op":"runCode","code":"s","args":{"a":1}}"#,
        ),
        (
            new().console_log("m"),
            r#"{"op":"consoleLog","message":"m"}"#,
        ),
        (
            new().console_warn("m"),
            r#"{"op":"consoleWarn","message":"m"}"#,
        ),
        (
            new().stream_chunk("m"),
            r#"{"op":"streamChunk","data":"m"}"#,
        ),
        (
            new().console_error("m"),
            r#"{"op":"consoleError","message":"m"}"#,
        ),
        (
            new().store_procedure(
                "p",
                ProcedureOptions {
                    ttl: 1000.into(),
                    max_size: 99.into(),
                },
            ),
            r#"{"op":"storeProcedure","ast":"p","ttl":1000,"maxSize":99}"#,
        ),
        (
            new().release_procedure("t"),
            r#"{"op":"releaseProcedure","token":"t"}"#,
        ),
        (
            new().clear_expired_procedures(),
            r#"{"op":"clearExpiredProcedures"}"#,
        ),
    ]
}

pub(crate) fn batteries() -> Vec<Row> {
    vec![
        (
            new().store_vectorize("t", "m"),
            r#"{"op":"storeVectorize","text":"t","model":"m"}"#,
        ),
        (
            new().store_search(
                "c",
                "v",
                SearchOptions {
                    k: 2.into(),
                    filter: [("a", 1)].into(),
                },
            ),
            r#"{"op":"storeSearch","collection":"c","queryVector":"v","k":2,"filter":{"a":1}}"#,
        ),
        (
            new().store_create_collection("c", 384),
            r#"{"op":"storeCreateCollection","collection":"c","dimension":384}"#,
        ),
        (
            new().store_vector_add("c", "d"),
            r#"{"op":"storeVectorAdd","collection":"c","doc":"d"}"#,
        ),
        (
            new().store_vector_upsert("c", "d"),
            r#"{"op":"storeVectorUpsert","collection":"c","doc":"d"}"#,
        ),
        (
            new().store_vector_delete("c", "i"),
            r#"{"op":"storeVectorDelete","collection":"c","id":"i"}"#,
        ),
        (
            new().llm_predict_battery(
                "u",
                LlmOptions {
                    system: "s".into(),
                    tools: [json!({})].into(),
                    response_format: json!({"type": "json_object"}).into(),
                },
            ),
            r#"{"op":"llmPredictBattery","system":"s","user":"u","tools":[{}],"responseFormat":{"type":"json_object"}}"#,
        ),
        (
            new().llm_chat(
                "p",
                [json!({"name": "t"})],
                ChatOptions {
                    messages: "talk".into(),
                    repair: false.into(),
                    ..chat_options()
                },
            ),
            r#"{"op":"llmChat","prompt":"p","messages":"talk","tools":[{"name":"t"}],"system":"s","toolChoice":"auto","responseFormat":{"type":"object"},"model":"m","role":"fast","maxTokens":5,"temperature":0,"seed":1,"stop":["x"],"topP":0.5,"effort":"low","repair":false}"#,
        ),
        (
            new().llm_tool_loop(
                "p",
                [
                    ChatTool::new("t", "T.", json!({"type": "object"}), |b| {
                        b.store_get("input.key")
                    }),
                    ChatTool::atom("storeSet"),
                    ChatTool::agent("a", "A.", ()),
                ],
                LoopBounds {
                    limit: 2.into(),
                    max_rounds: 3.into(),
                    tokens: 100.into(),
                    stop_when: "turn.number > 1".into(),
                    round: "turn".into(),
                },
                ChatOptions {
                    messages: "talk".into(),
                    ..chat_options()
                },
            ),
            r#"{"op":"llmToolLoop","prompt":"p","messages":"talk","tools":[{"name":"t","description":"T.","inputSchema":{"type":"object"},"as":"input","call":{"op":"storeGet","key":"input.key"}},{"atom":"storeSet"},{"agent":"a","description":"A."}],"limit":2,"maxRounds":3,"budget":{"tokens":100},"stopWhen":"turn.number > 1","as":"turn","system":"s","toolChoice":"auto","responseFormat":{"type":"object"},"model":"m","role":"fast","maxTokens":5,"temperature":0,"seed":1,"stop":["x"],"topP":0.5,"effort":"low"}"#,
        ),
        (
            new().llm_vision(
                "p",
                ["i"],
                VisionOptions {
                    system: "s".into(),
                    response_format: Value::Null.into(),
                },
            ),
            r#"{"op":"llmVision","system":"s","prompt":"p","images":["i"],"responseFormat":null}"#,
        ),
        (
            new().dom_text("#a"),
            r##"{"op":"domText","selector":"#a"}"##,
        ),
        (
            new().dom_value("#a"),
            r##"{"op":"domValue","selector":"#a"}"##,
        ),
        (
            new().dom_click("#a"),
            r##"{"op":"domClick","selector":"#a"}"##,
        ),
        (
            new().dom_input("#a", "x"),
            r##"{"op":"domInput","selector":"#a","value":"x"}"##,
        ),
        (
            new().local_storage_get("k"),
            r#"{"op":"localStorageGet","key":"k"}"#,
        ),
        (
            new().local_storage_set("k", "v"),
            r#"{"op":"localStorageSet","key":"k","value":"v"}"#,
        ),
    ]
}

pub(crate) fn shell() -> Vec<Row> {
    vec![
        (
            new().shell_exec("ls", ShellOptions::default()),
            r#"{"op":"shellExec","command":"ls"}"#,
        ),
        (
            new().shell_exec(
                ["cat", "-n"],
                ShellOptions {
                    cwd: "/tmp".into(),
                    env: [("A", "b")].into(),
                    stdin: args("text"),
                    timeout_ms: 500.into(),
                    encoding: "base64".into(),
                },
            ),
            r#"{"op":"shellExec","command":["cat","-n"],"cwd":"/tmp","env":{"A":"b"},"stdin":{"$kind":"arg","path":"text"},"timeoutMs":500,"encoding":"base64"}"#,
        ),
        (
            new().shell_write_file(
                "/srv/a",
                "text",
                WriteFileOptions {
                    encoding: "utf8".into(),
                    mode: "755".into(),
                },
            ),
            r#"{"op":"shellWriteFile","path":"/srv/a","content":"text","encoding":"utf8","mode":"755"}"#,
        ),
        (
            new().shell_read_file(
                "/srv/a",
                ReadFileOptions {
                    encoding: "base64".into(),
                    max_bytes: 99.into(),
                },
            ),
            r#"{"op":"shellReadFile","path":"/srv/a","encoding":"base64","maxBytes":99}"#,
        ),
    ]
}

/// All chat options except the previous messages.
fn chat_options() -> ChatOptions {
    ChatOptions {
        messages: ().into(),
        system: "s".into(),
        tool_choice: "auto".into(),
        response_format: json!({"type": "object"}).into(),
        model: "m".into(),
        role: "fast".into(),
        max_tokens: 5.into(),
        temperature: 0.into(),
        seed: 1.into(),
        stop: ["x"].into(),
        top_p: 0.5.into(),
        effort: "low".into(),
        repair: ().into(),
    }
}
