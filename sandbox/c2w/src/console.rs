//! Console of an image, shared by its thread and its callers: bytes in both directions, and
//! the reason of the image's end.

use a99_sandbox_runner::{VmCode, VmError};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of pending input above which a writer waits.
const MAX_INPUT: usize = 1 << 20;

/// Bytes of pending output above which the image waits.
const MAX_OUTPUT: usize = 1 << 20;

/// Bytes kept of the emulator's own messages.
const MAX_ERRORS: usize = 64 << 10;

/// Escape byte of the console, which is doubled on input (contract of the image: `0x01 x`
/// would end the emulator, `0x01 0x01` is the byte itself).
const ESCAPE: u8 = 1;

/// Source stream of output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The guest's console: the standard output and standard error of all its programs.
    Console,
    /// The emulator itself.
    Emulator,
}

/// Receives output as it comes, on the image's thread.
pub type OnOutput = Box<dyn FnMut(Source, &[u8]) + Send>;

#[derive(Default)]
struct State {
    input: VecDeque<u8>,
    /// Counts of arrivals of input and of frames, each of which ends a wait of the image
    /// early.
    inputs: u64,
    frames: u64,
    output: Vec<u8>,
    errors: Vec<u8>,
    /// Total bytes that the emulator wrote itself.
    errors_written: u64,
    stopped: bool,
    ended: Option<VmError>,
}

/// State shared by an image's thread and its callers.
#[derive(Default)]
pub(super) struct Console {
    state: Mutex<State>,
    changed: Condvar,
    on_output: Mutex<Option<OnOutput>>,
}

/// Arrival counts that an image has seen.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Seen {
    pub inputs: u64,
    pub frames: u64,
}

impl Console {
    pub(crate) fn new(on_output: Option<OnOutput>) -> Self {
        Self {
            on_output: Mutex::new(on_output),
            ..Self::default()
        }
    }

