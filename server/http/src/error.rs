//! Errors of listeners and tokens, and their form in responses.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerCode {
    /// The request has no token, or one that is not valid.
    Unauthorized,
    /// The token is not valid for this action on this channel.
    Forbidden,
    /// The token has expired.
    TokenExpired,
    /// A token stands in the URL, which logs keep.
    TokenInUrl,
    /// The file of tokens is damaged, or others may read it.
    BadTokensFile,
    /// The file of tokens cannot be read or written.
    TokensFile,
    /// No token has this id.
    UnknownToken,
    /// A scope or a name of a token is invalid.
    BadScope,
    /// The address is reachable from other machines, and nothing encrypts.
    UnsafeAddress,
    /// A name of a host or an origin among the options is invalid.
    BadOption,
    /// The listener cannot take its address.
    Bind,
    /// The certificate or its key cannot be used.
    BadCertificate,
    /// The `Host` of the request does not name this listener.
    WrongHost,
    /// A page of another origin sent the request.
    WrongOrigin,
    /// The request's body is too large.
    BodyTooLarge,
    /// The request's body did not arrive in time.
    BodyTimeout,
    /// The server has too many connections.
    Busy,
}

impl ServerCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The status of a response with this error.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().1
    }

    const fn row(self) -> (&'static str, StatusCode) {
        match self {
            Self::Unauthorized => ("server.unauthorized", StatusCode::UNAUTHORIZED),
            Self::Forbidden => ("server.forbidden", StatusCode::FORBIDDEN),
            Self::TokenExpired => ("server.token_expired", StatusCode::UNAUTHORIZED),
            Self::TokenInUrl => ("server.token_in_url", StatusCode::BAD_REQUEST),
            Self::BadTokensFile => ("server.bad_tokens_file", StatusCode::SERVICE_UNAVAILABLE),
            Self::TokensFile => ("server.tokens_file", StatusCode::SERVICE_UNAVAILABLE),
            Self::UnknownToken => ("server.unknown_token", StatusCode::NOT_FOUND),
            Self::BadScope => ("server.bad_scope", StatusCode::BAD_REQUEST),
            Self::UnsafeAddress => ("server.unsafe_address", StatusCode::INTERNAL_SERVER_ERROR),
            Self::BadOption => ("server.bad_option", StatusCode::INTERNAL_SERVER_ERROR),
            Self::Bind => ("server.bind", StatusCode::INTERNAL_SERVER_ERROR),
            Self::BadCertificate => ("server.bad_certificate", StatusCode::INTERNAL_SERVER_ERROR),
            Self::WrongHost => ("server.wrong_host", StatusCode::MISDIRECTED_REQUEST),
            Self::WrongOrigin => ("server.wrong_origin", StatusCode::FORBIDDEN),
            Self::BodyTooLarge => ("server.body_too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::BodyTimeout => ("server.body_timeout", StatusCode::REQUEST_TIMEOUT),
            Self::Busy => ("server.busy", StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

/// Why a listener, a token or a request was refused. Its text has no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    code: ServerCode,
    message: String,
    help: String,
}

impl ServerError {
    pub(crate) fn new(
        code: ServerCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ServerError {
        ServerError {
            code,
            message: message.into(),
            help: help.into(),
        }
    }

    /// The grant does not allow it.
    #[must_use]
    pub fn forbidden(action: crate::Action, channel: &str) -> ServerError {
        let shown: String = channel.chars().take(40).collect();
        ServerError::new(
            ServerCode::Forbidden,
            format!("the token has no scope `{action}` for the channel {shown:?}"),
            "use a token with that scope: `a99 token new --scope ACTION:CHANNEL` creates one",
        )
    }

    /// The request has no token.
    #[must_use]
    pub fn no_token() -> ServerError {
        ServerError::new(
            ServerCode::Unauthorized,
            "the request has no token",
            "send it as `Authorization: Bearer TOKEN`, in a socket also in `hello`; `a99 token new` \
             makes one",
        )
    }

    /// The kind.
    #[must_use]
    pub const fn code(&self) -> ServerCode {
        self.code
    }

    /// What mends it.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ServerError {}

/// An error as a response: `{"error":{"code","message","help"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// The stable code.
    pub code: Cow<'static, str>,
    /// The error in one sentence.
    pub message: String,
    /// What mends it; may be empty.
    pub help: String,
}

impl ApiError {
    /// An error of any crate.
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ApiError {
        ApiError {
            status,
            code: code.into(),
            message: message.into(),
            help: help.into(),
        }
    }
}

impl From<ServerError> for ApiError {
    fn from(error: ServerError) -> ApiError {
        let (status, code) = (error.code.status(), error.code.name());
        match error.code {
            // The text has a path of this machine, which clients need not know.
            ServerCode::BadTokensFile | ServerCode::TokensFile => ApiError::new(
                status,
                code,
                "the server cannot read its tokens",
                "ask who runs the server to look at its file of tokens",
            ),
            _ => ApiError::new(status, code, error.message, error.help),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "error": { "code": self.code, "message": self.message, "help": self.help }
        });
        let mut response = (self.status, axum::Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl IntoResponse for ServerError {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}
