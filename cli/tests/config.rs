//! Configuration files: their keys, where they are found, and secrets that a found file does not
//! get.

#[path = "config/found.rs"]
mod found;
mod harness;

use harness::Done;
use std::fs;
use std::path::Path;

/// Returns nothing.
const NOTHING: &str = r#"{"op":"seq","steps":[{"op":"return","schema":{}}]}"#;

/// Runs the binary in a folder.
fn a99(folder: &Path, args: &[&str]) -> Done {
    harness::a99_in(folder, args)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("agent.json"), NOTHING).expect("written");
    folder
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("agent99.toml"), text).expect("written");
}

/// The row of a key in `a99 config --json`.
fn row(done: &Done, key: &str) -> serde_json::Value {
    let settings = done.json()["settings"].clone();
    let rows = settings.as_array().expect("a list").iter();
    rows.clone()
        .find(|row| row["key"] == key)
        .unwrap_or_else(|| panic!("{key}: {settings}"))
        .clone()
}

#[test]
fn options_win_over_the_file_and_the_file_over_defaults() {
    let folder = folder();
    write(
        folder.path(),
        "fuel = 50\nquota = [\"map=1\", \"push=2\"]\ntimeout = \"5s\"\nnow = 2026-01-31T12:00:00Z\n",
    );
    let args = ["config", "agent.json", "--json", "--timeout", "1m"];
    let done = a99(folder.path(), &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["file"], "agent99.toml");
    let fuel = row(&done, "fuel");
    assert_eq!(
        (&fuel["values"][0], &fuel["from"], &fuel["line"]),
        (&"50".into(), &"file".into(), &1.into())
    );
    assert_eq!(
        row(&done, "quota")["values"],
        serde_json::json!(["map=1", "push=2"])
    );
    let timeout = row(&done, "timeout");
    assert_eq!(
        (&timeout["values"][0], &timeout["from"]),
        (&"60s".into(), &"option".into())
    );
    assert_eq!(row(&done, "now")["values"][0], "2026-01-31T12:00:00.000Z");
    assert_eq!(row(&done, "seed")["from"], "default");
    // The output can be read as a file.
    let printed = a99(folder.path(), &["config", "agent.json"]);
    write(folder.path(), &printed.out);
    let again = a99(folder.path(), &["config", "agent.json", "--json"]);
    assert_eq!(row(&again, "fuel")["values"][0], "50");
}

