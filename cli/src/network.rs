//! Network of a run: fetches as `--allow` grants them.

use crate::args::Settings;
use crate::failure::Failure;
use agent99::Capabilities;

/// What the run is granted with these settings.
#[cfg(feature = "http")]
pub(crate) fn grant(settings: &Settings, set: Capabilities) -> Result<Capabilities, Failure> {
    use a99_http::{HttpFetch, Policy};
    if settings.allow.is_empty() {
        return Ok(set);
    }
    if set.fetch.is_some() {
        return Err(Failure::usage(
            "--allow and the script's `fetch` exclude each other",
        ));
    }
    let rules: Vec<&str> = settings.allow.iter().map(|grant| &*grant.rules).collect();
    let policy: Policy = crate::grants::policy_of(&rules.join(","))
        .map_err(|error| Failure::about("--allow", error))?;
    let mut fetch = HttpFetch::builder().policy(policy);
    if let Some(path) = &settings.ca {
        fetch = fetch.ca_file(path);
    }
    // What cannot be read was refused when it was parsed.
    for header in settings
        .header
        .iter()
        .filter_map(|header| header.0.as_ref().ok())
    {
        let secret = header
            .read()
            .map_err(|error| Failure::about("--header", error))?;
        fetch = fetch.credential(&header.origin, &header.name, &secret);
    }
    let fetch = fetch.build().map_err(|error| {
        let option = match error.code() {
            a99_http::FetchCode::CaFile => "--ca",
            _ => "--header",
        };
        Failure::about(option, error)
    })?;
    Ok(set.with_fetch(fetch))
}

#[cfg(not(feature = "http"))]
pub(crate) fn grant(settings: &Settings, set: Capabilities) -> Result<Capabilities, Failure> {
    match settings.allow.is_empty() {
        true => Ok(set),
        false => Err(Failure::missing_feature("`--allow net:...`", "http")),
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
