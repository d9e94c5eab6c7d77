//! Places of stores, as options name them.

use std::fmt;
use std::path::{Path, PathBuf};

/// Place of a store, as an option gives it. A mistake is reported later without the text, which may
/// hold a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorePlace {
    File(PathBuf),
    Server(ServerUrl),
}

impl StorePlace {
    pub(crate) fn parse(text: &str) -> Result<StorePlace, std::convert::Infallible> {
        Ok(match text.contains("://") {
            true => StorePlace::Server(ServerUrl(text.to_owned())),
            false => StorePlace::File(text.into()),
        })
    }

    /// Resolves a relative path of a file against this folder.
    pub(crate) fn relative_to(self, folder: &Path) -> StorePlace {
        match self {
            StorePlace::File(path) => StorePlace::File(folder.join(path)),
            server => server,
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            StorePlace::File(path) => Some(path),
            StorePlace::Server(_) => None,
        }
    }

    /// Whether the user's password from the environment is sent to it.
    pub(crate) fn asks_for_a_secret(&self) -> bool {
        matches!(self, StorePlace::Server(url) if !url.has_password())
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::File(path) => path.display().fmt(f),
            StorePlace::Server(url) => url.fmt(f),
        }
    }
}

/// URL of a server. Its display shows only user, hosts, ports and database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl(pub(crate) String);

impl ServerUrl {
    /// Splits at the last `@`, which no host contains: scheme, login and rest.
    pub(crate) fn parts(&self) -> (&str, Option<&str>, &str) {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        match rest.rsplit_once('@') {
            Some((login, rest)) => (scheme, Some(login), rest),
            None => (scheme, None, rest),
        }
    }

    fn has_password(&self) -> bool {
        let (_, login, rest) = self.parts();
        let parameters = rest
            .split_once('?')
            .map_or("", |(_, parameters)| parameters);
        login.is_some_and(|login| login.contains(':'))
            || parameters.split('&').any(|p| p.starts_with("password="))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, login, rest) = self.parts();
        let user = login.map(|login| login.split(':').next().unwrap_or_default());
        let place = rest.split(['?', '#']).next().unwrap_or_default();
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let is_plain = |text: &str| !text.contains(['/', '?', '#', '@']);
        let has_ports = hosts.split(',').all(|host| {
            // Colons of an IPv6 address stand in brackets.
            let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
            let port = after.split_once(':').map_or("", |(_, port)| port);
            port.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_plain(scheme) || !user.is_none_or(is_plain) || !has_ports {
            return f.write_str("(not readable)");
        }
        write!(f, "{scheme}://")?;
        if let Some(user) = user {
            write!(f, "{user}@")?;
        }
        f.write_str(hosts)?;
        match database {
            "" => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> StorePlace {
        let Ok(place) = StorePlace::parse(text);
        place
    }

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("postgres://ann:hunter2@h/db", "postgres://ann@h/db"),
            (
                "postgres://ann:hunter2@h:5432,i:1/db?sslmode=disable",
                "postgres://ann@h:5432,i:1/db",
            ),
            ("postgres://ann@h?password=hunter2", "postgres://ann@h"),
            ("postgres://h/db?password=hunter2", "postgres://h/db"),
            ("postgres://[::1]:5432/db", "postgres://[::1]:5432/db"),
            // These characters should have been percent-encoded.
            ("postgres://ann:hun/ter2@h/db", "postgres://ann@h/db"),
            ("postgres://ann:hun?ter2@h/db", "postgres://ann@h/db"),
            ("postgres://ann:hun@ter2@h/db", "postgres://ann@h/db"),
            ("postgres://ann:hun#ter2@h", "postgres://ann@h"),
            // Neither host nor user.
            ("postgres://ann:hunter2", "(not readable)"),
            ("postgres://ann/x:hunter2@h", "(not readable)"),
            ("postgres://:hunter2@h", "postgres://@h"),
            ("mysql://ann:hunter2@h/db", "mysql://ann@h/db"),
            ("://ann:hunter2", "(not readable)"),
        ] {
            let place = place(text);
            assert_eq!(place.to_string(), shown, "{text}");
            let debug = format!("{place:?}");
            assert!(!debug.contains("ter2"), "{debug}");
        }
    }

    #[test]
    fn files_are_beside_their_configuration_and_servers_are_not() {
        let folder = Path::new("/a/b");
        let file = place("c.db").relative_to(folder);
        assert_eq!(file.file(), Some(Path::new("/a/b/c.db")));
        let server = place("postgres://h/db").relative_to(folder);
        assert_eq!(
            (server.to_string().as_str(), server.file()),
            ("postgres://h/db", None)
        );
    }

    #[test]
    fn the_environments_password_is_a_secret() {
        for (text, asks) in [
            ("a.db", false),
            ("postgres://ann@h/db", true),
            ("postgres://h", true),
            ("postgres://h?application_name=password=x", true),
            ("postgres://ann:p@h/db", false),
            ("postgres://h/db?user=ann&password=p", false),
        ] {
            assert_eq!(place(text).asks_for_a_secret(), asks, "{text}");
        }
    }
}
