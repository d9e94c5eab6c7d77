//! Secret: a text of the host's that is never shown.

use std::fmt;

/// What stands in place of a secret.
const DOTS: &str = "......";

/// A text that prints as dots, whatever prints it: a password, a token, a key.
///
/// Programs are given none; a capability uses them on their behalf.
///
/// ```
/// use a99_capabilities::Secret;
///
/// let token = Secret::new("hunter2");
/// assert_eq!(format!("{token} {token:?}"), "...... Secret(......)");
/// assert_eq!(token.expose(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// A secret of this text.
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DOTS)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({DOTS})")
    }
}
