//! Sandbox builder: the options of a sandbox, and its start.

use super::checks::{bad, check_image, check_layers, check_memory, check_mount, check_own};
use super::copied::{Copied, check_copied_disk, random_mac};
#[cfg(feature = "c2w")]
use super::foreign;
use super::packs;
use super::sandbox::{Sandbox, Settings};
use crate::cache::{self, Cache};
use crate::net::{self, Forward, Rate};
use crate::p9::{Mount, MountMode};
use a99_egress::Policy;
use a99_sandbox_protocol::{Identity, Limits, Resume};
use a99_sandbox_runner::{
    BackendOptions, Bounds, DiskOptions, GuestHandle, GuestJit, Image, Layer, MAX_RAM_BYTES,
    Mailbox, OwnDisk, RAM_BYTES, Setup, VmCode, VmError, block_on, check_disk, launch, ram_of,
};
#[cfg(feature = "c2w")]
use a99_sandbox_runner::{Worker, spawn_thread};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Default output limit of a command in bytes.
const OUTPUT_LIMIT: u64 = 64 << 20;

/// Default size limit of a copy out of the guest in bytes: more than its disk.
const COPY_LIMIT: u64 = 1 << 30;

/// Default resolution of the guest's clocks, and that of a hardened sandbox.
const CLOCK: Duration = Duration::from_micros(1);
const HARDENED_CLOCK: Duration = Duration::from_millis(1);

/// Coarsest clock resolution: the guest's timer ticks every 10 ms.
const MAX_CLOCK: Duration = Duration::from_millis(10);

/// Longest host name (`HOST_NAME_MAX` of Linux).
const MAX_HOSTNAME: usize = 64;

/// Maximum bytes of environment variables: Linux reserves a quarter of the stack, 2 MiB,
/// for these and the arguments.
const MAX_ENV: usize = 1 << 20;

/// Group bit in the first byte of a MAC address (IEEE 802).
pub(super) const MULTICAST: u8 = 1;

/// Source of the image.
#[derive(Clone, Debug, Default)]
enum Source {
    /// The image that was built last, in the user's cache folder.
    #[default]
    Current,
    #[cfg(feature = "c2w")]
    File(PathBuf),
    Loaded(Image),
}

