//! Grants of the command line: servers a program may reach, and the secrets of its requests.

use a99_core::diag::suggest;
use a99_egress::{Policy, PolicyError};
use agent99::Capabilities;
use std::fmt;
use std::path::{Path, PathBuf};

/// Kinds of grants.
const KINDS: [&str; 1] = ["net"];

/// A parsed grant: `net:RULE,...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The rules of the network policy.
    pub rules: String,
}

impl Grant {
    /// Parses a grant.
    ///
    /// # Errors
    /// The expected form.
    pub(crate) fn parse(text: &str) -> Result<Grant, String> {
        if let Some(way) = other_way(host_of(text)) {
            return Err(way);
        }
        let rules = match text.split_once(':') {
            Some(("net", rules)) if rules.contains("://") => {
                return Err("a rule is HOST or HOST:PORT: leave out the scheme".to_owned());
            }
            Some(("net", rules)) if rules.contains(char::is_whitespace) => {
                let rules: Vec<&str> = rules.split_whitespace().collect();
                let rules = rules.concat();
                return Err(format!("leave out the blanks, as in `net:{rules}`"));
            }
            Some(("net", rules)) => rules,
            // A rule without `net:` begins with a host.
            _ if host_of(text).contains(['.', '*']) && policy_of(text).is_ok() => {
                return Err(format!("did you mean `net:{text}`?"));
            }
            Some((kind, _)) => {
                let near = suggest(kind, KINDS.into_iter());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}:`?"));
                return Err(format!(
                    "there is no grant `{kind}:`; grants are net:RULE,...{near}"
                ));
            }
            None => return Err("grants are net:RULE,..., as in net:api.example.com:443".into()),
        };
        policy_of(rules)?;
        Ok(Grant {
            rules: rules.to_owned(),
        })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:{}", self.rules)
    }
}

/// How to grant a capability other than the network.
fn other_way(kind: &str) -> Option<String> {
    match kind {
        "fetch" | "http" | "https" => Some("the grant of the network is `net:RULE,...`".to_owned()),
        "shell" => Some("`--sandbox` lets the program run commands".to_owned()),
        "clock" | "random" | "xml" => Some(format!("`{kind}` needs no grant")),
        "store" => Some("`--store FILE|URL` keeps what the program stores".to_owned()),
        kind if Capabilities::NAMES.contains(&kind) => Some(format!(
            "this command has no `{kind}` to grant; `--script FILE` answers in its place"
        )),
        _ => None,
    }
}

/// The text before the first colon.
fn host_of(rule: &str) -> &str {
    rule.split(':').next().unwrap_or(rule)
}

/// Parses comma-separated rules into a policy.
pub(crate) fn policy_of(rules: &str) -> Result<Policy, String> {
    format!("allow:{rules}")
        .parse()
        // Text before an `@` may be a login: hide it.
        .map_err(
            |error: PolicyError| match error.found.is_empty() || error.found.contains('@') {
                true => error.help.to_string(),
                false => format!(
                    "`{}`: {}",
                    a99_core::diag::excerpt(&error.found),
                    error.help
                ),
            },
        )
}

/// A message about an invalid setting, with help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub text: String,
    pub help: String,
}

impl Wrong {
    fn new(text: impl Into<String>, help: impl Into<String>) -> Wrong {
        Wrong {
            text: text.into(),
            help: help.into(),
        }
    }
}

/// An option's name of a variable. The error is kept and reported later without the text, which may
/// be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvArg(pub Result<EnvName, String>);

impl EnvArg {
    pub(crate) fn parse(text: &str) -> Result<EnvArg, std::convert::Infallible> {
        Ok(EnvArg(EnvName::parse(text)))
    }
}

impl fmt::Display for EnvArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(name) => name.fmt(f),
            Err(_) => f.write_str("(not readable)"),
        }
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvName(pub String);

impl EnvName {
    /// Parses a name.
    ///
    /// # Errors
    /// The expected form.
    pub(crate) fn parse(text: &str) -> Result<EnvName, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = |text: &str| {
            let digit = text.starts_with(|c: char| c.is_ascii_digit());
            !text.is_empty() && text.chars().all(plain) && !digit
        };
        match text.split_once('=') {
            _ if named(text) => Ok(EnvName(text.to_owned())),
            Some((name, _)) if named(name) => Err(format!(
                "expected a name without a value: the value of {} is that of the environment",
                shown_variable(name)
            )),
            _ if text.strip_prefix('$').is_some_and(named) => Err(format!(
                "expected a name without the sign of the shell: write {}",
                shown_variable(&text[1..])
            )),
            _ => Err("expected the name of a variable: letters, digits and `_`".to_owned()),
        }
    }

    /// Reads the variable.
    ///
    /// # Errors
    /// Why it has no usable value.
    pub(crate) fn read(&self) -> Result<String, Wrong> {
        std::env::var(&self.0).map_err(|error| match error {
            std::env::VarError::NotPresent => {
                let there = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
                let there: Vec<String> = there.collect();
                let near = suggest(&self.0, there.iter().map(String::as_str));
                Wrong::new(
                    format!("the environment has no variable {self}"),
                    match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "set it before the run: `export NAME=...`".to_owned(),
                    },
                )
            }
            std::env::VarError::NotUnicode(_) => Wrong::new(
                format!("the variable {self} is not UTF-8"),
                "give it a text in UTF-8",
            ),
        })
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown_variable(&self.0))
    }
}

/// The name of a variable for messages, unless it may be the secret itself: shown if the
/// environment has it, or if it is in the usual form of names.
pub(crate) fn shown_variable(name: &str) -> String {
    let is_usual = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let is_name = name.len() <= 48 && digits < 4 && name.chars().all(is_usual);
    match is_name || std::env::var_os(name).is_some() {
        true => name.to_owned(),
        false => "(not shown: it may be a secret)".to_owned(),
    }
}

/// An option's header. The error is kept and reported later without the text, which may be a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderArg(pub Result<Header, String>);

impl HeaderArg {
    pub(crate) fn parse(text: &str) -> Result<HeaderArg, std::convert::Infallible> {
        Ok(HeaderArg(Header::parse(text)))
    }
}

impl fmt::Display for HeaderArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(header) => header.fmt(f),
            Err(_) => f.write_str("(not readable)"),
        }
    }
}

/// A header with a secret in it: `ORIGIN NAME=TEXT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The origin that gets it.
    pub origin: String,
    pub name: String,
    before: String,
    source: SecretSource,
    after: String,
}

/// Source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretSource {
    Env(EnvName),
    File(PathBuf),
}

const FORM: &str = "expected ORIGIN NAME=TEXT with {env:VARIABLE} or {file:PATH} in it, as in \
                    `https://api.example.com authorization=Bearer {env:TOKEN}`";

impl Header {
    /// Parses a header.
    ///
    /// # Errors
    /// The expected form; never the text, which may be a secret.
    pub(crate) fn parse(text: &str) -> Result<Header, String> {
        let form = || FORM.to_owned();
        let (origin, rest) = text
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(form)?;
        let (name, value) = rest.trim_start().split_once('=').ok_or_else(form)?;
        let (before, hole) = value.split_once('{').ok_or_else(form)?;
        let (hole, after) = hole.split_once('}').ok_or_else(form)?;
        let source = match hole.split_once(':') {
            Some(("env", variable)) => SecretSource::Env(EnvName::parse(variable)?),
            Some(("file", path)) if !path.is_empty() => SecretSource::File(path.into()),
            _ => return Err(form()),
        };
        let token = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let named = !name.trim().is_empty() && name.trim().chars().all(token);
        let is_origin = origin.contains("://") && !crate::address::has_login(origin);
        if after.contains('{') || !is_origin || !named {
            return Err(form());
        }
        Ok(Header {
            origin: origin.to_owned(),
            name: name.trim().to_owned(),
            before: before.to_owned(),
            source,
            after: after.to_owned(),
        })
    }

