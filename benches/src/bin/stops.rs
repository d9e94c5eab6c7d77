//! `cargo xtask stops`: measures how long a run continues after a stop.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::stops::{BOUND_US, Effort, Figure, How, Rig, rows};
use std::process::ExitCode;

const USAGE: &str = "usage: stops [FILTER]";

fn main() -> ExitCode {
    let mut filter = String::new();
    for arg in std::env::args().skip(1) {
        if arg.starts_with('-') {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
        filter = arg;
    }
    let rig = Rig::new(Effort::WHOLE);
    let (mut late, mut failed) = (0, 0);
    let mut figures: Vec<Figure> = Vec::new();
    println!(
        "{:<44}{:>10}{:>10}{:>10}",
        "us of CPU time until a run ends", "deadline", "flat", "fuel"
    );
    for row in rows().iter().filter(|row| row.name.contains(&filter)) {
        let mut line = format!("{:<44}", row.name);
        for how in [How::Metered, How::Flat, How::Fuel] {
            match rig.measure(row, how) {
                Ok(figure) => {
                    let mark = if figure.longest_us > BOUND_US {
                        "!"
                    } else {
                        ""
                    };
                    late += usize::from(figure.longest_us > BOUND_US);
                    line.push_str(&format!("{:>10}", format!("{mark}{}", figure.longest_us)));
                    figures.push(figure);
                }
                Err(why) => {
                    failed += 1;
                    line.push_str(&format!("{:>10}", "-"));
                    eprintln!("{}: {why}", row.name);
                }
            }
        }
        println!("{line}");
    }
    figures.sort_by_key(|figure| figure.longest_us);
    if let Some(most) = figures.last() {
        println!(
            "{} figures: median {}, most {} ({} {:?}); {late} above {BOUND_US}",
            figures.len(),
            figures[figures.len() / 2].longest_us,
            most.longest_us,
            most.name,
            most.how,
        );
    }
    if late + failed == 0 {
        ExitCode::SUCCESS
    } else {
        eprintln!("{late} figures above {BOUND_US} us, {failed} rows without one");
        ExitCode::FAILURE
    }
}
