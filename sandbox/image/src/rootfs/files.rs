//! Own files, which no package provides: folders, links, configuration, the init program.

use super::super::cpio::{Content, Node, Tree};
use super::super::error::{At, ImageError};
use super::unexpected;
use std::fs;
use std::path::Path;

/// Own files: path, permissions, content.
pub(super) const OWN: [(&str, u32, &str); 12] = [
    ("init", 0o755, include_str!("../../rootfs/init")),
    (
        "etc/udhcpc/default.script",
        0o755,
        include_str!("../../rootfs/udhcpc.script"),
    ),
    ("etc/group", 0o644, include_str!("../../rootfs/etc/group")),
    (
        "etc/hostname",
        0o644,
        include_str!("../../rootfs/etc/hostname"),
    ),
    ("etc/hosts", 0o644, include_str!("../../rootfs/etc/hosts")),
    (
        "etc/nsswitch.conf",
        0o644,
        include_str!("../../rootfs/etc/nsswitch.conf"),
    ),
    (
        "etc/os-release",
        0o644,
        include_str!("../../rootfs/etc/os-release"),
    ),
    (
        "etc/pip.conf",
        0o644,
        include_str!("../../rootfs/etc/pip.conf"),
    ),
    ("etc/passwd", 0o644, include_str!("../../rootfs/etc/passwd")),
    (
        "etc/profile",
        0o644,
        include_str!("../../rootfs/etc/profile"),
    ),
    ("etc/shells", 0o644, include_str!("../../rootfs/etc/shells")),
    // Written by the DHCP client.
    ("etc/resolv.conf", 0o644, ""),
];

/// Empty folders at boot: mount points and writable places.
const FOLDERS: [(&str, u32); 13] = [
    ("dev", 0o755),
    ("home", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr/local/bin", 0o755),
    ("usr/local/lib", 0o755),
    ("var/lib", 0o755),
    ("var/tmp", 0o1777),
];

/// Links. All programs are in one folder, for any path that a script uses.
const LINKS: [(&str, &str); 8] = [
    ("bin", "usr/bin"),
    ("lib", "usr/lib"),
    ("sbin", "usr/bin"),
    ("usr/sbin", "bin"),
    ("usr/bin/python", "python3"),
    ("usr/bin/udhcpc.script", "/etc/udhcpc/default.script"),
    ("usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt"),
    ("var/run", "/run"),
];

/// Bundle of certificates, where programs look for it.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Folder of the single certificates in the package.
const CERTIFICATE_FOLDER: &str = "usr/share/ca-certificates/mozilla";

/// Adds the own files to the tree.
pub(super) fn add(tree: &mut Tree, guest: &Path) -> Result<(), ImageError> {
    for (path, mode) in FOLDERS {
        tree.put(path, Node::Folder(mode));
    }
    for (path, target) in LINKS {
        tree.put(path, Node::Link(target.to_owned()));
    }
    for (path, mode, content) in OWN {
        tree.put(path, Node::File(mode, Content::Bytes(content.into())));
    }
    let certificates = certificates(&guest.join(CERTIFICATE_FOLDER))?;
    tree.put(
        CERTIFICATES,
        Node::File(0o644, Content::Bytes(certificates)),
    );
    // The kernel opens the console before devtmpfs is mounted.
    tree.put("dev/console", Node::Characters(0o600, 5, 1));
    tree.put("dev/null", Node::Characters(0o666, 1, 3));
    Ok(())
}

/// Concatenates all certificates, in the order of their names.
fn certificates(folder: &Path) -> Result<Vec<u8>, ImageError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        paths.push(entry.at(folder)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "crt"));
    paths.sort();
    let mut bundle = Vec::new();
    for path in &paths {
        bundle.extend(fs::read(path).at(path)?);
    }
    match bundle.starts_with(b"-----BEGIN CERTIFICATE-----") {
        true => Ok(bundle),
        false => Err(unexpected("ca-certificates", "it has no certificates")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_joined_in_order() {
        let guest = tempfile::tempdir().unwrap();
        let folder = guest.path().join(CERTIFICATE_FOLDER);
        fs::create_dir_all(&folder).unwrap();
        assert!(add(&mut Tree::default(), guest.path()).is_err());
        fs::write(folder.join("b.crt"), "second\n").unwrap();
        fs::write(folder.join("a.crt"), "-----BEGIN CERTIFICATE-----\n").unwrap();
        fs::write(folder.join("a.txt"), "no").unwrap();
        let mut tree = Tree::default();
        add(&mut tree, guest.path()).unwrap();
        let bundle = b"-----BEGIN CERTIFICATE-----\nsecond\n".to_vec();
        let expected = Node::File(0o644, Content::Bytes(bundle));
        assert_eq!(tree.get(CERTIFICATES), Some(&expected));
        assert_eq!(
            tree.get("dev/console"),
            Some(&Node::Characters(0o600, 5, 1))
        );
    }

    #[test]
    fn the_first_program_is_a_script_that_hands_over() {
        let (_, mode, init) = OWN.iter().find(|(path, ..)| *path == "init").unwrap();
        assert_eq!(*mode, 0o755);
        assert!(init.starts_with("#!/bin/sh\n"));
        assert!(init.contains("exec /sbin/agent99-agent"));
        assert!(super::super::AGENT.ends_with("/agent99-agent"));
    }
}
