//! Compiled module: an image's snapshot as machine code of this processor, sealed with the
//! key of the cache.

use super::cache::{self, Cache};
use super::digest::Inputs;
use super::entry::Entry;
use super::error::{At, ImageError};
use super::machine::{DISK, MODULE, Machine, ROOM, SNAPSHOT, read};
use super::portable::is_foreign;
use super::progress::Progress;
use super::seal::SealKey;
use super::step::StepRun;
use std::fs;
use std::path::Path;

/// Label of [`Machine::compatibility`] among a compiled module's inputs.
pub const COMPATIBILITY: &str = "compatibility";

/// Steps whose results belong to an image and stay unchanged when its snapshot is
/// recompiled.
const OTHER_STEPS: [&str; 3] = ["kernel", "rootfs", "emulator"];

/// Version of a compiled module's companion files.
const LAYOUT: &str = "3";

/// Step that compiles a snapshot; it uses no packages.
pub struct Precompile<'a> {
    /// Machine that compiles.
    pub machine: &'a dyn Machine,
    /// Key that seals the module.
    pub key: &'a SealKey,
    /// Result that holds the snapshot and its disk.
    pub snapshot: &'a Entry,
}

impl Precompile<'_> {
    /// Name of the step.
    pub const NAME: &'static str = "module";

    /// Space that the step needs in the cache folder, in bytes.
    pub const ROOM: u64 = ROOM;

    /// Lists all inputs that the module depends on.
    ///
    /// # Errors
    ///
    /// [`UnexpectedResult`](super::ErrorCode::UnexpectedResult) if the result has no
    /// snapshot.
    pub fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.value("snapshot", self.snapshot.sha256(SNAPSHOT)?);
        inputs.value("disk", self.snapshot.sha256(DISK)?);
        let foreign = is_foreign(self.snapshot);
        inputs.value(COMPATIBILITY, self.machine.compatibility(foreign));
        inputs.value("layout", LAYOUT);
        Ok(())
    }

    /// Compiles the snapshot into an empty folder.
    ///
    /// # Errors
    ///
    /// Those of [`Machine::precompile`], and of files.
    pub fn run(&self, out: &Path) -> Result<(), ImageError> {
        let snapshot = read(self.snapshot, SNAPSHOT)?;
        // A hard link would change the disk's times whenever an older or newer image with the
        // same disk comes or goes, and each start would then compare its contents.
        let disk = out.join(DISK);
        fs::copy(self.snapshot.path(DISK), &disk).at(&disk)?;
        let foreign = is_foreign(self.snapshot);
        let file = out.join(MODULE);
        self.machine.precompile(&snapshot, &file, self.key, foreign)
    }

    fn all_inputs(&self) -> Result<Inputs, ImageError> {
        let mut inputs = Inputs::default();
        self.inputs(&mut inputs)?;
        Ok(inputs)
    }

    /// Finds the module in the cache, without compiling.
    pub(super) fn find(&self, cache: &Cache) -> Result<Option<Entry>, ImageError> {
        cache.find(Self::NAME, &self.all_inputs()?.key())
    }

    /// Returns the module from the cache, or compiles it. The caller holds the lock.
    pub(super) fn result(
        &self,
        cache: &Cache,
        progress: &mut dyn Progress,
    ) -> Result<Entry, ImageError> {
        let run = StepRun::new(cache, Self::NAME);
        let inputs = self.all_inputs()?;
        if let Some(entry) = run.cached(&inputs, progress)? {
            return Ok(entry);
        }
        run.begin(progress);
        run.make(inputs, Self::ROOM, progress, |_, _, out| self.run(out))
    }
}

/// Compiles the snapshot of the last build or import for the present processor; `None` if
/// there is no snapshot.
///
/// # Errors
///
/// [`ImageError`].
pub fn recompile(
    cache: &Cache,
    machine: &dyn Machine,
    progress: &mut dyn Progress,
) -> Result<Option<Entry>, ImageError> {
    let Some(snapshot) = cache.current("snapshot")? else {
        return Ok(None);
    };
    let _building = cache.lock(progress)?;
    let key = &cache.key()?;
    let step = Precompile {
        machine,
        key,
        snapshot: &snapshot,
    };
    // A modified module is recompiled, unless another process did that meanwhile.
    if let Some(there) = step.find(cache)?
        && !machine.is_sealed(&there.path(MODULE), key)
    {
        cache::remove(&there.folder)?;
    }
    let module = step.result(cache, progress)?;
    let mut entries = vec![snapshot, module.clone()];
    for step in OTHER_STEPS {
        entries.extend(cache.current(step)?);
    }
    cache.set_current(&entries)?;
    Ok(Some(module))
}

