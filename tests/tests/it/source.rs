//! The source form: the tasks of `examples/tasks` in both forms, and programs whose
//! results are those of JavaScript.

use agent99::capabilities::Script;
use agent99::{Agent, Engine, Outcome, PromptForm, RunOptions, SourceCheck};
use serde_json::Value as Json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The request context of each run; `tests/source/record.mjs` says the same.
fn request_context() -> agent99::Value {
    let context = serde_json::json!({
        "user": {"id": 7, "name": "Ada", "scores": [3, 1, 2]},
        "limits": {"a": 5, "b": 6},
    });
    context.into()
}

pub(crate) fn run(engine: &Engine, agent: &Agent, args: &Json, script: &Json) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let script = Script::new(script.clone().into()).expect("a script");
        let granted = script.granted().await.expect("capabilities");
        let options = RunOptions::new().fuel(100_000.0).expect("fuel");
        let options = options
            .context(request_context())
            .readable_context(["user", "limits"]);
        engine.run(agent, args.clone(), options, granted).await
    })
}

/// The instructions of a program with what they cost, and the constants.
fn code(agent: &Agent) -> String {
    let program = agent.artifact().program();
    let functions = program.functions.iter().map(|f| {
        let charges: Vec<_> = f.charges.iter().map(|c| (c.pc, c.kind)).collect();
        format!("{:?} {charges:?}\n", f.code)
    });
    let functions: String = functions.collect();
    format!(
        "{functions}{:?} {:?} {:?}",
        program.consts, program.keys, program.shapes
    )
}

/// Each task gives its result, written as a source and as the JSON beside it, which is
/// what the source stands for.
#[test]
fn tasks_give_their_results_in_both_forms() {
    let engine = Engine::new();
    let mut tasks = Vec::new();
    for line in read("examples/tasks/cases.jsonl").lines() {
        let case: Json = serde_json::from_str(line).expect(line);
        let task = case["task"].as_str().expect("a name");
        let source = read(&format!("examples/tasks/{task}.ajs"));
        let agent = engine.compile_source(source.as_str());
        let agent = agent.unwrap_or_else(|found| {
            panic!("{}", found.render(Some((task, source.as_bytes()))));
        });
        let json = engine.program_json(&agent).expect("the JSON");
        let tree: Json = serde_json::from_slice(&json).expect("JSON");
        let mut kept = read(&format!("examples/tasks/{task}.json"));
        let mut is_same = serde_json::from_str::<Json>(&kept).is_ok_and(|kept| kept == tree);
        if !is_same && std::env::var_os("BLESS").is_some() {
            let path = root().join(format!("examples/tasks/{task}.json"));
            fs::write(path, &json).expect("written");
            (kept, is_same) = (String::from_utf8(json).expect("UTF-8"), true);
        }
        let advice = "`a99 compile --emit json NAME.ajs -o NAME.json` writes it";
        assert!(
            is_same,
            "{task}.json is not what {task}.ajs stands for; {advice}"
        );
        let second = engine.compile(kept).expect(task);
        // Messages of the source name what is written there.
        let tree = agent.source().expect("the tree").into_owned();
        let first = engine.compile(tree).expect(task);
        assert_eq!(code(&first), code(&second), "{task}");

        let script = case.get("script").cloned().unwrap_or(serde_json::json!({}));
        let outcomes = [&agent, &second].map(|agent| run(&engine, agent, &case["args"], &script));
        for outcome in &outcomes {
            match case.get("error") {
                Some(message) => {
                    let error = outcome.error.as_ref().map(|e| e.message.to_string_lossy());
                    assert_eq!(error.as_deref(), message.as_str(), "{line}");
                }
                None => {
                    assert_eq!(outcome.error, None, "{line}");
                    assert_eq!(outcome.result.to_json(), case["result"], "{line}");
                }
            }
        }
        assert_eq!(outcomes[0].fuel_used, outcomes[1].fuel_used, "{line}");
        tasks.push(task.to_owned());
    }
    tasks.dedup();
    assert!(tasks.len() >= 30, "{}", tasks.len());
}

