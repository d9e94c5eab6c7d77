//! `a99 keys`: creates keys that sign artifacts.

use crate::args::{KeysArgs, KeysCommand, NewKeyArgs};
use crate::failure::{Exit, Failure};
use crate::{output, write};
use agent99::artifact::sign::SecretKey;
use agent99::capabilities::{Clock as _, SystemClock};
use agent99::{Map, Value};

const DAY: u64 = 24 * 60 * 60;

pub(crate) fn run(args: &KeysArgs) -> Result<Exit, Failure> {
    match &args.command {
        KeysCommand::New(args) => new(args),
    }
}

fn new(args: &NewKeyArgs) -> Result<Exit, Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::about("the system gives no randomness", error))?;
    let now = (SystemClock.now_ms() / 1000.0) as u64;
    let expires = args.expires_days.map(|days| now + u64::from(days) * DAY);
    let key = SecretKey::from_seed(&seed, expires);
    let secret = args.dir.join(format!("{}.key.json", args.name));
    let public = args.dir.join(format!("{}.pub.json", args.name));
    // Write the public file first: if it fails, no secret is on disk.
    write::create(&public, key.to_public_json().as_bytes(), write::Access::All)?;
    let written = write::create(
        &secret,
        key.to_secret_json().as_bytes(),
        write::Access::Owner,
    );
    if let Err(failure) = written {
        // Remove the new public file, whose secret key was not written.
        let _ = std::fs::remove_file(&public);
        return Err(failure);
    }
    let id = key.id().to_string();
    if args.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("id", id);
        map.insert("secret", secret.display().to_string());
        map.insert("public", public.display().to_string());
        if let Some(expires) = expires {
            map.insert("expires", expires as f64);
        }
        output::json(&Value::Object(map));
    } else {
        output::note("key", &id);
        output::note("secret, signs", &secret.display().to_string());
        output::note(
            "public, for those who trust it",
            &public.display().to_string(),
        );
    }
    Ok(Exit::Ok)
}
