//! Output collector: waits for a command and collects its output.

use super::cancel::Cancel;
use a99_sandbox_protocol::{Request, Stream, WINDOW_BYTES};
use a99_sandbox_runner::{CommandHandle, Event, GuestHandle, Output, SpawnOptions, VmError, Watch};
use std::sync::Arc;

/// Output collected by the guest's thread.
#[derive(Debug, Default)]
struct Gathered {
    output: Output,
    end: Option<Result<(), VmError>>,
}

/// Kills a command whose future was dropped.
struct KillOnDrop(Option<CommandHandle>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.cancel();
        }
    }
}

/// Runs a command to its end; dropping the future kills it.
///
/// # Errors
/// Why the command did not end by itself, with its output so far.
pub(super) async fn collect(
    guest: &GuestHandle,
    request: Request,
    stdin: Option<Vec<u8>>,
    spawn_options: SpawnOptions,
    cancel: Option<&Cancel>,
) -> Result<Output, VmError> {
    let gathered = Arc::new(Watch::new(Gathered::default()));
    let theirs = Arc::clone(&gathered);
    let spawn_options = SpawnOptions {
        eager: true,
        ..spawn_options
    };
    let handle = guest.spawn(request, spawn_options, |handle| {
        let mut feeder = stdin.map(|bytes| Feeder {
            handle: handle.clone(),
            bytes,
            given: 0,
            credit: WINDOW_BYTES as usize,
        });
        Box::new(move |event| match event {
            Event::Started(_) => {
                if let Some(feeder) = &mut feeder {
                    feeder.feed(0);
                }
            }
            Event::Credit(bytes) => {
                if let Some(feeder) = &mut feeder {
                    feeder.feed(bytes as usize);
                }
            }
            Event::Output(stream, bytes) => theirs.change(|gathered| {
                let output = &mut gathered.output;
                match stream {
                    Stream::Stderr => output.stderr.extend(bytes),
                    _ => output.stdout.extend(bytes),
                }
            }),
            Event::Exited(exited) => theirs.change(|gathered| {
                gathered.output.exited = exited;
                gathered.end = Some(Ok(()));
            }),
            Event::Failed(error) => theirs.change(|gathered| gathered.end = Some(Err(error))),
        })
    })?;
    let mut guard = KillOnDrop(Some(handle.clone()));
    let _watching = cancel.map(|cancel| cancel.watch(&handle));
    let done = |gathered: &mut Gathered| {
        let end = gathered.end.take()?;
        Some((end, std::mem::take(&mut gathered.output)))
    };
    let (end, output) = gathered.until(done).await;
    guard.0 = None;
    match end {
        Ok(()) => Ok(output),
        Err(error) => {
            let exited = error.output.map(|output| output.exited).unwrap_or_default();
            let output = Output { exited, ..output };
            Err(VmError {
                output: Some(Box::new(output)),
                ..error
            })
        }
    }
}

/// Feeds a command's standard input within its credit.
struct Feeder {
    handle: CommandHandle,
    bytes: Vec<u8>,
    given: usize,
    credit: usize,
}

impl Feeder {
    /// Spends new credit. The end of the guest arrives as an event, so a failed send is
    /// ignored.
    fn feed(&mut self, credit: usize) {
        if self.given > self.bytes.len() {
            return;
        }
        self.credit += credit;
        let end = self.bytes.len().min(self.given + self.credit);
        let now = &self.bytes[self.given..end];
        self.credit -= now.len();
        let _ = self.handle.input(now);
        self.given = end;
        if end == self.bytes.len() {
            let _ = self.handle.send(Request::StdinEnd);
            // Marks the input as finished: `given` now exceeds the length.
            self.bytes = Vec::new();
            self.given = 1;
        }
    }
}
