//! `a99 new`: writes a first program.

use crate::args::{FormArg, NewArgs, TemplateArg};
use crate::failure::{Exit, Failure};
use crate::{output, write};
use agent99::{Map, Value};
use std::path::Path;

/// Files of a template: name and text.
type Files = &'static [(&'static str, &'static str)];

/// The files of a template: its program in both forms, and what runs it.
struct Template {
    source: &'static str,
    json: &'static str,
    beside: Files,
}

macro_rules! template {
    ($name:literal: $($file:literal),*) => {
        Template {
            source: include_str!(concat!("../templates/", $name, "/agent.ts")),
            json: include_str!(concat!("../templates/", $name, "/agent.json")),
            beside: &[$(($file, include_str!(concat!("../templates/", $name, "/", $file)))),*],
        }
    };
}

const BASIC: Template = template!("basic": "args.json");
const LIST: Template = template!("list": "args.json");
const MODEL: Template = template!("model": "args.json", "script.json");

const TSCONFIG: &str = include_str!("../templates/tsconfig.json");

/// The declarations of the atoms, beside a program in TypeScript.
const TYPES: &str = "agent99.d.ts";

pub(crate) fn run(args: &NewArgs) -> Result<Exit, Failure> {
    let template = match args.template {
        TemplateArg::Basic => BASIC,
        TemplateArg::List => LIST,
        TemplateArg::Model => MODEL,
    };
    let (program, text) = match args.form {
        FormArg::Ts => ("agent.ts", template.source),
        FormArg::Json => ("agent.json", template.json),
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
    let command = command(dir, program, template.beside);
    let mut written = Vec::new();
    let mut create = |file: &str, text: &str| {
        let path = dir.join(file);
        written.push(path.display().to_string());
        write::create(&path, text.as_bytes(), write::Access::All)
    };
    create(program, text)?;
    for (file, text) in template.beside {
        create(file, text)?;
    }
    if args.form == FormArg::Ts {
        create("tsconfig.json", TSCONFIG)?;
        create(TYPES, &agent99::Engine::new().type_declarations())?;
    }
    create("README.md", &readme(program, template.beside))?;
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
fn command(dir: &Path, program: &str, files: Files) -> String {
    let path = |file: &str| {
        let path = dir.join(file).display().to_string();
        let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
        match path.chars().all(plain) {
            true => path,
            false => format!("'{}'", path.replace('\'', "'\\''")),
        }
    };
    let mut line = format!("a99 run {} --args @{}", path(program), path("args.json"));
    if files.iter().any(|(file, _)| *file == "script.json") {
        line.push_str(&format!(" --script {}", path("script.json")));
    }
    line
}

fn readme(program: &str, files: Files) -> String {
    let run = command(Path::new(""), program, files);
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
