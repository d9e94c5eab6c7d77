//! `a99 sandbox snapshot`: saves a named sandbox to a file. This process writes the file
//! from the frozen state, so the sandbox runs on meanwhile.

use crate::failure::Exit;
use crate::local::Refusal;
use crate::named::args::SnapshotArgs;
use crate::named::error::ended;
use crate::named::freeze::frozen;
use crate::named::runtime_dir::RuntimeDir;
use crate::output;
use crate::write::{Access, Partial};
use serde_json::json;
use std::io::{BufWriter, IsTerminal, stderr};
use std::time::{Duration, Instant};

/// Shortest time between two lines of progress.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn run(args: &SnapshotArgs) -> Exit {
    ended(saved(args), args.json)
}

fn saved(args: &SnapshotArgs) -> Result<Exit, Refusal> {
    let path = &args.file;
    let failed = |error| Refusal::io(path.display(), error);
    let frozen = frozen(&RuntimeDir::of_user()?, &args.name)?;
    let (partial, file) = Partial::new(path, Access::Owner).map_err(failed)?;
    let is_shown = !args.json && stderr().is_terminal();
    let mut shown = Instant::now();
    let mut bytes = 0;
    let mut progress = |done: u64, total: u64| {
        bytes = done;
        if is_shown && shown.elapsed() >= TICK {
            shown = Instant::now();
            let (done, total) = (done >> 20, total >> 20);
            output::status(&format!("{}: {done} of {total} MiB", path.display()));
        }
    };
    let mut out = BufWriter::new(&file);
    let written = frozen.save(&mut out, &mut progress);
    if is_shown {
        output::clear_status();
    }
    written?;
    drop(out);
    file.sync_all()
        .and_then(|()| partial.keep())
        .map_err(failed)?;
    if args.json {
        let report = json!({"name": args.name.as_str(), "file": path, "bytes": bytes});
        output::out(&format!("{report}\n"));
    } else {
        let text = format!("sandbox {} is saved: {} MiB\n", args.name, bytes >> 20);
        output::err(&text);
    }
    Ok(Exit::Ok)
}
