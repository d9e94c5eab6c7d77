//! Estimate: how many tokens a text, a request or an answer has, where no service says it.

use super::{Format, Image, Part, TextRequest, TextResult};

/// Tokens of something that was not counted.
///
/// Tokenizers differ, so there are three numbers. All tokenizers in use take at least a byte
/// for a token, which makes `most` certain but for what a service adds of its own.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// A report of fewer tokens is wrong.
    pub least: u64,
    /// Rather too many than too few: words of Latin letters, digits and signs as most
    /// tokenizers cut them, two tokens for three bytes of other scripts.
    pub likely: u64,
    /// No tokenizer makes more.
    pub most: u64,
}

/// Tokens that frame a request.
const REQUEST: TokenEstimate = frame(12, 64);

/// Tokens that frame a message, or a part of one.
const PART: TokenEstimate = frame(4, 16);

/// Tokens that frame a tool.
const TOOL: TokenEstimate = frame(8, 64);

/// Tokens by which services explain to a model how tools are called.
const TOOLS: TokenEstimate = frame(0, 700);

const fn frame(likely: u64, most: u64) -> TokenEstimate {
    TokenEstimate {
        least: 0,
        likely,
        most,
    }
}

impl TokenEstimate {
    /// Tokens of an image: services scale one down before they cut it into tiles, of which a
    /// model counts some 1,600 at most; cheap models count more to cost the same.
    pub const IMAGE: TokenEstimate = TokenEstimate {
        least: 1,
        likely: 1_600,
        most: 5_000,
    };

