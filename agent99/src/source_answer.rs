//! Finds a program in the source form in a model's answer.

use crate::agent::Agent;
use crate::answer::{blank_around, first_program};
use crate::engine::{Engine, Refused};
use crate::thinking::spoken;
use std::ops::Range;

/// Language tags of fences that hold a source.
const LANGUAGES: [&str; 7] = ["js", "javascript", "mjs", "ajs", "ts", "typescript", "jsx"];

/// Words that begin a line of a source outside of a fence.
const STARTS: [&str; 9] = [
    "export ",
    "async ",
    "function ",
    "const ",
    "let ",
    "interface ",
    "type ",
    "import ",
    "/**",
];

/// Finds the program in a model's answer in the source form, after the reasoning: the first
/// Markdown fence with code, else the lines from the first one that begins a declaration to the
/// last one that ends it. `None` if there is no code.
///
/// ```
/// use agent99::find_source;
///
/// let answer = "Sure:\n```js\nfunction agent({ n }) { return n }\n```\nDone.";
/// let range = find_source(answer).unwrap();
/// assert_eq!(&answer[range], "function agent({ n }) { return n }\n");
/// ```
#[must_use]
pub fn find_source(answer: impl AsRef<[u8]>) -> Option<Range<usize>> {
    let text = &*spoken(answer.as_ref());
    fenced(text).or_else(|| bare(text))
}

/// Whether a model's answer has a program in the source form and none in JSON beside it.
pub(crate) fn is_source_answer(answer: &[u8]) -> bool {
    let text = &*spoken(answer);
    let json = first_program(text).0;
    match (fenced(text), json) {
        (Some(source), Some(json)) => source.contains(&json.start),
        (source, None) => {
            let is_json = text.trim_ascii_start().starts_with(b"{");
            source.is_some() || (!is_json && bare(text).is_some())
        }
        (None, Some(json)) => bare(text).is_some_and(|source| source.start < json.start),
    }
}

/// The code of the first fence that holds some.
fn fenced(text: &[u8]) -> Option<Range<usize>> {
    let mut at = 0;
    let mut open: Option<(usize, bool)> = None;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let ticks = line.trim_ascii_start().strip_prefix(b"```");
        match (open, ticks) {
            (None, Some(word)) => {
                let word = word.trim_ascii().to_ascii_lowercase();
                let is_named = LANGUAGES.iter().any(|name| name.as_bytes() == word);
                open = Some((at + line.len(), is_named));
            }
            (Some((start, is_named)), Some(_)) => {
                if is_named || is_code(&text[start..at]) {
                    return Some(start..at);
                }
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    // The unclosed fence of a truncated answer.
    let (start, is_named) = open?;
    (is_named || is_code(&text[start..])).then_some(start..text.len())
}

/// Whether a fence without a language holds JavaScript.
fn is_code(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    let is_json = text.trim_ascii_start().starts_with(b"{");
    !is_json && (has(b"function") || has(b"=>"))
}

/// The lines of code in an answer without a fence.
fn bare(text: &[u8]) -> Option<Range<usize>> {
    let (mut at, mut start, mut end) = (0, None, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if start.is_none() && STARTS.iter().any(|word| line.starts_with(word.as_bytes())) {
            start = Some(at);
        }
        at += line.len();
        let code = line.trim_ascii_end();
        if code.starts_with(b"}") || code.ends_with(b";") || code.ends_with(b"}") {
            end = at;
        }
    }
    let range = start?..end;
    (range.start < range.end && is_code(&text[range.clone()])).then_some(range)
}

impl Engine {
    /// Compiles the program in a model's answer in the source form ([`find_source`]). An
    /// answer without recognisable code is the program. Places refer to the whole answer.
    ///
    /// # Errors
    /// As [`Engine::compile_source`].
    pub fn compile_source_answer(&self, answer: impl Into<Vec<u8>>) -> Result<Agent, Refused> {
        let answer = answer.into();
        match find_source(&answer) {
            Some(range) => self.compile_source(blank_around(answer, &range)),
            None => self.compile_source(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunOptions, json};

    #[test]
    fn u3_a_source_in_an_answer_is_found() {
        let code = "export default function agent({ n }) {\n  return { n }\n}\n";
        for answer in [
            code.to_owned(),
            format!("Here:\n\n```js\n{code}```\nIt returns n."),
            format!("```\nnpm i\n```\n```typescript\n{code}```"),
            format!("<think>```js\nfunction agent() {{ return 1 }}\n```</think>\n```js\n{code}```"),
            format!("```javascript\n{code}"),
            format!("Here is the program.\n\n{code}\nIt returns n, see {{n}}."),
            code.replace("function", "async function"),
        ] {
            for agent in [
                Engine::new().compile_source_answer(answer.as_str()),
                Engine::new().compile_answer(answer.as_str()),
            ] {
                let agent = agent.unwrap_or_else(|found| panic!("{answer}: {found}"));
                let outcome = Engine::new().run_sync(&agent, json!({"n": 2}), RunOptions::new());
                assert_eq!(outcome.result.to_json(), json!({"n": 2}), "{answer}");
            }
        }
        assert_eq!(find_source("no code"), None);
    }

    #[test]
    fn answers_of_both_forms() {
        let json = r#"{"op": "seq", "steps": [{"op": "return", "value": {"from": "json"}}]}"#;
        let code = "function agent() {\n  return { from: 'source' }\n}\n";
        let inner =
            format!("function agent() {{\n  const p = {json}\n  return {{ from: 'source' }}\n}}\n");
        for (answer, from) in [
            (
                format!("```js\nif (a) {{ b }}\n```\n```json\n{json}\n```"),
                "json",
            ),
            (format!("Use `(x) => y`:\n{json}"), "json"),
            (json.to_owned(), "json"),
            (
                format!("```json\n{json}\n```\nThe same:\n```js\n{code}```"),
                "json",
            ),
            (format!("```js\n{inner}```"), "source"),
            (inner.clone(), "source"),
            (
                format!("```json\n{{\"a\": 1}}\n```\n```ts\n{code}```"),
                "source",
            ),
        ] {
            let agent = Engine::new().compile_answer(answer.as_str());
            let agent = agent.unwrap_or_else(|found| panic!("{answer}: {found}"));
            let outcome = Engine::new().run_sync(&agent, json!({}), RunOptions::new());
            assert_eq!(outcome.result.to_json(), json!({"from": from}), "{answer}");
        }
    }
}
