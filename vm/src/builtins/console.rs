//! Writes lines to the console of a run.

use crate::console::{LINE_BYTES, MAX_LINE};
use crate::convert::{BoundaryLimits, cut};
use crate::heap::{Heap, Val};
use crate::native::{Cx, Fault};
use a99_core::json::write_json_string;
use a99_core::text::Text;
use a99_run::events::{LogLevel, LogLine};

/// Maximum depth of lists and objects that a line shows.
const MAX_DEPTH: usize = 8;

impl Cx<'_> {
    /// Writes a line with these values to the run's console, as `console.log` does.
    ///
    /// # Errors
    /// The run has too little memory, or must stop.
    pub fn log(&mut self, level: LogLevel, args: &[Val]) -> Result<(), Fault> {
        log(self, level, args).map(|_| ())
    }
}

/// Writes a line with these values. They are paid before; after the line is written, no step
/// fails.
pub(crate) fn log(cx: &mut Cx<'_>, level: LogLevel, args: &[Val]) -> Result<Val, Fault> {
    let mut out = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        match arg {
            Val::Str(s) => {
                let bytes = cx.heap.bytes(*s);
                // Room for the rest of a character at the end.
                let room = (MAX_LINE + 4).saturating_sub(out.len());
                out.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            other => show(cx.heap, *other, MAX_DEPTH, &mut out),
        }
        if out.len() >= MAX_LINE {
            break;
        }
    }
    if out.len() >= MAX_LINE {
        let limits = BoundaryLimits {
            max_bytes: MAX_LINE,
            ..BoundaryLimits::default()
        };
        out.truncate(cut(&out, &limits).len());
        out.extend_from_slice("…".as_bytes());
    }
    cx.work(out.len() as i64 / 4)?;
    let text = Text::from(a99_core::text::wtf8_to_string_lossy(&out).into_owned());
    cx.heap.add_external(text.len_bytes() + LINE_BYTES)?;
    cx.heap.console.push(LogLine { level, text });
    Ok(Val::Undefined)
}

/// Writes a value as JSON, within the limits of room and depth.
fn show(heap: &Heap, val: Val, depth: usize, out: &mut Vec<u8>) {
    if out.len() >= MAX_LINE {
        return;
    }
    match val {
        Val::Undefined | Val::Unbound => out.extend_from_slice(b"undefined"),
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        Val::Num(n) => {
            out.extend_from_slice(a99_ecma::number_text::number_to_string(n).as_bytes());
        }
        Val::Str(s) => {
            let bytes = heap.bytes(s);
            write_json_string(&bytes[..bytes.len().min(MAX_LINE)], out);
        }
        Val::Date(r) => out.extend_from_slice(a99_ecma::date::to_iso(heap.date_ms(r)).as_bytes()),
        Val::Builtin(_) => out.extend_from_slice(b"[function]"),
        Val::Map(r) => {
            let text = format!("Map({})", heap.map_len(r));
            out.extend_from_slice(text.as_bytes());
        }
        Val::Arr(_) | Val::Set(_) | Val::Obj(_) if depth == 0 => {
            out.extend_from_slice("…".as_bytes());
        }
        Val::Arr(r) | Val::Set(r) => {
            out.push(b'[');
            for (at, item) in heap.items(r).iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                show(heap, *item, depth - 1, out);
                if out.len() >= MAX_LINE {
                    return;
                }
            }
            out.push(b']');
        }
        Val::Obj(r) => {
            out.push(b'{');
            for (at, (key, item)) in heap.entries(r).enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                let name = heap.shapes.key_text(key);
                write_json_string(&name[..name.len().min(MAX_LINE)], out);
                out.push(b':');
                show(heap, item, depth - 1, out);
                if out.len() >= MAX_LINE {
                    return;
                }
            }
            out.push(b'}');
        }
    }
}