#[test]
fn a_run_obeys_its_file() {
    let folder = folder();
    let program = r#"{"op":"seq","steps":[{"op":"random","result":"n"},{"op":"mathCalc","expr":"1","result":"m"},
        {"op":"return","schema":{"type":"object","properties":{"n":{}}}}]}"#;
    fs::write(folder.path().join("agent.json"), program).expect("written");
    write(folder.path(), "seed = 7\n");
    let first = a99(folder.path(), &["run", "agent.json"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(a99(folder.path(), &["run", "agent.json"]).out, first.out);
    let other = a99(folder.path(), &["run", "agent.json", "--seed", "8"]);
    assert_ne!(other.out, first.out);
    write(folder.path(), "fuel = 0x1\nseed = 0o17\n");
    assert_eq!(a99(folder.path(), &["run", "agent.json"]).code, 0);
    write(folder.path(), "fuel = 0.1\n");
    assert_eq!(a99(folder.path(), &["run", "agent.json"]).code, 4);
    assert_eq!(
        a99(folder.path(), &["run", "agent.json", "--no-config"]).code,
        0
    );
    assert_eq!(
        a99(folder.path(), &["run", "agent.json", "--fuel", "9"]).code,
        0
    );
    // From a folder below too, and by name from elsewhere.
    let below = folder.path().join("a/b");
    fs::create_dir_all(&below).expect("made");
    fs::write(below.join("agent.json"), NOTHING).expect("written");
    write(folder.path(), "fuel = 0.001\n");
    assert_eq!(a99(&below, &["run", "agent.json"]).code, 4);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agent99.toml");
    let agent = elsewhere.path().join("agent.json");
    fs::write(&agent, NOTHING).expect("written");
    let named = [
        "run",
        "agent.json",
        "--config",
        config.to_str().expect("UTF-8"),
    ];
    assert_eq!(a99(elsewhere.path(), &named).code, 4);
}

#[test]
fn mistakes_have_a_place_and_a_suggestion() {
    let folder = folder();
    for (text, code, told, help) in [
        (
            "feul = 1",
            "config.unknown_key",
            "agent99.toml:1:1: ",
            "`fuel`",
        ),
        (
            "\nheap_mib = 1",
            "config.unknown_key",
            "agent99.toml:2:1: ",
            "`heap-mib`",
        ),
        (
            "colour = 1",
            "config.unknown_key",
            "`colour`",
            "keys are allow, ca,",
        ),
        ("fuel = ", "config.syntax", "agent99.toml:1:", "key = "),
        (
            "fuel = 1\nfuel = 2",
            "config.syntax",
            "agent99.toml:2:1: duplicate key, at `fuel`",
            "a key stands once",
        ),
        (
            "fuel = -1",
            "config.bad_value",
            "agent99.toml:1:8: `fuel`: ",
            "`fuel = 1000`",
        ),
        (
            "fuel = true",
            "config.bad_value",
            "found `true`",
            "`fuel = 1000`",
        ),
        ("fuel = [1, 2]", "config.bad_value", "one value", "fuel ="),
        (
            "quota = [\"map=1\", \"map\"]",
            "config.bad_value",
            "agent99.toml:1:19: `quota`",
            "write `quota = \"map=5\"`",
        ),
        (
            "timeout = \"5 d\"",
            "config.bad_value",
            "500ms",
            "`timeout = \"120h\"`",
        ),
        (
            "now = \"yesterday\"",
            "config.bad_value",
            "2026-01-31T12:00:00Z",
            "`now = ",
        ),
        (
            "quota = \"mpa=1\"",
            "options.unknown_op",
            "agent99.toml:1:9: `quota`: ",
            "`map`",
        ),
        (
            "allow = \"api.example.com\"",
            "config.bad_value",
            "net:api.example.com",
            "write `allow = \"net:api.example.com\"`",
        ),
        ("[http]\na = 1", "config.unknown_key", "`http`", "keys are"),
        (
            "[run]\nfuel = 1",
            "config.unknown_key",
            "`run`",
            "there are no sections: write `fuel` at the top",
        ),
        ("memory = 5", "config.unknown_key", "`memory`", "`heap-mib`"),
        (
            "fuel: 5",
            "config.syntax",
            "agent99.toml:1:",
            "`=` instead of `:`",
        ),
        (
            "quota = { map = 5 }",
            "config.bad_value",
            "agent99.toml:1:9: `quota`",
            "`quota = [\"map=5\"]`",
        ),
        (
            "cost-model = \"cheap\"",
            "config.bad_value",
            "agent99.toml:1:14: `cost-model`: invalid value 'cheap' [possible values: metered, flat]",
            "write one of `metered`, `flat`",
        ),
        (
            "script = \"a.json\"",
            "config.unknown_key",
            "agent99.toml:1:1: ",
            "`--script` is an option alone",
        ),
    ] {
        write(folder.path(), text);
        let done = a99(folder.path(), &["run", "agent.json", "--json"]);
        assert_eq!((done.code, done.err.as_str()), (2, ""), "{text}: {done:?}");
        let error = &done.json()["error"];
        assert_eq!(error["code"], code, "{text}: {error}");
        let has = |member: &str, part: &str| {
            let said = error[member].as_str().unwrap_or_default();
            assert!(said.contains(part), "{text}: {member} {error}");
        };
        has("message", told);
        has("help", help);
    }
    let missing = a99(
        folder.path(),
        &["run", "agent.json", "--config", "none.toml"],
    );
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("none.toml"), "{missing:?}");
}

