//! Calls of functions: a request as a platform hands it over, and the form of its answer.

use crate::codes::BAD_REQUEST;
use crate::reception::Reply;
use crate::signature;
use a99_runtime::AgentError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What the paths of all requests begin with. A platform may put a stage or the name of the
/// function before it.
const PATHS: &str = "/v1/push/";

/// A request with what its signature needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The path, without what the platform put before it.
    pub path: String,
    /// The header `webhook-id`.
    pub id: String,
    /// The header `webhook-timestamp`.
    pub timestamp: String,
    /// The header `webhook-signature`.
    pub signature: String,
    /// The body, as it was signed.
    pub body: Vec<u8>,
}

/// The event of a function. Platforms have many more members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(alias = "rawPath")]
    path: String,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

fn path_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    path[path.rfind(PATHS).unwrap_or(0)..].to_owned()
}

impl Call {
    /// A call of the event that AWS Lambda and others give a function: `path` or `rawPath`,
    /// `headers`, `body`, `isBase64Encoded`.
    ///
    /// # Errors
    /// `push.bad_request` for another form.
    pub fn of_event(event: &[u8]) -> Result<Call, AgentError> {
        let bad = |error: &dyn std::fmt::Display| {
            AgentError::new(BAD_REQUEST, format!("the event: {error}")).fatal()
        };
        let event: Event = serde_json::from_slice(event).map_err(|error| bad(&error))?;
        let header = |wanted: &str| {
            let named = |(name, _): &(&String, &Value)| name.eq_ignore_ascii_case(wanted);
            let found = event.headers.iter().find(named);
            let text = found.and_then(|(_, value)| value.as_str());
            text.unwrap_or_default().to_owned()
        };
        let text = event.body.as_deref().unwrap_or_default();
        let body = match event.is_base64_encoded {
            true => STANDARD
                .decode(text)
                .map_err(|error| bad(&format!("`body`: {error}")))?,
            false => text.as_bytes().to_vec(),
        };
        Ok(Call {
            path: path_of(&event.path),
            id: header(signature::ID),
            timestamp: header(signature::TIMESTAMP),
            signature: header(signature::SIGNATURE),
            body,
        })
    }

    /// A call of CGI (RFC 3875): its variables, and the body from standard input.
    pub fn of_cgi(variable: impl Fn(&str) -> Option<String>, body: Vec<u8>) -> Call {
        let header = |name: &str| {
            let name = name.to_ascii_uppercase().replace('-', "_");
            variable(&format!("HTTP_{name}")).unwrap_or_default()
        };
        let path = variable("PATH_INFO").filter(|path| !path.is_empty());
        let path = path.or_else(|| variable("REQUEST_URI")).unwrap_or_default();
        Call {
            path: path_of(&path),
            id: header(signature::ID),
            timestamp: header(signature::TIMESTAMP),
            signature: header(signature::SIGNATURE),
            body,
        }
    }
}

impl Reply {
    /// The answer of a function: `statusCode`, `headers`, `body`.
    #[must_use]
    pub fn event(&self) -> Value {
        let mut headers = json!({"content-type": "application/json"});
        if let Some(after) = self.retry_after {
            headers["retry-after"] = after.to_string().into();
        }
        let body = String::from_utf8_lossy(&self.body);
        json!({"statusCode": self.status, "headers": headers, "body": body})
    }

    /// The answer of a CGI program.
    #[must_use]
    pub fn cgi(&self) -> Vec<u8> {
        let reason = StatusCode::from_u16(self.status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let after = self.retry_after;
        let after = after.map_or_else(String::new, |after| format!("Retry-After: {after}\r\n"));
        // With a length the client has the answer although the process may go on.
        let mut answer = format!(
            "Status: {} {}\r\nContent-Type: application/json\r\n{after}Content-Length: {}\r\n\r\n",
            self.status,
            reason.unwrap_or_default(),
            self.body.len()
        )
        .into_bytes();
        answer.extend_from_slice(&self.body);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Call {
        Call {
            path: "/v1/push/init".to_owned(),
            id: "msg_1".to_owned(),
            timestamp: "7".to_owned(),
            signature: "v1,AA==".to_owned(),
            body: b"{}".to_vec(),
        }
    }

    #[test]
    fn events_of_platforms_are_read() {
        let headers = json!({"Webhook-Id": "msg_1", "webhook-timestamp": "7",
            "WEBHOOK-SIGNATURE": "v1,AA==", "host": "a"});
        let lambda = json!({"version": "2.0", "rawPath": "/prod/v1/push/init", "headers": headers,
            "requestContext": {"http": {"method": "POST"}}, "body": "e30=",
            "isBase64Encoded": true});
        let netlify = json!({"path": "/.netlify/functions/echo/v1/push/init?x=/v1/push/",
            "headers": headers, "body": "{}", "isBase64Encoded": false});
        for event in [lambda, netlify] {
            let call = Call::of_event(event.to_string().as_bytes());
            assert_eq!(call.expect("a call"), wanted(), "{event}");
        }
        let bare = Call::of_event(br#"{"path": "/", "headers": {}, "body": null}"#);
        let path = "/".to_owned();
        assert_eq!(
            bare.expect("a call"),
            Call {
                path,
                ..Call::default()
            }
        );
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"path": 1}"#,
            r#"{"path": "/", "body": "-", "isBase64Encoded": true}"#,
        ] {
            let error = Call::of_event(wrong.as_bytes()).expect_err(wrong);
            assert_eq!(error.code(), BAD_REQUEST);
        }
    }

    #[test]
    fn variables_of_cgi_are_read() {
        let all = |path: &'static str| {
            move |name: &str| {
                let value = match name {
                    "PATH_INFO" => path,
                    "REQUEST_URI" => "/cgi-bin/echo/v1/push/init?a=b",
                    "HTTP_WEBHOOK_ID" => "msg_1",
                    "HTTP_WEBHOOK_TIMESTAMP" => "7",
                    "HTTP_WEBHOOK_SIGNATURE" => "v1,AA==",
                    _ => return None,
                };
                Some(value.to_owned())
            }
        };
        for path in ["/v1/push/init", ""] {
            assert_eq!(Call::of_cgi(all(path), b"{}".to_vec()), wanted());
        }
        assert_eq!(Call::of_cgi(|_| None, Vec::new()), Call::default());
    }

    #[test]
    fn answers_have_the_form_of_the_platform() {
        let busy = Reply {
            status: 503,
            retry_after: Some(2),
            body: b"{}".to_vec(),
        };
        let headers = json!({"content-type": "application/json", "retry-after": "2"});
        let event = json!({"statusCode": 503, "headers": headers, "body": "{}"});
        assert_eq!(busy.event(), event);
        let text = String::from_utf8(busy.cgi()).expect("a text");
        let wanted = "Status: 503 Service Unavailable\r\nContent-Type: application/json\r\n\
                      Retry-After: 2\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(text, wanted);
        let done = Reply {
            retry_after: None,
            ..busy
        };
        assert_eq!(done.event()["headers"].get("retry-after"), None);
        assert!(!String::from_utf8_lossy(&done.cgi()).contains("Retry-After"));
    }
}
