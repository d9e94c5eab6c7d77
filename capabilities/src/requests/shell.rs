//! A computer of the host.

use super::{RequestHost, Requests};
use crate::{
    CapabilityError, Shell, ShellCommand, ShellError, ShellErrorKind, ShellOutput, ShellReply,
    ShellRequest,
};
use a99_core::value::{Map, Value};
use std::time::Duration;

/// Bytes as a text, with U+FFFD for what is no UTF-8.
fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn bytes(value: Option<&Value>) -> Vec<u8> {
    let text = value.and_then(Value::as_text);
    text.map_or_else(Vec::new, |text| text.as_bytes().to_vec())
}

/// A request as an object: `command` (a text, or a list of words), `cwd`, `env`, `stdin`,
/// `timeoutMs` and `outputLimit`, each if it is set.
fn request_value(request: &ShellRequest) -> Value {
    let texts = |all: &[String]| Value::Array(all.iter().map(|t| t.as_str().into()).collect());
    let mut map = Map::new();
    map.insert(
        "command",
        match &request.command {
            ShellCommand::Script(script) => script.as_str().into(),
            ShellCommand::Argv(argv) => texts(argv),
        },
    );
    if let Some(cwd) = &request.cwd {
        map.insert("cwd", cwd.as_str());
    }
    if !request.env.is_empty() {
        let pairs = request.env.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        map.insert("env", Value::Object(pairs.collect()));
    }
    if !request.stdin.is_empty() {
        map.insert("stdin", text(&request.stdin));
    }
    if let Some(timeout) = request.timeout {
        map.insert("timeoutMs", timeout.as_nanos() as f64 / 1e6);
    }
    map.insert("outputLimit", request.output_limit as f64);
    Value::Object(map)
}

impl<H: RequestHost> Requests<H> {
    fn shell<T>(
        &self,
        method: &'static str,
        args: Vec<Value>,
        read: impl FnOnce(Value) -> T + Send + 'static,
    ) -> ShellReply<'_, T> {
        let answer = self.ask(method, args);
        Box::pin(async move {
            let failed = |error: CapabilityError| -> ShellError {
                ShellError::new(ShellErrorKind::Failed, error.message)
            };
            answer.await.map(read).map_err(failed)
        })
    }
}

impl<H: RequestHost> Shell for Requests<H> {
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput> {
        self.shell("shell.exec", vec![request_value(&request)], |value| {
            let number = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            ShellOutput {
                stdout: bytes(value.get("stdout")),
                stderr: bytes(value.get("stderr")),
                exit_code: number("exitCode") as u8,
                elapsed: Duration::try_from_secs_f64(number("elapsedMs") / 1000.0)
                    .unwrap_or_default(),
                ..ShellOutput::default()
            }
        })
    }

    fn write_file(&self, path: String, content: Vec<u8>, mode: u32) -> ShellReply<'_, ()> {
        let args = vec![path.into(), text(&content), f64::from(mode).into()];
        self.shell("shell.writeFile", args, drop)
    }

    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>> {
        let args = vec![path.into(), (limit as f64).into()];
        self.shell("shell.readFile", args, |value| bytes(Some(&value)))
    }
}
