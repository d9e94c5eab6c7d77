//! Errors of container images, each with a stable code.

use std::fmt;
use std::io;

/// Kind of a failure; the text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OciCode {
    /// The archive is damaged, or not a container image.
    Damaged,
    /// A blob or a layer differs from its digest or size.
    Digest,
    /// The image is for another processor or system.
    Architecture,
    /// The archive uses a feature that is not supported.
    Unsupported,
    /// The archive exceeds a limit.
    Limit,
    /// An entry of a layer leads out of the image, or a link leads nowhere.
    Path,
    /// The archive or the cache has no such image or blob.
    NotFound,
    /// The name of an image cannot be one.
    Name,
    /// A file cannot be read or written.
    Io,
    /// The process that reads the archive failed, or exceeded its limits.
    Worker,
    /// A registry cannot be reached, or answers what a registry does not.
    Registry,
    /// A registry refuses access, or credentials would go to another host.
    Access,
    /// The network policy does not allow a registry, or where it redirects to.
    Denied,
}

impl OciCode {
    /// Returns the code as stable text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            OciCode::Damaged => "oci.damaged",
            OciCode::Digest => "oci.digest",
            OciCode::Architecture => "oci.architecture",
            OciCode::Unsupported => "oci.unsupported",
            OciCode::Limit => "oci.limit",
            OciCode::Path => "oci.path",
            OciCode::NotFound => "oci.not_found",
            OciCode::Name => "oci.name",
            OciCode::Io => "oci.io",
            OciCode::Worker => "oci.worker",
            OciCode::Registry => "oci.registry",
            OciCode::Access => "oci.access",
            OciCode::Denied => "oci.denied",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [
            OciCode::Damaged,
            OciCode::Digest,
            OciCode::Architecture,
            OciCode::Unsupported,
            OciCode::Limit,
            OciCode::Path,
            OciCode::NotFound,
            OciCode::Name,
            OciCode::Io,
            OciCode::Worker,
        ];
        all.into_iter().find(|code| code.name() == name)
    }
}

/// Failure of reading or using a container image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciError {
    /// Kind of the failure.
    pub code: OciCode,
    /// Place of the failure: a blob, an entry, a file.
    pub place: String,
    /// Description of the failure.
    pub text: String,
    /// Remedy, if one is known.
    pub help: Option<String>,
}

/// Longest quotation of a name in a message.
const MAX_QUOTED: usize = 120;

impl OciError {
    pub(crate) fn new(code: OciCode, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code,
            place: place.into(),
            text: text.into(),
            help: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn io(place: impl Into<String>, error: &io::Error) -> Self {
        let error_text = error.to_string();
        match error.kind() {
            // Errors of this crate that passed through a reader.
            io::ErrorKind::Other => match error.get_ref().and_then(|e| e.downcast_ref::<Self>()) {
                Some(inner) => inner.clone(),
                None => damaged(place, error_text),
            },
            io::ErrorKind::UnexpectedEof => damaged(place, "it ends too early")
                .help("the file is incomplete: fetch or save the image again"),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => damaged(place, error_text),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::new(OciCode::Io, place, "no space left")
                    .help("make room, or name another folder in A99_CACHE_DIR")
            }
            _ => Self::new(OciCode::Io, place, error_text),
        }
    }
}

/// Error of a damaged archive.
pub(crate) fn damaged(place: impl Into<String>, text: impl Into<String>) -> OciError {
    OciError::new(OciCode::Damaged, place, text)
}

/// Error of an exceeded limit.
pub(crate) fn limit(place: impl Into<String>, what: &str, most: u64) -> OciError {
    let text = format!("more than {most} {what}");
    OciError::new(OciCode::Limit, place, text)
        .help("images of people stay far below: use one with less in it")
}

/// Quotes a name of an archive for a message: bounded, without control characters.
pub(crate) fn quoted(name: &[u8]) -> String {
    let cut = name.get(..MAX_QUOTED).unwrap_or(name);
    let more = if cut.len() < name.len() { "..." } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}

impl fmt::Display for OciError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for OciError {}

impl From<OciError> for io::Error {
    fn from(error: OciError) -> Self {
        io::Error::other(error)
    }
}
