//! The container's terminal: lines, echo, signals of its keys, line ends.

use std::collections::VecDeque;
use std::io::Write;

/// Longest line; what is beyond is lost.
const MAX_LINE: usize = 4095;

/// Whole lines that wait before no more input is asked for.
const MAX_WAITING: usize = 16 << 10;

/// The terminal. Its settings are those that `stty` changes.
pub struct Tty {
    pub echo: bool,
    /// A line's end goes out as two bytes.
    pub onlcr: bool,
    pub opost: bool,
    /// The emulator's escape byte came.
    escaped: bool,
    line: Vec<u8>,
    lines: VecDeque<u8>,
    /// Ctrl-C or Ctrl-\ came.
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
    /// Whether more input may come.
    pub fn has_room(&self) -> bool {
        self.lines.len() < MAX_WAITING
    }

    /// A byte from the host: the emulator's escape first.
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
            // The end of the input is not for this shell.
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

    /// A whole line, without its end.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.lines.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<_> = self.lines.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// What programs print.
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
