//! Suggestions for commands, options and values of other tools.

use crate::address::without_logins;
use clap::error::{ContextKind, ContextValue};
use std::path::Path;

/// Names of commands in other tools.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &[
            "lint",
            "validate",
            "test",
            "analyze",
            "typecheck",
            "vet",
            "parse",
        ],
        "check",
    ),
    (&["build", "bundle", "make", "pack"], "compile"),
    (
        &["exec", "execute", "start", "eval", "call", "invoke"],
        "run",
    ),
    (&["init", "create", "scaffold", "generate"], "new"),
    (&["format", "pretty", "prettify"], "fmt"),
    (
        &["disasm", "dump", "bytecode", "show", "info", "disassemble"],
        "inspect",
    ),
    (&["shell", "console", "interactive"], "repl"),
    (&["errors", "code"], "explain"),
    (&["atoms", "list", "functions"], "tools"),
    (&["typings", "declarations", "dts"], "types"),
    (&["language-server", "langserver"], "lsp"),
    (&["settings"], "config"),
    (&["key", "keygen", "sign"], "keys"),
    (&["tokens", "auth", "login"], "token"),
    (&["serve"], "watch"),
];

/// Names of options in other tools, with the form here.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &[
            "--input",
            "--inputs",
            "--arg",
            "--param",
            "--params",
            "--data",
            "--vars",
            "--var",
            "-a",
            "-d",
            "-i",
            "--payload",
        ],
        "--args '{\"name\": VALUE}'",
    ),
    (
        &[
            "--memory",
            "--mem",
            "--memory-limit",
            "--max-memory",
            "--ram",
            "--heap",
            "--max-heap",
            "--heap-size",
        ],
        "--heap-mib 64",
    ),
    (
        &[
            "--time-limit",
            "--deadline",
            "--time",
            "--timeout-ms",
            "--max-time",
            "-t",
        ],
        "--timeout 5s",
    ),
    (
        &[
            "--gas",
            "--budget",
            "--limit",
            "--steps",
            "--max-steps",
            "--gas-limit",
        ],
        "--fuel 1000",
    ),
    (
        &[
            "--strict",
            "--werror",
            "--fail-on-warnings",
            "-W",
            "--warnings-as-errors",
        ],
        "--deny-warnings",
    ),
    (
        &[
            "--allow-net",
            "--allow-network",
            "--net",
            "--network",
            "--allow-http",
        ],
        "--allow net:HOST",
    ),
    (
        &["--mock", "--mocks", "--replay", "--fixtures", "--answers"],
        "--script FILE",
    ),
    (&["--db", "--database", "--kv", "--storage"], "--store FILE"),
    (
        &["--verbose", "-v", "--debug", "--log"],
        "--trace FILE, or --progress",
    ),
    (&["--out", "--output-file"], "-o FILE"),
    (&["--random-seed"], "--seed N"),
    (&["--clock", "--date"], "--now 2026-01-31T12:00:00Z"),
    (&["--secret", "--auth", "-H"], "--header 'ORIGIN NAME=TEXT'"),
    (&["--cfg", "--settings", "-c"], "--config FILE"),
    (&["--max-calls", "--rate-limit"], "--quota OP=N"),
    (&["--key", "--signing-key"], "--sign KEYFILE"),
    (&["--sarif"], "--format sarif"),
    (&["--yaml", "--yml", "--output-json"], "--json"),
    (&["--file", "-f", "--program"], "PROGRAM, without an option"),
    (
        &["--quiet", "-q", "--silent"],
        "2>/dev/null: results alone go to standard output",
    ),
];

