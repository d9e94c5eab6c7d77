//! `httpFetch`: calls the host's `Fetch` and fails without it (security N01).

use crate::def::{Adjust, Kind, host, opt, req};
use crate::grants::{Answer, inputs, present, reply, required};
use a99_core::costs::MICRO;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_vm::atom::{AtomDef, AtomError, HostCall};

/// Default time limit in milliseconds (D22).
const TIMEOUT_MS: u64 = 30_000;

/// Maximum depth of requests that cause requests, by the depth that hosts record in
/// `context.requestDepth`.
const MAX_REQUEST_DEPTH: f64 = 10.0;

/// The supported methods of RFC 9110 and RFC 5789.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(crate) fn atom() -> AtomDef {
    host(
        "httpFetch",
        "Fetches a URL through the host.",
        5 * MICRO,
        &[
            req("url", Kind::Text, "Absolute URL, `http:` or `https:`.").subject(),
            opt(
                "method",
                Kind::Text,
                "HTTP method; by default the host's choice, mostly GET.",
            )
            .values_any_case(METHODS),
            opt(
                "headers",
                Kind::TextRecord,
                "Header fields: a text for each name.",
            ),
            opt(
                "body",
                Kind::Any,
                "Body of the request, as the host takes it: a text, or data.",
            ),
            opt(
                "responseType",
                Kind::Text,
                "What to give of the answer, whatever its status: its text, its JSON as a value, \
                 a `data:` URL of its bytes, or an object with `status`, `statusText`, `url`, \
                 `headers` and `body`; by default its content type decides, and a status from 400 \
                 on is an error such as `HTTP 404 Not Found`.",
            )
            .values(&["json", "text", "dataUrl", "response"]),
        ],
        fetch,
    )
    .needs(Capability::Fetch)
    .effect(Effect::Read)
    .gives(Gives::always(JsonKinds::ANY))
    .timeout_ms(TIMEOUT_MS)
}

fn fetch(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [url, method, headers, body, response_type] = inputs(&mut call);
        const MISSING: &str = "Capability 'fetch' missing and no global fetch available";
        let fetch = required(&call, |c| &c.fetch, MISSING)?;
        let headers = with_depth(&call.options.context, headers)?;
        let options = present([
            ("method", method),
            ("headers", headers),
            ("body", body),
            ("responseType", response_type),
        ]);
        reply(fetch.fetch(url, options).await)
    })
}

/// Adds `X-Agent-Depth`, so that agents that call each other terminate. Hosts that forward requests
/// record the depth in the context. Without a recorded depth, the headers are the program's, minus
/// `X-Agent-Depth`.
fn with_depth(context: &Value, headers: Value) -> Result<Value, AtomError> {
    const DEPTH: &str = "X-Agent-Depth";
    let of_depth = |name: &Text| name.as_bytes().eq_ignore_ascii_case(DEPTH.as_bytes());
    if let Value::Object(map) = &headers
        && map.keys().any(of_depth)
    {
        let text = format!("the header {DEPTH} is not a program's to set; leave it out");
        return Err(AtomError::new(text));
    }
    let Some(depth) = context.get("requestDepth").and_then(Value::as_f64) else {
        return Ok(headers);
    };
    // A depth that is NaN or out of range is refused.
    if !(0.0..MAX_REQUEST_DEPTH).contains(&depth) {
        let text = format!("Agent request depth exceeded (max {MAX_REQUEST_DEPTH}).");
        return Err(AtomError::new(text));
    }
    let mut map = match headers {
        Value::Object(map) => map,
        Value::Undefined | Value::Null => Map::new(),
        other => return Ok(other),
    };
    map.insert(DEPTH, (depth + 1.0).to_string());
    Ok(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, ScriptedFetch};
    use std::sync::Arc;

    #[test]
    fn refused_without_the_capability() {
        for bench in [Bench::new(), Bench::with(Capabilities::none())] {
            let error = bench
                .call("httpFetch", r#"["https://a.test"]"#)
                .unwrap_err();
            assert_eq!(
                error,
                "Capability 'fetch' missing and no global fetch available"
            );
        }
    }

    #[test]
    fn undefined_options_are_left_out() {
        let fetch = Arc::new(
            ScriptedFetch::new()
                .on("u", 1)
                .fails("v", "503 unavailable"),
        );
        let mut set = Capabilities::none();
        set.fetch = Some(fetch.clone());
        let bench = Bench::with(set);
        assert_eq!(bench.call("httpFetch", r#"["u"]"#).unwrap(), "1");
        bench
            .call("httpFetch", r#"["u", "PUT", {"A":"b"}, [1,2]]"#)
            .unwrap();
        assert_eq!(
            bench.call("httpFetch", r#"["v"]"#).unwrap_err(),
            "503 unavailable"
        );
        let options: Vec<String> = fetch
            .calls()
            .iter()
            .map(|c| c[1].to_json_string())
            .collect();
        let full = r#"{"method":"PUT","headers":{"A":"b"},"body":[1,2]}"#;
        assert_eq!(options, ["{}", full, "{}"]);
    }

    #[test]
    fn d13_no_program_sets_the_depth() {
        let fetch = Arc::new(ScriptedFetch::new().on("u", 1));
        let mut set = Capabilities::none();
        set.fetch = Some(fetch.clone());
        for bench in [
            Bench::with(set.clone()),
            Bench::with(set).context(r#"{"requestDepth":9}"#),
        ] {
            for name in ["X-Agent-Depth", "x-agent-depth", "X-AGENT-depth"] {
                let given = format!(r#"["u", "GET", {{"A":"b","{name}":0}}]"#);
                let error = bench.call("httpFetch", &given).unwrap_err();
                assert!(
                    error.contains("X-Agent-Depth is not a program's"),
                    "{error}"
                );
            }
        }
        assert!(fetch.calls().is_empty());
    }

    #[test]
    fn depth_goes_along_and_ends() {
        let fetch = Arc::new(ScriptedFetch::new().on("u", 1));
        let mut set = Capabilities::none();
        set.fetch = Some(fetch.clone());
        let bench = Bench::with(set).context(r#"{"requestDepth":9}"#);
        bench.call("httpFetch", r#"["u"]"#).unwrap();
        let headers = r#"{"headers":{"X-Agent-Depth":"10"}}"#;
        assert_eq!(fetch.calls()[0][1].to_json_string(), headers);
        let deep = bench.context(r#"{"requestDepth":10}"#);
        let error = deep.call("httpFetch", r#"["u"]"#).unwrap_err();
        assert_eq!(error, "Agent request depth exceeded (max 10).");
    }
}
