//! `a99 agent new`: writes an agent that answers messages.

use super::config::FILE;
use super::line;
use crate::args::NewAgentArgs;
use crate::failure::{Exit, Failure};
use crate::{output, write};
use serde_json::json;
use std::path::Path;

const PROGRAM: &str = include_str!("../templates/live/agent.ajs");

/// The agent's channel.
const CHANNEL: &str = "general";

pub(crate) fn run(args: &NewAgentArgs) -> Result<Exit, Failure> {
    let name = &args.name;
    let dir = match args.folder == Path::new(".") {
        true => Path::new(name).to_path_buf(),
        false => args.folder.join(name),
    };
    let shown = dir.display().to_string();
    let failed = |error| Failure::of_file(&shown, &dir, &error);
    if !args.folder.is_dir() {
        let why = "there is no such folder";
        let help = "make it first, or name another: `--in FOLDER`";
        return Err(Failure::advised(
            &args.folder.display().to_string(),
            why,
            help,
        ));
    }
    std::fs::create_dir_all(&dir).map_err(failed)?;
    if std::fs::read_dir(&dir).map_err(failed)?.next().is_some() {
        let why = "the folder is not empty, and nothing is overwritten";
        return Err(Failure::advised(
            &shown,
            why,
            "give another name, `a99 agent new NAME`",
        ));
    }
    let program = format!("{name}.ajs");
    let files = [
        (FILE, manifest(name, &program)),
        (program.as_str(), PROGRAM.to_owned()),
        ("README.md", readme(name, &program)),
    ];
    let mut written = Vec::new();
    for (file, text) in &files {
        let path = dir.join(file);
        write::create(&path, text.as_bytes(), write::Access::All)?;
        written.push(path.display().to_string());
    }
    let host = format!("a99 agent host --config {}", quoted(&dir.join(FILE)));
    if args.json {
        line(&json!({"ok": true, "files": written, "run": host}));
    } else {
        let send = format!(
            "a99 agent send {CHANNEL} Hello --wait --config {}",
            quoted(&dir.join(FILE))
        );
        output::note(
            &shown,
            &format!("written; run it with\n  {host}\nand say something\n  {send}"),
        );
    }
    Ok(Exit::Ok)
}

/// A path, quoted for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

fn manifest(name: &str, program: &str) -> String {
    format!(
        "# Agents, what they run and where they live: `a99 agent host --help`.\n\n\
         [[agent]]\nname = \"{name}\"\nprogram = \"{program}\"\nchannel = \"{CHANNEL}\"\n\
         config = {{ greeting = \"Message\" }}\n"
    )
}

fn readme(name: &str, program: &str) -> String {
    format!(
        "# The agent {name}\n\nRun it in this folder: `a99 agent host`; say something: `a99 agent \
         send {CHANNEL} Hello --wait`; look at it: `a99 agent inspect {name}`. After a change of \
         `{program}` or `{FILE}`: `a99 agent reload`.\n"
    )
}
