//! Bodies of the fuzz targets `sse` and `model_stream`, and readers without a network for them
//! and for tests.

use crate::reader::{Read, Reader, read_whole};
use crate::sse::{Event, EventError, EventParser};
use crate::wire::{CallIds, Wire};
use a99_capabilities::ai::{AiError, StreamHandle, TextResult};

/// The events of a stream that comes in these pieces.
///
/// # Errors
/// If a line or an event is too large.
pub fn events(pieces: &[&[u8]]) -> Result<Vec<Event>, EventError> {
    let mut parser = EventParser::new();
    let mut found = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some(event) = parser.next(&mut rest)? {
            found.push(event);
        }
    }
    Ok(found)
}

/// The answer of a stream that comes in these pieces and then ends.
///
/// # Errors
/// As of a stream over the network.
pub fn answer(wire: Wire, pieces: &[&[u8]]) -> Result<TextResult, AiError> {
    let (sink, handle) = StreamHandle::new("fuzz");
    let mut reader = Reader::new(wire, CallIds::default());
    let mut read = Ok(Read::More {
        part: false,
        event: false,
    });
    for piece in pieces {
        read = reader.push(piece, &sink);
        if !matches!(read, Ok(Read::More { .. })) {
            break;
        }
    }
    let ended = match read {
        Ok(Read::More { .. }) => reader.end(&sink),
        read => read,
    };
    settle(ended, sink, &handle)
}

/// The answer that comes as one JSON value.
///
/// # Errors
/// As of an answer over the network.
pub fn whole(wire: Wire, body: &[u8]) -> Result<TextResult, AiError> {
    let (sink, handle) = StreamHandle::new("fuzz");
    settle(
        read_whole(wire, CallIds::default(), body, &sink),
        sink,
        &handle,
    )
}

fn settle(
    read: Result<Read, AiError>,
    sink: a99_capabilities::ai::StreamSink,
    handle: &StreamHandle,
) -> Result<TextResult, AiError> {
    match read {
        Ok(Read::Whole(reason)) => sink.finish(reason),
        Ok(_) => {}
        Err(error) => sink.fail(error),
    }
    drop(sink);
    a99_capabilities::block_on(handle.done())
}

/// Cuts bytes into two pieces, by their first byte.
fn pieces(data: &[u8]) -> (usize, &[u8]) {
    let (first, rest) = data.split_first().unwrap_or((&0, data));
    let at = usize::from(*first).min(rest.len());
    (at, rest)
}

/// Any bytes are events or an error, and the same however they are cut.
pub fn sse(data: &[u8]) {
    let (at, data) = pieces(data);
    let whole = events(&[data]);
    assert_eq!(events(&[&data[..at], &data[at..]]), whole);
    if let Ok(found) = &whole {
        let held: usize = found.iter().map(|event| event.data.len()).sum();
        // A byte that is no UTF-8 becomes three.
        assert!(held <= 3 * data.len());
    }
}

/// Any bytes are an answer that has a reason to end, or a typed error, on either wire, and
/// the same however they are cut.
pub fn model_stream(data: &[u8]) {
    let (at, data) = pieces(data);
    for wire in Wire::ALL {
        let read = answer(*wire, &[data]);
        assert_eq!(answer(*wire, &[&data[..at], &data[at..]]), read);
        if let Ok(result) = &read {
            assert!(result.stop_reason.is_some() && !result.cancelled);
        }
        if let Ok(result) = whole(*wire, data) {
            assert!(result.stop_reason.is_some() && !result.cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn targets_take_any_bytes(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            sse(&data);
            model_stream(&data);
        }

        #[test]
        fn targets_take_pieces_of_streams(
            picked in proptest::collection::vec(0..FRAGMENTS.len(), 0..30),
            at in any::<u8>(),
        ) {
            let mut data = vec![at];
            for place in picked {
                data.extend_from_slice(FRAGMENTS[place].as_bytes());
            }
            sse(&data);
            model_stream(&data);
        }
    }

    /// Pieces of both wires' streams.
    const FRAGMENTS: &[&str] = &[
        "data: ",
        "\n\n",
        "\r\n",
        "event: error\n",
        ": ping\n",
        "data: [DONE]\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"data: {"choices":[{"delta":{"reasoning":"b"},"finish_reason":"stop"}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":-4}}"#,
        r#"data: {"error":{"message":"no","code":429}}"#,
        r#"data: {"type":"message_start","message":{"usage":{"input_tokens":3}}}"#,
        r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"[1"}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}}"#,
        r#"data: {"type":"content_block_stop","index":1}"#,
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#,
        r#"data: {"type":"message_stop"}"#,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#,
    ];
}
