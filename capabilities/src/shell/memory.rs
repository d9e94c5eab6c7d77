//! A computer in memory: files, a few programs, and scripted answers for other commands.

use super::{
    DEFAULT_MODE, MODE_BITS, Shell, ShellCommand, ShellError, ShellErrorKind, ShellOutput,
    ShellReply, ShellRequest, check_path,
};
use crate::error::ready;
use crate::script::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// Exit code of shells for a missing program.
const NO_PROGRAM: u8 = 127;

/// A mock computer with the programs `cat`, `echo`, `env`, `false`, `pwd`, `sleep` and `true`,
/// in scripts of one command also `cd`, `exit` and `export`, and scripted answers. `sleep` does
/// not wait; it only reports the time. All directories exist, and scripted answers take
/// precedence over programs.
#[derive(Debug, Default)]
pub struct MemoryShell {
    answers: Vec<(ShellCommand, ScriptedAnswer)>,
    state: Mutex<ShellState>,
}

/// Scripted effect of a command.
#[derive(Clone, Debug)]
struct ScriptedAnswer {
    result: Result<ShellOutput, ShellError>,
    /// Files to write: path and bytes.
    files: Vec<(String, Vec<u8>)>,
}

#[derive(Debug)]
struct ShellState {
    files: HashMap<String, (Vec<u8>, u32)>,
    cwd: String,
    env: Vec<(String, String)>,
    requests: Vec<ShellRequest>,
}

impl Default for ShellState {
    fn default() -> ShellState {
        ShellState {
            files: HashMap::new(),
            cwd: "/".to_owned(),
            env: Vec::new(),
            requests: Vec::new(),
        }
    }
}

impl MemoryShell {
    /// A computer without files.
    #[must_use]
    pub fn new() -> MemoryShell {
        MemoryShell::default()
    }

    /// Sets the answer of a command, for every call. Limits of time and output apply to it too.
    #[must_use]
    pub fn on(self, command: ShellCommand, output: ShellOutput) -> MemoryShell {
        self.on_writing(command, output, Vec::new())
    }

    /// As [`MemoryShell::on`], for a command that also writes these files.
    #[must_use]
    pub fn on_writing(
        mut self,
        command: ShellCommand,
        output: ShellOutput,
        files: Vec<(String, Vec<u8>)>,
    ) -> MemoryShell {
        let result = Ok(output);
        self.answers
            .push((command, ScriptedAnswer { result, files }));
        self
    }

    /// Sets a failure of a command, for every call.
    #[must_use]
    pub fn fails(mut self, command: ShellCommand, error: ShellError) -> MemoryShell {
        let (result, files) = (Err(error), Vec::new());
        self.answers
            .push((command, ScriptedAnswer { result, files }));
        self
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ShellRequest> {
        lock(&self.state).requests.clone()
    }

    /// The mode of a file.
    #[must_use]
    pub fn mode(&self, path: &str) -> Option<u32> {
        lock(&self.state).files.get(path).map(|(_, mode)| *mode)
    }

    fn run(&self, request: &ShellRequest) -> Result<ShellOutput, ShellError> {
        request.check()?;
        let mut state = lock(&self.state);
        state.requests.push(request.clone());
        let mut known = self.answers.iter().rev();
        let output = match known.find(|(c, _)| *c == request.command) {
            Some((_, answer)) => {
                let output = answer.result.clone()?;
                for (path, bytes) in answer.files.iter().cloned() {
                    state.files.insert(path, (bytes, DEFAULT_MODE));
                }
                output
            }
            None => state.run(request)?,
        };
        if let Some(limit) = request.timeout
            && output.elapsed > limit
        {
            return Err(ShellError::timed_out(limit));
        }
        if output.stdout.len() + output.stderr.len() > request.output_limit {
            return Err(ShellError::output_limit(request.output_limit).after(output.elapsed));
        }
        Ok(output)
    }
}

impl ShellState {
    fn run(&mut self, request: &ShellRequest) -> Result<ShellOutput, ShellError> {
        match &request.command {
            ShellCommand::Argv(argv) => {
                let words: Vec<&str> = argv.iter().map(String::as_str).collect();
                self.program(&words, request).ok_or_else(|| {
                    let text = format!("{}: no such program", argv[0]);
                    ShellError::new(ShellErrorKind::NotFound, text)
                })
            }
            ShellCommand::Script(text) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                if let Some(done) = self.builtin(&words, request) {
                    return Ok(done);
                }
                Ok(self
                    .program(&words, request)
                    .unwrap_or_else(|| ShellOutput {
                        stderr: format!("sh: {text}: not found\n").into_bytes(),
                        exit_code: NO_PROGRAM,
                        ..ShellOutput::default()
                    }))
            }
        }
    }

    /// Shell builtins. Only a plain script changes the session.
    fn builtin(&mut self, words: &[&str], request: &ShellRequest) -> Option<ShellOutput> {
        let stays = request.is_plain();
        let mut output = ShellOutput::default();
        match words {
            [] => {}
            ["cd", dir] if stays => self.cwd = (*dir).to_owned(),
            ["export", pair] if stays => {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                self.env.retain(|(known, _)| known != name);
                self.env.push((name.to_owned(), value.to_owned()));
            }
            ["cd" | "export", _] => {}
            ["exit", code] => {
                output.exit_code = code.parse().unwrap_or(2);
                output.session_reset = stays;
            }
            _ => return None,
        }
        Some(output)
    }

