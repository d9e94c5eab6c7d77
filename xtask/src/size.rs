//! `cargo xtask size`: lines of each crate, now and at another commit.
//!
//! Non-blank lines below `src`: product code, comments, and code that only tests compile. Crates
//! that are not shipped are listed separately.

use crate::shell::{Failed, failed, output, root};
use crate::tidy::{Size, sizes, tracked_files};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Name prefixes of crates that are not part of a product.
const TOOLS: [&str; 4] = ["a99-test", "a99-bench", "a99-fuzz", "xtask"];

type Sizes = BTreeMap<String, Size>;

pub(crate) fn size(args: &[&str]) -> Result<(), Failed> {
    let (as_json, since) = match *args {
        [] => (false, None),
        ["--json"] => (true, None),
        ["--since", revision] => (false, Some(revision)),
        ["--since", revision, "--json"] | ["--json", "--since", revision] => (true, Some(revision)),
        _ => return Err(Failed("expected [--since REV] [--json]".to_owned())),
    };
    let now = of_files(&tracked_files()?);
    let before = since.map(at).transpose()?;
    match as_json {
        true => print_json(&now, before.as_ref()),
        false => print_table(&now, before.as_ref()),
    }
    Ok(())
}

fn of_files(files: &[(String, String)]) -> Sizes {
    let product = files.iter().filter(|(path, _)| !path.contains("peers/"));
    sizes(product.map(|(path, text)| (&**path, &**text)))
}

/// The sizes at a commit.
fn at(revision: &str) -> Result<Sizes, Failed> {
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(root());
        git
    };
    let list = output(git().args(["ls-tree", "-r", "--name-only", revision]))?;
    let paths = list
        .lines()
        .filter(|path| path.ends_with(".rs") || path.ends_with("Cargo.toml"));
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    let mut batch = git()
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed("git cat-file", error))?;
    let names: String = paths
        .iter()
        .map(|path| format!("{revision}:{path}\n"))
        .collect();
    let mut stdin = batch.stdin.take().expect("it is piped");
    // In parallel with reading: the pipe's buffer is smaller than all names.
    let writer = std::thread::spawn(move || stdin.write_all(names.as_bytes()));
    let out = batch
        .wait_with_output()
        .map_err(|error| failed("git cat-file", error))?;
    let written = writer.join().expect("it only writes");
    written.map_err(|error| failed("git cat-file", error))?;
    let files = blobs(&out.stdout, paths).ok_or_else(|| failed(revision, "unreadable answer"))?;
    Ok(of_files(&files))
}

/// The files in an answer of `git cat-file --batch`: `HASH blob BYTES`, a line feed, the bytes, a
/// line feed.
fn blobs(mut answer: &[u8], paths: Vec<String>) -> Option<Vec<(String, String)>> {
    let mut files = Vec::new();
    for path in paths {
        let end = answer.iter().position(|byte| *byte == b'\n')?;
        let head = str::from_utf8(&answer[..end]).ok()?;
        let bytes: usize = head.rsplit(' ').next()?.parse().ok()?;
        let text = answer.get(end + 1..end + 1 + bytes)?;
        files.push((path, String::from_utf8_lossy(text).into_owned()));
        answer = answer.get(end + bytes + 2..)?;
    }
    Some(files)
}

fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|start| name.starts_with(start))
}

fn sum(sizes: &Sizes, tools: bool) -> Size {
    let of = sizes.iter().filter(|(name, _)| is_tool(name) == tools);
    of.fold(Size::default(), |sum, (_, size)| Size {
        code: sum.code + size.code,
        comments: sum.comments + size.comments,
        tests: sum.tests + size.tests,
    })
}

fn print_json(now: &Sizes, before: Option<&Sizes>) {
    let size =
        |size: &Size| json!({"code": size.code, "comments": size.comments, "tests": size.tests});
    let all = |sizes: &Sizes| {
        let crates: BTreeMap<_, _> = sizes.iter().map(|(k, v)| (k.clone(), size(v))).collect();
        json!({"product": size(&sum(sizes, false)), "tools": size(&sum(sizes, true)), "crates": crates})
    };
    let mut report = all(now);
    if let Some(before) = before {
        report["before"] = all(before);
    }
    println!("{report}");
}

fn print_table(now: &Sizes, before: Option<&Sizes>) {
    let names: BTreeSet<&String> = now
        .keys()
        .chain(before.into_iter().flatten().map(|(k, _)| k))
        .collect();
    println!(
        "{:28}{:>9}{:>10}{:>9}",
        "crate", "code", "comments", "tests"
    );
    for tools in [false, true] {
        for name in names.iter().filter(|name| is_tool(name) == tools) {
            let none = Size::default();
            let before = before.map(|sizes| sizes.get(*name).unwrap_or(&none));
            print_row(name, now.get(*name).unwrap_or(&none), before);
        }
        let before = before.map(|sizes| sum(sizes, tools));
        let name = if tools { "tools and tests" } else { "product" };
        print_row(name, &sum(now, tools), before.as_ref());
    }
}

fn print_row(name: &str, size: &Size, before: Option<&Size>) {
    print!(
        "{name:28}{:>9}{:>10}{:>9}",
        size.code, size.comments, size.tests
    );
    match before {
        Some(before) => println!("{:>+9}", size.code as i64 - before.code as i64),
        None => println!(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_of_git_are_read() {
        let paths = ["a.rs", "b.rs"].map(str::to_owned).to_vec();
        let answer = b"0a blob 3\nx;\n\n0b blob 0\n\n";
        let files = blobs(answer, paths.clone()).expect("two blobs");
        assert_eq!(files[0].1, "x;\n");
        assert_eq!(files[1].1, "");
        assert!(blobs(b"HEAD:a.rs missing\n", paths).is_none());
    }
}
