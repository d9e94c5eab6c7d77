//! Diagnostics: findings about a program text, with place and advice.
//!
//! A diagnostic has two places: a JSON pointer, which also works for programs without a text, and a
//! byte span if there is a source. The renderer prints the style of `rustc`; the JSON form is for
//! editors. Run-time failures are [`crate::error::RunError`]s.

pub mod codes;
mod region;
mod render;
mod suggest;

pub use region::Region;
pub use render::{LineIndex, render};
pub use suggest::{suggest, suggest_among};

use crate::value::{Map, Value};
use serde::{Serialize, Serializer};
use std::ops::Range;

/// Severity of a finding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The program is rejected (decision D44).
    Error,
    /// The program runs; evaluating the place may fail (decision D44).
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Longest message or advice in bytes; longer ones are cut.
const MAX_MESSAGE: usize = 1024;

/// Longest pointer in bytes; longer ones are cut.
const MAX_POINTER: usize = 4096;

/// Longest quoted text of the program in bytes.
const MAX_QUOTED: usize = 200;

/// Cuts a text to `max` bytes and appends `...`.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
}

/// The quoted beginning of a text of the program.
#[must_use]
pub fn excerpt(text: &str) -> String {
    // A character has at most four bytes, so the excerpt still exceeds the limit and gets its
    // `...`.
    let end = text.floor_char_boundary(MAX_QUOTED + 4);
    cut(text[..end].to_owned(), MAX_QUOTED)
}

/// One finding about a program text. Serializes as [`Diagnostic::to_json`].
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Stable code, one of [`codes`].
    pub code: &'static str,
    /// Severity: errors reject the program.
    pub severity: Severity,
    /// The finding in one sentence without a full stop.
    pub message: String,
    /// RFC 6901 pointer to the place; empty for the root. A pointer of more than 4 KiB is cut and
    /// ends with `...`.
    pub pointer: String,
    /// Byte range in the source file.
    pub span: Option<Range<u32>>,
    /// The same place by lines and columns, if the text was available: see [`Diagnostics::locate`].
    pub region: Option<Region>,
    /// The offending text, cut if it is long; may be empty.
    pub offending: String,
    /// Advice on fixing the fault.
    pub help: Option<String>,
    /// Byte range inside the decoded string at `pointer`, such as a place in a condition text.
    pub inner: Option<Range<u32>>,
}

impl Diagnostic {
    /// A finding that rejects the program.
    #[must_use]
    pub fn error(
        code: &'static str,
        message: impl Into<String>,
        pointer: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: cut(message.into(), MAX_MESSAGE),
            pointer: cut(pointer.into(), MAX_POINTER),
            span: None,
            region: None,
            offending: String::new(),
            help: None,
            inner: None,
        }
    }

    /// A finding that lets the program run.
    #[must_use]
    pub fn warning(
        code: &'static str,
        message: impl Into<String>,
        pointer: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message, pointer)
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(cut(help.into(), MAX_MESSAGE));
        self
    }

    /// Sets the byte range in the source.
    #[must_use]
    pub fn with_span(mut self, span: impl Into<Option<Range<u32>>>) -> Self {
        self.span = span.into();
        self
    }

    /// Sets the offending text.
    #[must_use]
    pub fn with_offending(mut self, offending: impl Into<String>) -> Self {
        self.offending = cut(offending.into(), MAX_QUOTED);
        self
    }

    /// Sets the byte range inside the decoded string.
    #[must_use]
    pub fn with_inner(mut self, inner: impl Into<Option<Range<u32>>>) -> Self {
        self.inner = inner.into();
        self
    }

    /// The machine-readable form.
    ///
    /// Members are `code`, `severity`, `message`, `pointer`, and where present `alias` (another
    /// name of the code), `line`, `column`, `end_line`, `end_column`, `span`, `offending`, `help`,
    /// `inner`. Spans are `[start, end]` in bytes; lines and columns are those of [`Region`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let range = |range: &Range<u32>| Value::from(vec![range.start.into(), range.end.into()]);
        let mut map = Map::new();
        crate::codes::insert(&mut map, self.code);
        map.insert("severity", self.severity.as_str());
        map.insert("message", self.message.as_str());
        map.insert("pointer", self.pointer.as_str());
        if let Some(region) = &self.region {
            map.insert("line", region.line);
            map.insert("column", region.column);
            map.insert("end_line", region.end_line);
            map.insert("end_column", region.end_column);
        }
        if let Some(span) = &self.span {
            map.insert("span", range(span));
        }
        if !self.offending.is_empty() {
            map.insert("offending", self.offending.as_str());
        }
        if let Some(help) = &self.help {
            map.insert("help", help.as_str());
        }
        if let Some(inner) = &self.inner {
            map.insert("inner", range(inner));
        }
        Value::Object(map)
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// Serializes as `"error"` or `"warning"`.
impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Findings in the order in which they were made. Serializes as an array.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Sets the [`Region`]s of findings with a span. Parsing and compiling a text do this for their
    /// own findings.
    pub fn locate(&mut self, text: &[u8]) {
        region::locate(self, text);
    }

    /// The number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.iter().filter(|d| d.severity == severity).count()
    }

    /// True if a finding rejects the program.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Iterates in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// The number of findings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no findings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An array of [`Diagnostic::to_json`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Array(self.iter().map(Diagnostic::to_json).collect())
    }

    /// All findings as text for people, separated by blank lines. Only the first [`MAX_RENDERED`]
    /// are shown, then a count of the rest.
    #[must_use]
    pub fn render(&self, source: Option<(&str, &[u8])>) -> String {
        let index = source.map(|(_, text)| LineIndex::new(text));
        let mut out = String::new();
        for diagnostic in self.iter().take(MAX_RENDERED) {
            if !out.is_empty() {
                out.push('\n');
            }
            render::render_into(&mut out, diagnostic, source, index.as_ref());
        }
        if self.len() > MAX_RENDERED {
            out.push_str(&format!(
                "\n... and {} more findings\n",
                self.len() - MAX_RENDERED
            ));
        }
        out
    }
}

