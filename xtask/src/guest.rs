//! `cargo xtask guest`: builds the image that sandboxes start from.
//!
//! The work is done by the sandbox's own library; here it is only shown.

use crate::shell::{Failed, root};
use a99_sandbox::image::{
    self, Built, Cache, Entry, Event, ImageError, Options, StepEnd, Versions,
};
use a99_sandbox::vm::WasmMachine;
use serde_json::{Value, json};

/// The committed lock file, below the root of the workspace.
const LOCK_FILE: &str = "sandbox/image/lock.json";

/// Builds what is not in the cache. Progress goes to the standard error
/// output; with `--json` the result goes to the standard output.
pub fn build(flags: &[&str]) -> Result<(), Failed> {
    let mut json = false;
    let mut options = Options {
        lock_file: Some(root().join(LOCK_FILE)),
        sources: Some(root()),
        ..Options::default()
    };
    for flag in flags {
        let versions = &mut options.versions;
        match (*flag, &versions) {
            ("--json", _) => json = true,
            ("--locked", Versions::Preferred) => *versions = Versions::Locked,
            ("--update", Versions::Preferred) => *versions = Versions::Updated,
            _ => return Err(Failed(format!("{flag}: not known, or not with the others"))),
        }
    }
    let machine = WasmMachine::new().map_err(|error| Failed(error.to_string()))?;
    let built = Cache::of_user()
        .and_then(|cache| image::build(&cache, &options, Some(&machine), &mut show));
    match built {
        Ok(built) if json => println!("{}", built_json(&built)),
        Ok(built) => summary(&built),
        Err(error) if json => {
            println!("{}", error_json(&error));
            return Err(Failed(String::new()));
        }
        Err(error) => return Err(Failed(format!("{} ({})", error, error.code.name()))),
    }
    Ok(())
}

fn show(event: Event<'_>) {
    match event {
        Event::Started { step } => eprintln!("==> {step}"),
        Event::Detail { text, .. } => eprintln!("    {text}"),
        Event::Note { text } => eprintln!("    note: {text}"),
        Event::Finished { step, end, elapsed } => {
            let how = match end {
                StepEnd::Built => "done",
                StepEnd::Cached => "in the cache",
            };
            eprintln!("    {step}: {how} ({:.1} s)", elapsed.as_secs_f64());
        }
    }
}

fn summary(built: &Built) {
    for entry in built.entries() {
        for file in entry
            .manifest
            .files
            .iter()
            .filter(|file| !file.path.contains('/'))
        {
            println!("{:>10}  {}", file.size, entry.path(&file.path).display());
        }
    }
}

fn built_json(built: &Built) -> Value {
    let step = |entry: &Entry| {
        json!({
            "step": entry.manifest.step,
            "folder": entry.folder,
            "manifest": entry.manifest,
        })
    };
    json!({ "steps": built.entries().map(step).collect::<Vec<_>>() })
}

fn error_json(error: &ImageError) -> Value {
    json!({
        "error": {
            "code": error.code.name(),
            "subject": error.subject,
            "reason": error.reason,
            "help": error.help,
        }
    })
}
