//! Pages: their commands are run as written, and must print what the page shows.
//!
//! In a block `console`, text after `$ ` is a command, and its output follows, messages first;
//! `...` stands for the rest of a line, and alone on a line for any lines. Every run prints its
//! fuel; most pages omit it. Commands run in a folder with the page's named files and `examples`.

#[allow(dead_code, reason = "the test kit has other tests of pages")]
#[path = "../../tests/src/pages.rs"]
mod fences;
mod harness;

use fences::Fence;
use harness::Sandbox;
use std::path::Path;
use std::process::Command;

/// Least number of commands on all pages, so that a broken parser does not pass silently.
const COMMANDS: usize = 10;

const FUEL: &str = "fuel used: ";

/// A command of a page with its expected output.
#[derive(Debug, PartialEq)]
struct Typed {
    place: String,
    words: Vec<String>,
    shown: Vec<String>,
}

/// The commands of a block; a backslash continues a line.
fn typed(fence: &Fence) -> Vec<Typed> {
    let mut commands: Vec<Typed> = Vec::new();
    let mut begun: Option<String> = None;
    for (index, line) in fence.text.lines().enumerate() {
        let start = begun.take();
        let command = match (&start, line.strip_prefix("$ ")) {
            (Some(start), _) => format!("{start} {}", line.trim_start()),
            (None, Some(command)) => command.to_owned(),
            (None, None) => {
                let last = commands.last_mut().expect("a command before its output");
                last.shown.push(line.to_owned());
                continue;
            }
        };
        match command.strip_suffix('\\') {
            Some(more) => begun = Some(more.trim_end().to_owned()),
            None => commands.push(Typed {
                place: format!("{}:{}", fence.page, fence.line + 1 + index),
                words: words(&command),
                shown: Vec::new(),
            }),
        }
    }
    commands
}

/// Splits a command into words as a shell does: blanks, single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the output matches the page.
fn is_shown(shown: &[String], came: &[&str]) -> bool {
    match shown.split_first() {
        None => came.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=came.len()).any(|skipped| is_shown(rest, &came[skipped..]))
        }
        Some((line, rest)) => came.split_first().is_some_and(|(first, others)| {
            let same = match line.strip_suffix("...") {
                Some(start) => first.starts_with(start),
                None => line == first,
            };
            same && is_shown(rest, others)
        }),
    }
}

/// Runs a command in a folder. Returns its output if the page shows another.
fn difference(command: &Typed, folder: &Path) -> Option<String> {
    let (program, args) = command.words.split_first().expect("a command");
    let built = Path::new(env!("CARGO_BIN_EXE_a99"));
    let program = match program.as_str() {
        "a99" => built.as_os_str(),
        other => other.as_ref(),
    };
    // Scripts of the page call the command by its name.
    let mut path = built.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let examples = format!("{}/../examples/", env!("CARGO_MANIFEST_DIR"));
    let args = args.iter().map(|arg| match arg.strip_prefix('@') {
        Some(rest) if rest.starts_with("examples/") => arg.replacen("examples/", &examples, 1),
        None if arg.starts_with("examples/") => arg.replacen("examples/", &examples, 1),
        _ => arg.clone(),
    });
    let done = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("PATH", path)
        .output();
    let done = match done {
        Ok(done) => done,
        Err(error) => return Some(format!("{}: {program:?}: {error}", command.place)),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&done.stderr) + &text(&done.stdout);
    let shows_fuel = command.shown.iter().any(|line| line.starts_with(FUEL));
    let kept = |line: &&str| shows_fuel || !line.starts_with(FUEL);
    let came: Vec<&str> = all.lines().filter(kept).collect();
    let good = is_shown(&command.shown, &came);
    (!good).then(|| format!("{} prints\n{}", command.place, came.join("\n")))
}

/// Runs the commands of all pages whose first word is one of these. Returns their number and the
/// differences.
fn judge(programs: &[&str]) -> (usize, Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut count, mut wrong) = (0, Vec::new());
    for page in fences::pages(&root).expect("the pages") {
        let Some(first) = page.first() else { continue };
        let name = first.page.replace('/', "-");
        let folder = Sandbox::new(&format!("page-{}-{name}", programs[0]));
        for fence in &page {
            if !fence.name.is_empty() {
                folder.file(&fence.name, &fence.text);
            }
            if fence.kind != "console" {
                continue;
            }
            for command in typed(fence) {
                if programs.contains(&command.words[0].as_str()) {
                    count += 1;
                    wrong.extend(difference(&command, Path::new(&folder.path("."))));
                }
            }
        }
    }
    (count, wrong)
}

/// Each command of each page prints what the page shows.
#[test]
fn commands_of_pages_print_what_the_page_shows() {
    let (count, wrong) = judge(&["a99"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= COMMANDS, "only {count} commands were found");
}

/// Code in other languages that calls the command prints what the page shows.
#[test]
#[ignore = "needs node and python3: `cargo xtask slow` runs it"]
fn code_of_pages_prints_what_the_page_shows() {
    let (count, wrong) = judge(&["node", "python3"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 2, "only {count} commands were found");
}

#[test]
fn output_is_compared_line_by_line() {
    let shown = |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| l.to_string()).collect() };
    assert!(is_shown(&shown(&["a", "b"]), &["a", "b"]));
    assert!(!is_shown(&shown(&["a"]), &["a", "b"]));
    assert!(!is_shown(&shown(&["a", "b"]), &["a"]));
    assert!(is_shown(&shown(&["a", "..."]), &["a"]));
    assert!(is_shown(&shown(&["...", "c..."]), &["a", "b", "cd"]));
    assert!(!is_shown(&shown(&["...", "c"]), &["a", "b"]));
    assert_eq!(words("a99 run 'a b'  -x"), ["a99", "run", "a b", "-x"]);
}
