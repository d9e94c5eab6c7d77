//! `a99 sandbox doctor`: reports missing parts of the sandbox, with fixes.

use super::sandbox::{image_failed, machine, options};
use crate::checks::{Check, Status, report};
use crate::failure::Exit;
use crate::sandbox_image_args::DoctorArgs;
use a99_sandbox::image::doctor::{Diagnostic, Status as Found, examine};
use a99_sandbox::image::{Cache, ImageError, Versions};

pub(crate) fn run(args: &DoctorArgs) -> Exit {
    match diagnostics(args) {
        Ok(diagnostics) => {
            let checks: Vec<Check> = diagnostics.into_iter().map(check).collect();
            report(&checks, args.json)
        }
        Err(error) => image_failed(&error, args.json),
    }
}

fn diagnostics(args: &DoctorArgs) -> Result<Vec<Diagnostic>, ImageError> {
    let options = options(&args.sources, Versions::Preferred);
    Ok(examine(Cache::of_user(), &options, &machine()?))
}

fn check(diagnostic: Diagnostic) -> Check {
    Check {
        check: diagnostic.check,
        status: match diagnostic.status {
            Found::Ok => Status::Ok,
            Found::Warning => Status::Warning,
            Found::Error => Status::Problem,
        },
        text: diagnostic.text,
        help: diagnostic.help,
    }
}
