//! Artifacts on the command line: compile, inspect, run, verify, keys, and every kind of refusal
//! (security B01, B07, B08).

mod harness;

use harness::{Done, Sandbox, a99};
use std::fs;

/// Returns its argument `x` twice.
const TWICE: &str = r#"{"op":"seq","steps":[
    {"op":"varsImport","keys":["x"]},
    {"op":"mathCalc","expr":"x * 2","result":"twice"},
    {"op":"return","schema":{"type":"object","properties":{"twice":{}}}}]}"#;

/// A folder with `p.json` and `p.a99b`.
fn compiled(name: &str, more: &[&str]) -> (Sandbox, String, String) {
    let sandbox = Sandbox::new(name);
    let program = sandbox.file("p.json", TWICE);
    let args: Vec<&str> = ["compile", &program].iter().chain(more).copied().collect();
    let done = a99(&args, b"");
    assert_eq!(done.code, 0, "{done:?}");
    let artifact = sandbox.path("p.a99b");
    (sandbox, program, artifact)
}

/// Creates a key. Returns its secret and public file.
fn key(sandbox: &Sandbox, name: &str) -> (String, String) {
    let done = a99(&["keys", "new", name, "--dir", &sandbox.path("")], b"");
    assert_eq!(done.code, 0, "{done:?}");
    let path = |kind| sandbox.path(&format!("{name}.{kind}.json"));
    (path("key"), path("pub"))
}

/// A refusal has its code, the file, and help, on a single stream.
#[track_caller]
fn refused(done: &Done, code: &str) {
    assert_eq!((done.code, done.out.as_str()), (3, ""), "{done:?}");
    assert!(
        done.err.starts_with(&format!("error[{code}]: ")),
        "{done:?}"
    );
    assert!(
        done.err.contains("  --> ") && done.err.contains("  = help: "),
        "{done:?}"
    );
    assert_eq!(done.err.matches("error").count(), 1, "{done:?}");
}

