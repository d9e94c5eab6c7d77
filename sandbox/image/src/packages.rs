//! Lists of the Debian packages that images are made of.

use serde::{Deserialize, Serialize};

/// Debian release of all packages. The compiler may be of another release; it is a separate
/// input.
pub const SUITE: &str = "trixie";

/// A processor architecture that Debian supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit RISC-V, the guest's.
    Riscv64,
    /// 64-bit x86.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// Returns the architecture of this process, if Debian has the packages used here for
    /// it.
    pub const fn host() -> Option<Arch> {
        if cfg!(target_arch = "x86_64") {
            Some(Arch::Amd64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Arch::Arm64)
        } else if cfg!(target_arch = "riscv64") {
            Some(Arch::Riscv64)
        } else {
            None
        }
    }

    /// Returns Debian's name.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Riscv64 => "riscv64",
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }

    /// Returns the folder of libraries below `usr/lib`, and the dynamic loader in it.
    pub const fn loader(self) -> (&'static str, &'static str) {
        match self {
            Arch::Riscv64 => ("riscv64-linux-gnu", "ld-linux-riscv64-lp64d.so.1"),
            Arch::Amd64 => ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
            Arch::Arm64 => ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
        }
    }
}

/// A package that an image needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Name of the package.
    pub name: &'static str,
    /// Requested architecture; packages for all architectures match too.
    pub arch: Arch,
}

impl Wanted {
    /// A package of the guest whose name is only known at run time. The name stays in
    /// memory: there are as many as packages in the lock files of one build.
    pub(crate) fn locked(name: &str) -> Self {
        Self {
            name: Box::leak(name.to_owned().into_boxed_str()),
            arch: Arch::Riscv64,
        }
    }
}

/// Source package of the guest's kernel.
pub const KERNEL_SOURCE: &str = "linux-source-6.12";

/// Packages of the root file system. `base-files` and `gcc-14-base` provide only licence
/// texts.
const ROOT_FILES: [&str; 27] = [
    "base-files",
    "busybox-static",
    "ca-certificates",
    "coreutils",
    "gcc-14-base",
    "libbz2-1.0",
    "libc-bin",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libmpdec4",
    "libncursesw6",
    "libpython3.13-minimal",
    "libpython3.13-stdlib",
    "libsqlite3-0",
    "libssl3t64",
    "libtinfo6",
    "libuuid1",
    "libzstd1",
    "media-types",
    "ncurses-base",
    "netbase",
    "python3-minimal",
    "python3.13-minimal",
    "zlib1g",
];

/// Packages of the image's disk, including the libraries that their programs need beyond
/// those above.
const DISK_FILES: [&str; 47] = [
    "bash",
    "curl",
    "e2fsprogs",
    "file",
    "git",
    "jq",
    "less",
    "libblkid1",
    "libbrotli1",
    "libcom-err2",
    "libcurl3t64-gnutls",
    "libcurl4t64",
    "libext2fs2t64",
    "libgmp10",
    "libgnutls30t64",
    "libgssapi-krb5-2",
    "libhogweed6t64",
    "libidn2-0",
    "libjq1",
    "libk5crypto3",
    "libkeyutils1",
    "libkrb5-3",
    "libkrb5support0",
    "libldap2",
    "libmagic-mgc",
    "libmagic1t64",
    "libnettle8t64",
    "libnghttp2-14",
    "libnghttp3-9",
    "libngtcp2-16",
    "libngtcp2-crypto-gnutls8",
    "libonig5",
    "libp11-kit0",
    "libpcre2-8-0",
    "libpsl5t64",
    "libreadline8t64",
    "librtmp1",
    "libsasl2-2",
    "libssh2-1t64",
    "libtasn1-6",
    "libunistring5",
    "make",
    "python3-pip",
    "tzdata",
    "unzip",
    "wget",
    "zip",
];

/// The same Python for the build machine, which compiles the guest's modules.
const COMPILER: [&str; 6] = [
    "libc6",
    "libexpat1",
    "libpython3.13-minimal",
    "libpython3.13-stdlib",
    "python3.13-minimal",
    "zlib1g",
];

/// Returns the packages of the kernel.
pub fn kernel() -> Vec<Wanted> {
    of(Arch::Riscv64, &[KERNEL_SOURCE])
}

/// Returns the packages of the root file system.
pub fn root_files() -> Vec<Wanted> {
    of(Arch::Riscv64, &ROOT_FILES)
}

/// Returns the packages of the image's disk.
pub fn disk_files() -> Vec<Wanted> {
    of(Arch::Riscv64, &DISK_FILES)
}

/// Returns the packages that compile Python modules on a machine of this architecture; on
/// the guest's own architecture its packages do.
pub fn compiler(host: Arch) -> Vec<Wanted> {
    match host {
        Arch::Riscv64 => Vec::new(),
        _ => of(host, &COMPILER),
    }
}

fn of(arch: Arch, names: &[&'static str]) -> Vec<Wanted> {
    names.iter().map(|&name| Wanted { name, arch }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_part_of_what_the_guest_has() {
        // Compiled modules fit only the Python version that compiled them.
        assert!(COMPILER.iter().all(|name| ROOT_FILES.contains(name)));
        assert!(ROOT_FILES.is_sorted() && DISK_FILES.is_sorted());
        assert!(!DISK_FILES.iter().any(|name| ROOT_FILES.contains(name)));
        assert!(compiler(Arch::Riscv64).is_empty());
    }
}
