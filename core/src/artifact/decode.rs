//! Decodes the bytes of a file into an unverified program.

use super::encode::content_hash;
use super::error::{ArtifactError, codes};
use super::sections::{KINDS, SectionKind, read};
use super::{
    DEFAULT_MAX_BYTES, EARLIER_SETS, FLAG_ORIGIN, FLAG_SOURCE, FLAG_SOURCE_MAP, FLAGS,
    FORMAT_VERSION, HEADER_BYTES, MAGIC, SECTION_BYTES, instruction_set, sign,
};
use crate::program::Program;

/// Limits on a file that is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeOptions {
    /// The largest accepted file size in bytes.
    pub max_bytes: usize,
}

impl Default for DecodeOptions {
    /// [`DEFAULT_MAX_BYTES`].
    fn default() -> DecodeOptions {
        DecodeOptions {
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }
}

/// A checked header and table of sections.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// [`super::FLAG_SOURCE`], [`super::FLAG_SOURCE_MAP`] and [`super::FLAG_ORIGIN`].
    pub flags: u32,
    /// SHA-256 of the file without this hash and the signature.
    pub content_hash: [u8; 32],
    /// Kind and bytes of each section, in file order.
    pub sections: Vec<(SectionKind, &'a [u8])>,
    /// Byte offset of each section in the file.
    pub offsets: Vec<usize>,
    /// The signature after the sections, if the file is signed.
    pub signature: Option<&'a [u8]>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

/// Reads the header and the table of sections, and compares the content hash.
///
/// # Errors
/// [`codes::TOO_LARGE`], and the codes for a malformed header, table of sections or hash.
pub fn header<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<Header<'a>, ArtifactError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(ArtifactError::new(
            codes::NO_ARTIFACT,
            "not an Agent99 artifact: the first bytes are others",
            "make one with `a99 compile PROGRAM.json -o PROGRAM.a99b`",
        )
        .at(0));
    }
    if bytes.len() > options.max_bytes {
        return Err(ArtifactError::new(
            codes::TOO_LARGE,
            format!(
                "the file has {} bytes, and {} are allowed",
                bytes.len(),
                options.max_bytes
            ),
            "raise the limit, or strip the source",
        ));
    }
    if bytes.len() < HEADER_BYTES {
        return Err(truncated(bytes.len(), HEADER_BYTES));
    }
    check_version(bytes)?;
    let length = word(bytes, 24) as usize;
    if length > bytes.len() || length < HEADER_BYTES {
        return Err(truncated(bytes.len(), length));
    }
    let (unsigned, rest) = bytes.split_at(length);
    let signature = match rest.len() {
        0 => None,
        sign::SIGNATURE_BYTES => Some(rest),
        _ => {
            let text = format!("{} bytes follow the artifact's end", rest.len());
            return Err(ArtifactError::damaged(codes::WRONG_LENGTH, text).at(length));
        }
    };
    let mut hash = [0; 32];
    hash.copy_from_slice(&bytes[32..HEADER_BYTES]);
    if content_hash(unsigned) != hash {
        return Err(ArtifactError::damaged(
            codes::WRONG_HASH,
            "the content does not have the hash that the header says",
        )
        .at(32));
    }
    let (sections, offsets) = sections(unsigned)?;
    let flags = word(bytes, 12);
    let says = |(kind, flag): (SectionKind, u32)| {
        let has = sections.iter().any(|s: &(SectionKind, _)| s.0 == kind);
        has == (flags & flag != 0)
    };
    let flagged = [
        (SectionKind::Source, FLAG_SOURCE),
        (SectionKind::SourceMap, FLAG_SOURCE_MAP),
        (SectionKind::OriginPlaces, FLAG_ORIGIN),
        (SectionKind::Origin, FLAG_ORIGIN),
    ];
    let has_origin = flags & FLAG_ORIGIN != 0;
    if !flagged.into_iter().all(says) || has_origin && flags & FLAG_SOURCE == 0 {
        return Err(ArtifactError::damaged(
            codes::BAD_SECTIONS,
            "the flags do not say which sections there are",
        )
        .at(12));
    }
    Ok(Header {
        flags,
        content_hash: hash,
        sections,
        offsets,
        signature,
    })
}

