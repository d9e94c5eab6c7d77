//! Reading: an archive in, one file system and its description out.

use crate::archive::Archive;
use crate::blob;
use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::Limits;
use crate::manifest::{self, Chosen, RunConfig};
use crate::tar::{EntryKind, Tar};
use crate::tree::Tree;
use crate::users;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

/// Bytes copied at a time.
const CHUNK: usize = 64 << 10;

/// Maximum bytes of `/etc/passwd` and `/etc/group`.
const MAX_TABLE: u64 = 1 << 20;

/// Maximum bytes of what an image says about its commands: it becomes arguments and
/// environment of a process. Linux takes at most 128 KiB in one of them.
const MAX_CONFIG: usize = 256 << 10;
const MAX_TEXT: usize = (128 << 10) - 1;

/// Maximum variables of an image, and arguments; people use some dozen.
const MAX_TEXTS: usize = 1000;

/// User, group and home of an image's commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// Name of the user, if the image has one.
    pub name: Option<String>,
    /// Home of the user.
    pub home: String,
}

/// Defaults of an image's commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Variables.
    pub env: Vec<(String, String)>,
    /// User.
    pub run_as: RunAs,
    /// Working directory, if the image sets one.
    pub working_dir: Option<String>,
    /// Program and first arguments of every command.
    pub entrypoint: Vec<String>,
    /// Command, if no other is given.
    pub cmd: Vec<String>,
}

/// Description of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// SHA-256 of its configuration in hexadecimal, by which it is known.
    pub id: String,
    /// Its name in the archive.
    pub reference: Option<String>,
    /// Number of its layers.
    pub layers: u64,
    /// Files, folders and links in it.
    pub nodes: u64,
    /// Devices that were dropped.
    pub devices_dropped: u64,
    /// Length of the file system in bytes.
    pub bytes: u64,
    /// Defaults of its commands.
    pub config: Config,
}

/// An archive with what is wanted of it.
#[derive(Debug)]
pub struct Input<'a> {
    /// A tar file, or the folder of an OCI layout.
    pub archive: File,
    /// Name or tag of the image, if the archive has several.
    pub tag: Option<&'a str>,
    /// An empty file for the contents of files.
    pub spool: &'a File,
}

/// A step of reading.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The image was chosen: its [`Image::id`] and [`Image::reference`]. A reader who has it
    /// needs no more, since the one names all contents.
    Chosen(&'a str, Option<&'a str>),
    /// A note for people.
    Note(&'a str),
}

/// Reads an image and writes its file system to `out`.
///
/// # Errors
/// [`OciError`]; what was written then is worthless.
pub fn read(
    input: Input<'_>,
    limits: &Limits,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Image, OciError> {
    let archive = Archive::open(input.archive, limits)?;
    let chosen = manifest::choose(&archive, input.tag, limits)?;
    progress(Step::Chosen(chosen.id.hex(), chosen.reference.as_deref()));
    let mut job = Job {
        limits,
        tree: Tree::new(limits),
        spool: input.spool,
        written: 0,
        entries: 0,
        budget: limits.unpacked,
        chunk: vec![0; CHUNK],
    };
    let count = chosen.layers.len();
    for (number, layer) in (1..).zip(&chosen.layers) {
        progress(Step::Note(&format!("layer {number} of {count}")));
        job.layer(&archive, layer)?;
    }
    progress(Step::Note("writing the file system"));
    let run_config = chosen.config.config.as_ref();
    let config = job.config(run_config.unwrap_or(&RunConfig::default()))?;
    job.tree.free_mount_points()?;
    let devices_dropped = job.tree.devices;
    let nodes = job.tree.into_nodes();
    let mut out = BufWriter::with_capacity(CHUNK, out);
    let written = a99_sandbox_erofs::write(&nodes, input.spool, &mut out);
    let written = written.map_err(|error| match error {
        a99_sandbox_erofs::Error::Io(error) => OciError::io("file system", &error),
        error => damaged("file system", error.to_string()),
    })?;
    let Chosen { reference, id, .. } = chosen;
    Ok(Image {
        id: id.hex().to_owned(),
        reference,
        layers: count as u64,
        nodes: written.nodes,
        devices_dropped,
        bytes: written.bytes,
        config,
    })
}

struct Job<'a> {
    limits: &'a Limits,
    tree: Tree<'a>,
    spool: &'a File,
    written: u64,
    entries: u64,
    /// Bytes that layers may still unpack to.
    budget: u64,
    chunk: Vec<u8>,
}

