//! Token estimates of texts, requests and answers without a service's report.

use super::{Format, Image, MediaKind, Part, TextRequest, TextResult};

/// Estimated tokens of data that no service counted.
///
/// Tokenizers differ, so there are three numbers. Every tokenizer in use takes at least one
/// byte for a token, so that `most` is an upper bound, except for tokens that a service adds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// Lower bound: a report of fewer tokens is wrong.
    pub least: u64,
    /// Cautious estimate: words of Latin letters, digits and signs as most tokenizers split
    /// them, two tokens for three bytes of other scripts.
    pub likely: u64,
    /// Upper bound of all tokenizers.
    pub most: u64,
}

/// Tokens that frame a request.
const REQUEST: TokenEstimate = frame(12, 64);

/// Tokens that frame a message, or a part of one.
const PART: TokenEstimate = frame(4, 16);

/// Tokens that frame a tool.
const TOOL: TokenEstimate = frame(8, 64);

/// Tokens of a service's instructions for tool calls.
const TOOLS: TokenEstimate = frame(0, 700);

const fn frame(likely: u64, most: u64) -> TokenEstimate {
    TokenEstimate {
        least: 0,
        likely,
        most,
    }
}

impl TokenEstimate {
    /// Tokens of an image. Services scale an image down, then split it into tiles, some 1,600
    /// tokens at most; cheap models count more to cost the same.
    pub const IMAGE: TokenEstimate = TokenEstimate {
        least: 1,
        likely: 1_600,
        most: 5_000,
    };

    /// Tokens of an image, a document or a recording.
    ///
    /// A page of a document counts 250 to 3,000 tokens and has 3 kB of text or a scan of 1 MB.
    /// A second of speech counts up to 32 tokens; it has 32 kB as samples, 4 kB or less
    /// compressed. An address without an image's extension may name any of these.
    #[must_use]
    pub fn of_media(media: &Image) -> TokenEstimate {
        /// Tokens of the longest document that services accept.
        const DOCUMENT: u64 = 1_000_000;
        let (likely, most) = match media {
            Image::Url(url) if is_image(url) => (0, 0),
            Image::Url(_) => (0, DOCUMENT),
            Image::Base64 { data, .. } => {
                let bytes = data.len() as u64 / 4 * 3;
                match media.kind() {
                    MediaKind::Image => (0, 0),
                    MediaKind::Document => (bytes / 60, bytes.min(DOCUMENT)),
                    MediaKind::Audio("wav") => (bytes / 1_000, bytes / 128),
                    MediaKind::Audio(_) => (bytes / 125, bytes / 16),
                }
            }
        };
        TokenEstimate {
            least: 1,
            likely: likely.max(TokenEstimate::IMAGE.likely),
            most: most.max(TokenEstimate::IMAGE.most),
        }
    }

    /// Tokens of a text.
    #[must_use]
    pub fn of_text(text: &str) -> TokenEstimate {
        /// Letters of a word per token, and blanks of an indentation per token.
        const RUN: u64 = 4;
        /// Bytes of the longest tokens.
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
                    // A word continues, but ends between a small letter and a capital.
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

    /// Tokens of a text, or of a value's JSON text.
    #[must_use]
    pub fn of_value(value: &a99_core::value::Value) -> TokenEstimate {
        match value.as_text() {
            Some(text) => TokenEstimate::of_text(&text.to_string_lossy()),
            None if value.is_nullish() => TokenEstimate::default(),
            None => TokenEstimate::of_text(&value.to_json_string()),
        }
    }

    /// Sum of two estimates.
    #[must_use]
    pub fn plus(self, other: TokenEstimate) -> TokenEstimate {
        TokenEstimate {
            least: self.least.saturating_add(other.least),
            likely: self.likely.saturating_add(other.likely),
            most: self.most.saturating_add(other.most),
        }
    }

    /// Tokens of the prompt: system, messages, tools, and the form of the answer.
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
                Part::Image(media) => TokenEstimate::of_media(media),
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

    /// Tokens of a possibly partial answer. Services count tool calls in different forms, so
    /// that only its text has a lower bound.
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

/// True if an address has an image's extension.
fn is_image(url: &str) -> bool {
    const ENDS: [&str; 9] = [
        "avif", "bmp", "gif", "heic", "heif", "jpeg", "jpg", "png", "webp",
    ];
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| ENDS.iter().any(|known| end.eq_ignore_ascii_case(known)))
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

    #[test]
    fn d1_documents_and_recordings_are_estimated_by_their_size() {
        let of = |media_type: &str, bytes: usize| {
            TokenEstimate::of_media(&Image::Base64 {
                media_type: media_type.to_owned(),
                data: "A".repeat(bytes / 3 * 4),
            })
        };
        // 500 pages, 10 MB; an hour of speech as MP3; a minute of samples.
        let book = of("application/pdf", 10 << 20);
        assert!(book.likely > 129_000 && book.most >= 1_000_000, "{book:?}");
        let hour = of("audio/mpeg", 3_600 * 4_000);
        assert!(hour.likely >= 115_000 && hour.most > hour.likely);
        let minute = of("audio/wav", 60 * 32_000);
        assert!(minute.likely >= 1_900 && minute.likely < 10_000);
        assert_eq!(of("application/pdf", 3_000), TokenEstimate::IMAGE);
        let at = |url: &str| TokenEstimate::of_media(&Image::Url(url.to_owned())).most;
        assert_eq!(at("https://a.example/A.PNG?x=1"), TokenEstimate::IMAGE.most);
        assert!(at("https://a.example/a.pdf") >= 1_000_000);
    }
}
