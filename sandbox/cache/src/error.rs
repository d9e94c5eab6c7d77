//! Errors of building and using images, each with a stable code.

use std::fmt;
use std::io;
use std::path::Path;

/// Kind of a failure; the text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// This system has no apt, so images cannot be built here.
    NoApt,
    /// Debian has no Python for this processor, which compiling needs.
    UnsupportedHost,
    /// Tools are missing, and this user may not install them.
    ToolsMissing,
    /// Build tools could not be installed.
    ToolInstall,
    /// The keyring lacks the keys that signed the release.
    KeyringTooOld,
    /// A package or an index could not be fetched.
    DownloadFailed,
    /// A locked version is no longer offered, and other versions are not allowed.
    LockedGone,
    /// A package differs from the hash in the lock file or in Debian's index.
    HashMismatch,
    /// The lock file cannot be read or written.
    Lock,
    /// The cache folder has too little free space.
    DiskFull,
    /// A program of a build step failed.
    StepFailed,
    /// The kernel's configuration does not accept a requested option.
    KernelOption,
    /// A program of the root file system needs a missing library.
    LibraryMissing,
    /// A package lacks an expected file.
    UnexpectedPackage,
    /// A step's result lacks a file that a later step needs.
    UnexpectedResult,
    /// The guest did not start, or could not be saved or compiled.
    Guest,
    /// The sources of the emulator and the agent are missing.
    NoSources,
    /// The image has not been built or imported yet.
    NotBuilt,
    /// The cache folder belongs to another user, or others may write to it.
    UntrustedCache,
    /// The file to import is damaged, or not an image.
    BadFile,
    /// A file or folder cannot be read or written.
    Io,
}

impl ErrorCode {
    /// Returns the code as stable text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::NoApt => "image.no_apt",
            ErrorCode::UnsupportedHost => "image.unsupported_host",
            ErrorCode::ToolsMissing => "image.tools_missing",
            ErrorCode::ToolInstall => "image.tool_install",
            ErrorCode::KeyringTooOld => "image.keyring_too_old",
            ErrorCode::DownloadFailed => "image.download_failed",
            ErrorCode::LockedGone => "image.locked_gone",
            ErrorCode::HashMismatch => "image.hash_mismatch",
            ErrorCode::Lock => "image.lock",
            ErrorCode::DiskFull => "image.disk_full",
            ErrorCode::StepFailed => "image.step_failed",
            ErrorCode::KernelOption => "image.kernel_option",
            ErrorCode::LibraryMissing => "image.library_missing",
            ErrorCode::UnexpectedPackage => "image.unexpected_package",
            ErrorCode::UnexpectedResult => "image.unexpected_result",
            ErrorCode::Guest => "image.guest",
            ErrorCode::NoSources => "image.no_sources",
            ErrorCode::NotBuilt => "image.not_built",
            ErrorCode::UntrustedCache => "image.untrusted_cache",
            ErrorCode::BadFile => "image.bad_file",
            ErrorCode::Io => "image.io",
        }
    }
}

/// Failure of building or using an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    /// Kind of the failure.
    pub code: ErrorCode,
    /// Subject of the failure: a file, a package, a step.
    pub subject: String,
    /// Description of the failure.
    pub reason: String,
    /// Remedy, if one is known.
    pub help: Option<String>,
}

impl ImageError {
    /// Creates an error about a subject.
    pub fn new(code: ErrorCode, subject: impl Into<String>, reason: impl Into<String>) -> Self {
        ImageError {
            code,
            subject: subject.into(),
            reason: reason.into(),
            help: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Wraps a failed access to a path; a full disk has a separate code.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        let subject = path.display().to_string();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => disk_full(subject),
            _ => ImageError::new(ErrorCode::Io, subject, error.to_string()),
        }
    }
}

/// Error of a folder without free space.
pub fn disk_full(subject: impl Into<String>) -> ImageError {
    ImageError::new(ErrorCode::DiskFull, subject, "no space left")
        .help("make room, or name another folder in A99_CACHE_DIR")
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ImageError {}

/// Adds the path to failed file accesses.
pub trait At<T> {
    /// Returns the value, or the failure with this path.
    fn at(self, path: &Path) -> Result<T, ImageError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, ImageError> {
        self.map_err(|error| ImageError::io(path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disks_have_their_own_code() {
        let path = Path::new("cache");
        let full = ImageError::io(path, &io::ErrorKind::StorageFull.into());
        assert_eq!(full.code.name(), "image.disk_full");
        assert!(full.to_string().contains("A99_CACHE_DIR"));
        let other = ImageError::io(path, &io::ErrorKind::NotFound.into());
        assert_eq!(other.code, ErrorCode::Io);
        assert!(other.to_string().starts_with("cache: "));
    }
}
