//! `a99 sandbox doctor`: reports what is missing, and what helps.

use super::sandbox::{image_failed, line, machine, options};
use crate::failure::Exit;
use crate::output;
use crate::sandbox_image_args::DoctorArgs;
use a99_core::text::escape_for_terminal;
use a99_sandbox::image::doctor::{Diagnostic, Status, examine};
use a99_sandbox::image::{Cache, ImageError, Versions};
use serde_json::{Value as Json, json};

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs) -> Exit {
    let diagnostics = match diagnostics(args) {
        Ok(diagnostics) => diagnostics,
        Err(error) => return image_failed(&error, args.json),
    };
    let sound = !diagnostics.iter().any(|f| f.status == Status::Error);
    if args.json {
        let checks: Vec<Json> = diagnostics.iter().map(as_json).collect();
        line(&json!({"ok": sound, "checks": checks}));
    } else {
        for diagnostic in &diagnostics {
            output::out(&as_text(diagnostic));
        }
    }
    if sound { Exit::Ok } else { Exit::Error }
}

fn diagnostics(args: &DoctorArgs) -> Result<Vec<Diagnostic>, ImageError> {
    let options = options(&args.sources, Versions::Preferred);
    Ok(examine(Cache::of_user(), &options, &machine()?))
}

fn as_json(diagnostic: &Diagnostic) -> Json {
    json!({
        "check": diagnostic.check,
        "status": diagnostic.status.name(),
        "message": diagnostic.text,
        "help": diagnostic.help,
    })
}

fn as_text(diagnostic: &Diagnostic) -> String {
    let Diagnostic { check, text, .. } = diagnostic;
    let status = diagnostic.status.name();
    let text = escape_for_terminal(text);
    let help = diagnostic.help.as_ref().map_or(String::new(), |help| {
        format!("{:24}help: {}\n", "", escape_for_terminal(help))
    });
    format!("{status:<8}{check:<15} {text}\n{help}")
}
