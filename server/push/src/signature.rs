//! Signatures of requests, as [Standard Webhooks] has them: HMAC-SHA256 over id, time and body.
//!
//! [Standard Webhooks]: https://www.standardwebhooks.com

use crate::codes::{BAD_REGISTRATION, BAD_SIGNATURE, OLD, REPLAYED};
use crate::fed::locked;
use a99_runtime::AgentError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use subtle::ConstantTimeEq as _;

/// The header with the id of a request.
pub const ID: &str = "webhook-id";
/// The header with its time, in seconds since 1970.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header with its signatures.
pub const SIGNATURE: &str = "webhook-signature";

/// How far the time of a request may be from now, in seconds.
pub const TOLERANCE: u64 = 300;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// Bytes of a new secret, and the bounds of one.
const NEW_BYTES: usize = 32;
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;

/// Ids that are remembered; beyond it the oldest is forgotten.
const MAX_IDS: usize = 100_000;

/// Maximum bytes of an id, and signatures of a request that are looked at.
const MAX_ID_BYTES: usize = 256;
const MAX_SIGNATURES: usize = 8;

/// A shared secret, written `whsec_` and base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A new secret.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new() -> Result<Secret, AgentError> {
        let mut bytes = vec![0; NEW_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| AgentError::new(BAD_REGISTRATION, error.to_string()))?;
        Ok(Secret(bytes))
    }

    /// Reads a secret of 24 to 64 bytes.
    ///
    /// # Errors
    /// `push.bad_registration`
    pub fn parse(text: &str) -> Result<Secret, AgentError> {
        let bytes = text.trim().strip_prefix(PREFIX);
        let bytes = bytes.and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.filter(|bytes| (MIN_BYTES..=MAX_BYTES).contains(&bytes.len()));
        bytes.map(Secret).ok_or_else(|| {
            let message = format!("a secret is `{PREFIX}` and the base64 of 24 to 64 bytes");
            AgentError::new(BAD_REGISTRATION, message).fatal()
        })
    }

    /// The secret as text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The value of [`SIGNATURE`] for a request.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        format!("v1,{}", STANDARD.encode(self.mac(id, timestamp, body)))
    }

    fn mac(&self, id: &str, timestamp: u64, body: &[u8]) -> [u8; 32] {
        // Never fails: HMAC takes keys of any length.
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0) else {
            return [0; 32];
        };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

/// The headers of a signed request.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// [`ID`]
    pub id: &'a str,
    /// [`TIMESTAMP`]
    pub timestamp: &'a str,
    /// [`SIGNATURE`]: one or several, separated by spaces.
    pub signature: &'a str,
}

/// Checks requests: their signatures, their time, and that each is taken once.
#[derive(Debug)]
pub struct Verifier {
    secrets: Vec<Secret>,
    seen: Mutex<Seen>,
    max_ids: usize,
}

#[derive(Debug, Default)]
struct Seen {
    ids: HashSet<String>,
    /// In the order of their arrival, with the second of it.
    order: VecDeque<(u64, String)>,
}

impl Verifier {
    /// A verifier that takes requests signed with any of these secrets.
    ///
    /// # Errors
    /// `push.bad_registration` without secrets.
    pub fn new(secrets: Vec<Secret>) -> Result<Verifier, AgentError> {
        if secrets.is_empty() {
            let message = "a receiver has at least one secret";
            return Err(AgentError::new(BAD_REGISTRATION, message).fatal());
        }
        Ok(Verifier {
            secrets,
            seen: Mutex::default(),
            max_ids: MAX_IDS,
        })
    }

