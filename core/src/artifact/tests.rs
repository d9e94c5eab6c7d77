use super::*;
use crate::codes::find;
use crate::program::Source;
use crate::value::Value;
use crate::verify::tests::sample::sample;

fn artifact() -> Artifact {
    verify(sample()).expect("the sample is valid")
}

fn file() -> Vec<u8> {
    artifact()
        .to_bytes(&EncodeOptions::default())
        .expect("small")
}

fn refusal(bytes: &[u8]) -> ArtifactError {
    Artifact::from_bytes(bytes, &DecodeOptions::default()).expect_err("refused")
}

/// Updates the content hash of a deliberately changed file.
fn with_hash(mut bytes: Vec<u8>) -> Vec<u8> {
    let hash = encode::content_hash(&bytes);
    bytes[32..HEADER_BYTES].copy_from_slice(&hash);
    bytes
}

/// All parts of a program that a file holds.
fn parts(p: &Program) -> String {
    format!(
        "{:?}",
        (
            (
                &p.text,
                &p.consts,
                &p.keys,
                &p.shapes,
                &p.paths,
                &p.literals,
                &p.args
            ),
            (&p.ops, &p.sites, &p.memos, &p.names, &p.schemas, &p.outer),
            (&p.input_schema, &p.helpers, &p.functions, p.source.text()),
        )
    )
}

#[test]
fn a_program_comes_back_the_same_and_gives_the_same_bytes() {
    let mut program = sample();
    program.input_schema = Some(Value::from("a schema"));
    program.schemas = vec![Value::Null, Value::from(1.5)];
    program.helpers = Some(Value::from("helpers"));
    let bytes = encode::encode(&program, &EncodeOptions::default()).expect("small");
    let again = decode(&bytes, &DecodeOptions::default()).expect("whole");
    assert_eq!(parts(&again), parts(&program));
    assert_eq!(encode::encode(&again, &EncodeOptions::default()), Ok(bytes));
}

#[test]
fn stripping_takes_source_and_places_and_nothing_else() {
    let strip = EncodeOptions { strip: true };
    let bytes = artifact().to_bytes(&strip).expect("small");
    assert!(bytes.len() < file().len());
    let again = Artifact::from_bytes(&bytes, &DecodeOptions::default()).expect("whole");
    assert_eq!(again.program().identity(), artifact().program().identity());
    assert!(again.program().source.document().is_none());
    let mut bare = sample();
    bare.source = Source::default();
    for f in &mut bare.functions {
        f.places.clear();
        f.steps
            .iter_mut()
            .for_each(|s| s.node = crate::json::NodeId(0));
    }
    assert_eq!(parts(again.program()), parts(&bare));
}

#[test]
fn the_source_is_read_when_it_is_needed() {
    let again = Artifact::from_bytes(&file(), &DecodeOptions::default()).expect("whole");
    let document = again.program().source.document().expect("a source");
    let before = artifact();
    let document_before = before.program().source.document().expect("a source");
    assert_eq!(document.node_count(), document_before.node_count());
    let steps = again.program().functions[0].steps.iter().map(|s| s.node);
    for node in steps {
        assert_eq!(document.pointer(node), document_before.pointer(node));
    }
}

