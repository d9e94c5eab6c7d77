//! Every agent under `examples/` gives what its `expected.json` says, with
//! the capabilities of its `script.json`, in the default cost model.

use agent99::capabilities::{
    AgentReply, CapabilityError, FnAgentRunner, MemoryShell, MemoryStore, ScriptedFetch,
    ScriptedLlm, ScriptedXml, ShellCommand, ShellOutput, Store,
};
use agent99::{Capabilities, Engine, RunOptions, Value};
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The least number of examples that users are promised.
const AT_LEAST: usize = 8;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found: Vec<PathBuf> = fs::read_dir(root)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn read(folder: &Path, file: &str) -> Option<Json> {
    let text = fs::read(folder.join(file)).ok()?;
    Some(
        serde_json::from_slice(&text)
            .unwrap_or_else(|e| panic!("{}/{file}: {e}", folder.display())),
    )
}

/// The members of an object of the script.
fn entries<'s>(script: &'s Json, key: &str) -> Option<Vec<(&'s str, &'s Json)>> {
    let table = script.get(key)?.as_object()?;
    Some(
        table
            .iter()
            .map(|(name, reply)| (name.as_str(), reply))
            .collect(),
    )
}

/// A store with the script's values and documents, if it has any.
async fn store(script: &Json) -> Option<MemoryStore> {
    let (values, collections) = (entries(script, "store"), entries(script, "vectors"));
    if values.is_none() && collections.is_none() {
        return None;
    }
    let store = MemoryStore::new();
    for (key, value) in values.into_iter().flatten() {
        store
            .set(key.into(), value.clone().into())
            .await
            .expect("room for a value");
    }
    for (name, documents) in collections.into_iter().flatten() {
        let collection = || Value::from(name);
        store
            .create_collection(collection(), Value::Undefined, Value::Undefined)
            .await
            .expect("a new collection");
        for document in documents.as_array().expect("a list of documents") {
            store
                .vector_add(collection(), document.clone().into())
                .await
                .expect("room for a document");
        }
    }
    Some(store)
}

/// A computer in memory with the script's programs.
fn shell(programs: Vec<(&str, &Json)>) -> MemoryShell {
    let bytes = |text: &Json| text.as_str().unwrap_or_default().as_bytes().to_vec();
    programs
        .into_iter()
        .fold(MemoryShell::new(), |shell, (line, reply)| {
            let argv = line.split(' ').map(str::to_owned).collect();
            let files = entries(reply, "files").into_iter().flatten();
            let files = files.map(|(path, text)| (path.to_owned(), bytes(text)));
            let output = ShellOutput {
                stdout: bytes(&reply["stdout"]),
                elapsed: Duration::from_millis(reply["elapsedMs"].as_u64().expect("milliseconds")),
                ..ShellOutput::default()
            };
            shell.on_writing(ShellCommand::Argv(argv), output, files.collect())
        })
}

async fn capabilities(script: &Json) -> Capabilities {
    let mut set = Capabilities::none();
    if let Some(replies) = entries(script, "fetch") {
        let fetch = ScriptedFetch::new();
        set = set.with_fetch(
            replies
                .into_iter()
                .fold(fetch, |f, (url, r)| f.on(url, r.clone())),
        );
    }
    if let Some(replies) = entries(script, "xml") {
        let xml = ScriptedXml::new();
        set = set.with_xml(
            replies
                .into_iter()
                .fold(xml, |x, (text, r)| x.on(text, r.clone())),
        );
    }
    if let Some(programs) = entries(script, "shell") {
        set = set.with_shell(shell(programs));
    }
    if let Some(replies) = script.get("llm").and_then(Json::as_array) {
        set = set.with_llm(ScriptedLlm::replies(replies.clone()));
    }
    if let Some(agents) = script.get("agents").cloned() {
        set = set.with_agent(FnAgentRunner::new(move |id, _, _| {
            match id.as_str().and_then(|id| agents.get(id)) {
                Some(reply) => Ok(AgentReply {
                    value: reply.clone().into(),
                    fuel_used: None,
                }),
                None => Err(CapabilityError::new("no such agent")),
            }
        }));
    }
    if let Some(store) = store(script).await {
        set = set.with_store(store);
    }
    set
}

#[test]
fn every_example_gives_what_it_says() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folders = folders();
    assert!(folders.len() >= AT_LEAST);
    let engine = Engine::new();
    for folder in folders {
        let name = folder.display();
        let program = fs::read(folder.join("agent.json")).unwrap();
        let agent = engine
            .compile(program)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(agent.warnings().is_empty(), "{name}: {}", agent.warnings());
        let args = read(&folder, "args.json").unwrap();
        let expected = read(&folder, "expected.json").unwrap();
        let script = read(&folder, "script.json").unwrap_or_default();
        let outcome = runtime.block_on(async {
            let granted = capabilities(&script).await;
            engine.run(&agent, args, RunOptions::new(), granted).await
        });
        assert_eq!(outcome.error, None, "{name}");
        assert_eq!(outcome.result.to_json(), expected["result"], "{name}");
        assert_eq!(
            Some(outcome.fuel_used.to_f64()),
            expected["fuel_used"].as_f64(),
            "{name}"
        );
    }
}
