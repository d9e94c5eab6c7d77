//! `a99 dev model-server`: scripted models over HTTP.

mod harness;

use harness::a99_in;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::tempdir;

/// A server process, killed at the end of its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with this script. Returns it with its first output.
fn serve(script: &str) -> (Server, Value) {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("turns.json");
    fs::write(&file, script).expect("a script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command.args(["dev", "model-server", "--json"]).arg(&file);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut server = Server(child.expect("it starts"));
    let mut line = String::new();
    let out = server.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    (server, serde_json::from_str(&line).expect("JSON"))
}

fn ask(port: u16, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_script_is_played_on_both_wires() {
    let (_server, said) = serve(r#"["one", {"text": ["t", "wo"]}]"#);
    assert_eq!(said["ok"], true);
    let port = u16::try_from(said["port"].as_u64().unwrap()).unwrap();
    assert_eq!(said["url"], format!("http://127.0.0.1:{port}/v1"));
    let answer = ask(port, "/v1/chat/completions", r#"{"model": "m"}"#);
    assert!(answer.contains(r#""content":"one""#), "{answer}");
    let answer = ask(port, "/v1/messages", r#"{"model": "m", "stream": true}"#);
    assert!(answer.contains("event: message_stop"), "{answer}");
    let answer = ask(port, "/v1/messages", "{}");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
}

/// A program that streams a model's answer, and sends it in chunks.
const STREAMS: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "llmPredict", "prompt": "Say something.", "result": "said"},
    {"op": "streamChunk", "data": {"said": {"=": "said"}}},
    {"op": "streamChunk", "data": "said"},
    {"op": "return", "value": "said"}]}"#;

const SLOW: &str = r#"[{"status": 503, "retryAfter": 0}, {"text": ["Hel", "lo\u001b[2J", " you"], "delayMs": 20}]"#;

#[test]
fn a_run_shows_what_comes_as_it_comes() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("agent.json"), STREAMS).unwrap();
    let run = |more: &[&str]| {
        let (_server, said) = serve(SLOW);
        let url = said["url"].as_str().unwrap();
        let mut args = vec![
            "run",
            "agent.json",
            "--stream",
            "--llm",
            url,
            "--model",
            "m",
        ];
        args.extend(more);
        a99_in(folder.path(), &args)
    };
    let done = run(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let mut lines = done.err.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("Hello") && first.ends_with(" you"),
        "{done:?}"
    );
    assert!(!done.err.contains('\u{1b}'), "{done:?}");
    assert!(
        lines.next().unwrap().starts_with(r#"{"said":"Hello"#),
        "{done:?}"
    );
    assert!(lines.next().unwrap().starts_with("Hello"), "{done:?}");
    assert!(lines.next().unwrap().starts_with("fuel used"), "{done:?}");
    assert!(done.out.starts_with("\"Hello"), "{done:?}");

    let done = run(&["--json"]);
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<&str> = lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    let one = ["call", "chunk", "call_end"];
    assert_eq!(events[..1], ["call"]);
    assert_eq!(
        events[events.len() - 8..],
        [&["call_end"], &one[..], &one[..], &["outcome"]].concat()
    );
    let texts = lines.iter().filter(|line| line["event"] == "text");
    let texts: Vec<&str> = texts.map(|line| line["text"].as_str().unwrap()).collect();
    assert!(texts.len() >= 2, "in pieces: {texts:?}");
    let outcome = lines.last().unwrap();
    assert_eq!(outcome["result"], texts.concat());
    assert!(outcome["fuel_used"].as_f64().unwrap() > 0.0);
    assert_eq!(done.err, "");
}

#[test]
fn a_reader_that_leaves_ends_nothing() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("agent.json"), STREAMS).unwrap();
    let (_server, said) = serve(SLOW);
    let url = said["url"].as_str().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_a99"))
        .current_dir(folder.path())
        .args([
            "run",
            "agent.json",
            "--stream",
            "--json",
            "--llm",
            url,
            "--model",
            "m",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with(r#"{"event":"call""#), "{line}");
    drop(out);
    assert!(child.wait().unwrap().success());
}

/// Sends forever, and no reader takes it.
#[test]
#[cfg(unix)]
fn exit_130_is_an_interrupt_of_a_stream() {
    const SENDS: &str = r#"{"op":"seq","steps":[{"op":"while","condition":"1 == 1","body":[
        {"op":"streamChunk","data":"x"}]}]}"#;
    let args = [
        "--stream",
        "--json",
        "--fuel",
        "1e12",
        "--timeout-ms",
        "600000",
    ];
    let done = harness::interrupted(&[&["run"], &args[..]].concat(), SENDS.as_bytes());
    assert_eq!(done.code, 130, "{}", done.err);
    let last = done.out.lines().last().expect("an outcome");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(last["event"], "outcome");
    assert_eq!(last["error"]["code"], "run.aborted");
}