/// All mistakes of a file are reported in its order, without secrets.
#[test]
fn all_mistakes_of_a_file_are_told() {
    let folder = folder();
    write(
        folder.path(),
        "feul = 1\ntimeout = \"soon\"\nquota = [\"map\", \"len\"]\nenv = { a = \"s3cret\" }\n",
    );
    let done = a99(folder.path(), &["run", "agent.json", "--json"]);
    assert_eq!(done.code, 2, "{done:?}");
    let json = done.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let told: Vec<&str> = errors
        .iter()
        .filter_map(|error| error["message"].as_str())
        .map(|text| text.split(": ").next().unwrap_or(text))
        .collect();
    assert_eq!(
        told,
        [
            "agent99.toml:1:1",
            "agent99.toml:2:11",
            "agent99.toml:3:10",
            "agent99.toml:3:17",
            "agent99.toml:4:7"
        ]
    );
    assert_eq!(json["error"], errors[0]);
    assert!(!done.out.contains("s3cret"), "{done:?}");
    let done = a99(folder.path(), &["run", "agent.json"]);
    assert_eq!(done.err.matches("error[config.").count(), 5, "{done:?}");
    for text in [
        "header = [\"https://a.example x=s3cret",
        "header = s3cret",
        "header: \"s3cret\"",
    ] {
        write(folder.path(), text);
        let done = a99(folder.path(), &["run", "agent.json"]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(!done.err.contains("s3cret"), "{done:?}");
    }
}

/// An error that only the run finds also has a position and a suggestion.
#[test]
fn what_a_run_finds_wrong_has_a_place_too() {
    let folder = folder();
    for (text, told, help) in [
        (
            "env = [\"PATH\",\n  \"PAHT\"]",
            "agent99.toml:2:3: `env`: the environment has no variable PAHT",
            "`PATH`",
        ),
        (
            "env = [\"PATH\", \"A=s3cret\"]",
            "agent99.toml:1:16: `env`: expected a name without a value",
            "name alone",
        ),
        (
            "quota = [\"map=1\", \"map=2\"]",
            "agent99.toml:1:19: `quota`: `map` is there twice",
            "leave one",
        ),
        (
            "atom-timeout = [\"map=1s\", \"mpa=2s\"]",
            "agent99.toml:1:27: `atom-timeout`: there is no op named `mpa`",
            "`map`",
        ),
        (
            "readable-context = [\"user\", \"user..id\"]",
            "agent99.toml:1:29: `readable-context`: invalid value 'user..id': expected names",
            "`readable-context = [\"user.id\"]`",
        ),
        (
            "fuel = 1\nheader = [\"https://a.example x={env:A}\", \"https://a.example s3cret\"]",
            "agent99.toml:2:42: `header`: expected ORIGIN",
            "--header",
        ),
    ] {
        write(folder.path(), text);
        let args = ["run", "agent.json", "--config", "agent99.toml", "--json"];
        let done = a99(folder.path(), &args);
        assert_eq!(done.code, 2, "{text}: {done:?}");
        let error = &done.json()["error"];
        let has = |member: &str, part: &str| {
            let said = error[member].as_str().unwrap_or_default();
            assert!(said.contains(part), "{text}: {member} {error}");
        };
        has("message", told);
        has("help", help);
        assert!(!done.out.contains("s3cret"), "{done:?}");
    }
}

#[test]
#[cfg(unix)]
fn files_of_settings_are_regular_and_bounded() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let large = fs::File::create(folder.path().join("large.toml")).expect("made");
    large.set_len((1 << 20) + 1).expect("grown");
    for (path, told) in [
        ("fifo", "no regular file"),
        (".", "no regular file"),
        ("/dev/zero", "no regular file"),
        ("large.toml", "more than 1024 KiB"),
        ("none.toml", "No such file"),
    ] {
        let done = a99(folder.path(), &["run", "agent.json", "--config", path]);
        assert_eq!(done.code, 2, "{path}: {done:?}");
        let start = format!("error[cli.usage]: {path}: ");
        assert!(done.err.starts_with(&start), "{done:?}");
        assert!(done.err.contains(told), "{done:?}");
        assert!(done.err.contains("--config FILE"), "{done:?}");
    }
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    let folder = folder();
    write(
        folder.path(),
        "header = [\"https://a.example authorization=hunter2\"]\n",
    );
    let file = a99(
        folder.path(),
        &["run", "agent.json", "--config", "agent99.toml"],
    );
    let option = [
        "run",
        "agent.json",
        "--no-config",
        "--header",
        "https://a.example x=hunter2",
    ];
    let option = a99(folder.path(), &option);
    for done in [file, option] {
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.err.contains("{env:VARIABLE}"), "{done:?}");
        assert!(!done.err.contains("hunter2"), "{done:?}");
    }
}

