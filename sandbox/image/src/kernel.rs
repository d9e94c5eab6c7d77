//! Kernel build: Debian's source, configured only by our own options, and patched where no
//! option suffices.

use super::command::{finish, lasting, logged, output, program, tail};
use super::digest::Inputs;
use super::error::{At, ErrorCode, ImageError};
use super::licences;
use super::packages::{self, Wanted};
use super::step::{Step, StepContext};
use super::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that the guest needs.
pub const CONFIG: &str = include_str!("../kernel.config");

/// File name of the kernel in the result.
pub const IMAGE: &str = "Image";

/// File name of the full configuration in the result.
pub const CONFIGURATION: &str = super::portable::CONFIGURATION;

/// Recipe version; raise it when this file makes another kernel from the same inputs.
const RECIPE: &str = "3";

/// Variables of `make`. The last ones make builds reproducible: builder, place, date and
/// timestamp.
const SETTINGS: [&str; 6] = [
    "ARCH=riscv",
    "CROSS_COMPILE=riscv64-linux-gnu-",
    "KBUILD_BUILD_USER=agent99",
    "KBUILD_BUILD_HOST=agent99",
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_VERSION=1",
];

/// Source folders whose code is not unpacked, two thirds of the total: other processors,
/// devices that the guest can never have, tests. Their configuration and makefiles are
/// still read, so they stay.
const LEFT_OUT: [&str; 29] = [
    "arch/alpha",
    "arch/arc",
    "arch/arm",
    "arch/arm64",
    "arch/csky",
    "arch/hexagon",
    "arch/loongarch",
    "arch/m68k",
    "arch/microblaze",
    "arch/mips",
    "arch/nios2",
    "arch/openrisc",
    "arch/parisc",
    "arch/powerpc",
    "arch/s390",
    "arch/sh",
    "arch/sparc",
    "arch/um",
    "arch/x86",
    "arch/xtensa",
    "drivers/gpu",
    "drivers/infiniband",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/scsi",
    "drivers/staging",
    "sound",
    "tools/testing",
];

/// Patterns of code files, for `tar`.
const CODE: [&str; 4] = ["*.[chS]", "*.dts", "*.dtsi", "*.json"];

/// Patches of the source, in this order. Each patch explains itself.
const PATCHES: [&str; 10] = [
    include_str!("../patches/fault-around.patch"),
    include_str!("../patches/page-cache-limit.patch"),
    include_str!("../patches/free-pages-at-once.patch"),
    include_str!("../patches/9p-answers-at-once.patch"),
    include_str!("../patches/9p-walk-with-attributes.patch"),
    include_str!("../patches/9p-cheap-messages.patch"),
    include_str!("../patches/9p-flock.patch"),
    include_str!("../patches/9p-times.patch"),
    include_str!("../patches/add-memory.patch"),
    include_str!("../patches/swap-files.patch"),
];

/// Space for the unpacked source and the objects, in bytes.
const ROOM: u64 = 1_500_000_000;

/// Step that builds the kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Options, in the format of a kernel's `.config`.
    pub config: String,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel {
            config: CONFIG.to_owned(),
        }
    }
}

impl Step for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn packages(&self) -> Vec<Wanted> {
        packages::kernel()
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.value("recipe", RECIPE);
        inputs.value("settings", SETTINGS.join(" "));
        inputs.content("patches", PATCHES.concat().as_bytes());
        // Comments do not change a kernel.
        let mut options = Vec::new();
        for option in options_of(&self.config) {
            options.push(format!("{option:?}"));
        }
        inputs.content("configuration", options.join("\n").as_bytes());
        inputs.value("compiler", tools::compiler_versions()?);
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        context.detail("unpacking the source");
        let source = unpack(context)?;
        for patch in PATCHES {
            apply(patch, &source)?;
        }
        context.detail("configuring");
        let log = context.work().join("log");
        configure(&source, &self.config, &log)?;
        context.detail("compiling");
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        logged(make(&source).arg(format!("-j{jobs}")).arg(IMAGE), &log)?;
        let image = source.join("arch/riscv/boot").join(IMAGE);
        fs::copy(&image, out.join(IMAGE)).at(&image)?;
        let config = source.join(".config");
        fs::copy(&config, out.join(CONFIGURATION)).at(&config)?;
        let notice = source.join("COPYING");
        let licence_folder = licences::collect(context, &self.packages(), out)?;
        fs::copy(&notice, licence_folder.join("linux-COPYING")).at(&notice)?;
        Ok(())
    }
}

fn unpack(context: &StepContext<'_>) -> Result<PathBuf, ImageError> {
    let [wanted] = packages::kernel()[..] else {
        return Err(unexpected("one package was expected"));
    };
    let package = context.work().join("package");
    let deb = context.package(wanted)?;
    output(program("dpkg-deb").arg("-x").arg(&deb).arg(&package))?;
    let name = packages::KERNEL_SOURCE;
    let archive = package.join("usr/src").join(format!("{name}.tar.xz"));
    if !archive.is_file() {
        return Err(unexpected("it has no archive of the source"));
    }
    let mut tar = program("tar");
    tar.arg("-xJf").arg(&archive).arg("-C").arg(context.work());
    // As root, tar would try to give the files to Debian's builder.
    tar.arg("--no-same-owner");
    for folder in LEFT_OUT {
        tar.args(CODE.map(|code| format!("--exclude=*/{folder}/{code}")));
    }
    output(&mut tar)?;
    super::cache::remove(&package)?;
    Ok(context.work().join(name))
}