#[test]
fn mistakes_of_scripts_have_a_place() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("turns.json"), r#"[{"txt": "a"}]"#).unwrap();
    let done = a99_in(folder.path(), &["dev", "model-server", "turns.json"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("turns.json: /0: unknown member `txt`"),
        "{done:?}"
    );
    let done = a99_in(
        folder.path(),
        &["dev", "model-server", "none.json", "--json"],
    );
    assert_eq!(done.code, 2, "{done:?}");
}

/// Output of `a99 run` with these options, for a program that asks a model.
fn asked(options: &[&str]) -> (bool, Value) {
    let folder = tempdir().expect("it works");
    let program = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "llmPredict", "prompt": "Say something that is short.", "result": "said"},
        {"op": "return", "value": "said"}]}"#;
    fs::write(folder.path().join("ask.json"), program).expect("it works");
    let mut command = Command::new(env!("CARGO_BIN_EXE_a99"));
    command
        .current_dir(folder.path())
        .args(["run", "ask.json", "--json"]);
    let done = command.args(options).output().expect("it works");
    let text = String::from_utf8(done.stdout).expect("it works");
    let printed = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    (done.status.success(), printed)
}

#[test]
fn a_run_asks_the_model_of_a_service() {
    let turn = r#"[{"text": ["Hel", "lo"], "usage": {"promptTokens": 7, "completionTokens": 2}}]"#;
    let (_server, said) = serve(turn);
    let url = said["url"].as_str().unwrap().to_owned();
    // A budget below the prompt's tokens sends no request.
    let (ok, printed) = asked(&["--llm", &url, "--model", "m", "--max-tokens", "10"]);
    assert!(!ok, "{printed}");
    let message = printed["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the budget of tokens is used up"),
        "{message}"
    );
    let (ok, printed) = asked(&["--llm", &url, "--model", "m", "--max-tokens", "1000"]);
    assert!(ok, "{printed}");
    assert_eq!(printed["result"], "Hello");
    assert_eq!(printed["usage"]["tokens"], 9);
    for (options, wanted) in [
        (
            &["--llm", "localhost:1", "--model", "m"][..],
            "must begin with",
        ),
        (
            &[
                "--llm",
                &url,
                "--model",
                "m",
                "--llm-key-env",
                "A99_NO_SUCH_KEY",
            ],
            "not set",
        ),
    ] {
        let (ok, printed) = asked(options);
        assert!(!ok && printed.to_string().contains(wanted), "{printed}");
    }
}

/// Runs the command in a folder with these files.
fn in_folder(files: &[(&str, &str)], args: &[&str]) -> harness::Done {
    let folder = tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("it works");
    }
    a99_in(folder.path(), args)
}

const ASK: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "llmPredict", "prompt": "Say something that is short.", "result": "said"},
    {"op": "return", "value": "said"}]}"#;

#[test]
fn a_file_names_the_models_of_a_run() {
    let turns = r#"["one", {"text": "two", "usage": {"promptTokens": 1000, "completionTokens": 500}}, "three", "four"]"#;
    let (_server, said) = serve(turns);
    let url = said["url"].as_str().unwrap();
    let run = ["run", "ask.json", "--json"];
    let said = |config: &str, args: &[&str]| {
        let args: Vec<&str> = run.iter().chain(args).copied().collect();
        let done = in_folder(&[("ask.json", ASK), ("agent99.toml", config)], &args);
        serde_json::from_str::<Value>(&done.out).unwrap_or_else(|_| panic!("{done:?}"))
    };
    let plain = said(
        &format!("llm = \"{url}\"\nmodel = \"m\"\nmax-tokens = 1000"),
        &[],
    );
    assert_eq!(plain["result"], "one", "{plain}");
    let table = format!(
        "[models.services.local]\nurl = \"{url}\"\n[models.roles]\ndefault = \"local/a\"\n\
         [models.prices.\"local/a\"]\nprompt = 3.0\ncompletion = 10.0\nfuel = 0.01"
    );
    let config = in_folder(&[("agent99.toml", &table)], &["config"]);
    assert!(
        config.out.contains(&format!("[models] local {url}")),
        "{config:?}"
    );
    let priced = said(&table, &[]);
    assert_eq!(priced["result"], "two", "{priced}");
    // 1,000 tokens at 3 and 500 at 10, per million tokens.
    assert_eq!(priced["usage"]["money"], 0.008, "{priced}");
    assert!(
        priced["fuel_used"].as_f64().is_some_and(|n| n > 15.0),
        "{priced}"
    );
    // Options win, for one model or for all.
    let other = said(&table, &["--model", "local/b"]);
    assert_eq!(other["result"], "three", "{other}");
    let unknown = said(&table, &["--model", "locale/b"]);
    let error = unknown["error"].to_string();
    assert!(error.contains("did you mean `local`?"), "{error}");
    let own = said(&table, &["--llm", url, "--model", "c"]);
    assert_eq!(own["result"], "four", "{own}");
}

