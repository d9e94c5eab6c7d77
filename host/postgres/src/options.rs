//! Options of a store: server, user, and TLS.

use crate::error::{PostgresCode, PostgresError};
use crate::tls::{Trust, Verify};
use a99_capabilities::Secret;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Accepted URL parameters, in addition to those of TLS.
const PARAMETERS: [&str; 17] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "load_balance_hosts",
];

/// Parameters of libpq whose effect is not supported here.
const OTHERS: [&str; 13] = [
    "channel_binding",
    "gssencmode",
    "passfile",
    "requirepeer",
    "require_auth",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslpassword",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "sslsni",
];

/// Largest password file in bytes.
const MAX_PASSWORD_BYTES: u64 = 64 << 10;

/// Longest schema name in bytes, PostgreSQL's limit.
const MAX_NAME_BYTES: usize = 63;

/// Address and settings of a store.
///
/// ```
/// use a99_postgres::PostgresOptions;
///
/// let options = PostgresOptions::of_url("postgres://ann:hunter2@db.example.com/agents")?;
/// assert_eq!(options.place(), "postgres://ann@db.example.com:5432/agents");
/// assert!(!format!("{options:?}").contains("hunter2"));
/// # Ok::<(), a99_postgres::PostgresError>(())
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) config: Config,
    pub(crate) verify: Verify,
    pub(crate) trust: Trust,
    /// Schema of the tables; created if missing.
    pub schema: String,
    /// Most connections in the pool; at least one.
    pub connections: usize,
    /// Timeout of connecting.
    pub connect_timeout: Duration,
    /// Timeout of a statement on the server. A call may take this plus the time of connecting.
    pub statement_timeout: Duration,
}

impl PostgresOptions {
    /// Parses a URL such as `postgres://user:password@host:5432/database`. Known parameters
    /// have libpq's meaning: `?host=/run/postgresql` names the folder of a socket.
    ///
    /// | `sslmode` | encrypted | verified server |
    /// |---|---|---|
    /// | `disable` | no | no |
    /// | `prefer` | if the server can | no |
    /// | `require` | yes | no; with `sslrootcert`, as `verify-ca` |
    /// | `verify-ca` | yes | an authority's certificate |
    /// | `verify-full` | yes | an authority's certificate for the URL's host |
    ///
    /// The default is `verify-full`, or `prefer` for servers on this machine. A socket is never
    /// encrypted. Certificate authorities are those of the system, or of the PEM file
    /// `sslrootcert`.
    ///
    /// A URL without a password uses the environment variable `PGPASSWORD`, or the file of
    /// passwords that `PGPASSFILE` names, as libpq does. Only its owner may read that file.
    ///
    /// # Errors
    /// [`PostgresCode::Config`] for an invalid URL. Errors show no part of it except parameter
    /// names.
    pub fn of_url(url: &str) -> Result<PostgresOptions, PostgresError> {
        let (rest, tls) = split(url)?;
        let mut config: Config = rest.parse().map_err(|_| {
            wrong("the URL cannot be read; it is like postgres://user@host:5432/database")
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong(
                "the URL names no host, such as postgres://user@host/database",
            ));
        }
        if config.get_password().is_none()
            && let Some(password) = password_of_environment(&config)?
        {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("agent99");
        }
        let trust = match tls.authorities.as_deref() {
            None | Some("system") => Trust::System,
            Some(path) => Trust::File(PathBuf::from(path)),
        };
        let verify = verify_of(&config, tls.mode.as_deref(), &trust)?;
        config.ssl_mode(match verify {
            Verify::Disable => SslMode::Disable,
            Verify::Prefer => SslMode::Prefer,
            Verify::Require | Verify::Authority | Verify::Full => SslMode::Require,
        });
        let connect_timeout = config.get_connect_timeout().copied();
        Ok(PostgresOptions {
            config,
            verify,
            trust,
            schema: "agent99".to_owned(),
            connections: 8,
            connect_timeout: connect_timeout.unwrap_or(Duration::from_secs(10)),
            statement_timeout: Duration::from_secs(30),
        })
    }

    /// The same options with a password.
    #[must_use]
    pub fn with_password(mut self, password: &Secret) -> PostgresOptions {
        self.config.password(password.expose());
        self
    }

    /// The same options with the password in a file, which only its owner may read and which
    /// holds nothing else. A final line end is not part of the password.
    ///
    /// # Errors
    /// [`PostgresCode::Config`] if the file is unreadable, or readable by others (`chmod 600`).
    pub fn with_password_file(self, path: &Path) -> Result<PostgresOptions, PostgresError> {
        let text = read_private(path)
            .map_err(|why| wrong(format!("the password file {}: {why}", path.display())))?;
        Ok(self.with_password(&Secret::new(text.trim_end_matches(['\r', '\n']))))
    }