/// Configures and starts a sandbox; created by [`Sandbox::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    source: Source,
    pub(super) copied: Option<Copied>,
    hostname: Option<String>,
    pub(super) env: Vec<(String, String)>,
    limits: Limits,
    clock: Duration,
    guest_jit: GuestJit,
    bounds: Bounds,
    output_limit: u64,
    copy_limit: u64,
    ram: Option<u64>,
    pub(super) disk: Option<DiskOptions>,
    /// Whether files that do not fit memory go to a file of the host.
    pub(super) swap: bool,
    pub(super) packs: Vec<String>,
    pub(super) layers: Vec<Layer>,
    pub(super) replace_root: bool,
    pub(super) identity: Option<Identity>,
    backends: BackendOptions,
    #[cfg(feature = "c2w")]
    worker: Option<Worker>,
    #[cfg(feature = "c2w")]
    start_limit: Option<Duration>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            source: Source::default(),
            copied: None,
            hostname: None,
            env: Vec::new(),
            limits: Limits::default(),
            clock: CLOCK,
            guest_jit: GuestJit::default(),
            bounds: Bounds::default(),
            output_limit: OUTPUT_LIMIT,
            copy_limit: COPY_LIMIT,
            ram: None,
            disk: None,
            swap: true,
            packs: Vec::new(),
            layers: Vec::new(),
            replace_root: false,
            identity: None,
            backends: BackendOptions {
                mounts: Vec::new(),
                network: net::Config::new(Policy::off()),
            },
            #[cfg(feature = "c2w")]
            worker: None,
            #[cfg(feature = "c2w")]
            start_limit: None,
        }
    }

    /// Starts from a container2wasm image, a WebAssembly module, instead of the image that
    /// was built last.
    ///
    /// Native machine code is refused. [`c2w`](crate::c2w) lists what such a sandbox
    /// supports; any other call ends with [`VmCode::Unsupported`].
    #[cfg(feature = "c2w")]
    pub fn image(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::File(path.into());
        self
    }

    /// Sets the command that compiles the file of [`Builder::image`] in a separate process,
    /// with limits on memory and processor time.
    ///
    /// Without a worker, this process compiles the image and accepts no function of more
    /// than [`c2w::MAX_FUNCTION_HERE`](crate::c2w::MAX_FUNCTION_HERE) bytes. The command
    /// calls [`vm::serve`](crate::vm::serve).
    #[cfg(feature = "c2w")]
    pub fn worker(mut self, worker: Worker) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Limits the time until the shell of [`Builder::image`] answers, compilation included.
    ///
    /// The default is one minute after compilation. On expiry the start ends with
    /// [`VmCode::TimedOut`].
    #[cfg(feature = "c2w")]
    pub fn start_limit(mut self, time: Duration) -> Self {
        self.start_limit = Some(time);
        self
    }

    /// Starts from an image that is already loaded.
    pub fn loaded_image(mut self, image: &Image) -> Self {
        self.source = Source::Loaded(image.clone());
        self
    }

    /// Mounts a folder or a file of the host at an absolute path of the guest.
    pub fn mount(
        self,
        guest: impl Into<PathBuf>,
        host: impl Into<PathBuf>,
        mode: MountMode,
    ) -> Self {
        self.mounts([Mount::new(guest, host, mode)])
    }

    /// Adds mounts with all their options.
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Self {
        self.backends.mounts.extend(mounts);
        self
    }

    /// Sets the network policy; without one, the guest reaches nothing.
    pub fn network(mut self, policy: Policy) -> Self {
        self.backends.network.policy = policy;
        self
    }

    /// Sets the MAC address of the guest's interface.
    ///
    /// By default all guests have the same address; they never share a network.
    pub fn mac(mut self, address: [u8; 6]) -> Self {
        self.backends.network.mac = Some(address);
        self
    }

    /// Forwards a port of the host to a port of the guest.
    ///
    /// [`Sandbox::forwards`] returns the bound addresses.
    pub fn forward(mut self, listen: SocketAddr, guest_port: u16) -> Self {
        let forward = Forward { listen, guest_port };
        self.backends.network.forwards.push(forward);
        self
    }

    /// Limits the network's bytes per second, to and from the guest.
    pub fn network_rate(mut self, to_guest: Option<u64>, from_guest: Option<u64>) -> Self {
        self.backends.network.rate = Rate {
            to_guest,
            from_guest,
        };
        self
    }

    /// Sets the guest's host name; defaults to `agent99`.
    pub fn hostname(mut self, name: impl Into<String>) -> Self {
        self.hostname = Some(name.into());
        self
    }

    /// Sets an environment variable of every command and of the session shell.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the guest's memory in bytes: 256 MiB, the default, to 2 GiB, rounded up to
    /// blocks of 128 MiB; 2 GiB become one block less.
    ///
    /// The guest starts small and then adds the rest, which takes some 10 ms a block. Memory
    /// that it does not use stays with the host, except 2 MiB a block. A restored sandbox
    /// keeps its memory.
    pub fn ram(mut self, bytes: u64) -> Self {
        self.ram = Some(bytes);
        self
    }

    /// Limits the memory of each command in bytes.
    ///
    /// By default a command may use nearly all memory of the guest. A limit above the
    /// guest's memory is refused.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.limits.memory = Some(bytes);
        self
    }

    /// Limits the processes and threads of each command; defaults to 512.
    pub fn process_limit(mut self, count: u32) -> Self {
        self.limits.pids = Some(count);
        self
    }

    /// Limits the collected output of each command in bytes, both streams together;
    /// defaults to 64 MiB.
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Limits a copy out of the guest in bytes; defaults to 1 GiB.
    pub fn copy_limit(mut self, bytes: u64) -> Self {
        self.copy_limit = bytes;
        self
    }

    /// Makes the layers the whole root: of the image's files, only the agent's remain.
    pub fn replace_root(mut self) -> Self {
        self.replace_root = true;
        self
    }

    /// Limits the lifetime of the sandbox; on expiry every call ends with
    /// [`VmCode::TimeLimit`].
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.bounds.time = Some(time);
        self
    }

    /// Limits the instructions of the sandbox; at the limit every call ends with
    /// [`VmCode::CpuLimit`].
    ///
    /// A busy guest runs some 200 million instructions a second.
    pub fn instruction_limit(mut self, count: u64) -> Self {
        self.bounds.instructions = Some(count);
        self
    }

    /// Sets the resolution of the guest's clocks; defaults to a microsecond.
    pub fn clock_resolution(mut self, resolution: Duration) -> Self {
        self.clock = resolution;
        self
    }

    /// Coarsens the guest's clocks to 1 ms, so that timing is useless for side channels, and uses
    /// no code that was compiled for other guests ([`GuestJit::Aot`]).
    pub fn hardened(self) -> Self {
        self.clock_resolution(HARDENED_CLOCK)
            .guest_jit(GuestJit::Aot)
    }

    /// Selects which guest code runs as machine code; by default, [`GuestJit::Auto`], the code
    /// that was compiled with the image and what is hot in long computations.
    ///
    /// With [`GuestJit::Eager`] short commands pay for compiler threads that run beside them.
    /// [`GuestJit::Aot`] keeps guests from measuring which code others ran before.
    pub fn guest_jit(mut self, guest_jit: GuestJit) -> Self {
        self.guest_jit = guest_jit;
        self
    }

    /// Starts the sandbox; the future resolves when commands can run.
    ///
    /// # Errors
    /// [`VmCode::NoImage`] if no image was built, [`VmCode::BadOption`] for an option out
    /// of range, [`VmCode::Saved`] for a snapshot that does not fit, and any error of the
    /// start.
    pub async fn start(self) -> Result<Sandbox, VmError> {
        let ram = self.check()?;
        let mailbox = Arc::new(Mailbox::default());
        let guest = Arc::new(GuestHandle::new(Arc::clone(&mailbox)));
        let settings = Arc::new(Settings {
            output_limit: self.output_limit,
            ram,
            copy_limit: self.copy_limit,
            forwards: OnceLock::new(),
            git_refused: OnceLock::new(),
        });
        let source = self.source.clone();
        let bounds = self.bounds;
        #[cfg(feature = "c2w")]
        if let Source::File(path) = &source {
            foreign::check_module(path)?;
            return self.start_foreign(mailbox, guest, settings).await;
        }
        let (theirs, found) = (Arc::clone(&mailbox), Arc::clone(&settings));
        launch(
            &mailbox,
            move || source.load(),
            move |image| self.setup(image, &theirs, &found),
            bounds,
        )?;
        let interrupted = guest.started().await?;
        Ok(Sandbox {
            guest,
            settings,
            interrupted,
        })
    }

    /// Starts an image of container2wasm.
    #[cfg(feature = "c2w")]
    async fn start_foreign(
        self,
        mailbox: Arc<Mailbox>,
        guest: Arc<GuestHandle>,
        settings: Arc<Settings>,
    ) -> Result<Sandbox, VmError> {
        self.check_foreign()?;
        check_own(&self.backends.mounts, &[])?;
        let Source::File(path) = self.source else {
            return Err(VmError::new(VmCode::NoImage, "there is no file to start"));
        };
        let start = foreign::Start {
            path,
            worker: self.worker,
            limit: self.start_limit,
            life: self.bounds.time,
        };
        let (env, hardened) = (self.env, self.clock >= HARDENED_CLOCK);
        let (backends, found) = (self.backends, Arc::clone(&settings));
        let options = move || foreign::connect(backends, env, hardened, &found.forwards);
        spawn_thread(move || foreign::serve(mailbox, start, options))?;
        let interrupted = guest.started().await?;
        Ok(Sandbox {
            guest,
            settings,
            interrupted,
        })
    }

    /// Whether a container2wasm image supports these options.
    #[cfg(feature = "c2w")]
    fn check_foreign(&self) -> Result<(), VmError> {
        let is_overlay = |mount: &Mount| mount.mode == MountMode::Overlay;
        let wanted = [
            (self.copied.is_some(), "a saved sandbox to go on from"),
            (self.hostname.is_some(), "another host name"),
            (self.limits != Limits::default(), "limits of its commands"),
            (self.ram.is_some(), "another memory size"),
            (self.disk.is_some(), "a disk of its own"),
            (!self.layers.is_empty(), "layers"),
            (!self.packs.is_empty(), "packs"),
            (
                self.bounds.instructions.is_some(),
                "a limit of its instructions",
            ),
            (
                self.backends.mounts.iter().any(is_overlay),
                "mounts with a layer over them",
            ),
        ];
        match wanted.iter().find(|(wanted, _)| *wanted) {
            None => Ok(()),
            Some((_, what)) => {
                let text = format!("an image of container2wasm cannot have {what}");
                Err(VmError::new(VmCode::Unsupported, text))
            }
        }
    }

    /// Starts the sandbox for a program without an executor.
    ///
    /// Do not call this on an executor's thread.
    ///
    /// # Errors
    /// The errors of [`Builder::start`].
    pub fn start_blocking(self) -> Result<Sandbox, VmError> {
        block_on(self.start())
    }

    /// Checks that all options are in range; returns the memory that the guest may have.
    fn check(&self) -> Result<u64, VmError> {
        self.check_names()?;
        self.backends.mounts.iter().try_for_each(check_mount)?;
        if let Some([first, ..]) = self.backends.network.mac
            && first & MULTICAST != 0
        {
            bad("the interface's address: it must be no group's")?;
        }
        if self.clock.is_zero() || self.clock > MAX_CLOCK {
            bad(format!(
                "a clock of {:?}: it must be more than 0 and at most {MAX_CLOCK:?}",
                self.clock
            ))?;
        }
        if self.limits.pids == Some(0) {
            bad("no process at all: at least one is needed")?;
        }
        if let Some(disk) = &self.disk {
            check_disk(disk.bytes)?;
        }
        check_layers(self.packs.len() + self.layers.len(), self.replace_root)?;
        let ram = self.ram.map(ram_of).transpose()?;
        if (ram.is_some() || !self.swap) && self.copied.is_some() {
            bad("memory for a saved sandbox, which keeps its own")?;
        }
        // The size of a saved guest is not known here; its agent checks the limit too.
        let ram = match self.copied {
            Some(_) => MAX_RAM_BYTES,
            None => ram.unwrap_or(RAM_BYTES).into(),
        };
        check_memory(self.limits.memory, ram)?;
        Ok(ram)
    }

    fn check_names(&self) -> Result<(), VmError> {
        if let Some(name) = &self.hostname
            && (name.is_empty() || name.len() > MAX_HOSTNAME || name.contains('\0'))
        {
            return bad(format!(
                "host name {name:?}: it must have 1 to {MAX_HOSTNAME} bytes"
            ));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return bad(format!("variable {name:?}: it cannot be in an environment"));
            }
        }
        let env: usize = self.env.iter().map(|(n, v)| n.len() + v.len()).sum();
        if env > MAX_ENV {
            return bad(format!("{env} bytes of variables: {MAX_ENV} are allowed"));
        }
        Ok(())
    }

    /// The guest's initial settings; runs on the guest's thread.
    fn setup(
        mut self,
        image: &Image,
        mailbox: &Arc<Mailbox>,
        settings: &Settings,
    ) -> Result<Setup, VmError> {
        let origin = self.copied.take().map(Copied::open).transpose()?;
        if let Some(origin) = &origin {
            check_image(origin.image(), image.name())?;
            check_copied_disk(origin.disk_bytes(), self.disk.as_ref())?;
            self = self.container_of(origin.root_layers())?;
        }
        let forwards = &settings.forwards;
        check_own(&self.backends.mounts, &[image.home().to_owned()])?;
        let disk = match &origin {
            Some(origin) => origin.disk(self.disk.and_then(|disk| disk.folder))?,
            None => self.disk.as_ref().map(OwnDisk::new).transpose()?,
        };
        let swap = match &origin {
            Some(origin) => origin.swap(),
            None => self.swap.then(OwnDisk::swap),
        };
        let mut backends = self.backends;
        if origin.is_some() && backends.network.mac.is_none() {
            backends.network.mac = Some(random_mac()?);
        }
        let connected = backends.connect(origin.as_ref(), mailbox, forwards)?;
        if let Some(refused) = connected.git_refused {
            // Set only here, and a sandbox starts once.
            let _ = settings.git_refused.set(refused);
        }
        let env = self.env.into_iter();
        let layers = packs::load(&self.packs, self.layers)?;
        let layers = match &origin {
            Some(origin) => packs::of_copy(origin.root_layers(), layers)?,
            None => layers,
        };
        // The commands of a copy have their root already.
        let new_layers = if origin.is_none() { layers.len() } else { 0 };
        Ok(Setup {
            resume: Resume {
                hostname: self.hostname.map(String::into_bytes),
                env: env.map(|(n, v)| (n.into_bytes(), v.into_bytes())).collect(),
                limits: self.limits,
                // A copy's kernel has mounted its disk already.
                disk: disk.is_some() && origin.is_none(),
                layers: new_layers as u8,
                replace_root: self.replace_root && new_layers > 0,
                identity: self.identity,
                swap_off: !self.swap,
                network: connected.network,
                mounts: connected.mounts,
                ..Resume::default()
            },
            backends: connected.backends,
            ram_bytes: self.ram.map_or(Ok(RAM_BYTES), ram_of)?,
            disk,
            swap,
            layers,
            guest_jit: self.guest_jit,
            clock_resolution_ns: self.clock.as_nanos() as u64,
            origin,
        })
    }
}

