//! A small interactive shell, as a container's: lines from the terminal,
//! variables, functions, redirections, `eval`, traps at the end, and the few
//! programs that the tests run.

use crate::parse::{Bad, Item, Node, When, parenthesis_end, parse, quoted_end};
use crate::{Shared, net, wasi};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Continuation after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// The shell ends, and runs its trap.
    Exit,
    /// The shell is killed.
    Killed,
    /// Back to the prompt: an interrupt, or an error.
    Prompt,
}

/// Target of output.
#[derive(Clone)]
pub enum Out {
    Tty,
    Nowhere,
    Buffer(Rc<RefCell<Vec<u8>>>),
    /// A file, to append to.
    File(String),
}

/// A command's streams.
#[derive(Clone)]
pub struct Io {
    /// Whether standard input is the terminal; otherwise it is empty.
    pub tty_input: bool,
    pub out: Out,
    pub errors: Out,
}

/// Files of the guest itself, by path.
pub type Files = Rc<RefCell<BTreeMap<String, Vec<u8>>>>;

pub struct Shell {
    pub machine: Shared,
    pub info: String,
    pub files: Files,
    pub variables: BTreeMap<String, (String, bool)>,
    functions: BTreeMap<String, Vec<Item>>,
    pub parameters: Vec<String>,
    pub cwd: String,
    pub status: i32,
    pub exit_trap: Option<String>,
    /// Nesting depth of evaluated commands.
    depth: usize,
}

/// Deepest nesting.
const MAX_DEPTH: usize = 40;

impl Shell {
    pub fn new(machine: Shared, info: String) -> Self {
        let ps1 = ("PS1".to_owned(), ("/ # ".to_owned(), false));
        let mut variables = BTreeMap::from([ps1]);
        for line in info.lines() {
            if let Some((name, value)) = line.strip_prefix("env: ").and_then(|l| l.split_once('='))
            {
                variables.insert(name.to_owned(), (value.to_owned(), true));
            }
        }
        Self {
            machine,
            info,
            files: Files::default(),
            variables,
            functions: BTreeMap::new(),
            parameters: Vec::new(),
            cwd: "/".to_owned(),
            status: 0,
            exit_trap: None,
            depth: 0,
        }
    }

    /// Creates a child shell with the exported variables.
    pub fn child(&self) -> Self {
        let mut child = Self::new(Rc::clone(&self.machine), self.info.clone());
        let exported = self.variables.iter().filter(|(_, (_, exported))| *exported);
        child
            .variables
            .extend(exported.map(|(name, value)| (name.clone(), value.clone())));
        child.files = Rc::clone(&self.files);
        child.cwd = self.cwd.clone();
        child
    }

    pub fn tty_io() -> Io {
        Io {
            tty_input: true,
            out: Out::Tty,
            errors: Out::Tty,
        }
    }

    pub fn write(&self, out: &Out, bytes: &[u8]) {
        match out {
            Out::Tty => self.machine.borrow_mut().tty.write(bytes),
            Out::Nowhere => {}
            Out::Buffer(buffer) => buffer.borrow_mut().extend(bytes),
            Out::File(path) => {
                let mut files = self.files.borrow_mut();
                files.entry(path.clone()).or_default().extend(bytes);
            }
        }
    }

    fn prompt(&self, name: &str) {
        let prompt = self.variables.get(name).map_or("", |(value, _)| value);
        self.write(&Out::Tty, prompt.as_bytes());
    }

