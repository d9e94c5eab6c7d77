//! Commands and files of a computer: atoms of ours, so the rules are those of
//! `docs/costs.md` and of the atoms' own documentation.

use super::machine::{Machine, ScopeRef};
use super::meter::take_used;
use super::steps::Node;
use super::value::{Fail, OVal, Obj, Res, fail, js, lossy};
use a99_core::error::ErrorCode;

/// A byte that goes in or comes out, in micro-units.
const BYTE: i64 = 100;
/// A millisecond that a command runs, in micro-units.
const MILLISECOND: i64 = 10_000;
/// What a command may run, in milliseconds, unless it says otherwise.
const DEFAULT_MS: f64 = 30_000.0;
/// The longest time that it can ask for, in milliseconds.
const MAX_MS: f64 = 86_400_000.0;
/// Bytes that come out at most, unless a program says otherwise.
const DEFAULT_BYTES: f64 = 1_048_576.0;
/// The largest file that can be asked for, in bytes.
const MAX_FILE: f64 = 16_777_216.0;

impl Machine<'_> {
    /// `shellExec`, `shellWriteFile`, `shellReadFile`.
    pub(super) fn shell_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let (method, keys): (_, &[&str]) = match op {
            "shellExec" => (
                "shell.exec",
                &["command", "cwd", "env", "stdin", "timeoutMs", "encoding"],
            ),
            "shellWriteFile" => ("shell.writeFile", &["path", "content", "encoding", "mode"]),
            _ => ("shell.readFile", &["path", "encoding", "maxBytes"]),
        };
        let args = self.inputs(keys, node, scope)?;
        if !self.host.provides(method) {
            return Err(self.missing("Capability 'shell' missing"));
        }
        match op {
            "shellExec" => self.shell_exec(op, &args),
            "shellWriteFile" => self.shell_write(op, &args),
            _ => self.shell_read(op, &args),
        }
    }

    fn shell_exec(&mut self, op: &str, args: &[OVal]) -> Res<OVal> {
        let base64 = is_base64(op, &args[5])?;
        let ms = match &args[4] {
            OVal::Undef | OVal::Null => DEFAULT_MS,
            OVal::Num(n) if *n > 0.0 => n.min(MAX_MS),
            _ => return wrong(op, "timeoutMs", "a number above 0"),
        };
        let Some(mut bytes) = command_bytes(&args[0]) else {
            return wrong(op, "command", "a text or a list of texts");
        };
        let request = Obj::from([(js("command"), args[0].clone())]);
        for (key, value) in [("cwd", &args[1]), ("env", &args[2]), ("stdin", &args[3])] {
            bytes += match (key, value) {
                (_, OVal::Undef | OVal::Null) => continue,
                ("env", OVal::Obj(env)) => {
                    let texts = env.iter().map(|(k, v)| Some(utf8(&k) + text_bytes(&v)?));
                    match texts.sum::<Option<i64>>() {
                        Some(bytes) => bytes,
                        None => return wrong(op, "env", "an object of texts"),
                    }
                }
                ("env", _) => return wrong(op, "env", "an object of texts"),
                (key, value) => match text_bytes(value) {
                    Some(bytes) => bytes,
                    None => return wrong(op, key, "a text"),
                },
            };
            request.insert(js(key), value.clone());
        }
        self.meter.take(bytes * BYTE)?;
        let left = self.meter.fuel() as f64;
        let ms = ms.min(left / MILLISECOND as f64);
        let most = DEFAULT_BYTES.min((left / BYTE as f64).floor());
        request.insert(js("timeoutMs"), OVal::Num(ms));
        request.insert(js("outputLimit"), OVal::Num(most));
        let reply = self.call_host(op, "shell.exec", &[OVal::object(request)])?;
        let part = |name: &str| match &reply {
            OVal::Obj(obj) => obj.member(&js(name)),
            _ => OVal::Undef,
        };
        let number = |name: &str| match part(name) {
            OVal::Num(n) => n,
            _ => 0.0,
        };
        let (stdout, stderr) = (part("stdout"), part("stderr"));
        let out = text_bytes(&stdout).unwrap_or(0) + text_bytes(&stderr).unwrap_or(0);
        let time = (number("elapsedMs") * MILLISECOND as f64).floor() as i64;
        take_used(time + out * BYTE)?;
        let shown = |text: OVal| encoded(text, base64);
        Ok(OVal::object(Obj::from([
            (js("stdout"), shown(stdout)),
            (js("stderr"), shown(stderr)),
            (js("exitCode"), OVal::Num(number("exitCode"))),
        ])))
    }

    fn shell_write(&mut self, op: &str, args: &[OVal]) -> Res<OVal> {
        let base64 = is_base64(op, &args[2])?;
        let mode = match &args[3] {
            OVal::Undef | OVal::Null => 0o644,
            OVal::Str(digits) if (1..=3).contains(&digits.len()) => {
                let octal = |c: &u16| (0x30..0x38).contains(c);
                match digits.iter().all(octal) {
                    true => digits
                        .iter()
                        .fold(0, |mode, c| mode * 8 + i64::from(c - 0x30)),
                    false => return wrong(op, "mode", "a text of octal digits up to '777'"),
                }
            }
            _ => return wrong(op, "mode", "a text of octal digits up to '777'"),
        };
        let Some(name) = text_bytes(&args[0]) else {
            return wrong(op, "path", "a text");
        };
        let OVal::Str(content) = &args[1] else {
            return wrong(op, "content", "a text");
        };
        let content = lossy(content);
        let content = match base64 {
            false => Some(content),
            true => decoded(&content),
        };
        let Some(content) = content else {
            return wrong(op, "content", "base64");
        };
        let count = content.len() as i64;
        self.meter.take((name + count) * BYTE)?;
        let args = [args[0].clone(), OVal::str(&content), OVal::Num(mode as f64)];
        self.call_host(op, "shell.writeFile", &args)?;
        Ok(OVal::Num(count as f64))
    }

    fn shell_read(&mut self, op: &str, args: &[OVal]) -> Res<OVal> {
        let base64 = is_base64(op, &args[1])?;
        let most = match &args[2] {
            OVal::Undef | OVal::Null => DEFAULT_BYTES,
            OVal::Num(n) if *n >= 0.0 => n.floor().min(MAX_FILE),
            _ => return wrong(op, "maxBytes", "a number of at least 0"),
        };
        let Some(name) = text_bytes(&args[0]) else {
            return wrong(op, "path", "a text");
        };
        self.meter.take(name * BYTE)?;
        let most = most.min((self.meter.fuel() as f64 / BYTE as f64).floor());
        let args = [args[0].clone(), OVal::Num(most)];
        let content = self.call_host(op, "shell.readFile", &args)?;
        take_used(text_bytes(&content).unwrap_or(0) * BYTE)?;
        Ok(encoded(content, base64))
    }
}

