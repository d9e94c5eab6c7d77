//! Sandbox names. They are part of file names and of `cp`'s `NAME:PATH`, so few characters are
//! allowed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name: the limit of a label of a host name (RFC 1123 section 2.1).
const MAX_BYTES: usize = 63;

/// A checked name: `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = text.len() <= MAX_BYTES
            && text.bytes().next().is_some_and(plain)
            && text.bytes().all(|byte| plain(byte) || byte == b'-');
        if is_name {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "expected a name of 1 to {MAX_BYTES} lower-case letters, digits and `-`, \
             with no `-` first"
        ))
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "web-1", "a-", longest.as_str()] {
            assert_eq!(good.parse::<Name>().map(|name| name.0), Ok(good.to_owned()));
        }
        let longer = "a".repeat(64);
        for bad in [
            "", "-a", "A", "a_b", "a/b", "..", "a.b", "ä", "a b", "a\0", &longer,
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
