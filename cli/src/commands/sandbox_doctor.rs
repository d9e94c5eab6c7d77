//! `a99 sandbox doctor`: reports what is missing, and what helps.

use super::sandbox::{image_failed, line, machine, options};
use crate::failure::Exit;
use crate::output;
use crate::sandbox_image_args::DoctorArgs;
use a99_core::text::escape_for_terminal;
use a99_sandbox::image::doctor::{Finding, Status, examine};
use a99_sandbox::image::{Cache, ImageError, Versions};
use serde_json::{Value as Json, json};

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs) -> Exit {
    let findings = match findings(args) {
        Ok(findings) => findings,
        Err(error) => return image_failed(&error, args.json),
    };
    let sound = !findings.iter().any(|f| f.status == Status::Problem);
    if args.json {
        let checks: Vec<Json> = findings.iter().map(as_json).collect();
        line(&json!({"ok": sound, "checks": checks}));
    } else {
        for finding in &findings {
            output::out(&as_text(finding));
        }
    }
    if sound { Exit::Ok } else { Exit::Error }
}

fn findings(args: &DoctorArgs) -> Result<Vec<Finding>, ImageError> {
    let options = options(&args.sources, Versions::Preferred);
    Ok(examine(Cache::of_user(), &options, &machine()?))
}

fn as_json(finding: &Finding) -> Json {
    json!({
        "check": finding.check,
        "status": finding.status.name(),
        "message": finding.text,
        "help": finding.help,
    })
}

fn as_text(finding: &Finding) -> String {
    let Finding { check, text, .. } = finding;
    let status = finding.status.name();
    let text = escape_for_terminal(text);
    let help = finding.help.as_ref().map_or(String::new(), |help| {
        format!("{:24}help: {}\n", "", escape_for_terminal(help))
    });
    format!("{status:<8}{check:<15} {text}\n{help}")
}
