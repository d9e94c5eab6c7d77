//! Tokens: created, checked and revoked.

use crate::error::{ServerCode, ServerError};
use crate::file::{self, Stamp, TokenRow};
use crate::scope::{Action, Scopes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

/// What a token begins with, for scanners of leaked secrets.
const PREFIX: &str = "a99t_";

/// How often [`Authority::watch_file`] looks at the file.
const POLL: Duration = Duration::from_millis(300);

/// Maximum bytes of a token's name.
const MAX_NAME_BYTES: usize = 128;

/// Maximum tokens in memory; another one replaces the oldest.
const MAX_IN_MEMORY: usize = 64;

/// What a token allows: a token that was checked, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The token's id.
    pub id: String,
    /// The token's name.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
}

impl Grant {
    /// Whether it allows an action on a channel. It does not look at the time or at the file:
    /// [`Authority::is_valid`] does.
    #[must_use]
    pub fn allows(&self, action: Action, channel: &str) -> bool {
        self.scopes.allows(action, channel)
    }
}

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// How long it is valid; `None` for ever.
    pub lifetime: Option<Duration>,
}

/// The tokens of a file. Without a file there are no tokens, so nothing is allowed.
#[derive(Clone)]
pub struct Authority(Arc<Inner>);

struct Inner {
    path: PathBuf,
    tokens: RwLock<Tokens>,
    /// Tokens that are in no file, the oldest first.
    in_memory: RwLock<Vec<TokenRow>>,
    changes: watch::Sender<u64>,
}

/// The file as it was last read. A file that became unusable allows nothing.
struct Tokens {
    rows: Result<HashMap<String, TokenRow>, ServerError>,
    stamp: Stamp,
}

impl Tokens {
    /// Reads the file, which has or had this stamp: a newer file is read again.
    fn read(path: &Path, stamp: Stamp) -> Tokens {
        let by_id = |row: TokenRow| (row.id.clone(), row);
        let rows = file::read(path).map(|rows| rows.into_iter().map(by_id).collect());
        Tokens { rows, stamp }
    }
}

impl Authority {
    /// Reads the tokens of a file.
    ///
    /// # Errors
    /// `server.bad_tokens_file` if the file is damaged or others may use it,
    /// `server.tokens_file` if it cannot be read. A missing file is no error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Authority, ServerError> {
        let path = path.into();
        let tokens = Tokens::read(&path, file::stamp(&path));
        tokens.rows.as_ref().map_err(Clone::clone)?;
        Ok(Authority(Arc::new(Inner {
            path,
            tokens: RwLock::new(tokens),
            in_memory: RwLock::default(),
            changes: watch::Sender::new(0),
        })))
    }

    /// Checks the token of a request's header.
    ///
    /// # Errors
    /// Those of [`Authority::check`].
    pub fn check_header(&self, headers: &HeaderMap) -> Result<Grant, ServerError> {
        self.check(bearer(headers).ok_or_else(ServerError::no_token)?)
    }

    /// Checks a token as a client sent it.
    ///
    /// # Errors
    /// `server.unauthorized`, `server.token_expired`, and the errors of the file if it became
    /// unusable.
    pub fn check(&self, token: &str) -> Result<Grant, ServerError> {
        let tokens = self.tokens();
        let rows = tokens.rows.as_ref().map_err(Clone::clone)?;
        let (id, secret) = split(token).ok_or_else(unauthorized)?;
        let hash: [u8; 32] = Sha256::digest(secret).into();
        let in_memory = self.in_memory();
        let row = rows.get(id).or_else(|| find(&in_memory, id));
        let row = row.ok_or_else(unauthorized)?;
        if !bool::from(row.hash.ct_eq(&hash)) {
            return Err(unauthorized());
        }
        if is_past(row.expires) {
            return Err(ServerError::new(
                ServerCode::TokenExpired,
                format!("the token {} has expired", row.id),
                "create another one with `a99 token new`",
            ));
        }
        Ok(Grant {
            id: row.id.clone(),
            name: row.name.clone(),
            scopes: row.scopes.clone(),
            expires: row.expires,
        })
    }

    /// Whether a grant is still valid: its token is neither revoked nor changed nor expired.
    #[must_use]
    pub fn is_valid(&self, grant: &Grant) -> bool {
        let tokens = self.tokens();
        let row = tokens
            .rows
            .as_ref()
            .ok()
            .and_then(|rows| rows.get(&grant.id));
        let in_memory = self.in_memory();
        let row = row.or_else(|| find(&in_memory, &grant.id));
        row.is_some_and(|row| row.scopes == grant.scopes && !is_past(row.expires))
    }

    /// A counter of the states of the file that this server has seen. A token that expires does
    /// not change it.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Reads the file again whenever it changes; never ends. If the file becomes unusable, no
    /// token is valid until it is mended.
    pub fn watch_file(&self) -> impl Future<Output = ()> + Send + use<> {
        let authority = self.clone();
        async move {
            loop {
                tokio::time::sleep(POLL).await;
                let reading = authority.clone();
                let read = tokio::task::spawn_blocking(move || reading.reload());
                if read.await.is_err() {
                    // The runtime is shutting down.
                    return;
                }
            }
        }
    }

    /// Creates a token and returns its text, which is nowhere else.
    ///
    /// # Errors
    /// `server.bad_scope` for a bad name, and those of the file.
    pub fn issue(&self, new: &NewToken) -> Result<(String, TokenRow), ServerError> {
        let (text, row) = created(new)?;
        file::update(&self.0.path, |rows| {
            rows.push(row.clone());
            Ok(())
        })?;
        self.reload();
        Ok((text, row))
    }

    /// Creates a token in memory: no file has it, and it ends with this process.
    ///
    /// # Errors
    /// `server.bad_scope` for a bad name.
    pub fn issue_in_memory(&self, new: &NewToken) -> Result<String, ServerError> {
        let (text, row) = created(new)?;
        let rows = self.0.in_memory.write();
        let mut rows = rows.unwrap_or_else(PoisonError::into_inner);
        rows.retain(|row| !is_past(row.expires));
        if rows.len() >= MAX_IN_MEMORY {
            rows.remove(0);
        }
        rows.push(row);
        Ok(text)
    }

    /// Removes a token: it is valid nowhere any more.
    ///
    /// # Errors
    /// `server.unknown_token`, and those of the file.
    pub fn revoke(&self, id: &str) -> Result<TokenRow, ServerError> {
        let row = file::update(&self.0.path, |rows| {
            let at = rows.iter().position(|row| row.id == id);
            let at = at.ok_or_else(|| unknown(id))?;
            Ok(rows.remove(at))
        })?;
        self.reload();
        Ok(row)
    }

    /// The tokens, the oldest first.
    ///
    /// # Errors
    /// Those of the file if it became unusable.
    pub fn list(&self) -> Result<Vec<TokenRow>, ServerError> {
        let tokens = self.tokens();
        let rows = tokens.rows.as_ref().map_err(Clone::clone)?;
        let mut rows: Vec<TokenRow> = rows.values().cloned().collect();
        rows.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(rows)
    }

    fn in_memory(&self) -> RwLockReadGuard<'_, Vec<TokenRow>> {
        let rows = self.0.in_memory.read();
        rows.unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> RwLockReadGuard<'_, Tokens> {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file if it is another than the last time.
    fn reload(&self) {
        let stamp = file::stamp(&self.0.path);
        if self.tokens().stamp == stamp {
            return;
        }
        let found = Tokens::read(&self.0.path, stamp);
        let mut tokens = self
            .0
            .tokens
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *tokens = found;
        drop(tokens);
        self.0.changes.send_modify(|count| *count += 1);
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}

