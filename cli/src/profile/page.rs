//! A profile as a page that needs nothing else.

use super::{Node, Shown, escaped, line_of, lines, svg, time_text};
use a99_core::costs::MICRO;
use a99_core::program::Program;
use agent99::Agent;
use agent99::artifact::MAGIC;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// Lines of the source that are shown.
pub(crate) const MAX_LINES: usize = 5_000;

/// Calls that are shown.
const MAX_CALLS: usize = 500;

pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark;--bar:#f4a261;--line:#8884}\
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1100px;padding:0 1rem;overflow-wrap:anywhere}\
h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%;font:12px/1.5 ui-monospace,monospace}\
td,th{padding:0 .6em;text-align:right;white-space:pre;border-bottom:1px solid var(--line)}\
td.t{text-align:left;width:100%;overflow-wrap:anywhere;white-space:pre-wrap}\
tr.hot td{background:color-mix(in srgb,var(--bar) calc(var(--h)*60%),transparent)}\
.facts{display:flex;flex-wrap:wrap;gap:.5rem 2rem}.facts b{display:block;font-size:1.1rem}\
.lane{position:relative;height:20px;border-bottom:1px solid var(--line)}\
.lane span{position:absolute;top:3px;height:14px;background:#84a59d;min-width:2px}\
.lane span.f{background:#d1495b}.lane i{position:absolute;font:11px/20px monospace;left:0;z-index:1}\
figure{margin:0;overflow-x:auto}";

pub(super) fn write(shown: &Shown<'_>, tree: &Node, agent: &Agent) -> String {
    let profile = shown.profile;
    let name = escaped(shown.name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Profile of {name}</title><style>{STYLE}</style>\n<h1>Profile of {name}</h1>\n"
    );
    let computing: Duration = profile.stacks.iter().map(|(_, spent)| spent.time).sum();
    let mut facts = vec![
        ("fuel", format!("{:.4}", shown.fuel.to_f64())),
        ("time", time_text(profile.time)),
        ("computing", time_text(computing)),
        (
            "calls",
            (profile.calls.len() as u64 + profile.more_calls).to_string(),
        ),
        ("samples", profile.looks.to_string()),
    ];
    let usage = shown.usage.as_ref().and_then(|usage| usage.as_object());
    let usage = usage
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    let usage: Vec<(String, String)> = usage
        .map(|(name, value)| (name.replace('_', " "), value.to_string()))
        .collect();
    facts.extend(
        usage
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    out.push_str("<div class=\"facts\">");
    for (what, value) in facts {
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            out,
            "<div>{}<b>{}</b></div>",
            escaped(what),
            escaped(&value)
        );
    }
    out.push_str("</div>\n<h2>Fuel by function and step</h2>\n<figure>");
    out.push_str(&svg::flame(tree, shown.name));
    out.push_str("</figure>\n");
    calls(shown, &mut out);
    source(shown, agent, &mut out);
    out.push_str("</html>\n");
    out
}

/// The calls on a time line.
fn calls(shown: &Shown<'_>, out: &mut String) {
    let profile = shown.profile;
    if profile.calls.is_empty() {
        return;
    }
    let whole = profile.time.as_secs_f64().max(1e-9);
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / whole;
    out.push_str("<h2>Calls</h2>\n");
    for call in profile.calls.iter().take(MAX_CALLS) {
        let ended = call.ended.unwrap_or(profile.time);
        let took = ended.saturating_sub(call.began);
        let line = line_of(&call.stack).map_or(String::new(), |line| format!(" line {line}"));
        let state = match (call.is_failed, call.ended) {
            (true, _) => " failed",
            (false, None) => " unanswered",
            (false, Some(_)) => "",
        };
        let text = escaped(&format!(
            "{} {}{line}, {}{state}",
            call.id,
            call.atom,
            time_text(took)
        ));
        let _ = writeln!(
            out,
            "<div class=\"lane\" title=\"{text}\"><i>{text}</i><span{} style=\"left:{:.3}%;\
             width:{:.3}%\"></span></div>",
            if call.is_failed { " class=\"f\"" } else { "" },
            percent(call.began),
            percent(took),
        );
    }
    let left = profile.calls.len().saturating_sub(MAX_CALLS) as u64 + profile.more_calls;
    if left > 0 {
        let _ = writeln!(out, "<p>{left} more calls are not shown.</p>");
    }
}

/// The text of a program. An artifact has the text that it was compiled from.
pub(crate) fn program_text<'a>(program: &'a Program, bytes: &'a [u8]) -> Cow<'a, str> {
    let text = match bytes.starts_with(&MAGIC[..5]) {
        true => match program.source.origin() {
            Some((text, _)) => Cow::Borrowed(text),
            None => program.source.text().unwrap_or_default(),
        },
        false => Cow::Borrowed(bytes),
    };
    match text {
        Cow::Borrowed(text) => String::from_utf8_lossy(text),
        Cow::Owned(text) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
    }
}

/// The source with fuel and time of each line.
fn source(shown: &Shown<'_>, agent: &Agent, out: &mut String) {
    let lines = lines(shown.profile);
    let total = shown.fuel.micro().max(1);
    out.push_str(
        "<h2>Lines</h2>\n<table><tr><th>fuel</th><th>%</th><th>time</th><th>line</th>\
         <th class=\"t\"></th></tr>\n",
    );
    let text = program_text(agent.artifact().program(), shown.text);
    for (number, line) in (1..).zip(text.lines()).take(MAX_LINES) {
        let (fuel, time) = lines.get(&number).copied().unwrap_or_default();
        let share = fuel as f64 / total as f64;
        let (fuel, percent, time) = match fuel {
            0 => (String::new(), String::new(), String::new()),
            _ => (
                format!("{:.4}", fuel as f64 / MICRO as f64),
                format!("{:.1}", 100.0 * share),
                time_text(time),
            ),
        };
        let hot = match share > 0.001 {
            true => format!(" class=\"hot\" style=\"--h:{share:.3}\""),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "<tr{hot}><td>{fuel}</td><td>{percent}</td><td>{time}</td><td>{number}</td>\
             <td class=\"t\">{}</td></tr>",
            escaped(line)
        );
    }
    out.push_str("</table>\n");
}
