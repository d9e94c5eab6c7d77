//! `cargo xtask rates`: measures CPU time for each unit of fuel.

#![warn(unreachable_pub)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::rates::{QUICK, Report, Rig, SIZES, missing};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: rates [--quick] [--json] [--record] [FILTER]";

/// The recorded measurement, which `docs/costs.md` shows.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/rates.json");

fn main() -> ExitCode {
    let (mut quick, mut json, mut record, mut filter) = (false, false, false, String::new());
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--quick" => quick = true,
            "--json" => json = true,
            "--record" => record = true,
            text if text.starts_with('-') => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
            text => text.clone_into(&mut filter),
        }
    }
    let sizes = if quick { &QUICK[..] } else { &SIZES[..] };
    let mut rig = Rig::new();
    let rates = rig.measure_all(&filter, sizes, |name, left| {
        if left % 100 == 0 || name == "tries" {
            eprintln!("{left} cases left, now {name}");
        }
    });
    // A filter omits rows on purpose.
    let missing = if filter.is_empty() {
        missing(&rig, &rates)
    } else {
        Vec::new()
    };
    let report = Report::new(rates);
    if json {
        println!("{}", report.json());
    } else {
        print!("{}", report.text());
    }
    if record {
        let kept = report.record(&today(), &command(quick, &filter));
        let text = format!("{kept:#}\n");
        if let Err(error) = std::fs::write(RECORD, text) {
            eprintln!("{RECORD}: {error}");
            return ExitCode::from(2);
        }
    }
    let above = report.above();
    for rate in above.iter().take(40) {
        eprintln!(
            "above the bound: {} {} {} at {}: {:.1} us a fuel unit",
            rate.group,
            rate.row,
            rate.variant,
            rate.n,
            rate.rate()
        );
    }
    for row in &missing {
        eprintln!("nothing measures {row}: add a case to benches/src/rates");
    }
    if above.is_empty() && missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!(
            "{} figures above the bound, {} rows without one",
            above.len(),
            missing.len()
        );
        ExitCode::FAILURE
    }
}

/// The command line that repeats the measurement.
fn command(quick: bool, filter: &str) -> String {
    let mut command = "cargo xtask rates".to_owned();
    if quick {
        command.push_str(" --quick");
    }
    if !filter.is_empty() {
        command.push(' ');
        command.push_str(filter);
    }
    command
}

/// The date, by UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut days = since.map_or(0, |since| since.as_secs() / 86_400);
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}
