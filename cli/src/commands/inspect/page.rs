//! `a99 inspect --html FILE`: the source beside its bytecode.

use crate::profile::escaped;
use crate::profile::page::{MAX_LINES, STYLE, program_text};
use a99_core::disasm::listing;
use a99_core::fuel::Fuel;
use a99_core::program::Program;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of bytecode that are shown.
const MAX_INSTRUCTIONS: usize = 50_000;

/// Adds to the style of profiles.
const COLUMNS: &str = "\
body{max-width:none}table{width:max-content;min-width:100%}td{vertical-align:top}\
td.t,td.c,th.t{text-align:left;width:auto;white-space:pre}\
td.t{min-width:20em;max-width:36em;white-space:pre-wrap}\
td.c{color:color-mix(in srgb,currentColor 75%,transparent)}";

/// Writes the page. Bytecode that belongs to no line stands before the first.
pub(super) fn write(name: &str, program: &Program, bytes: &[u8]) -> String {
    let text = program_text(program, bytes);
    let listing = listing(program);
    let mut of_lines: BTreeMap<u32, (i64, String)> = BTreeMap::new();
    let all = listing.text.lines().zip(&listing.lines);
    for (text, (line, price)) in all.take(MAX_INSTRUCTIONS) {
        let of_line = of_lines.entry(line.unwrap_or(0)).or_default();
        of_line.0 = of_line.0.saturating_add(*price);
        if !text.is_empty() {
            of_line.1.push_str(text);
            of_line.1.push('\n');
        }
    }
    let name = escaped(name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Bytecode of {name}</title><style>{STYLE}{COLUMNS}</style>\n\
         <h1>Bytecode of {name}</h1>\n<p>Prices are fuel for one pass through all steps of the \
         line, at default prices and without what grows with data.</p>\n\
         <figure><table><tr><th>line</th><th class=\"t\">source</th><th>price</th>\
         <th class=\"t\">bytecode</th></tr>\n"
    );
    let rows = std::iter::once((0, "")).chain((1..).zip(text.lines().take(MAX_LINES)));
    for (number, line) in rows {
        let (price, code) = of_lines.remove(&number).unwrap_or_default();
        let price = match price {
            0 => String::new(),
            _ => Fuel::from_micro(price).to_string(),
        };
        let number = match number {
            0 => String::new(),
            _ => number.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<tr><td>{number}</td><td class=\"t\">{}</td><td>{price}</td>\
             <td class=\"c\">{}</td></tr>",
            escaped(line),
            escaped(code.trim_end())
        );
    }
    out.push_str("</table></figure>\n");
    let left = listing.lines.len().saturating_sub(MAX_INSTRUCTIONS);
    if left > 0 || !of_lines.is_empty() {
        let lines = of_lines.len();
        let _ = writeln!(
            out,
            "<p>The bytecode of {lines} lines after line {MAX_LINES} and {left} more lines of \
             bytecode are not shown: see `a99 inspect` without `--html`.</p>"
        );
    }
    out.push_str("</html>\n");
    out
}
