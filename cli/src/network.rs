//! Network of a run: requests that `--allow` permits.

use crate::address::origin_of;
use crate::checks::Check;
use crate::config::EffectiveConfig;
use crate::failure::{Failure, UNUSED_HEADER};
use crate::grants::policy_of;
use a99_core::diag::{Diagnostic, excerpt};
use a99_egress::{Destination, Policy};
use agent99::Capabilities;
#[cfg(feature = "http")]
use std::time::{Duration, Instant};

/// Warnings about headers for servers that the run cannot reach; most likely their names are
/// misspelt.
pub(crate) fn unused_headers(config: &EffectiveConfig) -> Vec<Diagnostic> {
    let settings = &config.set;
    let rules: Vec<&str> = settings.allow.iter().map(|grant| &*grant.rules).collect();
    // Services of models get their headers without a grant.
    let services = [settings.llm.as_deref(), settings.embed.as_deref()];
    let services: Vec<String> = services.into_iter().flatten().map(origin_of).collect();
    let policy = match rules.is_empty() {
        // A warning of the configuration reports it already.
        true if services.is_empty() && config.models.is_none() => return Vec::new(),
        true => Policy::default(),
        false => policy_of(&rules.join(",")).unwrap_or_default(),
    };
    let models = config.models.as_ref();
    let mut found = Vec::new();
    for header in settings.header.iter().filter_map(|arg| arg.0.as_ref().ok()) {
        let origin = origin_of(&header.origin);
        let is_served =
            services.contains(&origin) || models.is_some_and(|models| models.serves(&origin));
        let Some((_, authority)) = origin.split_once("://") else {
            continue;
        };
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let Ok(port) = port.parse() else { continue };
        let host = host.trim_matches(['[', ']']);
        let to = match host.parse() {
            Ok(address) => Destination::Address(address),
            Err(_) => Destination::Name(host),
        };
        let reaches = policy.check_destination(to, port).is_ok();
        if is_served || reaches {
            continue;
        }
        let authority = header
            .origin
            .split_once("://")
            .map_or(authority, |(_, rest)| rest);
        let origin = excerpt(&header.origin);
        let message = format!(
            "--header: no rule of `allow` reaches {origin}, so `{}` is never sent",
            excerpt(&header.name)
        );
        let help = format!(
            "add `--allow net:{}`, or correct the address",
            excerpt(authority)
        );
        found.push(
            Diagnostic::warning(UNUSED_HEADER, message, "")
                .with_offending(origin)
                .with_help(help),
        );
    }
    found
}

/// Timeout of a check whether a server responds.
#[cfg(feature = "http")]
pub(crate) const PROBE_TIME: Duration = Duration::from_secs(10);

/// The HTTP client that `--allow` grants.
#[cfg(feature = "http")]
fn allowed(config: &EffectiveConfig) -> Result<Option<a99_http::HttpFetch>, Failure> {
    let settings = &config.set;
    if settings.allow.is_empty() {
        return Ok(None);
    }
    let rules: Vec<&str> = settings.allow.iter().map(|grant| &*grant.rules).collect();
    let policy = policy_of(&rules.join(","))
        .map_err(|error| config.wrong("allow", 0, error, "grants are net:RULE,..."))?;
    let fetch = a99_http::HttpFetch::builder().policy(policy);
    let fetch = trusting(config, fetch, |_| true)?.build();
    let fetch = fetch.map_err(|error| config.wrong("allow", 0, error, "see docs/grants.md"))?;
    Ok(Some(fetch))
}

/// Adds the network that these settings grant.
#[cfg(feature = "http")]
pub(crate) fn grant(config: &EffectiveConfig, set: Capabilities) -> Result<Capabilities, Failure> {
    if config.yields("allow", set.fetch.is_some()) {
        return Ok(set);
    }
    if set.fetch.is_some() {
        let why = "it and the script's `fetch` exclude each other";
        return Err(config.wrong("allow", 0, why, "leave one of them out"));
    }
    Ok(match allowed(config)? {
        Some(fetch) => set.with_fetch(fetch),
        None => set,
    })
}

/// Checks that the servers named one by one in rules can be reached.
#[cfg(feature = "http")]
pub(crate) async fn checks(config: &EffectiveConfig) -> Vec<Check> {
    let fetch = match allowed(config) {
        Ok(Some(fetch)) => fetch,
        Ok(None) => return Vec::new(),
        Err(failure) => return vec![Check::failed(CHECK, &failure)],
    };
    let rules = config.set.allow.iter();
    let rules = rules.flat_map(|grant| grant.rules.split(',').map(str::trim));
    let mut checks = Vec::new();
    for rule in rules {
        checks.push(match urls(rule) {
            urls if urls.is_empty() => {
                Check::ok(CHECK, format!("{rule} names no single server to be asked"))
            }
            urls => server(&fetch, rule, &urls).await,
        });
    }
    checks
}

/// Name of the check of `--allow`.
const CHECK: &str = "network";

