//! SARIF log: findings in the Static Analysis Results Interchange Format 2.1.0,
//! which code hosts and editors show beside the source.
//!
//! Section numbers are those of the OASIS standard.

use super::check::{Finding, Report};
use crate::failure::Failure;
use crate::input;
use agent99::{Diagnostic, LoadError, Map, Value, codes};
use std::fmt::Write as _;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The log of a `check` run with this exit code.
pub(crate) fn log(reports: &[Report], exit: u8) -> Value {
    let mut rules: Vec<&'static str> = Vec::new();
    let mut results = Vec::new();
    let mut notifications = Vec::new();
    for report in reports {
        let uri = uri(&report.path);
        let mut add = |result: Value, rule| {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
            results.push(result);
        };
        match &report.finding {
            Ok(Finding::Artifact { .. } | Finding::Other) => {}
            Ok(Finding::Program { warnings, .. }) => {
                warnings.iter().for_each(|d| add(finding(d, &uri), d.code));
            }
            Err(Failure::Rejected { diagnostics, .. }) => {
                let found = diagnostics.iter();
                found.for_each(|d| add(finding(d, &uri), d.code));
            }
            Err(Failure::Artifact { error, .. }) => add(refusal(error, &uri), error.code()),
            Err(Failure::Several(all)) => {
                let texts = all.iter().map(|one| notification(&one.message()));
                notifications.extend(texts);
            }
            Err(Failure::Usage(text)) => notifications.push(notification(text)),
            Err(Failure::Coded { message, .. }) => notifications.push(notification(message)),
        }
    }
    let rules = rules.iter().map(|code| rule(code));
    let driver = object([
        ("name", "a99".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("rules", Value::Array(rules.collect())),
    ]);
    // Section 3.20: an invocation that could not read a file was not successful; one with findings
    // was.
    let invocation = object([
        ("executionSuccessful", notifications.is_empty().into()),
        ("exitCode", u32::from(exit).into()),
        ("toolExecutionNotifications", Value::Array(notifications)),
    ]);
    let run = object([
        ("tool", object([("driver", driver)])),
        ("columnKind", "unicodeCodePoints".into()),
        ("invocations", Value::Array(vec![invocation])),
        ("results", Value::Array(results)),
    ]);
    object([
        ("$schema", SCHEMA.into()),
        ("version", "2.1.0".into()),
        ("runs", Value::Array(vec![run])),
    ])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().collect())
}

fn message(text: impl Into<Value>) -> Value {
    object([("text", text.into())])
}

/// A reportingDescriptor (section 3.49).
fn rule(code: &str) -> Value {
    let mut map = Map::new();
    map.insert("id", code);
    if let Some(row) = codes::find(code) {
        map.insert("shortDescription", message(row.meaning));
        if !row.help.is_empty() {
            map.insert("help", message(row.help));
        }
    }
    Value::Object(map)
}

/// A result (section 3.27).
fn result(code: &str, level: &str, text: String, help: Option<&str>, location: Value) -> Value {
    let text = match help {
        Some(help) if !help.is_empty() => format!("{text}\nHelp: {help}"),
        _ => text,
    };
    object([
        ("ruleId", code.into()),
        ("level", level.into()),
        ("message", message(text)),
        ("locations", Value::Array(vec![location])),
    ])
}

fn finding(found: &Diagnostic, uri: &str) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation", object([("uri", uri.into())]));
    if let Some(region) = found.region {
        physical.insert(
            "region",
            object([
                ("startLine", region.line.into()),
                ("startColumn", region.column.into()),
                ("endLine", region.end_line.into()),
                ("endColumn", region.end_column.into()),
            ]),
        );
    }
    let mut location = Map::new();
    location.insert("physicalLocation", physical);
    if !found.pointer.is_empty() {
        let logical = object([("fullyQualifiedName", found.pointer.as_str().into())]);
        location.insert("logicalLocations", Value::Array(vec![logical]));
    }
    result(
        found.code,
        found.severity.as_str(),
        found.message.clone(),
        found.help.as_deref(),
        Value::Object(location),
    )
}

fn refusal(error: &LoadError, uri: &str) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation", object([("uri", uri.into())]));
    if let Some(offset) = error.offset() {
        // Files are far smaller than 2^53 bytes, so a double is exact.
        physical.insert("region", object([("byteOffset", (offset as f64).into())]));
    }
    let location = object([("physicalLocation", Value::Object(physical))]);
    let help = Some(error.help());
    result(error.code(), "error", error.message(), help, location)
}

/// An error that prevented the analysis (section 3.58).
fn notification(text: &str) -> Value {
    object([("level", "error".into()), ("message", message(text))])
}

/// The file as a URI reference (RFC 3986): relative if it was named so, or absolute.
fn uri(path: &Path) -> String {
    if path == Path::new(input::STDIN) {
        return "stdin".to_owned();
    }
    let mut uri = String::new();
    if path.is_absolute() {
        uri.push_str("file://");
    }
    let text = path.as_os_str().as_encoded_bytes();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            b':' if cfg!(windows) && at == 1 => uri.push(':'),
            // Writing to a String cannot fail.
            byte => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        assert_eq!(uri(Path::new("-")), "stdin");
        assert_eq!(uri(Path::new("a b/c.json")), "a%20b/c.json");
        assert_eq!(uri(Path::new("/x/é:%.json")), "file:///x/%C3%A9%3A%25.json");
    }
}
