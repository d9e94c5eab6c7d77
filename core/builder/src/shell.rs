//! Commands and files of the computer that the `shell` capability grants.

use crate::chain::{chain, options};

options! {
    /// Optional inputs of [`Builder::shell_exec`](crate::Builder::shell_exec).
    ShellOptions {
        /// The working directory.
        cwd,
        /// An object of variables for the command's environment.
        env,
        /// The text of standard input.
        stdin,
        /// Time limit in milliseconds; 30,000.
        timeout_ms "timeoutMs",
        /// Encoding of the outputs: `utf8` (the default) or `base64`.
        encoding,
    }
}

options! {
    /// Optional inputs of [`Builder::shell_write_file`](crate::Builder::shell_write_file).
    WriteFileOptions {
        /// Encoding of the content: `utf8` (the default) or `base64`.
        encoding,
        /// The file's mode in octal digits; `644`.
        mode,
    }
}

options! {
    /// Optional inputs of [`Builder::shell_read_file`](crate::Builder::shell_read_file).
    ReadFileOptions {
        /// Encoding of the content: `utf8` (the default) or `base64`.
        encoding,
        /// The largest file, in bytes; 1,048,576.
        max_bytes "maxBytes",
    }
}

chain! {
    /// A computer to work on.
    impl Builder;

    /// `shellExec`: runs a command. A text is a script for the session's shell, a list is a
    /// program with its arguments. Gives `{stdout, stderr, exitCode}`.
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
    shell_exec = "shellExec" (command) + ShellOptions;

    /// `shellWriteFile`: writes a whole file; gives the number of its bytes.
    shell_write_file = "shellWriteFile" (path, content) + WriteFileOptions;

    /// `shellReadFile`: reads a whole file.
    shell_read_file = "shellReadFile" (path) + ReadFileOptions;
}
