//! Export: writes a portable image.

use super::super::cache::Cache;
use super::super::digest::{Hasher, Inputs};
use super::super::entry::Entry;
use super::super::error::{At, ErrorCode, ImageError};
use super::super::progress::{Event, Progress, StepEnd};
use super::manifest::{NAME, Origin, Part, Portable};
use super::tar::{BLOCK, END_BLOCKS, header, padding};
use super::{CONFIGURATION, DISK, LICENCES, ORIGIN, SNAPSHOT, STEP, is_imported};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes copied at a time.
const CHUNK: usize = 256 << 10;

/// A part and its source file.
pub(super) struct Source {
    part: Part,
    file: PathBuf,
}

/// Writes the image that sandboxes start from into a file.
///
/// # Errors
///
/// [`ErrorCode::NotBuilt`] if there is no image, [`ErrorCode::HashMismatch`] if it is
/// damaged; an existing file then stays unchanged.
pub fn export(
    cache: &Cache,
    file: &Path,
    progress: &mut dyn Progress,
) -> Result<Portable, ImageError> {
    let start = Instant::now();
    progress.event(Event::Started { step: "export" });
    let (origin, sources) = collect(cache)?;
    let parts = sources.iter().map(|source| source.part.clone());
    let manifest = Portable::new(origin, parts.collect());
    let (count, megabytes) = (sources.len(), manifest.size().div_ceil(1_000_000));
    let text = format!("compressing {count} parts, {megabytes} MB");
    let step = "export";
    progress.event(Event::Detail { step, text: &text });
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| ImageError::io(Path::new(NAME), &error.into()))?;
    // Only a manifest that can be read back is written.
    Portable::parse(&text).map_err(|reason| damaged(file, &reason))?;
    write(file, (NAME, &text), &sources)?;
    progress.event(Event::Finished {
        step,
        end: StepEnd::Built,
        elapsed: start.elapsed(),
    });
    Ok(manifest)
}

/// Collects the parts of the current image, and their origins.
fn collect(cache: &Cache) -> Result<(Vec<Origin>, Vec<Source>), ImageError> {
    let snapshot = current(cache, STEP)?;
    let mut sources = vec![
        source(&snapshot, SNAPSHOT, SNAPSHOT)?,
        source(&snapshot, DISK, DISK)?,
    ];
    if is_imported(&snapshot) {
        let text = fs::read(snapshot.path(ORIGIN)).at(&snapshot.path(ORIGIN))?;
        let manifest = Portable::parse(&text);
        let manifest = manifest.map_err(|reason| damaged(&snapshot.path(ORIGIN), &reason))?;
        for part in manifest
            .files
            .iter()
            .filter(|part| ![SNAPSHOT, DISK].contains(&part.path.as_str()))
        {
            sources.push(source(&snapshot, &part.path, &part.path)?);
        }
        return Ok((manifest.origin, sources));
    }
    let mut origin = vec![origin_of(&snapshot)];
    let mut texts = Vec::new();
    for step in ["kernel", "rootfs"] {
        let entry = current(cache, step)?;
        origin.push(origin_of(&entry));
        for file in &entry.manifest.files {
            let path = &file.path;
            let carried = match path.strip_prefix(LICENCES) {
                // The texts of each step go into a separate folder.
                Some(below) => format!("{LICENCES}/{step}{below}"),
                None if path == CONFIGURATION => path.clone(),
                None => continue,
            };
            texts.push(source(&entry, path, &carried)?);
        }
    }
    texts.sort_by(|a, b| a.part.path.cmp(&b.part.path));
    sources.extend(texts);
    Ok((origin, sources))
}

fn current(cache: &Cache, step: &str) -> Result<Entry, ImageError> {
    cache.current(step)?.ok_or_else(|| {
        let reason = "no whole image is there that could be exported";
        ImageError::new(ErrorCode::NotBuilt, step, reason)
            .help("`a99 sandbox build` makes one, `a99 sandbox doctor` tells what is wrong")
    })
}

fn origin_of(entry: &Entry) -> Origin {
    let inputs: Inputs = entry.manifest.inputs.clone();
    let step = entry.manifest.step.clone();
    Origin { step, inputs }
}

pub(super) fn source(entry: &Entry, name: &str, carried: &str) -> Result<Source, ImageError> {
    let file = entry.path(name);
    let size = fs::metadata(&file).at(&file)?.len();
    let sha256 = entry.sha256(name)?.to_owned();
    let path = carried.to_owned();
    Ok(Source {
        part: Part { path, size, sha256 },
        file,
    })
}

/// Writes an archive: first a text with its name, then the parts.
pub(super) fn write(
    file: &Path,
    first: (&str, &[u8]),
    sources: &[Source],
) -> Result<(), ImageError> {
    let beside = file.with_added_extension("new");
    let written = write_all(&beside, first, sources);
    let written = written.and_then(|()| fs::rename(&beside, file).at(file));
    if written.is_err() {
        // The incomplete file is useless, and the first failure is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_all(
    file: &Path,
    (name, text): (&str, &[u8]),
    sources: &[Source],
) -> Result<(), ImageError> {
    let out = BufWriter::new(File::create(file).at(file)?);
    let mut out = GzEncoder::new(out, Compression::default());
    let mut put = |bytes: &[u8]| out.write_all(bytes).at(file);
    put(&header(name, text.len() as u64))?;
    put(text)?;
    put(&[0; BLOCK][..padding(text.len() as u64)])?;
    for source in sources {
        put(&header(&source.part.path, source.part.size))?;
        copy(source, &mut put)?;
        put(&[0; BLOCK][..padding(source.part.size)])?;
    }
    put(&[0; BLOCK * END_BLOCKS])?;
    let out = out.finish().at(file)?;
    let out = out.into_inner().map_err(std::io::Error::from).at(file)?;
    out.sync_all().at(file)
}

/// Copies a part, which must match the manifest.
fn copy(
    source: &Source,
    put: &mut impl FnMut(&[u8]) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let Source { part, file } = source;
    let mut content = File::open(file).at(file)?.take(part.size);
    let mut hasher = Hasher::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = content.read(&mut chunk).at(file)?;
        if count == 0 {
            break;
        }
        hasher.update(&chunk[..count]);
        put(&chunk[..count])?;
    }
    match hasher.hex() == part.sha256 {
        true => Ok(()),
        false => Err(damaged(file, "is not what was built")),
    }
}

fn damaged(file: &Path, reason: &str) -> ImageError {
    ImageError::new(
        ErrorCode::HashMismatch,
        file.display().to_string(),
        reason.to_owned(),
    )
    .help("`a99 sandbox build` builds what is damaged again")
}
