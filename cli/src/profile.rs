//! `a99 run --profile FILE`: writes the profile of a run as a page, a picture or JSON.

pub(crate) mod page;
mod svg;

use crate::failure::Failure;
use agent99::Fuel;
use agent99::profiler::{Profile, ProfiledCall};
use agent99::{Agent, StackFrame};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Form of a profile, by the extension of its file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProfileForm {
    Html,
    Svg,
    /// The format of speedscope, `https://www.speedscope.app/file-format-schema.json`.
    Json,
}

impl ProfileForm {
    fn of(path: &Path) -> Option<ProfileForm> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(ProfileForm::Html),
            "svg" => Some(ProfileForm::Svg),
            "json" => Some(ProfileForm::Json),
            _ => None,
        }
    }
}

/// The form that the name of a file asks for.
pub(crate) fn form(path: &Path) -> Result<ProfileForm, Failure> {
    ProfileForm::of(path).ok_or_else(|| {
        let name = format!("--profile {}", path.display());
        let help = "name a file that ends in `.html`, `.svg` or `.json`";
        Failure::advised(&name, "the extension names no form of a profile", help)
    })
}

/// A run as it is shown.
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    /// The bytes that were compiled or loaded.
    pub(crate) text: &'a [u8],
    pub(crate) profile: &'a Profile,
    pub(crate) fuel: Fuel,
    /// Usage of tokens and money, as in the outcome.
    pub(crate) usage: Option<Json>,
}

impl Shown<'_> {
    pub(crate) fn write(&self, form: ProfileForm, agent: &Agent) -> String {
        let tree = Node::of(self.profile, self.name);
        match form {
            ProfileForm::Html => page::write(self, &tree, agent),
            ProfileForm::Svg => svg::flame(&tree, self.name),
            ProfileForm::Json => speedscope(self).to_string(),
        }
    }
}

/// The frames of a stack, outermost first: functions, and the step of the innermost.
fn names(stack: &[StackFrame], name: &str) -> Vec<String> {
    let helpers = stack
        .iter()
        .map(|frame| frame.helper().unwrap_or_else(|| name.to_owned()));
    let mut names: Vec<String> = helpers.collect();
    if let Some(last) = stack.last() {
        let line = line_of(stack).map_or(String::new(), |line| format!(" line {line}"));
        names.push(format!("{}{line}", last.op().unwrap_or_default()));
    }
    if names.is_empty() {
        names.push(name.to_owned());
    }
    names
}

/// A node of the flame graph.
#[derive(Default)]
struct Node {
    name: String,
    /// Fuel in micro-units and time, with those of the children.
    fuel: i64,
    time: Duration,
    children: BTreeMap<String, Node>,
}

impl Node {
    fn of(profile: &Profile, name: &str) -> Node {
        let mut root = Node {
            name: name.to_owned(),
            ..Node::default()
        };
        for (stack, spent) in &profile.stacks {
            let (fuel, time) = (spent.fuel.micro(), spent.time);
            let mut node = &mut root;
            (node.fuel, node.time) = (node.fuel + fuel, node.time + time);
            for name in names(stack, name).into_iter().skip(1) {
                node = node.children.entry(name.clone()).or_default();
                node.name = name;
                (node.fuel, node.time) = (node.fuel + fuel, node.time + time);
            }
        }
        root
    }
}

fn speedscope(shown: &Shown<'_>) -> Json {
    let mut frames: Vec<Json> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = |name: String, line: Option<(u32, u32)>| {
        *numbers.entry(name.clone()).or_insert_with(|| {
            let mut frame = json!({"name": name, "file": shown.name});
            if let Some((line, column)) = line {
                frame["line"] = line.into();
                frame["col"] = column.into();
            }
            frames.push(frame);
            frames.len() - 1
        })
    };
    let mut samples = Vec::new();
    for (stack, _) in &shown.profile.stacks {
        let place = stack.last().and_then(StackFrame::line_col);
        let names = names(stack, shown.name);
        let last = names.len() - 1;
        let names = names.into_iter().enumerate();
        let ids: Vec<usize> = names
            .map(|(at, name)| number(name, place.filter(|_| at == last)))
            .collect();
        samples.push(ids);
    }
    let spent = || shown.profile.stacks.iter().map(|(_, spent)| spent);
    let fuel: Vec<f64> = spent().map(|spent| spent.fuel.to_f64()).collect();
    let time: Vec<f64> = spent()
        .map(|spent| spent.time.as_secs_f64() * 1e6)
        .collect();
    let sampled = |name: &str, unit: &str, weights: Vec<f64>| {
        let end: f64 = weights.iter().sum();
        json!({"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": end,
            "samples": samples, "weights": weights})
    };
    let profiles = json!([
        sampled("fuel", "none", fuel),
        sampled("time", "microseconds", time)
    ]);
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("a99 ", env!("CARGO_PKG_VERSION")),
        "name": shown.name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
        "a99": {"fuelUsed": shown.fuel.to_f64(), "usage": shown.usage,
            "calls": shown.profile.calls.iter().map(call_json).collect::<Vec<_>>()},
    })
}

fn call_json(call: &ProfiledCall) -> Json {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let line = line_of(&call.stack);
    json!({"id": call.id, "atom": call.atom, "line": line, "began_ms": ms(call.began),
        "ended_ms": call.ended.map(ms), "failed": call.is_failed})
}

/// The line of a stack: that of the step of the innermost frame.
fn line_of(stack: &[StackFrame]) -> Option<u32> {
    let place = stack.last().and_then(StackFrame::line_col);
    place.map(|(line, _)| line)
}

/// Fuel and time of each line, by the step of the innermost frame.
fn lines(profile: &Profile) -> BTreeMap<u32, (i64, Duration)> {
    let mut lines: BTreeMap<u32, (i64, Duration)> = BTreeMap::new();
    for (stack, spent) in &profile.stacks {
        let of = lines.entry(line_of(stack).unwrap_or(0)).or_default();
        *of = (of.0 + spent.fuel.micro(), of.1 + spent.time);
    }
    lines
}

/// Text for HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | ' '.. => out.push(c),
            _ => out.push('\u{FFFD}'),
        }
    }
    out
}

/// A time with three digits.
fn time_text(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}
