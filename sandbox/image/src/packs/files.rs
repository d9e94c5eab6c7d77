//! Files of a pack: the step that unpacks its packages and makes the file system.

use super::super::apt;
use super::super::command::{output, program};
use super::super::cpio::{Node, Tree};
use super::super::digest::Inputs;
use super::super::error::{At, ErrorCode, ImageError};
use super::super::licences::origin;
use super::super::packages::{self, Arch, Wanted};
use super::super::rootfs::{RootFs, disk, python, select, unpack};
use super::super::step::{Step, StepContext};
use super::table::{Archive, FONTS, LEFT_OUT, LINKS, PATCHES, PYTHON};
use super::{DESCRIPTION, Description, LAYER, Pack, hash_of};
use a99_sandbox_cache::packs::step_name;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Sources that determine the content.
const RECIPE: [&str; 7] = [
    include_str!("files.rs"),
    include_str!("table.rs"),
    include_str!("../rootfs/disk.rs"),
    include_str!("../rootfs/python.rs"),
    include_str!("../rootfs/select.rs"),
    python::SCRIPT,
    FONTS.2,
];

/// Space for the unpacked packages, a copy and the file system, in bytes.
const ROOM: u64 = 1_500_000_000;

/// Folder of licence texts; each package has one in a folder of its name.
const DOCUMENTATION: &str = "usr/share/doc/";

/// A package that is part of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name of the package.
    pub package: String,
    /// Version of the package.
    pub version: String,
    /// Its source: name and version of Debian's source package, or an address.
    pub source: String,
    /// Path of its licence in the pack, if it has a separate one.
    pub licence: Option<String>,
}

/// Step that makes a pack.
pub(super) struct PackFiles<'a> {
    pack: &'a Pack,
    name: &'static str,
    wanted: Vec<Wanted>,
    host: Arch,
}

impl<'a> PackFiles<'a> {
    pub(super) fn new(pack: &'a Pack, wanted: Vec<Wanted>) -> Result<Self, ImageError> {
        Ok(Self {
            pack,
            name: Wanted::locked(&step_name(&pack.name)).name,
            wanted,
            host: RootFs::new(None)?.host,
        })
    }

    /// Describes the packages by their files, and their licences in the tree.
    fn members(&self, context: &StepContext<'_>, tree: &Tree) -> Result<Vec<Member>, ImageError> {
        let mut members = Vec::new();
        for wanted in &self.wanted {
            let (version, source) = origin(&context.package(*wanted)?, wanted.name)?;
            let licence = format!("{DOCUMENTATION}{}/copyright", wanted.name);
            members.push(Member {
                package: wanted.name.to_owned(),
                version,
                source,
                licence: tree.get(&licence).is_some().then_some(licence),
            });
        }
        members.extend(self.pack.archive.map(|archive| Member {
            package: archive.name.to_owned(),
            version: archive.version.to_owned(),
            source: archive.url.to_owned(),
            licence: Some(format!("{}/{}", archive.folder, archive.licence)),
        }));
        Ok(members)
    }
}

impl Step for PackFiles<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn packages(&self) -> Vec<Wanted> {
        [self.wanted.clone(), packages::compiler(self.host)].concat()
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.content("recipe", RECIPE.concat().as_bytes());
        inputs.value("disk", disk::version());
        if let Some(archive) = self.pack.archive {
            inputs.value(archive.url, archive.sha256);
        }
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        context.detail("unpacking the packages");
        let files = unpack(context, "files", &self.wanted)?;
        if let Some(archive) = self.pack.archive {
            context.detail("fetching an archive");
            add_archive(archive, context.work(), &files)?;
        }
        patch(&files)?;
        let mut tree = select::tree_without(&files, &is_left_out)?;
        link(&mut tree);
        context.detail("compiling Python modules");
        self.compile(context, &files, &mut tree)?;
        context.detail("writing the file system");
        let layer = out.join(LAYER);
        disk::write(&tree, &context.work().join("tree"), &layer)?;
        let description = Description {
            name: self.pack.name.clone(),
            sha256: hash_of(&layer)?,
            bytes: fs::metadata(&layer).at(&layer)?.len(),
            packages: self.members(context, &tree)?,
        };
        let path = out.join(DESCRIPTION);
        let text = serde_json::to_vec_pretty(&description)
            .map_err(|error| ImageError::io(&path, &error.into()))?;
        fs::write(&path, text).at(&path)
    }
}

impl PackFiles<'_> {
    fn compile(
        &self,
        context: &StepContext<'_>,
        files: &Path,
        tree: &mut Tree,
    ) -> Result<(), ImageError> {
        let mut modules = Tree::default();
        for (path, node) in tree.iter() {
            if path.starts_with(PYTHON) && path.ends_with(".py") {
                modules.put(path, node.clone());
            }
        }
        if modules.iter().next().is_none() {
            return Ok(());
        }
        let compiler = packages::compiler(self.host);
        let compiler = unpack(context, "compiler", &compiler)?;
        let results = context.work().join("compiled");
        python::compile(&mut modules, files, &compiler, self.host, &results)?;
        for (path, node) in modules.iter() {
            tree.put(path, node.clone());
        }
        Ok(())
    }
}

