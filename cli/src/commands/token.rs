//! `a99 token`: creates, lists and revokes the tokens of servers.

use crate::args::{NewTokenArgs, TokenArgs, TokenCommand, TokenPlaceArgs};
use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::text::escape_for_terminal;
use a99_server::{Authority, NewToken, Scopes, ServerError, TokenRow};
use agent99::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &TokenArgs) -> Result<Exit, Failure> {
    match &args.command {
        TokenCommand::New(args) => new(args),
        TokenCommand::List(place) => list(place),
        TokenCommand::Revoke(args) => {
            let row = open(&args.place)?.1.revoke(&args.id).map_err(failure)?;
            match args.place.json {
                true => print(vec![("ok", true.into()), ("id", row.id.into())]),
                false => output::note("revoked", &format!("{} {}", row.id, row.name)),
            }
            Ok(Exit::Ok)
        }
    }
}

/// The file of tokens: the named one, or that of the user.
pub(crate) fn tokens_file(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    // The specification of these folders ignores relative ones.
    let config = config.filter(|path| path.is_absolute()).or_else(home);
    let default = || Some(config?.join("a99/tokens.json"));
    named.map(Path::to_owned).or_else(default).ok_or_else(|| {
        let text = "there is no folder for configuration: HOME is not set";
        Failure::advised("tokens", text, "name a file, as in `--tokens tokens.json`")
    })
}

pub(crate) fn failure(error: ServerError) -> Failure {
    Failure::coded(error.code().name(), error.to_string(), error.help())
}

fn open(place: &TokenPlaceArgs) -> Result<(PathBuf, Authority), Failure> {
    let path = tokens_file(place.tokens.as_deref())?;
    let authority = Authority::open(&path).map_err(failure)?;
    Ok((path, authority))
}

fn new(args: &NewTokenArgs) -> Result<Exit, Failure> {
    let (path, authority) = open(&args.place)?;
    let new = NewToken {
        name: args.name.clone(),
        scopes: Scopes::parse(&args.scope).map_err(failure)?,
        lifetime: args.expires.0,
    };
    let (token, row) = authority.issue(&new).map_err(failure)?;
    let file = path.display().to_string();
    if args.place.json {
        let mut members = vec![("ok", true.into()), ("token", token.into())];
        members.extend(members_of(&row));
        members.push(("file", file.into()));
        print(members);
        return Ok(Exit::Ok);
    }
    output::out(&format!("{token}\n"));
    let until = expiry(&row).map_or("until it is revoked".to_owned(), |at| format!("until {at}"));
    output::note(
        "token",
        &format!("{} is valid {until}; {file} keeps a hash of it", row.id),
    );
    output::note("hint", "keep it now: it is not shown again");
    Ok(Exit::Ok)
}

fn list(place: &TokenPlaceArgs) -> Result<Exit, Failure> {
    let rows = open(place)?.1.list().map_err(failure)?;
    if place.json {
        let rows = rows.iter().map(|row| Value::Object(map(members_of(row))));
        let rows: Vec<Value> = rows.collect();
        print(vec![("ok", true.into()), ("tokens", Value::Array(rows))]);
        return Ok(Exit::Ok);
    }
    let mut out = String::new();
    for row in rows {
        let name = escape_for_terminal(&row.name);
        let expires = expiry(&row).unwrap_or_else(|| "never".to_owned());
        let scopes = escape_for_terminal(&scopes(&row).join(" "));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}  {expires:24}  {name}  {scopes}", row.id);
    }
    output::out(&out);
    Ok(Exit::Ok)
}

fn scopes(row: &TokenRow) -> Vec<String> {
    row.scopes.iter().map(ToString::to_string).collect()
}

fn expiry(row: &TokenRow) -> Option<String> {
    // Far below 2^53, so a double is exact.
    row.expires.map(|ms| a99_ecma::date::to_iso(ms as f64))
}

fn members_of(row: &TokenRow) -> Vec<(&'static str, Value)> {
    let scopes: Vec<Value> = scopes(row).into_iter().map(Value::from).collect();
    vec![
        ("id", row.id.as_str().into()),
        ("name", row.name.as_str().into()),
        ("scopes", Value::Array(scopes)),
        ("created", a99_ecma::date::to_iso(row.created as f64).into()),
        ("expires", expiry(row).map_or(Value::Null, Value::from)),
    ]
}

fn map(members: Vec<(&'static str, Value)>) -> Map {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name, value);
    }
    map
}

fn print(members: Vec<(&'static str, Value)>) {
    output::json(&Value::Object(map(members)));
}