    /// Runs a program; `None` if it does not exist.
    fn program(&self, words: &[&str], request: &ShellRequest) -> Option<ShellOutput> {
        let mut output = ShellOutput::default();
        // A new process does not inherit the session.
        let session = matches!(request.command, ShellCommand::Script(_)) && request.is_plain();
        match words {
            ["true"] => {}
            ["false"] => output.exit_code = 1,
            ["echo", rest @ ..] => output.stdout = (rest.join(" ") + "\n").into_bytes(),
            ["cat"] => output.stdout.clone_from(&request.stdin),
            ["cat", path] => match self.files.get(*path) {
                Some((bytes, _)) => output.stdout.clone_from(bytes),
                None => {
                    output.stderr = format!("cat: {path}: no such file\n").into_bytes();
                    output.exit_code = 1;
                }
            },
            ["pwd"] => {
                let own = if session { self.cwd.as_str() } else { "/" };
                let dir = request.cwd.as_deref().unwrap_or(own);
                output.stdout = format!("{dir}\n").into_bytes();
            }
            ["env"] => {
                let own = if session { self.env.as_slice() } else { &[] };
                for (name, value) in own.iter().chain(&request.env) {
                    output.stdout.extend(format!("{name}={value}\n").bytes());
                }
            }
            ["sleep", seconds] => match seconds.parse().map(Duration::try_from_secs_f64) {
                Ok(Ok(time)) => output.elapsed = time,
                _ => output.exit_code = 1,
            },
            _ => return None,
        }
        Some(output)
    }
}

impl Shell for MemoryShell {
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput> {
        ready(self.run(&request))
    }

    fn write_file(&self, path: String, bytes: Vec<u8>, mode: u32) -> ShellReply<'_, ()> {
        let written = check_path(&path).map(|()| {
            let mode = mode & MODE_BITS;
            lock(&self.state).files.insert(path, (bytes, mode));
        });
        ready(written)
    }

    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>> {
        let read = || {
            check_path(&path)?;
            let state = lock(&self.state);
            let Some((bytes, _)) = state.files.get(&path) else {
                let text = format!("{path}: no such file");
                return Err(ShellError::new(ShellErrorKind::NotFound, text));
            };
            match bytes.len() > limit {
                true => Err(ShellError::file_limit(&path, limit)),
                false => Ok(bytes.clone()),
            }
        };
        ready(read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::suite;
    use crate::testing::block_on;

    fn conforming() -> MemoryShell {
        let apart = ShellOutput {
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
            exit_code: 3,
            ..ShellOutput::default()
        };
        let sh = ["sh", "-c", suite::APART].map(str::to_owned).to_vec();
        MemoryShell::new().on(ShellCommand::Argv(sh), apart)
    }

    #[test]
    fn memory_shell_conforms() {
        block_on(suite::conformance(&conforming())).unwrap();
    }

    #[test]
    fn answers_are_limited_like_programs() {
        let long = ShellOutput {
            stdout: vec![b'x'; 100],
            elapsed: Duration::from_secs(3),
            ..ShellOutput::default()
        };
        let script = || ShellCommand::Script("make".to_owned());
        let shell = MemoryShell::new().on(script(), long);
        let mut request = ShellRequest::new(script());
        request.output_limit = 99;
        let error = block_on(shell.exec(request.clone())).unwrap_err();
        assert_eq!(error.kind, ShellErrorKind::OutputLimit);
        assert_eq!(error.elapsed, Duration::from_secs(3));
        request.timeout = Some(Duration::from_secs(2));
        let error = block_on(shell.exec(request)).unwrap_err();
        assert_eq!(error.kind, ShellErrorKind::TimedOut);
        assert_eq!(error.elapsed, Duration::from_secs(2));
        assert_eq!(shell.requests().len(), 2);
    }

    #[test]
    fn unknown_programs() {
        let shell = MemoryShell::new();
        let output = block_on(shell.exec(ShellRequest::script("gcc x.c"))).unwrap();
        assert_eq!(output.exit_code, NO_PROGRAM);
        let denied = ShellError::new(ShellErrorKind::Denied, "not here");
        let shell = shell.fails(ShellCommand::Script("rm /".to_owned()), denied.clone());
        let error = block_on(shell.exec(ShellRequest::script("rm /")));
        assert_eq!(error, Err(denied));
    }

    #[test]
    fn scripted_commands_write_files() {
        let script = || ShellCommand::Script("make".to_owned());
        let files = vec![("/out".to_owned(), b"made".to_vec())];
        let shell = MemoryShell::new().on_writing(script(), ShellOutput::default(), files);
        let read = || block_on(shell.read_file("/out".to_owned(), 10));
        assert!(read().is_err());
        block_on(shell.exec(ShellRequest::new(script()))).unwrap();
        assert_eq!(read().unwrap(), b"made");
    }

    #[test]
    fn modes_have_nine_bits() {
        let shell = MemoryShell::new();
        block_on(shell.write_file("/x".to_owned(), Vec::new(), 0o7755)).unwrap();
        assert_eq!(shell.mode("/x"), Some(0o755));
    }
}
