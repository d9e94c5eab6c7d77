//! A second reader of artifacts, based on `docs/a99b.md` and `docs/bytecode.md` alone.
//!
//! It shares no code with the engine: layouts come from the tables of the pages, and the prose
//! rules (header, hash, source map, fingerprints) are implemented again. It proves that the
//! pages suffice and that files match them. It only decodes; it verifies nothing.

mod pages;
mod read;

pub use pages::Pages;
pub use read::{File, Note, Tree, read};

/// 64-bit FNV-1a over texts, as defined in "Fingerprints".
#[must_use]
pub fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = 14_695_981_039_346_656_037u64;
    for text in texts {
        for byte in text.iter().copied().chain([255]) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(1_099_511_628_211);
        }
    }
    hash
}
