//! Open documents: their texts, and what the compiler finds in them.

use crate::fixes::{Fix, fix};
use crate::scan::{Kind, Tokens};
use crate::text::Text;
use agent99::{Diagnostic, Diagnostics, Engine, Severity};
use serde_json::{Value as Json, json};
use std::ops::Range;

/// How a program is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Source,
}

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub text: Text,
    pub version: Json,
    /// What the name of the file, or else the client, says about the language.
    language: Language,
    /// The form of the program; `None` for a text that is no program.
    pub form: Option<Form>,
    /// Findings in this text; `None` until they are asked for.
    findings: Option<Vec<Finding>>,
    /// True if the client has not got the findings of this text.
    pub is_dirty: bool,
}

/// A finding with its place.
#[derive(Debug)]
pub(crate) struct Finding {
    pub place: Range<usize>,
    pub found: Diagnostic,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Language {
    /// Perhaps a program in JSON.
    Json,
    /// A program in the source form.
    Agent,
    /// Perhaps a program in the source form.
    Script,
    Other,
}

impl Language {
    fn of(uri: &str, id: &str) -> Language {
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "json" => Language::Json,
            "ajs" => Language::Agent,
            "js" | "mjs" | "ts" => Language::Script,
            _ => match id {
                "json" => Language::Json,
                "ajs" | "agent99" => Language::Agent,
                "javascript" | "typescript" => Language::Script,
                _ => Language::Other,
            },
        }
    }
}

impl Document {
    pub(crate) fn new(uri: &str, id: &str, version: Json, text: Text) -> Document {
        let mut document = Document {
            text,
            version,
            language: Language::of(uri, id),
            form: None,
            findings: None,
            is_dirty: false,
        };
        document.changed();
        document
    }

    /// Takes a change of the text in.
    pub(crate) fn changed(&mut self) {
        let before = self.form;
        let text = self.text.as_str();
        self.form = match self.language {
            Language::Json => is_program(text).then_some(Form::Json),
            Language::Agent => Some(Form::Source),
            Language::Script => is_agent(text).then_some(Form::Source),
            Language::Other => None,
        };
        self.findings = None;
        // A text that is a program no more has no findings either.
        self.is_dirty = self.form.is_some() || before.is_some();
    }

    /// The findings of the compiler.
    pub(crate) fn findings(&mut self, engine: &Engine) -> &[Finding] {
        let (text, form) = (&self.text, self.form);
        self.findings.get_or_insert_with(|| {
            let found = form.map(|form| check(engine, form, text.as_str()));
            let found = found.into_iter().flatten();
            let place = |found: &Diagnostic| match (&found.region, &found.span) {
                (Some(region), _) => {
                    let start = text.offset_of(region.line, region.column);
                    let end = text.offset_of(region.end_line, region.end_column);
                    start..end.max(start)
                }
                (None, Some(span)) => span.start as usize..span.end.max(span.start) as usize,
                (None, None) => 0..0,
            };
            found
                .take(MAX_FINDINGS)
                .map(|found| Finding {
                    place: place(&found),
                    found,
                })
                .collect()
        })
    }

    /// The findings as the protocol writes them.
    pub(crate) fn diagnostics(&mut self, engine: &Engine) -> Vec<Json> {
        self.findings(engine);
        let text = &self.text;
        let findings = self.findings.iter().flatten();
        findings.map(|finding| written(finding, text)).collect()
    }

    /// The fixes of the findings that touch a range.
    pub(crate) fn fixes(&mut self, engine: &Engine, range: &Range<usize>) -> Vec<(Json, Fix)> {
        self.findings(engine);
        let (text, form) = (&self.text, self.form);
        let touches = |finding: &&Finding| {
            finding.place.start <= range.end && range.start <= finding.place.end
        };
        let findings = self.findings.iter().flatten().filter(touches);
        let mut fixes: Vec<(Json, Fix)> = Vec::new();
        let all = self.findings.as_deref().unwrap_or_default();
        for finding in findings.take(MAX_FIXES) {
            let found = form.and_then(|form| fix(engine, form, text.as_str(), all, finding));
            if let Some(fix) = found
                && !fixes.iter().any(|(_, known)| *known == fix)
            {
                fixes.push((written(finding, text), fix));
            }
        }
        fixes
    }
}