    /// Resolves a relative path of the secret's file against this folder.
    pub(crate) fn relative_to(&mut self, folder: &Path) {
        if let SecretSource::File(path) = &mut self.source {
            *path = folder.join(&*path);
        }
    }

    /// The file with its secret.
    #[cfg(all(feature = "agent", unix))]
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.source {
            SecretSource::File(path) => Some(path),
            SecretSource::Env(_) => None,
        }
    }

    /// The header's value, with the secret.
    ///
    /// # Errors
    /// Why the secret cannot be read.
    #[cfg(feature = "http")]
    pub(crate) fn read(&self) -> Result<agent99::capabilities::Secret, Wrong> {
        let secret = match &self.source {
            SecretSource::Env(name) => one_line(name.read()?, &format!("the variable {name}"))?,
            SecretSource::File(path) => secret_file(path)?,
        };
        let text = format!("{}{secret}{}", self.before, self.after);
        Ok(agent99::capabilities::Secret::new(text))
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header {
            origin,
            name,
            before,
            after,
            ..
        } = self;
        match &self.source {
            SecretSource::Env(variable) => {
                write!(f, "{origin} {name}={before}{{env:{variable}}}{after}")
            }
            SecretSource::File(path) => {
                write!(
                    f,
                    "{origin} {name}={before}{{file:{}}}{after}",
                    path.display()
                )
            }
        }
    }
}

