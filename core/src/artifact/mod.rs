//! `.a99b`: verified programs as bytes.
//!
//! `docs/a99b.md` describes the format: a header, a table of sections, the sections, and an
//! optional [signature](sign) at the end. Encoding is deterministic. The sections that results
//! depend on are separate from the source and the source map, which can be
//! [stripped](EncodeOptions).
//!
//! Files are untrusted. [`decode`] checks every length against the remaining bytes before it
//! allocates, copies each field, and leaves the rest to [`verify`]: [`Artifact::from_bytes`] does
//! both.

mod decode;
mod encode;
mod error;
pub mod layout;
mod sections;
pub mod sign;
#[cfg(test)]
mod tests;
mod wire;

pub use decode::{DecodeOptions, Header, decode, header};
pub use encode::EncodeOptions;
pub use error::{ArtifactError, codes};
pub use sections::SectionKind;

use crate::builtins::{FUNCTIONS, METHODS, NAMESPACES};
use crate::costs::PRICE_VERSION;
use crate::program::Program;
use crate::program::ops::TABLE;
use crate::sig::Fnv;
use crate::verify::{Artifact, verify};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// Magic number of the format. It is not text, and transfers that convert line ends or stop at the
/// end-of-file character damage it.
pub const MAGIC: [u8; 8] = *b"\0a99b\r\n\x1a";

/// Version of the format. A reader refuses all other versions.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes of the header before the table of sections.
pub const HEADER_BYTES: usize = 64;

/// Bytes of an entry of the table of sections.
pub const SECTION_BYTES: usize = 12;

/// Default limit on the file size in bytes, the same as for a JSON program (D38). Decoding
/// allocates at most about eight times the file's size.
pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// Header flag: the file contains its source.
pub const FLAG_SOURCE: u32 = 1;

/// Header flag: the file contains a source map.
pub const FLAG_SOURCE_MAP: u32 = 2;

/// Header flag: the file contains the origin text that its source was generated from.
pub const FLAG_ORIGIN: u32 = 4;

/// All known flags.
const FLAGS: u32 = FLAG_SOURCE | FLAG_SOURCE_MAP | FLAG_ORIGIN;

/// Fingerprints of earlier instruction sets whose code still means the same: later versions
/// appended builtins and raised prices of the metered model (D104).
pub const EARLIER_SETS: [u64; 1] = [0x8685_2153_8dd9_b725];

/// Fingerprint of the instruction set. Two builds agree on the meaning of code exactly if their
/// fingerprints are equal. It is the 64-bit FNV-1a hash of the op table, the builtin tables in
/// order, and the price version.
pub fn instruction_set() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(hash_instruction_set)
}

fn hash_instruction_set() -> u64 {
    let mut hash = Fnv::default();
    for row in TABLE {
        hash.text(row.name.as_bytes());
        for (name, kind) in row.operands {
            hash.text(name.as_bytes());
            hash.text(format!("{kind:?}").as_bytes());
        }
    }
    let functions = FUNCTIONS.iter().flat_map(|row| [row.ns, row.name]);
    let methods = METHODS.iter().map(|row| row.name);
    let namespaces = NAMESPACES.iter().copied();
    for name in functions.chain(methods).chain(namespaces) {
        hash.text(name.as_bytes());
    }
    hash.text(format!("prices-{PRICE_VERSION}").as_bytes());
    hash.0
}

impl Artifact {
    /// Encodes the artifact as a file. The output is deterministic.
    ///
    /// # Errors
    /// The program takes 4 GiB or more.
    pub fn to_bytes(&self, options: &EncodeOptions) -> Result<Vec<u8>, ArtifactError> {
        encode::encode(self.program(), options)
    }

    /// Decodes and verifies a file. Signatures are ignored here: see [`sign::check`].
    ///
    /// # Errors
    /// Any defect of the file, with a stable code and a place.
    pub fn from_bytes(bytes: &[u8], options: &DecodeOptions) -> Result<Artifact, ArtifactError> {
        verify(decode(bytes, options)?).map_err(ArtifactError::refused)
    }
}

impl Program {
    /// SHA-256 of the sections that the program's results depend on. Source and source map are not
    /// part of it, so stripping does not change it.
    pub fn identity(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (kind, bytes) in encode::semantic_sections(self) {
            hash.update((kind as u32).to_le_bytes());
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
        hash.finalize().into()
    }
}
