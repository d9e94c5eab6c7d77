//! Purity of the language's crates: no file, network, environment, process or
//! clock in `core`, `ecma` and `compiler`.
//!
//! Their `clippy.toml` forbids types and functions one by one; this search
//! forbids the modules, however they are imported.

/// The crates without a world.
const PURE: [&str; 3] = ["core/src/", "ecma/src/", "compiler/src/"];

/// Modules of `std` that lead outside.
const MODULES: [&str; 5] = ["fs", "net", "env", "process", "os"];

/// Clocks, by whatever path they are reached.
const CLOCKS: [&str; 2] = ["Instant", "SystemTime"];

/// What a file of a pure crate names of the world, with the line.
pub fn diagnostics(path: &str, text: &str) -> Vec<String> {
    if !PURE.iter().any(|folder| path.starts_with(folder)) || !path.ends_with(".rs") {
        return Vec::new();
    }
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        if CLOCKS.contains(token) {
            found.push((*line, (*token).to_owned()));
        }
        let follows = |n: usize| tokens.get(at + n).map(|(_, token)| *token);
        if *token != "std" || follows(1) != Some("::") {
            continue;
        }
        let names = match follows(2) {
            Some("{") => group(&tokens[at + 3..]),
            Some(name) => vec![(*line, name)],
            None => Vec::new(),
        };
        let modules = names.into_iter().filter(|(_, name)| MODULES.contains(name));
        found.extend(modules.map(|(line, name)| (line, format!("std::{name}"))));
    }
    let told = |(line, what): (usize, String)| {
        format!("{path}:{line}: {what} in a crate that has no world")
    };
    found.into_iter().map(told).collect()
}

/// The first names of the paths in a group of imports, whose brace is open.
fn group<'t>(tokens: &[(usize, &'t str)]) -> Vec<(usize, &'t str)> {
    let (mut depth, mut first, mut names) = (0, true, Vec::new());
    for (line, token) in tokens {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "," if depth == 0 => first = true,
            name if first => {
                names.push((*line, name));
                first = false;
            }
            _ => {}
        }
    }
    names
}

/// Words and signs of code, with their lines: no comments, no texts.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let code = text.split("//").next().unwrap_or(text);
        // Even parts stand outside of quotes; texts over several lines are not
        // code either, but what they say is then only told in vain.
        for code in code.split('"').step_by(2) {
            let mut rest = code;
            while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
                rest = &rest[start..];
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let end = match rest.chars().next() {
                    Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                    Some(':') if rest.starts_with("::") => 2,
                    Some(c) => c.len_utf8(),
                    None => break,
                };
                tokens.push((line, &rest[..end]));
                rest = &rest[end..];
            }
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_the_world_is_found() {
        for code in [
            "use std::fs;\n",
            "use std::{fmt, fs};\n",
            "use std::{\n    fmt::{self, env},\n    process::{Command, exit},\n};\n",
            "use std :: net::TcpStream;\n",
            "    let now = std::env::var(\"x\");\n",
            "use std::time::Instant;\n",
            "use std::time as t; fn f() { t::SystemTime::now(); }\n",
            "use std::os::unix::net::UnixStream;\n",
        ] {
            assert_eq!(diagnostics("core/src/x.rs", code).len(), 1, "{code}");
            assert!(diagnostics("vm/src/x.rs", code).is_empty());
        }
    }

    #[test]
    fn other_things_are_not() {
        let code = "use std::fmt::{self, env};\n// std::fs\nlet s = \"std::fs\"; // Instant\n\
                    use core::net::Ipv6Addr;\nuse std::{fmt, time::Duration};\nmystd_fs();\n\
                    struct InstantOf;\nlet e = env!(\"X\");\n";
        assert_eq!(diagnostics("core/src/x.rs", code), [""; 0]);
    }

    #[test]
    fn the_line_is_told() {
        let code = "use std::{\n    fmt,\n    fs,\n};\n";
        assert_eq!(
            diagnostics("compiler/src/x.rs", code),
            ["compiler/src/x.rs:3: std::fs in a crate that has no world"]
        );
    }
}
