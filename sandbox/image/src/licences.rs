//! Licence texts of an image's contents, collected beside it.
//!
//! Images are built locally from Debian's packages. Redistributing one requires the texts,
//! and the sources that `packages.json` names.

use super::command::{output, program};
use super::error::{At, ImageError};
use super::packages::Wanted;
use super::step::StepContext;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder in a step's result.
pub const FOLDER: &str = "licences";

/// Maximum links followed from one package's documentation to another's.
const MAX_LINKS: usize = 8;

/// A package that is part of the image.
#[derive(Debug, Serialize)]
struct LicenceSource<'a> {
    package: &'a str,
    version: String,
    /// Name and version of Debian's source package.
    source: String,
    /// File with its licence, if it has a separate one.
    licence: Option<String>,
}

/// Copies the licence of each package into the result, and lists them. Returns the folder.
pub(super) fn collect(
    context: &StepContext<'_>,
    wanted: &[Wanted],
    out: &Path,
) -> Result<PathBuf, ImageError> {
    let folder = out.join(FOLDER);
    fs::create_dir_all(&folder).at(&folder)?;
    let unpacked = context.work().join("documentation");
    fs::create_dir_all(&unpacked).at(&unpacked)?;
    let mut origins = Vec::new();
    for wanted in wanted {
        let deb = context.package(*wanted)?;
        unpack_documentation(&deb, &unpacked)?;
        let (version, source) = origin(&deb, wanted.name)?;
        origins.push(LicenceSource {
            package: wanted.name,
            version,
            source,
            licence: None,
        });
    }
    // Documentation may be a link to that of another package.
    for origin in &mut origins {
        let name = format!("{}.txt", origin.package);
        if let Some(text) = find(&unpacked, origin.package) {
            fs::copy(&text, folder.join(&name)).at(&text)?;
            origin.licence = Some(name);
        }
    }
    copy_common(
        &unpacked.join("usr/share/common-licenses"),
        &folder.join("common"),
    )?;
    let path = folder.join("packages.json");
    let list = serde_json::to_vec_pretty(&origins)
        .map_err(|error| ImageError::io(&path, &error.into()))?;
    fs::write(&path, list).at(&path)?;
    Ok(folder)
}

/// Returns the version of a package, and name and version of its source package.
pub(super) fn origin(deb: &Path, name: &str) -> Result<(String, String), ImageError> {
    let field = |field: &str| {
        let text = output(program("dpkg-deb").arg("-f").arg(deb).arg(field))?;
        Ok::<String, ImageError>(text.trim().to_owned())
    };
    let version = field("Version")?;
    let source = match field("Source")? {
        // dpkg omits the source if its name and version are the package's.
        source if source.is_empty() => format!("{name} ({version})"),
        source if source.contains('(') => source,
        source => format!("{source} ({version})"),
    };
    Ok((version, source))
}

/// Unpacks only the documentation and the common licence texts.
fn unpack_documentation(deb: &Path, folder: &Path) -> Result<(), ImageError> {
    let mut archive = program("dpkg-deb");
    let mut archive = archive
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .at(deb)?;
    let mut tar = program("tar");
    tar.args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(folder);
    tar.args(["./usr/share/doc*", "./usr/share/common-licenses*"]);
    if let Some(stream) = archive.stdout.take() {
        tar.stdin(stream);
    }
    // tar fails if a pattern matches nothing, which is fine here.
    let printed = super::command::finish(&mut tar)?;
    archive.wait().at(deb)?;
    let unmatched = printed.stderr.lines().all(|line| {
        line.contains("Not found in archive") || line.contains("Exiting with failure status")
    });
    match printed.status.success() || unmatched {
        true => Ok(()),
        false => Err(ImageError::new(
            super::error::ErrorCode::StepFailed,
            "tar",
            super::command::tail(&printed.stderr),
        )),
    }
}

/// Finds the licence of a package, following links between packages by name.
fn find(unpacked: &Path, package: &str) -> Option<PathBuf> {
    let folder = unpacked.join("usr/share/doc");
    let mut name = package.to_owned();
    for _ in 0..MAX_LINKS {
        let place = folder.join(&name);
        match fs::read_link(&place) {
            Ok(target) => name = target.file_name()?.to_str()?.to_owned(),
            Err(_) => return Some(place.join("copyright")).filter(|path| path.is_file()),
        }
    }
    None
}

fn copy_common(from: &Path, to: &Path) -> Result<(), ImageError> {
    let Ok(list) = fs::read_dir(from) else {
        return Ok(());
    };
    fs::create_dir_all(to).at(to)?;
    for entry in list {
        let path = entry.at(from)?.path();
        let name = path.file_name().unwrap_or_default();
        // `GPL` is a link to the newest version; its target's content is copied.
        if path.is_file() {
            fs::copy(&path, to.join(name)).at(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_documentations_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let doc = folder.path().join("usr/share/doc");
        fs::create_dir_all(doc.join("gcc-14-base")).unwrap();
        fs::write(doc.join("gcc-14-base/copyright"), "GPL").unwrap();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("gcc-14-base", doc.join("libgcc-s1")).unwrap();
        link("around", doc.join("around")).unwrap();
        let found = find(folder.path(), "libgcc-s1").unwrap();
        assert_eq!(fs::read(found).unwrap(), b"GPL");
        assert_eq!(find(folder.path(), "around"), None);
        assert_eq!(find(folder.path(), "none"), None);
    }
}
