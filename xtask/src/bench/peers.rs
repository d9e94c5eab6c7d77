//! Peers: the engines in the comparison, and how their programs are built, each alone in the
//! workspace `benches/peers`.

use crate::shell::{Failed, cargo_of, failed, root, run, target_of, works};
use std::path::PathBuf;
use std::process::Command;

/// A peer.
pub(super) struct Peer {
    /// Name of the engine, its column and its program.
    pub(super) name: &'static str,
    package: &'static str,
    /// The feature that selects it, if its package has several peers.
    feature: Option<&'static str>,
    /// Its second program, which counts allocations.
    held: Option<&'static str>,
    /// The compilers that its C or C++ needs.
    compilers: &'static [Compiler],
    /// Whether its programs are typed, so that it is no measure for an untyped engine.
    pub(super) is_typed: bool,
}

/// A compiler of another language.
struct Compiler {
    variable: &'static str,
    program: &'static str,
    language: &'static str,
    debian: &'static str,
}

const C: Compiler = Compiler {
    variable: "CC",
    program: "cc",
    language: "C",
    debian: "gcc",
};

const CXX: Compiler = Compiler {
    variable: "CXX",
    program: "c++",
    language: "C++",
    debian: "g++",
};

const fn rust(name: &'static str, package: &'static str) -> Peer {
    Peer {
        name,
        package,
        feature: None,
        held: None,
        compilers: &[],
        is_typed: false,
    }
}

/// The peers, in the order of columns.
pub(super) const PEERS: [Peer; 8] = [
    Peer {
        feature: Some("lua54"),
        held: Some("lua54-held"),
        compilers: &[C],
        ..rust("lua54", "peer-mlua")
    },
    Peer {
        feature: Some("luau"),
        held: Some("luau-held"),
        compilers: &[C, CXX],
        ..rust("luau", "peer-mlua")
    },
    Peer {
        feature: Some("luajit"),
        compilers: &[C],
        ..rust("luajit", "peer-mlua")
    },
    Peer {
        compilers: &[C],
        ..rust("rquickjs", "peer-rquickjs")
    },
    rust("starlark", "peer-starlark"),
    rust("rhai", "peer-rhai"),
    rust("piccolo", "peer-piccolo"),
    Peer {
        held: Some("wasmi-held"),
        is_typed: true,
        ..rust("wasmi", "peer-wasmi")
    },
];

/// The peers of these comma-separated names.
pub(super) fn named(names: &str) -> Result<Vec<&'static Peer>, Failed> {
    let all = || {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        format!("no peer of that name; there are {}", names.join(", "))
    };
    let one = |name: &str| {
        let found = PEERS.iter().find(|peer| peer.name == name);
        found.ok_or_else(|| failed(name, all()))
    };
    names.split(',').map(one).collect()
}

/// Builds the programs of peers. Returns their paths.
///
/// # Errors
/// A failed build: which peer, the missing tool, and how to continue without it.
pub(super) fn build(peers: &[&'static Peer]) -> Result<Vec<(&'static Peer, PathBuf)>, Failed> {
    // Report missing tools before minutes of work.
    for peer in peers {
        if let Some(lacking) = peer.compilers.iter().find(|compiler| !compiler.is_there()) {
            let (language, debian) = (lacking.language, lacking.debian);
            return Err(Failed(format!(
                "{} needs a compiler of {language} (Debian: apt-get install {debian}); to go \
                 on without it: --only {}",
                peer.name,
                others(peers, peer)
            )));
        }
    }
    let manifest = root().join("benches/peers/Cargo.toml");
    let target = target_of(&manifest)?.join("release");
    let mut programs = Vec::new();
    for peer in peers {
        eprintln!("==> building {}", peer.name);
        let mut build = cargo_of(&manifest, "build");
        build.args(["--quiet", "--locked", "--profile", "bench"]);
        build.args(["--package", peer.package]);
        if let Some(feature) = peer.feature {
            build.args(["--no-default-features", "--features", feature]);
        }
        for program in [Some(peer.name), peer.held].into_iter().flatten() {
            build.args(["--bin", program]);
            programs.push((*peer, target.join(program)));
        }
        run(&mut build).map_err(|Failed(reason)| {
            let others = others(peers, peer);
            Failed(format!(
                "{reason}\nto go on without {}: --only {others}",
                peer.name
            ))
        })?;
    }
    Ok(programs)
}

impl Compiler {
    fn is_there(&self) -> bool {
        let program = std::env::var_os(self.variable);
        works(Command::new(program.unwrap_or_else(|| self.program.into())).arg("--version"))
    }
}

/// The names of all other peers.
fn others(peers: &[&Peer], without: &Peer) -> String {
    let others = peers.iter().filter(|peer| peer.name != without.name);
    others.map(|peer| peer.name).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_known_by_name_and_the_anchor_is_one() {
        assert!(
            PEERS
                .iter()
                .any(|peer| peer.name == a99_benches_work::list::ANCHOR)
        );
        let found = named("wasmi,lua54").map(|peers| peers.len());
        assert_eq!(found.ok(), Some(2));
        let Err(Failed(reason)) = named("lua") else {
            panic!("there is none of that name");
        };
        assert!(reason.starts_with("lua: no peer of that name; there are lua54, "));
    }

    #[test]
    fn what_is_left_out_is_named() {
        let peers: Vec<&Peer> = PEERS.iter().take(3).collect();
        assert_eq!(others(&peers, &PEERS[1]), "lua54,luajit");
    }
}