    /// The server, the user and the database, as a URL without the password.
    #[must_use]
    pub fn place(&self) -> String {
        let config = &self.config;
        let user = config
            .get_user()
            .map_or_else(String::new, |u| format!("{u}@"));
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let mut hosts: Vec<String> = Vec::new();
        for (at, host) in config.get_hosts().iter().enumerate() {
            hosts.push(match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
                Host::Tcp(name) => format!("{name}:{}", port(at)),
                #[cfg(unix)]
                Host::Unix(folder) => format!("{}:{}", folder.display(), port(at)),
            });
        }
        if hosts.is_empty() {
            let addresses = config.get_hostaddrs().iter().enumerate();
            hosts.extend(addresses.map(|(at, address)| format!("{address}:{}", port(at))));
        }
        let database = config
            .get_dbname()
            .map_or_else(String::new, |d| format!("/{d}"));
        format!("postgres://{user}{}{database}", hosts.join(","))
    }

    /// Checks the fields.
    pub(crate) fn check(&self) -> Result<(), PostgresError> {
        let name = self.schema.as_str();
        if name.is_empty()
            || name.len() > MAX_NAME_BYTES
            || name.contains('\0')
            || name.starts_with("pg_")
        {
            return Err(wrong(format!(
                "the name of a schema has 1 to {MAX_NAME_BYTES} bytes and does not begin with pg_"
            )));
        }
        Ok(())
    }

    /// SQL that initialises each connection.
    pub(crate) fn settings(&self) -> String {
        let schema = self.quoted_schema();
        let most = self.statement_timeout.as_millis().clamp(1, 1 << 30);
        // Acknowledged writes are on disk under any server settings. Every query walks an index
        // from a key: without statistics, or with misleading ones, the server would read and
        // sort whole tables.
        format!(
            "SET search_path TO {schema}, pg_temp;
             SET default_transaction_isolation TO 'read committed';
             SET statement_timeout TO {most};
             SET idle_in_transaction_session_timeout TO {most};
             SET client_min_messages TO warning;
             SET enable_seqscan TO off;
             SET enable_sort TO off;
             SET enable_hashjoin TO off;
             SET enable_mergejoin TO off;
             SET jit TO off;
             SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off'"
        )
    }

    pub(crate) fn quoted_schema(&self) -> String {
        format!("\"{}\"", self.schema.replace('"', "\"\""))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.config.get_password().map(|_| Secret::new(""));
        let mut out = f.debug_struct("PostgresOptions");
        out.field("place", &self.place());
        out.field("password", &password);
        out.field("verify", &self.verify);
        out.field("trust", &self.trust);
        out.field("schema", &self.schema);
        out.field("connections", &self.connections);
        out.field("connect_timeout", &self.connect_timeout);
        out.field("statement_timeout", &self.statement_timeout);
        out.finish_non_exhaustive()
    }
}

/// The password that the environment has for a server.
fn password_of_environment(config: &Config) -> Result<Option<String>, PostgresError> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let Some(path) = std::env::var_os("PGPASSFILE").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let text = read_private(Path::new(&path)).map_err(|why| {
        let path = Path::new(&path).display();
        wrong(format!("the file {path} of PGPASSFILE: {why}"))
    })?;
    Ok(crate::passfile::find(&text, config))
}

fn wrong(message: impl Into<String>) -> PostgresError {
    PostgresError::new(PostgresCode::Config, message)
}

/// TLS parameters of a URL, which this crate interprets.
#[derive(Default)]
struct TlsParameters {
    mode: Option<String>,
    authorities: Option<String>,
}

/// Splits a URL into the client's part and the TLS parameters.
fn split(url: &str) -> Result<(String, TlsParameters), PostgresError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(wrong(
            "the URL begins with postgres://, such as postgres://user@host:5432/database",
        ));
    }
    let mut tls = TlsParameters::default();
    let Some((before, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls));
    };
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => tls.mode = Some(value()),
            "sslrootcert" => tls.authorities = Some(value()),
            _ if PARAMETERS.contains(&name) => kept.push(pair),
            _ if OTHERS.contains(&name) => {
                return Err(wrong(format!(
                    "the URL's parameter {name} is not known here"
                )));
            }
            // An unencoded password may have been parsed as a parameter.
            _ => return Err(wrong("the URL has a parameter that is none")),
        }
    }
    let rest = match kept.is_empty() {
        true => before.to_owned(),
        false => format!("{before}?{}", kept.join("&")),
    };
    Ok((rest, tls))
}

fn verify_of(config: &Config, mode: Option<&str>, trust: &Trust) -> Result<Verify, PostgresError> {
    let is_file = matches!(trust, Trust::File(_));
    let hosts = config.get_hosts();
    #[cfg(unix)]
    if !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_))) {
        return Ok(Verify::Disable);
    }
    match mode {
        None if is_local(config) && !is_file => Ok(Verify::Prefer),
        None | Some("verify-full") => Ok(Verify::Full),
        Some("disable") => Ok(Verify::Disable),
        Some("prefer") => Ok(Verify::Prefer),
        Some("require") if is_file => Ok(Verify::Authority),
        Some("require") => Ok(Verify::Require),
        Some("verify-ca") => Ok(Verify::Authority),
        Some(_) => Err(wrong(
            "sslmode is one of disable, prefer, require, verify-ca, verify-full",
        )),
    }
}

