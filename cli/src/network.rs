//! Network of a run: fetches as `--allow` grants them.

use crate::config::InForce;
use crate::failure::Failure;
use agent99::Capabilities;

/// What the run is granted with these settings.
#[cfg(feature = "http")]
pub(crate) fn grant(config: &InForce, set: Capabilities) -> Result<Capabilities, Failure> {
    use a99_http::{HttpFetch, Policy};
    let settings = &config.set;
    if settings.allow.is_empty() {
        return Ok(set);
    }
    if set.fetch.is_some() {
        let why = "it and the script's `fetch` exclude each other";
        return Err(config.wrong("allow", 0, why, "leave one of them out"));
    }
    let rules: Vec<&str> = settings.allow.iter().map(|grant| &*grant.rules).collect();
    let policy: Policy = crate::grants::policy_of(&rules.join(","))
        .map_err(|error| config.wrong("allow", 0, error, "grants are net:RULE,..."))?;
    let mut fetch = HttpFetch::builder().policy(policy);
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
    let fetch = fetch.build();
    let fetch = fetch.map_err(|error| config.wrong("allow", 0, error, "see docs/grants.md"))?;
    Ok(set.with_fetch(fetch))
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
