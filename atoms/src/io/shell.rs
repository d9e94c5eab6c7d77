//! Commands and files of a computer: `shellExec`, `shellWriteFile`, `shellReadFile` call the host's
//! `Shell` and fail without it (security N01).
//!
//! Programs pay for the time of commands and for the bytes that go in and come out, in both cost
//! models, because fuel is the only bound on them. A command never gets more time or output than
//! the remaining fuel pays for.

use crate::base64;
use crate::def::{Adjust, Input, Kind, all_need, host, opt, req};
use crate::grants::{Answer, inputs, required};
use a99_capabilities::{
    DEFAULT_MODE, DEFAULT_OUTPUT_LIMIT, MODE_BITS, Shell, ShellCommand, ShellError, ShellErrorKind,
    ShellOutput, ShellRequest,
};
use a99_core::costs::{COMMAND_BYTE, COMMAND_SECOND, MICRO};
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds, ShortPrompts};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply, TimeCharge};
use std::sync::Arc;
use std::time::Duration;

/// Default time limit of a command in milliseconds.
const COMMAND_MS: f64 = 30_000.0;

/// Longest time limit that a program can request, in milliseconds: a day. The limits of the run
/// apply as well.
const MAX_COMMAND_MS: f64 = 86_400_000.0;

/// Default time limit for copying a file, in milliseconds (D22).
const FILE_MS: u64 = 30_000;

/// Largest file that a program can request: far above the default limit on values that cross into
/// the program (4 MiB, D21), and small for the host.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Price of a call in micro-units.
const CALL: i64 = 5 * MICRO;

pub(crate) fn atoms() -> Vec<AtomDef> {
    const PATH: Input = req("path", Kind::Text, "Absolute path of the file.");
    const ENCODING: Input = opt(
        "encoding",
        Kind::Text,
        "Encoding of bytes as text: UTF-8, or base64 for binary data.",
    )
    .values(&["utf8", "base64"])
    .default("\"utf8\"");
    let all =
        vec![
        host(
            "shellExec",
            "Runs a command on the computer that the host grants. A text is a script for the \
             session's shell, whose directory and variables persist; a list is a program with its \
             arguments. Returns {stdout, stderr, exitCode}.",
            CALL,
            &[
                req(
                    "command",
                    Kind::TextOrTexts,
                    "A script for the session's shell, or a list of a program and its arguments, \
                     which no shell interprets.",
                ),
                opt(
                    "cwd",
                    Kind::Text,
                    "Working directory; by default a script keeps the session's directory.",
                ),
                opt(
                    "env",
                    Kind::Record,
                    "Variables added to the environment: a text for each name.",
                )
                .told(Kind::TextRecord),
                opt("stdin", Kind::Text, "Text of standard input.").default("\"\""),
                opt(
                    "timeoutMs",
                    Kind::Number,
                    "Time limit in milliseconds, above 0 and at most 86400000.",
                ).whole(1.0, 86_400_000.0)
                .default("30000"),
                ENCODING,
            ],
            exec,
        ).listed(ShortPrompts::Source)
        .gives(Gives::always(JsonKinds::ANY))
        .untimed(),
        host(
            "shellWriteFile",
            "Writes a file on the computer that the host grants, by its absolute path, from text \
             or base64. Returns the number of bytes.",
            CALL,
            &[
                PATH,
                req(
                    "content",
                    Kind::Text,
                    "Content of the file, in the given encoding.",
                ),
                ENCODING,
                opt(
                    "mode",
                    Kind::Text,
                    "Mode of the file as octal digits, up to `777`.",
                )
                .default("\"644\""),
            ],
            write_file,
        ).listed(ShortPrompts::Neither)
        .effect(Effect::Idempotent)
        .timeout_ms(FILE_MS),
        host(
            "shellReadFile",
            "Reads a file of the computer that the host grants, by its absolute path, as text \
             or base64.",
            CALL,
            &[
                PATH,
                ENCODING,
                opt(
                    "maxBytes",
                    Kind::Number,
                    "Maximum size of the file in bytes, up to 16777216; a larger file is an error.",
                ).whole(0.0, 16_777_216.0)
                .default("1048576"),
            ],
            read_file,
        ).listed(ShortPrompts::Neither)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY))
        .timeout_ms(FILE_MS),
    ];
    all_need(Capability::Shell, all)
}

