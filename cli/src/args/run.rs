//! Arguments of `a99 run`.

use super::{ConfigArgs, ProgramArgs};
use crate::duration::time;
use crate::input::JsonArg;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Arguments of the program, a JSON object
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub args: Option<JsonArg>,
    /// Limits and grants, and their file.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The same in milliseconds
    #[arg(long, value_name = "N", hide = true, conflicts_with = "timeout")]
    pub timeout_ms: Option<u64>,
    /// Request context, a JSON object that the program's atoms may read
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub context: Option<JsonArg>,
    /// Show the progress of the run on standard error
    #[arg(long)]
    pub progress: bool,
    /// Show the text of models and the program's chunks (streamChunk) as they arrive, on
    /// standard error; with --json, one line of JSON for each event on standard output, and
    /// the outcome in the last line
    #[arg(long, conflicts_with = "progress")]
    pub stream: bool,
    /// Write one line of JSON for each executed step to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Write where fuel and time went, by function, line and call, to this file: a page (.html), a
    /// flame graph (.svg) or JSON for speedscope (.json)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["record", "replay"])]
    pub profile: Option<PathBuf>,
    /// Keep the arguments and the answer of each call in this file, for --replay
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// Run with the arguments and answers of this recording, without network, models, stores
    /// and files; a run that makes another call ends with the error replay.departed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["record", "args", "script"])]
    pub replay: Option<PathBuf>,
    /// Refuse everything except artifacts that a key of this file signed
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub require_signed: Option<PathBuf>,
    /// Run the first program in a model's answer, after its thinking, in prose or in a
    /// Markdown fence; positions in messages are those of the answer
    #[arg(long)]
    pub lenient: bool,
    /// JSON file with the answers of networks, models and agents (see --help)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
    /// Do not compile loops to machine code
    #[cfg(feature = "jit")]
    #[arg(long)]
    pub no_jit: bool,
    /// Let the program run commands (shellExec) in a Linux sandbox, which starts
    /// with the first command and ends with the run
    #[arg(long, hide = cfg!(not(feature = "sandbox")))]
    pub sandbox: bool,
    /// Settings of the sandbox
    #[cfg(feature = "sandbox")]
    #[command(flatten)]
    pub settings: crate::sandbox_args::SettingsArgs,
}

/// A number that is neither negative nor infinite.
pub(super) fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

/// A seed of randomness.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn op_value(text: &str) -> Result<(String, &str), String> {
    match text.rsplit_once('=') {
        Some((op, value)) if !op.is_empty() => Ok((op.to_owned(), value)),
        _ => Err("expected OP=N, such as httpFetch=5".to_owned()),
    }
}

pub(super) fn op_amount(text: &str) -> Result<(String, f64), String> {
    let (op, value) = op_value(text)?;
    Ok((op, amount(value)?))
}

/// A model and what a million tokens of its prompts and answers cost.
pub(super) fn price(text: &str) -> Result<(String, (f64, f64)), String> {
    let expected = || "expected MODEL=PROMPT,ANSWER, such as gpt-5=1.25,10".to_owned();
    let (model, prices) = text.rsplit_once('=').ok_or_else(expected)?;
    let (prompt, answer) = prices.split_once(',').ok_or_else(expected)?;
    match model.is_empty() {
        true => Err(expected()),
        false => Ok((model.to_owned(), (amount(prompt)?, amount(answer)?))),
    }
}

pub(super) fn op_count(text: &str) -> Result<(String, u64), String> {
    let (op, value) = op_value(text)?;
    let count = value.parse();
    let count = count.map_err(|_| "expected a whole number of at least 0".to_owned())?;
    Ok((op, count))
}

pub(super) fn op_timeout(text: &str) -> Result<(String, Option<Duration>), String> {
    let (op, value) = op_value(text)?;
    match value {
        "none" => Ok((op, None)),
        value => Ok((op, Some(time(value)?))),
    }
}

/// A moment in milliseconds since 1970, as RFC 3339 has it.
pub(super) fn moment(text: &str) -> Result<f64, String> {
    let upper = text.to_ascii_uppercase();
    let read = || {
        let (date, time) = upper.split_once('T')?;
        let zone = time.find(['Z', '+', '-'])?;
        let zone_fits = matches!(time.len() - zone, 1 | 6);
        let parts: Vec<u32> = date
            .split('-')
            .map_while(|part| part.parse().ok())
            .collect();
        let [year, month, day] = parts[..] else {
            return None;
        };
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let fits = date.len() == 10 && zone_fits && zone >= 8 && day <= days;
        a99_ecma::date::parse(upper.as_bytes()).filter(|_| fits)
    };
    read().ok_or_else(|| "expected a time as in 2026-01-31T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(op_amount("map=0.5"), Ok(("map".to_owned(), 0.5)));
        assert_eq!(op_count("a=b=3"), Ok(("a=b".to_owned(), 3)));
        for bad in ["map", "=1", "map=", "map=-1", "map=NaN", "map=inf"] {
            assert!(op_amount(bad).is_err(), "{bad}");
        }
        assert!(op_count("map=1.5").is_err());
        assert_eq!(price("a=b=1,2.5"), Ok(("a=b".to_owned(), (1.0, 2.5))));
        for bad in ["m", "m=1", "=1,2", "m=1,-2", "m=1,2,3"] {
            assert!(price(bad).is_err(), "{bad}");
        }
        assert!(amount("1e400").is_err());
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        for bad in ["x", "-1", "1.5", "18446744073709551616", ""] {
            assert!(seed(bad).is_err(), "{bad}");
        }
        assert_eq!(moment("2026-01-31T12:00:00Z"), Ok(1_769_860_800_000.0));
        assert_eq!(
            moment("2026-01-31t12:00:00.5+01:00"),
            Ok(1_769_857_200_500.0)
        );
        for bad in [
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-01-31T12:00Z",
            "2026-13-01T12:00:00Z",
            "Tue, 27 Jan 2026 12:00:00 GMT",
            "2026-01-31T12:00:00+1",
            "T",
            "",
        ] {
            assert!(moment(bad).is_err(), "{bad}");
        }
        let timeout = |text| op_timeout(text).map(|(_, time)| time);
        assert_eq!(timeout("map=2s"), Ok(Some(Duration::from_secs(2))));
        assert_eq!(timeout("map=none"), Ok(None));
        assert!(timeout("map=5d").is_err());
    }
}