fn unexpected(reason: &str) -> ImageError {
    ImageError::new(
        ErrorCode::UnexpectedPackage,
        packages::KERNEL_SOURCE,
        reason,
    )
}

/// Applies a patch, which must fit exactly.
fn apply(patch: &str, source: &Path) -> Result<(), ImageError> {
    let file = source.join("agent99.patch");
    fs::write(&file, patch).at(&file)?;
    let mut command = program("patch");
    command.args(["--strip=1", "--forward", "--fuzz=0", "--directory"]);
    command.arg(source).arg("--input").arg(&file);
    let printed = finish(&mut command)?;
    if printed.status.success() {
        return Ok(());
    }
    let said = tail(&printed.stdout);
    let reason = format!("it is not as it was when our patch was written: {said}");
    Err(unexpected(&reason))
}

fn make(source: &Path) -> Command {
    let mut make = lasting("make");
    make.arg("-C").arg(source).args(SETTINGS);
    make
}

/// Turns everything off, then our options on, then their dependencies.
fn configure(source: &Path, config: &str, log: &Path) -> Result<(), ImageError> {
    logged(make(source).arg("tinyconfig"), log)?;
    let path = source.join(".config");
    let tiny = fs::read_to_string(&path).at(&path)?;
    // If an option occurs twice, the later value counts.
    fs::write(&path, format!("{tiny}\n{config}")).at(&path)?;
    logged(make(source).arg("olddefconfig"), log)?;
    let made = fs::read_to_string(&path).at(&path)?;
    let refused = refused(config, &made);
    if refused.is_empty() {
        return Ok(());
    }
    Err(ImageError::new(
        ErrorCode::KernelOption,
        "kernel configuration",
        format!("not taken by this kernel: {}", refused.join(", ")),
    )
    .help("an option that it depends on is missing, or it has another name in this version"))
}

/// An option and its value; `None` is off.
type KernelOption<'a> = (&'a str, Option<&'a str>);

/// Parses the options of a configuration, in order, without comments.
fn options_of(config: &str) -> impl Iterator<Item = KernelOption<'_>> {
    config.lines().filter_map(|line| {
        let off = line
            .strip_prefix("# ")
            .and_then(|l| l.strip_suffix(" is not set"));
        if let Some(name) = off {
            return name.starts_with("CONFIG_").then_some((name, None));
        }
        let (name, value) = line.split_once('=')?;
        let value = Some(value).filter(|value| *value != "n");
        name.starts_with("CONFIG_").then_some((name, value))
    })
}

/// Lists the requested options that the made configuration does not have.
fn refused(asked: &str, made: &str) -> Vec<String> {
    let made: std::collections::HashMap<&str, Option<&str>> = options_of(made).collect();
    let differs = |(name, value): &KernelOption<'_>| made.get(name).copied().flatten() != *value;
    let text = |(name, value): KernelOption<'_>| format!("{name}={}", value.unwrap_or("n"));
    options_of(asked).filter(differs).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_options_are_named() {
        let made = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"x\"\nCONFIG_E=y\n";
        let all_well = "CONFIG_A=y\nCONFIG_B=n\nCONFIG_C=\"x\"\n# CONFIG_D is not set\n# CONFIG\n";
        assert_eq!(refused(all_well, made), [""; 0]);
        let asked = "CONFIG_B=y\nCONFIG_C=\"y\"\nCONFIG_D=y\n# CONFIG_E is not set\n";
        assert_eq!(
            refused(asked, made),
            ["CONFIG_B=y", "CONFIG_C=\"y\"", "CONFIG_D=y", "CONFIG_E=n"]
        );
    }

    #[test]
    fn a_patch_that_does_not_fit_is_refused() {
        if tools::in_path("patch").is_none() {
            let folder = tempfile::tempdir().unwrap();
            let error = apply(PATCHES[0], folder.path()).unwrap_err();
            assert_eq!(error.code, ErrorCode::StepFailed);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mm/memory.c");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lines = |mark: char| {
            let kept = PATCHES[0]
                .lines()
                .skip_while(|line| !line.starts_with("@@"));
            let kept = kept.filter(|line| line.starts_with([' ', mark]));
            kept.map(|line| format!("{}\n", &line[1..]))
                .collect::<String>()
        };
        assert_ne!(lines('-'), lines('+'));
        fs::write(&path, lines('-')).unwrap();
        apply(PATCHES[0], folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), lines('+'));
        let error = apply(PATCHES[0], folder.path()).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnexpectedPackage);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines('+'));
    }

    #[test]
    fn every_patch_says_why() {
        for patch in PATCHES {
            let (why, _) = patch.split_once("\n--- a/").unwrap();
            assert!(why.len() > 100, "{why}");
        }
    }

    #[test]
    fn options_are_asked_for_once() {
        let mut names: Vec<&str> = options_of(CONFIG).map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"CONFIG_VIRTIO_CONSOLE"));
    }

    #[test]
    fn a_changed_option_is_another_kernel_and_a_comment_is_not() {
        if tools::in_path("riscv64-linux-gnu-gcc").is_none() {
            // The compiler's version is an input; without a compiler there is no key.
            let error = Kernel::default()
                .inputs(&mut Inputs::default())
                .unwrap_err();
            assert_eq!(error.code, ErrorCode::StepFailed);
            return;
        }
        let key = |config: String| {
            let mut inputs = Inputs::default();
            Kernel { config }.inputs(&mut inputs).unwrap();
            inputs.key()
        };
        let base = key(CONFIG.to_owned());
        assert_eq!(base, key(format!("# why\n{CONFIG}")));
        assert_ne!(base, key(format!("{CONFIG}CONFIG_FUSE_FS=y\n")));
    }
}
