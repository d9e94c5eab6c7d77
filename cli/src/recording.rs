//! `a99 run --record FILE` and `--replay FILE`.

use crate::failure::Failure;
use crate::input;
use a99_core::diag::excerpt;
use agent99::replay::{Departure, Recording, Replayed};
use agent99::{Agent, ErrorCode, Outcome, RunError, Value};
use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::path::Path;

/// Creates the file of a recording, which only its owner can read: it holds what the program sent
/// and got.
pub(crate) fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        // The file of an earlier recording may have another mode.
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Reads a recording.
pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    let name = format!("--replay {}", path.display());
    if path == Path::new(input::STDIN) {
        return Err(Failure::about("--replay", "name a file"));
    }
    let file = File::open(path).map_err(|error| Failure::of_file(&name, path, &error))?;
    Recording::read(BufReader::new(file)).map_err(|error| {
        let help = "name a file that `a99 run --record FILE` wrote";
        Failure::advised(&name, error, help)
    })
}

/// The outcome of a replay; a departure is its error.
pub(crate) fn outcome(replayed: Replayed, agent: &Agent) -> Outcome {
    let mut outcome = replayed.outcome;
    if let Some(departure) = &replayed.departure {
        outcome.error = Some(departed(departure, agent));
    }
    outcome
}

pub(crate) fn departed(departure: &Departure, agent: &Agent) -> RunError {
    let shown = |(atom, inputs): &(String, Value)| match inputs {
        Value::Undefined => format!("{atom} with other inputs"),
        inputs => format!("{atom} {}", excerpt(&inputs.to_json_string())),
    };
    let (op, message, help, pointer) = match departure {
        Departure::Call {
            id,
            pointer,
            made,
            recorded,
        } => {
            let message = match recorded {
                Some(recorded) => format!(
                    "The run departs from its recording at call {id}: it calls {}, and the \
                     recording has {}",
                    shown(made),
                    shown(recorded)
                ),
                None => format!(
                    "The run departs from its recording at call {id}: it calls {}, and the \
                     recording has no more calls",
                    shown(made)
                ),
            };
            let help = "replay the program that was recorded, or record this one";
            (made.0.as_str(), message, help, pointer.clone())
        }
        Departure::Ended { id, atom } => {
            let message =
                format!("The run departs from its recording: it ended before call {id} of {atom}");
            let help = "its result is that of this program; the recorded one made more calls";
            (atom.as_str(), message, help, None)
        }
    };
    let mut error = RunError::new(ErrorCode::ReplayDeparted, op, message);
    error.help = Some(help.to_owned());
    error.pointer = pointer.filter(|_| agent.source().is_some());
    error
}
