//! A second reader of artifacts, which knows `docs/a99b.md` and
//! `docs/bytecode.md` and nothing else.
//!
//! It shares no code with the engine: layouts come out of the tables of the
//! pages, and what the prose says (header, hash, source map, fingerprints) is
//! written here again. So it proves that the pages suffice, and that files are
//! what they say. It only decodes; it verifies nothing.

mod pages;
mod read;

pub use pages::Pages;
pub use read::{File, Note, Tree, read};

/// 64-bit FNV-1a over texts, as "Fingerprints" has it.
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