/// Size limit of a file with a secret, in KiB.
#[cfg(feature = "http")]
const MAX_SECRET_KIB: usize = 64;

/// Checks that a secret is one line and short enough for a header.
#[cfg(feature = "http")]
fn one_line(text: String, what: &str) -> Result<String, Wrong> {
    if text.len() > MAX_SECRET_KIB << 10 {
        return Err(Wrong::new(
            format!("the secret in {what} has more than {MAX_SECRET_KIB} KiB"),
            "a header carries a key or a token, not a document",
        ));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.trim().is_empty() {
        return Err(Wrong::new(
            format!("the secret in {what} is empty"),
            "put the key or token there, or leave the header out",
        ));
    }
    match line.contains(['\n', '\r']) {
        true => Err(Wrong::new(
            format!("the secret in {what} has several lines"),
            "a secret is one line",
        )),
        false => Ok(line.to_owned()),
    }
}

/// Reads the single line of a regular file that only the user can read.
#[cfg(feature = "http")]
fn secret_file(path: &Path) -> Result<String, Wrong> {
    use crate::files::{open_regular, read_bounded};
    let shown = path.display();
    let failed = |error: String| {
        Wrong::new(
            format!("cannot read the secret in {shown}: {error}"),
            "name a regular file of one line, readable by you alone (`chmod 600 FILE`)",
        )
    };
    let file = open_regular(path).map_err(failed)?;
    // Check the opened file: the path may lead to another by now.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let found = file.metadata().map_err(|error| failed(error.to_string()))?;
        let mode = found.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Wrong::new(
                format!(
                    "others may read the secret in {shown} (mode {:03o})",
                    mode & 0o777
                ),
                format!("run `chmod 600 {shown}`"),
            ));
        }
    }
    let text = read_bounded(file, MAX_SECRET_KIB).map_err(failed)?;
    one_line(text, &shown.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_have_a_kind() {
        let grant = Grant::parse("net:api.example.com:443,*.example.org").expect("a grant");
        assert_eq!(grant.to_string(), "net:api.example.com:443,*.example.org");
        let wrong = |text: &str| Grant::parse(text).expect_err(text);
        assert!(wrong("api.example.com").contains("net:api.example.com"));
        assert!(wrong("nte:example.com").contains("`net:`"));
        assert!(wrong("fs:/etc").contains("no grant `fs:`"));
        assert!(wrong("net:").contains("example.com:443"));
        assert!(!wrong("net:").contains("``"));
        assert!(wrong("net:a.com, b.com").contains("`net:a.com,b.com`"));
        assert!(wrong("https://a.com").contains("net:"));
        assert!(wrong("shell").contains("--sandbox"));
        assert!(wrong("xml").contains("needs no grant"));
        assert!(wrong("llm:gpt").contains("--script"));
        assert!(wrong("store").contains("--store FILE"));
    }

    #[test]
    fn headers_have_their_secret_elsewhere() {
        for text in [
            "https://api.example.com authorization=Bearer {env:TOKEN}",
            "https://api.example.com:8443 x-key={file:key.txt}",
        ] {
            assert_eq!(Header::parse(text).expect(text).to_string(), text);
        }
        for text in [
            "https://api.example.com authorization=Bearer s3cret",
            "https://api.example.com authorization",
            "api.example.com authorization={env:A}",
            "https://api.example.com x={env:}",
            "https://api.example.com x={file:}",
            "https://api.example.com x={text:s3cret}",
            "https://api.example.com x={env:A}{env:B}",
            "https://api.example.com authorization: Bearer s3cret={env:A}",
            "",
        ] {
            let error = Header::parse(text).expect_err(text);
            assert!(!error.contains("s3cret"), "{error}");
        }
        let mut header = Header::parse("https://a.example x={file:key}").expect("a header");
        header.relative_to(Path::new("/etc/a"));
        assert_eq!(header.to_string(), "https://a.example x={file:/etc/a/key}");
    }

    #[test]
    fn names_of_variables() {
        for bad in ["", "1A", "A-B", "A=B", "Ä"] {
            assert!(EnvName::parse(bad).is_err(), "{bad}");
        }
        let wrong = EnvName::parse("TOKEN=s3cret").expect_err("a value");
        assert!(
            wrong.contains("TOKEN") && !wrong.contains("s3cret"),
            "{wrong}"
        );
        assert!(EnvName::parse("_A1").is_ok());
    }
}
