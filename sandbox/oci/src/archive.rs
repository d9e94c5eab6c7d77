//! Archive: a tar file whose members are spans of it, or a folder. Nothing is extracted.

use crate::blob::Span;
use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::Limits;
use crate::tar::{EntryKind, Tar};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Links from a member to another: archives of older `docker save` have them for layers
/// that images share.
const MAX_LINKS: u32 = 8;

/// Beginnings of compressed files.
const COMPRESSED: [&[u8]; 4] = [
    &[0x1f, 0x8b],
    &[0x28, 0xb5, 0x2f, 0xfd],
    b"BZh",
    &[0xfd, b'7', b'z', b'X', b'Z'],
];

/// A file of an archive.
#[derive(Debug)]
pub(crate) enum Member {
    File(u64, u64),
    /// The name that it leads to.
    Link(Vec<u8>),
}

/// An archive; see the module.
#[derive(Debug)]
pub(crate) enum Archive {
    Tar {
        file: Rc<File>,
        members: HashMap<Vec<u8>, Member>,
    },
    Folder(File),
}

impl Archive {
    pub(crate) fn open(file: File, limits: &Limits) -> Result<Self, OciError> {
        let failed = |error: std::io::Error| OciError::io("archive", &error);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Ok(Self::Folder(file));
        }
        if !metadata.is_file() {
            let text = "neither a file nor a folder";
            return Err(OciError::new(OciCode::Unsupported, "archive", text)
                .help("save the image to a file first: `docker save -o FILE NAME`"));
        }
        let mut start = [0; 8];
        let count = file.read_at(&mut start, 0).map_err(failed)?;
        let start = &start[..count];
        if COMPRESSED.iter().any(|magic| start.starts_with(magic)) {
            let text = "the whole archive is compressed";
            return Err(OciError::new(OciCode::Unsupported, "archive", text)
                .help("unpack it first, as with `gunzip FILE`"));
        }
        let file = Rc::new(file);
        let span = Span {
            file: Rc::clone(&file),
            position: 0,
            end: metadata.len(),
        };
        let members = members(span, limits)?;
        Ok(Self::Tar { file, members })
    }

    /// Finds a file; `None` if there is none.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Span>, OciError> {
        match self {
            Self::Tar { file, members } => {
                let mut name = normal(name.as_bytes());
                for _ in 0..MAX_LINKS {
                    match name.as_ref().and_then(|name| members.get(name)) {
                        None => return Ok(None),
                        Some(Member::File(offset, size)) => {
                            return Ok(Some(Span {
                                file: Rc::clone(file),
                                position: *offset,
                                end: offset.saturating_add(*size),
                            }));
                        }
                        Some(Member::Link(target)) => name = Some(target.clone()),
                    }
                }
                Err(damaged(
                    quoted(name.unwrap_or_default().as_slice()),
                    "links in a circle",
                ))
            }
            Self::Folder(folder) => open_beneath(folder, name),
        }
    }

    /// Reads a file that must be there.
    pub(crate) fn get(&self, name: &str) -> Result<Span, OciError> {
        self.find(name)?.ok_or_else(|| {
            let text = "the archive does not have it";
            OciError::new(OciCode::NotFound, quoted(name.as_bytes()), text)
                .help("the archive is incomplete: fetch or save the image again")
        })
    }
}

/// Opens a file below a folder; links on the way are refused.
fn open_beneath(folder: &File, name: &str) -> Result<Option<Span>, OciError> {
    let place = quoted(name.as_bytes());
    let Some(name) = normal(name.as_bytes()) else {
        return Ok(None);
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match openat2(folder, name, flags, Mode::empty(), resolve) {
        Ok(opened) => File::from(opened),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(OciError::io(place, &error.into())),
    };
    let metadata = opened.metadata();
    let metadata = metadata.map_err(|error| OciError::io(&place, &error))?;
    if !metadata.is_file() {
        return Err(damaged(place, "it is not a file"));
    }
    Ok(Some(Span {
        file: Rc::new(opened),
        position: 0,
        end: metadata.len(),
    }))
}

/// Lists the members of a tar file.
fn members(span: Span, limits: &Limits) -> Result<HashMap<Vec<u8>, Member>, OciError> {
    let mut tar = Tar::new(span, limits);
    let mut members = HashMap::new();
    let mut count = 0;
    while let Some(entry) = tar.next()? {
        count += 1;
        if count > limits.members {
            return Err(limit(
                "archive",
                "entries beside those of layers",
                limits.members,
            ));
        }
        let Some(name) = normal(&entry.path) else {
            // Nothing asks for it.
            continue;
        };
        let member = match entry.kind {
            EntryKind::File => {
                let end = tar.position.saturating_add(entry.size);
                if end > tar.input.end {
                    return Err(OciError::io(
                        quoted(&name),
                        &std::io::ErrorKind::UnexpectedEof.into(),
                    ));
                }
                Member::File(tar.position, entry.size)
            }
            EntryKind::HardLink => match normal(&entry.target) {
                Some(target) => Member::Link(target),
                None => continue,
            },
            EntryKind::Link => match beside(&name, &entry.target) {
                Some(target) => Member::Link(target),
                None => continue,
            },
            EntryKind::Folder | EntryKind::Fifo | EntryKind::Device => continue,
        };
        members.insert(name, member);
    }
    Ok(members)
}

/// Normal form of a name; `None` if it leads out of the archive.
fn normal(name: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join(&b'/'))
}

/// The name that a link of that name leads to.
fn beside(name: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let folder = name.iter().rposition(|byte| *byte == b'/');
    let folder = folder.map_or(&b""[..], |slash| &name[..slash]);
    normal(&[folder, b"/", target].concat())
}
