//! The packed image and packs that came with this command: found, and imported at the first
//! start that needs them.
//!
//! A package has the command, the image and a list of both with their hashes, which may be
//! signed. The command was built with the hash of its image, and with the public key of its
//! package if that is signed. Either vouches for an image, which then runs as one that was
//! built here; any other one is foreign.

use super::{machine, show};
use crate::output;
use a99_core::artifact::sign::PACKAGE;
use a99_sandbox::cache::portable::{Carried, Portable, import, import_pack, vouched};
use a99_sandbox::cache::{Cache, ErrorCode, Event, ImageError, Progress, digest};
use agent99::artifact::codes;
use agent99::artifact::sign::{TrustedKeys, check_text};
use agent99::capabilities::{Clock as _, SystemClock};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, stderr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The variable that names a packed image, for a cache without one.
const VARIABLE: &str = "A99_IMAGE";

/// File names of a package.
const IMAGE: &str = "image.tar.zst";
const LIST: &str = "package.json";
const SIGNATURE: &str = "package.json.sig";

/// Folders of the files of a package, seen from the command's own.
const FOLDERS: [&str; 2] = [".", "../share/agent99"];

/// Kinds of files in the list.
const IMAGE_KIND: &str = "image";
const PACK_KIND: &str = "pack";

/// File name of a pack.
fn pack_file(name: &str) -> String {
    format!("pack-{name}.tar.zst")
}

/// Maximum bytes of the list: today it has less than a thousand.
const MAX_LIST: u64 = 1 << 20;

/// What a command trusts.
#[derive(Clone, Copy, Default)]
struct Trust<'a> {
    /// SHA-256 of the image of its package.
    image: Option<&'a str>,
    /// The public key of its package, as in the key's file.
    key: Option<&'a str>,
}

/// What this command was built to trust; `cargo xtask package` sets the variables.
const BUILT_IN: Trust<'_> = Trust {
    image: option_env!("A99_PACKAGE_IMAGE"),
    key: option_env!("A99_PACKAGE_KEY"),
};

/// The list of a package's files. Later lists may have more members, and other kinds of files.
#[derive(Deserialize)]
struct List {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    kind: String,
    sha256: String,
}

impl Trust<'_> {
    /// Returns the SHA-256 of a file of this kind, if something vouches for it.
    ///
    /// # Errors
    /// [`ErrorCode::BadFile`] if the list beside it has a forged signature.
    fn vouches_for(&self, file: &Path, kind: &str) -> Result<Option<String>, ImageError> {
        let hash = digest::of_file(file)?;
        if self.image == Some(&*hash) || self.lists(file, kind, &hash)? {
            return Ok(Some(hash));
        }
        Ok(None)
    }

    /// Whether a signed list beside the file has its kind and hash.
    fn lists(&self, file: &Path, kind: &str, hash: &str) -> Result<bool, ImageError> {
        let list = file.with_file_name(LIST);
        let signature = file.with_file_name(SIGNATURE);
        let (Some(key), Some(text), Some(signature)) =
            (self.key, bounded(&list)?, bounded(&signature)?)
        else {
            return Ok(false);
        };
        let bad = |reason: String| {
            ImageError::new(ErrorCode::BadFile, list.display().to_string(), reason)
                .help("get the package again")
        };
        let now = (SystemClock.now_ms() / 1000.0) as u64;
        let signed = TrustedKeys::from_json(key.as_bytes())
            .and_then(|keys| check_text(PACKAGE, &text, &signature, &keys, now));
        match signed {
            Ok(_) => {}
            // Somebody else's package is no forgery.
            Err(error) if error.code == codes::UNTRUSTED_KEY => return Ok(false),
            Err(error) => return Err(bad(error.to_string())),
        }
        let list: List =
            serde_json::from_slice(&text).map_err(|error| bad(format!("is no list: {error}")))?;
        let is_it = |listed: &Listed| listed.kind == kind && listed.sha256 == hash;
        Ok(list.files.iter().any(is_it))
    }

    fn is_any(&self) -> bool {
        self.image.is_some() || self.key.is_some()
    }
}

/// Reads a small file; `None` if there is none.
fn bounded(path: &Path) -> Result<Option<Vec<u8>>, ImageError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LIST).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ImageError::io(path, &error)),
    }
}

/// A packed image.
struct Found {
    file: PathBuf,
    /// Whether it stands where packages have it, and was not named by the user.
    came_along: bool,
}

