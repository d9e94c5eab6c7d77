//! Migration page: each vector whose recorded outcome is not ours stands there,
//! under its decision, and no other does.

use a99_testkit::vectors::{CHOSEN, read_deviations, read_file};
use std::collections::BTreeMap;
use std::path::Path;

/// Vectors with the decision that their outcome follows in place of the recorded
/// one, or with several of which any explains it.
fn deviating() -> BTreeMap<String, Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = read_deviations(&folder.join("deviations.jsonl")).expect("the list");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder.join("vectors")).expect("a folder") {
        let path = entry.expect("an entry").path();
        for vector in read_file(&path).expect("vectors") {
            let chosen = CHOSEN
                .iter()
                .filter(|(name, _)| vector.alternatives.contains_key(*name))
                .map(|(_, decision)| (*decision).to_owned());
            let decisions: Vec<String> = match listed.get(&vector.id) {
                Some(deviation) => vec![deviation.decision.clone()],
                None => chosen.collect(),
            };
            if !decisions.is_empty() {
                found.insert(vector.id, decisions);
            }
        }
    }
    found
}

/// Vectors in the last column of the tables of each decision, which a comment below the
/// heading names.
fn named(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut decision = None;
    for line in page.lines() {
        if line.starts_with('#') {
            decision = None;
        } else if let Some(comment) = line.strip_prefix("<!-- ") {
            let number = comment.strip_suffix(" -->").unwrap_or_default();
            let is_one = |word: &&str| word.starts_with('D') && word[1..].parse::<u32>().is_ok();
            decision = Some(number).filter(is_one).map(str::to_owned);
        }
        let Some(decision) = decision.as_ref().filter(|_| line.starts_with("| ")) else {
            continue;
        };
        let cells: Vec<&str> = line.trim_end_matches(" |").split(" | ").collect();
        let last = cells.last().copied().unwrap_or_default();
        if cells.len() == 4 && last != "vector" {
            let ids = last.split('`').skip(1).step_by(2).map(str::to_owned);
            found.entry(decision.clone()).or_default().extend(ids);
        }
    }
    found
}

/// Whether an id is what the page names; `x-*` is any that begins so.
fn is_named(id: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => id == name,
    }
}

#[test]
fn each_deviation_has_a_row() {
    let page = include_str!("../../../docs/migration.md");
    let (deviating, named) = (deviating(), named(page));
    assert!(deviating.len() > 80);
    let mut wrong = Vec::new();
    for (id, decisions) in &deviating {
        let mut rows = decisions.iter().filter_map(|d| named.get(d)).flatten();
        if !rows.any(|name| is_named(id, name)) {
            wrong.push(format!("{} has no row with `{id}`", decisions.join(" or ")));
        }
    }
    for (decision, names) in &named {
        let by = |name: &String| {
            let mut ids = deviating.iter().filter(|(_, by)| by.contains(decision));
            ids.any(|(id, _)| is_named(id, name))
        };
        let none = names.iter().filter(|name| !by(name));
        wrong.extend(none.map(|name| format!("{decision}: `{name}` does not deviate by it")));
    }
    assert!(wrong.is_empty(), "docs/migration.md:\n{}", wrong.join("\n"));
}
