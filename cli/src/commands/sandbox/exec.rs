//! `a99 sandbox exec`: runs one command in a new sandbox.

use super::start::{builder, container, ended, start};
use crate::failure::Exit;
use crate::named::wire::Ended;
use crate::output;
use crate::sandbox_args::ExecArgs;
use a99_sandbox::{Command, Exited, Output, Process, Sandbox, Stream, VmCode, VmError, block_on};
use agent99::Value;
use std::io::{self, IsTerminal, Read, Write, stderr, stdin, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes of output that `--json` collects.
pub(super) const COLLECTED_BYTES: u64 = 64 << 20;

/// Exit code after the reader of the output is gone: that of a command ended by SIGPIPE.
pub(super) const CLOSED_PIPE: u8 = 141;

/// Bytes per read of standard input.
const READ_BYTES: usize = 32 << 10;

pub(super) fn run(args: &ExecArgs) -> Exit {
    ended(exec(args), args.json)
}

/// Starts a foreign image; its start counts toward the command's timeout.
fn foreign(args: &ExecArgs) -> Result<Sandbox, VmError> {
    let mut builder = builder(&args.settings)?;
    if let Some(time) = args.timeout {
        builder = builder.start_limit(time);
    }
    builder.start_blocking()
}

fn exec(args: &ExecArgs) -> Result<Exit, VmError> {
    let begin = Instant::now();
    let argv = argv(args)?;
    let sandbox = match args.settings.foreign() {
        Some(_) => foreign(args)?,
        None => start(&args.settings)?,
    };
    // A terminal's input belongs to the user, so only piped input is forwarded.
    let piped = !stdin().is_terminal();
    let spent = match args.settings.foreign() {
        Some(_) => begin.elapsed(),
        None => Duration::ZERO,
    };
    let process = Arc::new(command(&sandbox, args, &argv, piped, spent).spawn()?);
    if piped {
        pass_input(&process)?;
    }
    let result = if args.json {
        collected(&process)
    } else {
        streamed(&process)
    };
    // Flushes mounts.
    block_on(sandbox.stop());
    if !args.json {
        warn_refused_git_write(sandbox.refused_git_write());
    }
    result
}

/// Explains an `EPERM` that the guest saw.
pub(super) fn warn_refused_git_write(path: Option<&Path>) {
    if let Some(path) = path {
        let text = format!(
            "the sandbox was refused to write {}, which could make this computer's git run \
             programs; if you trust what runs there, mount its folder with `:rw,git`",
            path.display()
        );
        output::note("note", &text);
    }
}

/// The command: that of the container image if none is given.
fn argv(args: &ExecArgs) -> Result<Vec<String>, VmError> {
    let mut argv = args.argv.clone();
    if argv.is_empty()
        && let Some(name) = args.settings.container()
    {
        let config = container(name)?.image.config;
        argv = config.entrypoint;
        argv.extend(config.cmd);
    }
    if argv.is_empty() {
        let text = "the image has no command: give one after `--`";
        return Err(VmError::new(VmCode::BadOption, text));
    }
    Ok(argv)
}

fn command(
    sandbox: &Sandbox,
    args: &ExecArgs,
    argv: &[String],
    piped: bool,
    spent: Duration,
) -> Command {
    let mut command = sandbox.command(argv);
    if piped {
        command = command.piped();
    }
    if args.root {
        command = command.root();
    }
    if let Some(cwd) = &args.cwd {
        command = command.cwd(cwd);
    }
    if let Some(time) = args.timeout {
        command = command.timeout(time.saturating_sub(spent));
    }
    let collected = args.json.then_some(COLLECTED_BYTES);
    if let Some(bytes) = args.settings.limits.output_limit.or(collected) {
        command = command.output_limit(bytes);
    }
    command
}

/// Forwards standard input on a thread. The thread may block in a read after the command has ended,
/// and does not keep this process running.
pub(super) fn pass_input(process: &Arc<Process>) -> Result<(), VmError> {
    let process = Arc::clone(process);
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    let spawned = thread.spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        let mut input = stdin().lock();
        loop {
            match input.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A read error counts as the end of input, as for other programs.
                Ok(0) | Err(_) => break,
                Ok(count) => match block_on(process.write(&buffer[..count])) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return,
                },
            }
        }
        // The command may have ended meanwhile.
        let _ = process.close_input();
    });
    spawned
        .map(drop)
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))
}

/// Forwards output as it arrives.
pub(super) fn streamed(process: &Process) -> Result<Exit, VmError> {
    while let Some(chunk) = block_on(process.next())? {
        let written = match chunk.stream {
            Stream::Stderr => write(&mut stderr().lock(), &chunk.bytes),
            _ => write(&mut stdout().lock(), &chunk.bytes),
        };
        if let Err(error) = written {
            process.kill()?;
            if is_closed_pipe(&error) {
                return Ok(Exit::Guest(CLOSED_PIPE));
            }
            return Err(VmError::new(VmCode::Io, format!("output: {error}")));
        }
    }
    let exited = block_on(process.wait())?;
    warn_out_of_memory(exited.out_of_memory);
    Ok(Exit::Guest(exited.exit_code()))
}

/// Whether the reader closed the pipe, which is no error.
pub(super) fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

pub(super) fn write(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

/// Runs the command to its end, then shows its output.
fn collected(process: &Process) -> Result<Exit, VmError> {
    let mut output = Output::default();
    match gather(process, &mut output) {
        Ok(exited) => output.exited = exited,
        Err(error) => {
            // Report the output up to the failure, too.
            let output = Some(Box::new(output));
            return Err(VmError { output, ..error });
        }
    }
    Ok(show(
        Ended {
            code: output.exited.exit_code(),
            out_of_memory: output.exited.out_of_memory,
        },
        &output.stdout,
        &output.stderr,
    ))
}

/// Explains an exit code that an out-of-memory kill caused.
pub(super) fn warn_out_of_memory(out_of_memory: bool) {
    if out_of_memory {
        let text = "the command, or one of its processes, was killed at its memory limit";
        output::note("note", text);
    }
}

/// Shows the collected output.
pub(super) fn show(ended: Ended, stdout: &[u8], stderr: &[u8]) -> Exit {
    let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
    let mut members = vec![
        ("exitCode", Value::from(f64::from(ended.code))),
        ("stdout", text(stdout)),
        ("stderr", text(stderr)),
    ];
    if ended.out_of_memory {
        members.push(("outOfMemory", Value::from(true)));
    }
    output::json(&Value::Object(members.into_iter().collect()));
    Exit::Guest(ended.code)
}

fn gather(process: &Process, output: &mut Output) -> Result<Exited, VmError> {
    while let Some(chunk) = block_on(process.next())? {
        match chunk.stream {
            Stream::Stderr => output.stderr.extend(chunk.bytes),
            _ => output.stdout.extend(chunk.bytes),
        }
    }
    block_on(process.wait())
}