#[test]
fn an_artifact_runs_as_its_program_does() {
    let (sandbox, program, artifact) = compiled("same", &[]);
    let clock = sandbox.file("script.json", r#"{"clock": 0}"#);
    let run = |file: &str, trace: &str| {
        let trace = sandbox.path(trace);
        let done = a99(
            &[
                "run",
                file,
                "--args",
                r#"{"x": 21}"#,
                "--script",
                &clock,
                "--trace",
                &trace,
                "--json",
            ],
            b"",
        );
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
        (done.out, fs::read_to_string(trace).expect("a trace"))
    };
    let (from_json, from_file) = (run(&program, "a.jsonl"), run(&artifact, "b.jsonl"));
    assert!(from_json.0.contains(r#""twice":42"#), "{from_json:?}");
    assert_eq!(from_json, from_file);
    // Recognized by its first bytes, from standard input and under any name.
    let bytes = fs::read(&artifact).expect("the artifact");
    let done = a99(&["run", "-", "--args", r#"{"x": 1}"#], &bytes);
    assert_eq!(done.out, "{\n  \"twice\": 2\n}\n", "{done:?}");
    let odd = sandbox.path("odd.json");
    fs::copy(&artifact, &odd).expect("a copy");
    assert_eq!(a99(&["run", &odd, "--args", r#"{"x": 1}"#], b"").code, 0);
    let text = sandbox.file("text.a99b", TWICE);
    assert_eq!(a99(&["run", &text, "--args", r#"{"x": 1}"#], b"").code, 0);
}

#[test]
fn compiling_says_what_it_wrote() {
    let (sandbox, program, artifact) = compiled("wrote", &[]);
    let whole = fs::read(&artifact).expect("the artifact");
    let other = sandbox.path("other.a99b");
    let done = a99(
        &["compile", &program, "--strip", "-o", &other, "--json"],
        b"",
    );
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let said = done.json();
    let stripped = fs::read(&other).expect("the artifact");
    assert!(stripped.len() < whole.len());
    assert_eq!(said["bytes"], stripped.len());
    assert_eq!(said["output"], other);
    assert_eq!(said["signed_by"], serde_json::Value::Null);
    // The same program gives the same bytes, over the old file too.
    assert_eq!(a99(&["compile", &program], b"").code, 0);
    assert_eq!(fs::read(&artifact).expect("the artifact"), whole);
    let names: Vec<_> = fs::read_dir(sandbox.path(""))
        .expect("the folder")
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    // From standard input, and to standard output.
    let done = a99(&["compile", "-", "-o", &other], TWICE.as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.ends_with(" bytes\n"), "{done:?}");
    assert_eq!(fs::read(&other).expect("the artifact"), whole);
    // An artifact is accepted as a program: here `compile` strips one.
    let bare = sandbox.path("bare.a99b");
    assert_eq!(
        a99(&["compile", &artifact, "--strip", "-o", &bare], b"").code,
        0
    );
    assert_eq!(fs::read(&bare).expect("the artifact"), stripped);
}

#[test]
fn inputs_are_never_overwritten() {
    let (sandbox, program, artifact) = compiled("inputs", &[]);
    let (secret, _) = key(&sandbox, "k");
    let before = fs::read(&secret).expect("the key");
    for args in [
        &["compile", &program, "-o", &program][..],
        &["compile", &artifact],
        &["compile", &program, "--sign", &secret, "-o", &secret],
        &["compile", &program, "-o", &sandbox.path("")],
        &[
            "compile",
            &program,
            "-o",
            &sandbox.path("no/such/folder.a99b"),
        ],
        &["compile", &program, "-o", "-", "--json"],
        &["compile", "-"],
        &["compile", &sandbox.path("")],
        &["compile", &sandbox.path("none.json")],
        &["compile", &program, "--sign", &program],
        &["compile", &program, "--sign", &sandbox.path("k.pub.json")],
        &["compile", &program, "--sign", &sandbox.path("none.json")],
        &["verify", &artifact, "--require-signed", &program],
        &[
            "verify",
            &artifact,
            "--require-signed",
            &sandbox.path("none.json"),
        ],
        &["verify", &sandbox.path("none.a99b")],
        &["verify", &sandbox.path("")],
        &["inspect", &sandbox.path("")],
        &["run", &artifact, "--require-signed", &artifact],
        &["keys", "new", "k", "--dir", &sandbox.path("")],
        &["keys", "new", "../k"],
        &["keys", "new", "k2", "--dir", &sandbox.path("no/such")],
        &["keys", "new", "k2", "--expires-days", "0"],
        &["keys"],
    ] {
        let done = a99(args, TWICE.as_bytes());
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        let json = args.contains(&"--json");
        assert_eq!(
            (done.out.is_empty(), done.err.is_empty()),
            (!json, json),
            "{args:?}"
        );
    }
    assert_eq!(fs::read_to_string(&program).expect("the program"), TWICE);
    assert_eq!(fs::read(&secret).expect("the key"), before);
    assert!(!fs::exists(sandbox.path("k2.pub.json")).expect("known"));
    if fs::exists("/dev/null").unwrap_or(false) {
        let done = a99(&["compile", &program, "-o", "/dev/null"], b"");
        assert_eq!(done.code, 2, "{done:?}");
    }
}

#[test]
fn malformed_programs_make_no_artifact() {
    let sandbox = Sandbox::new("malformed");
    let program = sandbox.file("p.json", r#"{"op":"seq","steps":["#);
    let done = a99(&["compile", &program], b"");
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("error[json.syntax]"), "{done:?}");
    assert!(!fs::exists(sandbox.path("p.a99b")).expect("known"));
}

#[test]
fn inspecting_shows_what_a_file_holds() {
    let (sandbox, program, artifact) = compiled("inspect", &[]);
    let (secret, _) = key(&sandbox, "k");
    let done = a99(&["inspect", &artifact], b"");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    for part in [
        "format version 1",
        "content hash",
        "signed           no",
        "functions",
        "source-map",
        "mathCalc",
        "block 0  price ",
    ] {
        assert!(done.out.contains(part), "{part}: {done:?}");
    }
    let bytecode = a99(&["inspect", &program], b"").out;
    assert!(done.out.ends_with(&bytecode), "{done:?}");
    assert_eq!(a99(&["compile", &program, "--sign", &secret], b"").code, 0);
    let done = a99(&["inspect", &artifact, "--json"], b"");
    let said = done.json();
    let size = fs::read(&artifact).expect("the artifact").len();
    let last = said["sections"]
        .as_array()
        .and_then(|list| list.last())
        .expect("sections");
    let end = last["offset"].as_u64().zip(last["bytes"].as_u64());
    // 88 bytes of signature follow the last section.
    assert_eq!(end.map(|(at, n)| at + n + 88), Some(size as u64), "{said}");
    assert_eq!(said["signed_by"].as_str().map(str::len), Some(32), "{said}");
    let hash = said["imports"][0]["hash"].as_str().expect("a hash");
    assert_eq!(hash.len(), 16, "{said}");
    assert!(
        said["disassembly"]
            .as_str()
            .is_some_and(|text| text == bytecode)
    );
}

#[test]
fn b01_damaged_files_are_refused_alike_by_every_command() {
    let (sandbox, _, artifact) = compiled("damaged", &[]);
    let whole = fs::read(&artifact).expect("the artifact");
    let changed = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= value;
        bytes
    };
    let last = whole.len() - 1;
    let longer = [whole.as_slice(), b"x"].concat();
    for (bytes, code) in [
        (changed(last, 1), "artifact.wrong_hash"),
        (whole[..last].to_vec(), "artifact.wrong_length"),
        (whole[..40].to_vec(), "artifact.wrong_length"),
        (whole[..5].to_vec(), "artifact.no_artifact"),
        (longer, "artifact.wrong_length"),
        (changed(6, 7), "artifact.no_artifact"),
    ] {
        let path = sandbox.path("bad.a99b");
        fs::write(&path, &bytes).expect("written");
        for command in ["run", "check", "inspect", "verify", "compile"] {
            let other = sandbox.path("never.a99b");
            let mut args = vec![command, &path];
            if command == "compile" {
                args.extend(["-o", &other]);
            }
            refused(&a99(&args, b""), code);
            args.push("--json");
            let done = a99(&args, b"");
            assert_eq!((done.code, done.err.as_str()), (3, ""), "{done:?}");
            assert_eq!(done.json()["error"]["code"], code, "{done:?}");
            assert!(done.json()["error"]["help"].is_string(), "{done:?}");
        }
    }
    let done = a99(&["verify", "-"], TWICE.as_bytes());
    refused(&done, "artifact.no_artifact");
    let done = a99(&["verify", "-", "--json"], &changed(last, 1));
    assert_eq!(done.json()["error"]["offset"], 32, "{done:?}");
}

#[test]
fn b08_other_versions_are_refused_with_advice() {
    let (sandbox, _, artifact) = compiled("versions", &[]);
    let whole = fs::read(&artifact).expect("the artifact");
    for (at, code, advice) in [
        (8, "artifact.unknown_version", "newer Agent99"),
        (15, "artifact.unknown_version", "newer Agent99"),
        (
            16,
            "artifact.other_instructions",
            "compile the source again",
        ),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x42;
        let path = sandbox.path("other.a99b");
        fs::write(&path, &bytes).expect("written");
        let done = a99(&["run", &path], b"");
        refused(&done, code);
        assert!(done.err.contains(advice), "{done:?}");
        assert!(
            done.err.contains(&format!("(byte {at})")) || at == 15,
            "{done:?}"
        );
    }
}

#[test]
fn b07_signatures_count_where_they_are_required() {
    let (sandbox, program, artifact) = compiled("signed", &[]);
    let (secret, public) = key(&sandbox, "ours");
    let (_, foreign) = key(&sandbox, "theirs");
    let run = |file: &str, keys: &str| {
        a99(
            &[
                "run",
                file,
                "--args",
                r#"{"x": 1}"#,
                "--require-signed",
                keys,
            ],
            b"",
        )
    };
    let verify = |file: &str, keys: &str| a99(&["verify", file, "--require-signed", keys], b"");
    refused(&run(&artifact, &public), "artifact.unsigned");
    refused(&verify(&artifact, &public), "artifact.unsigned");
    refused(&run(&program, &public), "artifact.unsigned");
    // The signature and its key id.
    let done = a99(&["compile", &program, "--sign", &secret, "--json"], b"");
    let id = done.json()["signed_by"].as_str().expect("an id").to_owned();
    assert_eq!(run(&artifact, &public).code, 0);
    let done = verify(&artifact, &public);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.err
            .ends_with(&format!("ok, source matches code, signed by key {id}\n")),
        "{done:?}"
    );
    // By an untrusted key.
    refused(&run(&artifact, &foreign), "artifact.untrusted_key");
    // Without the option a signature is not checked.
    assert_eq!(
        a99(&["run", &artifact, "--args", r#"{"x": 1}"#], b"").code,
        0
    );
    let done = a99(&["check", &artifact], b"");
    assert!(done.err.contains("not checked"), "{done:?}");
    // A signature over other content, and a changed one.
    let signed = fs::read(&artifact).expect("the artifact");
    let forged = sandbox.path("forged.a99b");
    let done = a99(&["compile", &program, "--strip", "-o", &forged], b"");
    assert_eq!(done.code, 0, "{done:?}");
    let mut bytes = fs::read(&forged).expect("the artifact");
    bytes.extend_from_slice(&signed[signed.len() - 88..]);
    fs::write(&forged, &bytes).expect("written");
    refused(&run(&forged, &public), "artifact.bad_signature");
    let mut bytes = signed.clone();
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&forged, &bytes).expect("written");
    refused(&verify(&forged, &public), "artifact.bad_signature");
}

#[test]
fn b07_keys_end_and_a_script_does_not_turn_back_time() {
    let (sandbox, program, artifact) = compiled("expired", &[]);
    let (secret, public) = key(&sandbox, "k");
    assert_eq!(a99(&["compile", &program, "--sign", &secret], b"").code, 0);
    let text = fs::read_to_string(&public).expect("the key");
    let expired = text.replacen('{', "{\"expires\": 1000000000,", 1);
    let expired = sandbox.file("expired.json", &expired);
    let script = sandbox.file("script.json", r#"{"clock": 0}"#);
    for more in [&[][..], &["--script", &script]] {
        let args = ["run", &artifact, "--require-signed", &expired];
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        refused(&a99(&args, b""), "artifact.expired_key");
    }
    let dir = sandbox.path("");
    let args = [
        "keys",
        "new",
        "short",
        "--expires-days",
        "2",
        "--dir",
        &dir,
        "--json",
    ];
    let done = a99(&args, b"");
    let expires = done.json()["expires"].as_u64().expect("an end");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = expires.abs_diff(now.expect("after 1970").as_secs()) as f64 / 86_400.0;
    assert!((1.9..2.1).contains(&days), "{done:?}");
}

#[test]
#[cfg(unix)]
fn secret_keys_are_their_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new("modes");
    let (secret, public) = key(&sandbox, "k");
    let mode = fs::metadata(&secret).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (secret, public) = (fs::read_to_string(secret), fs::read_to_string(public));
    assert!(secret.expect("the key").contains("secret"));
    assert!(!public.expect("the key").contains("secret"));
}

#[test]
fn verifying_compares_source_and_code() {
    let (sandbox, program, artifact) = compiled("source", &[]);
    let done = a99(&["verify", &artifact], b"");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    assert!(
        done.err.ends_with("ok, source matches code, not signed\n"),
        "{done:?}"
    );
    let bare = sandbox.path("bare.a99b");
    assert_eq!(
        a99(&["compile", &program, "--strip", "-o", &bare], b"").code,
        0
    );
    let done = a99(&["verify", &bare, "--json"], b"");
    assert_eq!(done.json()["source"], "absent", "{done:?}");
    assert_eq!(done.json()["ok"], true);
    // Another source of the same length, with the right hash.
    let mut bytes = fs::read(&artifact).expect("the artifact");
    let at = bytes
        .windows(5)
        .rposition(|w| w == b"x * 2")
        .expect("the source");
    bytes[at + 4] = b'3';
    fs::write(&artifact, with_hash(bytes)).expect("written");
    refused(&a99(&["verify", &artifact], b""), "artifact.source_differs");
    // It runs its code.
    let done = a99(&["run", &artifact, "--args", r#"{"x": 5}"#, "--json"], b"");
    assert_eq!(done.json()["result"]["twice"], 10, "{done:?}");
}

/// Sets the content hash, as `docs/a99b.md` defines it.
fn with_hash(mut bytes: Vec<u8>) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::new();
    hash.update(&bytes[..32]);
    hash.update(&bytes[64..]);
    bytes[32..64].copy_from_slice(&hash.finalize());
    bytes
}

#[test]
fn errors_in_artifacts_point_into_the_source_unless_it_is_stripped() {
    let failing = r#"{"op":"seq","steps":[{"op":"jsonParse","str":"{oops"}]}"#;
    let sandbox = Sandbox::new("failing");
    let program = sandbox.file("p.json", failing);
    let (whole, bare) = (sandbox.path("p.a99b"), sandbox.path("bare.a99b"));
    assert_eq!(a99(&["compile", &program], b"").code, 0);
    assert_eq!(
        a99(&["compile", &program, "--strip", "-o", &bare], b"").code,
        0
    );
    let run = |file: &str| a99(&["run", file, "--json"], b"").json();
    assert_eq!(run(&whole), run(&program));
    assert_eq!(run(&whole)["error"]["pointer"], "/steps/0");
    let (mut stripped, from_json) = (run(&bare), run(&program));
    stripped["error"]["pointer"] = from_json["error"]["pointer"].clone();
    assert_eq!(stripped, from_json);
}