/// Finds a packed image: the one that the user names, else the one that came with the command.
fn find() -> Option<Found> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    if let Some(file) = named.map(PathBuf::from) {
        let came_along = false;
        return Some(Found { file, came_along });
    }
    let command = std::env::current_exe().ok()?;
    beside(command.parent()?, IMAGE)
}

fn beside(folder: &Path, name: &str) -> Option<Found> {
    let files = FOLDERS.iter().map(|below| folder.join(below).join(name));
    let file = files.into_iter().find(|file| file.is_file())?;
    let came_along = true;
    Some(Found { file, came_along })
}

/// Imports the packed image that came with this command, or that the user names, if the cache has
/// no image, or that of another package.
pub(crate) fn prepare(cache: &Cache) -> Result<(), ImageError> {
    match find() {
        Some(found) if is_wanted(cache, BUILT_IN)? => prepare_with(cache, &found, BUILT_IN),
        _ => Ok(()),
    }
}

/// Whether the cache lacks an image, or has that of another package. An image that the user
/// built or imported otherwise stays.
fn is_wanted(cache: &Cache, trust: Trust<'_>) -> Result<bool, ImageError> {
    let Some(snapshot) = cache.current("snapshot")? else {
        return Ok(true);
    };
    Ok(match (vouched(&snapshot), trust.image) {
        (Some(present), Some(ours)) => present != ours,
        _ => false,
    })
}

/// Imports packs that came with this command and are not in the cache.
pub(crate) fn prepare_packs(cache: &Cache, names: &[String]) -> Result<(), ImageError> {
    for name in names {
        if cache.pack(name)?.is_none()
            && let Ok(command) = std::env::current_exe()
            && let Some(found) = command.parent().and_then(|at| beside(at, &pack_file(name)))
        {
            prepare_pack_with(cache, &found, BUILT_IN)?;
        }
    }
    Ok(())
}

fn prepare_pack_with(cache: &Cache, found: &Found, trust: Trust<'_>) -> Result<(), ImageError> {
    let hash = found.hash(PACK_KIND, trust)?;
    install_pack_as(cache, &found.file, hash.as_deref()).map(drop)
}

/// Imports a pack, and shows how far it is.
pub(crate) fn install_pack(cache: &Cache, file: &Path) -> Result<Carried, ImageError> {
    let hash = BUILT_IN.vouches_for(file, PACK_KIND)?;
    install_pack_as(cache, file, hash.as_deref())
}

fn install_pack_as(cache: &Cache, file: &Path, hash: Option<&str>) -> Result<Carried, ImageError> {
    import_pack(cache, file, hash, &mut Display::start())
}

fn prepare_with(cache: &Cache, found: &Found, trust: Trust<'_>) -> Result<(), ImageError> {
    let hash = found.hash(IMAGE_KIND, trust)?;
    install_as(cache, &found.file, hash.as_deref()).map(drop)
}

impl Found {
    /// The SHA-256 of the file if something vouches for it. A file that came with a command
    /// which could vouch for it, and does not, is refused.
    fn hash(&self, kind: &str, trust: Trust<'_>) -> Result<Option<String>, ImageError> {
        let hash = trust.vouches_for(&self.file, kind)?;
        if hash.is_none() && self.came_along && trust.is_any() {
            let path = self.file.display().to_string();
            let help = format!(
                "install the package again, or run `a99 sandbox image import {path}` if you trust it"
            );
            let reason = format!("is not the {kind} of this command's package");
            return Err(ImageError::new(ErrorCode::HashMismatch, path, reason).help(help));
        }
        Ok(hash)
    }
}

/// Imports a packed image, and shows how far it is.
pub(crate) fn install(cache: &Cache, file: &Path) -> Result<Portable, ImageError> {
    let hash = BUILT_IN.vouches_for(file, IMAGE_KIND)?;
    install_as(cache, file, hash.as_deref())
}

fn install_as(cache: &Cache, file: &Path, hash: Option<&str>) -> Result<Portable, ImageError> {
    let machine = machine()?;
    let mut display = Display::start();
    import(cache, file, hash, &machine, &mut display)
}

/// Shows an import on standard error: one line that is redrawn on a terminal, lines elsewhere.
struct Display {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    what: &'static str,
    since: Option<Instant>,
    /// Bytes that are done, and all.
    share: Option<(u64, u64)>,
    is_over: bool,
}