fn truncated(is: usize, wanted: usize) -> ArtifactError {
    ArtifactError::damaged(
        codes::WRONG_LENGTH,
        format!("the file has {is} bytes, and {wanted} are needed"),
    )
    .at(is)
}

fn check_version(bytes: &[u8]) -> Result<(), ArtifactError> {
    let version = word(bytes, 8);
    if version != FORMAT_VERSION {
        let help = if version > FORMAT_VERSION {
            "use a newer Agent99, or compile the source with this one"
        } else {
            "compile the source again"
        };
        return Err(ArtifactError::new(
            codes::UNKNOWN_VERSION,
            format!("format version {version}, and this reader knows {FORMAT_VERSION}"),
            help,
        )
        .at(8));
    }
    let flags = word(bytes, 12);
    if flags & !FLAGS != 0 {
        return Err(ArtifactError::new(
            codes::UNKNOWN_VERSION,
            format!("unknown feature flags {:#x}", flags & !FLAGS),
            "use a newer Agent99, or compile the source with this one",
        )
        .at(12));
    }
    let set = u64::from(word(bytes, 16)) | u64::from(word(bytes, 20)) << 32;
    if set != instruction_set() && !EARLIER_SETS.contains(&set) {
        return Err(ArtifactError::new(
            codes::OTHER_INSTRUCTIONS,
            format!(
                "compiled for instruction set {set:016x}, and this machine has {:016x}",
                instruction_set()
            ),
            "another version of Agent99 made this file: compile the source again",
        )
        .at(16));
    }
    Ok(())
}

type Sections<'a> = (Vec<(SectionKind, &'a [u8])>, Vec<usize>);

/// Reads the table of sections: each kind at most once, in ascending order, without gaps, up to the
/// end of the bytes.
fn sections(unsigned: &[u8]) -> Result<Sections<'_>, ArtifactError> {
    let wrong =
        |at: usize, text: String| Err(ArtifactError::damaged(codes::BAD_SECTIONS, text).at(at));
    let count = word(unsigned, 28) as usize;
    if count > KINDS.len() {
        return wrong(28, format!("{count} sections"));
    }
    let mut next = HEADER_BYTES + SECTION_BYTES * count;
    if next > unsigned.len() {
        return wrong(
            28,
            "the table of sections is longer than the file".to_owned(),
        );
    }
    let mut list: Vec<(SectionKind, &[u8])> = Vec::with_capacity(count);
    let mut offsets = Vec::with_capacity(count);
    for number in 0..count {
        let at = HEADER_BYTES + SECTION_BYTES * number;
        let Some(kind) = SectionKind::of(word(unsigned, at)) else {
            return wrong(
                at,
                format!("no section has the number {}", word(unsigned, at)),
            );
        };
        if list.last().is_some_and(|last| last.0 >= kind) {
            return wrong(at, format!("the section {} is out of order", kind.name()));
        }
        let (offset, length) = (
            word(unsigned, at + 4) as usize,
            word(unsigned, at + 8) as usize,
        );
        let bytes = unsigned.get(offset..).and_then(|rest| rest.get(..length));
        let (Some(bytes), true) = (bytes, offset == next) else {
            return wrong(at, format!("the section {} lies elsewhere", kind.name()));
        };
        next += length;
        list.push((kind, bytes));
        offsets.push(offset);
    }
    if next != unsigned.len() {
        return wrong(next, "bytes that belong to no section".to_owned());
    }
    for &kind in KINDS {
        if !kind.is_optional() && !list.iter().any(|s| s.0 == kind) {
            return wrong(28, format!("the section {} is missing", kind.name()));
        }
    }
    Ok((list, offsets))
}

/// Decodes a file into an unverified program. Allocates at most about eight times the file's size.
///
/// # Errors
/// Those of [`header`], and [`codes::BAD_CONTENT`].
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Program, ArtifactError> {
    let header = header(bytes, options)?;
    let mut program = Program::default();
    for ((kind, section), offset) in header.sections.iter().zip(&header.offsets) {
        read(&mut program, *kind, section).map_err(|wrong| {
            let text = format!("section {}: {}", kind.name(), wrong.what);
            ArtifactError::damaged(codes::BAD_CONTENT, text).at(offset + wrong.at)
        })?;
    }
    Ok(program)
}