/// Another user's folder brings no settings when run from outside, and does not hide the user's own
/// file.
#[test]
fn p08_a_file_beside_a_strangers_program_is_not_read() {
    let mine = folder();
    let theirs = mine.path().join("downloads/theirs");
    fs::create_dir_all(&theirs).expect("made");
    fs::write(theirs.join("agent.json"), NOTHING).expect("written");
    write(
        &theirs,
        "allow = \"net:*\"\nenv = \"PATH\"\nfuel = 77\nheap-mib = 4000000\n",
    );
    write(mine.path(), "fuel = 55\n");
    let args = ["config", "downloads/theirs/agent.json", "--json"];
    let done = a99(mine.path(), &args);
    for key in ["allow", "env", "heap-mib"] {
        assert_eq!(row(&done, key)["from"], "default", "{key}");
    }
    assert_eq!(row(&done, "fuel")["values"][0], "55");
    let told = done.json()["warnings"][0].to_string();
    assert!(
        told.contains("is not read") && told.contains("--config"),
        "{told}"
    );
    let run = a99(mine.path(), &["run", "downloads/theirs/agent.json"]);
    assert!(run.err.contains("is not read"), "{run:?}");
    // A syntax error in it does not matter.
    write(&theirs, "fuel = ");
    let run = a99(mine.path(), &["run", "downloads/theirs/agent.json"]);
    assert_eq!(run.code, 0, "{run:?}");
}

/// A file in the user's working folder is trusted, except with secrets: those require naming it.
#[test]
fn p08_what_uses_secrets_needs_a_file_that_is_named() {
    let folder = folder();
    write(
        folder.path(),
        "allow = \"net:*\"\nenv = \"PATH\"\nfuel = 77\n",
    );
    let done = a99(folder.path(), &["config", "agent.json", "--json"]);
    assert_eq!(row(&done, "allow")["from"], "file");
    assert_eq!(row(&done, "env")["from"], "default");
    let told = done.json()["warnings"][0].to_string();
    assert!(
        told.contains("`env` of agent99.toml is not taken"),
        "{told}"
    );
    let named = ["config", "--config", "agent99.toml", "--json"];
    let named = a99(folder.path(), &named);
    assert_eq!(row(&named, "env")["values"][0], "PATH");
    assert_eq!(named.json()["warnings"], serde_json::json!([]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.path().join("agent99.toml");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("changed");
        let done = a99(folder.path(), &["config", "agent.json", "--json"]);
        assert_eq!(row(&done, "fuel")["from"], "default");
        assert!(
            done.json()["warnings"][0]
                .to_string()
                .contains("others may write")
        );
    }
}

#[test]
fn variables_reach_the_request_context_alone() {
    let folder = folder();
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["run", "agent.json"]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        a99(folder.path(), &args)
    };
    assert_eq!(run(&["--env", "PATH"]).code, 0);
    for (args, told) in [
        (&["--env", "A99_NOT_SET"][..], "no variable A99_NOT_SET"),
        (&["--env", "A=s3cret"], "a name without a value"),
        (&["--env", "A-B"], "letters, digits"),
        (&["--env", "PAHT"], "did you mean `PATH`?"),
        (
            &["--env", "PATH", "--context", "{\"env\":{}}"],
            "exclude each other",
        ),
        (
            &["--env", "PATH", "--context", "[]"],
            "expected a JSON object",
        ),
    ] {
        let done = run(args);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(done.err.contains(told), "{done:?}");
        assert!(!done.err.contains("s3cret"), "{done:?}");
    }
}

/// Programs read the parts of the request context that the user names, by option or file.
#[test]
fn parts_of_the_request_context_are_readable_where_that_is_said() {
    let folder = folder();
    let program = r#"{"op":"seq","a99":4,"steps":[{"op":"return","value":{"n":{"=":"context('user.id') + 1"}}}]}"#;
    fs::write(folder.path().join("reads.json"), program).expect("written");
    let run = |args: &[&str]| {
        let fixed = [
            "run",
            "reads.json",
            "--json",
            "--context",
            r#"{"user":{"id":6},"plan":1}"#,
        ];
        let args: Vec<&str> = fixed.into_iter().chain(args.iter().copied()).collect();
        a99(folder.path(), &args)
    };
    for part in ["user", "user.id"] {
        let done = run(&["--readable-context", "plan", "--readable-context", part]);
        assert_eq!(done.json()["result"]["n"], 7, "{done:?}");
    }
    let done = run(&["--readable-context", "plan"]);
    let error = &done.json()["error"];
    assert_eq!(error["code"], "capability.missing", "{done:?}");
    let help = error["help"].as_str().unwrap_or_default();
    assert!(help.starts_with("`--readable-context user.id`"), "{help}");
    let done = run(&["--readable-context", "user."]);
    assert_eq!(done.code, 2, "{done:?}");

    write(folder.path(), "readable-context = \"user\"");
    let done = run(&["--config", "agent99.toml"]);
    assert_eq!(done.json()["result"]["n"], 7, "{done:?}");
}
