//! Encodes a program as the bytes of a file.

use super::error::{ArtifactError, codes};
use super::sections::{KINDS, SectionKind, write};
use super::{
    FLAG_ORIGIN, FLAG_SOURCE, FLAG_SOURCE_MAP, FORMAT_VERSION, HEADER_BYTES, MAGIC, SECTION_BYTES,
    instruction_set,
};
use crate::program::Program;
use sha2::{Digest, Sha256};

/// Choices in encoding a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Omits the source and the source map. Results and fuel stay the same. Errors then have no
    /// pointer, trace events no input, and host prices that depend on a step's input see no input.
    pub strip: bool,
}

/// The sections that a program's results depend on.
pub(super) fn semantic_sections(p: &Program) -> impl Iterator<Item = (SectionKind, Vec<u8>)> + '_ {
    KINDS
        .iter()
        .copied()
        .filter(|kind| *kind < SectionKind::SourceMap)
        .filter_map(|kind| write(p, kind).map(|bytes| (kind, bytes)))
}

/// Encodes a program as an unsigned file.
pub(super) fn encode(p: &Program, options: &EncodeOptions) -> Result<Vec<u8>, ArtifactError> {
    let mut sections: Vec<(SectionKind, Vec<u8>)> = semantic_sections(p).collect();
    let mut flags = 0;
    if !options.strip {
        for (kind, flag) in [
            (SectionKind::SourceMap, FLAG_SOURCE_MAP),
            (SectionKind::Source, FLAG_SOURCE),
            (SectionKind::OriginPlaces, FLAG_ORIGIN),
            (SectionKind::Origin, FLAG_ORIGIN),
        ] {
            if let Some(bytes) = write(p, kind) {
                sections.push((kind, bytes));
                flags |= flag;
            }
        }
    }
    let mut offset = HEADER_BYTES + SECTION_BYTES * sections.len();
    let total: usize = offset + sections.iter().map(|s| s.1.len()).sum::<usize>();
    let Ok(length) = u32::try_from(total) else {
        return Err(ArtifactError::new(
            codes::TOO_LARGE,
            "the program has 4 GiB or more",
            "split the program, or load its data at run time",
        ));
    };
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&instruction_set().to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(sections.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 32]);
    for (kind, bytes) in &sections {
        // Both fit, because their sum does.
        for field in [*kind as u32, offset as u32, bytes.len() as u32] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        offset += bytes.len();
    }
    for (_, bytes) in &sections {
        out.extend_from_slice(bytes);
    }
    let hash = content_hash(&out);
    out[32..HEADER_BYTES].copy_from_slice(&hash);
    Ok(out)
}

/// SHA-256 of the file without the hash and the signature. The bytes hold at least a header.
pub(super) fn content_hash(unsigned: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(&unsigned[..32]);
    hash.update(&unsigned[HEADER_BYTES..]);
    hash.finalize().into()
}
