//! Instruction counts of the benchmark's rows under callgrind.
//!
//! The count is the same on a busy and on an idle machine, so a change of one per cent is a change
//! of the program.

use super::{build, read};
use crate::shell::{Failed, failed, output, works};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Largest growth of a row in per cent; above it, the comparison fails.
const TOLERANCE: f64 = 3.0;

/// A row that `instructions` lists.
struct BenchRow {
    name: String,
    unit: String,
    units: u64,
    rounds: [u64; 2],
}

/// Options of the command.
#[derive(Default)]
struct Options<'a> {
    baseline: Option<&'a str>,
    save: Option<&'a str>,
    only: Option<&'a str>,
    is_json: bool,
}

/// `bench --instr [--baseline FILE] [--save FILE] [--row TEXT] [--json]`.
pub(super) fn bench(args: &[&str]) -> Result<(), Failed> {
    let options = parse(args)?;
    // Read it first: a missing baseline must not cost minutes of work.
    let baseline = options.baseline.map(read).transpose()?;
    if let Some(missing) = missing() {
        return Err(Failed(missing));
    }
    let program = build(&["instructions"])?.join("instructions");
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

/// The missing tool for counting, if any.
pub(super) fn missing() -> Option<String> {
    let is_there = works(Command::new("valgrind").arg("--version"));
    (!is_there).then(|| "needs valgrind (Debian: apt-get install valgrind)".to_owned())
}

fn parse<'a>(args: &[&'a str]) -> Result<Options<'a>, Failed> {
    let mut options = Options::default();
    let mut rest = args.iter().copied();
    while let Some(arg) = rest.next() {
        let place = match arg {
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
    Ok(options)
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

/// Instructions of a whole process that does a row's work.
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
    // "==123== Collected : 4567890"; instructions are the only counted event.
    let collected = text
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let collected = collected.ok_or_else(|| failed(row, "callgrind gave no count"))?;
    number(collected.1.trim())
}
