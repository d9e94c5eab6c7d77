//! Finds a program in the source form in a model's answer.

use crate::agent::Agent;
use crate::answer::blank_around;
use crate::engine::{Engine, Refused};
use crate::thinking::spoken;
use std::ops::Range;

/// Language tags of fences that hold a source.
const LANGUAGES: [&str; 7] = ["js", "javascript", "mjs", "ajs", "ts", "typescript", "jsx"];

/// Finds the program in a model's answer in the source form: the first Markdown fence with
/// code, after the reasoning. `None` if there is no such fence.
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

fn is_code(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    has(b"function") || has(b"=>")
}

impl Engine {
    /// Compiles the program in a model's answer in the source form ([`find_source`]). An
    /// answer without a fence is the program. Places refer to the whole answer.
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
        ] {
            let agent = Engine::new().compile_source_answer(answer.as_str());
            let agent = agent.unwrap_or_else(|found| panic!("{answer}: {found}"));
            let outcome = Engine::new().run_sync(&agent, json!({"n": 2}), RunOptions::new());
            assert_eq!(outcome.result.to_json(), json!({"n": 2}), "{answer}");
        }
        assert_eq!(find_source("no code"), None);
    }
}
