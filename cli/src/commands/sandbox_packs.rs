//! Packs of sandboxes: `a99 sandbox build --pack` and `--with`, and the list of what was built.

use super::sandbox::{image_failed, line, options, show, versions};
use super::sandbox_image::SHORT;
use crate::failure::Exit;
use crate::output;
use crate::sandbox_args::BuildArgs;
use a99_sandbox::image::packs::{self, Description, Pack};
use a99_sandbox::image::{Cache, ImageError};
use serde_json::json;

pub(super) fn run(args: &BuildArgs) -> Exit {
    match build(args) {
        Ok(packs) if args.json => line(&json!({ "packs": packs })),
        Ok(packs) => output::out(&packs.iter().map(row).collect::<String>()),
        Err(error) => return image_failed(&error, args.json),
    }
    Exit::Ok
}

fn build(args: &BuildArgs) -> Result<Vec<Description>, ImageError> {
    let packs: Vec<Pack> = match args.with.as_slice() {
        [] => {
            let names = args.pack.iter();
            names.filter_map(|name| Pack::named(name)).collect()
        }
        packages => vec![Pack::of(&args.name, packages)?],
    };
    let options = options(&args.sources, versions(args));
    let entries = packs::build(&Cache::of_user()?, &options, &packs, &mut show)?;
    entries.iter().map(packs::describe).collect()
}

/// The packs that this user built.
pub(super) fn built() -> Result<Vec<Description>, ImageError> {
    let cache = Cache::of_user()?;
    let mut found = Vec::new();
    for name in cache.packs() {
        if let Some(entry) = cache.pack(&name)? {
            found.push(packs::describe(&entry)?);
        }
    }
    Ok(found)
}

pub(super) fn row(pack: &Description) -> String {
    let id = pack.sha256.get(..SHORT).unwrap_or(&pack.sha256);
    let (name, count) = (&pack.name, pack.packages.len());
    format!("{:>11}  {id}  {name}, {count} packages\n", pack.bytes)
}
