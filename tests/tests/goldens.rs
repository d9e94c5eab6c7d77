//! Goldens: a program and its code side by side, so that a change of lowering
//! is seen as a diff. Each file holds the program, a line `---`, and the
//! disassembly. `cargo xtask bless` rewrites the second part.

use std::fs;
use std::path::{Path, PathBuf};

const DIVIDER: &str = "\n---\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens")
}

#[test]
fn code_is_as_recorded() {
    let bless = std::env::var_os("BLESS").is_some();
    let engine = agent99::Engine::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the folder of goldens")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(files.len() >= 8, "goldens are missing");
    for file in files {
        let text = fs::read_to_string(&file).expect("a golden");
        let (program, recorded) = text.split_once(DIVIDER).unwrap_or((text.trim_end(), ""));
        let agent = engine.compile(program).expect("a golden compiles");
        let code = agent.disassemble();
        if bless {
            fs::write(&file, format!("{program}{DIVIDER}{code}")).expect("to write");
        } else {
            assert_eq!(
                recorded,
                code,
                "{} differs; see `cargo xtask bless`",
                file.display()
            );
        }
    }
}