/// Time between two redraws.
const TICK: Duration = Duration::from_millis(100);

/// Columns of the bar.
const BAR: u64 = 30;

impl Display {
    fn start() -> Display {
        let shared = Arc::<Shared>::default();
        let shown = Arc::clone(&shared);
        let thread = stderr().is_terminal().then(|| {
            let thread = std::thread::Builder::new().name("import".to_owned());
            thread.spawn(move || shown.draw())
        });
        Display {
            shared,
            // Without a thread the lines are shown.
            thread: thread.and_then(Result::ok),
        }
    }
}

impl Progress for Display {
    fn event(&mut self, event: Event<'_>) {
        if self.thread.is_none() || matches!(event, Event::Note { .. }) {
            return show(event);
        }
        let mut state = self.shared.state();
        match event {
            Event::Started { step } => {
                *state = State {
                    what: match step {
                        "import" => "unpacking",
                        _ => "compiling it for this processor, once",
                    },
                    since: Some(Instant::now()),
                    ..State::default()
                };
            }
            Event::Advanced { done, of } => state.share = Some((done, of)),
            Event::Finished { .. } => {
                *state = State {
                    what: "starting a guest from it",
                    since: Some(Instant::now()),
                    ..State::default()
                };
            }
            Event::Detail { .. } | Event::Note { .. } => {}
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            output::clear_status();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) {
        let mut state = self.state();
        while !state.is_over {
            if !state.what.is_empty() {
                output::status(&state.line());
            }
            let waited = self.changed.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn line(&self) -> String {
        let seconds = self
            .since
            .map_or(0.0, |since| since.elapsed().as_secs_f64());
        let bar = self.share.filter(|(_, of)| *of > 0).map(|(done, of)| {
            let full = (done.min(of) * BAR / of) as usize;
            let rest = BAR as usize - full;
            format!(" [{}{}]", "#".repeat(full), "-".repeat(rest))
        });
        format!("{}{} {seconds:.0} s", self.what, bar.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_sandbox::cache::digest::Inputs;
    use a99_sandbox::cache::packs;
    use a99_sandbox::cache::portable::export_pack;
    use agent99::artifact::sign::{SecretKey, sign_text};
    use std::fs;

    fn package(key: &SecretKey) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(IMAGE), "image").unwrap();
        let hash = digest::of_bytes(b"image");
        let list = format!(
            r#"{{"format": "agent99 package", "files": [
                {{"name": "a99", "kind": "command", "size": 1, "sha256": "0"}},
                {{"name": "image.tar.zst", "kind": "image", "size": 5, "sha256": "{hash}"}}]}}"#
        );
        let signature = sign_text(PACKAGE, list.as_bytes(), key);
        fs::write(folder.path().join(LIST), list).unwrap();
        fs::write(folder.path().join(SIGNATURE), signature).unwrap();
        folder
    }

