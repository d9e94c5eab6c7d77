//! The trace as JSON lines, written while the run is in progress.

use crate::link::Executable;
use crate::trace::{TraceEvent, TraceSink, TraceStep};
use a99_core::costs::MICRO;
use a99_core::fuel::Fuel;
use a99_core::json::{write_json_number, write_json_string};
use a99_core::value::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of a write in bytes.
const BUFFER: usize = 64 << 10;

/// Bytes of step texts to cache across events.
const MAX_KEPT: usize = 8 << 20;

/// Programs whose step texts are cached: a program loaded at run time mostly runs once.
const MAX_PROGRAMS: usize = 8;

/// A sink that writes one event per line, in the format of [`TraceEvent::to_json`], with
/// `line` and `column` for a program in the source form. It keeps only the texts of steps.
///
/// ```
/// use a99_vm::{RunOptions, TraceLines};
/// use std::sync::Arc;
///
/// let lines = Arc::new(TraceLines::new(Vec::new()));
/// let options = RunOptions::new().trace_to(Arc::clone(&lines));
/// # drop(options);
/// lines.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TraceLines<W>(Mutex<Writer<W>>);

struct Writer<W> {
    to: W,
    buffer: Vec<u8>,
    error: Option<io::Error>,
    programs: Vec<Steps>,
    kept: usize,
    /// The last written time and its text.
    time: (f64, String),
}

/// The texts of a program's steps.
struct Steps {
    exe: Arc<Executable>,
    /// By function and step.
    texts: Vec<Vec<Option<StepText>>>,
}

/// The constant text of a step's events, before and after the variable parts.
#[derive(Clone)]
struct StepText {
    head: Arc<[u8]>,
    tail: Arc<[u8]>,
}

impl<W: Write + Send> TraceLines<W> {
    /// Creates a sink that writes to `to`.
    pub fn new(to: W) -> TraceLines<W> {
        TraceLines(Mutex::new(Writer {
            to,
            buffer: Vec::with_capacity(BUFFER + BUFFER / 4),
            error: None,
            programs: Vec::new(),
            kept: 0,
            time: (f64::NAN, String::new()),
        }))
    }

    fn writer(&self) -> MutexGuard<'_, Writer<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// The first error of writing; nothing was written after it.
    pub fn finish(&self) -> io::Result<()> {
        let mut writer = self.writer();
        writer.flush();
        match writer.error.take() {
            Some(error) => Err(error),
            None => writer.to.flush(),
        }
    }
}

impl<W: Write + Send> TraceSink for Arc<TraceLines<W>> {
    fn event(&self, event: &TraceEvent) {
        let mut writer = self.writer();
        let line = event.to_json().to_json_string();
        writer.buffer.extend_from_slice(line.as_bytes());
        writer.end_line();
    }

    fn step(&self, step: &TraceStep<'_>) {
        let mut writer = self.writer();
        if writer.error.is_none() {
            writer.step(step);
        }
    }
}