impl Job<'_> {
    fn layer(&mut self, archive: &Archive, layer: &manifest::Layer) -> Result<(), OciError> {
        let span = archive.get(&layer.name)?;
        let size = layer.blob.as_ref().map(|(_, size)| *size);
        let place = format!("layer {}", quoted(layer.name.as_bytes()));
        let opened = blob::Layer::open(span, size, place, self.budget, self.limits)?;
        self.tree.next_layer();
        let mut tar = Tar::new(opened, self.limits);
        while let Some(entry) = tar.next()? {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(limit("layers", "entries", self.limits.entries));
            }
            let offset = self.written;
            if entry.kind == EntryKind::File {
                self.store(&mut tar)?;
            }
            self.tree.apply(&entry, offset)?;
        }
        let digest = layer.blob.as_ref().map(|(digest, _)| digest);
        let unpacked = tar.input.finish(digest, &layer.diff_id)?;
        self.budget = self.budget.saturating_sub(unpacked);
        Ok(())
    }

    /// Appends the content of the current entry to the spool.
    fn store(&mut self, tar: &mut Tar<'_, blob::Layer>) -> Result<(), OciError> {
        loop {
            let count = tar
                .read(&mut self.chunk)
                .map_err(|error| OciError::io("layer", &error))?;
            if count == 0 {
                return Ok(());
            }
            self.spool
                .write_all_at(&self.chunk[..count], self.written)
                .map_err(|error| OciError::io("spool", &error))?;
            self.written += count as u64;
        }
    }

    fn config(&mut self, run: &RunConfig) -> Result<Config, OciError> {
        let texts = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let (env, cmd, entrypoint) = (texts(&run.env), texts(&run.cmd), texts(&run.entrypoint));
        let working_dir = run.working_dir.clone().filter(|folder| !folder.is_empty());
        let all = [&env, &cmd, &entrypoint].into_iter().flatten();
        let all = all.chain(&working_dir).chain(&run.user);
        let mut bytes = 0;
        for text in all {
            bytes += text.len() + 1;
            if text.contains('\0') {
                return Err(damaged("configuration", "a text with a zero byte"));
            }
            if text.len() > MAX_TEXT {
                return Err(limit("configuration", "bytes in a text", MAX_TEXT as u64));
            }
        }
        if [&env, &cmd, &entrypoint]
            .iter()
            .any(|list| list.len() > MAX_TEXTS)
        {
            let most = MAX_TEXTS as u64;
            return Err(limit("configuration", "variables or arguments", most));
        }
        if bytes > MAX_CONFIG {
            return Err(limit("configuration", "bytes", MAX_CONFIG as u64));
        }
        let mut pairs = Vec::with_capacity(env.len());
        for variable in env {
            match variable.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    pairs.push((name.to_owned(), value.to_owned()));
                }
                _ => {
                    let text = format!("variable {}", quoted(variable.as_bytes()));
                    return Err(damaged("configuration", text));
                }
            }
        }
        if working_dir
            .as_ref()
            .is_some_and(|folder| !folder.starts_with('/'))
        {
            return Err(damaged(
                "configuration",
                "a working directory that is not absolute",
            ));
        }
        if let Some(folder) = &working_dir {
            self.tree.make_folders(folder.as_bytes())?;
        }
        let user = run.user.as_deref().unwrap_or_default();
        let (passwd, group) = (self.table(b"etc/passwd")?, self.table(b"etc/group")?);
        Ok(Config {
            env: pairs,
            run_as: users::run_as(user, &passwd, &group)?,
            working_dir,
            entrypoint,
            cmd,
        })
    }

    /// Reads a file of the image; one that is missing or too large is empty.
    fn table(&mut self, path: &[u8]) -> Result<Vec<u8>, OciError> {
        let Some((offset, size)) = self.tree.file(path).filter(|(_, size)| *size <= MAX_TABLE)
        else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; size as usize];
        let read = self.spool.read_exact_at(&mut bytes, offset);
        read.map_err(|error| OciError::new(OciCode::Io, "spool", error.to_string()))?;
        Ok(bytes)
    }
}
