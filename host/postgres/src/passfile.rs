//! Password file of libpq, which `PGPASSFILE` names: lines of `host:port:database:user:password`.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The password of the first line that is for this server, database and user.
pub(crate) fn find(text: &str, config: &Config) -> Option<String> {
    let user = config.get_user().unwrap_or_default();
    let wanted = [
        host(config),
        config.get_ports().first().unwrap_or(&5432).to_string(),
        config.get_dbname().unwrap_or(user).to_owned(),
        user.to_owned(),
    ];
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let (password, place) = fields.split_last()?;
        let is_for = place.len() == wanted.len()
            && (place.iter().zip(&wanted))
                .all(|((text, is_plain), wanted)| text == wanted || *is_plain && text == "*");
        is_for.then(|| password.0.clone())
    })
}

fn host(config: &Config) -> String {
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config
            .get_hostaddrs()
            .first()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}

/// The fields of a line, each with whether none of it was escaped. The fifth is the rest.
fn fields(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), true)];
    let mut letters = line.trim_end_matches('\r').chars();
    while let Some(letter) = letters.next() {
        let is_last = fields.len() == 5;
        let Some((field, is_plain)) = fields.last_mut() else {
            break;
        };
        match letter {
            '\\' => {
                *is_plain = false;
                field.extend(letters.next());
            }
            ':' if !is_last => fields.push((String::new(), true)),
            letter => field.push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# host:5432:d:u:no\nhost:5433:d:u:other port\nhost:*:d:ann:a\\:b:c\\\\\n\
                    *:*:*:bob:any\nhost:5432:\\*:u:escaped\nfew:fields\n[::1]:5432:d:u:no\n\
                    \\:\\:1:5432:d:u:six\n/run/pg:*:*:*:socket\n";
        for (url, password) in [
            ("postgres://ann@host/d", Some("a:b:c\\")),
            ("postgres://ann@host:5433/d", Some("a:b:c\\")),
            ("postgres://u@host:5433/d", Some("other port")),
            ("postgres://u@host/d", None),
            ("postgres://u@host/*", Some("escaped")),
            ("postgres://bob@elsewhere", Some("any")),
            ("postgres://u@[::1]/d", Some("six")),
            ("postgres://x@%2Frun%2Fpg/d", Some("socket")),
        ] {
            let config: Config = url.parse().unwrap();
            assert_eq!(find(text, &config).as_deref(), password, "{url}");
        }
    }
}