fn shell(call: &HostCall) -> Result<Arc<dyn Shell>, AtomError> {
    required(call, |c| &c.shell, "Capability 'shell' missing")
}

fn exec(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [command, cwd, env, stdin, timeout, encoding] = inputs(&mut call);
        let shell = shell(&call)?;
        let encoding = Encoding::of(&call, &encoding)?;
        let timeout = time_limit(&call, &timeout)?;
        let mut request = ShellRequest {
            command: command_of(&call, &command)?,
            cwd: optional(&call, "cwd", &cwd)?,
            env: variables(&call, &env)?,
            stdin: optional(&call, "stdin", &stdin)?
                .unwrap_or_default()
                .into_bytes(),
            timeout: None,
            output_limit: DEFAULT_OUTPUT_LIMIT,
        };
        let mut bill = Bill::new(&call);
        bill.pay_bytes(request_bytes(&request))?;
        let limit = timeout.min(bill.time_left());
        request.timeout = Some(limit);
        request.output_limit = DEFAULT_OUTPUT_LIMIT.min(bill.bytes_left());
        let output_limit = request.output_limit;
        let clock = TimeCharge::start(&call, Fuel::from_micro(COMMAND_SECOND));
        match shell.exec(request).await {
            Ok(output) => {
                clock.settle(output.elapsed);
                bill.pay_bytes(output.stdout.len() + output.stderr.len())?;
                Ok(HostReply::from(output_value(&output, encoding)))
            }
            Err(error) => {
                // A command that used up its time limit pays for all of it.
                let timed_out = error.kind == ShellErrorKind::TimedOut;
                let least = if timed_out { limit } else { Duration::ZERO };
                clock.settle(error.elapsed.max(least));
                if error.kind == ShellErrorKind::OutputLimit {
                    bill.pay_bytes(output_limit)?;
                }
                Err(failed(error))
            }
        }
    })
}

fn write_file(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [path, content, encoding, mode] = inputs(&mut call);
        let shell = shell(&call)?;
        let encoding = Encoding::of(&call, &encoding)?;
        let mode = mode_of(&call, &mode)?;
        let path = text(&call, "path", &path)?;
        let bytes = encoding.decode(&call, &text(&call, "content", &content)?)?;
        let count = bytes.len();
        Bill::new(&call).pay_bytes(path.len() + count)?;
        let written = shell.write_file(path, bytes, mode).await;
        written.map_err(failed)?;
        // Far below 2^53, because the bytes were in memory.
        Ok(HostReply::from(Value::from(count as f64)))
    })
}

fn read_file(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [path, encoding, most] = inputs(&mut call);
        let shell = shell(&call)?;
        let encoding = Encoding::of(&call, &encoding)?;
        let most = file_limit(&call, &most)?;
        let path = text(&call, "path", &path)?;
        let mut bill = Bill::new(&call);
        bill.pay_bytes(path.len())?;
        let limit = most.min(bill.bytes_left());
        match shell.read_file(path, limit).await {
            Ok(bytes) => {
                bill.pay_bytes(bytes.len())?;
                Ok(HostReply::from(encoding.encode(&bytes)))
            }
            Err(error) => {
                if error.kind == ShellErrorKind::OutputLimit && limit < most {
                    bill.pay_bytes(limit)?;
                }
                Err(failed(error))
            }
        }
    })
}

/// Charges of a call against the fuel that the run had at its start.
struct Bill<'c> {
    call: &'c HostCall,
    left: i64,
}

impl Bill<'_> {
    fn new(call: &HostCall) -> Bill<'_> {
        let left = call.fuel_left.micro();
        Bill { call, left }
    }

    /// Charges bytes before they are transferred. The error ends the call; the run ends with its
    /// fuel as soon as it notices.
    fn pay_bytes(&mut self, bytes: usize) -> Result<(), AtomError> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let price = bytes.saturating_mul(COMMAND_BYTE);
        self.call.locals.charge(Fuel::from_micro(price));
        self.left = self.left.saturating_sub(price);
        match self.left > 0 {
            true => Ok(()),
            false => Err(AtomError::new("Out of Fuel")),
        }
    }

    /// The time that the remaining fuel pays for.
    fn time_left(&self) -> Duration {
        const NANOS_PER_MICRO_UNIT: u64 = (1_000 * MICRO / COMMAND_SECOND).unsigned_abs();
        let left = self.left.max(0).unsigned_abs();
        Duration::from_nanos(left.saturating_mul(NANOS_PER_MICRO_UNIT))
    }

    /// The bytes that the remaining fuel pays for.
    fn bytes_left(&self) -> usize {
        usize::try_from(self.left.max(0) / COMMAND_BYTE).unwrap_or(usize::MAX)
    }
}

