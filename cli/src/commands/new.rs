//! `a99 new`: writes a first program.

use crate::args::{NewArgs, TemplateArg};
use crate::failure::{Exit, Failure};
use crate::{output, write};
use agent99::{Map, Value};
use std::path::Path;

/// The files of a template: name and text.
type Files = &'static [(&'static str, &'static str)];

const BASIC: Files = &[
    ("agent.json", include_str!("../templates/basic/agent.json")),
    ("args.json", include_str!("../templates/basic/args.json")),
];

const LIST: Files = &[
    ("agent.json", include_str!("../templates/list/agent.json")),
    ("args.json", include_str!("../templates/list/args.json")),
];

const MODEL: Files = &[
    ("agent.json", include_str!("../templates/model/agent.json")),
    ("args.json", include_str!("../templates/model/args.json")),
    (
        "script.json",
        include_str!("../templates/model/script.json"),
    ),
];

const SOURCE: Files = &[
    ("agent.ts", include_str!("../templates/source/agent.ts")),
    ("args.json", include_str!("../templates/source/args.json")),
    (
        "tsconfig.json",
        include_str!("../templates/source/tsconfig.json"),
    ),
];

/// The declarations of the atoms, beside a program in TypeScript.
const TYPES: &str = "agent99.d.ts";

pub(crate) fn run(args: &NewArgs) -> Result<Exit, Failure> {
    let files = match args.template {
        TemplateArg::Basic => BASIC,
        TemplateArg::List => LIST,
        TemplateArg::Model => MODEL,
        TemplateArg::Source => SOURCE,
    };
    let types = match args.template {
        TemplateArg::Source => Some(super::types::text()?),
        _ => None,
    };
    let dir = &args.name;
    let name = dir.display().to_string();
    let failed = |error| Failure::of_file(&name, dir, &error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    if std::fs::read_dir(dir).map_err(failed)?.next().is_some() {
        return Err(Failure::advised(
            &name,
            "the folder is not empty, and nothing is overwritten",
            "give another name, `a99 new NAME`",
        ));
    }
    let command = command(dir, files);
    let mut written = Vec::new();
    let mut create = |file: &str, text: &str| {
        let path = dir.join(file);
        written.push(path.display().to_string());
        write::create(&path, text.as_bytes(), write::Access::All)
    };
    for (file, text) in files {
        create(file, text)?;
    }
    if let Some(types) = types {
        create(TYPES, &types)?;
    }
    create("README.md", &readme(files))?;
    if args.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert(
            "files",
            Value::Array(written.into_iter().map(Value::from).collect()),
        );
        map.insert("run", command);
        output::json(&Value::Object(map));
    } else {
        output::note(&name, &format!("written; run it with\n  {command}"));
    }
    Ok(Exit::Ok)
}

/// The command line that runs the files in a folder.
fn command(dir: &Path, files: Files) -> String {
    let path = |file: &str| {
        let path = dir.join(file).display().to_string();
        let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
        match path.chars().all(plain) {
            true => path,
            false => format!("'{}'", path.replace('\'', "'\\''")),
        }
    };
    let mut line = format!(
        "a99 run {} --args @{}",
        path(program(files)),
        path("args.json")
    );
    if files.iter().any(|(file, _)| *file == "script.json") {
        line.push_str(&format!(" --script {}", path("script.json")));
    }
    line
}

/// The program, which is the first file.
fn program(files: Files) -> &'static str {
    files.first().map_or("agent.json", |(file, _)| *file)
}

fn readme(files: Files) -> String {
    let run = command(Path::new(""), files);
    let program = program(files);
    let types = match program.ends_with(".ts") {
        true => format!(
            "\nCheck its types: `npx -p typescript tsc`. `{TYPES}` has the types of the atoms; \
             `a99 types` writes it.\n"
        ),
        false => String::new(),
    };
    format!(
        "# An agent program\n\nRun it: `{run}`\n\nCheck it: `a99 check {program}`; check it \
         after each change: `a99 watch check {program}`.\n{types}"
    )
}