/// Values of options in other tools, with the form here.
const VALUES: &[(&[&str], &str)] = &[
    (&["claude"], "anthropic"),
    (&["google", "vertex", "palm"], "gemini"),
    (&["gpt", "chatgpt", "function"], "openai"),
    (&["strict"], "openai-strict"),
    (&["yaml", "yml", "jsonl", "ndjson"], "json"),
    (&["text", "pretty", "plain"], "human"),
    (&["github", "junit"], "sarif"),
    (&["js", "javascript", "ts", "typescript"], "ajs"),
    (&["wasm", "bytecode", "binary", "bin"], "a99b"),
    (&["sh", "ash", "dash", "ksh"], "bash"),
    (&["pwsh"], "powershell"),
    (&["free", "none", "simple", "fixed"], "flat"),
    (&["yes", "on", "true", "force"], "always"),
    (&["no", "off", "false"], "never"),
];

/// The entry for a word of another tool.
fn meant(rows: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    let row = rows.iter().find(|row| row.0.contains(&word));
    row.map(|row| row.1)
}

/// A command-line error with help.
pub(crate) struct Told {
    pub message: String,
    pub help: String,
}

/// Turns clap's error into one line and a suggestion that works.
pub(crate) fn told(error: &clap::Error) -> Told {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let first = text.split("\n\n").next().unwrap_or(text);
    let message: Vec<&str> = first.lines().map(str::trim).collect();
    let mut message = message.join(" ");
    let help = advice(error).unwrap_or_else(|| {
        let tips = text.lines().filter_map(|l| l.trim().strip_prefix("tip: "));
        // Clap's tip for words that begin with a dash misleads.
        let tips = tips.filter(|tip| !tip.starts_with("to pass '"));
        let tips: Vec<&str> = tips.collect();
        match tips.is_empty() {
            true => format!("see `{} --help`", command_of(text)),
            false => tips.join("; "),
        }
    });
    // The possible values become the help.
    if let Some(at) = message.find(" [possible values: ") {
        message.truncate(at);
    }
    if let Some(at) = text.find("Usage: ") {
        let usage = text[at..].lines().next().unwrap_or_default();
        message = format!("{message} ({})", usage.replace("Usage: ", "usage: "));
    }
    Told {
        message: without_logins(&message),
        help: without_logins(&help),
    }
}

/// The command of a usage line.
fn command_of(text: &str) -> String {
    let usage = text.split("Usage: ").nth(1).unwrap_or("a99");
    let words = usage.lines().next().unwrap_or_default().split_whitespace();
    let words: Vec<&str> = words
        .take_while(|word| !word.starts_with(['[', '<', '-']))
        .collect();
    words.join(" ")
}

