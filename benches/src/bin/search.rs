//! `cargo xtask search`: searches for programs that are expensive for their fuel.

#![warn(unreachable_pub)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::search::{Found, Goal, Plan, again, json, search, text};
use a99_testkit::cost::{Counting, Genome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static COUNTING: Counting = Counting::idle();

const HELP: &str = "\
usage: search [--seconds N] [--seed N] [--time | --bytes] [--json] [--save DIR]
       search [--time | --bytes] [--json] --again FILE...

Breeds programs out of the engine's tables of atoms, builtins and operators, over inputs of
hostile shapes and sizes, and keeps those that take most for their fuel:

  --time       CPU time for a unit of fuel, under the default limits
  --bytes      bytes that the process holds beside the heap ceiling, and bytes that it
               allocates for a unit of fuel
               both, each for half of the time, unless one is said

  --seconds N  how long, 60 by default
  --seed N     what determines the choices, 1 by default; which programs are bred from
               depends on what they took, and of time that is never quite the same
  --json       the findings as JSON
  --save DIR   write each finding: its program, the report, and its bytes, which are an
               input of the fuzz target `cost`
  --again      measure programs that were saved, by the files with their bytes

The dearest programs are made as small as they stay dear, and measured nine times; the least
counts. The exit code is 1 if one of those is above its bound: 50 microseconds a unit; for
bytes a quarter more than the ceiling and 1 MiB, and 1 MiB allocated a unit.
";

struct Args {
    seconds: u64,
    seed: u64,
    goals: Vec<Goal>,
    json: bool,
    save: Option<PathBuf>,
    again: Vec<Genome>,
}

fn main() -> ExitCode {
    let args = match read(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("{wrong}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let mut above = 0;
    for goal in &args.goals {
        // Counting takes time, which is measured first.
        if *goal == Goal::Bytes {
            COUNTING.begin();
        }
        let plan = Plan {
            goal: *goal,
            seed: args.seed,
            time: Duration::from_secs(args.seconds) / args.goals.len() as u32,
        };
        let found = if args.again.is_empty() {
            search(plan, &COUNTING, |line| eprintln!("{line}"))
        } else {
            again(plan, &COUNTING, &args.again)
        };
        if args.json {
            println!("{}", json(&found));
        } else {
            print!("{}", text(&found));
        }
        if let Some(folder) = &args.save
            && let Err(error) = save(folder, &found)
        {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::from(2);
        }
        above += found.above().count();
    }
    if above == 0 {
        ExitCode::SUCCESS
    } else {
        eprintln!("{above} programs above the bound");
        ExitCode::FAILURE
    }
}

fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let mut out = Args {
        seconds: 60,
        seed: 1,
        goals: vec![Goal::Time, Goal::Bytes],
        json: false,
        save: None,
        again: Vec::new(),
    };
    let number = |text: Option<String>| -> Result<u64, String> {
        let text = text.ok_or("a number is missing")?;
        text.parse().map_err(|_| format!("{text} is no number"))
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seconds" => out.seconds = number(args.next())?,
            "--seed" => out.seed = number(args.next())?,
            "--time" => out.goals = vec![Goal::Time],
            "--bytes" => out.goals = vec![Goal::Bytes],
            "--json" => out.json = true,
            "--save" => out.save = Some(args.next().ok_or("a folder is missing")?.into()),
            "--again" => {
                for file in args.by_ref() {
                    let bytes = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
                    out.again.push(Genome::from_bytes(&bytes));
                }
            }
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(Some(out))
}

/// Writes the report, and the program and bytes of each finding.
fn save(folder: &Path, found: &Found) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let name = match found.plan.goal {
        Goal::Time => "time",
        Goal::Bytes => "bytes",
    };
    let name = format!("{name}-{}", found.plan.seed);
    std::fs::write(folder.join(format!("{name}.txt")), text(found))?;
    for (place, finding) in found.findings.iter().enumerate() {
        let file = folder.join(format!("{name}-{place}"));
        std::fs::write(file.with_extension("json"), finding.ast.to_string())?;
        std::fs::write(file.with_extension("bytes"), finding.genome.to_bytes())?;
    }
    Ok(())
}
