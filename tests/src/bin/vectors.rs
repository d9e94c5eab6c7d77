//! Replays conformance vectors:
//! `vectors [--engine vm|a99b|oracle|process:COMMAND] [--deviations FILE] [--bless-deviations] FILE...`
//!
//! The last line has the counts; the exit code is 1 for a failed vector and 2 for a wrong call.
//! `--bless-deviations` prints a proposed line for each failure instead of the report.

use a99_testkit::vectors::{
    ArtifactEngine, Deviations, Engine, OracleEngine, ProcessEngine, VmEngine, read_deviations,
    replay,
};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

struct Call {
    engine: Box<dyn Engine>,
    deviations: Deviations,
    bless: bool,
    files: Vec<PathBuf>,
}

fn engine(name: &str) -> Result<Box<dyn Engine>, String> {
    match name {
        "oracle" => Ok(Box::new(OracleEngine)),
        "vm" => Ok(Box::new(VmEngine)),
        "a99b" => Ok(Box::new(ArtifactEngine)),
        other if other.starts_with("process:") => {
            let process = ProcessEngine::start(&other["process:".len()..])?;
            Ok(Box::new(process))
        }
        other => Err(format!("no engine named '{other}'")),
    }
}

fn read_call() -> Result<Call, String> {
    let mut call = Call {
        engine: engine("vm")?,
        deviations: Deviations::new(),
        bless: false,
        files: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--engine" => call.engine = engine(&value()?)?,
            "--deviations" => call.deviations = read_deviations(&PathBuf::from(value()?))?,
            "--bless-deviations" => call.bless = true,
            flag if flag.starts_with("--") => return Err(format!("unknown option {flag}")),
            file => call.files.push(PathBuf::from(file)),
        }
    }
    Ok(call)
}

fn main() -> ExitCode {
    let report = read_call().and_then(|call| {
        let report = replay(call.engine.as_ref(), &call.files, &call.deviations)?;
        Ok((report, call.bless))
    });
    match report {
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "vectors: {why}");
            ExitCode::from(2)
        }
        Ok((report, true)) => {
            let lines = report.proposals.iter().map(|line| format!("{line}\n"));
            show(&lines.collect::<String>(), ExitCode::SUCCESS)
        }
        Ok((report, false)) => {
            let verdict = match report.failed.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(1),
            };
            show(&report.render(), verdict)
        }
    }
}

/// Prints the text; a closed pipe is no failure, a full disk is.
fn show(text: &str, verdict: ExitCode) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "vectors: {error}");
            ExitCode::from(2)
        }
        _ => verdict,
    }
}
