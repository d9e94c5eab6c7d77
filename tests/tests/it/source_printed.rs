//! Programs printed as sources: compiled again, they do the same, and what a source stands
//! for stays the same tree.

use super::source::{read, root, snippets};
use a99_core::fuel::Fuel;
use a99_testkit::vectors::{EngineOutcome, Route, Subject, Vector, read_file, run_by};
use agent99::Engine;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What cannot be printed, or does something else then: `tests/source/unprinted.txt` has a
/// line for each vector, its reason behind a tab; `BLESS=1` writes it.
const LIST: &str = "tests/source/unprinted.txt";

/// Enough for each vector, whatever the form costs.
const FUEL: i64 = 20_000_000_000;

/// Milliseconds that each run has, whatever its vector says.
const LEAST_MS: f64 = 2_000.0;

fn outcome(vector: &Vector, route: Route) -> EngineOutcome {
    // Some are run with what no run takes.
    let mut spec = match vector.run_spec() {
        Ok(spec) => spec,
        Err(message) => return EngineOutcome::Rejected { message },
    };
    spec.fuel = Fuel::from_micro(FUEL);
    // Of real time a busy machine may take some away.
    spec.timeout_ms = spec.timeout_ms.map(|ms| ms.max(LEAST_MS));
    spec.trace = false;
    run_by(route, spec)
}

/// Why the source of a program does not do what the program does; none where it does.
fn difference(vector: &Vector) -> Option<String> {
    let (json, source) = (outcome(vector, Route::Json), outcome(vector, Route::Source));
    match (json, source) {
        // Nothing to print.
        (EngineOutcome::Rejected { .. } | EngineOutcome::NotJudged, _) => None,
        (_, EngineOutcome::NotJudged) => None,
        (_, EngineOutcome::Rejected { message }) => {
            let says = "source.unsayable: the source form cannot say this: ";
            Some(match message.strip_prefix(says) {
                Some(class) => class.to_owned(),
                None => format!("refused: {message}"),
            })
        }
        (
            EngineOutcome::Ran { result, error, .. },
            EngineOutcome::Ran {
                result: other_result,
                error: other_error,
                ..
            },
        ) => {
            let texts = [error, other_error].map(|error| error.map(|e| e.message));
            match texts {
                [Some(one), Some(other)] if one != other => Some("another text of an error".into()),
                [Some(_), None] => Some("no error".into()),
                [None, Some(_)] => Some("an error".into()),
                [None, None] if result != other_result => Some("another result".into()),
                _ => None,
            }
        }
    }
}

#[test]
fn printed_programs_do_the_same() {
    let (mut list, mut count, mut classes) = (String::new(), 0, BTreeMap::new());
    for file in super::vectors::files() {
        for vector in read_file(&file).expect("vectors") {
            if !matches!(vector.subject, Subject::Program) {
                continue;
            }
            count += 1;
            if let Some(reason) = difference(&vector) {
                let _ = writeln!(list, "{}\t{reason}", vector.id);
                *classes.entry(reason).or_insert(0) += 1;
            }
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join(LIST), &list).expect("written");
        println!("{} of {count}: {classes:#?}", list.lines().count());
    }
    assert!(list == read(LIST), "{LIST} differs; BLESS=1 writes it");
    let listed = list.lines().count();
    assert!(listed * 6 < count, "{listed} of {count} are not printed");
}

/// What a source stands for, printed and compiled, is the same tree.
#[test]
fn sources_stay_the_same_trees() {
    let engine = Engine::new();
    let mut sources = snippets();
    for entry in std::fs::read_dir(root().join("examples/tasks")).expect("the tasks") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "ajs") {
            sources.push(std::fs::read_to_string(path).expect("a source"));
        }
    }
    let (mut same, mut other) = (0, Vec::new());
    for source in &sources {
        let agent = engine.compile_source(source.as_str()).expect("it compiles");
        let tree = agent.source().map(|json| json.into_owned());
        let printed = match engine.print_source(&agent) {
            Ok(printed) => printed,
            Err(found) => {
                other.push(format!("{source}\n{found}"));
                continue;
            }
        };
        let again = engine.compile_source(printed.as_str());
        let again = again.unwrap_or_else(|found| panic!("{source}\n{printed}\n{found}"));
        match again.source().map(|json| json.into_owned()) == tree {
            true => same += 1,
            false => other.push(format!("{source}\n{printed}")),
        }
    }
    let shown: Vec<&String> = other.iter().take(12).collect();
    assert!(
        same * 10 > sources.len() * 9,
        "{same} of {}\n{shown:#?}",
        sources.len()
    );
}

/// The page shows what is printed.
#[test]
fn the_page_shows_a_printed_program() {
    let engine = Engine::new();
    let page = read("docs/source.md");
    let blocks = a99_testkit::pages::fences("docs/source.md", &page);
    let json = blocks.iter().find(|block| block.kind == "json");
    let agent = engine.compile(json.expect("a program").text.as_str());
    let printed = engine
        .print_source(&agent.expect("it compiles"))
        .expect("it is printed");
    let shown = blocks
        .iter()
        .any(|block| block.kind == "js" && block.text.trim() == printed.trim());
    assert!(shown, "{printed}");
}