fn wrong<T>(op: &str, input: &str, expected: &str) -> Res<T> {
    let message = format!("{op}: `{input}` must be {expected}");
    Err(Fail::coded(ErrorCode::Program, message))
}

fn is_base64(op: &str, value: &OVal) -> Res<bool> {
    match value {
        OVal::Undef | OVal::Null => Ok(false),
        OVal::Str(name) if lossy(name) == "utf8" => Ok(false),
        OVal::Str(name) if lossy(name) == "base64" => Ok(true),
        _ => fail(format!("{op}: `encoding` must be 'utf8' or 'base64'")),
    }
}

/// Bytes of a text in UTF-8; a lone surrogate is one of three bytes.
fn utf8(text: &[u16]) -> i64 {
    lossy(text).len() as i64
}

fn text_bytes(value: &OVal) -> Option<i64> {
    match value {
        OVal::Str(text) => Some(utf8(text)),
        _ => None,
    }
}

fn command_bytes(value: &OVal) -> Option<i64> {
    match value {
        OVal::Arr(items) => items.borrow().iter().map(text_bytes).sum(),
        value => text_bytes(value),
    }
}

const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A text as it is, or its bytes as base64, bit by bit.
fn encoded(text: OVal, base64: bool) -> OVal {
    let OVal::Str(units) = &text else {
        return OVal::str("");
    };
    if !base64 {
        return text;
    }
    let bytes = lossy(units).into_bytes();
    let bit = |i: usize| bytes.get(i / 8).is_some_and(|b| b >> (7 - i % 8) & 1 == 1);
    let digits = (0..(bytes.len() * 8).div_ceil(6)).map(|digit| {
        let value = (0..6).fold(0, |v, i| v * 2 + usize::from(bit(digit * 6 + i)));
        char::from(DIGITS.as_bytes()[value])
    });
    let mut out: String = digits.collect();
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    OVal::str(&out)
}

/// The text that base64 stands for; the vectors hold no other bytes.
fn decoded(text: &str) -> Option<String> {
    let bare = text.trim_end_matches('=');
    let padded = text.len() != bare.len();
    if padded && (!text.len().is_multiple_of(4) || text.len() - bare.len() > 2) {
        return None;
    }
    let digits: Option<Vec<usize>> = bare.chars().map(|c| DIGITS.find(c)).collect();
    let digits = digits?;
    let bit = |i: usize| digits[i / 6] >> (5 - i % 6) & 1;
    let (all, whole) = (digits.len() * 6, digits.len() * 6 / 8 * 8);
    if all - whole >= 6 || (whole..all).any(|i| bit(i) == 1) {
        return None;
    }
    let byte = |at: usize| (0..8).fold(0u8, |b, i| b << 1 | bit(at * 8 + i) as u8);
    String::from_utf8((0..whole / 8).map(byte).collect()).ok()
}
