//! Secret: a text of the host that is never printed.

use std::fmt;

/// Printed form of a secret.
const DOTS: &str = "......";

/// A password, token or key that prints as dots.
///
/// Programs never receive one; capabilities use it on their behalf.
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
