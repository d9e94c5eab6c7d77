//! Registration of atoms with existing names.

use agent99::{AtomSet, AtomSets, Engine, RunOptions, atom, json};

/// Ours.
#[atom(cost = 0, name = "len")]
fn our_len(list: Vec<serde_json::Value>) -> usize {
    list.len() + 1000
}

#[test]
fn a_later_atom_replaces_with_a_warning() {
    let engine = Engine::builder()
        .atoms(AtomSet::core().with(OUR_LEN))
        .build();
    let warnings: Vec<String> = engine
        .warnings()
        .iter()
        .map(|w| w.message.clone())
        .collect();
    assert_eq!(
        warnings,
        ["the atom 'len' was registered more than once; the later one is used"]
    );
    let program = json!({"op": "seq", "steps": [
        {"op": "len", "list": [1], "result": "n"},
        {"op": "return", "schema": {"type": "object", "properties": {"n": {}}}},
    ]});
    let agent = engine.compile(program.to_string()).unwrap();
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(outcome.result.to_json(), json!({"n": 1001}));
    assert!(Engine::new().warnings().is_empty());
}

#[test]
fn or_is_refused() {
    let refused = AtomSet::core().try_with(OUR_LEN).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "an atom named 'len' is registered already"
    );
    let set = AtomSet::new().try_with(OUR_LEN).unwrap();
    assert_eq!(set.iter().count(), 1);
    assert_eq!(set.warnings().count(), 0);
}