/// Encoding of bytes as text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Base64,
}

impl Encoding {
    fn of(call: &HostCall, value: &Value) -> Result<Encoding, AtomError> {
        match value {
            Value::Undefined | Value::Null => Ok(Encoding::Utf8),
            Value::String(name) if *name == "utf8" => Ok(Encoding::Utf8),
            Value::String(name) if *name == "base64" => Ok(Encoding::Base64),
            _ => Err(wrong(call, "encoding", "'utf8' or 'base64'")),
        }
    }

    /// Encodes bytes as text; ill-formed UTF-8 becomes U+FFFD.
    fn encode(self, bytes: &[u8]) -> Value {
        match self {
            Encoding::Utf8 => Value::from(String::from_utf8_lossy(bytes).into_owned()),
            Encoding::Base64 => Value::from(base64::encode(bytes)),
        }
    }

    fn decode(self, call: &HostCall, text: &str) -> Result<Vec<u8>, AtomError> {
        match self {
            Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
            Encoding::Base64 => {
                let bytes = base64::decode(text.as_bytes());
                bytes.ok_or_else(|| wrong(call, "content", "base64"))
            }
        }
    }
}

fn wrong(call: &HostCall, input: &str, expected: &str) -> AtomError {
    AtomError::new(format!("{}: `{input}` must be {expected}", call.op))
}

/// Converts a shell error: the program sees its text unchanged, and a distinguishing code.
fn failed(error: ShellError) -> AtomError {
    let code = match error.kind {
        ShellErrorKind::TimedOut => ErrorCode::AtomTimeout,
        ShellErrorKind::Crashed | ShellErrorKind::Unavailable => ErrorCode::Capability,
        _ => ErrorCode::Program,
    };
    AtomError::coded(code, error.message)
}

/// Converts a text for the computer, which has no lone surrogates (D36).
fn lossy(text: &Text) -> String {
    text.to_string_lossy().into_owned()
}

fn text(call: &HostCall, input: &str, value: &Value) -> Result<String, AtomError> {
    let text = value.as_text().map(lossy);
    text.ok_or_else(|| wrong(call, input, "a text"))
}

fn optional(call: &HostCall, input: &str, value: &Value) -> Result<Option<String>, AtomError> {
    match value.is_nullish() {
        true => Ok(None),
        false => text(call, input, value).map(Some),
    }
}

fn command_of(call: &HostCall, value: &Value) -> Result<ShellCommand, AtomError> {
    let argv = |items: &[Value]| items.iter().map(|v| v.as_text().map(lossy)).collect();
    let command = match value {
        Value::String(text) => Some(ShellCommand::Script(lossy(text))),
        Value::Array(items) => {
            let argv: Option<Vec<String>> = argv(items);
            argv.map(ShellCommand::Argv)
        }
        _ => None,
    };
    command.ok_or_else(|| wrong(call, "command", "a text or a list of texts"))
}

fn variables(call: &HostCall, value: &Value) -> Result<Vec<(String, String)>, AtomError> {
    let pairs = match value {
        Value::Undefined | Value::Null => Some(Vec::new()),
        Value::Object(map) => {
            let pair =
                |(name, value): (&Text, &Value)| Some((lossy(name), lossy(value.as_text()?)));
            map.iter().map(pair).collect()
        }
        _ => None,
    };
    pairs.ok_or_else(|| wrong(call, "env", "an object of texts"))
}

fn time_limit(call: &HostCall, value: &Value) -> Result<Duration, AtomError> {
    let ms = match value.is_nullish() {
        true => COMMAND_MS,
        false => value.as_f64().unwrap_or(f64::NAN),
    };
    if ms > 0.0 {
        return Ok(Duration::from_secs_f64(ms.min(MAX_COMMAND_MS) / 1_000.0));
    }
    Err(wrong(call, "timeoutMs", "a number above 0"))
}

