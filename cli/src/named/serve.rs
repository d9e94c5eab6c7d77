//! Connection handler: serves one request of a client.
//!
//! A client that disconnects ends its command. The thread that answers always reads, so it notices
//! the disconnect while other threads wait for the command.

use super::daemon::Daemon;
use super::error::REFUSED;
use super::input::{StdinForwarder, Writer, send};
use super::wire::{Ended, Exec, MAX_DATA, Note, Request, answer, note, other_version, request};
use crate::local::{Connection, Refusal, parsed};
use a99_frame::{Envelope, Frame};
use a99_sandbox::{
    Cancel, Command, Copied, ExecOptions, Process, Stream, VmCode, VmError, block_on,
};
use serde_json::{Value as Json, json};
use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Exit code of a script that the client's signal ended, the shells' code for SIGINT.
const INTERRUPTED: u8 = 130;

/// The number of the signal that kills a command with all its processes.
const SIGKILL: u32 = 9;

/// Serves a connection. An error that cannot be written is dropped: the client is gone.
pub(super) fn serve(daemon: &Arc<Daemon>, stream: UnixStream) {
    if let Err(error) = served(daemon, &stream) {
        refuse(stream, error);
    }
}

pub(super) fn refuse(mut stream: UnixStream, error: Refusal) {
    let _ = answer(&mut stream, Err::<&(), _>(error));
    let _ = stream.shutdown(Shutdown::Both);
}

/// Whether the peer is a process of this user.
pub(super) fn is_same_user(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

fn served(daemon: &Arc<Daemon>, stream: &UnixStream) -> Result<(), Refusal> {
    if !is_same_user(stream) {
        return Err(Refusal::new(REFUSED, "this sandbox is another user's"));
    }
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    let mut reader = Connection::new(stream.try_clone()?);
    let frame = reader.frame().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => other_version(),
        _ => error.into(),
    });
    let Some(frame) = frame? else {
        return Ok(());
    };
    stream.set_read_timeout(None)?;
    let sandbox = &daemon.sandbox;
    let request = request(&frame)?;
    let turn = match request {
        Request::Status | Request::Stop => None,
        _ => match daemon.queue.turn(stream) {
            Some(turn) => Some(turn),
            None => return Ok(()),
        },
    };
    let done = match request {
        Request::Status => daemon.status(),
        Request::Stop => {
            let stream = stream.try_clone()?;
            daemon.request_stop(Some(stream));
            return Ok(());
        }
        Request::Exec(exec) if exec.detach => detached(command(daemon, &exec), &exec)?,
        Request::Exec(exec) if exec.session => {
            let _running = daemon.count_command();
            return in_session(daemon, &exec, reader);
        }
        Request::Exec(exec) => {
            let _running = daemon.count_command();
            return follow(command(daemon, &exec), &exec, reader);
        }
        Request::Freeze => {
            let frozen = until_disconnect(reader, sandbox.freeze())?;
            // The client may be gone.
            let _ = super::freeze::send(stream, &frozen, daemon.spec.ram());
            let _ = stream.shutdown(Shutdown::Both);
            return Ok(());
        }
        Request::CopyIn { host, guest } => {
            copied(until_disconnect(reader, sandbox.copy_in(host, guest))?)
        }
        Request::CopyOut {
            guest,
            host,
            git: false,
        } => copied(until_disconnect(reader, sandbox.copy_out(guest, host))?),
        Request::CopyOut {
            guest,
            host,
            git: true,
        } => copied(until_disconnect(
            reader,
            sandbox.copy_out_with_git(guest, host),
        )?),
    };
    drop(turn);
    let mut stream = stream;
    let _ = answer(&mut stream, Ok(&done));
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

fn copied(copied: Copied) -> Json {
    json!({
        "files": copied.files,
        "folders": copied.folders,
        "links": copied.links,
        "bytes": copied.bytes,
        "leftOut": copied.left_out,
    })
}

/// Runs a command in the session shell, and sends its output when it has ended. A signal ends it,
/// as a disconnect does.
fn in_session(daemon: &Daemon, exec: &Exec, reader: Connection) -> Result<(), Refusal> {
    let mut stream = reader.stream.try_clone()?;
    let options = ExecOptions {
        timeout: exec.timeout_ms.map(Duration::from_millis),
        output_limit: exec.output_limit.or(daemon.spec.limits.output_limit),
        ..ExecOptions::default()
    };
    let script = script(&exec.argv);
    let done = until_disconnect(reader, daemon.sandbox.exec_with(script, options));
    let (output, end) = match done {
        Ok(output) => {
            let code = output.exited.exit_code();
            ((output.stdout, output.stderr), Ok(code))
        }
        Err(mut error) => {
            if error.code == VmCode::Cancelled.name() {
                error.message = "the script was interrupted".to_owned();
                error.exit = Some(INTERRUPTED);
            }
            (*error.output.take().unwrap_or_default(), Err(error))
        }
    };
    // Write errors are ignored: the client is gone.
    let _ = (|| {
        for (of, bytes) in [(Stream::Stdout, output.0), (Stream::Stderr, output.1)] {
            for bytes in bytes.chunks(MAX_DATA) {
                note(&mut stream, Note::output(of), bytes)?;
            }
        }
        let ended = end.map(|code| Ended {
            code,
            out_of_memory: false,
        });
        answer(&mut stream, ended.as_ref().map_err(Clone::clone))
    })();
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

/// One argument is the script; several become words quoted for a shell (POSIX, Shell Command
/// Language, section 2.2.2).
fn script(argv: &[String]) -> String {
    match argv {
        [script] => script.clone(),
        words => {
            let quoted = words.iter().map(|word| {
                let inner = word.replace('\'', "'\\''");
                format!("'{inner}'")
            });
            quoted.collect::<Vec<_>>().join(" ")
        }
    }
}

fn command(daemon: &Daemon, exec: &Exec) -> Command {
    let (sandbox, usual) = (&daemon.sandbox, daemon.spec.limits);
    let mut command = match exec.shell {
        Some((rows, columns)) => sandbox.shell(rows, columns),
        None => sandbox.command(&exec.argv),
    };
    if exec.root {
        command = command.root();
    }
    for (name, value) in &exec.env {
        command = command.env(name, value);
    }
    if exec.stdin {
        command = command.piped();
    }
    if let Some(cwd) = &exec.cwd {
        command = command.cwd(cwd);
    }
    if let Some(milliseconds) = exec.timeout_ms {
        command = command.timeout(Duration::from_millis(milliseconds));
    }
    if let Some(bytes) = exec.output_limit.or(usual.output_limit) {
        command = command.output_limit(bytes);
    }
    if let Some(bytes) = exec.memory {
        command = command.memory_limit(bytes);
    }
    if let Some(count) = exec.processes {
        command = command.process_limit(count);
    }
    command
}

/// Spawns a named thread of this process.
fn thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, Refusal> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")).into())
}