    /// Reads a line of the terminal; `None` after an interrupt.
    fn read_line(&self) -> Option<String> {
        loop {
            let mut machine = self.machine.borrow_mut();
            if std::mem::take(&mut machine.tty.interrupted) {
                machine.tty.write(b"\n");
                return None;
            }
            if let Some(line) = machine.tty.take_line() {
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            machine.turn(true);
        }
    }

    /// Reads and runs lines until the shell ends; returns its status.
    pub fn interact(&mut self) -> i32 {
        let mut text = String::new();
        loop {
            self.prompt(if text.is_empty() { "PS1" } else { "PS2" });
            let Some(line) = self.read_line() else {
                text.clear();
                self.status = 130;
                continue;
            };
            text += &line;
            text.push('\n');
            let items = match parse(&text) {
                Err(Bad::Incomplete) => continue,
                Err(Bad::Syntax(why)) => {
                    self.syntax_error(&Self::tty_io(), &why);
                    text.clear();
                    continue;
                }
                Ok(items) => items,
            };
            text.clear();
            match self.list(&items, &Self::tty_io()) {
                Flow::Next | Flow::Prompt => {}
                Flow::Exit => break,
                Flow::Killed => return 137,
            }
        }
        let status = self.status;
        if let Some(trap) = self.exit_trap.take() {
            self.evaluate(&trap, &Self::tty_io());
        }
        status
    }

    fn syntax_error(&mut self, io: &Io, why: &str) {
        self.write(&io.errors, format!("sh: syntax error: {why}\n").as_bytes());
        self.status = 2;
    }

    /// Runs a text; an error ends the line that contains it.
    pub fn evaluate(&mut self, text: &str, io: &Io) -> Flow {
        if self.depth >= MAX_DEPTH {
            self.syntax_error(io, "too deep");
            return Flow::Prompt;
        }
        self.depth += 1;
        let flow = match parse(text) {
            Ok(items) => {
                self.status = 0;
                self.list(&items, io)
            }
            Err(Bad::Syntax(why)) => {
                self.syntax_error(io, &why);
                Flow::Prompt
            }
            Err(Bad::Incomplete) => {
                self.syntax_error(io, "unexpected end");
                Flow::Prompt
            }
        };
        self.depth -= 1;
        flow
    }

    fn list(&mut self, items: &[Item], io: &Io) -> Flow {
        for Item(when, node) in items {
            let runs = match when {
                When::Always => true,
                When::And => self.status == 0,
                When::Or => self.status != 0,
            };
            if runs {
                let flow = self.node(node, io);
                if flow != Flow::Next {
                    return flow;
                }
            }
            if self.machine.borrow().tty.interrupted {
                return Flow::Prompt;
            }
        }
        Flow::Next
    }

    fn node(&mut self, node: &Node, io: &Io) -> Flow {
        match node {
            Node::Simple(words, redirects) => match self.redirected(redirects, io) {
                Some(io) => self.simple(words, &io),
                None => Flow::Next,
            },
            Node::Group(items, redirects) => match self.redirected(redirects, io) {
                Some(io) => self.list(items, &io),
                None => Flow::Next,
            },
            Node::Function(name, body) => {
                self.functions.insert(name.clone(), body.clone());
                self.status = 0;
                Flow::Next
            }
            Node::While(condition, body) => loop {
                let flow = self.list(condition, io);
                if flow != Flow::Next || self.status != 0 {
                    return flow;
                }
                let flow = self.list(body, io);
                if flow != Flow::Next {
                    return flow;
                }
                self.machine.borrow_mut().turn(false);
            },
        }
    }

    /// Opens a command's streams; `None` if one of them does not exist.
    fn redirected(&mut self, redirects: &[crate::parse::Redirect], io: &Io) -> Option<Io> {
        let mut io = io.clone();
        for redirect in redirects {
            let target = self.expand(&redirect.target, &io).concat();
            let out = match (redirect.operator, &target[..]) {
                ("<", "/dev/null") => {
                    io.tty_input = false;
                    continue;
                }
                ("<", _) => {
                    io.tty_input = target == "/dev/tty";
                    continue;
                }
                (">&", "1") => io.out.clone(),
                (">&", _) => io.errors.clone(),
                (_, "/dev/tty") => Out::Tty,
                (_, "/dev/null") => Out::Nowhere,
                (operator, _) => {
                    let path = self.path(&target);
                    if operator == ">" {
                        self.files.borrow_mut().insert(path.clone(), Vec::new());
                    }
                    if !path.starts_with("/tmp/") && std::fs::write(&path, b"").is_err() {
                        self.write(&io.errors, format!("sh: can't create {path}\n").as_bytes());
                        self.status = 1;
                        return None;
                    }
                    Out::File(path)
                }
            };
            match redirect.fd {
                2 => io.errors = out,
                _ => io.out = out,
            }
        }
        Some(io)
    }

    /// Makes a path absolute.
    pub fn path(&self, path: &str) -> String {
        match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}/{path}", self.cwd.trim_end_matches('/')),
        }
    }

    fn simple(&mut self, words: &[String], io: &Io) -> Flow {
        let is_assignment = |word: &&String| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        let assignments = words.iter().take_while(is_assignment).count();
        for word in &words[..assignments] {
            let (name, value) = word.split_once('=').unwrap_or_default();
            let value = self.expand(value, io).concat();
            self.assign(name, value);
        }
        let rest = &words[assignments..];
        if rest.is_empty() {
            if assignments > 0
                && !words
                    .iter()
                    .any(|word| word.contains("$(") || word.contains("$?"))
            {
                self.status = 0;
            }
            return Flow::Next;
        }
        let words: Vec<String> = rest.iter().flat_map(|word| self.expand(word, io)).collect();
        let Some(name) = words.first() else {
            return Flow::Next;
        };
        if let Some(body) = self.functions.get(name).cloned() {
            let before = std::mem::replace(&mut self.parameters, words[1..].to_vec());
            let flow = self.list(&body, io);
            self.parameters = before;
            return flow;
        }
        let flow = self.run(&words, io);
        self.store_files();
        flow
    }

    /// Writes files outside `/tmp` to the host.
    fn store_files(&mut self) {
        let mut files = self.files.borrow_mut();
        let hosts: Vec<_> = files
            .keys()
            .filter(|path| !path.starts_with("/tmp/"))
            .cloned()
            .collect();
        for path in hosts {
            if let Some(bytes) = files.remove(&path) {
                self.status |= i32::from(std::fs::write(&path, bytes).is_err());
            }
        }
    }

    pub fn assign(&mut self, name: &str, value: String) {
        let exported = self
            .variables
            .get(name)
            .is_some_and(|(_, exported)| *exported);
        self.variables.insert(name.to_owned(), (value, exported));
    }

    /// Expands a word to words.
    fn expand(&mut self, word: &str, io: &Io) -> Vec<String> {
        let (mut words, mut current, mut some) = (Vec::new(), String::new(), false);
        let bytes = word.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'\'' => {
                    let len = word[at + 1..].find('\'').unwrap_or(0);
                    current += &word[at + 1..at + 1 + len];
                    (at, some) = (at + len + 2, true);
                }
                b'"' => {
                    let end = quoted_end(bytes, at + 1).unwrap_or(bytes.len());
                    current += &self.quoted(&word[at + 1..end - 1], io);
                    (at, some) = (end, true);
                }
                b'\\' => {
                    let next = word[at + 1..].chars().next().unwrap_or('\\');
                    current.push(next);
                    at += 1 + next.len_utf8();
                }
                b'$' => {
                    let (value, end) = self.dollar(word, at, io);
                    let mut parts = value
                        .split([' ', '\t', '\n'])
                        .filter(|part| !part.is_empty());
                    current += parts.next().unwrap_or_default();
                    for part in parts {
                        words.push(std::mem::replace(&mut current, part.to_owned()));
                    }
                    at = end;
                }
                _ => {
                    let next = word[at..].chars().next().unwrap_or_default();
                    current.push(next);
                    at += next.len_utf8().max(1);
                }
            }
        }
        if some || !current.is_empty() {
            words.push(current);
        }
        words
    }

    /// Expands a double-quoted text.
    fn quoted(&mut self, text: &str, io: &Io) -> String {
        let mut result = String::new();
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            match next {
                '$' => {
                    let (value, end) = self.dollar(text, at, io);
                    result += &value;
                    at = end;
                }
                '\\' if text[at + 1..].starts_with(['$', '"', '\\', '`']) => {
                    result += &text[at + 1..at + 2];
                    at += 2;
                }
                _ => {
                    result.push(next);
                    at += next.len_utf8();
                }
            }
        }
        result
    }

    /// Expands a `$`; returns the text and its end.
    fn dollar(&mut self, text: &str, at: usize, io: &Io) -> (String, usize) {
        let rest = &text[at + 1..];
        if rest.starts_with('(') {
            let end = parenthesis_end(text.as_bytes(), at + 2).unwrap_or(text.len());
            let buffer = Rc::new(RefCell::new(Vec::new()));
            let inner = Io {
                out: Out::Buffer(Rc::clone(&buffer)),
                ..io.clone()
            };
            let _ = self.evaluate(&text[at + 2..end - 1], &inner);
            let bytes = buffer.borrow();
            let value = String::from_utf8_lossy(&bytes);
            return (value.trim_end_matches('\n').to_owned(), end);
        }
        let (name, end) = match rest.chars().next() {
            Some('?') => return (self.status.to_string(), at + 2),
            Some('$') => return ("100".to_owned(), at + 2),
            Some(digit @ '1'..='9') => {
                let index = digit as usize - '1' as usize;
                let value = self.parameters.get(index).cloned();
                return (value.unwrap_or_default(), at + 2);
            }
            Some('{') => {
                let end = rest.find('}').unwrap_or(rest.len());
                (&rest[1..end], at + 2 + end)
            }
            _ => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (&rest[..end], at + 1 + end)
            }
        };
        match name {
            "" => ("$".to_owned(), end),
            "PWD" => (self.cwd.clone(), end),
            name => {
                let value = self.variables.get(name).map(|(value, _)| value.clone());
                (value.unwrap_or_default(), end)
            }
        }
    }

    /// Waits while the machine runs on; returns whether an interrupt came.
    pub fn wait(&self, span: Duration) -> bool {
        let until = Instant::now() + span;
        while Instant::now() < until {
            let mut machine = self.machine.borrow_mut();
            machine.turn(true);
            if machine.tty.interrupted {
                return true;
            }
        }
        false
    }

    /// Reads a line from the terminal for a program.
    pub fn program_line(&self) -> Option<Vec<u8>> {
        loop {
            let mut machine = self.machine.borrow_mut();
            if machine.tty.interrupted {
                return None;
            }
            if let Some(line) = machine.tty.take_line() {
                return Some(line);
            }
            machine.turn(true);
        }
    }

    /// Addresses that the network assigned.
    pub fn lease(&self) -> Option<([u8; 6], [u8; 4])> {
        let machine = self.machine.borrow();
        let net: &net::Net = machine.net.as_ref()?;
        Some((net.mac, net.lease?))
    }

    pub fn seconds(&self) -> u64 {
        wasi::seconds()
    }
}
