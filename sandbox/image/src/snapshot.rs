//! Snapshot and precompilation, the last two steps: boot the guest once and save it as a
//! module that continues from there, and compile that module for this processor.
//!
//! A [`Machine`] runs the guest; the steps declare the inputs of the results.

use super::crates::EMULATOR;
use super::digest::Inputs;
use super::entry::Entry;
use super::error::{At, ImageError};
use super::machine::{DISK, Machine, Parts, ROOM, SNAPSHOT, link_or_copy, read};
use super::module::Precompile;
use super::step::{Step, StepContext};
use super::{kernel, rootfs};
use std::fs;
use std::path::Path;

/// Commands that run before the guest is saved, so that their files are in memory and a
/// first Python starts as fast as a second.
pub const WARM_UP: &[&[&str]] = &[
    &["sh", "-c", "ls / | sort | sed s/a/b/ >/dev/null"],
    &[
        "python3",
        "-c",
        "import json, os, re, subprocess; print(6 * 7)",
    ],
    // It is on the image's disk: only what is in memory now is compiled ahead of time.
    &["bash", "-c", "cat \"$BASH\" >/dev/null"],
];

/// Training workload: typical work, for which AOT regions are compiled when the image is
/// built.
const TRAINING: &str = include_str!("../training.sh");

/// Step that makes the snapshot.
pub(super) struct Snapshot<'a> {
    pub machine: &'a dyn Machine,
    pub emulator: &'a Entry,
    pub kernel: &'a Entry,
    pub root_files: &'a Entry,
}

impl Step for Snapshot<'_> {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        // Only the booted files, not their licences or configuration.
        inputs.value("emulator", self.emulator.sha256(EMULATOR.result)?);
        inputs.value("kernel", self.kernel.sha256(kernel::IMAGE)?);
        inputs.value("root files", self.root_files.sha256(rootfs::ARCHIVE)?);
        inputs.value("disk", self.root_files.sha256(rootfs::DISK)?);
        inputs.value("machine", self.machine.settings());
        inputs.value("warm-up", format!("{WARM_UP:?}"));
        inputs.value("training", TRAINING);
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        context.detail("booting the guest");
        let emulator = read(self.emulator, EMULATOR.result)?;
        let kernel = read(self.kernel, kernel::IMAGE)?;
        let root_files = read(self.root_files, rootfs::ARCHIVE)?;
        let parts = Parts {
            emulator: &emulator,
            kernel: &kernel,
            root_files: &root_files,
            disk: &self.root_files.path(rootfs::DISK),
        };
        let module = self.machine.snapshot(&parts, WARM_UP, TRAINING)?;
        let path = out.join(SNAPSHOT);
        fs::write(&path, module).at(&path)?;
        link_or_copy(&self.root_files.path(rootfs::DISK), &out.join(DISK))
    }
}

