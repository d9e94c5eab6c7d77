//! Every agent under `examples/` gives what its `expected.json` says, with
//! the capabilities of its `script.json`, in the default cost model.

use agent99::capabilities::Script;
use agent99::{Engine, RunOptions};
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};

/// The least number of examples that users are promised.
const AT_LEAST: usize = 8;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found: Vec<PathBuf> = fs::read_dir(root)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").path())
        // `tasks` has programs of its own kind.
        .filter(|path| path.join("agent.json").exists())
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
        let script = read(&folder, "script.json").unwrap_or_else(|| serde_json::json!({}));
        let outcome = runtime.block_on(async {
            let script = Script::new(script.into()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let granted = script.granted().await;
            let granted = granted.unwrap_or_else(|e| panic!("{name}: {e}"));
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
