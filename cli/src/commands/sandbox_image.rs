//! `a99 sandbox image`: exports and imports the image, for another machine.

use super::sandbox::{image_failed, line, packaged, show};
use crate::failure::Exit;
use crate::output;
use crate::sandbox_image_args::{FileArgs, ImageArgs, ImageCommand};
use a99_sandbox::cache::portable::{Portable, export};
use a99_sandbox::cache::{Cache, ImageError};
use serde_json::json;

pub(crate) fn run(args: &ImageArgs) -> Exit {
    let (args, done) = match &args.command {
        ImageCommand::Export(args) => (args, exported(args)),
        ImageCommand::Import(args) => (args, imported(args)),
    };
    match done {
        Ok(manifest) => {
            report(args, &manifest);
            Exit::Ok
        }
        Err(error) => image_failed(&error, args.json),
    }
}

fn exported(args: &FileArgs) -> Result<Portable, ImageError> {
    export(&Cache::of_user()?, &args.file, &mut show)
}

fn imported(args: &FileArgs) -> Result<Portable, ImageError> {
    packaged::install(&Cache::of_user()?, &args.file)
}

fn report(args: &FileArgs, manifest: &Portable) {
    let bytes = std::fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    if args.json {
        line(&json!({"file": args.file, "bytes": bytes, "manifest": manifest}));
        return;
    }
    let (parts, path) = (manifest.files.len(), args.file.display());
    output::out(&format!("{bytes:>10}  {path}, {parts} parts\n"));
}
