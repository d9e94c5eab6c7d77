//! Root file system: one archive that the kernel unpacks into memory at boot.
//!
//! It holds Debian's packages without the files that a guest does not need, the busybox
//! commands and a few of GNU's, a few files of ours, and compiled Python modules. Large and
//! rarely needed programs are on a disk beside it ([`disk`]).

mod busybox;
pub mod disk;
mod files;
mod libraries;
pub(crate) mod python;
pub(crate) mod select;
mod tools;

use super::command::{output, program};
use super::cpio::{Content, Node};
use super::digest::{self, Inputs};
use super::error::{At, ErrorCode, ImageError};
use super::licences;
use super::packages::{self, Arch, Wanted};
use super::step::{Step, StepContext};
use std::fs;
use std::path::{Path, PathBuf};

/// File name of the archive in the result.
pub const ARCHIVE: &str = "rootfs.cpio";

/// File name of the image's disk in the result.
pub const DISK: &str = "guest.disk";

/// Path of the agent that runs the host's commands. `/sbin` is a link to the folder with
/// all programs.
pub const AGENT: &str = "usr/bin/agent99-agent";

/// Sources that determine the content: a change of them counts as a change of the result. A
/// build takes seconds, so a changed comment may cost them.
const RECIPE: [&str; 11] = [
    include_str!("mod.rs"),
    include_str!("busybox.rs"),
    include_str!("disk.rs"),
    include_str!("files.rs"),
    include_str!("python.rs"),
    include_str!("select.rs"),
    include_str!("tools.rs"),
    include_str!("../cpio.rs"),
    include_str!("../elf.rs"),
    include_str!("../licences.rs"),
    python::SCRIPT,
];

/// Space for the unpacked packages and the archive, in bytes.
const ROOM: u64 = 400_000_000;

/// Step that builds the root file system.
#[derive(Clone, Debug)]
pub struct RootFs {
    /// Architecture of the build machine, whose Python compiles the modules.
    pub host: Arch,
    /// Agent program, statically linked for the guest. Without it the guest offers a shell
    /// on its console.
    pub agent: Option<PathBuf>,
}

impl RootFs {
    /// Creates the step for this machine.
    pub fn new(agent: Option<PathBuf>) -> Result<RootFs, ImageError> {
        let host = Arch::host().ok_or_else(|| {
            ImageError::new(
                ErrorCode::UnsupportedHost,
                std::env::consts::ARCH,
                "Debian's Python for this processor is not used here",
            )
            .help("build on x86_64, aarch64 or riscv64, and import the image here")
        })?;
        Ok(RootFs { host, agent })
    }
}

impl Step for RootFs {
    fn name(&self) -> &'static str {
        "rootfs"
    }

    fn packages(&self) -> Vec<Wanted> {
        [all_files(), packages::compiler(self.host)].concat()
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.content("recipe", RECIPE.concat().as_bytes());
        for (path, _, content) in files::OWN {
            inputs.content(format!("file {path}"), content.as_bytes());
        }
        for (path, content) in disk::OWN {
            inputs.content(format!("file {path} on the disk"), content.as_bytes());
        }
        inputs.value("disk", disk::version());
        let agent = match &self.agent {
            Some(path) => digest::of_file(path)?,
            None => "none".to_owned(),
        };
        inputs.value("agent", agent);
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        context.detail("unpacking the packages");
        let packages = packages::root_files();
        let (tools, rest): (Vec<_>, Vec<_>) = packages
            .iter()
            .partition(|wanted| wanted.name == tools::PACKAGE);
        let guest = unpack(context, "guest", &rest)?;
        let on_disk = packages::disk_files();
        let (format, on_disk): (Vec<_>, Vec<_>) = on_disk
            .iter()
            .partition(|wanted| wanted.name == disk::FORMAT_PACKAGE);
        let on_disk = unpack(context, "disk", &on_disk)?;
        let format = unpack(context, "format", &format)?;
        let tools = unpack(context, "tools", &tools)?;
        let compiler = match packages::compiler(self.host)[..] {
            [] => guest.clone(),
            ref packages => unpack(context, "compiler", packages)?,
        };
        let mut disk = disk::tree(&on_disk, &format, &guest)?;
        let mut tree = select::tree(&guest)?;
        files::add(&mut tree, &guest)?;
        tools::add(&mut tree, &tools)?;
        disk::link(&mut tree, &disk);
        busybox::add(&mut tree)?;
        context.detail("compiling Python modules");
        let results = context.work().join("compiled");
        python::compile(&mut tree, &guest, &compiler, self.host, &results)?;
        let results = context.work().join("compiled-disk");
        python::compile(&mut disk, &on_disk, &compiler, self.host, &results)?;
        if let Some(agent) = &self.agent {
            tree.put(AGENT, Node::File(0o755, Content::At(agent.clone())));
        }
        context.detail("checking libraries");
        libraries::check(&disk::mounted(&tree, &disk))?;
        context.detail("writing the archive");
        let path = out.join(ARCHIVE);
        fs::write(&path, tree.archive()?).at(&path)?;
        context.detail("writing the disk");
        let files = context.work().join("on-disk");
        disk::write(&disk, &files, &out.join(DISK))?;
        licences::collect(context, &all_files(), out)?;
        Ok(())
    }
}

/// Lists all packages of the guest.
fn all_files() -> Vec<Wanted> {
    [packages::root_files(), packages::disk_files()].concat()
}

/// Unpacks packages one over the other.
pub(crate) fn unpack(
    context: &StepContext<'_>,
    name: &str,
    wanted: &[Wanted],
) -> Result<PathBuf, ImageError> {
    let folder = context.work().join(name);
    for wanted in wanted {
        let deb = context.package(*wanted)?;
        output(program("dpkg-deb").arg("-x").arg(&deb).arg(&folder))?;
    }
    Ok(folder)
}

fn unexpected(subject: &str, reason: impl Into<String>) -> ImageError {
    ImageError::new(ErrorCode::UnexpectedPackage, subject, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_an_input() {
        let key = |agent: Option<PathBuf>| {
            let mut inputs = Inputs::default();
            RootFs::new(agent).unwrap().inputs(&mut inputs).unwrap();
            inputs.key()
        };
        let agent = tempfile::NamedTempFile::new().unwrap();
        let none = key(None);
        let empty = key(Some(agent.path().to_owned()));
        fs::write(agent.path(), "program").unwrap();
        let program = key(Some(agent.path().to_owned()));
        assert_ne!(none, empty);
        assert_ne!(empty, program);
        assert_eq!(none, key(None));
    }
}
