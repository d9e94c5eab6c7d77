//! Version of the translator: a hash of its sources, so that code of another version is
//! never taken for its own.

macro_rules! source {
    ($path:literal) => {
        ($path, include_bytes!($path))
    };
}

/// The sources that determine what is emitted, and what emitted code relies on.
const SOURCES: &[(&str, &[u8])] = &[
    source!("access.rs"),
    source!("aot.rs"),
    source!("code.rs"),
    source!("context.rs"),
    source!("emit/floats.rs"),
    source!("emit/mod.rs"),
    source!("emit/ops.rs"),
    source!("emit/registers.rs"),
    source!("exits.rs"),
    source!("mod.rs"),
    source!("native.rs"),
    source!("profile.rs"),
    source!("region.rs"),
    source!("sampler.rs"),
    source!("structure.rs"),
    source!("version.rs"),
    source!("../interp/compressed.rs"),
    source!("../interp/decode.rs"),
    source!("../interp/inst.rs"),
    source!("../interp/table.rs"),
    source!("../mmu/tlb/code.rs"),
    source!("../mmu/tlb/data.rs"),
    source!("../hart/csr.rs"),
    source!("../hart/mod.rs"),
];

/// FNV-1a of the sources. It guards against mistakes only: all sources are ours.
#[allow(long_running_const_eval, reason = "it reads some 200 KB, once a build")]
#[cfg_attr(
    target_arch = "wasm32",
    allow(unreachable_pub, reason = "hosts use it")
)]
pub const VERSION: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut file = 0;
    while file < SOURCES.len() {
        let bytes = SOURCES[file].1;
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
            at += 1;
        }
        file += 1;
    }
    hash
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn all_sources_of_the_translator_count() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/jit");
        let mut folders = vec![folder.clone()];
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(inner).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&folder).expect("inside");
                let known = |source: &(&str, &[u8])| Path::new(source.0) == name;
                assert!(SOURCES.iter().any(known), "{} is missing", name.display());
            }
        }
    }
}