#[cfg(test)]
mod tests {
    use super::super::error::{At, ErrorCode};
    use super::super::machine::Parts;
    use super::super::progress::{Event, StepEnd};
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// A machine that compiles by appending its name, and trusts files that end with it.
    struct Processor(&'static str);

    impl Machine for Processor {
        fn settings(&self) -> String {
            String::new()
        }

        fn compatibility(&self, _: bool) -> String {
            self.0.to_owned()
        }

        fn snapshot(&self, _: &Parts<'_>, _: &[&[&str]], _: &str) -> Result<Vec<u8>, ImageError> {
            Err(ImageError::new(ErrorCode::Guest, "guest", "is not booted"))
        }

        fn precompile(
            &self,
            module: &[u8],
            file: &Path,
            _: &SealKey,
            _: bool,
        ) -> Result<(), ImageError> {
            fs::write(file, [module, self.0.as_bytes()].concat()).at(file)
        }

        fn is_sealed(&self, file: &Path, _: &SealKey) -> bool {
            fs::read(file).is_ok_and(|code| code.ends_with(self.0.as_bytes()))
        }

        fn smoke_test(&self, _: &Path, _: &SealKey, _: bool) -> Result<(), ImageError> {
            Ok(())
        }
    }

    fn publish(cache: &Cache, step: &str, files: &[(&str, &str)]) -> Entry {
        let out = cache.work("out").expect("a folder");
        let mut inputs = Inputs::default();
        for (name, content) in files {
            fs::write(out.join(name), content).expect("written");
            inputs.content(*name, content.as_bytes());
        }
        let published = cache.publish(step, inputs, &out, Duration::ZERO);
        published.expect("published")
    }

    /// Compiles for a processor; returns the step ends and the module's content.
    fn compiled(cache: &Cache, name: &'static str) -> (Vec<StepEnd>, String) {
        let mut ends = Vec::new();
        let mut record = |event: Event<'_>| {
            if let Event::Finished { end, .. } = event {
                ends.push(end);
            }
        };
        let entry = recompile(cache, &Processor(name), &mut record);
        let entry = entry.expect("no failure").expect("a snapshot");
        let module = fs::read_to_string(entry.path(MODULE)).expect("a module");
        (ends, module)
    }

    #[test]
    fn a_snapshot_is_compiled_once_for_each_processor() {
        use StepEnd::{Built, Cached};
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path()).expect("a cache");
        let nothing = recompile(&cache, &Processor("x86"), &mut |_: Event<'_>| {});
        assert!(nothing.expect("no failure").is_none());
        let snapshot = publish(&cache, "snapshot", &[(SNAPSHOT, "s"), (DISK, "d")]);
        let kernel = publish(&cache, "kernel", &[("Image", "k")]);
        cache.set_current([&snapshot, &kernel]).expect("remembered");
        assert_eq!(compiled(&cache, "x86"), (vec![Built], "sx86".to_owned()));
        assert_eq!(compiled(&cache, "x86"), (vec![Cached], "sx86".to_owned()));
        assert_eq!(compiled(&cache, "arm"), (vec![Built], "sarm".to_owned()));
        // The rest of the image stays unchanged.
        assert!(cache.current("kernel").expect("no failure").is_some());
        let module = cache.current("module").expect("no failure");
        assert_eq!(
            fs::read_to_string(module.expect("a module").path(DISK)).expect("a disk"),
            "d"
        );
    }

    /// A module with the right hash and a foreign seal, as in a copied cache.
    #[test]
    fn a_module_with_another_seal_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path()).expect("a cache");
        let snapshot = publish(&cache, "snapshot", &[(SNAPSHOT, "s"), (DISK, "d")]);
        cache.set_current([&snapshot]).expect("remembered");
        let key = &cache.key().expect("a key");
        let machine = &Processor("x86");
        let step = Precompile {
            machine,
            key,
            snapshot: &snapshot,
        };
        let out = cache.work("out").expect("a folder");
        fs::write(out.join(MODULE), "theirs").expect("written");
        let inputs = step.all_inputs().expect("inputs");
        let theirs = cache.publish(Precompile::NAME, inputs, &out, Duration::ZERO);
        theirs.expect("published");
        let (ends, module) = compiled(&cache, "x86");
        assert_eq!((ends, module.as_str()), (vec![StepEnd::Built], "sx86"));
    }
}
