//! Benchmarks: instruction counts of the benchmark's rows under callgrind, and pairs that
//! are measured in turns.
//!
//! A count is the same on a busy machine and on an idle one, so a change of one
//! per cent is a change of the program. Times are criterion's, under
//! `benches/benches`.

use crate::shell::{Failed, cargo, failed, output, run, run_program, target, works};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How much a row may grow, in per cent, before the comparison fails.
const TOLERANCE: f64 = 3.0;

/// One row as `instructions` lists it.
struct BenchRow {
    name: String,
    unit: String,
    units: u64,
    rounds: [u64; 2],
}

/// What the command was asked for.
#[derive(Default)]
struct Options<'a> {
    baseline: Option<&'a str>,
    save: Option<&'a str>,
    only: Option<&'a str>,
    is_json: bool,
}

/// `bench --instr [--baseline FILE] [--save FILE] [--row TEXT] [--json]`, or `bench --pairs`
/// with the arguments of the program that measures them.
pub(crate) fn bench(args: &[&str]) -> Result<(), Failed> {
    if let Some(at) = args.iter().position(|arg| *arg == "--pairs") {
        return run_program(
            "a99-benches",
            "pairs",
            &[&args[..at], &args[at + 1..]].concat(),
        );
    }
    let options = parse(args)?;
    // Read first: a baseline that is not there is told before minutes of work.
    let baseline = options.baseline.map(read_counts).transpose()?;
    if !works(Command::new("valgrind").arg("--version")) {
        let text = "needs valgrind (Debian: apt-get install valgrind)";
        return Err(Failed(text.to_owned()));
    }
    let program = build()?;
    let mut rows = list(&program)?;
    if let Some(only) = options.only {
        rows.retain(|row| row.name.contains(only));
    }
    if rows.is_empty() {
        return Err(Failed("no row of that name".to_owned()));
    }
    let mut counts = Map::new();
    let mut slower = Vec::new();
    let mut table = vec![format!(
        "{:<32}{:>8}{:>14}{:>14}{:>9}",
        "row", "unit", "instructions", "baseline", "change"
    )];
    for row in &rows {
        eprintln!("==> {}", row.name);
        let [few, many] = row.rounds;
        let more =
            count(&program, &row.name, many)?.saturating_sub(count(&program, &row.name, few)?);
        let each = more as f64 / ((many - few) * row.units) as f64;
        let before = baseline.as_ref().and_then(|counts| counts.get(&row.name));
        let before = before.and_then(Value::as_f64);
        let change = before.map(|before| (each / before - 1.0) * 100.0);
        if change.is_some_and(|change| change > TOLERANCE) {
            slower.push(row.name.as_str());
        }
        table.push(format!(
            "{:<32}{:>8}{each:>14.1}{:>14}{:>9}",
            row.name,
            row.unit,
            before.map_or("-".to_owned(), |before| format!("{before:.1}")),
            change.map_or("-".to_owned(), |change| format!("{change:+.1} %")),
        ));
        counts.insert(row.name.clone(), json!((each * 10.0).round() / 10.0));
    }
    let counts = Value::Object(counts);
    if options.is_json {
        println!("{counts:#}");
    } else {
        println!("{}", table.join("\n"));
    }
    if let Some(path) = options.save {
        let text = format!("{counts:#}\n");
        std::fs::write(path, text).map_err(|error| failed(path, error))?;
    }
    match slower.as_slice() {
        [] => Ok(()),
        rows => Err(Failed(format!(
            "more than {TOLERANCE} % above the baseline: {}",
            rows.join(", ")
        ))),
    }
}

fn parse<'a>(args: &[&'a str]) -> Result<Options<'a>, Failed> {
    let mut options = Options::default();
    let mut has_kind = false;
    let mut rest = args.iter().copied();
    while let Some(arg) = rest.next() {
        let place = match arg {
            "--instr" => {
                has_kind = true;
                continue;
            }
            "--json" => {
                options.is_json = true;
                continue;
            }
            "--baseline" => &mut options.baseline,
            "--save" => &mut options.save,
            "--row" => &mut options.only,
            _ => return Err(failed(arg, "unknown argument; see --help")),
        };
        let value = rest.next().ok_or_else(|| failed(arg, "needs a value"))?;
        *place = Some(value);
    }
    if !has_kind {
        let text = "expected --instr or --pairs; other times are measured by `cargo bench -p \
                    a99-benches`";
        return Err(Failed(text.to_owned()));
    }
    Ok(options)
}

/// The counts of an earlier run.
fn read_counts(path: &str) -> Result<Value, Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, error))?;
    serde_json::from_str(&text).map_err(|error| failed(path, error))
}

/// Builds the program that does the work, as benchmarks are built.
fn build() -> Result<PathBuf, Failed> {
    let mut build = cargo("build");
    build.args(["--quiet", "--profile", "bench", "-p", "a99-benches"]);
    run(build.args(["--bin", "instructions"]))?;
    Ok(target()?.join("release/instructions"))
}

fn list(program: &Path) -> Result<Vec<BenchRow>, Failed> {
    let text = output(&mut Command::new(program))?;
    text.lines()
        .map(|line| match *line.split('\t').collect::<Vec<_>>() {
            [name, unit, units, few, many] => Ok(BenchRow {
                name: name.to_owned(),
                unit: unit.to_owned(),
                units: number(units)?,
                rounds: [number(few)?, number(many)?],
            }),
            _ => Err(failed(line, "not a row")),
        })
        .collect()
}

fn number(text: &str) -> Result<u64, Failed> {
    text.parse().map_err(|error| failed(text, error))
}

/// Instructions that a whole process takes for a row's work.
fn count(program: &Path, row: &str, rounds: u64) -> Result<u64, Failed> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(program).args([row, &rounds.to_string()]);
    let done = valgrind.output();
    let done = done.map_err(|error| failed("valgrind", error))?;
    let text = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(failed(row, text));
    }
    // "==123== Collected : 4567890", instructions being the one event counted.
    let collected = text
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let collected = collected.ok_or_else(|| failed(row, "callgrind gave no count"))?;
    number(collected.1.trim())
}
