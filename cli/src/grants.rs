//! Grants of the command line: what a program may reach, and the secrets that go with
//! its requests.

use a99_core::diag::suggest;
use std::fmt;
use std::path::{Path, PathBuf};

/// Kinds of grants.
const KINDS: [&str; 1] = ["net"];

/// A grant as it is written: `net:RULE,...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The rules of the network policy.
    pub rules: String,
}

impl Grant {
    /// Reads a grant.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn parse(text: &str) -> Result<Grant, String> {
        let rules = match text.split_once(':') {
            Some(("net", rules)) if rules.contains("://") => {
                return Err("a rule is HOST or HOST:PORT: leave out the scheme".to_owned());
            }
            Some(("net", rules)) => rules,
            // A rule without its kind: what stands first is a host.
            _ if host_of(text).contains(['.', '*']) && check(text).is_ok() => {
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
        check(rules)?;
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

/// What stands before the first colon.
fn host_of(rule: &str) -> &str {
    rule.split(':').next().unwrap_or(rule)
}

/// Whether rules can be read.
#[cfg(feature = "http")]
fn check(rules: &str) -> Result<(), String> {
    policy_of(rules).map(|_| ())
}

#[cfg(not(feature = "http"))]
fn check(rules: &str) -> Result<(), String> {
    // Read where the feature is that needs them: till then a grant is refused.
    match rules.is_empty() || rules.contains(char::is_whitespace) {
        true => Err("write HOST or HOST:PORT, such as example.com:443".to_owned()),
        false => Ok(()),
    }
}

/// The policy of rules in a row.
#[cfg(feature = "http")]
pub(crate) fn policy_of(rules: &str) -> Result<a99_http::Policy, String> {
    format!("allow:{rules}")
        .parse()
        .map_err(|error: a99_http::PolicyError| {
            format!(
                "`{}`: {}",
                a99_core::diag::excerpt(&error.found),
                error.help
            )
        })
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvName(pub String);

impl EnvName {
    /// Reads a name.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn parse(text: &str) -> Result<EnvName, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match !text.is_empty()
            && text.chars().all(plain)
            && !text.starts_with(|c: char| c.is_ascii_digit())
        {
            true => Ok(EnvName(text.to_owned())),
            false => Err("expected the name of a variable: letters, digits and `_`".to_owned()),
        }
    }

    /// Its value.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn read(&self) -> Result<String, String> {
        std::env::var(&self.0).map_err(|error| match error {
            std::env::VarError::NotPresent => {
                format!("the environment has no variable {}", self.0)
            }
            std::env::VarError::NotUnicode(_) => format!("{} is not UTF-8", self.0),
        })
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A header as an option has it: what is wrong with it is told later, without its text,
/// which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderArg(pub Result<Header, String>);

impl HeaderArg {
    /// Reads a header.
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
    /// Where it is sent to.
    pub origin: String,
    /// Its name.
    pub name: String,
    before: String,
    source: SecretSource,
    after: String,
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretSource {
    Env(EnvName),
    File(PathBuf),
}

const FORM: &str = "expected ORIGIN NAME=TEXT with {env:VARIABLE} or {file:PATH} in it, as in \
                    `https://api.example.com authorization=Bearer {env:TOKEN}`";

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// What was expected; nothing of the text, which may be a secret.
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
        if after.contains('{') || !origin.contains("://") || !named {
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

    /// Reads its file from this folder, if it names none.
    pub(crate) fn relative_to(&mut self, folder: &Path) {
        if let SecretSource::File(path) = &mut self.source {
            *path = folder.join(&*path);
        }
    }

    /// The whole text, with the secret.
    ///
    /// # Errors
    /// Why there is none.
    #[cfg(feature = "http")]
    pub(crate) fn read(&self) -> Result<agent99::capabilities::Secret, String> {
        let secret = match &self.source {
            SecretSource::Env(name) => name.read()?,
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

/// Bytes that a secret has at most.
#[cfg(feature = "http")]
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The first line of a file that nobody else may read.
#[cfg(feature = "http")]
fn secret_file(path: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let file = std::fs::File::open(path).map_err(failed)?;
    // Of the file that was opened: another may take its place.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!(
                "others may read the secret in {shown} (mode {:03o}): run `chmod 600 {shown}`",
                mode & 0o777
            ));
        }
    }
    let mut text = String::new();
    file.take(MAX_SECRET_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.is_empty() || line.contains('\n') {
        true => Err(format!("{shown}: a secret is one line")),
        false => Ok(line.to_owned()),
    }
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
        assert!(EnvName::parse("_A1").is_ok());
    }
}