/// The pieces that tokenizers of models cut a text into before they look words up: a word
/// with the space before it, three digits, a run of signs, a run of space.
fn pieces(text: &str) -> usize {
    let kind = |c: char| match c {
        _ if c.is_alphabetic() => 0,
        _ if c.is_numeric() => 1,
        _ if c.is_whitespace() => 2,
        _ => 3,
    };
    let (mut count, mut last, mut length) = (0, 2, 0);
    for c in text.chars() {
        let is_new = kind(c) != last && !(last == 2 && length == 1 && count > 0);
        if is_new || count == 0 || kind(c) == 1 && length == 3 {
            count += 1;
            length = 0;
        }
        last = kind(c);
        length += 1;
    }
    count
}

/// What models write and read: the JSON that a source stands for is at most three and a
/// half times as long as the JavaScript.
#[test]
fn expression_texts_keep_programs_short() {
    let (mut json, mut sources) = (0, 0);
    for entry in fs::read_dir(root().join("examples/tasks")).expect("the tasks") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "ajs") {
            let program = fs::read_to_string(path.with_extension("json")).expect("the JSON");
            let program: Json = serde_json::from_str(&program).expect("JSON");
            json += pieces(&program.to_string());
            sources += pieces(&fs::read_to_string(&path).expect("the source"));
        }
    }
    assert!(sources > 2_500, "{sources}");
    assert!(json * 2 <= sources * 7, "{json} beside {sources}");
}

/// Programs with their expressions as texts are the same: instruction by instruction, with
/// the same prices.
#[test]
fn expression_texts_are_the_same_programs() {
    let engine = Engine::new();
    let (mut count, mut texts) = (0, 0);
    for source in snippets() {
        let agent = engine.compile_source(source.as_str()).expect("it compiles");
        let json = engine.program_json(&agent).expect("the JSON");
        texts += json.windows(5).filter(|part| part == b"{\"=\":").count();
        let shown = String::from_utf8_lossy(&json).into_owned();
        let second = engine.compile(json);
        let second = second.unwrap_or_else(|found| panic!("{source}\n{shown}\n{found}"));
        // Messages of the source name what is written there.
        let tree = agent.source().expect("the tree").into_owned();
        let first = engine.compile(tree).expect("it compiles");
        assert_eq!(code(&first), code(&second), "{source}\n{shown}");
        count += 1;
    }
    assert!(
        count > 100 && texts > 2 * count,
        "{texts} texts in {count} programs"
    );
}

/// The program of the prompt runs, and the source on the page compiles.
#[test]
fn what_models_and_people_are_shown_works() {
    let engine = Engine::builder().lint(true).build();
    let prompt = engine.prompt(PromptForm::Source);
    let (_, program) = prompt.split_once("Example:\n").expect("a program");
    let (program, _) = program.split_once("\n\n").expect("its end");
    let agent = engine.compile_source(program).expect("it compiles");
    assert!(agent.warnings().is_empty(), "{}", agent.warnings());
    let args = serde_json::json!({"urls": ["https://a.example/", "https://b.example/"]});
    let script = serde_json::json!({"fetch": {
        "https://a.example/": {"orders": [
            {"city": "Oslo", "price": 12}, {"city": "Rome", "price": 30},
            {"city": "Oslo", "price": 11}, {"city": "Rome", "price": 2},
        ]},
        "https://b.example/": {"$fails": "HTTP 500 Internal Server Error"},
    }});
    let outcome = run(&engine, &agent, &args, &script);
    let expected =
        serde_json::json!({"total": {"Oslo": 23, "Rome": 30}, "failed": 1, "best": "Rome"});
    assert_eq!(outcome.result.to_json(), expected, "{:?}", outcome.error);

    for name in ["docs/source.md", "README.md"] {
        let agents = shown(&engine, name);
        assert!(!agents.is_empty(), "{name} shows no source");
    }
}

/// The sources that a page shows, compiled without a finding.
fn shown(engine: &Engine, name: &str) -> Vec<Agent> {
    let page = read(name);
    let blocks = a99_testkit::pages::fences(name, &page);
    let is_agent = |text: &str| text.contains("function agent(");
    let sources = blocks
        .iter()
        .filter(|block| block.kind == "js" && is_agent(&block.text));
    let compiled = sources.map(|block| {
        let agent = engine.compile_source(block.text.as_str());
        let agent = agent.unwrap_or_else(|found| panic!("{}: {found}", block.place()));
        let warnings = agent.warnings();
        assert!(warnings.is_empty(), "{}: {warnings}", block.place());
        agent
    });
    compiled.collect()
}

