//! Host state of one image: its arguments, its descriptors, its network.

use super::abi::{Answer, Errno, Memory, filetype};
use super::clocks::Clocks;
use crate::console::{Console, Seen};
use crate::files::{Directory, Root};
use crate::link::Stream;
use a99_sandbox_p9::Spent;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wasmtime::StoreLimits;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::WasiP1Ctx;

/// The socket on which an image waits for its network: far above its own file descriptors,
/// since it closes the file of the same number when a socket fails, and below its
/// `FD_SETSIZE` of 1024.
pub(crate) const LISTEN_FD: u32 = 900;

/// The connection to its network.
pub(super) const CONNECTION_FD: u32 = 901;

/// First descriptor of a mount.
pub(super) const FIRST_FD: u32 = 3;

/// Maximum descriptors of files and directories. The emulator serves a guest's files and
/// keeps one for each open file.
const MAX_FILES: usize = 512;

/// Referent of a descriptor.
#[derive(Debug)]
pub(super) enum Descriptor {
    /// Console input.
    Input,
    /// Console output.
    Output,
    /// The emulator's own messages.
    Errors,
    /// A mount.
    Mount(Directory),
    /// A directory in a mount.
    Directory(Directory),
    /// A file in a mount, and its `fdflags`.
    File(OwnedFd, u16),
    /// The socket that accepts the network connection.
    Listener,
    /// The network connection.
    Connection,
}

impl Descriptor {
    pub(super) fn filetype(&self) -> u8 {
        match self {
            Descriptor::Input | Descriptor::Output | Descriptor::Errors => {
                filetype::CHARACTER_DEVICE
            }
            Descriptor::Mount(_) | Descriptor::Directory(_) => filetype::DIRECTORY,
            Descriptor::File(..) => filetype::REGULAR_FILE,
            Descriptor::Listener | Descriptor::Connection => filetype::SOCKET_STREAM,
        }
    }
}

/// Setup of an image.
pub(crate) struct Setup {
    pub arguments: Vec<String>,
    /// Names and values.
    pub environment: Vec<(String, String)>,
    pub mounts: Vec<Root>,
    pub network: Option<Stream>,
    /// Clock resolution in nanoseconds.
    pub clock_resolution: u64,
    pub limits: StoreLimits,
    /// Write budget of the mounts.
    pub spent: Spent,
}

/// Host side of one image.
pub(crate) struct Host {
    /// The state of wasmtime-wasi: arguments, environment, clocks, randomness. It has no
    /// files, no network, and no standard streams.
    pub(super) wasi: WasiP1Ctx,
    pub(super) console: Arc<Console>,
    pub(super) descriptors: BTreeMap<u32, Descriptor>,
    pub(super) network: Option<Stream>,
    /// Arrivals that have already ended a wait for another event.
    pub(super) reported: Seen,
    pub(super) clocks: Clocks,
    pub limits: StoreLimits,
    /// Write budget of the mounts and its use.
    pub(super) spent: Spent,
    /// Exit code of the image.
    pub exit_code: Option<u32>,
    /// Violation by the image that ends it.
    pub broken: Option<String>,
}

/// Maximum random bytes of one call: the host allocates as much meanwhile. Emulators ask
/// for some hundred; one that asks for more ends.
const MAX_RANDOM: u64 = 1 << 20;

fn context(arguments: &[String], environment: &[(String, String)], clocks: Clocks) -> WasiP1Ctx {
    WasiCtxBuilder::new()
        .args(arguments)
        .envs(environment)
        .wall_clock(clocks)
        .monotonic_clock(clocks)
        .max_random_size(MAX_RANDOM)
        .allow_tcp(false)
        .allow_udp(false)
        .build_p1()
}

impl Host {
    /// Creates the state of a new image.
    pub(crate) fn new(setup: Setup, console: Arc<Console>) -> Answer<Self> {
        let clocks = Clocks::new(setup.clock_resolution);
        let mut descriptors = BTreeMap::from([
            (0, Descriptor::Input),
            (1, Descriptor::Output),
            (2, Descriptor::Errors),
        ]);
        for (number, root) in (FIRST_FD..).zip(setup.mounts) {
            let mount = Descriptor::Mount(Arc::new(root).directory()?);
            descriptors.insert(number, mount);
        }
        if setup.network.is_some() {
            descriptors.insert(LISTEN_FD, Descriptor::Listener);
        }
        Ok(Self {
            wasi: context(&setup.arguments, &setup.environment, clocks),
            console,
            descriptors,
            network: setup.network,
            reported: Seen::default(),
            clocks,
            limits: setup.limits,
            spent: setup.spent,
            exit_code: None,
            broken: None,
        })
    }

    /// Whether the image must stop.
    pub(super) fn is_over(&self) -> bool {
        self.broken.is_some() || self.console.is_stopped()
    }

    pub(super) fn descriptor(&self, fd: u32) -> Answer<&Descriptor> {
        self.descriptors.get(&fd).ok_or(Errno::Badf)
    }

    /// Returns a regular file.
    pub(super) fn file(&self, fd: u32) -> Answer<&OwnedFd> {
        match self.descriptor(fd)? {
            Descriptor::File(file, _) => Ok(file),
            Descriptor::Mount(_) | Descriptor::Directory(_) => Err(Errno::Isdir),
            _ => Err(Errno::Spipe),
        }
    }

    /// Returns a directory.
    pub(super) fn directory(&self, fd: u32) -> Answer<&Directory> {
        match self.descriptor(fd)? {
            Descriptor::Mount(directory) | Descriptor::Directory(directory) => Ok(directory),
            _ => Err(Errno::Notdir),
        }
    }

    /// Gives a descriptor the lowest free number.
    pub(super) fn insert(&mut self, descriptor: Descriptor) -> Answer<u32> {
        if self.descriptors.len() >= MAX_FILES {
            return Err(Errno::Mfile);
        }
        let mut free = FIRST_FD;
        for (&number, _) in self.descriptors.range(FIRST_FD..) {
            if number != free {
                break;
            }
            free += 1;
        }
        self.descriptors.insert(free, descriptor);
        Ok(free)
    }

    /// The program has no other process to signal.
    pub(super) fn proc_raise(&mut self, _: &mut Memory<'_>, _signal: u32) -> Answer {
        Err(Errno::Nosys)
    }
}