/// The token of a request: its only `Authorization` header, of the scheme `Bearer`.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (all.next()?, all.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Id and secret of a token's text.
fn split(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(PREFIX)?.split_once('_')
}

fn find<'r>(rows: &'r [TokenRow], id: &str) -> Option<&'r TokenRow> {
    rows.iter().find(|row| row.id == id)
}

/// A new token: its text and its row.
fn created(new: &NewToken) -> Result<(String, TokenRow), ServerError> {
    if new.name.is_empty()
        || new.name.len() > MAX_NAME_BYTES
        || new.name.chars().any(char::is_control)
    {
        return Err(ServerError::new(
            ServerCode::BadScope,
            "the name of a token has 1 to 128 bytes and no control characters",
            "name the program or person that uses it, as in `ci`",
        ));
    }
    let (id, secret) = (random::<6>()?, random::<32>()?);
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = URL_SAFE_NO_PAD.encode(secret);
    let created = now();
    let lifetime = new
        .lifetime
        .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let row = TokenRow {
        id,
        name: new.name.clone(),
        scopes: new.scopes.clone(),
        created,
        expires: lifetime.map(|time| created.saturating_add(time)),
        hash: Sha256::digest(&secret).into(),
    };
    Ok((format!("{PREFIX}{}_{secret}", row.id), row))
}

fn random<const N: usize>() -> Result<[u8; N], ServerError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system gives no randomness: {error}");
        ServerError::new(ServerCode::TokensFile, message, "try again")
    })?;
    Ok(bytes)
}

/// Milliseconds since 1970. A clock before that lets every token expire.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(u64::MAX, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn is_past(expires: Option<u64>) -> bool {
    expires.is_some_and(|expires| expires <= now())
}

fn unauthorized() -> ServerError {
    ServerError::new(
        ServerCode::Unauthorized,
        "the request needs a valid token",
        "send `Authorization: Bearer TOKEN`; `a99 token new` creates one on the server's machine",
    )
}

fn unknown(id: &str) -> ServerError {
    let shown: String = id.chars().take(40).collect();
    ServerError::new(
        ServerCode::UnknownToken,
        format!("there is no token {shown:?}"),
        "`a99 token list` shows the ids",
    )
}