impl Source {
    fn load(self) -> Result<Image, VmError> {
        match self {
            Source::Loaded(image) => Ok(image),
            // Foreign images take the other path.
            #[cfg(feature = "c2w")]
            Source::File(path) => Err(VmError::new(VmCode::Module, path.display().to_string())),
            Source::Current => {
                let cache = Cache::of_user()
                    .map_err(|error| VmError::new(VmCode::Io, error.to_string()))?;
                Image::current(&cache, &mut |_: cache::Event<'_>| {})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_before_anything_starts() {
        let builder = Sandbox::builder;
        for bad in [
            builder().hostname(""),
            builder().hostname("x".repeat(65)),
            builder().env("", "x"),
            builder().env("A=B", "x"),
            builder().env("A", "\0"),
            builder().env("A", "x".repeat(1 << 20)),
            builder().clock_resolution(Duration::ZERO),
            builder().clock_resolution(Duration::from_secs(1)),
            builder().process_limit(0),
            builder().memory_limit(0),
            builder().memory_limit(1 << 30),
            builder().ram((256 << 20) - 1),
            builder().ram((2 << 30) + 1),
            builder().ram(1 << 30).restore([]),
            builder().files_in_memory().restore([]),
            builder().ram(1 << 30).memory_limit((1 << 30) + 1),
            builder().disk(0),
            builder().disk(u64::MAX),
            builder().replace_root(),
            builder().mac([1, 0, 0, 0, 0, 1]),
            builder().mount("/", "/tmp", MountMode::ReadOnly),
            builder().mount("data", "/tmp", MountMode::ReadOnly),
            builder().mount("/a/../b", "/tmp", MountMode::ReadOnly),
        ] {
            assert_eq!(bad.check().unwrap_err().code, VmCode::BadOption, "{bad:?}");
        }
        let good = builder().hostname("box").env("A", "1").hardened();
        assert_eq!(good.check(), Ok(256 << 20));
        let large = builder().ram(1 << 30).memory_limit(1 << 30);
        assert_eq!(large.check(), Ok(1 << 30));
    }
}
