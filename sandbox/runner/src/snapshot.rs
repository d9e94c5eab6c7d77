//! Snapshot builder: boots and warms up a guest, and saves it as the module that guests
//! start from.

use super::disk::ImageDisk;
use super::error::{VmCode, VmError};
use super::guest::{Boot, Guest, Next, is_done};
use super::imports::Imports;
use super::instance::Linked;
use super::link::NewIndices;
use super::training;
use a99_sandbox_abi::{Export, functions as abi};
use a99_sandbox_protocol::{Ending, Exec, Report, Request, Script, VERSION};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use wasmtime::{Engine, Instance, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};

/// Time limit for boot and warm-up together: a hundred times their usual duration.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Id of the warm-up commands.
const WARM_UP_ID: u64 = 1;

/// How long a guest runs on after it has freed all it can. It reports its free memory to
/// the host (`free-pages-at-once.patch`), so that guests that start from the snapshot need
/// not repeat that.
const REPORTING: Duration = Duration::from_millis(1500);

/// How often the emulator may answer that it is busy.
const BUSY_STEPS: u32 = 1000;

/// Boots a guest from the module `emulator` with the image's `disk`, runs `warm_up` (first
/// a short shell command), and saves the guest as a module that continues from there.
///
/// The module also holds AOT regions of the hottest code of the script `training`. The
/// script runs in a copy of the guest, so that it leaves no trace in the snapshot.
///
/// # Errors
/// [`VmError`]; the error of a guest that does not get ready includes its console.
pub(super) fn snapshot(
    engine: &Engine,
    emulator: &[u8],
    disk: Option<ImageDisk>,
    boot: &Boot<'_>,
    warm_up: &[&[&str]],
    training: &str,
) -> Result<Vec<u8>, VmError> {
    let failed = |error| VmError::engine(VmCode::Module, "emulator", &error);
    let indices = NewIndices::of(emulator)?;
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument(emulator).map_err(failed)?;
    let module = Module::new(engine, &instrumented).map_err(failed)?;
    let linked = Linked::new(&module, disk)?;
    let mut building = Building {
        guest: Guest::boot(&linked, boot)?,
        deadline: Instant::now() + TIMEOUT,
    };
    building
        .until("get ready", |report| match report {
            Report::Ready { version, .. } => Some(*version),
            _ => None,
        })
        .and_then(check_version)?;
    building.warm_up(warm_up)?;
    // The image holds decoded code only for short commands: not for the boot, nor for the
    // first run of a command.
    building.drain(abi::PREPARE_SNAPSHOT)?;
    building.warm_up(&warm_up[..warm_up.len().min(1)])?;
    building.prepare()?;
    let profile = training::profile(&linked, &building.guest, training)?;
    let functions = training::compile_aot(&mut building.guest, &profile, &indices)?;
    let (store, instance) = building.guest.emulator.parts();
    let mut state = WizerState {
        store,
        instance,
        globals: 0,
    };
    let saved = ready_now(wizer.snapshot(&context, &mut state));
    let saved = saved.and_then(|saved| saved.map_err(failed))?;
    if state.globals > 1 {
        let text = "the emulator has state besides its memory and its stack pointer";
        return Err(VmError::new(VmCode::Module, text));
    }
    indices.add(&saved, &functions)
}

fn check_version(version: u16) -> Result<(), VmError> {
    if version == VERSION {
        return Ok(());
    }
    let text = format!("the guest's agent speaks version {version}, the host {VERSION}");
    Err(VmError::new(VmCode::Protocol, text))
}

/// A guest on its way to a snapshot.
struct Building {
    guest: Guest,
    deadline: Instant,
}