fn advice(error: &clap::Error) -> Option<String> {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let names = |kind| match error.get(kind) {
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    if let Some(word) = given(ContextKind::InvalidSubcommand) {
        if let Some(command) = meant(COMMANDS, &word) {
            return Some(format!("here that is `a99 {command}`"));
        }
        let is_program = [".json", ".ajs", ".js", ".ts", ".a99b"];
        if is_program.iter().any(|end| word.ends_with(end)) || Path::new(&word).is_file() {
            return Some(format!("write `a99 run {word}`, or `a99 check {word}`"));
        }
        return None;
    }
    let option = given(ContextKind::InvalidArg);
    let value = given(ContextKind::InvalidValue);
    if error.kind() == clap::error::ErrorKind::ArgumentConflict {
        let prior = given(ContextKind::PriorArg);
        let same = prior.is_some() && prior == option;
        return Some(match same {
            true => "give it once".to_owned(),
            false => "leave one of the two out".to_owned(),
        });
    }
    if error.kind() == clap::error::ErrorKind::InvalidValue
        && let (Some(option), Some("")) = (&option, value.as_deref())
    {
        let name = option.split(['=', ' ']).next().unwrap_or(option);
        return self::value(name, "").or_else(|| Some(format!("write `{option}`")));
    }
    let name = option
        .as_deref()
        .and_then(|arg| arg.split(['=', ' ']).next())
        .unwrap_or_default();
    match (name, value) {
        (name, Some(value)) if !value.is_empty() => {
            let known = names(ContextKind::ValidValue);
            if known.is_empty() {
                return self::value(name, &value);
            }
            let lower = value.to_lowercase();
            let near = match meant(VALUES, &lower).filter(|v| known.iter().any(|k| k == v)) {
                Some(near) => Some(near.to_owned()),
                None => a99_core::diag::suggest(&lower, known.iter().map(String::as_str)),
            };
            let list = format!("write one of `{}`", known.join("`, `"));
            Some(match near {
                Some(near) => format!("did you mean `{near}`? {list}"),
                None => list,
            })
        }
        ("", _) => {
            let missing = names(ContextKind::InvalidArg);
            let missing = missing.first()?;
            Some(match missing.as_str() {
                "<PROGRAM>" | "<PROGRAM>..." => {
                    "name the file with the program, or `-` for standard input".to_owned()
                }
                other => format!("add `{other}`"),
            })
        }
        (name, _) => {
            if let Some(option) = meant(OPTIONS, name) {
                // `--memory` limits a sandbox, `--heap-mib` a program.
                let usage = error.get(ContextKind::Usage).map(ToString::to_string);
                let of_sandbox = usage.is_some_and(|usage| usage.contains("a99 sandbox"));
                let option = match option {
                    "--heap-mib 64" if of_sandbox => "--memory 64M",
                    option => option,
                };
                return Some(format!("here that is `{option}`"));
            }
            let usage = error.get(ContextKind::Usage).map(ToString::to_string);
            let of_run = [
                "--args",
                "--script",
                "--fuel",
                "--timeout",
                "--context",
                "--llm",
                "--store",
                "--allow",
            ];
            if of_run.contains(&name) && usage.is_some_and(|usage| !usage.contains(" run ")) {
                return Some(format!(
                    "this command runs nothing: `{name}` is an option of `a99 run`"
                ));
            }
            if name.starts_with(['-', '<']) || name.is_empty() {
                return None;
            }
            Some(match name.starts_with('{') {
                true => format!("arguments of the program go into `--args '{name}'`"),
                false => format!(
                    "this command takes no `{name}` beside what it has; arguments of a program go \
                     into `--args '{{\"name\": VALUE}}'`"
                ),
            })
        }
    }
}

/// The value to write instead of one that an option refuses.
pub(crate) fn value(option: &str, value: &str) -> Option<String> {
    let value = value.trim();
    let write = |value: &str| Some(format!("write `{option} {value}`"));
    match option {
        "--fuel" | "--heap-mib" | "--seed" | "--timeout-ms" | "--expires-days" | "--max-tokens" => {
            let number = plain_number(option, value);
            let example = match option {
                "--heap-mib" => "64",
                "--fuel" => "1000",
                "--expires-days" => "365",
                "--max-tokens" => "100000",
                _ => "5",
            };
            match number {
                Some(number) => write(&number),
                None => Some(format!(
                    "write the number alone, as in `{option} {example}`"
                )),
            }
        }
        "--timeout" | "--interval" => match plain_time(value) {
            Some(time) if crate::duration::time(&time).is_err() => {
                Some(format!("a limit is at most a year: write `{option} 24h`"))
            }
            Some(time) => write(&time),
            None => Some(format!("write a number and its unit: `{option} 5s`")),
        },
        "--quota" | "--cost" | "--atom-timeout" => {
            let example = match option {
                "--atom-timeout" => "5s",
                _ => "5",
            };
            let split = value
                .split_once('=')
                .or_else(|| value.split_once([':', ' ', ',']));
            let (op, rest) = split.unwrap_or((value, ""));
            let is_op = !op.is_empty() && op.chars().all(|c| c.is_ascii_alphanumeric());
            let is_op = is_op && !op.starts_with(|c: char| c.is_ascii_digit());
            let op = match is_op {
                true => op,
                false => "httpFetch",
            };
            let rest = match option {
                "--atom-timeout" => {
                    plain_time(rest).or_else(|| plain_time(value).filter(|_| !is_op))
                }
                _ => plain_number(option, rest),
            };
            write(&format!("{op}={}", rest.as_deref().unwrap_or(example)))
        }
        "--now" => write(&plain_date(value).unwrap_or_else(|| "2026-01-31T12:00:00Z".to_owned())),
        "--allow" => {
            let lower = value.to_ascii_lowercase();
            let rest = match lower.starts_with("net:") {
                true => value["net:".len()..].trim_start(),
                false => value,
            };
            let host = rest.split_once("://").map_or(rest, |(_, rest)| rest);
            let host = host.split(['/', '?', '#']).next().unwrap_or(host);
            // If the rule itself is wrong, clap's reason says more.
            let changed = value != format!("net:{host}");
            let is_host = host.contains('.') && !host.contains(char::is_whitespace) && changed;
            let is_range = rest
                .rsplit_once('/')
                .is_some_and(|(address, _)| address.parse::<std::net::IpAddr>().is_ok());
            match host {
                "localhost" | "127.0.0.1" => write(&format!("net:{host}:8080")),
                "*" => write("'net:*'"),
                _ if is_range => {
                    Some("write a range as in `net:10.0.0.0/8`, with at most 32 bits".to_owned())
                }
                _ if turned_ports(rest).is_some() => {
                    let (host, first, last) = turned_ports(rest).unwrap_or_default();
                    write(&format!("net:{host}:{last}-{first}"))
                }
                _ if rest
                    .rsplit_once(':')
                    .is_some_and(|(_, port)| port.parse::<u64>().is_ok()) =>
                {
                    let host = rest.split(':').next().unwrap_or(rest);
                    Some(format!(
                        "write a port from 1 to 65535, as in `net:{host}:443`"
                    ))
                }
                _ if is_host => write(&format!("net:{host}")),
                _ => Some(format!(
                    "write `{option} net:HOST`, as in `{option} net:api.example.com`"
                )),
            }
        }
        "<NAME>" => Some("write a name of letters, digits, `.`, `_` and `-`".to_owned()),
        _ => None,
    }
}

/// The number meant by `10k`, `1_000`, `64MB` or `1,000.0`, if the option accepts it.
fn plain_number(option: &str, text: &str) -> Option<String> {
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '_' | ',' | ' ' | '\''))
        .collect();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: f64 = digits.parse().ok()?;
    let times = match (option, unit.to_ascii_lowercase().as_str()) {
        (_, "") => 1.0,
        ("--heap-mib", "m" | "mb" | "mib") => 1.0,
        ("--heap-mib", "g" | "gb" | "gib") => 1024.0,
        ("--heap-mib", "k" | "kb" | "kib") => 1.0 / 1024.0,
        ("--expires-days", "d" | "days") => 1.0,
        ("--expires-days", "y" | "years") => 365.0,
        ("--fuel" | "--seed" | "--quota" | "--cost", "k") => 1e3,
        ("--fuel" | "--seed" | "--quota" | "--cost", "m") => 1e6,
        _ => return None,
    };
    let number = (number * times).round();
    (number >= 1.0).then(|| format!("{number}"))
}

