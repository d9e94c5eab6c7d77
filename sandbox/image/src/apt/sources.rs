//! Debian mirrors: finds the machine's mirror in its apt sources, in both of apt's formats:
//! one-line entries (`sources.list(5)`) and deb822 stanzas.
//!
//! Only the address is used. The machine's trust settings, pins and other archives do not
//! matter here; packages are trusted because Debian signed them.

use std::fs;
use std::path::Path;

/// Fallback mirror for machines that name no working one.
pub const PUBLIC_MIRROR: &str = "http://deb.debian.org/debian";

/// Suite names that distinguish Debian's archive from others.
const SUITES: [&str; 13] = [
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "experimental",
];

/// Maximum size of a sources file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Returns the mirrors to try, best first: the machine's own, then the public one.
pub fn mirrors(etc_apt: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in source_files(etc_apt) {
        let deb822 = path.ends_with(".sources");
        found.extend(if deb822 { stanzas(&text) } else { lines(&text) });
    }
    found.push(PUBLIC_MIRROR.to_owned());
    let mut seen = Vec::new();
    for mirror in found {
        if !seen.contains(&mirror) {
            seen.push(mirror);
        }
    }
    seen
}

fn source_files(etc_apt: &Path) -> Vec<(String, String)> {
    let mut paths = vec![etc_apt.join("sources.list")];
    let listed = fs::read_dir(etc_apt.join("sources.list.d"))
        .into_iter()
        .flatten();
    let mut parts: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
    parts.sort();
    let known = |e: &std::ffi::OsStr| e == "list" || e == "sources";
    paths.extend(
        parts
            .into_iter()
            .filter(|path| path.extension().is_some_and(known)),
    );
    let small = |path: &Path| fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= MAX_FILE);
    let read = |path: &Path| fs::read(path).ok().filter(|_| small(path));
    let texts = paths.iter().filter_map(|path| {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        Some((path.to_string_lossy().into_owned(), text))
    });
    texts.collect()
}

/// Returns the Debian mirrors in lines `deb [OPTIONS] URI SUITE COMPONENT...`.
fn lines(text: &str) -> Vec<String> {
    text.lines().filter_map(line_mirror).collect()
}

fn line_mirror(line: &str) -> Option<String> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    // `deb-src` is a different type.
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let components: Vec<&str> = words.collect();
    debian(uri, &[suite], &components)
}

/// Returns the Debian mirrors in deb822 stanzas.
fn stanzas(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for stanza in deb822(text) {
        let words = |name: &str| -> Vec<&str> {
            let field = stanza
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name));
            field.map_or_else(Vec::new, |(_, value)| value.split_whitespace().collect())
        };
        let enabled = words("Enabled").first().is_none_or(|word| !is_no(word));
        if enabled && words("Types").contains(&"deb") {
            let (suites, components) = (words("Suites"), words("Components"));
            let uris = words("URIs").into_iter();
            found.extend(uris.filter_map(|uri| debian(uri, &suites, &components)));
        }
    }
    found
}

fn is_no(word: &str) -> bool {
    ["no", "false", "without", "off", "disable"].contains(&word.to_ascii_lowercase().as_str())
}

/// Parses stanzas in Debian's control format (deb822(5)): `Key: value`, with values
/// continued in indented lines and stanzas separated by empty lines. Comments are skipped.
pub fn deb822(text: &str) -> Vec<Vec<(&str, String)>> {
    let mut stanzas = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(stanza) = stanzas.last_mut() else {
            break;
        };
        if line.trim().is_empty() {
            if !stanza.is_empty() {
                stanzas.push(Vec::new());
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanza.last_mut() {
                let value: &mut String = value;
                value.push('\n');
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            stanza.push((key.trim(), value.trim().to_owned()));
        }
    }
    stanzas.retain(|stanza| !stanza.is_empty());
    stanzas
}

/// Returns the address if it is a mirror of Debian's main archive: fetched over the web, a
/// release or its updates, component `main`, and the folder that all mirrors have by
/// convention. The archive of security updates is a different one.
fn debian(uri: &str, suites: &[&str], components: &[&str]) -> Option<String> {
    let uri = uri.trim_end_matches('/');
    let web = uri.starts_with("http://") || uri.starts_with("https://");
    let plain = uri
        .chars()
        .all(|c| c.is_ascii_graphic() && !"\"\\[]".contains(c));
    let release = |suite: &&str| {
        let base = suite.strip_suffix("-updates").unwrap_or(suite);
        SUITES.contains(&base)
    };
    let ours = web
        && plain
        && uri.ends_with("/debian")
        && suites.iter().any(release)
        && components.contains(&"main");
    ours.then(|| uri.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_sources() {
        let text = "\
# deb http://commented.example/debian trixie main
deb-src http://source.example/debian trixie main
deb [signed-by=/k.gpg arch=amd64] https://a.example/debian/ bookworm main contrib # best
deb\thttp://b.example/pub/debian stable-updates main
deb cdrom:[Debian]/debian trixie main
deb http://security.example/debian-security bookworm-security main
deb http://ubuntu.example/ubuntu noble main
deb http://vendor.example/linux/debian bookworm stable
deb http://vendor.example/node bookworm main
deb http://vendor.example/debian nodistro main
deb
deb [ http://broken.example/debian trixie main
";
        assert_eq!(
            lines(text),
            ["https://a.example/debian", "http://b.example/pub/debian"]
        );
    }

    #[test]
    fn deb822_sources() {
        let text = "\
Types: deb deb-src
# the nearest
URIs: http://a.example/debian
  https://b.example/debian
Suites: trixie
 trixie-updates
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main


types: deb
uris: http://c.example/debian/
suites: sid
components: contrib main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb-src
URIs: http://source.example/debian
Suites: trixie
Components: main
";
        assert_eq!(
            stanzas(text),
            [
                "http://a.example/debian",
                "https://b.example/debian",
                "http://c.example/debian"
            ]
        );
    }

    #[test]
    fn addresses_cannot_bring_options_along() {
        assert_eq!(lines("deb http://x\"y.example/debian trixie main"), [""; 0]);
        assert_eq!(
            stanzas("Types: deb\nURIs: http://[o]/debian\nSuites: sid\nComponents: main"),
            [""; 0]
        );
    }

    #[test]
    fn the_public_mirror_comes_last() {
        let etc = tempfile::tempdir().unwrap();
        assert_eq!(mirrors(etc.path()), [PUBLIC_MIRROR]);
        let parts = etc.path().join("sources.list.d");
        fs::create_dir(&parts).unwrap();
        let own = "deb http://own.example/debian trixie main\n";
        fs::write(etc.path().join("sources.list"), own).unwrap();
        fs::write(parts.join("twice.list"), own).unwrap();
        fs::write(parts.join("old.list.bak"), own.replace("own", "old")).unwrap();
        let deb822 = "Types: deb\nURIs: http://z.example/debian\nSuites: sid\nComponents: main\n";
        fs::write(parts.join("z.sources"), deb822).unwrap();
        assert_eq!(
            mirrors(etc.path()),
            [
                "http://own.example/debian",
                "http://z.example/debian",
                PUBLIC_MIRROR
            ]
        );
    }
}
