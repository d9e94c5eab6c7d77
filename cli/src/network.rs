//! Network of a run: fetches as `--allow` grants them.

use crate::config::InForce;
use crate::failure::Failure;
use agent99::Capabilities;

/// What the run is granted with these settings.
#[cfg(feature = "http")]
pub(crate) fn grant(config: &InForce, set: Capabilities) -> Result<Capabilities, Failure> {
    let settings = &config.set;
    if settings.allow.is_empty() {
        return Ok(set);
    }
    if set.fetch.is_some() {
        let why = "it and the script's `fetch` exclude each other";
        return Err(config.wrong("allow", 0, why, "leave one of them out"));
    }
    let rules: Vec<&str> = settings.allow.iter().map(|grant| &*grant.rules).collect();
    let policy = crate::grants::policy_of(&rules.join(","))
        .map_err(|error| config.wrong("allow", 0, error, "grants are net:RULE,..."))?;
    let fetch = trusting(config, policy, |_| true)?.build();
    let fetch = fetch.map_err(|error| config.wrong("allow", 0, error, "see docs/grants.md"))?;
    Ok(set.with_fetch(fetch))
}

/// Requests to one origin, with the headers that are for it. The program has no part in
/// them.
#[cfg(all(feature = "http", any(feature = "embed", feature = "models")))]
pub(crate) fn to_origin(
    config: &InForce,
    option: &str,
    url: &str,
) -> Result<a99_http::HttpFetch, Failure> {
    let wrong = |why: String| Failure::usage(format!("{option} {url}: {why}"));
    let (origin, rule) = origin(url).map_err(wrong)?;
    let policy = crate::grants::policy_of(&rule).map_err(wrong)?;
    let fetch = trusting(config, policy, |header| *header == origin)?;
    fetch.build().map_err(|error| wrong(error.to_string()))
}

/// The origin of an address and the rule that names its server.
#[cfg(all(feature = "http", any(feature = "embed", feature = "models")))]
fn origin(url: &str) -> Result<(String, String), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let port = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return Err("it must begin with `https://` or `http://`".to_owned()),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(
            "it must name a server, without a user: keys are sent by `--header`".to_owned(),
        );
    }
    let after_address = authority
        .rsplit_once(']')
        .map_or(authority, |(_, rest)| rest);
    let rule = match after_address.contains(':') {
        true => authority.to_owned(),
        false => format!("{authority}:{port}"),
    };
    Ok((format!("{scheme}://{authority}"), rule))
}

/// Requests under a policy, with the authorities and the headers of these settings, of
/// those the ones for origins that `sends` says.
#[cfg(feature = "http")]
fn trusting(
    config: &InForce,
    policy: a99_http::Policy,
    sends: impl Fn(&str) -> bool,
) -> Result<a99_http::Builder, Failure> {
    let settings = &config.set;
    let mut fetch = a99_http::HttpFetch::builder().policy(policy);
    if let Some(path) = &settings.ca {
        fetch = fetch.ca_file(path);
    }
    if let Some(error) = fetch.failed() {
        let help = "name a PEM file of certificates; without `ca` the system's authorities count";
        return Err(config.wrong("ca", 0, error, help));
    }
    // What cannot be read was refused when it was parsed.
    for (at, header) in settings.header.iter().enumerate() {
        let Ok(header) = &header.0 else { continue };
        if !sends(&header.origin) {
            continue;
        }
        let secret = header
            .read()
            .map_err(|wrong| config.wrong("header", at, wrong.text, wrong.help))?;
        fetch = fetch.credential(&header.origin, &header.name, &secret);
        if let Some(error) = fetch.failed() {
            let help = "an origin of https:, or of the loopback, gets one header of each name, \
                        as in `https://api.example.com authorization=Bearer {env:TOKEN}`";
            return Err(config.wrong("header", at, error, help));
        }
    }
    Ok(fetch)
}

#[cfg(not(feature = "http"))]
pub(crate) fn grant(config: &InForce, set: Capabilities) -> Result<Capabilities, Failure> {
    match config.set.allow.is_empty() {
        true => Ok(set),
        false => {
            let what = format!("{} net:...", config.named("allow", 0));
            Err(Failure::missing_feature(&what, "http"))
        }
    }
}

/// XML needs nothing of the host's, so that every run has it; a script's answers stand
/// before it.
#[cfg(feature = "xml")]
pub(crate) fn with_xml(set: Capabilities) -> Capabilities {
    match set.xml.is_some() {
        true => set,
        false => set.with_xml(a99_xml::XmlParser::new()),
    }
}

#[cfg(not(feature = "xml"))]
pub(crate) fn with_xml(set: Capabilities) -> Capabilities {
    set
}

#[cfg(all(test, feature = "http", any(feature = "embed", feature = "models")))]
mod tests {
    use super::origin;

    #[test]
    fn an_address_names_one_server() {
        for (url, wanted, rule) in [
            ("https://a.example/v1", "https://a.example", "a.example:443"),
            (
                "http://localhost:11434/v1",
                "http://localhost:11434",
                "localhost:11434",
            ),
            ("http://[::1]", "http://[::1]", "[::1]:80"),
            ("http://[::1]:8080/x", "http://[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(origin(url), Ok((wanted.to_owned(), rule.to_owned())));
        }
        for url in [
            "ftp://a.example",
            "https://",
            "https://key@a.example/v1",
            "a.example",
        ] {
            assert!(origin(url).is_err(), "{url}");
        }
    }
}
