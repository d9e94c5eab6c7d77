//! `.a99b`: verified programs as bytes.
//!
//! The format is described in `docs/a99b.md`: a header, a table of sections, the
//! sections, and at the end perhaps a [signature](sign). The same program gives
//! the same bytes, always; what the results of a program depend on is apart
//! from its source and source map, which can be [stripped](EncodeOptions).
//!
//! A file is trusted by nobody. [`decode`] checks every length against the
//! bytes that are there before it allocates, copies each field, and leaves
//! the rest to [`verify`]: [`Artifact::from_bytes`] does both.

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

/// The first bytes of a file: not text, and damaged by whatever changes line
/// ends or stops at the end-of-file character.
pub const MAGIC: [u8; 8] = *b"\0a99b\r\n\x1a";

/// The version of the format. A reader refuses every other.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes of the header before the table of sections.
pub const HEADER_BYTES: usize = 64;

/// Bytes of an entry in the table of sections.
pub const SECTION_BYTES: usize = 12;

/// The largest file that is read unless the host says otherwise: what a JSON
/// program may have (D38). Decoding needs at most about eight times the file's size.
pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// Set in the header's flags if the file has its source.
pub const FLAG_SOURCE: u32 = 1;

/// Set in the header's flags if the file has a source map.
pub const FLAG_SOURCE_MAP: u32 = 2;

/// Set in the header's flags if the file has the text that its source was made of.
pub const FLAG_ORIGIN: u32 = 4;

/// All flags that are known.
const FLAGS: u32 = FLAG_SOURCE | FLAG_SOURCE_MAP | FLAG_ORIGIN;

/// Instruction sets of before whose code means the same here: builtins were added
/// behind theirs, and prices of the metered model rose (D104).
pub const EARLIER_SETS: [u64; 1] = [0x8685_2153_8dd9_b725];

/// A fingerprint of the instruction set: code of one build means the same in
/// another exactly if they agree. 64-bit FNV-1a over the op table, the tables
/// of builtins, in their order, and the version of the prices.
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
    /// The artifact as a file. Deterministic.
    ///
    /// # Errors
    /// A program of 4 GiB or more.
    pub fn to_bytes(&self, options: &EncodeOptions) -> Result<Vec<u8>, ArtifactError> {
        encode::encode(self.program(), options)
    }

    /// Reads a file and verifies it. A signature is not looked at: see
    /// [`sign::check`].
    ///
    /// # Errors
    /// Whatever is wrong with the file, with a stable code and a place.
    pub fn from_bytes(bytes: &[u8], options: &DecodeOptions) -> Result<Artifact, ArtifactError> {
        verify(decode(bytes, options)?).map_err(ArtifactError::refused)
    }
}

impl Program {
    /// SHA-256 of all that the program's results depend on: neither its source
    /// nor its source map, so that stripping does not change it.
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