/// Most findings of a text that are shown; an editor needs no more at once.
const MAX_FINDINGS: usize = 1_000;

/// Most findings of a request that are fixed: each fix is compiled to see that it helps.
const MAX_FIXES: usize = 8;

fn written(finding: &Finding, text: &Text) -> Json {
    let found = &finding.found;
    let message = match &found.help {
        Some(help) => format!("{}\n{help}", found.message),
        None => found.message.clone(),
    };
    json!({
        "range": text.range(&finding.place),
        "severity": match found.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
        },
        "code": found.code,
        "source": "a99",
        "message": message,
    })
}

/// What the compiler finds in a program.
pub(crate) fn check(engine: &Engine, form: Form, text: &str) -> Diagnostics {
    let compiled = match form {
        Form::Json => engine.compile(text),
        Form::Source => engine.compile_source(text),
    };
    match compiled {
        Ok(agent) => agent.warnings().clone(),
        Err(found) => found,
    }
}

/// True if a JSON text is a program, finished or not: an object with `op` or `steps`.
fn is_program(text: &str) -> bool {
    let tokens = Tokens::of(text);
    let mut at = 1;
    let is_key = |at: usize| {
        let key = tokens.content(at).map(|(_, key)| key);
        matches!(key, Some("op" | "steps")) && tokens.is_mark(at + 1, b':')
    };
    while tokens.is_mark(0, b'{') && at < tokens.len() {
        if is_key(at) {
            return true;
        }
        at = match tokens.get(at).and_then(|token| token.partner) {
            Some(partner) if partner > at => partner + 1,
            _ => at + 1,
        };
    }
    false
}

/// True if a script is an agent: it exports a default function or declares `agent`, and imports
/// nothing.
fn is_agent(text: &str) -> bool {
    let tokens = Tokens::of(text);
    let word = |at: usize| tokens.word(at).unwrap_or_default();
    let mut is_agent = false;
    let mut depth = 0_usize;
    for at in 0..tokens.len() {
        match tokens.get(at).map(|token| token.kind) {
            Some(Kind::Mark(b'(' | b'[' | b'{')) => depth += 1,
            Some(Kind::Mark(b')' | b']' | b'}')) => depth = depth.saturating_sub(1),
            _ => {}
        }
        match word(at) {
            "import" if depth == 0 => return false,
            "require" if tokens.is_mark(at + 1, b'(') => return false,
            "function" | "const" if word(at + 1) == "agent" => is_agent |= depth == 0,
            "default" if matches!(word(at + 1), "function" | "async") => is_agent = true,
            _ => {}
        }
    }
    is_agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_from_other_files() {
        assert!(is_program(r#"{"a99": 4, "op": "seq""#));
        assert!(is_program(r#"{"helpers": {}, "steps": []}"#));
        assert!(!is_program(r#"{"a": {"op": "seq"}}"#));
        assert!(!is_program(r#"[{"op": "seq"}]"#));
        assert!(!is_program(""));
        assert!(is_agent("export default async function agent({ a }) {}"));
        assert!(is_agent("const agent = () => 1"));
        assert!(!is_agent(
            "import x from 'y'\nexport default function agent() {}"
        ));
        assert!(!is_agent("const x = require('y')\nfunction agent() {}"));
        assert!(!is_agent("function f() { function agent() {} }"));
        let language = |uri: &str, id| Language::of(uri, id);
        assert_eq!(language("file:///a/b.ajs", "javascript"), Language::Agent);
        assert_eq!(
            language("untitled:Untitled-1", "typescript"),
            Language::Script
        );
        assert_eq!(language("file:///a.py", "python"), Language::Other);
    }
}