    /// Locks the state. Ignores poisoning: every update of the state is complete.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done`, or `until`.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        until: Option<Instant>,
        done: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        while !done(&state) {
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(timeout) => {
                    let waited = self.changed.wait_timeout(state, timeout);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.changed.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        state
    }

    // The callers' side.

    /// Types bytes at the console; waits while the guest is far behind.
    ///
    /// # Errors
    /// Why the image no longer runs; [`VmCode::TimedOut`] if the guest took no input until
    /// `until`.
    pub(crate) fn type_in(&self, bytes: &[u8], until: Option<Instant>) -> Result<(), VmError> {
        for chunk in bytes.chunks(MAX_INPUT / 4) {
            let state = self.lock();
            let has_room = |state: &State| state.ended.is_some() || state.input.len() < MAX_INPUT;
            let mut state = self.wait(state, until, has_room);
            if let Some(ended) = &state.ended {
                return Err(ended.clone());
            }
            if state.input.len() >= MAX_INPUT {
                let text = "the guest does not take its console's input";
                return Err(VmError::new(VmCode::TimedOut, text));
            }
            for &byte in chunk {
                if byte == ESCAPE {
                    state.input.push_back(ESCAPE);
                }
                state.input.push_back(byte);
            }
            state.inputs += 1;
            drop(state);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Takes pending output; waits for its first byte until `until`, then returns none.
    ///
    /// # Errors
    /// Why the image no longer runs, after its last output.
    pub(crate) fn output(&self, until: Option<Instant>) -> Result<Vec<u8>, VmError> {
        let state = self.lock();
        let any = |state: &State| !state.output.is_empty() || state.ended.is_some();
        let mut state = self.wait(state, until, any);
        let output = std::mem::take(&mut state.output);
        match &state.ended {
            Some(ended) if output.is_empty() => Err(ended.clone()),
            _ => {
                drop(state);
                self.changed.notify_all();
                Ok(output)
            }
        }
    }

    /// Total bytes that the emulator wrote itself.
    pub(crate) fn errors_written(&self) -> u64 {
        self.lock().errors_written
    }

    /// The emulator's own messages after the first `since` bytes, as far as they are kept.
    pub(crate) fn errors_since(&self, since: u64) -> Vec<u8> {
        let state = self.lock();
        let new = state.errors_written.saturating_sub(since) as usize;
        state.errors[state.errors.len().saturating_sub(new)..].to_vec()
    }

    /// Asks the image to stop.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until the image has ended or `timeout` is over; returns whether it has ended.
    pub(crate) fn wait_end(&self, timeout: Option<Duration>) -> bool {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let state = self.lock();
        let state = self.wait(state, until, |state| state.ended.is_some());
        state.ended.is_some()
    }

    /// Why the image no longer runs; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<VmError> {
        self.lock().ended.clone()
    }

    // The image's side.

    /// Whether the image was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Bytes of input that can be read.
    pub(crate) fn readable(&self) -> usize {
        self.lock().input.len()
    }

    /// Reads pending input.
    pub(crate) fn read(&self, into: &mut [u8]) -> usize {
        let mut state = self.lock();
        let count = into.len().min(state.input.len());
        for (place, byte) in into.iter_mut().zip(state.input.drain(..count)) {
            *place = byte;
        }
        let had_been_full = state.input.len() + count >= MAX_INPUT;
        drop(state);
        if had_been_full {
            self.changed.notify_all();
        }
        count
    }

    /// Writes to the console; waits while output is not taken. After a stop the output is
    /// lost.
    pub(crate) fn write(&self, bytes: &[u8]) {
        if self.forward(Source::Console, bytes) {
            return;
        }
        let state = self.lock();
        let has_room = |state: &State| state.stopped || state.output.len() < MAX_OUTPUT;
        let mut state = self.wait(state, None, has_room);
        state.output.extend(bytes);
        drop(state);
        self.changed.notify_all();
    }

    /// Writes a message of the emulator itself.
    pub(crate) fn write_error(&self, bytes: &[u8]) {
        self.forward(Source::Emulator, bytes);
        let mut state = self.lock();
        state.errors.extend(bytes);
        state.errors_written += bytes.len() as u64;
        let excess = state.errors.len().saturating_sub(MAX_ERRORS);
        state.errors.drain(..excess);
    }

    /// Passes output to the callback, if there is one; returns whether there was.
    fn forward(&self, source: Source, bytes: &[u8]) -> bool {
        let mut on_output = self
            .on_output
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match on_output.as_mut() {
            Some(on_output) => {
                on_output(source, bytes);
                true
            }
            None => false,
        }
    }

    /// Records the arrival of frames.
    pub(crate) fn frames_arrived(&self) {
        self.lock().frames += 1;
        self.changed.notify_all();
    }

    /// Arrival counts so far.
    pub(crate) fn seen(&self) -> Seen {
        let state = self.lock();
        Seen {
            inputs: state.inputs,
            frames: state.frames,
        }
    }

    /// Waits for input, frames or a stop after `seen`, at most until `until`.
    pub(crate) fn wait_arrival(&self, seen: Seen, until: Option<Instant>) {
        let state = self.lock();
        drop(self.wait(state, until, |state| {
            state.stopped || state.inputs != seen.inputs || state.frames != seen.frames
        }));
    }

    /// Waits until a stop, at most until `until`.
    pub(crate) fn wait_stop(&self, until: Option<Instant>) {
        let state = self.lock();
        drop(self.wait(state, until, |state| state.stopped));
    }

    /// Records the end of the image and its reason.
    pub(crate) fn end(&self, reason: VmError) {
        self.lock().ended.get_or_insert(reason);
        self.changed.notify_all();
        // The callback may hold the waiter for this end.
        let mut on_output = self
            .on_output
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *on_output = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_escape_is_doubled() {
        let console = Console::new(None);
        console.type_in(b"a\x01b\x01\x01", None).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(console.readable(), 8);
        let count = console.read(&mut buffer);
        assert_eq!(&buffer[..count], b"a\x01\x01b\x01\x01\x01\x01");
        assert_eq!(console.read(&mut buffer), 0);
    }

    #[test]
    fn a_guest_that_takes_no_input_ends_in_an_error() {
        let console = Console::new(None);
        let soon = Some(Instant::now() + Duration::from_millis(30));
        let flood = vec![b'x'; 2 * MAX_INPUT];
        let error = console.type_in(&flood, soon).unwrap_err();
        assert_eq!(error.code, VmCode::TimedOut);
        assert!(console.readable() <= MAX_INPUT + MAX_INPUT / 4);
    }

    #[test]
    fn an_image_waits_for_who_takes_its_output() {
        let console = Arc::new(Console::new(None));
        let theirs = Arc::clone(&console);
        let writer = std::thread::spawn(move || {
            for _ in 0..40 {
                theirs.write(&vec![b'y'; MAX_OUTPUT / 8]);
            }
            theirs.end(VmError::new(VmCode::Stopped, "over"));
        });
        let mut total = 0;
        let end = loop {
            match console.output(None) {
                Ok(output) => {
                    assert!(output.len() <= MAX_OUTPUT + MAX_OUTPUT / 8);
                    total += output.len();
                }
                Err(error) => break error,
            }
        };
        assert_eq!((total, end.code), (5 * MAX_OUTPUT, VmCode::Stopped));
        writer.join().unwrap();
    }

    #[test]
    fn last_words_are_bounded() {
        let console = Console::new(None);
        console.write_error(b"before");
        let since = console.errors_written();
        console.write_error(b"after");
        assert_eq!(console.errors_since(since), b"after");
        console.write_error(&vec![b'z'; 3 * MAX_ERRORS]);
        assert_eq!(console.errors_since(since).len(), MAX_ERRORS);
    }
}
