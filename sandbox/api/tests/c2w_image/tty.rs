//! The container's terminal: lines, echo, signal keys, line ends.

use std::collections::VecDeque;
use std::io::Write;

/// Maximum bytes of a line; the rest is lost.
const MAX_LINE: usize = 4095;

/// Pending bytes above which no more input is read.
const MAX_WAITING: usize = 16 << 10;

/// The terminal, with the settings that `stty` changes.
pub struct Tty {
    pub echo: bool,
    /// Whether a line end is output as two bytes.
    pub onlcr: bool,
    pub opost: bool,
    /// Whether the emulator's escape byte was received.
    escaped: bool,
    line: Vec<u8>,
    lines: VecDeque<u8>,
    /// Whether Ctrl-C or Ctrl-\ was received.
    pub interrupted: bool,
}

impl Default for Tty {
    fn default() -> Self {
        Self {
            echo: true,
            onlcr: true,
            opost: true,
            escaped: false,
            line: Vec::new(),
            lines: VecDeque::new(),
            interrupted: false,
        }
    }
}

impl Tty {
    /// Whether there is room for input.
    pub fn has_room(&self) -> bool {
        self.lines.len() < MAX_WAITING
    }

    /// Handles a byte from the host, after the emulator's escape.
    pub fn input(&mut self, byte: u8) {
        match (std::mem::take(&mut self.escaped), byte) {
            (false, 1) => self.escaped = true,
            (true, b'x') => std::process::exit(0),
            (true, 1) | (false, _) => self.key(byte),
            (true, _) => {}
        }
    }

    fn key(&mut self, byte: u8) {
        match byte {
            0x03 | 0x1c => {
                self.line.clear();
                self.lines.clear();
                self.interrupted = true;
            }
            0x1a | 0x11 | 0x13 => {}
            0x7f => drop(self.line.pop()),
            0x15 => self.line.clear(),
            // End of input is not passed to this shell.
            0x04 => {}
            b'\r' | b'\n' => {
                self.print_echo(b"\n");
                self.lines.extend(self.line.drain(..));
                self.lines.push_back(b'\n');
            }
            byte if self.line.len() < MAX_LINE => {
                self.line.push(byte);
                self.print_echo(&[byte]);
            }
            _ => {}
        }
    }

    fn print_echo(&mut self, bytes: &[u8]) {
        if self.echo {
            self.write(bytes);
        }
    }

    /// Takes a complete line, without its end.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.lines.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<_> = self.lines.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Writes program output.
    pub fn write(&mut self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        let translated;
        let bytes = match self.opost && self.onlcr {
            true => {
                let pairs = bytes.iter().flat_map(|&byte| match byte {
                    b'\n' => vec![b'\r', b'\n'],
                    byte => vec![byte],
                });
                translated = pairs.collect::<Vec<_>>();
                &translated
            }
            false => bytes,
        };
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(1);
        }
    }
}
