//! Errors of fetches.

use std::error::Error;
use std::fmt;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FetchCode {
    /// The URL or an option has the wrong type.
    Input,
    /// The text is not a URL.
    Url,
    /// The grant does not allow the scheme of the URL.
    Scheme,
    /// The URL has a user name or password.
    Credentials,
    /// The method is not supported.
    Method,
    /// A header is invalid, or a program may not set it.
    Header,
    /// A body is not allowed here, too large, or cannot be sent again.
    Body,
    /// The network policy does not allow it.
    Denied,
    /// The program made more requests, or to more hosts, than the grant allows.
    Quota,
    /// The policy changed during the request.
    Revoked,
    /// The name has no address.
    Resolve,
    /// The connection failed.
    Connect,
    /// TLS failed, usually by an invalid certificate.
    Tls,
    /// The system has no certificate authorities to trust.
    NoRoots,
    /// A file of certificate authorities cannot be used.
    CaFile,
    /// The connection ended early.
    Closed,
    /// The response is not HTTP.
    Protocol,
    /// The request exceeded its time limit.
    Timeout,
    /// The head of the response is too large.
    HeaderTooLarge,
    /// The body is too large, compressed or decompressed.
    BodyTooLarge,
    /// The body cannot be decompressed.
    Encoding,
    /// There are too many redirects, or one leads nowhere.
    Redirect,
    /// The response has a status of at least 400.
    Status,
    /// The response is not JSON.
    Json,
    /// The fetch needs a tokio runtime.
    Runtime,
}

impl FetchCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FetchCode::Input => "fetch.input",
            FetchCode::Url => "fetch.url",
            FetchCode::Scheme => "fetch.scheme",
            FetchCode::Credentials => "fetch.credentials",
            FetchCode::Method => "fetch.method",
            FetchCode::Header => "fetch.header",
            FetchCode::Body => "fetch.body",
            FetchCode::Denied => "fetch.denied",
            FetchCode::Quota => "fetch.quota",
            FetchCode::Revoked => "fetch.revoked",
            FetchCode::Resolve => "fetch.resolve",
            FetchCode::Connect => "fetch.connect",
            FetchCode::Tls => "fetch.tls",
            FetchCode::NoRoots => "fetch.no_roots",
            FetchCode::CaFile => "fetch.ca_file",
            FetchCode::Closed => "fetch.closed",
            FetchCode::Protocol => "fetch.protocol",
            FetchCode::Timeout => "fetch.timeout",
            FetchCode::HeaderTooLarge => "fetch.header_too_large",
            FetchCode::BodyTooLarge => "fetch.body_too_large",
            FetchCode::Encoding => "fetch.encoding",
            FetchCode::Redirect => "fetch.redirect",
            FetchCode::Status => "fetch.status",
            FetchCode::Json => "fetch.json",
            FetchCode::Runtime => "fetch.runtime",
        }
    }
}

/// Why a fetch failed. Its text is what the program sees; it names the origin and
/// neither path nor query nor headers (security N18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    code: FetchCode,
    message: String,
    rule: Option<String>,
}

impl FetchError {
    pub(crate) fn new(code: FetchCode, message: impl Into<String>) -> FetchError {
        FetchError {
            code,
            message: message.into(),
            rule: None,
        }
    }

    /// With the rule of the policy that would allow it.
    pub(crate) fn allowed_by(mut self, rule: Option<String>) -> FetchError {
        self.rule = rule;
        self
    }

    /// The kind.
    #[must_use]
    pub fn code(&self) -> FetchCode {
        self.code
    }

    /// The description, without the rule.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The rule that would allow what was denied, as a policy's text has it.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// The one that stands among the causes of another error.
    pub(crate) fn within<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e FetchError> {
        causes(error).find_map(|cause| cause.downcast_ref())
    }
}

/// An error and its causes; an error of I/O counts with what it wraps.
pub(crate) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let this = next?;
        let wrapped = this
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        next = wrapped.or_else(|| this.source());
        Some(this)
    })
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.rule {
            Some(rule) => write!(f, "; --allow net:{rule} would allow it"),
            None => Ok(()),
        }
    }
}

impl Error for FetchError {}
