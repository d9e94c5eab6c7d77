//! Commands and files of the computer that the `shell` capability grants.

use super::{Builder, Operand};

/// What [`Builder::shell_exec`] may be told.
#[derive(Clone, Debug, Default)]
pub struct ShellOptions {
    /// The working directory.
    pub cwd: Operand,
    /// An object of variables for the command's environment.
    pub env: Operand,
    /// The text of standard input.
    pub stdin: Operand,
    /// Milliseconds it may run; 30,000.
    pub timeout_ms: Operand,
    /// How the outputs are given: `utf8` (the default) or `base64`.
    pub encoding: Operand,
}

/// What [`Builder::shell_write_file`] may be told.
#[derive(Clone, Debug, Default)]
pub struct WriteFileOptions {
    /// How the content is given: `utf8` (the default) or `base64`.
    pub encoding: Operand,
    /// The file's mode in octal digits; `644`.
    pub mode: Operand,
}

/// What [`Builder::shell_read_file`] may be told.
#[derive(Clone, Debug, Default)]
pub struct ReadFileOptions {
    /// How the content is given: `utf8` (the default) or `base64`.
    pub encoding: Operand,
    /// The largest file, in bytes; 1,048,576.
    pub max_bytes: Operand,
}

/// A computer to work on.
impl Builder {
    /// `shellExec`: runs a command. A text is a script for the session's shell,
    /// a list is a program with its arguments. Gives `{stdout, stderr,
    /// exitCode}`.
    ///
    /// ```
    /// # use a99_builder::{Builder, ShellOptions};
    /// let program = Builder::new()
    ///     .shell_exec(
    ///         ["python3", "/srv/report.py"],
    ///         ShellOptions {
    ///             timeout_ms: 5_000.into(),
    ///             ..ShellOptions::default()
    ///         },
    ///     )
    ///     .as_("done");
    /// # assert_eq!(program.steps()[0].get("op"), Some(&"shellExec".into()));
    /// ```
    pub fn shell_exec(self, command: impl Into<Operand>, options: ShellOptions) -> Self {
        let params = vec![
            ("command", command.into()),
            ("cwd", options.cwd),
            ("env", options.env),
            ("stdin", options.stdin),
            ("timeoutMs", options.timeout_ms),
            ("encoding", options.encoding),
        ];
        self.atom("shellExec", params)
    }

    /// `shellWriteFile`: writes a file whole. Gives the number of its bytes.
    pub fn shell_write_file(
        self,
        path: impl Into<Operand>,
        content: impl Into<Operand>,
        options: WriteFileOptions,
    ) -> Self {
        let params = vec![
            ("path", path.into()),
            ("content", content.into()),
            ("encoding", options.encoding),
            ("mode", options.mode),
        ];
        self.atom("shellWriteFile", params)
    }

    /// `shellReadFile`: reads a file whole.
    pub fn shell_read_file(self, path: impl Into<Operand>, options: ReadFileOptions) -> Self {
        let params = vec![
            ("path", path.into()),
            ("encoding", options.encoding),
            ("maxBytes", options.max_bytes),
        ];
        self.atom("shellReadFile", params)
    }
}
