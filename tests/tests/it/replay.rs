//! The fuzz targets on their stored inputs: the seeds, and whatever once
//! failed.

use a99_testkit::fuzz::TARGETS;
use std::path::Path;

#[test]
fn stored_inputs_are_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz-inputs");
    for (name, target) in TARGETS {
        let entries = std::fs::read_dir(folder.join(name)).expect("a folder for each target");
        let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{name} has inputs");
        for path in paths {
            let data = std::fs::read(&path).expect("an input");
            // A panic says which input it was.
            eprintln!("{}", path.display());
            target(&data);
        }
    }
}
