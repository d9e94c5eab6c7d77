//! Snapshot builder: the module from which guests start; boot, warm up, save.

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

/// Longest time for the whole of boot and warm-up: a hundred times what it
/// takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Id of the commands that warm the guest up.
const WARM_UP_ID: u64 = 1;

/// How long a guest that has freed all that it can runs on: it tells the host
/// what is free (`free-pages-at-once.patch`), and guests that start from the
/// snapshot are not to do that once more.
const REPORTING: Duration = Duration::from_millis(1500);

/// How often the emulator may say that it cannot be saved yet.
const BUSY_STEPS: u32 = 1000;

/// Boots a guest from `emulator` (the emulator's module) with the image's `disk`, runs `warm_up` in it
/// (the first of it is a short command of the shell), and gives it back as a
/// module that goes on from there. The module also holds AOT regions of the
/// code that the script `training` needs most; it runs in a copy of the guest, so
/// that the snapshot shows no trace of it.
///
/// # Errors
/// [`VmError`]; that of a guest that does not get ready has its console.
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
    // Of the code only what short commands need is decoded in the image: nothing
    // of the boot, and nothing that only a first run of a command needs.
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
    /// Runs the guest until a report is the one.
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

    /// Runs the guest for a while. If it ends, the error has all of its console:
    /// nobody sees that guest again.
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

    /// Waits as the guest does.
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
        // The session's shell, too, has run something.
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

    /// Zeroes free memory and gets the emulator ready to be saved.
    fn prepare(&mut self) -> Result<(), VmError> {
        // What the guest is just telling us is free it cannot use meanwhile, and
        // the agent is about to use all that is free.
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

    /// Gives the guest time to tell which memory is free.
    fn report_free_memory(&mut self) -> Result<(), VmError> {
        let reported = Instant::now() + REPORTING;
        while Instant::now() < reported {
            let next = self.step(|_| {})?;
            self.sleep(next);
        }
        Ok(())
    }

    /// Lets the guest run until nothing is half done, so that the emulator's
    /// function `prepare` agrees.
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

/// The state of an instance, as wizer wants it.
struct WizerState<'a> {
    store: &'a mut Store<Imports>,
    instance: Instance,
    /// Mutable globals: guests that are saved later hold only memory.
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
            // The trait asks for a panic; only a module that is not the
            // emulator can get here.
            other => panic!("the emulator's global {name} is {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        if let Some(memory) = self.instance.get_memory(&mut *self.store, name) {
            contents(memory.data(&*self.store));
        }
    }
}

/// The result of a future that has nothing to wait for.
fn ready_now<T>(future: impl Future<Output = T>) -> Result<T, VmError> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(VmError::new(VmCode::Module, "saving waits for something")),
    }
}
