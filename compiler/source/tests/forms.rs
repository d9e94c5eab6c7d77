//! Tests the lowering of forms: `forms/NAME.ajs` becomes `forms/NAME.json`. `BLESS=1` writes the
//! JSON files.
#![allow(
    clippy::disallowed_methods,
    reason = "the product touches no files, its test does"
)]

use a99_core::json::{Document, Limits};
use a99_core::sig::{AtomSig, Signatures};
use a99_vm::atom::AtomSet;
use std::fs;
use std::path::Path;

/// The atoms of the language, and the signature of those that set and delete members.
struct Atoms(AtomSet, AtomSig);

impl Signatures for Atoms {
    fn signature(&self, op: &str) -> Option<&AtomSig> {
        let known = self.0.signature(op);
        known.or_else(|| matches!(op, "memberSet" | "memberDelete").then_some(&self.1))
    }

    fn op_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        self.0.op_names()
    }
}

#[test]
fn forms_become_these_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms");
    let atoms = Atoms(a99_atoms::all_atoms(), AtomSig::new("memberSet", "", 0));
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            continue;
        }
        count += 1;
        let source = fs::read(&path).expect("a source");
        let read = a99_source::read(&source, &atoms);
        let read = read.unwrap_or_else(|found| {
            panic!(
                "{}",
                found.render(Some((&path.display().to_string(), &source)))
            )
        });
        let document = Document::parse(read.json, &Limits::default()).expect("JSON");
        let nodes = read.places.len();
        let document = document.with_origin(source.clone(), read.places);
        assert!(
            document.has_origin(),
            "{nodes} places in {}",
            path.display()
        );
        let text = document.source().map(<[u8]>::to_vec).unwrap_or_default();
        let pretty = pretty(&String::from_utf8(text).expect("UTF-8"));
        let golden = path.with_extension("json");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &pretty).expect("written");
        }
        let kept = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            kept == pretty,
            "{} differs; BLESS=1 writes it",
            golden.display()
        );
    }
    assert!(count >= 9, "{count}");
}

/// Puts each step on a line.
fn pretty(json: &str) -> String {
    let mut out = json.replace("{\"op\":", "\n{\"op\":");
    out.push('\n');
    out.split_off(1)
}
