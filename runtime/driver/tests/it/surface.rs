//! The page of the interfaces: each of its rows has a test of that name, or the agent of the suite
//! for all targets calls it; and each name has a row.

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/runtime.md");

/// The agent of the suite.
const SUITE: &str = include_str!("../../src/suite/actor.rs");

/// Tests by the type whose names they prove.
fn tests(of: &str) -> &'static [&'static str] {
    const BUS: [&str; 2] = [
        include_str!("surface_bus.rs"),
        include_str!("surface_channel.rs"),
    ];
    match of {
        "StorageApi" => &[include_str!("surface_storage.rs")],
        "EventBus" | "Turn" | "" => &[
            BUS[0],
            BUS[1],
            include_str!("surface_state.rs"),
            include_str!("surface_context.rs"),
        ],
        "AiProvider" | "StreamHandle" => &[include_str!("surface_ai.rs")],
        "RuntimeContext" => &[include_str!("surface_context.rs")],
        "a99_runtime_patterns" => &[include_str!("../../../patterns/tests/it/missed.rs")],
        "Agent" | "Host" | "Held" => &[include_str!("surface_state.rs")],
        _ => &[],
    }
}

/// The types and names of the second column.
fn rows() -> Vec<(&'static str, &'static str)> {
    let (_, section) = PAGE.split_once("\n## Interfaces\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let here = section.lines().filter_map(|line| line.split(" | ").nth(1));
    let code = here.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
    code.map(|path| path.split_once("::").unwrap_or(("", path)))
        .collect()
}

#[test]
fn every_row_has_a_test_of_its_name() {
    let rows = rows();
    assert!(rows.len() > 60, "{} rows", rows.len());
    let missing = rows.iter().filter(|(of, name)| {
        let test = format!("#[tokio::test]\nasync fn {name}() {{");
        let called = match *of {
            "EventBus" => format!("bus.{name}("),
            "Turn" => format!("turn.{name}("),
            _ => return !tests(of).iter().any(|file| file.contains(&test)),
        };
        !SUITE.contains(&called) && !tests(of).iter().any(|file| file.contains(&test))
    });
    assert_eq!(missing.collect::<Vec<_>>(), [] as [&(&str, &str); 0]);
}

#[test]
fn every_operation_has_a_row() {
    let rows: BTreeSet<_> = rows().into_iter().collect();
    for (of, source) in [
        ("EventBus", include_str!("../../src/event_bus.rs")),
        ("StorageApi", include_str!("../../src/context.rs")),
    ] {
        let (_, rest) = source.split_once(&format!("pub trait {of}:")).expect(of);
        let body = rest.split("\n}\n").next().unwrap_or_default();
        let lines = body.lines().filter_map(|line| line.strip_prefix("    fn "));
        let names = lines.filter_map(|line| line.split(['(', '<']).next());
        let names: Vec<_> = names.collect();
        assert!(names.len() >= 6, "{of}: {names:?}");
        let missing = names.iter().filter(|name| !rows.contains(&(of, **name)));
        assert_eq!(missing.collect::<Vec<_>>(), [] as [&&str; 0], "{of}");
    }
}