impl<W: Write> Writer<W> {
    fn step(&mut self, step: &TraceStep<'_>) {
        let text = self.text_of(step);
        let out = &mut self.buffer;
        out.extend_from_slice(b"{\"sequence\":");
        write_integer(step.sequence as i64, out);
        out.extend_from_slice(b",\"depth\":");
        write_integer(i64::from(step.depth), out);
        out.extend_from_slice(&text.head);
        out.extend_from_slice(b",\"stateDiff\":{");
        for (at, (name, value)) in step.state_diff.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_json_string(name.as_bytes(), out);
            out.push(b':');
            value.write_json(out);
        }
        out.push(b'}');
        if !step.result.is_undefined() {
            out.extend_from_slice(b",\"result\":");
            step.result.write_json(out);
        }
        if let Some(error) = step.error {
            out.extend_from_slice(b",\"error\":");
            write_json_string(error.as_bytes(), out);
        }
        out.extend_from_slice(b",\"fuelBefore\":");
        write_fuel(step.fuel_before, out);
        out.extend_from_slice(b",\"fuelAfter\":");
        write_fuel(step.fuel_after, out);
        out.extend_from_slice(b",\"timestamp\":\"");
        if self.time.0 != step.time {
            self.time = (step.time, a99_ecma::date::to_iso(step.time));
        }
        out.extend_from_slice(self.time.1.as_bytes());
        out.push(b'"');
        if !step.calls.is_empty() {
            let calls = step.calls.iter().map(crate::TraceCall::to_json);
            out.extend_from_slice(b",\"calls\":");
            Value::Array(calls.collect()).write_json(out);
        }
        out.extend_from_slice(&text.tail);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.to.write_all(&self.buffer)
        {
            self.error = Some(error);
        }
        self.buffer.clear();
        self.buffer.shrink_to(4 * BUFFER);
    }

    fn text_of(&mut self, step: &TraceStep<'_>) -> StepText {
        let found = self
            .programs
            .iter()
            .position(|one| Arc::ptr_eq(&one.exe, step.exe));
        let at = found.unwrap_or_else(|| {
            if self.programs.len() >= MAX_PROGRAMS {
                self.programs.clear();
                self.kept = 0;
            }
            let functions = &step.exe.program().functions;
            self.programs.push(Steps {
                exe: Arc::clone(step.exe),
                texts: functions
                    .iter()
                    .map(|f| vec![None; f.steps.len()])
                    .collect(),
            });
            self.programs.len() - 1
        });
        let texts = self.programs[at].texts.get_mut(step.function);
        let Some(kept) = texts.and_then(|texts| texts.get_mut(step.step as usize)) else {
            return text(step);
        };
        if let Some(kept) = kept {
            return kept.clone();
        }
        let made = text(step);
        let size = made.head.len() + made.tail.len();
        if self.kept + size <= MAX_KEPT {
            self.kept += size;
            *kept = Some(made.clone());
        }
        made
    }
}

/// The constant text of a step's events.
fn text(step: &TraceStep<'_>) -> StepText {
    let mut head = Vec::new();
    if let Some(pointer) = step.pointer() {
        head.extend_from_slice(b",\"pointer\":");
        write_json_string(pointer.as_bytes(), &mut head);
        if let Some(index) = crate::trace::index_of(&pointer) {
            head.extend_from_slice(b",\"index\":");
            write_integer(i64::from(index), &mut head);
        }
    }
    head.extend_from_slice(b",\"op\":");
    write_json_string(step.op(), &mut head);
    head.extend_from_slice(b",\"input\":");
    step.input().write_json(&mut head);
    let tail = match step.line_col() {
        Some((line, column)) => format!(",\"line\":{line},\"column\":{column}}}"),
        None => "}".to_owned(),
    };
    StepText {
        head: head.into(),
        tail: tail.into_bytes().into(),
    }
}

fn write_integer(number: i64, out: &mut Vec<u8>) {
    a99_ecma::number_text::write_integer(out, number);
}

/// Writes millionths as a decimal number: the shortest text of the number, up to 15 digits.
fn write_fuel(fuel: Fuel, out: &mut Vec<u8>) {
    let micro = fuel.micro();
    if !(0..1_000_000_000_000_000).contains(&micro) {
        return write_json_number(fuel.to_f64(), out);
    }
    write_integer(micro / MICRO, out);
    let mut rest = micro % MICRO;
    if rest > 0 {
        out.push(b'.');
    }
    let mut unit = MICRO;
    while rest > 0 {
        unit /= 10;
        out.push(b'0' + (rest / unit) as u8);
        rest %= unit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_is_written_as_the_number_is() {
        let powers = (0..18).map(|power| 10_i64.pow(power));
        let near = powers.flat_map(|power| [power - 1, power, power + 1, 7 * power, -power]);
        for micro in near.chain([0, 120_000, 1_000_010, 999_999_999_999_999, i64::MAX]) {
            let (mut ours, mut number) = (Vec::new(), Vec::new());
            let fuel = Fuel::from_micro(micro);
            write_fuel(fuel, &mut ours);
            write_json_number(fuel.to_f64(), &mut number);
            assert_eq!(ours, number, "{micro}");
        }
    }
}