    #[test]
    fn an_image_is_trusted_by_its_hash_or_by_a_signed_list() {
        let ours = SecretKey::from_seed(&[1; 32], None);
        let folder = package(&ours);
        let file = folder.path().join(IMAGE);
        let hash = digest::of_bytes(b"image");
        let key = ours.to_public_json();
        let other_key = SecretKey::from_seed(&[2; 32], None).to_public_json();
        let vouches = |trust: Trust<'_>| {
            trust
                .vouches_for(&file, IMAGE_KIND)
                .map_err(|error| error.code)
        };
        let of = |image, key| Trust { image, key };
        let yes = Ok(Some(hash.clone()));
        assert_eq!(vouches(of(Some(&hash), None)), yes);
        assert_eq!(vouches(of(None, Some(&key))), yes);
        assert_eq!(vouches(of(Some("00"), Some(&key))), yes);
        for trust in [
            of(None, None),
            of(Some("00"), None),
            of(None, Some(&other_key)),
        ] {
            assert_eq!(vouches(trust), Ok(None));
        }
        // The list is of other files than the image.
        fs::write(&file, "other").unwrap();
        assert_eq!(vouches(of(Some(&hash), Some(&key))), Ok(None));
        // A changed list has no signature; a forged one is an error.
        let list = folder.path().join(LIST);
        let text = fs::read_to_string(&list).unwrap();
        let forged = text.replace(&hash, &digest::of_bytes(b"other"));
        fs::write(&list, forged).unwrap();
        assert_eq!(vouches(of(None, Some(&key))), Err(ErrorCode::BadFile));
        assert_eq!(vouches(of(None, Some(&other_key))), Ok(None));
        fs::remove_file(folder.path().join(SIGNATURE)).unwrap();
        assert_eq!(vouches(of(None, Some(&key))), Ok(None));
    }

    #[test]
    fn a_package_with_another_image_is_refused_before_it_is_read() {
        let folder = package(&SecretKey::from_seed(&[1; 32], None));
        let cache = Cache::at(folder.path().join("cache")).unwrap();
        let found = beside(folder.path(), IMAGE).expect("the image");
        let trust = Trust {
            image: Some("00"),
            key: None,
        };
        assert!(is_wanted(&cache, trust).unwrap());
        let error = prepare_with(&cache, &found, trust).unwrap_err();
        assert_eq!(error.code, ErrorCode::HashMismatch, "{error}");
        // Without a package the file is foreign, read, and no archive.
        let error = prepare_with(&cache, &found, Trust::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadFile, "{error}");
        let share = folder.path().join("share/agent99");
        fs::create_dir_all(&share).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        assert!(beside(&folder.path().join("bin"), IMAGE).is_none());
        fs::rename(folder.path().join(IMAGE), share.join(IMAGE)).unwrap();
        assert!(beside(&folder.path().join("bin"), IMAGE).is_some());
    }

    #[test]
    fn a_pack_comes_from_a_signed_list_and_a_changed_one_is_refused() {
        let key = SecretKey::from_seed(&[1; 32], None);
        let folder = tempfile::tempdir().unwrap();
        let cache = |name: &str| Cache::at(folder.path().join(name)).unwrap();
        let (home, away) = (cache("home"), cache("away"));
        let out = home.work("out").unwrap();
        let layer = [7; 512];
        let sha256 = digest::of_bytes(&layer);
        let text = format!(r#"{{"name": "mine", "sha256": "{sha256}", "bytes": 512}}"#);
        fs::write(out.join(packs::DESCRIPTION), text).unwrap();
        fs::write(out.join(packs::LAYER), layer).unwrap();
        let step = packs::step_name("mine");
        let entry = home.publish(&step, Inputs::default(), &out, Duration::ZERO);
        home.record_pack("mine", &entry.unwrap()).unwrap();
        let file = folder.path().join(pack_file("mine"));
        export_pack(&home, "mine", &file).unwrap();
        let bytes = fs::read(&file).unwrap();
        let list = |kind: &str| {
            let hash = digest::of_bytes(&bytes);
            let list = format!(
                r#"{{"format": "agent99 package",
                    "files": [{{"name": "p", "kind": "{kind}", "size": 1, "sha256": "{hash}"}}]}}"#
            );
            let signature = sign_text(PACKAGE, list.as_bytes(), &key);
            fs::write(folder.path().join(LIST), list).unwrap();
            fs::write(folder.path().join(SIGNATURE), signature).unwrap();
        };
        let public = key.to_public_json();
        let trust = Trust {
            image: None,
            key: Some(&public),
        };
        let found = beside(folder.path(), &pack_file("mine")).expect("the pack");
        let refused = || {
            let error = prepare_pack_with(&away, &found, trust).unwrap_err();
            assert_eq!(error.code, ErrorCode::HashMismatch, "{error}");
            assert_eq!(away.packs(), [""; 0]);
        };
        // Not as an image, nor with another byte.
        list(IMAGE_KIND);
        refused();
        list(PACK_KIND);
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        fs::write(&file, changed).unwrap();
        refused();
        fs::write(&file, &bytes).unwrap();
        prepare_pack_with(&away, &found, trust).unwrap();
        let entry = away.pack("mine").unwrap().expect("a pack");
        assert_eq!(fs::read(entry.path(packs::LAYER)).unwrap(), layer);
    }

    #[test]
    fn the_line_shows_how_far_it_is() {
        let mut state = State {
            what: "unpacking",
            ..State::default()
        };
        assert_eq!(state.line(), "unpacking 0 s");
        state.share = Some((1, 2));
        let half = "#".repeat(15) + &"-".repeat(15);
        assert_eq!(state.line(), format!("unpacking [{half}] 0 s"));
        state.share = Some((3, 2));
        assert!(state.line().contains(&"#".repeat(30)));
        state.share = Some((0, 0));
        assert_eq!(state.line(), "unpacking 0 s");
    }
}