/// Requests a server's root page.
#[cfg(feature = "http")]
async fn server(fetch: &a99_http::HttpFetch, rule: &str, urls: &[String]) -> Check {
    let mut failed = String::new();
    for url in urls {
        let started = Instant::now();
        let asked = fetch.open(a99_http::StreamRequest::get(url));
        let why = match tokio::time::timeout(PROBE_TIME, asked).await {
            Ok(Ok(answer)) => {
                let (status, ms) = (answer.status(), started.elapsed().as_millis());
                return Check::ok(CHECK, format!("{rule} answers {status} within {ms} ms"));
            }
            // The server responds; a redirect to another origin is not followed.
            Ok(Err(error)) if error.code() == a99_http::FetchCode::Redirect => {
                return Check::ok(CHECK, format!("{rule} answers with a redirect"));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", PROBE_TIME.as_secs()),
        };
        if failed.is_empty() {
            failed = why;
        }
    }
    let help = "see that the name and the port are right and the server is up; `--ca FILE` trusts \
                authorities of your own";
    Check::problem(CHECK, format!("{rule}: {failed}"), help)
}

/// URLs for a rule that names one server; empty if it names several.
#[cfg(feature = "http")]
fn urls(rule: &str) -> Vec<String> {
    let after = rule.rsplit_once(']').map_or(rule, |(_, after)| after);
    let port = after.split_once(':').map(|(_, port)| port);
    if rule.contains(['*', '/']) || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Vec::new();
    }
    match port {
        None | Some("443") => vec![format!("https://{rule}/")],
        Some("80") => vec![format!("http://{rule}/")],
        // A TLS server refuses plain HTTP at once, but a plain server may not refuse TLS.
        Some(_) => vec![format!("http://{rule}/"), format!("https://{rule}/")],
    }
}

/// An HTTP client for the host's requests, with headers for these origins only. The program cannot
/// use it.
#[cfg(all(feature = "http", any(feature = "embed", feature = "models")))]
pub(crate) fn to_origins(
    config: &EffectiveConfig,
    named: &str,
    origins: &[String],
    fetch: a99_http::Builder,
) -> Result<a99_http::HttpFetch, Failure> {
    let wrong = |why: String| Failure::usage(format!("{named}: {why}"));
    let fetch = trusting(config, fetch, |header| {
        let header = origin_of(header);
        origins.iter().any(|origin| origin_of(origin) == header)
    })?;
    fetch.build().map_err(|error| wrong(error.to_string()))
}

/// Origins of these URLs.
#[cfg(feature = "models")]
pub(crate) fn origins<'u>(
    named: &str,
    urls: impl Iterator<Item = &'u str>,
) -> Result<Vec<String>, Failure> {
    let wrong = |why: String| Failure::usage(format!("{named}: {why}"));
    let found = urls.map(|url| origin(url).map(|(origin, _)| origin));
    found.collect::<Result<_, _>>().map_err(wrong)
}

/// An HTTP client for the host's requests to the origin of this URL.
#[cfg(all(feature = "http", feature = "embed"))]
pub(crate) fn to_origin(
    config: &EffectiveConfig,
    named: &str,
    url: &str,
) -> Result<a99_http::HttpFetch, Failure> {
    let wrong = |why: String| Failure::usage(format!("{named}: {why}"));
    let (origin, rule) = origin(url).map_err(wrong)?;
    let policy = policy_of(&rule).map_err(wrong)?;
    let fetch = a99_http::HttpFetch::builder().policy(policy);
    to_origins(config, named, &[origin], fetch)
}

/// The origin of a URL and the rule that names its server.
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

/// A client with these rules, and with the certificate authorities and headers of these settings;
/// headers only for origins that `sends` accepts.
#[cfg(feature = "http")]
fn trusting(
    config: &EffectiveConfig,
    mut fetch: a99_http::Builder,
    sends: impl Fn(&str) -> bool,
) -> Result<a99_http::Builder, Failure> {
    let settings = &config.set;
    if let Some(path) = &settings.ca {
        fetch = fetch.ca_file(path);
    }
    if let Some(error) = fetch.failed() {
        let help = "name a PEM file of certificates; without `ca` the system's authorities count";
        return Err(config.wrong("ca", 0, error, help));
    }
    // Parsing has refused unreadable headers already.
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
pub(crate) async fn checks(config: &EffectiveConfig) -> Vec<Check> {
    let failed = grant(config, Capabilities::none()).err();
    let failed = failed.map(|failure| Check::failed(CHECK, &failure));
    failed.into_iter().collect()
}

#[cfg(not(feature = "http"))]
pub(crate) fn grant(config: &EffectiveConfig, set: Capabilities) -> Result<Capabilities, Failure> {
    match config.set.allow.is_empty() {
        true => Ok(set),
        false => {
            let what = format!("{} net:...", config.named("allow", 0));
            Err(Failure::missing_feature(&what, "http"))
        }
    }
}

/// Adds XML parsing, which every run has because it needs no resource of the host. A script's
/// answers take precedence.
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
