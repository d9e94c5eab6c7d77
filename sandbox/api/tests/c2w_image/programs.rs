//! Built-in programs of the small shell.

use crate::shell::{Flow, Io, Shell};
use std::time::Duration;

impl Shell {
    /// Runs a command by its words.
    pub fn run(&mut self, words: &[String], io: &Io) -> Flow {
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let (status, flow) = match (words[0].as_str(), &arguments[..]) {
            ("command", [_, ..]) => return self.run(&words[1..], io),
            ("true" | ":" | "set", _) => (0, Flow::Next),
            ("false", _) => (1, Flow::Next),
            ("eval", texts) => return self.evaluate(&texts.join(" "), io),
            (".", [path]) => match self.content(path) {
                Some(bytes) => return self.evaluate(&String::from_utf8_lossy(&bytes), io),
                None => (2, Flow::Prompt),
            },
            ("echo", texts) => {
                self.write(&io.out, format!("{}\n", texts.join(" ")).as_bytes());
                (0, Flow::Next)
            }
            ("printf", [format, values @ ..]) => {
                self.write(&io.out, &formatted(format, values));
                (0, Flow::Next)
            }
            ("[", test) => (i32::from(!self.test(test)), Flow::Next),
            ("export", names) => (self.export(names, io), Flow::Next),
            ("unset", names) => {
                names
                    .iter()
                    .for_each(|name| drop(self.variables.remove(*name)));
                (0, Flow::Next)
            }
            ("cd", [path]) => {
                self.cwd = self.path(path);
                (0, Flow::Next)
            }
            ("pwd", _) => {
                self.write(&io.out, format!("{}\n", self.cwd).as_bytes());
                (0, Flow::Next)
            }
            ("trap", [action, "EXIT"]) => {
                self.exit_trap = Some((*action).to_owned());
                (0, Flow::Next)
            }
            ("trap", _) => (0, Flow::Next),
            ("exit", []) => (self.status, Flow::Exit),
            ("exit", [code, ..]) => (code.parse().unwrap_or(2), Flow::Exit),
            ("kill", ["-9", "100"]) => (137, Flow::Killed),
            ("sh", ["-i"]) => (self.child().interact(), Flow::Next),
            _ => self.program(words[0].as_str(), &arguments, io),
        };
        self.status = status;
        flow
    }

    /// Runs a command that would be an external program.
    fn program(&mut self, name: &str, arguments: &[&str], io: &Io) -> (i32, Flow) {
        let status = match (name, arguments) {
            ("stty", settings) => self.stty(settings),
            ("sleep", [seconds]) => {
                let span = Duration::from_secs_f64(seconds.parse().unwrap_or(0.0));
                match self.wait(span) {
                    true => return (130, Flow::Prompt),
                    false => 0,
                }
            }
            ("cat", []) | ("cat", ["/dev/tty"]) if io.tty_input || !arguments.is_empty() => {
                while let Some(line) = self.program_line() {
                    self.write(&io.out, &[&line[..], b"\n"].concat());
                }
                return (130, Flow::Prompt);
            }
            ("cat", paths) => self.cat(paths, io),
            ("rm", [.., path]) => {
                let path = self.path(path);
                let kept = self.files.borrow_mut().remove(&path).is_some();
                i32::from(!kept && std::fs::remove_file(&path).is_err())
            }
            ("ls", [path]) => self.ls(path, io),
            ("yes", [word]) => loop {
                self.write(&io.out, format!("{word}\n").repeat(100).as_bytes());
                let mut machine = self.machine.borrow_mut();
                machine.turn(false);
                if machine.tty.interrupted {
                    return (130, Flow::Prompt);
                }
            },
            ("flood", [count]) => {
                let line = [b'x'; 1024];
                (0..count.parse().unwrap_or(0)).for_each(|_| self.write(&io.out, &line));
                0
            }
            ("info", []) => {
                self.write(&io.out, self.info.as_bytes());
                0
            }
            ("date", []) => {
                self.write(&io.out, format!("{}\n", self.seconds()).as_bytes());
                0
            }
            ("lease", []) => match self.lease() {
                Some((mac, ip)) => {
                    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
                    let ip = ip.map(|byte| byte.to_string()).join(".");
                    self.write(&io.out, format!("{mac} {ip}\n").as_bytes());
                    0
                }
                None => 1,
            },
            ("bounce", [count]) => self.bounce(count.parse().unwrap_or(0)),
            ("complain", texts) => {
                eprintln!("{}", texts.join(" "));
                0
            }
            ("grab", [megabytes]) => {
                let mut all = Vec::new();
                for _ in 0..megabytes.parse().unwrap_or(0) {
                    let mut more: Vec<u8> = Vec::new();
                    if more.try_reserve_exact(1 << 20).is_err() {
                        return (12, Flow::Next);
                    }
                    more.resize(1 << 20, 1);
                    all.push(more);
                }
                0
            }
            // The whole machine stops: no poll, no output.
            ("spin", []) => loop {
                std::hint::spin_loop();
            },
            ("crash", []) => std::process::abort(),
            ("poweroff", []) => std::process::exit(0),
            _ => {
                self.write(&io.errors, format!("sh: {name}: not found\n").as_bytes());
                127
            }
        };
        (status, Flow::Next)
    }

