//! Tests of the codec: round trips, cuts at each byte, hostile lengths.

use super::*;
use proptest::prelude::{Strategy, any, proptest};
use proptest::{option, prop_assert, prop_assert_eq, prop_oneof};

fn envelopes() -> impl Strategy<Value = Envelope> {
    let error = (
        any::<(String, String, bool)>(),
        any::<(Option<String>, Option<u8>)>(),
    );
    let error = error.prop_map(|((code, message, is_final), (help, exit))| WireError {
        code,
        message,
        is_final,
        help,
        exit,
    });
    prop_oneof![
        (any::<u64>(), any::<String>(), option::of(any::<u32>()))
            .prop_map(|(id, method, protocol)| Envelope::Request(id, method, protocol)),
        any::<u64>().prop_map(Envelope::Answer),
        (any::<u64>(), error).prop_map(|(id, error)| Envelope::Failed(id, error)),
        any::<String>().prop_map(Envelope::Notice),
    ]
}

/// Reads a stream in pieces of at most this many bytes: whole frames, and how it ended.
fn read(mut stream: &[u8], most: usize) -> (Vec<Frame>, Option<FrameError>) {
    let (mut incoming, mut frames) = (Incoming::default(), Vec::new());
    loop {
        let room = incoming.room();
        assert!(!room.is_empty() && room.len() <= PIECE);
        let count = room.len().min(most).min(stream.len());
        let (now, later) = stream.split_at(count);
        room[..count].copy_from_slice(now);
        stream = later;
        match incoming.advance(count) {
            Ok(Step::More) => {}
            Ok(Step::Frame(frame)) => frames.push(frame),
            Ok(Step::End) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in_and_cuts_are_seen(
        all in proptest::collection::vec((envelopes(), any::<String>(), any::<Vec<u8>>()), 1..4),
        most in 1..100_usize,
    ) {
        let mut stream = Vec::new();
        let mut ends = vec![0];
        for (envelope, json, bytes) in &all {
            stream.extend(encode(envelope.clone(), Some(json), bytes).expect("a frame"));
            ends.push(stream.len());
        }
        let (frames, end) = read(&stream, most);
        prop_assert!(end.is_none());
        prop_assert_eq!(frames.len(), all.len());
        for (frame, (envelope, json, bytes)) in frames.iter().zip(&all) {
            prop_assert_eq!(&frame.envelope, envelope);
            prop_assert_eq!(&frame.body.json::<String>().expect("a text"), json);
            prop_assert_eq!(frame.body.bytes(), bytes);
        }
        for cut in 0..stream.len() {
            let (frames, end) = read(&stream[..cut], most);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            prop_assert_eq!(frames.len(), whole);
            prop_assert_eq!(end.is_some(), !ends.contains(&cut));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>(), length in any::<u32>()) {
        if let Ok(frame) = decode(bytes.clone()) {
            drop(frame.body.json::<serde_json::Value>());
        }
        let mut incoming = Incoming::default();
        incoming.room().copy_from_slice(&length.to_be_bytes());
        let step = incoming.advance(4);
        prop_assert_eq!(step.is_err(), length as usize > MAX_FRAME_BYTES);
        // A length takes no memory before its bytes arrive.
        prop_assert!(step.is_err() || incoming.room().len() <= PIECE);
        read(&[&length.to_be_bytes()[..], &bytes].concat(), 7);
    }
}

#[test]
fn the_forms_on_the_wire() {
    let text = |frame: Result<Vec<u8>, FrameError>| {
        String::from_utf8(frame.expect("a frame")[4..].to_vec()).expect("text")
    };
    assert_eq!(
        text(request(7, "a.b", &"x\ny")),
        "{\"id\":7,\"method\":\"a.b\"}\n\"x\\ny\""
    );
    assert_eq!(text(answer(8, &[1, 2])), "{\"id\":8}\n[1,2]");
    assert_eq!(text(notice("n", &())), "{\"method\":\"n\"}\nnull");
    let error = WireError {
        code: "x.y".to_owned(),
        message: "why".to_owned(),
        ..WireError::default()
    };
    let line = "{\"id\":9,\"error\":{\"code\":\"x.y\",\"message\":\"why\",\"final\":false}}\n";
    assert_eq!(text(failed(9, error)), line);
    let output = Envelope::Notice("stdout".to_owned());
    let frame = encode(output, None::<&()>, b"a\nb");
    assert_eq!(text(frame), "{\"method\":\"stdout\",\"bytes\":3}\na\nb");
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [
        "",
        "{}",
        "\n",
        "{}\n",
        "{\"id\":-1}\n",
        "{\"id\":1,\"x\":2}\n",
        "[]\n1",
        "{\"error\":{\"code\":\"a\",\"message\":\"b\",\"final\":true}}\n",
        "{\"id\":1,\"bytes\":3}\nab",
        "{\"id\":1,\"bytes\":18446744073709551615}\nab",
    ] {
        let refused = decode(bytes.into());
        assert!(matches!(refused, Err(FrameError::Malformed(_))), "{bytes}");
        let frame = [&(bytes.len() as u32).to_be_bytes()[..], bytes.as_bytes()].concat();
        assert!(
            matches!(read(&frame, 3).1, Some(FrameError::Malformed(_))),
            "{bytes}"
        );
    }
    let frame = decode("{\"id\":1}\n{".into()).expect("a frame");
    assert!(frame.body.json::<u8>().is_err());
}

#[test]
fn sizes_are_bounded() {
    let notice = |bytes: &[u8]| {
        let method = "n".to_owned();
        encode(Envelope::Notice(method), None::<&()>, bytes)
    };
    let line = "{\"method\":\"n\",\"bytes\":16777177}\n".len();
    let most = vec![7; MAX_FRAME_BYTES - line];
    let frame = notice(&most).expect("a frame");
    assert_eq!(
        read(&frame, usize::MAX)
            .0
            .first()
            .map(|frame| frame.body.bytes()),
        Some(&most[..])
    );
    let long = [&most[..], &[7]].concat();
    assert!(matches!(notice(&long), Err(FrameError::TooLarge(_))));
}