impl Step for Precompile<'_> {
    fn name(&self) -> &'static str {
        Precompile::NAME
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        Precompile::inputs(self, inputs)
    }

    fn room(&self) -> u64 {
        Precompile::ROOM
    }

    fn run(&self, _context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        Precompile::run(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::Cache;
    use super::super::licences;
    use super::super::lock::LockFile;
    use super::super::machine::MODULE;
    use super::super::portable::LICENCES;
    use super::super::progress::{Event, StepEnd};
    use super::super::seal::SealKey;
    use super::super::step;
    use super::super::store::{Packages, Versions};
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    /// A machine that saves by joining the parts; only the order of steps is tested here.
    struct JoiningMachine {
        processor: &'static str,
    }

    impl Machine for JoiningMachine {
        fn settings(&self) -> String {
            "256 MB".to_owned()
        }

        fn compatibility(&self, _: bool) -> String {
            self.processor.to_owned()
        }

        fn snapshot(
            &self,
            parts: &Parts<'_>,
            _: &[&[&str]],
            _: &str,
        ) -> Result<Vec<u8>, ImageError> {
            Ok([parts.emulator, parts.kernel, parts.root_files].concat())
        }

        fn is_sealed(&self, _: &Path, _: &SealKey) -> bool {
            true
        }

        fn precompile(
            &self,
            module: &[u8],
            file: &Path,
            _: &SealKey,
            _: bool,
        ) -> Result<(), ImageError> {
            fs::write(file, [module, self.processor.as_bytes()].concat()).at(file)
        }

        fn smoke_test(&self, file: &Path, _: &SealKey, _: bool) -> Result<(), ImageError> {
            fs::metadata(file).map(drop).at(file)
        }
    }

    fn part(cache: &Cache, step: &str, name: &str, content: &str, licence: &str) -> Entry {
        let out = cache.work("out").unwrap();
        fs::write(out.join(name), content).unwrap();
        fs::write(out.join("licence"), licence).unwrap();
        let mut inputs = Inputs::default();
        inputs.value("content", format!("{content} {licence}"));
        cache.publish(step, inputs, &out, Duration::ZERO).unwrap()
    }

    fn root_files(cache: &Cache) -> Entry {
        let out = cache.work("out").unwrap();
        fs::write(out.join(rootfs::ARCHIVE), "r").unwrap();
        fs::write(out.join(rootfs::DISK), "d").unwrap();
        let inputs = Inputs::default();
        cache
            .publish("rootfs", inputs, &out, Duration::ZERO)
            .unwrap()
    }

    /// Runs both steps; returns how they ended, and the module.
    fn build(
        cache: &Cache,
        kernel: &str,
        licence: &str,
        processor: &'static str,
    ) -> (Vec<StepEnd>, String) {
        let emulator = part(cache, "emulator", EMULATOR.result, "e", "");
        let kernel = part(cache, "kernel", kernel::IMAGE, kernel, licence);
        let root_files = root_files(cache);
        let machine = &JoiningMachine { processor };
        let mut ends = Vec::new();
        let mut record = |event: Event<'_>| {
            if let Event::Finished { end, .. } = event {
                ends.push(end);
            }
        };
        let mut packages = Packages::open(cache, LockFile::empty(), Versions::Preferred).unwrap();
        let snapshot = Snapshot {
            machine,
            emulator: &emulator,
            kernel: &kernel,
            root_files: &root_files,
        };
        let snapshot = step::run(cache, &mut packages, &snapshot, &mut record).unwrap();
        let key = &cache.key().unwrap();
        let precompile = Precompile {
            machine,
            key,
            snapshot: &snapshot,
        };
        let module = step::run(cache, &mut packages, &precompile, &mut record).unwrap();
        let disk = module.path(DISK);
        assert_eq!(fs::read_to_string(&disk).unwrap(), "d");
        assert_eq!(fs::metadata(&disk).unwrap().nlink(), 1, "its times stay");
        let module = fs::read_to_string(module.path(MODULE)).unwrap();
        (ends, module)
    }

    /// The file names must be the same in both crates.
    #[test]
    fn steps_and_images_call_files_the_same() {
        assert_eq!(rootfs::DISK, DISK);
        assert_eq!(licences::FOLDER, LICENCES);
    }

    #[test]
    fn what_follows_from_a_change_is_made_again_and_nothing_else() {
        use StepEnd::{Built, Cached};
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let (ends, module) = build(&cache, "k", "", "x86");
        assert_eq!((ends, module.as_str()), (vec![Built, Built], "ekrx86"));
        // The same kernel with another licence text is the same guest.
        assert_eq!(build(&cache, "k", "new", "x86").0, [Cached, Cached]);
        let (ends, module) = build(&cache, "k", "", "arm");
        assert_eq!((ends, module.as_str()), (vec![Cached, Built], "ekrarm"));
        let (ends, module) = build(&cache, "K", "", "x86");
        assert_eq!((ends, module.as_str()), (vec![Built, Built], "eKrx86"));
    }
}
