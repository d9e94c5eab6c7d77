//! `a99 sandbox image`: exports and imports the image, for another machine; adds, lists and
//! removes container images; lists packs.

use super::sandbox::{SANDBOX_FAILED, image_failed, line, packaged, show};
use super::{sandbox_packs, sandbox_registry};
use crate::failure::Exit;
use crate::named::launch::SELF_EXE;
use crate::output;
use crate::sandbox_image_args::{
    AddArgs, ExportArgs, FileArgs, ImageArgs, ImageCommand, ImageLsArgs, ImageRmArgs,
};
use a99_sandbox::cache::portable::{Carried, Portable, export, export_pack, is_pack};
use a99_sandbox::cache::{Cache, ImageError};
use a99_sandbox::oci::{OciCode, OciError, Store, StoredImage, Worker};
use serde_json::json;

/// Digits of a digest that people see.
pub(super) const SHORT: usize = 12;

pub(crate) fn run(args: &ImageArgs) -> Exit {
    let (args, done) = match &args.command {
        ImageCommand::Export(args) => (&args.to, exported(args)),
        ImageCommand::Import(args) => (args, imported(args)),
        ImageCommand::Add(args) => return ended(add(args), args.json),
        ImageCommand::Ls(args) => return ended(list(args), args.json),
        ImageCommand::Rm(args) => return ended(remove(args), args.json),
    };
    match done {
        Ok(carried) => {
            report(args, &carried);
            Exit::Ok
        }
        Err(error) => image_failed(&error, args.json),
    }
}

/// What a file carries.
enum InFile {
    Image(Portable),
    Pack(Carried),
}

fn exported(args: &ExportArgs) -> Result<InFile, ImageError> {
    let (cache, file) = (Cache::of_user()?, &args.to.file);
    match &args.pack {
        Some(name) => export_pack(&cache, name, file).map(InFile::Pack),
        None => export(&cache, file, &mut show).map(InFile::Image),
    }
}

fn imported(args: &FileArgs) -> Result<InFile, ImageError> {
    let (cache, file) = (Cache::of_user()?, &args.file);
    match is_pack(file)? {
        true => packaged::install_pack(&cache, file).map(InFile::Pack),
        false => packaged::install(&cache, file).map(InFile::Image),
    }
}

fn report(args: &FileArgs, carried: &InFile) {
    let bytes = std::fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    let (member, json, text) = match carried {
        InFile::Image(image) => (
            "manifest",
            json!(image),
            format!("{} parts", image.files.len()),
        ),
        InFile::Pack(pack) => ("pack", json!(pack), format!("pack {}", pack.name)),
    };
    if args.json {
        line(&json!({"file": args.file, "bytes": bytes, member: json}));
        return;
    }
    let path = args.file.display();
    output::out(&format!("{bytes:>10}  {path}, {text}\n"));
}

/// The user's container images.
pub(super) fn store() -> Result<Store, OciError> {
    Store::of(&Cache::of_user().map_err(of_cache)?)
}

fn of_cache(error: ImageError) -> OciError {
    OciError {
        code: OciCode::Io,
        place: error.subject,
        text: error.reason,
        help: error.help,
    }
}

fn add(args: &AddArgs) -> Result<(), OciError> {
    let worker = Worker::new(SELF_EXE, ["sandbox", "work"]);
    let (name, tag) = (args.name.as_deref(), args.tag.as_deref());
    let mut progress = |text: &str| output::err(&format!("    {text}\n"));
    let store = store()?;
    let image = match sandbox_registry::named(args) {
        Some(name_there) => {
            let layout = sandbox_registry::download(&store, name_there, args)?;
            store.add(layout.path(), name, None, &worker, &mut progress)?
        }
        None => store.add(&args.file, name, tag, &worker, &mut progress)?,
    };
    if args.json {
        line(&json!(image));
    } else {
        output::out(&row(&image));
    }
    Ok(())
}

fn list(args: &ImageLsArgs) -> Result<(), OciError> {
    let images = store()?.list();
    let packs = sandbox_packs::built().map_err(of_cache)?;
    if args.json {
        line(&json!({"images": images, "packs": packs}));
    } else {
        let packs = packs.iter().map(sandbox_packs::row);
        output::out(&images.iter().map(row).chain(packs).collect::<String>());
    }
    Ok(())
}

fn remove(args: &ImageRmArgs) -> Result<(), OciError> {
    let store = store()?;
    let (mut removed, mut freed) = (args.names.clone(), 0);
    for name in &args.names {
        freed += store.remove(name)?;
    }
    if !args.pack.is_empty() {
        let cache = Cache::of_user().map_err(of_cache)?;
        let _lock = cache.lock(&mut show).map_err(of_cache)?;
        for name in &args.pack {
            let bytes = cache.remove_pack(name).map_err(of_cache)?;
            freed += bytes.ok_or_else(|| no_pack(name))?;
            removed.push(name.clone());
        }
    }
    if args.json {
        line(&json!({"removed": removed, "bytes": freed}));
    } else {
        output::err(&format!("{freed} bytes are free again\n"));
    }
    Ok(())
}

fn no_pack(name: &str) -> OciError {
    OciError {
        code: OciCode::NotFound,
        place: name.to_owned(),
        text: "this pack was not built".to_owned(),
        help: Some("`a99 sandbox image ls` lists images and packs".to_owned()),
    }
}

fn row(stored: &StoredImage) -> String {
    let StoredImage { name, image, .. } = stored;
    let id = image.id.get(..SHORT).unwrap_or(&image.id);
    let layers = image.layers;
    format!("{:>11}  {id}  {name}, {layers} layers\n", image.bytes)
}

fn ended(result: Result<(), OciError>, json: bool) -> Exit {
    let Err(error) = result else {
        return Exit::Ok;
    };
    if json {
        line(&json!({"error": {
            "code": error.code.name(),
            "place": error.place,
            "message": error.text,
            "help": error.help,
        }}));
    } else {
        output::note(&format!("error[{}]", error.code.name()), &error.to_string());
    }
    Exit::Guest(SANDBOX_FAILED)
}