impl Building {
    /// Runs the guest until `wanted` accepts a report.
    fn until<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&Report) -> Option<T>,
    ) -> Result<T, VmError> {
        loop {
            let mut found = None;
            let next = self.step(|report| {
                if found.is_none() {
                    found = wanted(&report);
                }
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
            if Instant::now() > self.deadline {
                let console = self.guest.console();
                let text = format!("the guest did not {what} in time; its console:\n{console}");
                return Err(VmError::new(VmCode::NotReady, text));
            }
            self.sleep(next);
        }
    }

    /// Runs the guest for a while. If it ends, the error includes its whole console, the
    /// only trace of that guest.
    fn step(&mut self, mut on_report: impl FnMut(Report)) -> Result<Next, VmError> {
        let next = self.guest.step(|_, _, report| on_report(report));
        next.map_err(|error| match error.code {
            VmCode::GuestEnded => {
                let console = self.guest.console();
                VmError::new(error.code, format!("{}\n{console}", error.text))
            }
            _ => error,
        })
    }

    /// Sleeps while the guest does.
    fn sleep(&self, next: Next) {
        if let Next::Wait(until) = next {
            let now = self.guest.emulator.now_ns();
            let sleep = until.map_or(1_000_000, |until| until.saturating_sub(now));
            std::thread::sleep(Duration::from_nanos(sleep).min(Duration::from_millis(10)));
        }
    }

    fn warm_up(&mut self, commands: &[&[&str]]) -> Result<(), VmError> {
        for command in commands {
            let argv = command.iter().map(|a| a.as_bytes().to_vec()).collect();
            let exec = Exec {
                argv,
                ..Exec::default()
            };
            self.run(&Request::Exec(exec), &command.join(" "))?;
        }
        // The session shell also runs a script once.
        let text = b":".to_vec();
        self.run(&Request::Script(Script { text }), ":")
    }

    fn run(&mut self, request: &Request, name: &str) -> Result<(), VmError> {
        self.guest.request(WARM_UP_ID, request);
        let mut errors = Vec::new();
        let ending = self.until("warm up", |report| match report {
            Report::Output(_, bytes) => {
                errors.extend(bytes);
                None
            }
            Report::Exited(exited) => Some(Ok(exited.ending)),
            Report::Failed(_, _, text) => Some(Err(text.clone())),
            _ => None,
        })?;
        if ending == Ok(Ending::Code(0)) {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&errors);
        let text = format!("`{name}` fails in the new guest ({ending:?}): {output}");
        Err(VmError::new(VmCode::NotReady, text))
    }

    /// Zeroes free memory and prepares the emulator to be saved.
    fn prepare(&mut self) -> Result<(), VmError> {
        // The guest cannot use memory while it reports it as free, and the agent is about
        // to use all free memory.
        self.report_free_memory()?;
        self.guest.request(0, &Request::Prepare);
        self.until("prepare itself", |report| match report {
            Report::Prepared(_) => Some(Ok(())),
            Report::Failed(_, _, text) => Some(Err(VmError::new(VmCode::NotReady, text.clone()))),
            _ => None,
        })??;
        self.report_free_memory()?;
        self.drain(abi::PREPARE_IMAGE)
    }

    /// Gives the guest time to report its free memory.
    fn report_free_memory(&mut self) -> Result<(), VmError> {
        let reported = Instant::now() + REPORTING;
        while Instant::now() < reported {
            let next = self.step(|_| {})?;
            self.sleep(next);
        }
        Ok(())
    }

    /// Lets the guest run until it is at rest and the emulator's function `prepare`
    /// succeeds.
    fn drain(&mut self, prepare: Export<(), u32>) -> Result<(), VmError> {
        for _ in 0..BUSY_STEPS {
            let next = self.step(|_| {})?;
            if matches!(next, Next::Wait(_)) && is_done(self.guest.emulator.call(prepare, ())?) {
                return Ok(());
            }
            self.sleep(next);
        }
        Err(VmError::new(
            VmCode::NotReady,
            "the guest does not come to rest",
        ))
    }
}

/// State of an instance, in the form that wizer requires.
struct WizerState<'a> {
    store: &'a mut Store<Imports>,
    instance: Instance,
    /// Number of mutable globals: guests that are saved later hold only memory.
    globals: usize,
}

impl InstanceState for WizerState<'_> {
    async fn global_get(&mut self, name: &str, _: wasmparser::ValType) -> SnapshotVal {
        self.globals += 1;
        let global = self.instance.get_global(&mut *self.store, name);
        match global.map(|global| global.get(&mut *self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            Some(Val::V128(value)) => SnapshotVal::V128(value.as_u128()),
            // The trait allows only a panic, and only a module that is not the emulator
            // gets here.
            other => panic!("the emulator's global {name} is {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        if let Some(memory) = self.instance.get_memory(&mut *self.store, name) {
            contents(memory.data(&*self.store));
        }
    }
}

/// Returns the result of a future that never waits.
fn ready_now<T>(future: impl Future<Output = T>) -> Result<T, VmError> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(VmError::new(VmCode::Module, "saving waits for something")),
    }
}
