//! `a99 run --record` and `--replay`.

mod harness;

use harness::{Sandbox, a99};

const PROGRAM: &str = "export default async function agent({ url }) {
  const page = await httpFetch({ url })
  const [a, b] = await Promise.all([llmPredict({ prompt: page.body }), llmPredict({ prompt: 'b' })])
  let failed = null
  try {
    await httpFetch({ url: 'https://example.org/missing' })
  } catch (e) {
    failed = e.message
  }
  return { a, b, failed, id: await uuid(), dice: await random({ min: 1, max: 1000000 }), at: Date.now() }
}
";

const SCRIPT: &str = r#"{
  "fetch": {"https://example.org/a": {"body": "text"}},
  "llm": ["one", "two"]
}"#;

fn recorded(folder: &Sandbox) -> (String, String, serde_json::Value) {
    let program = folder.file("agent.ajs", PROGRAM);
    let script = folder.file("script.json", SCRIPT);
    let recording = folder.path("run.jsonl");
    let args = r#"{"url": "https://example.org/a"}"#;
    let words = [
        "run", &program, "--args", args, "--script", &script, "--record", &recording,
    ];
    let done = a99(&words, b"");
    assert_eq!(done.code, 0, "{done:?}");
    (program, recording, done.json())
}

#[test]
fn a_replay_repeats_a_run_without_the_world() {
    let folder = Sandbox::new("recording");
    let (program, recording, first) = recorded(&folder);
    assert_eq!(first["a"], "one", "{first}");
    assert!(
        first["failed"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    let again = a99(&["run", &program, "--replay", &recording], b"");
    assert_eq!((again.code, again.json()), (0, first.clone()), "{again:?}");
    // The artifact makes the same calls.
    let artifact = folder.path("agent.a99b");
    assert_eq!(a99(&["compile", &program, "-o", &artifact], b"").code, 0);
    let again = a99(&["run", &artifact, "--replay", &recording], b"");
    assert_eq!((again.code, again.json()), (0, first), "{again:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&recording).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_departure_is_named() {
    let folder = Sandbox::new("departure");
    let (_, recording, _) = recorded(&folder);
    for (from, to, told) in [
        (
            "prompt: 'b'",
            "prompt: 'c'",
            ["at call 1.1", "llmPredict", "\"c\""],
        ),
        (
            "await httpFetch({ url })",
            "{ body: 'text' }",
            ["at call 0.0", "llmPredict", "httpFetch"],
        ),
        (
            "return { a",
            "await httpFetch({ url }); return { a",
            ["at call 3.0", "no more calls", "httpFetch"],
        ),
        (
            "  let failed = null",
            "  return { a }\n  let failed = null",
            ["before call 2.0", "httpFetch", "ended"],
        ),
    ] {
        let changed = PROGRAM.replacen(from, to, 1);
        assert_ne!(changed, PROGRAM);
        let program = folder.file("changed.ajs", &changed);
        let done = a99(&["run", &program, "--replay", &recording, "--json"], b"");
        let error = &done.json()["error"];
        assert_eq!(
            (done.code, error["code"].as_str()),
            (1, Some("replay.departed")),
            "{done:?}"
        );
        let message = error["message"].as_str().unwrap_or_default();
        assert!(told.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Sandbox::new("no-recording");
    let (program, recording, first) = recorded(&folder);
    let text = std::fs::read_to_string(&recording).unwrap();
    for (bad, at) in [
        ("", "line 1"),
        ("{}\n", "line 1"),
        ("[\n", "line 1"),
        (&*format!("{text}{{}}\n"), "line "),
    ] {
        let file = folder.file("bad.jsonl", bad);
        let done = a99(&["run", &program, "--replay", &file], b"");
        assert!(done.code == 2 && done.err.contains(at), "{bad}: {done:?}");
    }
    // The last line of a killed process may be cut.
    let cut = folder.file("cut.jsonl", &text[..text.len() - 5]);
    let done = a99(&["run", &program, "--replay", &cut, "--json"], b"");
    assert_eq!(done.json()["error"]["code"], "replay.departed", "{done:?}");
    // A recording overwrites no input of its run.
    let done = a99(&["run", &program, "--record", &program], b"");
    assert_eq!(done.code, 2, "{done:?}");
    assert!(first["id"].is_string());
}

#[test]
fn a_profile_shows_lines_functions_and_calls() {
    let folder = Sandbox::new("profile");
    let program = folder.file(
        "work.ajs",
        "export default async function agent() {\n  const total = work(3000)\n  await llmPredict({ prompt: 'x' })\n  return { total }\n}\nfunction work(n) {\n  let sum = 0\n  for (let i = 0; i < n; i++) sum += i % 7\n  return sum\n}\n",
    );
    let script = folder.file("script.json", r#"{"llm": ["one"]}"#);
    for extension in ["html", "svg", "json"] {
        let profile = folder.path(&format!("out.{extension}"));
        let words = [
            "run",
            &program,
            "--script",
            &script,
            "--profile",
            &profile,
            "--json",
        ];
        let done = a99(&words, b"");
        assert_eq!(done.code, 0, "{done:?}");
        let text = std::fs::read_to_string(&profile).unwrap();
        if extension != "json" {
            assert!(text.contains(">work") && text.contains("</svg>"), "{text}");
            assert!(!text.contains("http://") || text.contains("http://www.w3.org/2000/svg"));
        }
        if extension == "html" {
            assert!(
                text.contains("llmPredict") && text.contains("sum += i % 7"),
                "{text}"
            );
            assert!(
                !text.contains("<script") && !text.contains("src="),
                "{text}"
            );
        }
        if extension == "json" {
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            let weights = json["profiles"][0]["weights"].as_array().unwrap();
            let fuel: f64 = weights.iter().filter_map(serde_json::Value::as_f64).sum();
            let used = done.json()["fuel_used"].as_f64().unwrap();
            assert!((fuel - used).abs() < 1e-3, "{fuel} of {used}");
            let samples = json["profiles"][0]["samples"].as_array().unwrap();
            assert_eq!(samples.len(), weights.len());
            let hot = samples[0]
                .as_array()
                .unwrap()
                .last()
                .unwrap()
                .as_u64()
                .unwrap();
            let frame = &json["shared"]["frames"][usize::try_from(hot).unwrap()];
            assert_eq!(frame["line"], 8, "{json}");
            assert_eq!(json["a99"]["calls"][0]["atom"], "llmPredict");
        }
    }
    let done = a99(&["run", &program, "--profile", "x.txt"], b"");
    assert!(done.code == 2 && done.err.contains(".html"), "{done:?}");
}
