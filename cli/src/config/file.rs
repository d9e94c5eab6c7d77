//! Configuration file: its text, its positions, and the values of its keys.

use super::advice::{example, help_for, reason, syntax, unknown};
use super::models::{SECTION, Section};
use super::{BAD_VALUE, FILE};
use crate::address::is_address;
use crate::args::{KEYS, Key, Settings};
use crate::failure::{Failure, USAGE};
use crate::files::{open_regular, read_bounded};
use crate::input::{self, STDIN};
use a99_core::diag::{LineIndex, excerpt};
use clap::Parser;
use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration file after reading.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// Path for messages.
    pub name: String,
    pub(super) named: bool,
    pub(super) settings: Settings,
    /// The section of language models.
    pub(super) models: Option<Section>,
    pub(super) lines: HashMap<&'static str, usize>,
    /// Line and column of each value.
    pub(super) values: HashMap<&'static str, Vec<(u32, u32)>>,
}

/// The settings alone as a clap command, to parse values.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Only {
    #[command(flatten)]
    set: Settings,
}

impl ConfigFile {
    pub(super) fn read(path: &Path, named: bool) -> Result<ConfigFile, Failure> {
        let name = input::name_of(path);
        let text = text_of(path).map_err(|why| {
            let beside = path.parent().unwrap_or(Path::new("")).join(FILE);
            let help = match !path.exists() && beside.is_file() {
                true => format!("did you mean `{}`?", input::name_of(&beside)),
                false => "`--config FILE` names a file of `key = \"value\"` lines".to_owned(),
            };
            Failure::coded(USAGE[0], format!("{name}: {why}"), help)
        })?;
        let places = Places::of(&name, &text);
        let table = table_of(&text, &places)?;
        let mut reading = Reading::new(&places, named);
        for (word, value) in table.get_ref() {
            let at = word.span().start;
            if word.get_ref() == SECTION {
                reading.take_models(at, value);
                continue;
            }
            match KEYS.iter().find(|key| key.name == word.get_ref()) {
                Some(key) => reading.take(key, at, value),
                None => {
                    let failure = unknown(word.get_ref(), &places, (at, value));
                    reading.wrong.push((at, failure));
                }
            }
        }
        if !reading.wrong.is_empty() {
            return Err(several(reading.wrong));
        }
        Ok(reading.end(path.parent().unwrap_or(Path::new(""))))
    }
}

/// Reads the settings of a table, one after the other.
pub(crate) struct Reading<'p> {
    places: &'p Places<'p>,
    file: ConfigFile,
    /// Mistakes found until now.
    pub wrong: Mistakes,
}

impl<'p> Reading<'p> {
    pub(crate) fn new(places: &'p Places<'p>, named: bool) -> Reading<'p> {
        Reading {
            places,
            file: ConfigFile {
                name: places.name.to_owned(),
                named,
                settings: Settings::default(),
                models: None,
                lines: HashMap::new(),
                values: HashMap::new(),
            },
            wrong: Vec::new(),
        }
    }

    pub(crate) fn take_models(&mut self, at: usize, value: &Spanned<DeValue<'_>>) {
        match Section::read(value) {
            Ok(section) => self.file.models = Some(section),
            Err((span, text, help)) => {
                let at = span.map_or(at, |span| span.start);
                let text = self.places.at(at, &format!("[{SECTION}]: {text}"));
                self.wrong.push((at, Failure::coded(BAD_VALUE, text, help)));
            }
        }
    }

    pub(crate) fn take(&mut self, key: &'static Key, at: usize, value: &Spanned<DeValue<'_>>) {
        let (one, starts) = match parse(key, value, self.places) {
            Ok(read) => read,
            Err(failures) => return self.wrong.extend(failures),
        };
        key.take(&mut self.file.settings, &one);
        let starts = starts.into_iter().map(|at| self.places.place(at));
        self.file.values.insert(key.name, starts.collect());
        self.file.lines.insert(key.name, self.places.line(at));
    }

    /// The file with all values; its relative paths are in this folder.
    pub(crate) fn end(self, folder: &Path) -> ConfigFile {
        let mut file = self.file;
        let settings = &mut file.settings;
        settings.ca = settings.ca.take().map(|path| folder.join(path));
        let embed = settings.embed.take();
        settings.embed = embed.map(|from| match is_address(&from) {
            true => from,
            false => folder.join(from).display().to_string(),
        });
        let agents = std::mem::take(&mut settings.agent).into_iter();
        settings.agent = agents.map(|agent| agent.relative_to(folder)).collect();
        let store = settings.store.take();
        settings.store = store.map(|place| place.relative_to(folder));
        for header in &mut settings.header {
            if let Ok(header) = &mut header.0 {
                header.relative_to(folder);
            }
        }
        file
    }
}

