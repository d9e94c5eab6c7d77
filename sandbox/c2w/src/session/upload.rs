//! Uploads: files that are typed into the image, for scripts that exceed a terminal line
//! and for the standard input of commands.

use super::super::marker::escapes;
use super::super::options::MAX_INPUT;
use super::{NOTHING, Session, Terminal};
use a99_sandbox_runner::{VmCode, VmError};

/// Typed lines between answers of the shell: together they fit into a terminal's buffer of
/// 4,095 bytes.
const LINES_AT_ONCE: usize = 3;

impl<T: Terminal> Session<T> {
    /// Uploads a script; returns the command that prints it.
    pub(super) fn load(&mut self, mut lines: Vec<String>) -> Result<String, VmError> {
        if lines.len() == 1 {
            return Ok(format!("command printf '{}'", lines.remove(0)));
        }
        let file = self.type_file("the script", "run", &lines)?;
        Ok(format!("cat {file}; rm -f {file}"))
    }

    /// Uploads a command's standard input; returns the file to read it from.
    pub(super) fn load_input(&mut self, bytes: Option<&[u8]>) -> Result<String, VmError> {
        let bytes = bytes.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(NOTHING.to_owned());
        }
        if bytes.len() > MAX_INPUT {
            let text = format!(
                "{} bytes of standard input, and an image of container2wasm takes {MAX_INPUT}: \
                 share a folder",
                bytes.len()
            );
            return Err(VmError::new(VmCode::Unsupported, text));
        }
        self.type_file("the standard input", "in", &escapes(bytes))
    }

    /// Types a file into the image; returns its path there.
    fn type_file(&mut self, what: &str, name: &str, lines: &[String]) -> Result<String, VmError> {
        let Some(files) = &self.files else {
            let text = format!(
                "{what} is too long for one line of a terminal, and the image has no folder for \
                 a file: none of /dev/shm, /run, /tmp and /var/tmp can be written"
            );
            return Err(VmError::new(VmCode::Unsupported, text));
        };
        let file = format!("{files}.{name}");
        let mut operator = ">|";
        for group in lines.chunks(LINES_AT_ONCE) {
            let mut typed = String::new();
            for line in group {
                typed += &format!("command printf '{line}' {operator}{file} &&\n");
                operator = ">>";
            }
            if self.run_line(&format!("{typed}true"))? != 0 {
                let text = format!("{what} cannot be written to {file} in the image");
                return Err(VmError::new(VmCode::CannotStart, text));
            }
        }
        Ok(file)
    }
}