    /// The content of a file.
    fn content(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.path(path);
        let kept = self.files.borrow().get(&path).cloned();
        kept.or_else(|| std::fs::read(path).ok())
    }

    fn cat(&mut self, paths: &[&str], io: &Io) -> i32 {
        let mut status = 0;
        for path in paths {
            match self.content(path) {
                Some(bytes) => self.write(&io.out, &bytes),
                None => {
                    self.write(
                        &io.errors,
                        format!("cat: {path}: No such file\n").as_bytes(),
                    );
                    status = 1;
                }
            }
        }
        status
    }

    fn ls(&mut self, path: &str, io: &Io) -> i32 {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else {
            self.write(&io.errors, format!("ls: {path}: No such file\n").as_bytes());
            return 1;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
            .iter()
            .for_each(|name| self.write(&io.out, format!("{name}\n").as_bytes()));
        0
    }

    fn stty(&mut self, settings: &[&str]) -> i32 {
        let mut machine = self.machine.borrow_mut();
        for setting in settings {
            let (name, on) = match setting.strip_prefix('-') {
                Some(name) => (name, false),
                None => (*setting, true),
            };
            match name {
                "echo" => machine.tty.echo = on,
                "onlcr" => machine.tty.onlcr = on,
                "opost" => machine.tty.opost = on,
                _ => {}
            }
        }
        0
    }

    fn test(&self, test: &[&str]) -> bool {
        match test {
            ["-d" | "-w", path, "]"] => *path == "/tmp" || std::fs::metadata(path).is_ok(),
            ["-f", path, "]"] => self.content(path).is_some(),
            [left, "=", right, "]"] => left == right,
            _ => false,
        }
    }

    fn export(&mut self, names: &[&str], io: &Io) -> i32 {
        if names == ["-p"] {
            let exported = self.variables.iter().filter(|(_, (_, exported))| *exported);
            let lines = exported.map(|(name, (value, _))| {
                format!("export {name}='{}'\n", value.replace('\'', "'\\''"))
            });
            let all: String = lines.collect();
            self.write(&io.out, all.as_bytes());
            return 0;
        }
        for name in names {
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let value = self.variables.get(*name);
                    (
                        *name,
                        value.map_or_else(String::new, |(value, _)| value.clone()),
                    )
                }
            };
            self.variables.insert(name.to_owned(), (value, true));
        }
        0
    }

    /// Sends frames to the host, which sends each back, and compares.
    fn bounce(&mut self, count: usize) -> i32 {
        let frame = |index: usize, mac: [u8; 6]| {
            let mut frame = vec![0xff; 6];
            frame.extend(mac);
            frame.extend([0x88, 0xb5]);
            frame.extend((0..40 + index % 1400).map(|at| (at * 7 + index) as u8));
            frame
        };
        for index in 0..count {
            let mut machine = self.machine.borrow_mut();
            let Some(net) = &mut machine.net else {
                return 1;
            };
            let sent = frame(index, net.mac);
            net.received.clear();
            net.send(&sent);
            let mut turns = 0;
            while machine
                .net
                .as_ref()
                .is_some_and(|net| net.received.is_empty())
            {
                machine.turn(true);
                turns += 1;
                if turns > 1000 || machine.tty.interrupted {
                    return 2;
                }
            }
            if machine
                .net
                .as_ref()
                .is_none_or(|net| net.received[0] != sent)
            {
                return 3;
            }
        }
        0
    }
}

/// Formats like `printf`: escapes, `%s`, `%d` and `%%`.
fn formatted(format: &str, values: &[&str]) -> Vec<u8> {
    let mut values = values.iter();
    let mut result = Vec::new();
    let mut bytes = format.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => match bytes.next() {
                Some(b's' | b'd') => result.extend(values.next().unwrap_or(&"").bytes()),
                Some(other) => result.push(other),
                None => result.push(b'%'),
            },
            b'\\' => match bytes.next() {
                Some(b'n') => result.push(b'\n'),
                Some(b'r') => result.push(b'\r'),
                Some(b't') => result.push(b'\t'),
                Some(digit @ b'0'..=b'7') => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        match bytes.peek() {
                            Some(next @ b'0'..=b'7') => value = value * 8 + u32::from(next - b'0'),
                            _ => break,
                        }
                        bytes.next();
                    }
                    result.push(value as u8);
                }
                Some(other) => result.push(other),
                None => result.push(b'\\'),
            },
            byte => result.push(byte),
        }
    }
    result
}