#[test]
fn mistakes_about_models_have_a_place() {
    let run: &[&str] = &["run", "ask.json"];
    let with_key = &["run", "ask.json", "--llm-key-env", "PATH"][..];
    let service = "[models.services.a]\nurl = \"http://localhost:1/v1\"\n";
    for (config, args, told) in [
        (
            "llm = \"http://localhost:1/v1\"",
            run,
            "agent99.toml:1:7: `llm`: it needs a model",
        ),
        (
            "",
            &["run", "ask.json", "--model", "m"],
            "--model: it is for `--llm`, which is missing",
        ),
        ("model = \"m\"", run, "`model` has no effect without `llm`"),
        (
            "",
            &["run", "ask.json", "--embed-model", "m"],
            "it is for `--embed`",
        ),
        (
            "llm = \"http://localhost:1/v1\"\nmodel = \"m\"",
            with_key,
            "the key would go to an address of a file that was found",
        ),
        (
            "llm-key-env = \"PATH\"",
            &[
                "run",
                "ask.json",
                "--llm",
                "http://localhost:1/v1",
                "--model",
                "m",
            ],
            "`llm-key-env` of agent99.toml is not taken",
        ),
        (
            &format!("{service}uri = \"x\"\n"),
            run,
            "agent99.toml:3:1: [models]: unknown field `uri`",
        ),
        (
            &format!("{service}[models.roles]\ndefault = \"b/m\"\n"),
            run,
            "no service is called `b`",
        ),
        (service, run, "name one under `roles.default`"),
        (
            "models = 3",
            run,
            "agent99.toml:1:10: [models]: invalid type: integer `3`, expected a section",
        ),
        (
            &format!("{service}[models.roles]\ndefault = \"m\"\n"),
            run,
            "agent99.toml:4:1: [models]: roles.default: `m` is not SERVICE/MODEL",
        ),
        (
            &format!(
                "{service}[models.roles]\ndefault = \"a/m\"\n[models.prices.\"a/m\"]\nfuel = -1"
            ),
            run,
            "agent99.toml:6:1: [models]: prices.\"a/m\".fuel: -1 is no price",
        ),
        (
            "[services.a]\nurl = \"http://localhost:1\"",
            run,
            "write `[models.services]`",
        ),
        (
            "[model.services.a]\nurl = \"http://localhost:1\"",
            run,
            "`[models.services.NAME]`",
        ),
        (
            &format!("{service}key-env = \"PATH\"\n[models.roles]\ndefault = \"a/m\"\n"),
            run,
            "`models` of agent99.toml is not taken",
        ),
        (
            "[models.services.a]\nurl = \"http://localhost:1/v1\"\nkey-env = \"A99_NO_KEY\"\n\
             [models.roles]\ndefault = \"a/m\"\n",
            &["run", "ask.json", "--config", "agent99.toml"],
            "key-env A99_NO_KEY: this variable is not set",
        ),
    ] {
        let done = in_folder(&[("ask.json", ASK), ("agent99.toml", config)], args);
        assert_ne!(done.code, 0, "{config}: {done:?}");
        assert!(done.err.contains(told), "{config}: {told}: {done:?}");
    }
}

#[test]
fn doctor_says_what_is_reachable() {
    let (_server, said) = serve("[]");
    let url = said["url"].as_str().unwrap();
    let port = said["port"].as_u64().unwrap();
    let doctor = |config: &str| {
        let done = in_folder(&[("agent99.toml", config)], &["doctor", "--json"]);
        let said: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
        assert_eq!(said["ok"] == true, done.code == 0, "{done:?}");
        said
    };
    let row = |said: &Value, check: &str| -> (String, String) {
        let rows = said["checks"].as_array().unwrap().iter();
        let row = rows.rev().find(|row| row["check"] == check);
        let row = row.unwrap_or_else(|| panic!("{check}: {said}"));
        let text = format!("{} {}", row["message"], row["help"]);
        (row["status"].as_str().unwrap().to_owned(), text)
    };
    let good = doctor(&format!(
        "allow = \"net:localhost:{port}\"\nllm = \"{url}\"\nmodel = \"scripted\"\nstore = \"a.db\""
    ));
    assert_eq!(good["ok"], true, "{good}");
    for (check, told) in [
        ("command", "http"),
        ("configuration", "agent99.toml is read"),
        ("network", "answers 404"),
        ("models", "asked for: scripted"),
        ("store", "will be made"),
    ] {
        let (status, text) = row(&good, check);
        assert!(status == "ok" && text.contains(told), "{check}: {text}");
    }
    let other = doctor(&format!("llm = \"{url}\"\nmodel = \"script\""));
    let (status, text) = row(&other, "models");
    assert_eq!(status, "warning");
    assert!(
        text.contains("does not list `script`") && text.contains("`scripted`"),
        "{text}"
    );
    // No server listens there.
    let bad = doctor(
        "allow = \"net:localhost:1\"\nllm = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n\
         embed = \"none\"\nstore = \"none/a.db\"",
    );
    for check in ["network", "models", "embeddings", "store"] {
        let (status, text) = row(&bad, check);
        assert_eq!(status, "problem", "{check}: {text}");
    }
    let wrong = doctor("fuel = \"much\"");
    assert_eq!(row(&wrong, "configuration").0, "problem");
}