/// Starts a command that no client follows.
fn detached(command: Command, exec: &Exec) -> Result<Json, Refusal> {
    // Its child processes may outlive the command: a service puts itself into the background.
    let process = command.detach().spawn()?;
    let Some(pid) = block_on(process.pid()) else {
        let ended = block_on(process.wait())?;
        let text = format!("{:?} ended before it ran: {:?}", exec.argv, ended.ending);
        return Err(VmError::new(VmCode::CannotStart, text).into());
    };
    // Drain the output: a full pipe would block the command.
    thread("detached", move || {
        while let Ok(Some(_)) = block_on(process.next()) {}
    })?;
    Ok(json!({ "pid": pid }))
}

/// Runs a command whose streams and exit the client follows.
fn follow(command: Command, exec: &Exec, mut reader: Connection) -> Result<(), Refusal> {
    let cancel = Cancel::new();
    let process = Arc::new(command.cancel(&cancel).spawn()?);
    let writer: Writer = Arc::new(Mutex::new(reader.stream.try_clone()?));
    let takes_input = exec.stdin || exec.shell.is_some();
    let forwarder = match takes_input {
        true => Some(
            StdinForwarder::start(Arc::clone(&process), Arc::clone(&writer))
                .map_err(|error| VmError::new(VmCode::Resources, error.to_string()))?,
        ),
        false => None,
    };
    let theirs = Arc::clone(&process);
    let forwarding = thread("output", move || forward_output(&theirs, &writer))?;
    while let Ok(Some(frame)) = reader.frame() {
        if !handle_frame(&frame, &process, forwarder.as_ref()) {
            break;
        }
    }
    // Either the command ended and the client has its exit, or the client disconnected or broke the
    // protocol. In every case the command ends now, even with unread output.
    cancel.cancel();
    let _ = reader.stream.shutdown(Shutdown::Both);
    // A forwarder that panicked has sent no exit; the client sees the connection close.
    let _ = forwarding.join();
    Ok(())
}

/// Handles a client's frame; `false` for an unexpected one.
fn handle_frame(frame: &Frame, process: &Process, forwarder: Option<&StdinForwarder>) -> bool {
    let Envelope::Notice(method) = &frame.envelope else {
        return false;
    };
    // The guest's end is reported as the command's end.
    match (parsed(method, &frame.body), forwarder) {
        (Ok(Note::Stdin), Some(forwarder)) => return forwarder.bytes(frame.body.bytes()),
        (Ok(Note::StdinEnd), Some(forwarder)) => forwarder.end(),
        (Ok(Note::Resize(rows, columns)), _) => {
            let _ = process.resize(rows, columns);
        }
        (Ok(Note::Signal(SIGKILL)), _) => {
            let _ = process.kill();
        }
        (Ok(Note::Signal(number)), _) => {
            let _ = process.signal(number);
        }
        _ => return false,
    }
    true
}

/// Forwards a command's output and exit.
fn forward_output(process: &Process, writer: &Writer) {
    let end = loop {
        let chunk = match block_on(process.next()) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break block_on(process.wait()),
            Err(error) => break Err(error),
        };
        for bytes in chunk.bytes.chunks(MAX_DATA) {
            if send(writer, Note::output(chunk.stream), bytes).is_err() {
                // The reader sees the disconnect too, and ends the command.
                return;
            }
        }
    };
    let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = end.map(|exited| Ended {
        code: exited.exit_code(),
        out_of_memory: exited.out_of_memory,
    });
    let _ = answer(
        &mut *stream,
        ended.as_ref().map_err(|error| error.clone().into()),
    );
    // Wakes the reader: the answer is complete.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Waits for a future, unless the client disconnects first: then the future is dropped, which ends
/// its work.
fn until_disconnect<T>(
    mut reader: Connection,
    work: impl Future<Output = Result<T, VmError>>,
) -> Result<T, Refusal> {
    let (gone, is_gone) = oneshot::channel();
    let ours = reader.stream.try_clone()?;
    let listening = thread("client", move || {
        // No frame may follow; only the disconnect.
        let _ = reader.frame();
        let _ = gone.send(());
    })?;
    let executor = tokio::runtime::Builder::new_current_thread().build()?;
    let done = executor.block_on(async {
        tokio::select! {
            done = work => done,
            _ = is_gone => Err(VmError::new(VmCode::Cancelled, "the client went away")),
        }
    });
    // Only the read side: the answer must still be written.
    let _ = ours.shutdown(Shutdown::Read);
    let _ = listening.join();
    Ok(done?)
}
