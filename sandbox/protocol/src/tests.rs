use super::*;
use proptest::prelude::*;

fn requests() -> Vec<Request> {
    vec![
        Request::Resume(Box::default()),
        Request::Resume(Box::new(Resume {
            wall_ns: 1 << 60,
            entropy: vec![7; 32],
            hostname: Some(b"box".to_vec()),
            env: vec![(b"A".to_vec(), b"1".to_vec())],
            limits: Limits {
                pids: Some(10),
                memory: None,
            },
            interrupt: true,
            network: Some(Network {
                address: [192, 168, 127, 3],
                prefix: 24,
                gateway: [192, 168, 127, 1],
                dns: [192, 168, 127, 1],
                mtu: 65_520,
                mac: Some([2, 0, 0, 0, 0, 9]),
                hosts: vec![
                    ([192, 168, 127, 254].into(), b"host".to_vec()),
                    ([9u16; 8].into(), b"host".to_vec()),
                ],
                ipv6: Some(Ipv6 {
                    address: [3; 16],
                    prefix: 64,
                    gateway: [1; 16],
                }),
            }),
            mounts: vec![Mount {
                entry: b"0".to_vec(),
                path: b"/mnt/data".to_vec(),
                access: Access::Overlay,
            }],
            disk: true,
            layers: 3,
            replace_root: true,
            identity: Some(Identity {
                uid: 5,
                gid: 6,
                groups: vec![7, 8],
                folder: b"/srv".to_vec(),
            }),
            memory: Some((0x9000_0000, 0xa000_0000)),
            swap_off: true,
        })),
        Request::Prepare,
        Request::Drain,
        Request::Exec(Exec {
            argv: vec![b"printf".to_vec(), b"\xff".to_vec()],
            env: vec![(b"A".to_vec(), b"".to_vec())],
            clear_env: true,
            user: User::Root,
            cwd: Some(b"/tmp".to_vec()),
            stdin: true,
            pty: Some(PtySize { rows: 24, cols: 80 }),
            detach: true,
            limits: Limits {
                pids: Some(10),
                memory: Some(1 << 33),
            },
        }),
        Request::Exec(Exec::default()),
        Request::Exec(Exec {
            user: User::Files,
            ..Exec::default()
        }),
        Request::Ping,
        Request::Script(Script {
            text: b"echo hi\n".to_vec(),
        }),
        Request::Stdin(b"\0\xff".to_vec()),
        Request::StdinEnd,
        Request::Resize(PtySize { rows: 1, cols: 2 }),
        Request::Signal(15),
        Request::Kill,
        Request::Credit(Stream::Stderr, 9),
    ]
}

fn reports() -> Vec<Report> {
    vec![
        Report::Ready {
            version: VERSION,
            control_groups: true,
        },
        Report::Resumed {
            failure: None,
            interrupted: 0,
        },
        Report::Resumed {
            failure: Some("no clock".to_owned()),
            interrupted: 3,
        },
        Report::Drained,
        Report::Prepared(1 << 40),
        Report::Started(1),
        Report::Output(Stream::Stdout, b"\xc3".to_vec()),
        Report::Output(Stream::Stderr, b"\0".to_vec()),
        Report::Exited(Exited {
            ending: Ending::Signal(9),
            out_of_memory: true,
            session_reset: true,
        }),
        Report::Exited(Exited::default()),
        Report::Failed(Reason::NotFound, 2, "No such file or directory".to_owned()),
        Report::Failed(Reason::Folder, 0, String::new()),
        Report::Pong,
        Report::Credit(5),
    ]
}

#[test]
fn frames_come_back_however_they_are_cut() {
    let mut bytes = Vec::new();
    for (id, request) in requests().iter().enumerate() {
        request.encode(id as u64, &mut bytes);
    }
    for step in [1, 3, 12, 13, 14, 1000] {
        let mut reader = FrameReader::new();
        let mut seen = Vec::new();
        for chunk in bytes.chunks(step) {
            reader.push(chunk);
            while let Some((id, request)) = reader.next(Request::decode).expect("good frames") {
                assert_eq!(id as usize, seen.len());
                seen.push(request);
            }
        }
        assert_eq!(seen, requests(), "chunks of {step}");
    }
}

#[test]
fn reports_come_back() {
    let mut bytes = Vec::new();
    for report in reports() {
        report.encode(3, &mut bytes);
    }
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    for report in reports() {
        assert_eq!(reader.next(Report::decode), Ok(Some((3, report))));
    }
    assert_eq!(reader.next(Report::decode), Ok(None));
}

#[test]
fn data_frames_take_a_chunk() {
    let mut bytes = Vec::new();
    assert_eq!(output_frame(&mut bytes, 1, Stream::Stderr, b"ok"), 2);
    let long = [0; MAX_CHUNK + 1];
    assert_eq!(
        output_frame(&mut bytes, 1, Stream::Stdout, &long),
        MAX_CHUNK
    );
    assert_eq!(stdin_frame(&mut bytes, 2, &[0; MAX_CHUNK + 1]), MAX_CHUNK);
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    let output = Report::Output(Stream::Stderr, b"ok".to_vec());
    assert_eq!(reader.next(Report::decode), Ok(Some((1, output))));
    let output = Report::Output(Stream::Stdout, vec![0; MAX_CHUNK]);
    assert_eq!(reader.next(Report::decode), Ok(Some((1, output))));
    let input = Request::Stdin(vec![0; MAX_CHUNK]);
    assert_eq!(reader.next(Request::decode), Ok(Some((2, input))));
}

#[test]
fn wrong_frames_are_errors() {
    let long = |len: u32| {
        let mut reader = FrameReader::new();
        reader.push(&len.to_le_bytes());
        reader.push(&[0; 9]);
        reader.next(Request::decode)
    };
    assert_eq!(
        long(u32::MAX),
        Err(ProtocolError::TooLong(u32::MAX as usize))
    );
    assert_eq!(long(0), Err(ProtocolError::UnknownKind(0)));
    let mut bytes = Vec::new();
    Request::Signal(1).encode(0, &mut bytes);
    let (kind, payload) = (bytes[4], &bytes[HEADER_BYTES..]);
    assert!(Request::decode(kind, payload).is_ok());
    for wrong in [&payload[..3], &[payload, &[0]].concat()] {
        assert_eq!(
            Request::decode(kind, wrong),
            Err(ProtocolError::Malformed(kind))
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(kind: u8, payload in prop::collection::vec(any::<u8>(), 0..100)) {
        for decoded in [
            Request::decode(kind, &payload).map(|r| { let mut b = Vec::new(); r.encode(0, &mut b); b }),
            Report::decode(kind, &payload).map(|r| { let mut b = Vec::new(); r.encode(0, &mut b); b }),
        ].into_iter().flatten() {
            prop_assert_eq!(&decoded[HEADER_BYTES..], &payload[..]);
        }
    }
}