#[test]
fn sub_agents_share_a_budget() {
    let turn = r#"{"text": "a finding", "usage": {"promptTokens": 100, "completionTokens": 50}}"#;
    let (_server, said) = serve(&format!("[{turn}, {turn}, {turn}, {turn}]"));
    let url = said["url"].as_str().unwrap();
    let lead = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "callAll", "items": {"=": "['a', 'b']"}, "as": "topic",
         "call": {"op": "agentRun", "agentId": "researcher", "input": {"topic": "topic"}},
         "result": "found"},
        {"op": "return", "value": "found"}]}"#;
    let researcher = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "llmPredict", "prompt": "Find something about this.", "result": "said"},
        {"op": "return", "value": "said"}]}"#;
    let config = format!(
        "llm = \"{url}\"\nmodel = \"m\"\nagent = [\"researcher=researcher.json,share=0.4,tokens=4000\"]"
    );
    let files = [
        ("lead.json", lead),
        ("researcher.json", researcher),
        ("agent99.toml", &config),
    ];
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["run", "lead.json", "--json"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let done = in_folder(&files, &args);
        serde_json::from_str::<Value>(&done.out).unwrap_or_else(|_| panic!("{done:?}"))
    };
    let both = run(&["--max-tokens", "20000"]);
    assert_eq!(both["result"][1]["value"], "a finding", "{both}");
    assert_eq!(both["usage"]["tokens"], 300, "{both}");
    assert_eq!(both["usage"]["children"][0]["name"], "researcher", "{both}");
    // A budget too small for two calls serves one or none.
    let one = run(&["--max-tokens", "160"]);
    assert!(
        one["usage"]["tokens"].as_f64().unwrap_or(0.0) <= 160.0,
        "{one}"
    );
    assert!(
        one.to_string().contains("the budget of tokens is used up"),
        "{one}"
    );
    for (args, told) in [
        (
            &["run", "lead.json", "--agent", "r=none.json"][..],
            "none.json: there is no such file",
        ),
        (&["run", "lead.json", "--agent", "r"], "NAME=FILE"),
        (
            &[
                "run",
                "lead.json",
                "--agent",
                "r=lead.json",
                "--agent",
                "r=lead.json",
            ],
            "two agents are called `r`",
        ),
        (
            &["run", "lead.json", "--agent", "research=researcher.json"],
            "did you mean `research`?",
        ),
    ] {
        let done = in_folder(&files, args);
        let said = format!("{}{}", done.err, done.out);
        assert!(said.contains(told), "{told}: {done:?}");
    }
}

/// Each example with model turns gives its `expected.json`, in a separate folder, with only the
/// port changed.
#[test]
fn examples_with_models_give_what_they_say() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let folders = fs::read_dir(root)
        .expect("the examples")
        .map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders
        .filter(|folder| folder.join("turns.json").exists())
        .collect();
    assert!(folders.len() >= 3, "{folders:?}");
    for folder in folders {
        let name = folder.display();
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let (_server, said) = serve(&read("turns.json"));
        let url = said["url"].as_str().unwrap();
        let copy = tempdir().expect("a folder");
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.replace("http://localhost:8089/v1", url);
            fs::write(copy.path().join(path.file_name().unwrap()), text).unwrap();
        }
        let check = a99_in(copy.path(), &["check", "--deny-warnings", "."]);
        assert!(
            !check.err.contains("warning[") && !check.err.contains("error["),
            "{name}: {check:?}"
        );
        let mut args = vec!["run", "agent.ajs", "--args", "@args.json", "--json"];
        if folder.join("script.json").exists() {
            args.extend(["--script", "script.json"]);
        }
        let done = a99_in(copy.path(), &args);
        let said: Value =
            serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{name}: {done:?}"));
        let expected: Value = serde_json::from_str(&read("expected.json")).expect("JSON");
        assert_eq!(said["result"], expected["result"], "{name}: {said}");
        assert_eq!(
            said["usage"]["tokens"], expected["tokens"],
            "{name}: {said}"
        );
    }
}
