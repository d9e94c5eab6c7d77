//! Signatures of artifacts: Ed25519 (RFC 8032) over the content hash.
//!
//! A signature is 88 bytes after the end of an artifact: the magic `a99s`, the algorithm (1,
//! little-endian), the key id (the first 16 bytes of the SHA-256 of the 32 public bytes) and the 64
//! bytes of RFC 8032. The signed text is `agent99 artifact v1`, a zero byte, algorithm and key id
//! as they are in the file, and the content hash. So neither algorithm nor key id can be exchanged,
//! and an artifact that lost a section or its source needs a new signature.
//!
//! The host decides which keys it trusts and until when: see [`TrustedKeys`]. There is only one
//! algorithm, which rules out algorithm confusion.

#[cfg(feature = "signing")]
pub use keys::{
    KeyId, SecretKey, TrustedKey, TrustedKeys, check, check_text, key_id, sign, sign_text,
};

/// Purpose of the signature of a package's list of files: see [`sign_text`].
#[cfg(feature = "signing")]
pub const PACKAGE: &str = "agent99 package v1";

/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 4 + 4 + 16 + 64;

#[cfg(feature = "signing")]
mod keys {
    use super::super::decode::{DecodeOptions, header};
    use super::super::error::{ArtifactError, codes};
    use super::SIGNATURE_BYTES;
    use crate::json::{Document, Kind, Limits, NodeId};
    use crate::text::hex;
    use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
    use serde_json::json;
    use sha2::{Digest, Sha256};
    use std::fmt;

    /// Magic number of a signature.
    const SIGNATURE_MAGIC: [u8; 4] = *b"a99s";
    /// Number of the algorithm Ed25519.
    const ED25519: u32 = 1;
    /// Domain separation: the prefix of the signed text of an artifact. A signature made for
    /// another purpose never verifies.
    const DOMAIN: &str = "agent99 artifact v1";
    /// `agent99_key` of a secret key file.
    const SECRET: &str = "ed25519-secret";
    /// `agent99_key` of a public key file.
    const PUBLIC: &str = "ed25519-public";

    /// Id of a key: the first 16 bytes of the SHA-256 of its public bytes.
    #[derive(Copy, Clone, PartialEq, Eq, Hash)]
    pub struct KeyId([u8; 16]);

    impl KeyId {
        fn of(public: &[u8; 32]) -> KeyId {
            let mut id = [0; 16];
            id.copy_from_slice(&Sha256::digest(public)[..16]);
            KeyId(id)
        }
    }