/// Fetches an archive with the hash of the table, and unpacks it.
fn add_archive(archive: &Archive, work: &Path, files: &Path) -> Result<(), ImageError> {
    let file = work.join("archive");
    apt::download(archive.url, &file, archive.sha256)?;
    let folder = files.join(archive.folder);
    fs::create_dir_all(&folder).at(&folder)?;
    let mut tar = program("tar");
    tar.args(["-xz", "--no-same-owner", "--strip-components=1", "-f"]);
    output(tar.arg(&file).arg("-C").arg(&folder))?;
    let (name, text) = archive.setting;
    let path = folder.join(name);
    fs::write(&path, text).at(&path)
}

fn is_left_out(path: &str) -> bool {
    if let Some(below) = path.strip_prefix(DOCUMENTATION) {
        return below.contains('/') && !below.ends_with("/copyright");
    }
    if let Some(below) = path.strip_prefix(PYTHON) {
        let is_test = |part: &str| part == "tests" || part == "sphinxext";
        return below.split('/').any(is_test) || below.ends_with(".a");
    }
    select::matches(LEFT_OUT, path)
}

/// Adds the links whose target the pack has.
fn link(tree: &mut Tree) {
    for (link, target) in LINKS {
        let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
        let place = match target.strip_prefix("../") {
            Some(rest) => format!("{}/{rest}", folder.rsplit_once('/').map_or("", |f| f.0)),
            None => format!("{folder}/{target}"),
        };
        if tree.get(&place).is_some() && tree.get(link).is_none() {
            tree.put(link, Node::Link(target.to_owned()));
        }
    }
}

/// Adds our own file to unpacked packages, and changes the texts that they have.
fn patch(files: &Path) -> Result<(), ImageError> {
    let (folder, name, text) = FONTS;
    let folder = files.join(folder);
    if folder.is_dir() {
        let path = folder.join(name);
        fs::write(&path, text).at(&path)?;
    }
    for (name, from, to) in PATCHES {
        let path = files.join(name);
        if !path.is_file() {
            continue;
        }
        let text = fs::read_to_string(&path).at(&path)?;
        if text.matches(from).count() != 1 {
            let reason = "is not as the patch of the pack expects";
            return Err(ImageError::new(ErrorCode::UnexpectedPackage, name, reason));
        }
        fs::write(&path, text.replace(from, to)).at(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::cpio::Content;
    use super::*;

    #[test]
    fn links_lead_to_what_is_there() {
        let mut tree = Tree::default();
        let file = |text: &str| Node::File(0o755, Content::Bytes(text.into()));
        tree.put("usr/bin/gcc", file("gcc"));
        tree.put("usr/bin/c99", file("mine"));
        tree.put("usr/lib/node_modules/npm/bin/npm-cli.js", file("npm"));
        link(&mut tree);
        assert_eq!(tree.get("usr/bin/cc"), Some(&Node::Link("gcc".to_owned())));
        assert_eq!(tree.get("usr/bin/c99"), Some(&file("mine")));
        assert!(tree.get("usr/bin/npm").is_some());
        assert!(tree.get("usr/bin/npx").is_none() && tree.get("usr/bin/vi").is_none());
    }

    #[test]
    fn a_patch_finds_its_place_or_fails() {
        let (name, from, to) = PATCHES[0];
        let files = tempfile::tempdir().unwrap();
        patch(files.path()).unwrap();
        assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
        let (path, fonts) = (files.path().join(name), files.path().join(FONTS.0));
        for folder in [path.parent().unwrap(), &fonts] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(&path, format!("a {from} b")).unwrap();
        patch(files.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("a {to} b"));
        assert!(fonts.join(FONTS.1).exists());
        // A file that was patched, or another release's, has another text.
        let error = patch(files.path()).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnexpectedPackage);
    }

    #[test]
    fn licences_stay_and_tests_go() {
        for path in [
            "usr/share/doc/gcc/copyright",
            "usr/include/stdio.h",
            "usr/lib/python3/a.py",
        ] {
            assert!(!is_left_out(path), "{path}");
        }
        for path in [
            "usr/share/doc/gcc/changelog.gz",
            "usr/share/man/man1/gcc.1",
            "usr/lib/python3/dist-packages/numpy/tests/test_a.py",
            "usr/lib/python3/dist-packages/numpy/random/lib/libnpyrandom.a",
        ] {
            assert!(is_left_out(path), "{path}");
        }
    }
}
