//! `cargo xtask rates`: CPU time for each unit of fuel.

use a99_benches::rates::{QUICK, Report, Rig, SIZES, missing};
use std::process::ExitCode;

const USAGE: &str = "usage: rates [--quick] [--json] [FILTER]";

fn main() -> ExitCode {
    let (mut quick, mut json, mut filter) = (false, false, String::new());
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--quick" => quick = true,
            "--json" => json = true,
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
    // With a filter much is left out on purpose.
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
