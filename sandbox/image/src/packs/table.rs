//! The packs with a name, and what of Debian they do without.

/// A pack with a name.
pub(super) struct Named {
    pub name: &'static str,
    pub packages: &'static [&'static str],
    /// Packages that others need by name only.
    pub without: &'static [&'static str],
    pub archive: Option<&'static Archive>,
    pub lock: &'static str,
}

/// An archive that does not come from Debian.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub name: &'static str,
    pub version: &'static str,
    pub url: &'static str,
    pub sha256: &'static str,
    /// Folder that receives its files.
    pub folder: &'static str,
    /// File with the licence in that folder.
    pub licence: &'static str,
    /// A file of ours in that folder.
    pub setting: (&'static str, &'static str),
}

/// npm as its makers publish it: Debian's package needs 404 others.
static NPM: Archive = Archive {
    name: "npm",
    version: "10.9.2",
    url: "https://registry.npmjs.org/npm/-/npm-10.9.2.tgz",
    sha256: "5cd1e5ab971ea6333f910bc2d50700167c5ef4e66da279b2a3efc874c6b116e4",
    folder: "usr/lib/node_modules/npm",
    licence: "LICENSE",
    // Global packages belong to the guest's ordinary user, whose PATH has this folder.
    setting: ("npmrc", "prefix=${HOME}/.local\nupdate-notifier=false\n"),
};

pub(super) static NAMED: [Named; 4] = [
    Named {
        name: "build",
        packages: &["cmake", "gcc", "git", "libc6-dev", "make"],
        // Run-time parts of sanitizers and profilers.
        without: &[
            "libasan8",
            "libgprofng0",
            "liblsan0",
            "libtsan2",
            "libubsan1",
            "procps",
        ],
        archive: None,
        lock: include_str!("../../packs/build.json"),
    },
    Named {
        name: "node",
        packages: &["nodejs"],
        without: &["node-corepack"],
        archive: Some(&NPM),
        lock: include_str!("../../packs/node.json"),
    },
    Named {
        name: "py",
        packages: &[
            "python3-matplotlib",
            "python3-numpy",
            "python3-pandas",
            "python3-pil",
            "python3-pytest",
            "python3-requests",
        ],
        // Extras of fonttools and Pillow, which work without, and files for web browsers.
        without: &[
            "fonts-lyx",
            "python3-brotli",
            "python3-fs",
            "python3-lxml",
            "python3-lz4",
            "python3-numpy-dev",
            "python3-pil.imagetk",
            "python3-scipy",
            "python3-sympy",
            "python3-tk",
            "python3-ufolib2",
            "python3-unicodedata2",
            "python3-zopfli",
            "unicode-data",
        ],
        archive: None,
        lock: include_str!("../../packs/py.json"),
    },
    Named {
        name: "tools",
        packages: &[
            "fd-find",
            "jq",
            "openssh-client",
            "ripgrep",
            "sqlite3",
            "vim-tiny",
            "zstd",
        ],
        without: &[],
        archive: None,
        lock: include_str!("../../packs/tools.json"),
    },
];

/// Returns the names of the packs of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|row| row.name)
}

/// Packages that a guest does without: the image has their programs from elsewhere (busybox,
/// its own Python), or their work is the administration of an installed system.
pub(super) const ABSENT: [&str; 36] = [
    "adduser",
    "base-passwd",
    "bsdutils",
    "dash",
    "debconf",
    "debconf-2.0",
    "debianutils",
    "diffutils",
    "dpkg",
    "findutils",
    "fontconfig-config",
    "grep",
    "gzip",
    "hostname",
    "init-system-helpers",
    "install-info",
    "javascript-common",
    "libc-bin",
    "libjs-inherits",
    "libjs-jquery",
    "libjs-jquery-ui",
    "libpython3-stdlib",
    "login",
    "mailcap",
    "ncurses-bin",
    "passwd",
    "perl",
    "perl-base",
    "python3",
    "python3.13",
    "sed",
    "sensible-utils",
    "systemd",
    "tar",
    "ucf",
    "util-linux",
];

/// Links that maintainer scripts would make (`update-alternatives`), or that carry the name
/// by which a program is known: link, target.
pub(super) const LINKS: [(&str, &str); 15] = [
    ("usr/bin/c89", "gcc"),
    ("usr/bin/c99", "gcc"),
    ("usr/bin/cc", "gcc"),
    ("usr/bin/c++", "g++"),
    ("usr/bin/editor", "vim.tiny"),
    ("usr/bin/ex", "vim.tiny"),
    ("usr/bin/fd", "fdfind"),
    ("usr/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js"),
    ("usr/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js"),
    ("usr/bin/vi", "vim.tiny"),
    ("usr/bin/view", "vim.tiny"),
    ("usr/bin/vim", "vim.tiny"),
    ("usr/bin/vimdiff", "vim.tiny"),
    (
        "usr/lib/riscv64-linux-gnu/libblas.so.3",
        "blas/libblas.so.3",
    ),
    (
        "usr/lib/riscv64-linux-gnu/liblapack.so.3",
        "lapack/liblapack.so.3",
    ),
];

/// matplotlib's list of the fonts in the pack, as it writes it in the guest: folder, name,
/// content. Making it takes seconds at the first plot of every guest. The number is that of
/// the list's format; matplotlib makes a new list for another one, or if a font is missing.
pub(super) const FONTS: (&str, &str, &str) = (
    "usr/share/matplotlib",
    "fontlist-v390.json",
    include_str!("../../packs/fontlist-v390.json"),
);

/// Replacements in files: path, text that occurs once, new text.
pub(super) const PATCHES: [(&str, &str, &str); 1] = [(
    "usr/lib/python3/dist-packages/matplotlib/font_manager.py",
    "fm = json_load(fm_path)",
    "fm = json_load(fm_path if fm_path.exists() else f'/usr/share/matplotlib/{fm_path.name}')",
)];

/// Paths to leave out, as those of the image.
pub(super) const LEFT_OUT: &[&str] = &[
    "etc/bash_completion.d",
    "etc/fonts",
    "etc/init.d",
    "etc/pam.d",
    "usr/games",
    "usr/lib/mime",
    "usr/lib/systemd",
    "usr/lib/udev",
    "usr/share/applications",
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/doc-base",
    "usr/share/fish",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/icons",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/matplotlib/sample_data",
    "usr/share/menu",
    "usr/share/metainfo",
    "usr/share/mime",
    "usr/share/pixmaps",
    "usr/share/python3",
    "usr/share/vim/vim91/lang",
    "usr/share/vim/vim91/tutor",
    "usr/share/zsh",
    "usr/lib/node_modules/npm/docs",
    "usr/lib/node_modules/npm/man",
    // Tools of compiler developers.
    "usr/bin/lto-dump*",
    "usr/bin/riscv64-linux-gnu-lto-dump*",
    "usr/bin/cmake-gui",
    "usr/share/cmake-3.31/Help",
    "var",
];

/// Folder of Debian's Python packages.
pub(super) const PYTHON: &str = "usr/lib/python3/";
