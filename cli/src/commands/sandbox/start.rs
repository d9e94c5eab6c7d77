//! Sandbox builder, configured by the command line.

use super::super::sandbox_image;
use super::{failed, packaged, show};
use crate::failure::Exit;
use crate::output;
use crate::sandbox_args::{DiskArg, SettingsArgs};
use a99_sandbox::image::{self, Cache};
use a99_sandbox::oci::StoredImage;
use a99_sandbox::vm::WasmMachine;
use a99_sandbox::{Builder, Image, Sandbox, VmCode, VmError};
use std::io::{BufRead, IsTerminal, stderr, stdin};
use std::path::Path;

/// Starts a sandbox. If no image exists and a person is at the terminal, it offers to build one.
pub(super) fn start(settings: &SettingsArgs) -> Result<Sandbox, VmError> {
    let builder = builder(settings)?;
    match settings.foreign() {
        Some(_) => builder.start_blocking(),
        None => builder.loaded_image(&load()?).start_blocking(),
    }
}

/// The builder of a sandbox with the newest image.
///
/// # Errors
/// Those of finding a container image.
pub(crate) fn builder(settings: &SettingsArgs) -> Result<Builder, VmError> {
    let mut builder = Sandbox::builder()
        .mounts(settings.mount.iter().cloned())
        .network(settings.net.clone())
        .guest_jit(settings.guest_jit.into());
    if let Some(bytes) = settings.ram {
        builder = builder.ram(bytes);
    }
    if let Some(DiskArg { bytes, folder }) = &settings.disk {
        builder = match folder {
            None if *bytes == 0 => builder.files_in_memory(),
            Some(folder) => builder.disk_in(*bytes, folder),
            None => builder.disk(*bytes),
        };
    }
    packs(settings)?;
    for name in &settings.pack {
        builder = builder.pack(name);
    }
    for (name, value) in &settings.env {
        builder = builder.env(name, value);
    }
    if let Some(name) = settings.container() {
        builder = builder.container(&container(name)?)?;
    }
    if let Some(file) = settings.foreign() {
        builder = builder.image(file).worker(super::worker());
    }
    let limits = settings.limits;
    if let Some(bytes) = limits.memory {
        builder = builder.memory_limit(bytes);
    }
    if let Some(count) = limits.processes {
        builder = builder.process_limit(count);
    }
    if let Some(bytes) = limits.output_limit {
        builder = builder.output_limit(bytes);
    }
    if let Some(time) = limits.lifetime {
        builder = builder.time_limit(time);
    }
    Ok(builder)
}

/// A container image of the user.
pub(super) fn container(name: &str) -> Result<StoredImage, VmError> {
    let found = sandbox_image::store().and_then(|store| store.find(name));
    found.map_err(|error| VmError::new(VmCode::NoImage, error.to_string()))
}

/// Imports the packs of a sandbox that came with this command.
pub(super) fn packs(settings: &SettingsArgs) -> Result<(), VmError> {
    if settings.pack.is_empty() {
        return Ok(());
    }
    let cache = Cache::of_user().map_err(image_failed)?;
    packaged::prepare_packs(&cache, &settings.pack).map_err(image_failed)
}

/// The newest image.
pub(super) fn load() -> Result<Image, VmError> {
    let cache = Cache::of_user().map_err(image_failed)?;
    packaged::prepare(&cache).map_err(image_failed)?;
    let image = Image::current(&cache, &mut show);
    match image {
        Err(error) if error.code == VmCode::NoImage && wants_one() => {
            build(&cache)?;
            Image::current(&cache, &mut show)
        }
        image => image,
    }
}

fn image_failed(error: image::ImageError) -> VmError {
    VmError::new(VmCode::Io, error.to_string())
}

/// Asks whether to build the image; without a terminal the answer is no.
fn wants_one() -> bool {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return false;
    }
    output::err("No image of the guest was built yet. Build it now (about ten minutes)? [y/N] ");
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Builds the image as `a99 sandbox build` does in this folder.
fn build(cache: &Cache) -> Result<(), VmError> {
    let here = Path::new(".");
    let options = super::options(here, image::Versions::Preferred);
    let machine = WasmMachine::new()?;
    let built = image::build(cache, &options, Some(&machine), &mut show);
    built.map(drop).map_err(image_failed)
}

/// The command's exit; a failure is reported.
pub(super) fn ended(result: Result<Exit, VmError>, json: bool) -> Exit {
    result.unwrap_or_else(|error| failed(&error, json))
}