/// True if all servers are on this machine.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|a: IpAddr| a.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// The text of a small file that only its owner may read.
fn read_private(path: &Path) -> Result<String, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > MAX_PASSWORD_BYTES {
        return Err("it is no small file".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if found.permissions().mode() & 0o077 != 0 {
            return Err("others may read it; chmod 600 keeps it to its owner".to_owned());
        }
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> PostgresOptions {
        PostgresOptions::of_url(url).unwrap()
    }

    #[test]
    fn sslmode_is_that_of_libpq_but_safe_without() {
        for (url, verify) in [
            ("postgres://u@db.example.com/d", Verify::Full),
            (
                "postgres://u@db.example.com/d?sslmode=disable",
                Verify::Disable,
            ),
            (
                "postgres://u@db.example.com/d?sslmode=prefer",
                Verify::Prefer,
            ),
            (
                "postgres://u@db.example.com/d?sslmode=require",
                Verify::Require,
            ),
            (
                "postgres://u@db.example.com/d?sslmode=require&sslrootcert=/ca%20s",
                Verify::Authority,
            ),
            (
                "postgres://u@db.example.com/d?sslmode=verify-ca",
                Verify::Authority,
            ),
            (
                "postgresql://u@db.example.com/d?sslmode=verify-full",
                Verify::Full,
            ),
            ("postgres://u@localhost/d", Verify::Prefer),
            ("postgres://u@[::1]/d", Verify::Prefer),
            ("postgres://u@127.0.0.1,10.0.0.1/d", Verify::Full),
            ("postgres://u@127.0.0.1/d?sslrootcert=/ca", Verify::Full),
            ("postgres://u@10.0.0.1/d?hostaddr=127.0.0.1", Verify::Prefer),
            ("postgres://u@localhost/d?hostaddr=10.0.0.1", Verify::Full),
            (
                "postgres:///d?host=/run/postgresql&sslmode=require",
                Verify::Disable,
            ),
        ] {
            assert_eq!(of(url).verify, verify, "{url}");
        }
        let file = of("postgres://u@h/d?sslmode=require&sslrootcert=/ca%20s").trust;
        assert_eq!(file, Trust::File("/ca s".into()));
    }

    #[test]
    fn no_error_shows_a_password() {
        for url in [
            "hunter2",
            "host=h password=hunter2 x",
            "postgres://u:hunter2@h:port/d",
            "postgres://u:pa?hunter2@h/d",
            "postgres://u:pa?hunter2=@h/d",
            "postgres://u:hunter2@/d?hostaddr=x",
            "postgres://u:hunter2@h/d?sslmode=some",
            "postgres://u:hunter2@h/d?sslcert=some",
            "postgres://u:hunter2@h/d?connect_timeout=hunter2",
            "postgres://u:hunter2@",
        ] {
            let error = PostgresOptions::of_url(url).unwrap_err();
            assert_eq!(error.code(), PostgresCode::Config, "{url}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn passwords_print_as_dots() {
        let options = of("postgres://ann:hunter2@h:99/d?password=hunter2&sslmode=disable");
        let shown = format!("{options:?} {}", options.place());
        assert!(shown.contains("Secret(......)") && !shown.contains("hunter2"));
        assert!(shown.ends_with("postgres://ann@h:99/d"), "{shown}");
    }

    #[cfg(unix)]
    #[test]
    fn a_password_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, "hunter2\n").unwrap();
        let read = || of("postgres://u@h/d").with_password_file(&path);
        for (mode, is_private) in [(0o644, false), (0o640, false), (0o600, true), (0o400, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match read() {
                Ok(options) => {
                    assert!(is_private);
                    assert_eq!(options.config.get_password(), Some(&b"hunter2"[..]));
                }
                Err(error) => {
                    assert!(!is_private, "{mode:o}");
                    assert!(error.to_string().contains("chmod 600"), "{error}");
                }
            }
        }
        let folder = of("postgres://u@h/d").with_password_file(folder.path());
        assert_eq!(folder.unwrap_err().code(), PostgresCode::Config);
    }

    #[test]
    fn schemas_have_names() {
        for (name, is_one) in [("a", true), ("", false), ("pg_x", false), ("a\"; --", true)] {
            let mut options = of("postgres://u@h/d");
            options.schema = name.to_owned();
            assert_eq!(options.check().is_ok(), is_one, "{name}");
        }
        let mut options = of("postgres://u@h/d");
        options.schema = "a\"b".to_owned();
        assert_eq!(options.quoted_schema(), "\"a\"\"b\"");
    }
}
