//! `a99 verify`: every check of an artifact, and whether its source is that of
//! its code.

use crate::args::VerifyArgs;
use crate::failure::{Exit, Failure};
use crate::input::{self, Source};
use crate::output;
use a99_core::text::hex;
use agent99::artifact::sign::{TrustedKeys, key_id};
use agent99::artifact::{DecodeOptions, codes, header};
use agent99::{Engine, Map, SourceCheck, Value};

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Failure> {
    if let Some(keys) = &args.require_signed
        && *keys == args.program.program
    {
        return Err(Failure::usage("the artifact and the keys are one file"));
    }
    let keys = args.require_signed.as_deref().map(input::trusted_keys);
    let keys = keys.transpose()?;
    let source = input::read(&args.program.program)?;
    report(&source, keys.as_ref(), args.program.json)
}

/// Checks an artifact and reports what was found. The hash is compared even where
/// nobody must have signed it; a signature is checked if there are keys.
pub(crate) fn report(
    source: &Source,
    keys: Option<&TrustedKeys>,
    json: bool,
) -> Result<Exit, Failure> {
    let engine = Engine::new();
    let refused = |error| Failure::artifact(&source.name, error);
    let head = header(&source.bytes, &DecodeOptions::default()).map_err(refused)?;
    if let Some(keys) = keys {
        source.check_signature(keys)?;
    }
    let agent = source.load(&engine)?;
    let (state, found) = match engine.compare_source(&agent) {
        SourceCheck::Matches => ("matches", "source matches code"),
        SourceCheck::Absent => ("absent", "no source"),
        SourceCheck::Differs => {
            return Err(Failure::refused(
                &source.name,
                codes::SOURCE_DIFFERS,
                "source does not match code: it compiles to another program, or not at all",
                "what people read in it is not what runs: compile the source again",
            ));
        }
    };
    let signer = head.signature.and_then(key_id).map(|id| id.to_string());
    let signature = match (&signer, keys) {
        (Some(id), Some(_)) => format!("signed by key {id}"),
        (Some(id), None) => format!("signature of key {id} not checked"),
        (None, _) => "not signed".to_owned(),
    };
    if json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("source", state);
        map.insert("signed_by", signer.map_or(Value::Null, Value::from));
        map.insert("signature_checked", keys.is_some());
        map.insert("content_hash", hex(&head.content_hash));
        output::json(&Value::Object(map));
    } else {
        output::note(&source.name, &format!("ok, {found}, {signature}"));
    }
    Ok(Exit::Ok)
}
