//! The file of tokens: read whole, replaced in one step, changed under a lock.

use crate::error::{ServerCode, ServerError};
use crate::scope::Scopes;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum bytes of the file, and maximum tokens in it.
const MAX_BYTES: u64 = 16 << 20;
const MAX_TOKENS: usize = 10_000;

/// How long a change waits for another one.
const LOCK_TIME: Duration = Duration::from_secs(5);

/// The form of the file.
const VERSION: u32 = 1;

/// A token as the file keeps it: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRow {
    /// The part of the token that names it.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// SHA-256 of the secret.
    #[serde(serialize_with = "to_text", deserialize_with = "from_text")]
    pub(crate) hash: [u8; 32],
}

fn to_text<S: Serializer>(hash: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&URL_SAFE_NO_PAD.encode(hash))
}

fn from_text<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(from)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(de::Error::custom)?;
    <[u8; 32]>::try_from(bytes).map_err(|_| de::Error::custom("a hash has 32 bytes"))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    version: u32,
    tokens: Vec<TokenRow>,
}

/// What changes when the file is replaced, edited or given to others; `None` without a file.
pub(crate) type Stamp = Option<(u64, i64, i64, u64)>;

/// The stamp of the file now.
#[cfg(unix)]
pub(crate) fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.metadata().ok()?;
    let (inode, second) = (metadata.ino(), metadata.ctime());
    Some((inode, second, metadata.ctime_nsec(), metadata.len()))
}

/// The stamp of the file now.
#[cfg(not(unix))]
pub(crate) fn stamp(path: &Path) -> Stamp {
    let metadata = path.metadata().ok()?;
    let changed = metadata.modified().ok();
    let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let since = since.unwrap_or_default();
    let second = i64::try_from(since.as_secs()).unwrap_or(0);
    Some((0, second, i64::from(since.subsec_nanos()), metadata.len()))
}

/// The tokens of the file; none without a file.
///
/// # Errors
/// `server.bad_tokens_file` if it is damaged or others may use it, `server.tokens_file` if it
/// cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<TokenRow>, ServerError> {
    let cannot = |error| unusable(path, "cannot be read", &error);
    // Opening a pipe would block.
    match path.metadata() {
        Ok(found) if !found.is_file() => return Err(damaged(path, "is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        _ => {}
    }
    let file = File::open(path).map_err(cannot)?;
    check_private(path, &file.metadata().map_err(cannot)?)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(path, "has more than 16 MiB"));
    }
    let page: Page = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(path, format!("is damaged: {error}")))?;
    if page.version != VERSION {
        let why = format!(
            "has version {}, and this program reads {VERSION}",
            page.version
        );
        return Err(damaged(path, why));
    }
    let mut ids = HashSet::new();
    if let Some(twice) = page.tokens.iter().find(|row| !ids.insert(&row.id)) {
        return Err(damaged(path, format!("has the token {:?} twice", twice.id)));
    }
    Ok(page.tokens)
}

/// Changes the tokens of the file, which is created with its folder if it is missing.
///
/// # Errors
/// Those of [`read`] and of `change`, and `server.tokens_file` if the file cannot be written.
pub(crate) fn update<T>(
    path: &Path,
    change: impl FnOnce(&mut Vec<TokenRow>) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    let cannot = |error| unusable(path, "cannot be written", &error);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    create_folder(folder).map_err(cannot)?;
    // Beside the file, because the file is replaced. The lock ends with this handle.
    let lock = private(&beside(path, "lock"), OpenOptions::new().create(true)).map_err(cannot)?;
    take(&lock).map_err(cannot)?;
    let mut tokens = read(path)?;
    let done = change(&mut tokens)?;
    if tokens.len() > MAX_TOKENS {
        let why = format!("would have more than {MAX_TOKENS} tokens");
        let help = "revoke unused ones: `a99 token list`, `a99 token revoke ID`";
        let message = format!("{} {why}", path.display());
        return Err(ServerError::new(ServerCode::TokensFile, message, help));
    }
    let page = Page {
        version: VERSION,
        tokens,
    };
    let mut text = serde_json::to_vec_pretty(&page)
        .map_err(|error| unusable(path, "cannot be written", &error.into()))?;
    text.push(b'\n');
    let partial = beside(path, "partial");
    replace(path, &partial, folder, &text).map_err(|error| {
        // What a full disk left of it.
        let _ = fs::remove_file(&partial);
        cannot(error)
    })?;
    Ok(done)
}

/// Writes a file and puts it into its place; after a crash there is the old or the new one.
fn replace(path: &Path, partial: &Path, folder: &Path, text: &[u8]) -> io::Result<()> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(partial, OpenOptions::new().create_new(true))?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, path)?;
    // The rename lasts when the folder is written. Windows has no handles of folders.
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

/// A hidden file in the same folder.
fn beside(path: &Path, kind: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{kind}"))
}

/// Waits for other commands that change the file.
fn take(lock: &File) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_TIME => {
                let why = "another process changes it for more than 5 s";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Opens a file for writing that is its owner's if it is new.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.write(true).open(path)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.recursive(true).create(folder)
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &Metadata) -> Result<(), ServerError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(ServerError::new(
            ServerCode::BadTokensFile,
            format!(
                "other users may use {}: its mode is {mode:04o}",
                path.display()
            ),
            format!(
                "run `chmod 600 {}`, and revoke what others may have added",
                path.display()
            ),
        )),
    }
}

#[cfg(not(unix))]
fn check_private(_: &Path, _: &Metadata) -> Result<(), ServerError> {
    Ok(())
}

fn damaged(path: &Path, why: impl std::fmt::Display) -> ServerError {
    ServerError::new(
        ServerCode::BadTokensFile,
        format!("{} {why}", path.display()),
        "put a backup in its place; or remove it, which revokes all tokens, and create new ones \
         with `a99 token new`",
    )
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> ServerError {
    ServerError::new(
        ServerCode::TokensFile,
        format!("{} {what}: {error}", path.display()),
        "look at the permissions of the file and its folder, and at the room on the disk; or \
         name another file with `--tokens FILE`",
    )
}