    /// Checks a request at a time in seconds since 1970, and takes its id.
    ///
    /// # Errors
    /// `push.bad_signature`, `push.old_timestamp`, `push.replayed`
    pub fn check(&self, signed: Signed<'_>, body: &[u8], now: u64) -> Result<(), AgentError> {
        let bad = |message: &str| AgentError::new(BAD_SIGNATURE, message).fatal();
        if signed.id.is_empty() || signed.id.len() > MAX_ID_BYTES || signed.id.contains('.') {
            return Err(bad("`webhook-id` is missing, too long, or has a dot"));
        }
        let timestamp: u64 = signed.timestamp.parse().map_err(|_| {
            bad("`webhook-timestamp` is missing, or not a number of seconds since 1970")
        })?;
        let sent = signed.signature.split(' ').take(MAX_SIGNATURES);
        let sent: Vec<Vec<u8>> = sent
            .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok())
            .collect();
        // All are compared, so that the time says nothing about which one is right.
        let mut is_right = subtle::Choice::from(0);
        for secret in &self.secrets {
            let mac = secret.mac(signed.id, timestamp, body);
            for one in &sent {
                is_right |= mac.as_slice().ct_eq(one);
            }
        }
        if !bool::from(is_right) {
            return Err(bad("no signature of `webhook-signature` is right"));
        }
        if timestamp.abs_diff(now) > TOLERANCE {
            let message = format!("the request is of another time than now: by over {TOLERANCE} s");
            return Err(AgentError::new(OLD, message).fatal());
        }
        let mut seen = locked(&self.seen);
        // A time in the future is valid for up to twice the tolerance from now.
        let is_old = |at: u64| now.saturating_sub(at) > 2 * TOLERANCE;
        while seen
            .order
            .front()
            .is_some_and(|(at, _)| is_old(*at) || seen.order.len() >= self.max_ids)
        {
            if let Some((_, id)) = seen.order.pop_front() {
                seen.ids.remove(&id);
            }
        }
        if !seen.ids.insert(signed.id.to_owned()) {
            let message = "a request with this id was taken before";
            return Err(AgentError::new(REPLAYED, message).fatal());
        }
        seen.order.push_back((now, signed.id.to_owned()));
        Ok(())
    }

    /// Lets a request be sent again under its id: it had no effect.
    pub(crate) fn release(&self, id: &str) {
        locked(&self.seen).ids.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn signed<'a>(id: &'a str, timestamp: &'a str, signature: &'a str) -> Signed<'a> {
        Signed {
            id,
            timestamp,
            signature,
        }
    }

    fn code(checked: Result<(), AgentError>) -> String {
        checked.expect_err("refused").code().to_owned()
    }

    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret = Secret::parse(SECRET).expect("a secret");
        assert_eq!(secret.sign(ID, AT, BODY), SIGNATURE);
        assert_eq!(secret.text(), SECRET);
    }

    #[test]
    fn a_request_is_taken_once_and_only_as_it_was_signed() {
        let other = Secret::new().expect("a secret");
        let secrets = vec![other.clone(), Secret::parse(SECRET).expect("a secret")];
        let verifier = Verifier::new(secrets).expect("a verifier");
        let at = AT.to_string();
        let wrong = [
            (signed("msg_other", &at, SIGNATURE), BODY),
            (signed(ID, "1614265331", SIGNATURE), BODY),
            (signed(ID, "", SIGNATURE), BODY),
            (signed(ID, &at, ""), BODY),
            (signed(ID, &at, "v1,AAAA v2,g0hM9SsE"), BODY),
            (signed(ID, &at, SIGNATURE), b"{}"),
            (signed("a.b", &at, SIGNATURE), BODY),
        ];
        for (request, body) in wrong {
            assert_eq!(code(verifier.check(request, body, AT)), BAD_SIGNATURE);
        }
        let request = signed(ID, &at, SIGNATURE);
        assert_eq!(code(verifier.check(request, BODY, AT + 301)), OLD);
        assert_eq!(code(verifier.check(request, BODY, AT - 301)), OLD);
        // While a secret is replaced there are two signatures.
        let both = format!("v1,AAAA {SIGNATURE}");
        verifier
            .check(signed(ID, &at, &both), BODY, AT + 300)
            .expect("right");
        assert_eq!(code(verifier.check(request, BODY, AT + 300)), REPLAYED);
        verifier.release(ID);
        verifier.check(request, BODY, AT + 300).expect("released");
        let third = other.sign("msg_2", AT, BODY);
        verifier
            .check(signed("msg_2", &at, &third), BODY, AT)
            .expect("the other secret");
    }

    #[test]
    fn the_memory_of_ids_is_bounded() {
        let secret = Secret::parse(SECRET).expect("a secret");
        let mut verifier = Verifier::new(vec![secret.clone()]).expect("a verifier");
        verifier.max_ids = 100;
        let at = AT.to_string();
        let check = |id: &str, now: u64| {
            let signature = secret.sign(id, AT, b"");
            verifier.check(signed(id, &at, &signature), b"", now)
        };
        for n in 0..110 {
            check(&n.to_string(), AT).expect("new");
        }
        assert_eq!(locked(&verifier.seen).ids.len(), 100);
        assert_eq!(code(check("105", AT)), REPLAYED);
    }

    #[test]
    fn secrets_have_a_form() {
        for wrong in [
            "",
            "whsec_",
            "whsec_AAAA",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert_eq!(
                Secret::parse(wrong).expect_err(wrong).code(),
                BAD_REGISTRATION
            );
        }
        let secret = Secret::new().expect("a secret");
        assert_eq!(Secret::parse(&secret.text()).expect("the same"), secret);
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
