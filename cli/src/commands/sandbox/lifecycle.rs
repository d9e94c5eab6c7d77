//! `a99 sandbox start`, `ls` and `stop`: the lifecycle of named sandboxes.

use super::start::{load, packs};
use crate::failure::Exit;
use crate::local::Refusal;
use crate::named::args::{ForkArgs, LsArgs, StartArgs, StopArgs};
use crate::named::client::{self, Probe};
use crate::named::error::{NO_SUCH_NAME, ended};
use crate::named::launch::launch;
use crate::named::name::Name;
use crate::named::runtime_dir::RuntimeDir;
use crate::named::spec::{Origin, Spec};
use crate::output;
use serde_json::{Value as Json, json};

pub(super) fn start(args: &StartArgs) -> Exit {
    ended(started(args), args.json)
}

fn started(args: &StartArgs) -> Result<Exit, Refusal> {
    if args.settings.foreign().is_none() {
        // Offer to build a missing image here: the daemon has no terminal.
        drop(load()?);
        packs(&args.settings)?;
    }
    let folder = |error| Refusal::io("working folder", error);
    let mut spec = Spec::of(&args.settings, &args.named).map_err(folder)?;
    if let Some(file) = &args.from {
        spec.origin = Origin::File(std::path::absolute(file).map_err(folder)?);
    }
    run(&args.name, &spec, args.json)
}

/// Starts a copy of a running sandbox.
pub(super) fn fork(args: &ForkArgs) -> Exit {
    ended(forked(args), args.json)
}

fn forked(args: &ForkArgs) -> Result<Exit, Refusal> {
    let spec = Spec::of(&args.settings, &args.named);
    let mut spec = spec.map_err(|error| Refusal::io("working folder", error))?;
    spec.origin = Origin::Fork(args.name.clone());
    run(&args.new, &spec, args.json)
}

/// Starts the daemon of a sandbox, and reports that it is ready.
fn run(name: &Name, spec: &Spec, json: bool) -> Result<Exit, Refusal> {
    let status = launch(name, spec)?;
    if json {
        output::out(&format!("{status}\n"));
    } else {
        let ports = ports(&status);
        let ports = if ports.is_empty() {
            ""
        } else {
            &format!(": {ports}")
        };
        output::err(&format!("sandbox {name} is running{ports}\n"));
    }
    Ok(Exit::Ok)
}

fn ports(status: &Json) -> String {
    let ports = status["ports"].as_array().into_iter().flatten();
    let ports = ports.map(|port| {
        let listen = port["listen"].as_str().unwrap_or_default();
        format!("{listen} -> {}", port["guestPort"])
    });
    ports.collect::<Vec<_>>().join(", ")
}

/// Lists the sandboxes, and removes the files of killed ones.
pub(super) fn ls(args: &LsArgs) -> Exit {
    ended(listed(args), args.json)
}

fn listed(args: &LsArgs) -> Result<Exit, Refusal> {
    let dir = RuntimeDir::of_user()?;
    let (mut running, mut removed) = (Vec::new(), Vec::new());
    for name in dir.names()? {
        match client::probe(&dir, &name)? {
            Some(Probe::Running(status)) => running.push(status),
            Some(Probe::Unresponsive(pid)) => running.push(json!({
                "name": name.as_str(),
                "status": "not answering",
                "pid": pid,
            })),
            Some(Probe::Dead) => removed.push(name.to_string()),
            None => {}
        }
    }
    if args.json {
        let list = json!({"sandboxes": running, "removed": removed});
        output::out(&format!("{list}\n"));
    } else {
        output::out(&table(&running));
        for name in removed {
            output::note(
                "note",
                &format!("sandbox {name} had ended without being stopped"),
            );
        }
    }
    Ok(Exit::Ok)
}

/// A table with headings and aligned columns.
fn table(sandboxes: &[Json]) -> String {
    let head = ["NAME", "STATUS", "AGE", "PID", "COMMANDS", "NET", "PORTS"];
    let mut rows = vec![head.map(str::to_owned)];
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    };
    rows.extend(sandboxes.iter().map(|status| {
        let age = status["ageMs"].as_u64().map(age).unwrap_or_default();
        let [name, state, pid, commands, net] =
            ["name", "status", "pid", "commands", "net"].map(|key| text(&status[key]));
        [name, state, age, pid, commands, net, ports(status)]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, &width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// A duration in its two largest units.
fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

pub(super) fn stop(args: &StopArgs) -> Exit {
    ended(stopped(args), args.json)
}

fn stopped(args: &StopArgs) -> Result<Exit, Refusal> {
    let dir = RuntimeDir::of_user()?;
    let names: Vec<Name> = match args.all {
        true => dir.names()?,
        false => args.names.clone(),
    };
    let mut stopped = Vec::new();
    for name in &names {
        match client::stop(&dir, name) {
            Ok(()) => stopped.push(name.as_str()),
            // It was dead, or ended after it was listed.
            Err(error) if args.all && error.code == NO_SUCH_NAME => {}
            Err(error) => return Err(error),
        }
    }
    if args.json {
        output::out(&format!("{}\n", json!({ "stopped": stopped })));
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_as_wide_as_needed() {
        let running = json!({
            "name": "a-long-name", "status": "running", "pid": 7, "ageMs": 90_500,
            "commands": 0, "net": "off",
            "ports": [{"listen": "127.0.0.1:80", "guestPort": 8}],
        });
        let silent = json!({"name": "b", "status": "not answering", "pid": null});
        let text = table(&[running, silent]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "NAME         STATUS         AGE     PID  COMMANDS  NET  PORTS",
                "a-long-name  running        1m 30s  7    0         off  127.0.0.1:80 -> 8",
                "b            not answering",
            ]
        );
    }

    #[test]
    fn ages_have_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m 0s"),
            (3599, "59m 59s"),
            (3600, "1h 0m"),
            (90_000, "1d 1h"),
        ] {
            assert_eq!(age(seconds * 1000), text);
        }
    }
}