/// The duration meant by `5sec`, `1h30m`, `PT5S` or `2 days`.
fn plain_time(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.trim_start_matches("pt");
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        seconds += number
            * match &rest[..end] {
                "ms" | "msec" | "millis" | "milliseconds" => 0.001,
                "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
                "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
                "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
                "d" | "day" | "days" => 86_400.0,
                _ => return None,
            };
        rest = rest[end..].trim_start_matches([' ', ':', ',']);
    }
    match seconds {
        s if s <= 0.0 => None,
        s if s % 3600.0 == 0.0 => Some(format!("{}h", s / 3600.0)),
        s if s % 60.0 == 0.0 => Some(format!("{}m", s / 60.0)),
        s if s.fract() == 0.0 => Some(format!("{s}s")),
        s => Some(format!("{}ms", (s * 1000.0).round())),
    }
}

/// A range of ports whose first is above its last.
fn turned_ports(rule: &str) -> Option<(&str, u16, u16)> {
    let (host, ports) = rule.rsplit_once(':')?;
    let (first, last) = ports.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first > last && last > 0).then_some((host, first, last))
}

/// Number of days of a month.
fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The moment meant by `31.01.2026`, `2026-01-31` or `2026/1/31 12:00`.
fn plain_date(text: &str) -> Option<String> {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let parts: Vec<&str> = date.split(['-', '.', '/']).collect();
    let numbers: Vec<u32> = parts
        .iter()
        .map(|p| p.parse().ok())
        .collect::<Option<_>>()?;
    let (year, month, day) = match numbers[..] {
        [year, month, day] if parts[0].len() == 4 => (year, month, day),
        [day, month, year] if parts[2].len() == 4 => (year, month, day),
        _ => return None,
    };
    // Clamp an invalid date to the nearest valid one.
    let month = month.clamp(1, 12);
    let day = day.clamp(1, days_of(year, month));
    let clock: Vec<u32> = time
        .trim_end_matches(['Z', 'z'])
        .split(':')
        .map_while(|p| p.parse().ok())
        .collect();
    let at = |index: usize| clock.get(index).copied().unwrap_or(0);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        at(0).min(23),
        at(1).min(59),
        at(2).min(59)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn values_become_those_that_are_taken() {
        for (option, given, wanted) in [
            ("--fuel", "10k", "--fuel 10000"),
            ("--fuel", "1_000", "--fuel 1000"),
            ("--fuel", "-5", "alone"),
            ("--heap-mib", "64MB", "--heap-mib 64"),
            ("--heap-mib", "1GB", "--heap-mib 1024"),
            ("--timeout", "5sec", "--timeout 5s"),
            ("--timeout", "1h30m", "--timeout 90m"),
            ("--timeout", "PT10S", "--timeout 10s"),
            ("--timeout", "0", "5s"),
            ("--quota", "httpFetch", "--quota httpFetch=5"),
            ("--quota", "map:7", "--quota map=7"),
            ("--atom-timeout", "5s", "httpFetch=5s"),
            ("--now", "31.01.2026", "--now 2026-01-31T00:00:00Z"),
            (
                "--now",
                "2026-02-31T12:00:00Z",
                "--now 2026-02-28T12:00:00Z",
            ),
            ("--now", "2024-13-40", "--now 2024-12-31T00:00:00Z"),
            ("--allow", "net:a.example:443-80", "net:a.example:80-443`"),
            ("--allow", "https://a.example/v1", "--allow net:a.example`"),
            ("--allow", "net:a.example/v1", "--allow net:a.example`"),
            ("--allow", "net", "net:HOST"),
        ] {
            let help = value(option, given).unwrap_or_default();
            assert!(help.contains(wanted), "{option} {given}: {help}");
        }
    }

    #[test]
    fn what_is_named_is_there() {
        let cli = Cli::command();
        for (_, command) in COMMANDS {
            assert!(cli.find_subcommand(command).is_some(), "{command}");
        }
        for (_, written) in OPTIONS {
            let Some(name) = written
                .split([' ', ','])
                .next()
                .and_then(|w| w.strip_prefix("--"))
            else {
                continue;
            };
            let has = |command: &clap::Command| {
                let mut arguments = command.get_arguments();
                arguments.any(|a| a.get_long() == Some(name))
            };
            assert!(cli.get_subcommands().any(has), "{name}");
        }
        for (words, name) in COMMANDS {
            for word in *words {
                assert!(cli.find_subcommand(word).is_none(), "{word} is {name}");
            }
        }
    }
}
