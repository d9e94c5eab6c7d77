//! Build tools: the programs that steps run, and the Debian packages that provide them.

use super::command::{finish, program, tail};
use super::entry::{ROOT, user};
use super::error::{ErrorCode, ImageError};
use super::progress::{Progress, note};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program or another file, and the package that provides it.
struct Tool {
    /// Name of a program, or absolute path of a file.
    name: &'static str,
    package: &'static str,
}

const fn tool(name: &'static str, package: &'static str) -> Tool {
    Tool { name, package }
}

const TOOLS: [Tool; 16] = [
    tool("apt-config", "apt"),
    tool("bc", "bc"),
    tool("bison", "bison"),
    tool("dpkg-deb", "dpkg"),
    tool("flex", "flex"),
    tool("gcc", "gcc"),
    tool("make", "make"),
    tool("mkfs.erofs", "erofs-utils"),
    tool("patch", "patch"),
    tool("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu"),
    tool("riscv64-linux-gnu-ld", "binutils-riscv64-linux-gnu"),
    tool("setpriv", "util-linux"),
    tool("tar", "tar"),
    tool("xz", "xz-utils"),
    tool("/usr/include/stdio.h", "libc6-dev"),
    tool(
        "/usr/riscv64-linux-gnu/include/stdio.h",
        "libc6-dev-riscv64-cross",
    ),
];

/// Package of the archive's keys, which comes with Debian but not with its derivatives.
const KEYRING: &str = "debian-archive-keyring";

/// Seconds to wait for another running apt.
const APT_LOCK_WAIT: &str = "DPkg::Lock::Timeout=600";

/// Finds a program in `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let runs = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    candidates.into_iter().find(runs)
}

/// Ensures that all tools exist: installs missing ones if this user may, else names the
/// command that does.
pub(crate) fn ensure(progress: &mut dyn Progress) -> Result<(), ImageError> {
    if !super::apt::exists() {
        return Err(no_apt());
    }
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_root() {
        let reason = format!("missing: {list}");
        let error = ImageError::new(ErrorCode::ToolsMissing, "tools", reason);
        return Err(error.help(install_command(&missing)));
    }
    note(progress, format!("installing {list}"));
    install(&missing)
}

/// Error of a system that cannot build images.
pub(super) fn no_apt() -> ImageError {
    let reason = "this system does not have it, and images are built from Debian's packages";
    ImageError::new(ErrorCode::NoApt, "apt-get", reason).help(
        "build on Debian or a system derived from it, and carry the image here: \
         `a99 sandbox image export FILE` there, `a99 sandbox image import FILE` here",
    )
}

/// Returns the command that installs these packages as administrator.
pub(super) fn install_command(packages: &[&str]) -> String {
    let list = packages.join(" ");
    format!("`apt-get install --no-install-recommends {list}`, as root")
}

/// Lists the packages of missing tools.
pub(super) fn missing() -> Vec<&'static str> {
    let there = |tool: &&Tool| match tool.name.starts_with('/') {
        true => Path::new(tool.name).exists(),
        false => in_path(tool.name).is_some(),
    };
    let absent = TOOLS.iter().filter(|tool| !there(tool));
    let mut packages: Vec<&str> = absent.map(|tool| tool.package).collect();
    if !super::apt::has_keyring() {
        packages.push(KEYRING);
    }
    packages.dedup();
    packages
}

fn is_root() -> bool {
    user() == Some(ROOT)
}

fn install(packages: &[&str]) -> Result<(), ImageError> {
    let apt = |args: &[&str]| {
        let mut command = program("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        finish(command.args(["-q", "-y", "-o", APT_LOCK_WAIT]).args(args))
    };
    let install = [&["install", "--no-install-recommends"], packages].concat();
    // Indices may be missing or too old; the second attempt fetches them.
    if apt(&install)?.status.success() {
        return Ok(());
    }
    let updated = apt(&["update"])?;
    let installed = apt(&install)?;
    if installed.status.success() {
        return Ok(());
    }
    let reason = tail(&format!("{}{}", updated.stderr, installed.stderr));
    Err(ImageError::new(
        ErrorCode::ToolInstall,
        packages.join(" "),
        reason,
    ))
}

/// Returns the versions of the tools that affect the image.
pub(crate) fn compiler_versions() -> Result<String, ImageError> {
    let mut versions = String::new();
    for name in ["riscv64-linux-gnu-gcc", "riscv64-linux-gnu-ld"] {
        let printed = super::command::output(program(name).arg("--version"))?;
        versions.push_str(printed.lines().next().unwrap_or_default());
        versions.push('\n');
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_path() {
        assert!(in_path("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(in_path("no-such-program-of-this-name"), None);
    }

    #[test]
    fn the_user_is_known() {
        let said = super::super::command::output(program("id").arg("-u")).unwrap();
        assert_eq!(user().unwrap().to_string(), said.trim());
        assert_eq!(is_root(), said.trim() == "0");
    }
}