#[test]
fn the_first_program_of_the_readme_has_one_result_in_both_forms() {
    let engine = Engine::new();
    let page = read("README.md");
    let blocks = a99_testkit::pages::fences("README.md", &page);
    let json = blocks.iter().find(|block| block.kind == "json");
    let json = engine.compile(json.expect("a program").text.as_str());
    let args = serde_json::json!({"price": 80});
    for agent in [
        json.expect("it compiles"),
        shown(&engine, "README.md").remove(0),
    ] {
        let outcome = run(&engine, &agent, &args, &serde_json::json!({}));
        let expected = serde_json::json!({"total": 96});
        assert_eq!(outcome.result.to_json(), expected, "{:?}", outcome.error);
    }
}

/// The programs of `tests/source/snippets.txt`.
pub(crate) fn snippets() -> Vec<String> {
    let bodies = read("tests/source/snippets.txt");
    let bodies = bodies.lines();
    bodies
        .map(|body| format!("export default function agent({{}}) {{\n{body}\n}}"))
        .collect()
}

/// What JavaScript gives for each program, by Node: the JSON text of a source, or of a
/// source and its arguments.
pub(crate) fn in_javascript(sources: &[String]) -> Vec<String> {
    let mut node = Command::new("node")
        .arg(root().join("tests/source/record.mjs"))
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`node` is needed");
    let mut input = node.stdin.take().expect("standard input");
    let lines: String = sources
        .iter()
        .map(|program| format!("{program}\n"))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = node.wait_with_output().expect("the answers");
    writer.join().expect("no panic").expect("written");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn programs_give_what_javascript_gives() {
    let engine = Engine::new();
    let recorded = read("tests/source/results.jsonl");
    let recorded: Vec<&str> = recorded.lines().collect();
    let sources = snippets();
    assert_eq!(sources.len(), recorded.len());
    let mut wrong = Vec::new();
    for (source, expected) in sources.iter().zip(recorded) {
        let expected: Json = serde_json::from_str(expected).expect("JSON");
        let agent = match engine.compile_source(source.as_str()) {
            Ok(agent) => agent,
            Err(found) => {
                wrong.push(found.render(Some(("a.ajs", source.as_bytes()))));
                continue;
            }
        };
        let outcome = run(
            &engine,
            &agent,
            &serde_json::json!({}),
            &serde_json::json!({}),
        );
        let result = outcome.result.to_json();
        if outcome.error.is_some() || result != expected["result"] {
            wrong.push(format!(
                "{source}\n{expected}\n{:?} {result}",
                outcome.error
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `cargo xtask slow` asks Node again; `BLESS=1` records.
#[test]
#[ignore = "needs Node"]
fn node_gives_what_is_recorded() {
    let programs = snippets()
        .into_iter()
        .map(|source| Json::from(source).to_string());
    let answers = in_javascript(&programs.collect::<Vec<_>>());
    let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join("tests/source/results.jsonl"), &text).expect("written");
    }
    assert_eq!(read("tests/source/results.jsonl"), text);
}

/// Sources that are changed at random are refused or run; `A99_MUTANTS` says how many.
#[test]
fn changed_sources_are_refused_or_run() {
    let folder = root().join("tests/fuzz-inputs/source");
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for entry in fs::read_dir(folder).expect("the inputs") {
        seeds.push(fs::read(entry.expect("an entry").path()).expect("an input"));
    }
    seeds.sort();
    let count = std::env::var("A99_MUTANTS")
        .ok()
        .and_then(|n| n.parse().ok());
    let mut numbers = a99_testkit::numbers::Numbers::new(17);
    for _ in 0..count.unwrap_or(1_000) {
        let mut below = |n: usize| (numbers.next() % n.max(1) as u64) as usize;
        let mut text = seeds[below(seeds.len())].clone();
        for _ in 0..=below(4) {
            let other = &seeds[below(seeds.len())];
            let (from, to) = (below(other.len()), below(24));
            let part = &other[from..(from + to).min(other.len())];
            let at = below(text.len());
            let end = (at + below(12)).min(text.len());
            text.splice(at..end, part.iter().copied());
        }
        a99_testkit::fuzz::source(&text);
    }
}

/// A file keeps the text that a person wrote, so that errors of its runs name lines in it,
/// and is checked against it.
#[test]
fn artifacts_keep_the_source() {
    let engine = Engine::new();
    let source = "export default function agent({ name }) {\n  const size = 1\n  return name.missing.at(size).trim()\n}";
    let agent = engine.compile_source(source).expect("it compiles");
    let bytes = agent.to_bytes(&Default::default()).expect("a file");
    let loaded = engine.load(&bytes).expect("it loads");
    let origin = loaded.artifact().program().source.origin();
    assert_eq!(origin.map(|(text, _)| text), Some(source.as_bytes()));
    assert_eq!(engine.program_json(&loaded), engine.program_json(&agent));
    assert_eq!(engine.compare_source(&loaded), SourceCheck::Matches);
    assert_eq!(loaded.to_bytes(&Default::default()).expect("a file"), bytes);

    let outcomes = [&agent, &loaded].map(|agent| {
        let outcome = run(
            &engine,
            agent,
            &serde_json::json!({"name": "Ada"}),
            &serde_json::json!({}),
        );
        let error = outcome.error.expect("an error");
        let pointer = error.pointer.as_deref().expect("a place");
        let (line, column) = agent.line_col(pointer).expect("in the source");
        (line, column, outcome.fuel_used)
    });
    assert_eq!(outcomes[0].0, 3);
    assert_eq!(outcomes[0], outcomes[1]);

    // The same length, so that all else of the file stays as it is.
    let other = source.replace("size = 1", "size = 2");
    let forged = forge(&bytes, source.as_bytes(), other.as_bytes());
    let forged = engine.load(&forged).expect("it loads");
    assert_eq!(engine.compare_source(&forged), SourceCheck::Differs);
}

/// A file with another text in the place of one, and its hash.
fn forge(bytes: &[u8], text: &[u8], other: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let at = bytes.windows(text.len()).position(|part| part == text);
    let at = at.expect("the text");
    let mut forged = bytes.to_vec();
    forged[at..at + other.len()].copy_from_slice(other);
    let content = [&forged[..32], &forged[64..]].concat();
    forged[32..64].copy_from_slice(&Sha256::digest(content));
    forged
}

/// Programs in the dialect of tjs-lang, of the kinds of its published examples: they run, or
/// are refused with the form that works. `docs/migration.md` lists what differs.
#[test]
fn programs_of_the_older_dialect_run_or_are_told_what_to_write() {
    let engine = Engine::new();
    let (mut ran, mut refused) = (0, 0);
    for line in read("tests/source/dialect.jsonl").lines() {
        let row: Json = serde_json::from_str(line).expect(line);
        let source = row["source"].as_str().expect("a source");
        let compiled = engine.compile_source(source);
        if let Some(offending) = row["refused"].as_str() {
            let found = compiled.expect_err(line);
            let first = &found.0[0];
            assert_eq!(first.offending, offending, "{line}: {found}");
            let help = first.help.as_deref().unwrap_or_default();
            assert!(
                help.contains(row["help"].as_str().expect("a help")),
                "{line}: {help}"
            );
            refused += 1;
            continue;
        }
        let agent = compiled.unwrap_or_else(|found| panic!("{line}\n{found}"));
        let script = row.get("script").cloned().unwrap_or(serde_json::json!({}));
        let outcome = run(&engine, &agent, &row["args"], &script);
        let code = outcome.error.as_ref().map(|error| error.code.as_str());
        assert_eq!(code, row["fails"].as_str(), "{line}: {:?}", outcome.error);
        if let Some(result) = row.get("result") {
            assert_eq!(&outcome.result.to_json(), result, "{line}");
        }
        ran += 1;
    }
    assert!(
        ran >= 14 && refused >= 5,
        "{ran} ran, {refused} were refused"
    );
}
