//! `a99 verify`: checks an artifact completely, including that its source compiles to its code.

use crate::args::VerifyArgs;
use crate::failure::{Exit, Failure};
use crate::input::{self, Source};
use crate::output;
use a99_core::text::hex;
use agent99::artifact::sign::{TrustedKeys, key_id};
use agent99::artifact::{DecodeOptions, codes, header};
use agent99::{Engine, Map, SourceCheck, Value};

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Failure> {
    if let Some(keys) = &args.require_signed
        && *keys == args.program.program
    {
        return Err(Failure::usage("the artifact and the keys are one file"));
    }
    let keys = args.require_signed.as_deref().map(input::trusted_keys);
    let keys = keys.transpose()?;
    let source = input::read(&args.program.program)?;
    let verified = verify(&source, keys.as_ref())?;
    if args.program.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.extend(verified.to_json());
        output::json(&Value::Object(map));
    } else {
        output::note(&source.name, &verified.to_text());
    }
    Ok(Exit::Ok)
}

/// An artifact that passed every check.
#[derive(Debug)]
pub(crate) struct Verified {
    source: SourceCheck,
    signer: Option<String>,
    signature_checked: bool,
    content_hash: String,
}

impl Verified {
    /// One line for people.
    pub(crate) fn to_text(&self) -> String {
        let found = match self.source {
            SourceCheck::Absent => "no source",
            SourceCheck::Unread => "source not checked: built without the feature `source`",
            _ => "source matches code",
        };
        let signature = match (&self.signer, self.signature_checked) {
            (Some(id), true) => format!("signed by key {id}"),
            (Some(id), false) => format!("signature of key {id} not checked"),
            (None, _) => "not signed".to_owned(),
        };
        format!("ok, {found}, {signature}")
    }

    /// As members: `source`, `signed_by`, `signature_checked`, `content_hash`.
    pub(crate) fn to_json(&self) -> Map {
        let mut map = Map::new();
        map.insert(
            "source",
            match self.source {
                SourceCheck::Absent => "absent",
                SourceCheck::Unread => "unread",
                _ => "matches",
            },
        );
        let signer = self.signer.clone();
        map.insert("signed_by", signer.map_or(Value::Null, Value::from));
        map.insert("signature_checked", self.signature_checked);
        map.insert("content_hash", self.content_hash.as_str());
        map
    }
}

/// Checks an artifact. The content hash is always compared; a signature is checked if there are
/// keys.
pub(crate) fn verify(source: &Source, keys: Option<&TrustedKeys>) -> Result<Verified, Failure> {
    let engine = Engine::new();
    let refused = |error| Failure::artifact(&source.name, error);
    let head = header(&source.bytes, &DecodeOptions::default()).map_err(refused)?;
    if let Some(keys) = keys {
        source.check_signature(keys)?;
    }
    let agent = source.load(&engine)?;
    let found = engine.compare_source(&agent);
    if found == SourceCheck::Differs {
        return Err(Failure::refused(
            &source.name,
            codes::SOURCE_DIFFERS,
            "source does not match code: it compiles to another program, or not at all",
            "what people read in it is not what runs: compile the source again",
        ));
    }
    Ok(Verified {
        source: found,
        signer: head.signature.and_then(key_id).map(|id| id.to_string()),
        signature_checked: keys.is_some(),
        content_hash: hex(&head.content_hash),
    })
}