    /// Tokens of a text.
    #[must_use]
    pub fn of_text(text: &str) -> TokenEstimate {
        /// Letters of a word for each token, and blanks of an indentation.
        const RUN: u64 = 4;
        /// Bytes that the longest tokens have.
        const LONGEST: u64 = 64;
        let (mut likely, mut words, mut foreign) = (0_u64, 0_u64, 0_u64);
        let (mut letters, mut blanks) = (0_u64, 0_u64);
        let mut before = b' ';
        for byte in text.bytes() {
            if before.is_ascii_whitespace() && !byte.is_ascii_whitespace() {
                words += 1;
            }
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' => {
                    // A word goes on, but not from small letters to capitals.
                    let ends = byte.is_ascii_uppercase() && before.is_ascii_lowercase();
                    letters = match before.is_ascii_alphabetic() && !ends {
                        true => letters + 1,
                        false => 0,
                    };
                    likely += u64::from(letters.is_multiple_of(RUN));
                }
                b' ' | b'\t' => {
                    blanks = match before == byte {
                        true => blanks + 1,
                        false => 0,
                    };
                    likely += u64::from(blanks % RUN == 1);
                }
                0x80.. => foreign += 1,
                _ => likely += 1,
            }
            before = byte;
        }
        let bytes = text.len() as u64;
        let certain = (words.div_ceil(2)).max(bytes / LONGEST);
        TokenEstimate {
            least: certain.max(u64::from(bytes > 0)),
            likely: (likely + (foreign * 2).div_ceil(3)).max(certain),
            most: bytes,
        }
    }

    /// Tokens of a value: of a text, or of its JSON text.
    #[must_use]
    pub fn of_value(value: &a99_core::value::Value) -> TokenEstimate {
        match value.as_text() {
            Some(text) => TokenEstimate::of_text(&text.to_string_lossy()),
            None if value.is_nullish() => TokenEstimate::default(),
            None => TokenEstimate::of_text(&value.to_json_string()),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: TokenEstimate) -> TokenEstimate {
        TokenEstimate {
            least: self.least.saturating_add(other.least),
            likely: self.likely.saturating_add(other.likely),
            most: self.most.saturating_add(other.most),
        }
    }

    /// Tokens of what a model is to read: system, messages, tools, the form of the answer.
    #[must_use]
    pub fn of_request(request: &TextRequest) -> TokenEstimate {
        let mut sum = REQUEST;
        let mut add = |of: TokenEstimate| sum = sum.plus(of);
        if let Some(system) = &request.system {
            add(PART.plus(TokenEstimate::of_text(system)));
        }
        for part in request.messages.iter().flat_map(|said| &said.content) {
            add(PART);
            add(match part {
                Part::Text(text) | Part::ToolResult { content: text, .. } => {
                    TokenEstimate::of_text(text)
                }
                Part::Opaque { part, .. } => TokenEstimate::of_value(&part.value),
                Part::Image(Image::Url(_) | Image::Base64 { .. }) => TokenEstimate::IMAGE,
                Part::ToolUse(used) => TOOL
                    .plus(TokenEstimate::of_text(&used.name))
                    .plus(TokenEstimate::of_value(&used.input)),
            });
        }
        for tool in &request.tools {
            add(TOOL);
            add(TokenEstimate::of_text(&tool.name));
            add(TokenEstimate::of_text(
                tool.description.as_deref().unwrap_or_default(),
            ));
            add(TokenEstimate::of_value(&tool.input_schema));
        }
        if !request.tools.is_empty() {
            add(TOOLS);
        }
        if let Format::Schema { name, schema } = &request.format {
            add(TOOL);
            add(TokenEstimate::of_text(name));
            add(TokenEstimate::of_value(schema));
        }
        sum
    }

    /// Tokens of an answer as far as it came. Services count calls of tools in forms of their
    /// own, so that only its text has a least number.
    #[must_use]
    pub fn of_answer(answer: &TextResult) -> TokenEstimate {
        let tools = answer.tool_uses.iter().map(|used| {
            TOOL.plus(TokenEstimate::of_text(&used.name))
                .plus(TokenEstimate::of_value(&used.input))
        });
        let thinking = TokenEstimate::of_text(&answer.thinking);
        let mut sum = tools.fold(thinking, TokenEstimate::plus);
        sum.least = sum.least.min(1);
        sum.plus(TokenEstimate::of_text(&answer.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::{Message, Role, Tool};
    use crate::testing::value;

    #[test]
    fn d11_texts_are_estimated_by_their_script() {
        // Tokens of o200k_base and cl100k_base, the larger of both.
        for (text, real) in [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("function add(a, b) { return a + b; }", 13),
            (r#"{"name": "x", "count": 1234567, "ok": true}"#, 20),
            ("Привет, как у тебя дела сегодня?", 13),
            ("今天天气很好，我们去公园散步吧。", 21),
            ("こんにちは、お元気ですか？", 11),
            ("नमस्ते, आप कैसे हैं?", 19),
            ("👩‍👩‍👧‍👦🏳️‍🌈", 24),
            ("4f1c9a7be2d86035", 12),
        ] {
            let of = TokenEstimate::of_text(text);
            assert!(of.likely >= real, "{text}: {of:?} of {real}");
            assert!(of.likely <= 3 * real, "{text}: {of:?} of {real}");
            assert!(
                of.least <= real / 2 + 1 && of.most >= of.likely,
                "{text}: {of:?}"
            );
        }
        assert_eq!(TokenEstimate::of_text(""), TokenEstimate::default());
    }

    #[test]
    fn d11_schemas_count_as_text_and_images_by_what_services_make_of_them() {
        let with = |content: Vec<Part>, tools: Vec<Tool>| {
            TokenEstimate::of_request(&TextRequest {
                messages: vec![Message {
                    role: Role::User,
                    content,
                }],
                tools,
                ..TextRequest::default()
            })
        };
        let none = with(vec![], vec![]).likely;
        let schema = value(r#"{"type":"object","properties":{"town":{"type":"string"}}}"#);
        let tool = Tool {
            name: "weather".to_owned(),
            description: None,
            input_schema: schema,
        };
        let tools = with(vec![], vec![tool]).likely - none;
        assert!((20..60).contains(&tools), "{tools}");
        let short = Image::Url("https://a.example/a.png".to_owned());
        let long = Image::Base64 {
            media_type: "image/png".to_owned(),
            data: "A".repeat(4 << 20),
        };
        let [short, long] = [short, long].map(|image| with(vec![Part::Image(image)], vec![]));
        assert_eq!(short, long);
        assert!(short.likely > 1_500);
    }
}
