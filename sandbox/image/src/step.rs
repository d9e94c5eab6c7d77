//! Build steps: the trait of a step, and running the steps whose result is not in the
//! cache.

use super::cache::Cache;
use super::digest::Inputs;
use super::entry::Entry;
use super::error::ImageError;
use super::packages::Wanted;
use super::progress::{Event, Progress};
use super::store::Packages;
use a99_sandbox_cache::step::StepRun;
use std::path::{Path, PathBuf};

/// A step of building an image.
///
/// The result of a step is a folder. It depends only on the step's packages and inputs:
/// runs with equal ones produce equal files.
pub trait Step {
    /// Name of the step: one word, part of the name of the result's folder.
    fn name(&self) -> &'static str;

    /// Packages that the step uses.
    fn packages(&self) -> Vec<Wanted> {
        Vec::new()
    }

    /// Lists all other inputs of the result: settings, recipes, the contents of earlier
    /// results ([`Entry::content`]), versions of tools.
    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError>;

    /// Space that the step needs in the cache folder, in bytes.
    fn room(&self) -> u64;

    /// Makes the result in an empty folder.
    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError>;
}

/// Context of a running step.
pub struct StepContext<'a> {
    step: &'static str,
    packages: &'a Packages<'a>,
    work: PathBuf,
    progress: &'a mut dyn Progress,
}

impl StepContext<'_> {
    /// Returns a scratch folder, removed after the step.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the file of a package.
    pub fn package(&self, wanted: Wanted) -> Result<PathBuf, ImageError> {
        self.packages.file(wanted)
    }

    /// Returns the packages and their versions.
    pub fn packages(&self) -> &Packages<'_> {
        self.packages
    }

    /// Reports that a part of the step starts.
    pub fn detail(&mut self, text: &str) {
        let step = self.step;
        self.progress.event(Event::Detail { step, text });
    }
}

/// Returns the result of a step from the cache, or runs it. The caller holds the lock of
/// the cache.
pub fn run(
    cache: &Cache,
    packages: &mut Packages<'_>,
    step: &dyn Step,
    progress: &mut dyn Progress,
) -> Result<Entry, ImageError> {
    let run = StepRun::new(cache, step.name());
    if let Some(entry) = run.cached(&inputs(packages, step)?, progress)? {
        return Ok(entry);
    }
    run.begin(progress);
    packages.ensure(&step.packages(), progress)?;
    // The choice of versions may have changed, and that result may exist.
    let inputs = inputs(packages, step)?;
    if let Some(entry) = run.cached(&inputs, progress)? {
        return Ok(entry);
    }
    run.make(inputs, step.room(), progress, |progress, work, out| {
        let mut context = StepContext {
            step: step.name(),
            packages,
            work: work.to_owned(),
            progress,
        };
        step.run(&mut context, out)
    })
}

fn inputs(packages: &Packages<'_>, step: &dyn Step) -> Result<Inputs, ImageError> {
    let mut inputs = Inputs::default();
    for wanted in step.packages() {
        let label = format!("package {} {}", wanted.name, wanted.arch.name());
        let locked = packages.chosen().find(wanted);
        let value = locked.map_or_else(
            || "not locked".to_owned(),
            |locked| format!("{} {}", locked.version, locked.sha256),
        );
        inputs.value(label, value);
    }
    step.inputs(&mut inputs)?;
    Ok(inputs)
}

/// Finds the result of a step in the cache, without running it.
pub(super) fn find(
    cache: &Cache,
    packages: &Packages<'_>,
    step: &dyn Step,
) -> Result<Option<Entry>, ImageError> {
    cache.find(step.name(), &inputs(packages, step)?.key())
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorCode;
    use super::super::lock::LockFile;
    use super::super::progress::StepEnd;
    use super::super::store::Versions;
    use super::*;
    use std::cell::Cell;
    use std::fs;

    /// A step that writes its option into a file.
    struct Write {
        name: &'static str,
        option: String,
        runs: Cell<u32>,
        fails: bool,
    }

    fn write(name: &'static str, option: impl Into<String>) -> Write {
        let option = option.into();
        Write {
            name,
            option,
            runs: Cell::new(0),
            fails: false,
        }
    }

    impl Step for Write {
        fn name(&self) -> &'static str {
            self.name
        }

        fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
            inputs.value("option", &self.option);
            Ok(())
        }

        fn room(&self) -> u64 {
            1
        }

        fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
            self.runs.set(self.runs.get() + 1);
            fs::write(context.work().join("scratch"), "x").unwrap();
            fs::write(out.join("file"), self.option.to_uppercase()).unwrap();
            match self.fails {
                true => Err(ImageError::new(ErrorCode::StepFailed, "write", "no")),
                false => Ok(()),
            }
        }
    }

    fn run_all(cache: &Cache, steps: &[&Write]) -> Vec<StepEnd> {
        let mut ends = Vec::new();
        let mut record = |event: Event<'_>| {
            if let Event::Finished { end, .. } = event {
                ends.push(end);
            }
        };
        let versions = Versions::Preferred;
        let mut packages = Packages::open(cache, LockFile::empty(), versions).unwrap();
        for step in steps {
            run(cache, &mut packages, *step, &mut record).unwrap();
        }
        ends
    }

    #[test]
    fn only_what_changed_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let (a, b) = (write("a", "one"), write("b", "two"));
        assert_eq!(run_all(&cache, &[&a, &b]), [StepEnd::Built, StepEnd::Built]);
        assert_eq!(
            run_all(&cache, &[&a, &b]),
            [StepEnd::Cached, StepEnd::Cached]
        );
        let changed = write("a", "three");
        assert_eq!(
            run_all(&cache, &[&changed, &b]),
            [StepEnd::Built, StepEnd::Cached]
        );
        assert_eq!((a.runs.get(), b.runs.get(), changed.runs.get()), (1, 1, 1));
    }

    #[test]
    fn failed_steps_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let mut step = write("a", "one");
        step.fails = true;
        let mut packages = Packages::open(&cache, LockFile::empty(), Versions::Preferred).unwrap();
        let mut silent = |_: Event<'_>| ();
        assert!(run(&cache, &mut packages, &step, &mut silent).is_err());
        step.fails = false;
        assert_eq!(run_all(&cache, &[&step]), [StepEnd::Built]);
        assert_eq!(step.runs.get(), 2);
    }
}