#[test]
fn b01_every_truncation_and_every_bit_is_noticed() {
    let bytes = file();
    for end in 0..bytes.len() {
        let error = refusal(&bytes[..end]);
        let expected = if end < MAGIC.len() {
            codes::NO_ARTIFACT
        } else {
            codes::WRONG_LENGTH
        };
        assert_eq!(error.code, expected, "{end} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = refusal(&changed);
        assert!(error.code.starts_with("artifact."), "bit {bit}: {error}");
        assert!(!error.help.is_empty());
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    assert_eq!(refusal(&longer).code, codes::WRONG_LENGTH);
}

#[test]
fn b01_bits_that_the_hash_does_not_guard_are_refused_or_harmless() {
    let bytes = file();
    let mut accepted = 0u32;
    for bit in HEADER_BYTES * 8..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = with_hash(changed);
        match Artifact::from_bytes(&changed, &DecodeOptions::default()) {
            Ok(artifact) => {
                accepted += 1;
                // An accepted file encodes to the same bytes again.
                let again = artifact.to_bytes(&EncodeOptions::default()).expect("small");
                assert_eq!(again, changed, "bit {bit}");
            }
            Err(error) => {
                assert!(find(error.code).is_some(), "{error}");
                assert!(error.to_string().starts_with(error.code), "{error}");
            }
        }
    }
    assert!((1..bytes.len() as u32 * 8).contains(&accepted));
}

#[test]
fn b06_lengths_are_limits_and_never_requests() {
    let bytes = file();
    let small = DecodeOptions { max_bytes: 100 };
    assert_eq!(
        header(&bytes, &small).expect_err("large").code,
        codes::TOO_LARGE
    );
    // A list with a claimed length of 4 Gi.
    let sections = header(&bytes, &DecodeOptions::default())
        .expect("whole")
        .sections;
    for (at, (kind, section)) in sections.iter().enumerate() {
        // Text, source and the node of the map's first step have no list length.
        let no_list = *kind == SectionKind::Text || *kind >= SectionKind::SourceMap;
        if section.len() < 4 || no_list {
            continue;
        }
        let entry = HEADER_BYTES + SECTION_BYTES * at + 4;
        let start = u32::from_le_bytes(bytes[entry..entry + 4].try_into().expect("four")) as usize;
        let mut changed = bytes.clone();
        changed[start..start + 4].fill(0xff);
        let error = refusal(&with_hash(changed));
        assert_eq!(error.code, codes::BAD_CONTENT, "{}: {error}", kind.name());
    }
    // Sections that overlap, leave a gap, or are out of order.
    for (field, value) in [(4, 0u32), (8, u32::MAX), (0, 33), (0, 99)] {
        let at = HEADER_BYTES + SECTION_BYTES + field;
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(
            refusal(&with_hash(changed)).code,
            codes::BAD_SECTIONS,
            "{field}"
        );
    }
}

#[test]
fn b08_other_versions_are_named() {
    let changed = |at: usize, value: u8| {
        let mut bytes = file();
        bytes[at] = value;
        refusal(&with_hash(bytes))
    };
    assert_eq!(changed(8, 2).code, codes::UNKNOWN_VERSION);
    assert!(changed(8, 2).help.contains("newer"));
    assert_eq!(changed(8, 0).code, codes::UNKNOWN_VERSION);
    assert_eq!(changed(15, 0x80).code, codes::UNKNOWN_VERSION);
    let other = changed(16, file()[16] ^ 1);
    assert_eq!(other.code, codes::OTHER_INSTRUCTIONS);
    assert!(other.help.contains("compile the source again"));
}

#[test]
fn b10_bytes_are_the_same_twice() {
    assert_eq!(file(), file());
    let again = Artifact::from_bytes(&file(), &DecodeOptions::default()).expect("whole");
    assert_eq!(
        again.to_bytes(&EncodeOptions::default()).expect("small"),
        file()
    );
    assert_eq!(
        crate::disasm::disassemble(again.program()),
        crate::disasm::disassemble(artifact().program())
    );
}

#[cfg(feature = "signing")]
mod signatures {
    use super::super::sign::{SIGNATURE_BYTES, SecretKey, TrustedKeys, check, sign};
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed(&[seed; 32], None)
    }

    fn trusted(key: &SecretKey) -> TrustedKeys {
        TrustedKeys::from_json(key.to_public_json().as_bytes()).expect("a key file")
    }

    fn signed() -> Vec<u8> {
        sign(&file(), &key(1), &DecodeOptions::default()).expect("an artifact")
    }

    fn code(bytes: &[u8], trusted: &TrustedKeys, now: u64) -> &'static str {
        match check(bytes, trusted, now, &DecodeOptions::default()) {
            Ok(_) => "ok",
            Err(error) => error.code,
        }
    }

    #[test]
    fn b07_only_a_trusted_key_over_the_whole_content_counts() {
        let ours = trusted(&key(1));
        assert_eq!(code(&signed(), &ours, 0), "ok");
        assert_eq!(signed().len(), file().len() + SIGNATURE_BYTES);
        assert_eq!(code(&file(), &ours, 0), codes::UNSIGNED);
        assert_eq!(code(&signed(), &trusted(&key(2)), 0), codes::UNTRUSTED_KEY);
        // The signature of one artifact under another: a re-signed subset.
        let strip = EncodeOptions { strip: true };
        let mut subset = artifact().to_bytes(&strip).expect("small");
        let bytes = signed();
        subset.extend_from_slice(&bytes[bytes.len() - SIGNATURE_BYTES..]);
        assert_eq!(code(&subset, &ours, 0), codes::BAD_SIGNATURE);
        // Wrong magic or algorithm, wrong key id, wrong signature.
        for (at, expected) in [
            (0, codes::BAD_SIGNATURE),
            (4, codes::BAD_SIGNATURE),
            (8, codes::UNTRUSTED_KEY),
        ] {
            let mut changed = bytes.clone();
            changed[bytes.len() - SIGNATURE_BYTES + at] ^= 1;
            assert_eq!(code(&changed, &ours, 0), expected, "{at}");
        }
        for at in 24..SIGNATURE_BYTES {
            let mut changed = bytes.clone();
            changed[bytes.len() - SIGNATURE_BYTES + at] ^= 1;
            assert_eq!(code(&changed, &ours, 0), codes::BAD_SIGNATURE, "{at}");
        }
        // Any bit of the content.
        let mut changed = bytes.clone();
        changed[HEADER_BYTES + 5] ^= 1;
        assert_eq!(code(&changed, &ours, 0), codes::WRONG_HASH);
        let changed = with_hash(changed[..changed.len() - SIGNATURE_BYTES].to_vec());
        let forged = [&changed, &bytes[bytes.len() - SIGNATURE_BYTES..]].concat();
        assert_ne!(code(&forged, &ours, 0), "ok");
        // The reader accepts a signed artifact.
        assert!(Artifact::from_bytes(&bytes, &DecodeOptions::default()).is_ok());
    }

    #[test]
    fn b07_keys_end() {
        let key = SecretKey::from_seed(&[3; 32], Some(1_000));
        let bytes = sign(&file(), &key, &DecodeOptions::default()).expect("an artifact");
        assert_eq!(code(&bytes, &trusted(&key), 1_000), "ok");
        assert_eq!(code(&bytes, &trusted(&key), 1_001), codes::EXPIRED_KEY);
    }

    #[test]
    fn signing_again_replaces_the_signature() {
        let again = sign(&signed(), &key(2), &DecodeOptions::default()).expect("an artifact");
        assert_eq!(again.len(), signed().len());
        assert_eq!(code(&again, &trusted(&key(2)), 0), "ok");
        assert_eq!(code(&again, &trusted(&key(1)), 0), codes::UNTRUSTED_KEY);
    }

    #[test]
    fn a_signed_text_is_for_one_purpose_and_one_key() {
        use super::super::sign::{check_text, sign_text};
        let secret = SecretKey::from_seed(&[7; 32], Some(5));
        let trusted = TrustedKeys::from_json(secret.to_public_json().as_bytes()).expect("a key");
        let other = TrustedKeys::from_json(key(1).to_public_json().as_bytes()).expect("a key");
        let signature = sign_text("package", b"text", &secret);
        let code = |purpose, text: &[u8], signature: &[u8], trusted, now| {
            check_text(purpose, text, signature, trusted, now).map_err(|error| error.code)
        };
        assert_eq!(
            code("package", b"text", &signature, &trusted, 5),
            Ok(secret.id())
        );
        let bad = Err(codes::BAD_SIGNATURE);
        assert_eq!(code("artifact", b"text", &signature, &trusted, 5), bad);
        assert_eq!(code("package", b"test", &signature, &trusted, 5), bad);
        assert_eq!(code("package", b"text", &signature[1..], &trusted, 5), bad);
        for at in 0..signature.len() {
            let mut changed = signature.clone();
            changed[at] ^= 1;
            assert!(
                code("package", b"text", &changed, &trusted, 5).is_err(),
                "{at}"
            );
        }
        let untrusted = Err(codes::UNTRUSTED_KEY);
        assert_eq!(code("package", b"text", &signature, &other, 5), untrusted);
        let expired = Err(codes::EXPIRED_KEY);
        assert_eq!(code("package", b"text", &signature, &trusted, 6), expired);
    }

    #[test]
    fn key_files_come_back_and_fakes_are_refused() {
        let secret = SecretKey::from_seed(&[7; 32], Some(5));
        let again = SecretKey::from_json(secret.to_secret_json().as_bytes()).expect("a key");
        assert_eq!(again.to_secret_json(), secret.to_secret_json());
        let public = secret.to_public_json();
        assert!(!public.contains("secret"));
        assert_eq!(
            SecretKey::from_json(public.as_bytes())
                .expect_err("public")
                .code,
            codes::BAD_KEY_FILE
        );
        let both = format!("[{public},{}]", key(1).to_public_json());
        assert_eq!(
            TrustedKeys::from_json(both.as_bytes())
                .expect("two")
                .iter()
                .count(),
            2
        );
        let id = secret.id().to_string();
        let weak = "0".repeat(64);
        for text in [
            "",
            "[]",
            "{}",
            "null",
            &public.replace(&id, &"0".repeat(32)),
            &public.replace("ed25519", "hmac"),
            &public.replace("\"public\": \"", "\"public\": \"zz"),
            &public.replace("\"public\": \"", "\"other\": 1, \"public\": \""),
            &public.replace("\"public\": \"", "\"expires\": -1, \"public\": \""),
            &public.replace("\"public\": \"", "\"secret\": 1, \"public\": \""),
            &format!(r#"{{"agent99_key":"ed25519-public","id":"00","public":"{weak}"}}"#),
        ] {
            let error = TrustedKeys::from_json(text.as_bytes()).expect_err(text);
            assert_eq!(error.code, codes::BAD_KEY_FILE, "{text}");
        }
    }
}