    impl fmt::Display for KeyId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&hex(&self.0))
        }
    }

    impl fmt::Debug for KeyId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "KeyId({self})")
        }
    }

    /// A key file in JSON: the key is 32 bytes in hexadecimal.
    #[derive(Default)]
    struct KeyFile {
        agent99_key: String,
        id: String,
        public: String,
        secret: Option<String>,
        /// Expiry in seconds since 1970.
        expires: Option<u64>,
    }

    impl KeyFile {
        fn read(text: &Document, file: NodeId) -> Result<KeyFile, ArtifactError> {
            let mut key = KeyFile::default();
            for (name, value) in text.members(file) {
                let name = String::from_utf8_lossy(name);
                let is_no = |what| malformed(format_args!("`{name}` is no {what}"));
                let words = || match text.kind(value) {
                    Kind::String(words) => Ok(String::from_utf8_lossy(words).into_owned()),
                    _ => Err(is_no("text")),
                };
                match (&*name, text.kind(value)) {
                    ("agent99_key", _) => key.agent99_key = words()?,
                    ("id", _) => key.id = words()?,
                    ("public", _) => key.public = words()?,
                    ("secret", _) => key.secret = Some(words()?),
                    ("expires", Kind::Number(at)) if at >= 0.0 => key.expires = Some(at as u64),
                    ("expires", _) => return Err(is_no("number of seconds since 1970")),
                    _ => return Err(is_no("name that it has")),
                }
            }
            Ok(key)
        }
    }

    /// A secret key for signing.
    pub struct SecretKey {
        key: SigningKey,
        expires: Option<u64>,
    }

    impl fmt::Debug for SecretKey {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "SecretKey({})", self.id())
        }
    }

    impl SecretKey {
        /// A key from 32 random bytes, which the host draws from the system. `expires` is in
        /// seconds since 1970; `None` means that the key does not expire.
        pub fn from_seed(seed: &[u8; 32], expires: Option<u64>) -> SecretKey {
            SecretKey {
                key: SigningKey::from_bytes(seed),
                expires,
            }
        }

        /// Reads a secret key file.
        ///
        /// # Errors
        /// [`codes::BAD_KEY_FILE`].
        pub fn from_json(text: &[u8]) -> Result<SecretKey, ArtifactError> {
            let text = Document::parse(text, &Limits::default()).map_err(malformed)?;
            let file = KeyFile::read(&text, text.root())?;
            let secret = file.secret.as_deref().and_then(bytes32);
            let (SECRET, Some(seed)) = (&*file.agent99_key, secret) else {
                return Err(malformed("there is no secret key in it"));
            };
            let key = SecretKey::from_seed(&seed, file.expires);
            let fits = bytes32(&file.public) == Some(key.key.verifying_key().to_bytes());
            if !fits || file.id != key.id().to_string() {
                return Err(malformed("its parts do not belong together"));
            }
            Ok(key)
        }

        /// Id of the key.
        pub fn id(&self) -> KeyId {
            KeyId::of(&self.key.verifying_key().to_bytes())
        }

        fn file(&self, secret: bool) -> String {
            let mut file = json!({
                "agent99_key": if secret { SECRET } else { PUBLIC },
                "id": self.id().to_string(),
                "public": hex(&self.key.verifying_key().to_bytes()),
            });
            if secret {
                file["secret"] = json!(hex(&self.key.to_bytes()));
            }
            if let Some(seconds) = self.expires {
                file["expires"] = json!(seconds);
            }
            format!("{file:#}\n")
        }

        /// JSON text of the secret key file.
        pub fn to_secret_json(&self) -> String {
            self.file(true)
        }

        /// JSON text of the public key file.
        pub fn to_public_json(&self) -> String {
            self.file(false)
        }
    }

    /// A public key that the host trusts.
    #[derive(Clone, Debug)]
    pub struct TrustedKey {
        key: VerifyingKey,
        /// Id of the key.
        pub id: KeyId,
        /// Expiry in seconds since 1970.
        pub expires: Option<u64>,
    }

    /// The public keys that a host trusts.
    #[derive(Clone, Debug, Default)]
    pub struct TrustedKeys(Vec<TrustedKey>);

    impl TrustedKeys {
        /// Reads a key file: one public key or an array of them. The file of a secret key is
        /// accepted too.
        ///
        /// # Errors
        /// [`codes::BAD_KEY_FILE`].
        pub fn from_json(text: &[u8]) -> Result<TrustedKeys, ArtifactError> {
            let text = Document::parse(text, &Limits::default()).map_err(malformed)?;
            let files: Vec<NodeId> = match text.kind(text.root()) {
                Kind::Array => text.elements(text.root()).collect(),
                _ => vec![text.root()],
            };
            if files.is_empty() {
                return Err(malformed("there is no key in it"));
            }
            let keys = files
                .into_iter()
                .map(|file| trusted(&KeyFile::read(&text, file)?));
            keys.collect::<Result<_, _>>().map(TrustedKeys)
        }

        /// The trusted keys.
        pub fn iter(&self) -> impl Iterator<Item = &TrustedKey> {
            self.0.iter()
        }
    }

    fn trusted(file: &KeyFile) -> Result<TrustedKey, ArtifactError> {
        if file.agent99_key != PUBLIC && file.agent99_key != SECRET {
            return Err(malformed("it is no ed25519 key"));
        }
        let Some(public) = bytes32(&file.public) else {
            return Err(malformed("`public` is not 64 hexadecimal digits"));
        };
        let id = KeyId::of(&public);
        if file.id != id.to_string() {
            return Err(malformed("`id` does not belong to `public`"));
        }
        match VerifyingKey::from_bytes(&public) {
            Ok(key) if !key.is_weak() => Ok(TrustedKey {
                key,
                id,
                expires: file.expires,
            }),
            _ => Err(malformed("`public` is no usable ed25519 key")),
        }
    }

    fn bytes32(hex: &str) -> Option<[u8; 32]> {
        let digits = hex.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(out)
    }

    fn malformed(why: impl fmt::Display) -> ArtifactError {
        ArtifactError::new(
            codes::BAD_KEY_FILE,
            format!("not a key file: {why}"),
            "make a key with `a99 keys new NAME`",
        )
    }

    fn signed_text(purpose: &str, id: KeyId, content_hash: &[u8; 32]) -> Vec<u8> {
        let mut text = purpose.as_bytes().to_vec();
        text.push(0);
        text.extend_from_slice(&ED25519.to_le_bytes());
        text.extend_from_slice(&id.0);
        text.extend_from_slice(content_hash);
        text
    }

    /// Id of the key that a signature names, without verifying the signature; `None` if the bytes
    /// are not a signature of a known kind.
    pub fn key_id(signature: &[u8]) -> Option<KeyId> {
        let known = signature.len() == SIGNATURE_BYTES
            && signature.starts_with(&SIGNATURE_MAGIC)
            && signature[4..8] == ED25519.to_le_bytes();
        let mut id = [0; 16];
        id.copy_from_slice(known.then(|| &signature[8..24])?);
        Some(KeyId(id))
    }

    /// Signs a file and replaces an existing signature.
    ///
    /// # Errors
    /// The file is not an artifact.
    pub fn sign(
        bytes: &[u8],
        key: &SecretKey,
        options: &DecodeOptions,
    ) -> Result<Vec<u8>, ArtifactError> {
        let header = header(bytes, options)?;
        let unsigned = bytes.len() - header.signature.map_or(0, <[u8]>::len);
        let mut out = bytes[..unsigned].to_vec();
        out.extend_from_slice(&block(DOMAIN, &header.content_hash, key));
        Ok(out)
    }

    /// Signs a text that is no artifact. The purpose says what the text is: a signature for one
    /// purpose never verifies for another.
    pub fn sign_text(purpose: &str, text: &[u8], key: &SecretKey) -> Vec<u8> {
        block(purpose, &Sha256::digest(text).into(), key)
    }

    /// Checks that a trusted key signed a text for a purpose. The current time is in seconds since
    /// 1970.
    ///
    /// # Errors
    /// The [`codes`] about signatures and keys.
    pub fn check_text(
        purpose: &str,
        text: &[u8],
        signature: &[u8],
        trusted: &TrustedKeys,
        now: u64,
    ) -> Result<KeyId, ArtifactError> {
        check_block(
            purpose,
            &Sha256::digest(text).into(),
            signature,
            trusted,
            now,
        )
    }

    /// A signature as it stands in a file.
    fn block(purpose: &str, hash: &[u8; 32], key: &SecretKey) -> Vec<u8> {
        let id = key.id();
        let signature = key.key.sign(&signed_text(purpose, id, hash));
        let mut out = SIGNATURE_MAGIC.to_vec();
        out.extend_from_slice(&ED25519.to_le_bytes());
        out.extend_from_slice(&id.0);
        out.extend_from_slice(&signature.to_bytes());
        out
    }

    /// Checks that a trusted key signed a file. The current time is in seconds since 1970.
    ///
    /// # Errors
    /// The [`codes`] about signatures and keys, and the errors of [`header`].
    pub fn check(
        bytes: &[u8],
        trusted: &TrustedKeys,
        now: u64,
        options: &DecodeOptions,
    ) -> Result<KeyId, ArtifactError> {
        let header = header(bytes, options)?;
        let Some(block) = header.signature else {
            return Err(ArtifactError::new(
                codes::UNSIGNED,
                "a signature is required and this artifact has none",
                "sign it with `a99 compile --sign KEYFILE`",
            ));
        };
        let at = bytes.len() - SIGNATURE_BYTES;
        check_block(DOMAIN, &header.content_hash, block, trusted, now).map_err(|error| error.at(at))
    }

    fn check_block(
        purpose: &str,
        hash: &[u8; 32],
        block: &[u8],
        trusted: &TrustedKeys,
        now: u64,
    ) -> Result<KeyId, ArtifactError> {
        let invalid = |text: &str| {
            let help = "it was changed after signing, or is forged: get it again";
            ArtifactError::new(codes::BAD_SIGNATURE, text, help)
        };
        let Some(id) = key_id(block) else {
            return Err(invalid("the signature is of no known kind"));
        };
        let mut signature = [0; 64];
        signature.copy_from_slice(&block[24..]);
        let Some(key) = trusted.iter().find(|key| key.id == id) else {
            return Err(ArtifactError::new(
                codes::UNTRUSTED_KEY,
                format!("signed by key {id}, which is not trusted here"),
                "add its public key to the trusted ones, if you trust its owner",
            ));
        };
        if key.expires.is_some_and(|expires| now > expires) {
            return Err(ArtifactError::new(
                codes::EXPIRED_KEY,
                format!("signed by key {id}, whose time is over"),
                "sign it with a newer key",
            ));
        }
        let text = signed_text(purpose, id, hash);
        // Strict: no second signature of the same text is accepted.
        key.key
            .verify_strict(&text, &Signature::from_bytes(&signature))
            .map_err(|_| invalid("the signature does not fit the content"))?;
        Ok(id)
    }
}
