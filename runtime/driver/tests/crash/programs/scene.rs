//! Scenes: programs with what they are asked and what the world says to them.

use super::world;
use a99_testkit::generate::Case;
use a99_testkit::numbers::Numbers;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A program, and what happens to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scene {
    pub(crate) name: String,
    pub(crate) program: Text,
    /// Programs that it calls by `agentRun`.
    pub(crate) agents: BTreeMap<String, Text>,
    /// What it gets in place of event, state, settings and identity.
    pub(crate) args: Option<Json>,
    /// What is said to it, if it gets no arguments of its own.
    pub(crate) message: String,
    pub(crate) settings: Json,
    /// What its capabilities answer.
    pub(crate) script: Json,
    /// What its model says.
    pub(crate) turns: Option<Json>,
    /// What was answered, by the identity of the call: made of script and turns.
    pub(crate) answers: BTreeMap<String, String>,
}

/// The text of a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) is_source: bool,
    pub(crate) text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn parsed(path: &Path) -> Option<Json> {
    let text = read(path)?;
    Some(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// The program of a folder, in one of both forms.
fn program(folder: &Path, stem: &str) -> Option<Text> {
    let of = |end: &str, is_source| {
        let text = read(&folder.join(format!("{stem}.{end}")))?;
        Some(Text { is_source, text })
    };
    of("json", false).or_else(|| of("ajs", true))
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).expect("a folder");
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}

/// All programs of `examples`, but those of its tasks that have no script.
pub(crate) fn examples() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for folder in folders(&root()) {
        let Some(program) = program(&folder, "agent") else {
            continue;
        };
        // Beside the program, as in `refund.ajs`, stand those that it calls.
        let mut agents = BTreeMap::new();
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if path.extension().is_some_and(|end| end == "ajs") && stem != "agent" {
                let text = self::program(&folder, &stem).expect("a program");
                agents.insert(stem.into_owned(), text);
            }
        }
        scenes.push(Scene {
            name: name_of(&folder),
            program,
            agents,
            args: parsed(&folder.join("args.json")),
            script: parsed(&folder.join("script.json")).unwrap_or(json!({})),
            turns: parsed(&folder.join("turns.json")),
            ..Scene::default()
        });
    }
    scenes.extend(tasks());
    scenes.extend(agents());
    scenes
        .iter_mut()
        .for_each(|scene| scene.answers = world::answers(scene));
    scenes
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The tasks that ask a world.
fn tasks() -> Vec<Scene> {
    let folder = root().join("tasks");
    let cases = read(&folder.join("cases.jsonl")).expect("cases");
    let mut scenes = Vec::new();
    for (line, case) in cases.lines().enumerate() {
        let case: Json = serde_json::from_str(case).expect("a case");
        let task = case["task"].as_str().expect("a task");
        if case["script"].is_null() {
            continue;
        }
        scenes.push(Scene {
            name: format!("tasks/{task}, line {}", line + 1),
            program: Text {
                is_source: true,
                text: read(&folder.join(format!("{task}.ajs"))).expect("a program"),
            },
            args: Some(case["args"].clone()),
            script: case["script"].clone(),
            ..Scene::default()
        });
    }
    scenes
}

/// The agents that live.
fn agents() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for folder in folders(&root().join("agents")) {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|end| end != "ajs") {
                continue;
            }
            let message = match &*name_of(&path) {
                "clock" => "remind 1 of tea",
                "shop" => "I want a lamp",
                _ => "Hello",
            };
            scenes.push(Scene {
                name: format!("agents/{}", name_of(&path)),
                program: program(&folder, &name_of(&path)).expect("a program"),
                message: message.to_owned(),
                settings: json!({"greeting": "Message", "today": "2026-01-31"}),
                script: json!({"store": {}}),
                turns: parsed(&folder.join("turns.json")),
                ..Scene::default()
            });
        }
    }
    scenes
}

/// Random programs that call the host.
pub(crate) fn random(seed: u64, count: usize) -> Vec<Scene> {
    let mut numbers = Numbers::of_state(seed);
    let mut scenes = Vec::new();
    for _ in 0..400 * count {
        if scenes.len() == count {
            break;
        }
        let case = Case::from_bytes(&numbers.bytes(400));
        let text = case.program().to_json_string();
        if !text.contains("\"host\"") {
            continue;
        }
        let whole = case.to_value();
        let args = whole.get("args").map(agent99::Value::to_json);
        let mut scene = Scene {
            name: format!("random {seed}, {}: {text}", scenes.len()),
            program: Text {
                is_source: false,
                text,
            },
            args: Some(args.unwrap_or_default()),
            script: json!({}),
            ..Scene::default()
        };
        if world::compiles(&scene) {
            scene.answers = world::answers(&scene);
            if !scene.answers.is_empty() {
                scenes.push(scene);
            }
        }
    }
    assert_eq!(scenes.len(), count, "random programs that call the host");
    scenes
}
