//! The types of atoms: what `a99 types` writes, and what `tsc` says of programs with them.

mod harness;

use harness::{Sandbox, a99, a99_in};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn types_are_written_and_printed() {
    let folder = Sandbox::new("types");
    let here = PathBuf::from(folder.path("."));
    let done = a99_in(&here, &["types"]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    let text = std::fs::read_to_string(folder.path("agent99.d.ts")).expect("written");
    assert_eq!(a99(&["types", "-o", "-"], b"").out, text);
    let printed = a99(&["types", "-o", "-", "--json"], b"").json();
    assert_eq!(printed["types"], text);
    let written = a99(&["types", "-o", &folder.path("b.d.ts"), "--json"], b"").json();
    assert_eq!(
        (&written["ok"], &written["bytes"]),
        (&true.into(), &text.len().into())
    );
    let done = a99(&["types", "--json", "-o", &folder.path("none/a.d.ts")], b"");
    let message = done.json()["error"]["message"].to_string();
    assert!(
        done.code == 2 && message.contains("no such file"),
        "{done:?}"
    );

    for part in [
        "declare function httpFetch(input: {",
        "  /** Absolute URL, `http:` or `https:`. */\n  url: string\n",
        "Price: 5. Capability: `fetch`.",
        "  method?: \"GET\" | \"HEAD\"",
        "declare function memoize(input: {",
        "  steps: () => any\n",
        "declare function context(path: string): any",
        "  log(...values: any[]): void",
        "declare function uuid(): Promise<string>",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Forms are written as statements, not as calls.
    for absent in [
        "declare function forEach",
        "declare function varSet",
        "| null | null",
    ] {
        assert!(!text.contains(absent), "{absent}");
    }
}

/// The compiler that judges.
const TYPESCRIPT: &str = "typescript@7.0.2";

/// What `tsc` says of the sources of a folder with a tsconfig.json.
fn tsc(folder: &Path) -> String {
    let done = Command::new("npx")
        .args(["--yes", "-p", TYPESCRIPT, "tsc", "-p"])
        .arg(folder)
        .output()
        .expect("npx starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&done.stdout) + &text(&done.stderr);
    assert_eq!(done.status.success(), !said.contains("error"), "{said}");
    said
}

/// The sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.extension() {
            Some(extension) if extension == "ajs" => found.push(path),
            _ if path.is_dir() => sources(&path, found),
            _ => {}
        }
    }
}

/// The examples pass `tsc --strict`, and a wrong call does not.
#[test]
#[ignore = "needs npx and the registry of npm: `cargo xtask slow` runs it"]
fn the_examples_have_types() {
    let folder = Sandbox::new("tsc");
    let dir = folder.path("agent");
    for template in ["list", "model", "basic"] {
        let dir = match template {
            "basic" => dir.clone(),
            other => folder.path(other),
        };
        let done = a99(&["new", &dir, "--template", template], b"");
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(tsc(Path::new(&dir)), "");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() >= 40, "{}", found.len());
    let mut names = Vec::new();
    for path in &found {
        let name = path
            .strip_prefix(&root)
            .expect("below")
            .with_extension("ts");
        let name = name.display().to_string().replace('/', "_");
        let text = std::fs::read_to_string(path).expect("read");
        std::fs::write(Path::new(&dir).join(&name), text).expect("written");
        names.push(name);
    }
    assert_eq!(tsc(Path::new(&dir)), "");

    let wrong = "export default async function agent() {\n  \
                 const page = await httpFetch({ ur: 'x' })\n  \
                 const n: number = await uuid()\n  \
                 return [page, n, document.title]\n}\n";
    std::fs::write(Path::new(&dir).join("wrong.ts"), wrong).expect("written");
    let said = tsc(Path::new(&dir));
    for place in ["wrong.ts(2,", "wrong.ts(3,", "wrong.ts(4,"] {
        assert!(said.contains(place), "{place}: {said}");
    }
    assert_eq!(said.matches("error TS").count(), 3, "{said}");
}
