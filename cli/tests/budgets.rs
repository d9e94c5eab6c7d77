//! Token and money limits on the command line: a limit without effect is refused.

#![cfg(all(feature = "models", feature = "embed"))]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod harness;

use harness::a99_in;
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

/// A program that asks no model.
const SILENT: &str = r#"{"a99": 4, "op": "seq", "steps": [{"op": "return", "value": 1}]}"#;

/// Exit code and output of a run with these options.
fn run(config: &str, options: &[&str]) -> (i32, Value) {
    let folder = tempdir().unwrap();
    for (name, text) in [
        ("silent.json", SILENT),
        ("agent99.toml", config),
        ("ai.json", r#"{"ai": ["hi"]}"#),
        ("llm.json", r#"{"llm": ["hi"]}"#),
        ("embed.json", r#"{"embed": 8}"#),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let args = ["run", "silent.json", "--json"]
        .iter()
        .chain(options)
        .copied();
    let done = a99_in(folder.path(), &args.collect::<Vec<_>>());
    let printed = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    (done.code, printed)
}

const LOCAL: [&str; 4] = ["--llm", "http://127.0.0.1:9/v1", "--model", "m"];

#[test]
fn d3_a_limit_that_cannot_limit_is_refused_at_the_start() {
    let local = |more: &[&'static str]| [&LOCAL[..], more].concat();
    let roles = "[models.services.a]\nurl = \"http://127.0.0.1:9/v1\"\n[models.roles]\n\
                 default = \"a/x\"\nsmart = [\"a/y\", \"a/z\"]\n\
                 [models.prices.\"a/x\"]\nprompt = 1.0\n[models.prices.\"a/y\"]\nprompt = 1.0\n";
    for (config, options, missing) in [
        ("", vec!["--max-tokens", "5"], "no model and no service"),
        ("", vec!["--max-money", "5"], "no model and no service"),
        ("max-tokens = 5", vec![], "no model and no service"),
        (
            "",
            vec!["--agent", "a=silent.json,tokens=5"],
            "no model and no service",
        ),
        (
            "",
            local(&["--max-money", "5"]),
            "the model `m` has no price",
        ),
        // A fallback's model lacks a price; the roles' models have prices.
        (
            roles,
            vec!["--max-money", "5"],
            "the model `a/z` has no price",
        ),
        (
            "",
            vec![
                "--embed",
                "http://127.0.0.1:9/v1",
                "--embed-model",
                "e",
                "--max-money",
                "5",
            ],
            "the model `e` has no price",
        ),
        (
            "",
            vec!["--script", "llm.json", "--max-money", "5"],
            "the script's `llm` has no price",
        ),
        // The list uses another currency.
        (
            "[models]\ncurrency = \"EUR\"\n[models.services.o]\nurl = \"https://api.openai.com/v1\"\n\
             [models.roles]\ndefault = \"o/gpt-5\"",
            vec!["--max-money", "5"],
            "the model `o/gpt-5` has no price",
        ),
    ] {
        let (code, printed) = run(config, &options);
        assert_eq!(code, 2, "{options:?}: {printed}");
        assert_eq!(printed["error"]["code"], "cli.no_limit", "{printed}");
        let message = printed["error"]["message"].as_str().unwrap();
        assert!(message.contains(missing), "{options:?}: {message}");
    }
}

#[test]
fn d3_a_limit_that_limits_is_taken() {
    let local = |more: &[&'static str]| [&LOCAL[..], more].concat();
    for (config, options) in [
        ("", local(&["--max-tokens", "5"])),
        ("", local(&["--max-money", "5", "--price", "m=0,0"])),
        ("price = [\"m=1,2\"]", local(&["--max-money", "5"])),
        (
            "",
            vec![
                "--script",
                "ai.json",
                "--max-tokens",
                "5",
                "--max-money",
                "1",
            ],
        ),
        ("", vec!["--script", "embed.json", "--max-tokens", "5"]),
        (
            "",
            vec![
                "--llm",
                "https://api.openai.com/v1",
                "--model",
                "gpt-5-mini",
                "--max-money",
                "1",
            ],
        ),
        (
            "",
            vec![
                "--embed",
                "https://api.openai.com/v1",
                "--embed-model",
                "text-embedding-3-small",
                "--max-money",
                "1",
            ],
        ),
    ] {
        let (code, printed) = run(config, &options);
        assert_eq!(code, 0, "{options:?}: {printed}");
    }
    let (code, printed) = run("", &local(&["--price", "n=1,2"]));
    let message = printed["error"]["message"].as_str().unwrap();
    assert!(code == 2 && message.contains("no model `n`"), "{printed}");
}

#[test]
fn d3_doctor_shows_prices_and_where_they_are_from() {
    let folder = tempdir().unwrap();
    let config = "[models.services.a]\nurl = \"http://127.0.0.1:9/v1\"\n\
                  [models.roles]\ndefault = [\"a/x\", \"a/y\"]\n\
                  [models.prices.\"a/x\"]\nprompt = 1.5\ncompletion = 3.0\n";
    fs::write(folder.path().join("agent99.toml"), config).unwrap();
    let done = a99_in(folder.path(), &["doctor"]);
    let shown = "a/x: 1.5 USD for a million tokens of prompts, 3 of answers, as set";
    assert!(done.out.contains(shown), "{done:?}");
    assert!(done.out.contains("a/y: no price is known"), "{done:?}");
}

#[test]
fn d14_model_prices_say_where_each_is_from() {
    let folder = tempdir().unwrap();
    // Prices need no key.
    let config = "[models.services.openai]\nurl = \"https://api.openai.com/v1\"\n\
                  key-env = \"NO_SUCH_VARIABLE\"\n\
                  [models.services.own]\nurl = \"http://127.0.0.1:9/v1\"\n\
                  [models.roles]\ndefault = [\"openai/gpt-5-mini\", \"own/x\", \"own/y\"]\n\
                  [models.prices.\"own/x\"]\nprompt = 1.5\ncached = 0.5\ncompletion = 3.0\n";
    fs::write(folder.path().join("own.toml"), config).unwrap();
    let with = |more: &[&str]| {
        let args = ["model", "prices", "--config", "own.toml"];
        a99_in(folder.path(), &[&args[..], more].concat())
    };
    let done = with(&[]);
    for line in [
        "openai/gpt-5-mini: 0.25 USD for a million tokens of prompts, 2 of answers, as its \
         service asked on 20",
        "own/x: 1.5 USD for a million tokens of prompts, 3 of answers, as set\n",
        "own/y: no price is known\n",
    ] {
        assert!(
            done.code == 0 && done.out.contains(line),
            "{line}: {done:?}"
        );
    }
    let embed = [
        "--embed",
        "https://api.openai.com/v1",
        "--embed-model",
        "text-embedding-3-small",
    ];
    let done = with(&[&embed[..], &["--price", "own/y=0,0", "--json"]].concat());
    let printed: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    let models = printed["models"].as_array().unwrap();
    let rows: Vec<(&str, &str, bool)> = models
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap();
            (text("model"), text("from"), row["date"].is_string())
        })
        .collect();
    let expected = [
        ("openai/gpt-5-mini", "list", true),
        ("own/x", "configuration", false),
        ("own/y", "configuration", false),
        ("text-embedding-3-small", "list", true),
    ];
    assert_eq!(rows, expected, "{printed}");
    assert_eq!(printed["currency"], "USD");
    assert_eq!(models[1]["price"]["cached"], 0.5);
    assert_eq!(models[2]["price"]["prompt"], 0.0);
}
