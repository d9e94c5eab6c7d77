//! Streams that end anywhere: a whole answer or a typed error, and never half of one.

use crate::{config, provider, server};
use a99_capabilities::ai::{
    AiCode, AiError, AiProvider, ModelFault, ModelTurn, TextRequest, TextResult, ToolUse, Usage,
};
use a99_core::value::{Map, Value};
use a99_models::server::body;
use a99_models::{Wire, fuzz};
use proptest::prelude::*;

fn tool(id: &str, name: &str, members: &[(&str, Value)]) -> ToolUse {
    let mut input = Map::new();
    for (key, value) in members {
        input.insert(*key, value.clone());
    }
    ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.into(),
    }
}

fn pieces(text: &[&str]) -> Vec<String> {
    text.iter().map(|piece| (*piece).to_owned()).collect()
}

/// The turns whose streams are cut: text, thinking, tools, usage, characters.
fn turns() -> Vec<ModelTurn> {
    vec![
        ModelTurn {
            text: pieces(&["Hello", ", ", "world"]),
            ..ModelTurn::default()
        },
        ModelTurn {
            thinking: pieces(&["hm, ", "well"]),
            text: pieces(&["so"]),
            ..ModelTurn::default()
        },
        ModelTurn {
            text: pieces(&["I shall look."]),
            tools: vec![
                tool(
                    "call_1",
                    "weather",
                    &[("town", "Z\u{fc}rich".into()), ("n", 7.5.into())],
                ),
                tool("call_2", "none", &[]),
            ],
            ..ModelTurn::default()
        },
        ModelTurn {
            text: pieces(&["a", "b"]),
            usage: Some(Usage {
                prompt_tokens: 1_000,
                completion_tokens: 2,
                cached_tokens: 900,
                ..Usage::default()
            }),
            ..ModelTurn::default()
        },
        ModelTurn {
            text: pieces(&[
                "\u{65e5}\u{672c}\u{8a9e}\n\n",
                "\u{1f980}\r\ndata: [DONE]\n\n",
                "e\u{301}",
            ]),
            ..ModelTurn::default()
        },
    ]
}

/// What holds of an answer whose stream was cut.
fn is_honest(read: &Result<TextResult, AiError>, turn: &ModelTurn) -> Result<bool, String> {
    let (said, thought) = (turn.text.concat(), turn.thinking.concat());
    match read {
        Ok(result) => {
            let whole = result.text == said
                && result.thinking == thought
                && result.tool_uses == turn.tools
                && result.stop_reason == Some(turn.stop_reason())
                && !result.cancelled;
            whole
                .then_some(true)
                .ok_or_else(|| format!("half of an answer: {result:?}"))
        }
        Err(error) => {
            let partial = error.partial.clone().unwrap_or_default();
            let honest = matches!(error.code, AiCode::CutOff | AiCode::Unreachable)
                && said.starts_with(&partial.text)
                && thought.starts_with(&partial.thinking)
                && turn.tools.starts_with(&partial.tool_uses)
                && partial.stop_reason.is_none();
            honest
                .then_some(false)
                .ok_or_else(|| format!("an odd error: {error:?}"))
        }
    }
}

#[test]
fn n20_every_cut_at_every_byte_ends_whole_or_as_an_error() {
    for wire in Wire::ALL {
        for turn in turns() {
            let stream = body(*wire, &turn, true);
            let mut whole = 0;
            for at in 0..=stream.len() {
                let read = fuzz::answer(*wire, &[&stream[..at]]);
                match is_honest(&read, &turn) {
                    Ok(is_whole) => whole += usize::from(is_whole),
                    Err(why) => panic!("{wire:?} at {at}: {why}"),
                }
            }
            // Only the events after the stop reason may be missing.
            assert!(
                (1..500).contains(&whole),
                "{wire:?}: {whole} of {}",
                stream.len()
            );
            let read = fuzz::answer(*wire, &[&stream]).unwrap();
            if let Some(usage) = turn.usage {
                assert_eq!(read.usage, usage);
            }
        }
    }
}

#[test]
fn two_pieces_at_every_split_give_the_same() {
    for wire in Wire::ALL {
        for turn in turns() {
            let stream = body(*wire, &turn, true);
            let whole = fuzz::answer(*wire, &[&stream]);
            assert_eq!(is_honest(&whole, &turn), Ok(true));
            for at in 0..=stream.len() {
                let (a, b) = stream.split_at(at);
                assert_eq!(fuzz::answer(*wire, &[a, b]), whole, "{wire:?} at {at}");
            }
            let single: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(fuzz::answer(*wire, &single), whole, "{wire:?} byte by byte");
        }
    }
}

#[test]
fn a_whole_answer_that_is_cut_is_malformed() {
    for wire in Wire::ALL {
        for turn in turns() {
            let json = body(*wire, &turn, false);
            for at in 0..json.len() {
                let error = fuzz::whole(*wire, &json[..at]).unwrap_err();
                assert_eq!(error.code, AiCode::Malformed, "{wire:?} at {at}");
            }
            assert_eq!(is_honest(&fuzz::whole(*wire, &json), &turn), Ok(true));
        }
    }
}

proptest! {
    /// Streams that were changed at some places are an answer that has a reason to end, or
    /// a typed error; nothing panics, and how they are cut does not matter.
    #[test]
    fn n20_changed_streams_are_answers_or_errors(
        anthropic in any::<bool>(),
        which in 0..5usize,
        changes in proptest::collection::vec((any::<u16>(), 0..4u8, any::<u8>()), 1..6),
        first in any::<u8>(),
    ) {
        let wire = if anthropic { Wire::Anthropic } else { Wire::OpenAi };
        let mut stream = body(wire, &turns()[which], true);
        for (at, change, byte) in changes {
            let at = usize::from(at) % stream.len().max(1);
            match change {
                0 if !stream.is_empty() => stream[at] = byte,
                1 => stream.insert(at, byte),
                2 if !stream.is_empty() => drop(stream.remove(at)),
                _ => {
                    let end = stream.len().min(at + usize::from(byte));
                    stream.extend_from_within(at..end);
                }
            }
        }
        stream.insert(0, first);
        fuzz::sse(&stream);
        fuzz::model_stream(&stream);
    }
}

/// The same over HTTP, where a cut closes the connection: at some bytes of each stream, and
/// at each of the last ones.
#[tokio::test]
async fn connections_that_are_cut_end_whole_or_as_an_error() {
    for wire in Wire::ALL {
        for turn in turns() {
            let length = body(*wire, &turn, true).len();
            let last = length.saturating_sub(8);
            let cuts: Vec<usize> = (0..last).step_by(29).chain(last..=length).collect();
            let cut = |at: &usize| ModelTurn {
                fault: Some(ModelFault::Cut(*at)),
                ..turn.clone()
            };
            let server = server(cuts.iter().map(cut).collect()).await;
            let models = provider(config(*wire, &server.url()));
            for at in cuts {
                let read = models.generate_text(TextRequest::new("x")).await;
                if let Err(why) = is_honest(&read, &turn) {
                    panic!("{wire:?} at {at}: {why}");
                }
            }
            assert_eq!(server.turns_left(), 0);
        }
    }
}
