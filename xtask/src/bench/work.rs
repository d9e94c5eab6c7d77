//! Work that compares engines. Each piece runs in a separate process. In each round every engine
//! does it once, so that a busy machine slows all of them.

use super::peers::{self, PEERS, Peer};
use super::report::{OURS, Report, table};
use super::{COUNTS, FIGURES, build, build_with, read};
use crate::shell::{Failed, failed, output, root};
use a99_benches_work::Work;
use a99_benches_work::list::{ALL, named};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Default number of processes; the smallest figure counts.
const ROUNDS: u32 = 5;

/// Options of the command.
struct Options<'a> {
    baseline: Option<&'a str>,
    save: Option<&'a str>,
    only: Option<&'a str>,
    work: Option<&'a str>,
    rounds: u32,
    has_peers: bool,
    has_jit: bool,
    is_json: bool,
}

/// A program that does the work of an engine.
struct Program {
    column: &'static str,
    path: PathBuf,
    works: Vec<&'static Work>,
}

/// `bench [--peers] [--only PEERS] [--jit] [--rounds N] [--work TEXT] [--baseline FILE]
/// [--save FILE] [--json]`.
pub(super) fn bench(args: &[&str]) -> Result<(), Failed> {
    let options = parse(args)?;
    let recorded = root().join(FIGURES);
    let baseline = match options.baseline {
        Some(path) => Some(read(path)?),
        None if recorded.exists() => Some(read(&recorded.to_string_lossy())?),
        None => None,
    };
    let chosen: Vec<&Peer> = match (options.has_peers, options.only) {
        (true, Some(names)) => peers::named(names)?,
        (true, None) => PEERS.iter().collect(),
        (false, _) => Vec::new(),
    };
    let works: Vec<&Work> = match options.work {
        Some(text) => ALL
            .iter()
            .copied()
            .filter(|work| work.name.contains(text))
            .collect(),
        None => ALL.to_vec(),
    };
    if works.is_empty() {
        let names: Vec<&str> = ALL.iter().map(|work| work.name).collect();
        return Err(Failed(format!(
            "no work of that name; there are {}",
            names.join(", ")
        )));
    }
    eprintln!("==> building {OURS}");
    let ours = match options.has_jit {
        true => build_with(&["--features", "a99-benches/jit"], &["work", "held"])?,
        false => build(&["work", "held"])?,
    };
    let mut found = vec![(OURS, ours.join("work")), (OURS, ours.join("held"))];
    let built = peers::build(&chosen)?;
    found.extend(built.into_iter().map(|(peer, path)| (peer.name, path)));
    let mut report = Report::new(options.rounds);
    let mut programs = Vec::new();
    for (column, path) in found {
        let (about, works) = ask(&path)?;
        report.about(column, &about);
        programs.push(Program {
            column,
            path,
            works,
        });
    }
    for round in 1..=options.rounds {
        for work in &works {
            eprintln!("==> round {round} of {}: {}", options.rounds, work.name);
            for program in programs
                .iter()
                .filter(|program| program.works.contains(work))
            {
                report.add(work, program.column, figure(&program.path, work)?);
            }
        }
    }
    if let Some(path) = options.save {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| failed(path, error))?;
    }
    if options.is_json {
        println!("{:#}", report.to_json());
        return Ok(());
    }
    let counts = root().join(COUNTS);
    let counts = counts.exists().then(|| read(&counts.to_string_lossy()));
    let counts = counts.transpose()?.unwrap_or_default();
    let columns: Vec<&str> = chosen.iter().map(|peer| peer.name).collect();
    print!("{}", table(&report, &columns, &counts, baseline.as_ref()));
    Ok(())
}

fn parse<'a>(args: &[&'a str]) -> Result<Options<'a>, Failed> {
    let mut options = Options {
        baseline: None,
        save: None,
        only: None,
        work: None,
        rounds: ROUNDS,
        has_peers: false,
        has_jit: false,
        is_json: false,
    };
    let mut rest = args.iter().copied();
    while let Some(arg) = rest.next() {
        match arg {
            "--peers" => options.has_peers = true,
            "--jit" => options.has_jit = true,
            "--json" => options.is_json = true,
            "--baseline" | "--save" | "--only" | "--work" | "--rounds" => {
                let value = rest.next().ok_or_else(|| failed(arg, "needs a value"))?;
                match arg {
                    "--baseline" => options.baseline = Some(value),
                    "--save" => options.save = Some(value),
                    "--only" => {
                        options.only = Some(value);
                        options.has_peers = true;
                    }
                    "--work" => options.work = Some(value),
                    _ => {
                        let count = value.parse().ok().filter(|count| *count > 0);
                        let count = count.ok_or_else(|| failed(value, "no number of rounds"))?;
                        options.rounds = count;
                    }
                }
            }
            _ => return Err(failed(arg, "unknown argument; see --help")),
        }
    }
    Ok(options)
}

/// Asks a program for its description and its work.
fn ask(path: &Path) -> Result<(Value, Vec<&'static Work>), Failed> {
    let about = line(&mut Command::new(path))?;
    let works = about["works"].as_array().into_iter().flatten();
    let works = works.map(|work| {
        let name = work.as_str().unwrap_or_default();
        named(name).ok_or_else(|| failed(path.display(), format!("no work `{name}`")))
    });
    let works = works.collect::<Result<_, _>>()?;
    Ok((about, works))
}

/// The figure of one process.
fn figure(path: &Path, work: &Work) -> Result<f64, Failed> {
    let found = line(Command::new(path).arg(work.name))?;
    let figure = found[work.of.unit()].as_f64();
    figure.ok_or_else(|| failed(path.display(), format!("no figure of {}", work.name)))
}

/// A program's output: a line of JSON.
fn line(command: &mut Command) -> Result<Value, Failed> {
    let text = output(command)?;
    serde_json::from_str(&text).map_err(|error| failed(json!(text), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let options = parse(&["--only", "lua54", "--rounds", "2", "--work", "W2"]);
        let options = options.expect("good arguments");
        assert!(options.has_peers && !options.is_json);
        assert_eq!((options.only, options.work), (Some("lua54"), Some("W2")));
        assert_eq!(options.rounds, 2);
        for wrong in [&["--rounds", "0"][..], &["--rounds"], &["--what"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
