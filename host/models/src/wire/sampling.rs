//! Sampling options of a request: the names and ranges in each wire format.
//!
//! A value outside of a wire format's range is an error before anything is sent. Seeds and stop
//! sequences are omitted where a wire format lacks them, as docs/grants.md says.

use a99_capabilities::ai::{AiCode, AiError, Effort, Image, Message, Part, TextRequest};
use a99_core::value::{Map, Value};

/// The options of a wire format, each with its name.
pub(crate) struct Sampling {
    /// The temperature and its maximum.
    pub(super) temperature: (&'static str, f64),
    pub(super) top_p: &'static str,
    /// The seed and its maximum.
    pub(super) seed: Option<(&'static str, u64)>,
    pub(super) stop: Option<&'static str>,
    /// Efforts that some of its models support.
    pub(super) efforts: &'static [Effort],
    /// Whether messages may have audio.
    pub(super) audio: bool,
}

fn refused(text: String) -> AiError {
    AiError::new(AiCode::Invalid, text)
}

fn has_audio(message: &Message) -> bool {
    message.content.iter().any(|part| match part {
        Part::Image(Image::Base64 { media_type, .. }) => {
            let start = media_type.get(.."audio/".len());
            start.is_some_and(|start| start.eq_ignore_ascii_case("audio/"))
        }
        _ => false,
    })
}

impl Sampling {
    /// Checks that a wire format supports a request's options.
    ///
    /// # Errors
    /// With [`AiCode::Invalid`], the option, its value, and the accepted values.
    pub(crate) fn check(&self, request: &TextRequest, wire: &str) -> Result<(), AiError> {
        let (_, hottest) = self.temperature;
        if let Some(heat) = request.temperature.filter(|heat| *heat > hottest) {
            let text = format!("`temperature` is {heat}: the wire `{wire}` takes 0 to {hottest}");
            return Err(refused(text));
        }
        match (request.seed, self.seed) {
            (Some(seed), Some((_, most))) if seed > most => {
                let text = format!("`seed` is {seed}: the wire `{wire}` takes 0 to {most}");
                return Err(refused(text));
            }
            _ => {}
        }
        if !self.audio && request.messages.iter().any(has_audio) {
            let text = format!("a message has audio: the wire `{wire}` takes images and PDF");
            return Err(refused(text));
        }
        if request.stop_sequences.iter().any(String::is_empty) {
            return Err(refused("a text of `stop` is empty".to_owned()));
        }
        match request.effort {
            Some(effort) if !self.efforts.contains(&effort) => {
                let known: Vec<&str> = self.efforts.iter().map(|effort| effort.name()).collect();
                let (effort, known) = (effort.name(), known.join(", "));
                let text = format!("`effort` is `{effort}`: the wire `{wire}` has {known}");
                Err(refused(text))
            }
            _ => Ok(()),
        }
    }

    /// Writes all options except the effort, whose place differs by wire format.
    pub(super) fn write(&self, request: &TextRequest, to: &mut Map) {
        if let Some(heat) = request.temperature {
            to.insert(self.temperature.0, heat);
        }
        if let Some(part) = request.top_p {
            to.insert(self.top_p, part);
        }
        if let (Some(seed), Some((name, _))) = (request.seed, self.seed) {
            to.insert(name, seed as f64);
        }
        if let Some(name) = self.stop.filter(|_| !request.stop_sequences.is_empty()) {
            let stop = request
                .stop_sequences
                .iter()
                .map(|stop| stop.as_str().into());
            to.insert(name, stop.collect::<Vec<Value>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plain, value};
    use super::super::{Ask, Wire};
    use a99_capabilities::ai::{AiCode, Effort, Format, Image, Part, TextRequest};

    fn body(wire: Wire, model: &str, request: &TextRequest) -> Result<String, AiCode> {
        let protocol = wire.protocol();
        let checked = protocol.sampling().check(request, wire.name());
        checked.map_err(|error| error.code)?;
        let body = protocol.body(&Ask {
            send_opaque: false,
            max_tokens: Some(9),
            ..plain(request, model, "s")
        });
        Ok(a99_core::value::Value::Object(body).to_json_string())
    }

    /// Names and ranges by the services' references of 2026: Anthropic's messages, OpenAI's
    /// chat completions and responses, Gemini's `GenerationConfig` and `ThinkingConfig`.
    #[test]
    fn d14_options_go_under_each_wires_name_or_are_refused() {
        let all = |effort: Effort| TextRequest {
            temperature: Some(0.5),
            top_p: Some(0.25),
            effort: Some(effort),
            ..TextRequest::new("x")
        };
        for (wire, expected) in [
            (
                Wire::OpenAi,
                r#""max_tokens":9,"temperature":0.5,"top_p":0.25,"reasoning_effort":"low"}"#,
            ),
            (
                Wire::Responses,
                // The service takes no smaller cap.
                r#""max_output_tokens":16,"temperature":0.5,"top_p":0.25,"reasoning":{"effort":"low"}}"#,
            ),
            (
                Wire::Anthropic,
                r#""temperature":0.5,"top_p":0.25,"output_config":{"effort":"low"}}"#,
            ),
            (
                Wire::Gemini,
                r#""generationConfig":{"maxOutputTokens":9,"temperature":0.5,"topP":0.25,"thinkingConfig":{"thinkingLevel":"low"}}}"#,
            ),
        ] {
            let sent = body(wire, "m", &all(Effort::Low)).unwrap();
            assert!(sent.ends_with(expected), "{sent}");
        }
        // Gemini's models before 3 know numbers of tokens.
        let sent = body(Wire::Gemini, "gemini-2.5-flash", &all(Effort::None)).unwrap();
        assert!(
            sent.ends_with(r#""thinkingConfig":{"thinkingBudget":0}}}"#),
            "{sent}"
        );
        let formed = TextRequest {
            format: Format::Schema {
                name: "n".to_owned(),
                schema: value(r#"{"type":"null"}"#),
            },
            ..all(Effort::Max)
        };
        let sent = body(Wire::Anthropic, "m", &formed).unwrap();
        let both = r#""output_config":{"effort":"max","format":{"type":"json_schema","schema":{"type":"null"}}}}"#;
        assert!(sent.ends_with(both), "{sent}");
        type Change = fn(&mut TextRequest);
        let cases: [(Change, [Option<&str>; 4]); 9] = [
            (
                |request| request.seed = Some(7),
                [
                    Some(r#""seed":7"#),
                    Some("}"),
                    Some(r#""seed":7"#),
                    Some("}"),
                ],
            ),
            (
                |request| request.seed = Some(1 << 31),
                [Some(r#""seed":2147483648"#), Some("}"), None, Some("}")],
            ),
            (
                |request| request.seed = Some(1 << 53),
                [None, Some("}"), None, Some("}")],
            ),
            (
                |request| request.stop_sequences = vec!["END".to_owned()],
                [
                    Some(r#""stop":["END"]"#),
                    Some(r#""stop_sequences":["END"]"#),
                    Some(r#""stopSequences":["END"]"#),
                    Some("}"),
                ],
            ),
            (
                |request| request.stop_sequences = vec![String::new()],
                [None; 4],
            ),
            (
                |request| request.temperature = Some(1.5),
                [
                    Some(r#""temperature":1.5"#),
                    None,
                    Some(r#""temperature":1.5"#),
                    Some(r#""temperature":1.5"#),
                ],
            ),
            (|request| request.temperature = Some(2.5), [None; 4]),
            (
                |request| request.effort = Some(Effort::Max),
                [None, Some(r#""effort":"max""#), None, None],
            ),
            (
                |request| request.effort = Some(Effort::Minimal),
                [
                    Some(r#""reasoning_effort":"minimal""#),
                    None,
                    Some(r#""thinkingLevel":"minimal""#),
                    Some(r#""effort":"minimal""#),
                ],
            ),
        ];
        for (at, (change, expected)) in cases.into_iter().enumerate() {
            let mut request = TextRequest::new("x");
            change(&mut request);
            for (wire, expected) in Wire::ALL.iter().zip(expected) {
                match (body(*wire, "m", &request), expected) {
                    (Ok(sent), Some(part)) => assert!(sent.contains(part), "{at} {sent}"),
                    (Err(code), None) => assert_eq!(code, AiCode::Invalid),
                    (sent, expected) => panic!("{at} {wire:?}: {sent:?}, {expected:?}"),
                }
            }
        }
        assert_eq!(
            Wire::ALL[1..],
            [Wire::Anthropic, Wire::Gemini, Wire::Responses]
        );
        for wrong in [-0.5, 1.5, f64::NAN, f64::INFINITY] {
            for change in [true, false] {
                let mut request = TextRequest::new("x");
                match change {
                    true => request.top_p = Some(wrong),
                    false => request.temperature = Some(wrong * 100.0),
                }
                assert_eq!(
                    request.check().unwrap_err().code,
                    AiCode::Invalid,
                    "{wrong}"
                );
            }
        }
    }

    #[test]
    fn t6_media_that_a_wire_has_no_part_for_are_refused() {
        let of = |url: &str| {
            let mut request = TextRequest::new("x");
            let part = Part::Image(Image::of_url(url));
            request.messages[0].content.push(part);
            request
        };
        for (url, expected) in [
            (
                "data:audio/wav;base64,AAAA",
                [
                    Ok(r#""input_audio":{"data":"AAAA","format":"wav"}"#),
                    Err(AiCode::Invalid),
                    Ok(r#""inlineData":{"mimeType":"audio/wav","data":"AAAA"}"#),
                    Err(AiCode::Invalid),
                ],
            ),
            (
                "data:Audio/aac;base64,AAAA",
                [
                    Ok("AAAA"),
                    Err(AiCode::Invalid),
                    Ok("AAAA"),
                    Err(AiCode::Invalid),
                ],
            ),
            (
                "data:application/pdf;base64,AAAA",
                [
                    Ok(r#"{"type":"file","file":{"#),
                    Ok(r#"{"type":"document","source":{"type":"base64""#),
                    Ok(r#""inlineData":{"mimeType":"application/pdf""#),
                    Ok(r#"{"type":"input_file","filename":"#),
                ],
            ),
        ] {
            for (wire, expected) in Wire::ALL.iter().zip(expected) {
                match (body(*wire, "m", &of(url)), expected) {
                    (Ok(sent), Ok(part)) => assert!(sent.contains(part), "{sent}"),
                    (sent, expected) => assert_eq!(sent.err(), expected.err(), "{url} {wire:?}"),
                }
            }
        }
    }
}