fn file_limit(call: &HostCall, value: &Value) -> Result<usize, AtomError> {
    match value {
        Value::Undefined | Value::Null => Ok(DEFAULT_OUTPUT_LIMIT),
        // The cast saturates.
        Value::Number(n) if *n >= 0.0 => Ok((*n as usize).min(MAX_FILE_BYTES)),
        _ => Err(wrong(call, "maxBytes", "a number of at least 0")),
    }
}

/// Parses octal digits as `chmod` does. A number would be read as decimal.
fn mode_of(call: &HostCall, value: &Value) -> Result<u32, AtomError> {
    if value.is_nullish() {
        return Ok(DEFAULT_MODE);
    }
    let digits = value.as_str().filter(|text| !text.starts_with('+'));
    let mode = digits.and_then(|text| u32::from_str_radix(text, 8).ok());
    let mode = mode.filter(|mode| *mode <= MODE_BITS);
    mode.ok_or_else(|| wrong(call, "mode", "a text of octal digits up to '777'"))
}

fn request_bytes(request: &ShellRequest) -> usize {
    let command = match &request.command {
        ShellCommand::Script(text) => text.len(),
        ShellCommand::Argv(argv) => argv.iter().map(String::len).sum(),
    };
    let env: usize = request.env.iter().map(|(k, v)| k.len() + v.len()).sum();
    let cwd = request.cwd.as_ref().map_or(0, String::len);
    command + env + cwd + request.stdin.len()
}

