//! `a99 compile`: compiles a program to an artifact.

use crate::args::{CompileArgs, EmitForm};
use crate::failure::{Exit, Failure, USAGE};
use crate::layout::layout;
use crate::{input, output, write};
use a99_core::text::hex;
use agent99::artifact::sign::{SecretKey, key_id, sign};
use agent99::artifact::{DecodeOptions, EncodeOptions, header};
use agent99::{Engine, Map, Value};
use std::path::{Path, PathBuf};

const EXTENSION: &str = "a99b";

pub(crate) fn run(args: &CompileArgs) -> Result<Exit, Failure> {
    if args.emit == EmitForm::Json {
        return emit_json(args);
    }
    let to = output_path(args)?;
    let key = args.sign.as_deref().map(secret_key).transpose()?;
    let (agent, source) =
        input::agent(&Engine::builder().lint(true).build(), &args.program.program)?;
    // Check the limits of readers, so that every written artifact can be read.
    let limits = DecodeOptions::default();
    let failed = |error| Failure::artifact(&source.name, error);
    let options = EncodeOptions { strip: args.strip };
    let mut bytes = agent.to_bytes(&options).map_err(failed)?;
    if let Some(key) = &key {
        bytes = sign(&bytes, key, &limits).map_err(failed)?;
    }
    let head = header(&bytes, &limits).map_err(failed)?;
    if to == Path::new(input::STDIN) {
        super::show_warnings(&agent, &source);
        output::bytes(&bytes);
        return Ok(Exit::Ok);
    }
    let inputs = [Some(args.program.program.as_path()), args.sign.as_deref()];
    write::replace(&to, &bytes, inputs.into_iter().flatten())?;
    let signer = head.signature.and_then(key_id).map(|id| id.to_string());
    let name = to.display().to_string();
    if args.program.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("output", name);
        map.insert("bytes", bytes.len() as f64);
        map.insert("content_hash", hex(&head.content_hash));
        map.insert("signed_by", signer.map_or(Value::Null, Value::from));
        map.insert("diagnostics", agent.warnings().to_json());
        output::json(&Value::Object(map));
    } else {
        super::show_warnings(&agent, &source);
        let signed = signer.map_or(String::new(), |id| format!(", signed by key {id}"));
        output::note(&name, &format!("{} bytes{signed}", bytes.len()));
    }
    Ok(Exit::Ok)
}

/// Writes the program as JSON, from its source or its artifact.
fn emit_json(args: &CompileArgs) -> Result<Exit, Failure> {
    let given = [
        (args.sign.is_some(), "--sign"),
        (args.strip, "--strip"),
        (args.program.json, "--json"),
    ];
    if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given) {
        let text = format!("{option} is for artifacts, not for `--emit json`");
        return Err(Failure::usage(text));
    }
    let engine = Engine::builder().lint(true).build();
    let (agent, source) = input::agent(&engine, &args.program.program)?;
    let Some(text) = engine.program_json(&agent) else {
        return Err(Failure::about(&source.name, "the artifact has no source"));
    };
    let text = layout(&String::from_utf8_lossy(&text));
    super::show_warnings(&agent, &source);
    match &args.output {
        Some(path) if path != Path::new(input::STDIN) => {
            let inputs = [args.program.program.as_path()];
            write::replace(path, text.as_bytes(), inputs.into_iter())?;
        }
        _ => output::out(&text),
    }
    Ok(Exit::Ok)
}

/// The output path: as given, or beside the program.
fn output_path(args: &CompileArgs) -> Result<PathBuf, Failure> {
    let program = &args.program.program;
    let stdin = Path::new(input::STDIN);
    match &args.output {
        Some(path) if path == stdin && args.program.json => Err(Failure::coded(
            USAGE[0],
            "the artifact and --json cannot both go to standard output",
            "name a file for the artifact: `-o FILE.a99b`",
        )),
        Some(path) => Ok(path.clone()),
        None if program == stdin => Err(Failure::coded(
            USAGE[0],
            "a program from standard input needs `-o FILE`",
            "name a file for the artifact: `-o FILE.a99b`",
        )),
        None => Ok(program.with_extension(EXTENSION)),
    }
}

fn secret_key(path: &Path) -> Result<SecretKey, Failure> {
    let file = input::read_for("--sign", path)?;
    SecretKey::from_json(&file.bytes).map_err(|error| {
        let help = "name the NAME.key.json that `a99 keys new NAME` made: it signs";
        Failure::advised(&file.name, error, help)
    })
}
