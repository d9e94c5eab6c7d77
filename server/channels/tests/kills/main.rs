//! A channel server, two hosts of agents and a writer, each a process that is killed again and
//! again. Nothing that was acknowledged is lost, nothing is applied twice, and all readers see
//! one log.
//!
//! The short form runs with the tests; `cargo xtask crash --mode network` runs the long one.

mod check;
mod parent;
mod roles;

/// Seconds of the short form.
const SHORT: u64 = 12;

#[test]
fn killed_processes_lose_and_double_nothing() {
    parent::run(SHORT, 7);
}

#[test]
#[ignore = "runs for minutes: cargo xtask crash --mode network"]
fn long_network() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let wanted = std::env::var("A99_CRASH_MODE").unwrap_or_default();
    assert!(
        matches!(wanted.as_str(), "" | "network"),
        "no mode {wanted} here"
    );
    parent::run(
        number("A99_CRASH_SECONDS", 600),
        number("A99_CRASH_SEED", 11),
    );
}

#[test]
#[ignore = "a process that the others start"]
fn process() {
    if let Ok(role) = std::env::var(roles::ROLE) {
        roles::play(&role);
    }
}