/// `{stdout, stderr, exitCode}`, with `signal` and `sessionReset` only where they apply.
fn output_value(output: &ShellOutput, encoding: Encoding) -> Value {
    let mut map = Map::new();
    map.insert("stdout", encoding.encode(&output.stdout));
    map.insert("stderr", encoding.encode(&output.stderr));
    map.insert("exitCode", f64::from(output.exit_code));
    if let Some(signal) = output.signal {
        map.insert("signal", f64::from(signal));
    }
    if output.session_reset {
        map.insert("sessionReset", true);
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{
        Capabilities, MemoryShell, ShellCommand, ShellError, ShellErrorKind, ShellOutput,
    };
    use a99_core::error::ErrorCode;
    use std::sync::Arc;
    use std::time::Duration;

    fn bench(shell: MemoryShell) -> (Bench, Arc<MemoryShell>) {
        let shell = Arc::new(shell);
        let mut set = Capabilities::none();
        set.shell = Some(shell.clone());
        (Bench::with(set), shell)
    }

    #[test]
    fn refused_without_the_capability() {
        for (op, args) in [
            ("shellExec", r#"["ls"]"#),
            ("shellWriteFile", r#"["/a", "b"]"#),
            ("shellReadFile", r#"["/a"]"#),
        ] {
            let error = Bench::new().reply(op, args).unwrap_err();
            assert_eq!(error.code, ErrorCode::Capability);
            assert_eq!(error.message, "Capability 'shell' missing");
        }
    }

    #[test]
    fn scripts_and_programs() {
        let (bench, shell) = bench(MemoryShell::new());
        let run = |args: &str| bench.call("shellExec", args).unwrap();
        let out = |text: &str| format!(r#"{{"stdout":"{text}","stderr":"","exitCode":0}}"#);
        assert_eq!(run(r#"["cd /srv"]"#), out(""));
        assert_eq!(run(r#"["pwd"]"#), out("/srv\\n"));
        assert_eq!(run(r#"[["pwd"], "/var"]"#), out("/var\\n"));
        let args = r#"[["env"], null, {"K": "v"}]"#;
        assert_eq!(run(args), out("K=v\\n"));
        let args = r#"[["cat"], null, null, "öÿ", 500, "base64"]"#;
        assert_eq!(run(args), out("w7bDvw=="));
        assert_eq!(
            run(r#"["exit 3"]"#),
            r#"{"stdout":"","stderr":"","exitCode":3,"sessionReset":true}"#
        );
        let limits: Vec<_> = shell.requests().iter().map(|r| r.timeout).collect();
        // The remaining fuel of one unit pays for a tenth of a second.
        assert!(limits.iter().all(|t| *t < Some(Duration::from_millis(100))));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_or_base64() {
        let output = ShellOutput {
            stdout: b"a\xFFb".to_vec(),
            exit_code: 137,
            signal: Some(9),
            ..ShellOutput::default()
        };
        let script = ShellCommand::Script("x".to_owned());
        let (bench, _) = bench(MemoryShell::new().on(script, output));
        assert_eq!(
            bench.call("shellExec", r#"["x"]"#).unwrap(),
            "{\"stdout\":\"a\u{FFFD}b\",\"stderr\":\"\",\"exitCode\":137,\"signal\":9}"
        );
        let args = r#"["x", null, null, null, null, "base64"]"#;
        let coded = bench.call("shellExec", args).unwrap();
        assert!(coded.starts_with(r#"{"stdout":"Yf9i""#), "{coded}");
    }

    #[test]
    fn files_go_there_and_back() {
        let (bench, shell) = bench(MemoryShell::new());
        let write = |args: &str| bench.call("shellWriteFile", args);
        let read = |args: &str| bench.call("shellReadFile", args);
        assert_eq!(write(r#"["/a", "hé"]"#).unwrap(), "3");
        assert_eq!(read(r#"["/a"]"#).unwrap(), r#""hé""#);
        assert_eq!(shell.mode("/a"), Some(0o644));
        assert_eq!(write(r#"["/b", "AP8=", "base64", "755"]"#).unwrap(), "2");
        assert_eq!(read(r#"["/b", "base64"]"#).unwrap(), r#""AP8=""#);
        assert_eq!(shell.mode("/b"), Some(0o755));
        assert_eq!(
            read(r#"["/a", null, 2]"#).unwrap_err(),
            "/a: larger than 2 bytes"
        );
        assert_eq!(read(r#"["/c"]"#).unwrap_err(), "/c: no such file");
    }

    #[test]
    fn mistakes_are_named() {
        let (bench, shell) = bench(MemoryShell::new());
        for (op, args, expected) in [
            (
                "shellExec",
                "[7]",
                "`command` must be a text or a list of texts",
            ),
            ("shellExec", r#"[["a", 1]]"#, "`command` must be"),
            ("shellExec", r#"["a", 1]"#, "`cwd` must be a text"),
            ("shellExec", r#"["a", null, {"A": 1}]"#, "`env` must be"),
            ("shellExec", r#"["a", null, null, 1]"#, "`stdin` must be"),
            (
                "shellExec",
                r#"["a", null, null, null, 0]"#,
                "`timeoutMs` must",
            ),
            (
                "shellExec",
                r#"["a", null, null, null, "1"]"#,
                "`timeoutMs`",
            ),
            (
                "shellExec",
                r#"["a",null,null,null,1,"hex"]"#,
                "'utf8' or 'base64'",
            ),
            (
                "shellWriteFile",
                r#"["/a", "b", "base64"]"#,
                "must be base64",
            ),
            (
                "shellWriteFile",
                r#"["/a", "b", null, "4755"]"#,
                "`mode` must be",
            ),
            (
                "shellWriteFile",
                r#"["/a", "b", null, "+7"]"#,
                "`mode` must be",
            ),
            (
                "shellWriteFile",
                r#"["/a", "b", null, 755]"#,
                "`mode` must be",
            ),
            (
                "shellWriteFile",
                r#"["/a", {}]"#,
                "`content` must be a text",
            ),
            ("shellReadFile", r#"["/a", null, -1]"#, "`maxBytes` must be"),
        ] {
            let error = bench.call(op, args).unwrap_err();
            assert!(error.starts_with(op) && error.contains(expected), "{error}");
        }
        assert!(shell.requests().is_empty());
    }

    #[test]
    fn failures_keep_their_kind() {
        let failing = [
            (ShellErrorKind::TimedOut, ErrorCode::AtomTimeout),
            (ShellErrorKind::Crashed, ErrorCode::Capability),
            (ShellErrorKind::Unavailable, ErrorCode::Capability),
            (ShellErrorKind::Denied, ErrorCode::Program),
        ];
        for (kind, code) in failing {
            let script = ShellCommand::Script("x".to_owned());
            let shell = MemoryShell::new().fails(script, ShellError::new(kind, "no"));
            let error = bench(shell).0.reply("shellExec", r#"["x"]"#).unwrap_err();
            assert_eq!((error.code, error.message.to_string()), (code, "no".into()));
        }
    }
}