/// Most findings that [`Diagnostics::render`] shows.
pub const MAX_RENDERED: usize = 50;

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        self.0.extend(diagnostics);
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Self(diagnostics.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(None))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builders_and_json() {
        let warning = Diagnostic::warning(codes::UNKNOWN_ATOM, "unknown atom", "/steps/0")
            .with_help("did you mean `map`?")
            .with_span(3..7)
            .with_offending("mpa")
            .with_inner(0..1);
        assert_eq!(
            warning.to_json().to_json_string(),
            concat!(
                r#"{"code":"lint.unknown_atom","alias":"A99-W0201","severity":"warning","message":"unknown atom","#,
                r#""pointer":"/steps/0","span":[3,7],"offending":"mpa","#,
                r#""help":"did you mean `map`?","inner":[0,1]}"#
            )
        );
        let mut all = Diagnostics::from(warning);
        assert!(!all.has_errors());
        all.push(Diagnostic::error(codes::BAD_ROOT, "root", ""));
        assert!(all.has_errors());
        assert_eq!(
            (all.len(), all.iter().count(), all.is_empty()),
            (2, 2, false)
        );
        assert_eq!(all.to_json().as_array().map(<[_]>::len), Some(2));
        assert_eq!(
            serde_json::to_string(&all).unwrap(),
            all.to_json().to_json_string()
        );
        assert!(all.to_string().contains("error[compile.bad_root]: root"));
    }

    #[test]
    fn a11_what_a_finding_quotes_is_cut() {
        let long = "\u{e9}".repeat(1 << 20);
        let finding = Diagnostic::error(codes::BAD_CONDITION, long.clone(), long.clone())
            .with_offending(long.clone())
            .with_help(long.clone());
        assert_eq!(finding.message.len(), MAX_MESSAGE + 3);
        assert_eq!(finding.pointer.len(), MAX_POINTER + 3);
        assert_eq!(finding.offending.len(), MAX_QUOTED + 3);
        assert!(finding.to_json().to_json_string().len() < 8192);
        assert_eq!(excerpt(&long), finding.offending);
        assert_eq!(excerpt("short"), "short");
    }

    #[test]
    fn very_many_findings_are_cut() {
        let all: Diagnostics = (0..1000)
            .map(|_| Diagnostic::error(codes::JSON_SYNTAX, "x", ""))
            .collect();
        let text = all.render(None);
        assert!(text.ends_with("... and 950 more findings\n"), "{text}");
    }
}
