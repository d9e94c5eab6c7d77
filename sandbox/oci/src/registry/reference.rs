//! Names of images in registries: `HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]`.

use crate::blob::Digest;
use crate::error::{OciCode, OciError, quoted};

/// How names of registries' images begin on the command line, as of skopeo.
pub const SCHEME: &str = "docker://";

/// The registry of names without a host, and where its API is.
const HUB: &str = "docker.io";
const HUB_API: &str = "registry-1.docker.io";

/// Repository of the names without a slash there.
const HUB_LIBRARY: &str = "library";

/// Maximum bytes of a repository's name and of a tag, as of the distribution specification.
const MAX_REPOSITORY: usize = 255;
const MAX_TAG: usize = 128;

/// Name of an image in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    host: String,
    pub(crate) repository: String,
    tag: String,
    pub(crate) digest: Option<Digest>,
}

impl Reference {
    /// Parses a name, with or without [`SCHEME`]. Without a host it is one of Docker Hub,
    /// without a tag or digest that of `latest`.
    ///
    /// # Errors
    /// [`OciCode::Name`].
    pub fn parse(text: &str) -> Result<Self, OciError> {
        let wrong = |what: &str| {
            OciError::new(OciCode::Name, quoted(text.as_bytes()), what)
                .help("write docker://HOST[:PORT]/REPOSITORY[:TAG] or ...@sha256:DIGEST")
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(Digest::parse(digest)?)),
            None => (rest, None),
        };
        let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let (host, path) = match rest.split_once('/') {
            Some((host, path)) if is_host(host) => (host, path.to_owned()),
            Some(_) => (HUB, rest.to_owned()),
            None => (HUB, format!("{HUB_LIBRARY}/{rest}")),
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (path.as_str(), "latest"),
        };
        let in_host = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
        if host.is_empty() || !host.bytes().all(in_host) {
            return Err(wrong("not a host"));
        }
        let in_part = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let is_part = |part: &str| {
            let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
            edge(part.bytes().next()) && edge(part.bytes().last()) && part.bytes().all(in_part)
        };
        if repository.len() > MAX_REPOSITORY || !repository.split('/').all(is_part) {
            return Err(wrong(
                "not a repository: small letters and digits, with . _ - /",
            ));
        }
        let in_tag = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if tag.is_empty() || tag.len() > MAX_TAG || !tag.bytes().all(in_tag) {
            return Err(wrong("not a tag"));
        }
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            digest,
        })
    }

    /// Host and port of the registry's API.
    pub(crate) fn api_host(&self) -> &str {
        match self.host.as_str() {
            HUB => HUB_API,
            host => host,
        }
    }

    /// What the registry knows the manifest by.
    pub(crate) fn manifest(&self) -> String {
        match &self.digest {
            Some(digest) => format!("sha256:{}", digest.hex()),
            None => self.tag.clone(),
        }
    }

    /// The name for people, without a digest.
    pub(crate) fn name(&self) -> String {
        let (host, repository) = (&self.host, &self.repository);
        match self.digest {
            Some(_) => format!("{host}/{repository}"),
            None => format!("{host}/{repository}:{}", self.tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_by_docker() {
        let of = |text: &str| {
            let found = Reference::parse(text).unwrap();
            let api = found.api_host().to_owned();
            (api, found.repository.clone(), found.manifest())
        };
        let hex = "0".repeat(64);
        let digest = format!("sha256:{hex}");
        for (text, host, repository, manifest) in [
            ("docker://alpine", HUB_API, "library/alpine", "latest"),
            ("a/b:1", HUB_API, "a/b", "1"),
            ("docker.io/a/b", HUB_API, "a/b", "latest"),
            ("docker://localhost/x", "localhost", "x", "latest"),
            ("[::1]:5000/x:V.1_-", "[::1]:5000", "x", "V.1_-"),
            (
                &format!("docker://r.test:5/a/b_c-d.e:2@{digest}"),
                "r.test:5",
                "a/b_c-d.e",
                &digest,
            ),
        ] {
            let expected = (host.to_owned(), repository.to_owned(), manifest.to_owned());
            assert_eq!(of(text), expected, "{text}");
        }
        for text in [
            "",
            "docker://",
            "r.test/",
            "r.test/A",
            "r.test/../etc",
            "r.test/a//b",
            "r.test/a:",
            "r.test/a:b c",
            "r.test/a?x=y",
            "user:pass@r.test/a",
            "r.test/a@sha256:00",
            "http://r.test/a",
            "r.te\\st:1/a",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }
}
