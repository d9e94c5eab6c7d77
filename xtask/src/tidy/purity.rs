//! Purity of the language's crates: `core`, `builder`, `ecma`, `expr`, `compiler` and `lint` use no file,
//! network, environment, process or clock.
//!
//! Their `clippy.toml` forbids types and functions one by one; this rule forbids the modules, by
//! any import.

/// Crates without access to the outside.
const PURE: [&str; 6] = [
    "core/src/",
    "core/builder/src/",
    "core/ecma/src/",
    "core/expr/src/",
    "compiler/src/",
    "compiler/lint/src/",
];

/// Modules of `std` with access to the outside.
const MODULES: [&str; 5] = ["fs", "net", "env", "process", "os"];

/// Clocks, by any path.
const CLOCKS: [&str; 2] = ["Instant", "SystemTime"];

/// Diagnostics about modules and clocks that a file of a pure crate names, with the line.
pub(crate) fn diagnostics(path: &str, text: &str) -> Vec<String> {
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

/// The first names of the paths in a group of imports, after its opening brace.
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

/// Words and punctuation of code with their lines, without comments and literals.
pub(crate) fn tokens(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(end) = literal(rest) {
            end
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let end = match first {
                ':' if rest.starts_with("::") => 2,
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            tokens.push((line, &rest[..end]));
            end
        };
        line += rest[..end].matches('\n').count();
        rest = &rest[end..];
    }
    tokens
}

/// End of the string or character literal at the start of the code.
fn literal(code: &str) -> Option<usize> {
    let raw = code.strip_prefix('b').unwrap_or(code);
    if let Some(raw) = raw.strip_prefix('r') {
        let marks = raw.bytes().take_while(|b| *b == b'#').count();
        if let Some(inner) = raw[marks..].strip_prefix('"') {
            let close = format!("\"{}", "#".repeat(marks));
            let rest = inner.split_once(&close).map_or("", |(_, rest)| rest);
            return Some(code.len() - rest.len());
        }
    }
    let quote = code.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = code.char_indices().skip(1);
    let mut count = 0;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == quote => return Some(at + 1),
            // A lifetime.
            _ if quote == '\'' && count > 0 && !code.starts_with("'\\") => return None,
            _ => {}
        }
        count += 1;
    }
    Some(code.len())
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
                    struct InstantOf;\nlet e = env!(\"X\");\nlet t = \"a\n std::fs\";\n\
                    fn f<'a>(c: char) { c == '\"'; } /* std::fs */ const R: &str = r#\"\"std::fs\"#;\n";
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
