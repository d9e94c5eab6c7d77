//! `cargo xtask bench --pairs`: measures two nearly equal operations in turns.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::pairs::PAIRS;
use std::process::ExitCode;

const HELP: &str = "\
Usage: pairs [--rounds N] [--json] [FILTER]

Measures pairs of work in turns, in one process: the shortest and the median time
of each side, the ratio of the sides and their difference. It judges nothing.

  hundred lines   a source of a hundred lines, and the JSON that it stands for
  mixed steps     a program of 1,000 steps with the lint pass, and without

  --rounds N      rounds of each side, 200 by default
  --json          one JSON document
  FILTER          only pairs whose name has this text in it";

/// Default rounds of each side.
const ROUNDS: usize = 200;

fn main() -> ExitCode {
    let (mut rounds, mut json, mut filter) = (ROUNDS, false, String::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "--json" => json = true,
            "--rounds" => match args.next().and_then(|n| n.parse().ok()) {
                Some(n) if n > 0 => rounds = n,
                _ => return refused("--rounds needs a number above 0"),
            },
            text if text.starts_with('-') => return refused(&format!("{text}: unknown argument")),
            text => text.clone_into(&mut filter),
        }
    }
    let mut pairs = PAIRS
        .iter()
        .filter(|pair| pair.name.contains(&filter))
        .peekable();
    if pairs.peek().is_none() {
        return refused(&format!("no pair has `{filter}` in its name"));
    }
    let measured = pairs.map(|pair| pair.measure(rounds));
    if json {
        let list: Vec<_> = measured.map(|measured| measured.json()).collect();
        println!("{:#}", serde_json::Value::from(list));
    } else {
        measured.for_each(|measured| println!("{}", measured.text()));
    }
    ExitCode::SUCCESS
}

fn refused(why: &str) -> ExitCode {
    eprintln!("{why}\n\n{HELP}");
    ExitCode::from(2)
}
