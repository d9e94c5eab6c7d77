//! Arguments of `a99 run`.

use super::ProgramArgs;
use crate::duration::time;
use crate::input::JsonArg;
use clap::{Args, ValueEnum, ValueHint};
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
    /// Fuel the run may use
    #[arg(long, value_name = "N", value_parser = amount, default_value = "1000")]
    pub fuel: f64,
    /// Time the run may take, as in 500ms, 5s, 2m, 1h; seconds without a unit
    /// [default: 10 ms for each unit of fuel]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,
    /// The same in milliseconds
    #[arg(long, value_name = "N", hide = true, conflicts_with = "timeout")]
    pub timeout_ms: Option<u64>,
    /// Time that one call of an atom may take, or `none` for no limit; may be
    /// repeated [default: that of each atom, 1s for most]
    #[arg(long, value_name = "OP=TIME", value_parser = op_timeout)]
    pub atom_timeout: Vec<(String, Option<Duration>)>,
    /// MiB that the run's values may take [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub heap_mib: Option<u32>,
    /// What work costs
    #[arg(long, value_name = "MODEL", value_enum, default_value = "metered")]
    pub cost_model: CostModelArg,
    /// Price of an op for this run; may be repeated
    #[arg(long, value_name = "OP=N", value_parser = op_amount)]
    pub cost: Vec<(String, f64)>,
    /// How often an op may be called; may be repeated
    #[arg(long, value_name = "OP=N", value_parser = op_count)]
    pub quota: Vec<(String, u64)>,
    /// Request context, which the program's atoms may read
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub context: Option<JsonArg>,
    /// Write one line of JSON for each executed step to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Refuse what is no artifact that a key of this file signed
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub require_signed: Option<PathBuf>,
    /// Take the first program in a model's answer, which may stand amid prose or in
    /// a Markdown fence; places in messages are those of the answer
    #[arg(long)]
    pub lenient: bool,
    /// JSON file with the answers of networks, models and agents (see --help)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
    /// Let the program run commands (shellExec) in a Linux of its own, which
    /// starts with the first one and ends with the run
    #[arg(long, hide = cfg!(not(feature = "sandbox")))]
    pub sandbox: bool,
    /// What that Linux is like
    #[cfg(feature = "sandbox")]
    #[command(flatten)]
    pub settings: crate::sandbox_args::SettingsArgs,
}

/// Which work is paid for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostModelArg {
    /// Steps, expressions, and work that grows with its operands
    Metered,
    /// Steps and expressions only
    Flat,
}

/// A number that is neither negative nor infinite.
pub(super) fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

fn op_value(text: &str) -> Result<(String, &str), String> {
    match text.rsplit_once('=') {
        Some((op, value)) if !op.is_empty() => Ok((op.to_owned(), value)),
        _ => Err("expected OP=N, such as httpFetch=5".to_owned()),
    }
}

fn op_amount(text: &str) -> Result<(String, f64), String> {
    let (op, value) = op_value(text)?;
    Ok((op, amount(value)?))
}

fn op_count(text: &str) -> Result<(String, u64), String> {
    let (op, value) = op_value(text)?;
    let count = value.parse();
    let count = count.map_err(|_| "expected a whole number of at least 0".to_owned())?;
    Ok((op, count))
}

fn op_timeout(text: &str) -> Result<(String, Option<Duration>), String> {
    let (op, value) = op_value(text)?;
    match value {
        "none" => Ok((op, None)),
        value => Ok((op, Some(time(value)?))),
    }
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
        assert!(amount("1e400").is_err());
        let timeout = |text| op_timeout(text).map(|(_, time)| time);
        assert_eq!(timeout("map=2s"), Ok(Some(Duration::from_secs(2))));
        assert_eq!(timeout("map=none"), Ok(None));
        assert!(timeout("map=5d").is_err());
    }
}