/// Parses a TOML text.
///
/// # Errors
/// All syntax errors.
pub(crate) fn table_of<'t>(
    text: &'t str,
    places: &Places<'_>,
) -> Result<Spanned<DeTable<'t>>, Failure> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut wrong: Mistakes = Vec::new();
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.lines().nth(places.line(at).saturating_sub(1));
        let line = line.unwrap_or_default();
        // Report one error a line: one mistake causes several.
        if wrong
            .last()
            .is_none_or(|(before, _)| places.line(*before) != places.line(at))
        {
            wrong.push((at, syntax(places, at, error.message(), line)));
        }
    }
    // Values read beside a syntax error may be part of another value.
    match wrong.is_empty() {
        true => Ok(table),
        false => Err(several(wrong)),
    }
}

/// Size limit of a configuration file, in KiB.
const MAX_KIB: usize = 1024;

/// The text of a configuration file, or of standard input.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    if path != Path::new(STDIN) {
        return read_bounded(open_regular(path)?, MAX_KIB);
    }
    let mut text = String::new();
    let most = (MAX_KIB << 10) as u64 + 1;
    let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
    match read.map_err(|error| error.to_string())? as u64 == most {
        true => Err(format!("it has more than {MAX_KIB} KiB")),
        false => Ok(text),
    }
}

/// Failures with their byte offsets.
pub(crate) type Mistakes = Vec<(usize, Failure)>;

/// One failure of all mistakes of a file, in its order.
pub(crate) fn several(mut wrong: Mistakes) -> Failure {
    wrong.sort_by_key(|(at, _)| *at);
    let mut all: Vec<Failure> = wrong.into_iter().map(|(_, failure)| failure).collect();
    match all.len() {
        1 => all.remove(0),
        _ => Failure::Several(all),
    }
}

/// The values of a key as its option would parse them, with the offset of each.
fn parse(
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    places: &Places<'_>,
) -> Result<(Settings, Vec<usize>), Mistakes> {
    let name = key.name;
    let wrong = |at: usize, text: &str, help: String| {
        let text = places.at(at, &format!("`{name}`: {text}"));
        (at, Failure::coded(BAD_VALUE, text, help))
    };
    let mut found = Vec::new();
    let parts: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
        DeValue::Array(all) => all.iter().collect(),
        _ => vec![value],
    };
    let mut words = Vec::new();
    for part in parts {
        let at = part.span().start;
        let word = match part.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix())
            {
                Ok(number) => number.to_string(),
                Err(_) => number.to_string(),
            },
            DeValue::Float(number) => number.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => {
                // A secret is not shown.
                let shown = match key.may_hold_secret() {
                    true => "something else".to_owned(),
                    false => format!("`{}`", excerpt(places.written(part.span()))),
                };
                let help = match part.get_ref() {
                    DeValue::Table(_) if name == "model" || name == "llm" => {
                        format!("language models have a section: write `[{SECTION}.services.NAME]`")
                    }
                    DeValue::Table(table) if !key.may_hold_secret() => {
                        let pairs = table.iter().map(|(op, value)| {
                            let value = places.written(value.span());
                            format!("\"{}={}\"", op.get_ref(), value.trim_matches('"'))
                        });
                        let pairs: Vec<String> = pairs.collect();
                        format!(
                            "write a list of texts: `{name} = [{}]`",
                            excerpt(&pairs.join(", "))
                        )
                    }
                    _ => format!(
                        "write it as the option has it, as in `{name} = {}`",
                        example(name)
                    ),
                };
                let text = format!("expected a text, a number, or a list of them, found {shown}");
                found.push(wrong(at, &text, help));
                continue;
            }
        };
        words.push((at, format!("--{name}={word}")));
    }
    for (at, word) in &words {
        if let Err(error) = Only::try_parse_from([word]) {
            found.push(wrong(*at, &reason(&error), help_for(name, &error)));
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let at = value.span().start;
    let starts = words.iter().map(|(at, _)| *at).collect();
    let all = Only::try_parse_from(words.into_iter().map(|(_, word)| word));
    let all = all.map_err(|_| {
        let help = format!("write `{name} = {}`", example(name));
        vec![wrong(at, "it has one value, not several", help)]
    })?;
    Ok((all.set, starts))
}

/// Maps byte offsets of a text to lines and columns.
pub(crate) struct Places<'a> {
    name: &'a str,
    text: &'a [u8],
    index: LineIndex,
}

impl<'a> Places<'a> {
    pub(crate) fn of(name: &'a str, text: &'a str) -> Places<'a> {
        Places {
            name,
            text: text.as_bytes(),
            index: LineIndex::new(text.as_bytes()),
        }
    }

    /// The text of a span.
    pub(crate) fn written(&self, span: std::ops::Range<usize>) -> &str {
        let part = self.text.get(span).unwrap_or_default();
        std::str::from_utf8(part).unwrap_or_default()
    }

    pub(crate) fn place(&self, at: usize) -> (u32, u32) {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.index.line_col(self.text, at)
    }

    pub(crate) fn line(&self, at: usize) -> usize {
        self.place(at).0 as usize
    }

    /// A message that begins with the line and column of this byte.
    pub(crate) fn at(&self, at: usize, message: &str) -> String {
        let (line, column) = self.place(at);
        format!("{}:{line}:{column}: {message}", self.name)
    }
}
