//! Configuration: what holds for a run, of the options and of `agent99.toml`.
//!
//! Options win over the file, the file over the defaults. A file that somebody else may
//! have put where it was found is not read, and one that nobody named is not asked for
//! secrets (security P08).

mod advice;

use crate::args::{ConfigArgs, KEYS, Key, Settings};
use crate::embed;
use crate::failure::{Failure, USAGE};
use crate::files::{CONFIGURATION as FILE, open_regular, read_bounded};
use crate::input::{self, STDIN};
use crate::models::{SECTION, Section};
use a99_core::diag::{LineIndex, excerpt};
use advice::{example, form_of, help_for, reason, syntax, unknown};
use clap::Parser;
use std::collections::HashMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The configuration file is not TOML.
const SYNTAX: &str = "config.syntax";
/// The configuration file has a key that there is none of.
const UNKNOWN_KEY: &str = "config.unknown_key";
/// The value of a key of the configuration file does not fit.
const BAD_VALUE: &str = "config.bad_value";

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Nobody says anything.
    Default,
    /// An option.
    Option,
    /// A line of the file.
    Line(usize),
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// Its path, as it is shown.
    pub name: String,
    /// Whether `--config` named it.
    named: bool,
    settings: Settings,
    /// Its section of language models.
    models: Option<Section>,
    lines: HashMap<&'static str, usize>,
    /// Line and column of each value.
    values: HashMap<&'static str, Vec<(u32, u32)>>,
}

/// What holds for a run.
#[derive(Debug)]
pub(crate) struct InForce {
    pub set: Settings,
    /// Language models, unless `llm` names one.
    pub models: Option<Section>,
    /// What should be known of it.
    pub warnings: Vec<String>,
    from: HashMap<&'static str, From>,
    file: Option<ConfigFile>,
}

impl InForce {
    /// The settings of these options, and of the file for this program.
    pub(crate) fn of(args: &ConfigArgs, program: Option<&Path>) -> Result<InForce, Failure> {
        let mut warnings = Vec::new();
        let file = match (&args.config, args.no_config) {
            (Some(path), _) => Some(ConfigFile::read(path, true)?),
            (None, true) => None,
            (None, false) => found(program, &mut warnings)
                .map(|path| ConfigFile::read(&path, false))
                .transpose()?,
        };
        let mut set = Settings::default();
        let mut from = HashMap::new();
        let mut refused = Vec::new();
        for key in KEYS {
            let said = |settings: &Settings| !key.shown(settings).is_empty();
            let line = file.as_ref().filter(|file| said(&file.settings));
            let source = match line {
                _ if said(&args.set) => {
                    key.take(&mut set, &args.set);
                    From::Option
                }
                Some(file) if key.is_private(&file.settings) && !file.named => {
                    refused.push(key.name);
                    From::Default
                }
                Some(file) => {
                    key.take(&mut set, &file.settings);
                    From::Line(file.lines.get(key.name).copied().unwrap_or(0))
                }
                None => From::Default,
            };
            from.insert(key.name, source);
        }
        let section = file.as_ref().and_then(|file| file.models.as_ref());
        let models = section.filter(|section| {
            let is_private = section.asks_for_keys() && file.as_ref().is_some_and(|f| !f.named);
            if is_private {
                refused.push(SECTION);
            }
            !is_private && set.llm.is_none()
        });
        let models = models.cloned();
        if let (Some(file), false) = (&file, refused.is_empty()) {
            warnings.push(format!(
                "`{}` of {} is not taken: what uses secrets needs `--config {}`",
                refused.join("`, `"),
                file.name,
                file.name
            ));
        }
        if set.allow.is_empty() {
            for (name, there) in [("ca", set.ca.is_some()), ("header", !set.header.is_empty())] {
                if there {
                    warnings.push(format!("`{name}` has no effect without `allow`"));
                }
            }
        }
        let mut config = InForce {
            set,
            models,
            warnings,
            from,
            file,
        };
        config.check_models()?;
        let headers = config.set.header.iter().map(|arg| arg.0.as_ref().err());
        let variables = config.set.env.iter().map(|arg| arg.0.as_ref().err());
        let first = |wrong: &mut dyn Iterator<Item = Option<&String>>| {
            wrong
                .enumerate()
                .find_map(|(at, wrong)| Some((at, wrong?.clone())))
        };
        for (name, wrong) in [
            ("header", first(&mut headers.into_iter())),
            ("env", first(&mut variables.into_iter())),
        ] {
            if let Some((at, why)) = wrong {
                return Err(config.wrong(name, at, why, form_of(name)));
            }
        }
        Ok(config)
    }

    /// Refuses what says of a model or an embedding less than is needed, or would send a key
    /// to an address that nobody vouched for.
    fn check_models(&mut self) -> Result<(), Failure> {
        let set = &self.set;
        let is_unnamed = |name: &str| {
            let unnamed = self.file.as_ref().is_some_and(|file| !file.named);
            unnamed && matches!(self.from.get(name), Some(From::Line(_)))
        };
        if set.llm.is_some() && set.model.is_none() {
            let help = "add the model to ask for, as in `--model llama3.2`";
            return Err(self.wrong("llm", 0, "it needs a model to ask for", help));
        }
        if set.llm_key_env.is_some() && is_unnamed("llm") {
            let why = "the key would go to an address of a file that was found";
            let help = "name the service, as in `--llm https://api.openai.com/v1`, or the file by \
                        `--config`";
            return Err(self.wrong("llm-key-env", 0, why, help));
        }
        let models = self.models.is_some();
        let alone = [
            (
                "embed-model",
                "embed",
                set.embed_model.is_some() && set.embed.is_none(),
            ),
            (
                "model",
                "llm",
                set.model.is_some() && set.llm.is_none() && !models,
            ),
            (
                "llm-key-env",
                "llm",
                set.llm_key_env.is_some() && set.llm.is_none(),
            ),
        ];
        for (name, of, _) in alone.into_iter().filter(|(_, _, alone)| *alone) {
            match self.from.get(name) {
                Some(From::Line(_)) => self
                    .warnings
                    .push(format!("`{name}` has no effect without `{of}`")),
                _ => {
                    let help = format!("add the service or folder, as in `--{of} {}`", example(of));
                    let why = format!("it is for `--{of}`, which is missing");
                    return Err(self.wrong(name, 0, why, help.replace('"', "")));
                }
            }
        }
        Ok(())
    }

    /// Where the setting comes from.
    pub(crate) fn from(&self, key: &Key) -> From {
        self.from.get(key.name).cloned().unwrap_or(From::Default)
    }

    /// The file that was read, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// What the file lets the program reach, for a line before the run.
    pub(crate) fn granted_by_file(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        let keys = KEYS.iter().filter(|key| key.grants);
        let keys = keys.filter(|key| matches!(self.from(key), From::Line(_)));
        let shown: Vec<String> = keys
            .map(|key| format!("{} = {}", key.name, key.shown(&self.set).join(", ")))
            .chain(
                self.models
                    .iter()
                    .map(|models| format!("[{SECTION}] {}", models.shown())),
            )
            .collect();
        (!shown.is_empty()).then(|| format!("{}: {}", file.name, shown.join("; ")))
    }

    /// A value of a setting as messages name it: by its option, or its place in the
    /// file.
    pub(crate) fn named(&self, name: &str, index: usize) -> String {
        match (self.from.get(name), &self.file) {
            (Some(From::Line(_)), Some(file)) => {
                let values = file.values.get(name);
                let (line, column) = values
                    .and_then(|values| values.get(index).copied())
                    .unwrap_or((1, 1));
                format!("{}:{line}:{column}: `{name}`", file.name)
            }
            _ => format!("--{name}"),
        }
    }

    /// Whether an option says it, and not a file.
    pub(crate) fn is_option(&self, name: &str) -> bool {
        matches!(self.from.get(name), Some(From::Option))
    }

    /// Whether a script, if it has what the setting grants, answers in its place: it does so
    /// for a file. An option and a script exclude each other.
    pub(crate) fn yields(&self, name: &str, scripted: bool) -> bool {
        scripted && !self.is_option(name)
    }

    /// What a run finds wrong with a value of a setting, and what helps.
    pub(crate) fn wrong(
        &self,
        name: &str,
        index: usize,
        why: impl fmt::Display,
        help: impl Into<String>,
    ) -> Failure {
        let code = match self.from.get(name) {
            Some(From::Line(_)) => BAD_VALUE,
            _ => USAGE[0],
        };
        Failure::coded(code, format!("{}: {why}", self.named(name, index)), help)
    }
}

/// The file for a program: in its folder or above, where the user's own files are; what
/// was passed by is told.
fn found(program: Option<&Path>, warnings: &mut Vec<String>) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let start = match program.filter(|program| *program != Path::new(STDIN)) {
        Some(program) => program.canonicalize().ok()?.parent()?.to_path_buf(),
        None => here.clone(),
    };
    for folder in start.ancestors() {
        let path = folder.join(FILE);
        if !path.is_file() {
            continue;
        }
        let why = match here.starts_with(folder) {
            false => Some("it lies beside a program that is not in the working folder"),
            true => strangers(&path, folder),
        };
        match why {
            // As the user would write it, where that is shorter.
            None if folder == here => return Some(FILE.into()),
            None => return Some(path),
            Some(why) => warnings.push(format!(
                "{path} is not read: {why}; `--config {path}` reads it",
                path = path.display()
            )),
        }
    }
    None
}

/// The file that [`InForce::of`] would find.
pub(crate) fn found_for(args: &ConfigArgs, program: &Path) -> Option<PathBuf> {
    match (&args.config, args.no_config) {
        (None, false) => found(Some(program), &mut Vec::new()),
        _ => None,
    }
}

/// Whether somebody else may have put the file there.
#[cfg(unix)]
fn strangers(path: &Path, folder: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(file) = path.metadata() else {
        return Some("it cannot be looked at");
    };
    // A process of the user's own belongs to the user; where that is not to be seen, the
    // folder must do.
    let me = Path::new("/proc/self")
        .metadata()
        .or_else(|_| folder.metadata());
    let Ok(me) = me else {
        return Some("it cannot be looked at");
    };
    if file.uid() != me.uid() && file.uid() != 0 {
        return Some("it belongs to somebody else");
    }
    let others = file.mode() & 0o002 != 0;
    let group = file.mode() & 0o020 != 0 && file.gid() != me.gid();
    (others || group).then_some("others may write to it")
}

#[cfg(not(unix))]
fn strangers(_: &Path, _: &Path) -> Option<&'static str> {
    None
}

/// Settings alone, as a command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Only {
    #[command(flatten)]
    set: Settings,
}

impl ConfigFile {
    fn read(path: &Path, named: bool) -> Result<ConfigFile, Failure> {
        let name = input::name_of(path);
        let text = text_of(path).map_err(|why| {
            let beside = path.parent().unwrap_or(Path::new("")).join(FILE);
            let help = match !path.exists() && beside.is_file() {
                true => format!("did you mean `{}`?", input::name_of(&beside)),
                false => "`--config FILE` names a file of `key = \"value\"` lines".to_owned(),
            };
            Failure::coded(USAGE[0], format!("{name}: {why}"), help)
        })?;
        let places = Places {
            name: &name,
            text: text.as_bytes(),
            index: LineIndex::new(text.as_bytes()),
        };
        let (table, errors) = DeTable::parse_recoverable(&text);
        let mut wrong: Mistakes = Vec::new();
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.lines().nth(places.line(at).saturating_sub(1));
            let line = line.unwrap_or_default();
            // One mistake makes several errors of its line.
            if wrong
                .last()
                .is_none_or(|(before, _)| places.line(*before) != places.line(at))
            {
                wrong.push((at, syntax(&places, at, error.message(), line)));
            }
        }
        // What was read beside a syntax error may be a part of something else.
        if !wrong.is_empty() {
            return Err(several(wrong));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut settings = Settings::default();
        let (mut lines, mut values) = (HashMap::new(), HashMap::new());
        let mut models = None;
        for (word, value) in table.get_ref() {
            let at = word.span().start;
            if word.get_ref() == SECTION {
                match Section::read(value) {
                    Ok(section) => models = Some(section),
                    Err((span, text, help)) => {
                        let at = span.map_or(at, |span| span.start);
                        let text = places.at(at, &format!("[{SECTION}]: {text}"));
                        wrong.push((at, Failure::coded(BAD_VALUE, text, help)));
                    }
                }
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| key.name == word.get_ref()) else {
                wrong.push((at, unknown(word.get_ref(), &places, (at, value))));
                continue;
            };
            let (one, starts) = match parse(key, value, &places) {
                Ok(read) => read,
                Err(failures) => {
                    wrong.extend(failures);
                    continue;
                }
            };
            key.take(&mut settings, &one);
            let starts = starts.into_iter().map(|at| places.place(at));
            values.insert(key.name, starts.collect());
            lines.insert(key.name, places.line(at));
        }
        if !wrong.is_empty() {
            return Err(several(wrong));
        }
        // Paths are those beside the file.
        settings.ca = settings.ca.map(|path| folder.join(path));
        settings.embed = settings.embed.map(|from| match embed::is_address(&from) {
            true => from,
            false => folder.join(from).display().to_string(),
        });
        let agents = settings.agent.into_iter();
        settings.agent = agents.map(|agent| agent.relative_to(folder)).collect();
        settings.store = settings.store.map(|place| place.relative_to(folder));
        for header in &mut settings.header {
            if let Ok(header) = &mut header.0 {
                header.relative_to(folder);
            }
        }
        Ok(ConfigFile {
            name,
            named,
            settings,
            models,
            lines,
            values,
        })
    }
}

/// KiB that a configuration file has at most.
const MAX_KIB: usize = 1024;

/// The text of a configuration file, or of standard input.
fn text_of(path: &Path) -> Result<String, String> {
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

/// What is wrong, each at its byte.
type Mistakes = Vec<(usize, Failure)>;

/// All that is wrong with a file, in its order.
fn several(mut wrong: Mistakes) -> Failure {
    wrong.sort_by_key(|(at, _)| *at);
    let mut all: Vec<Failure> = wrong.into_iter().map(|(_, failure)| failure).collect();
    match all.len() {
        1 => all.remove(0),
        _ => Failure::Several(all),
    }
}

/// The values of a key, as its option would read them, and where each starts.
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
                // What has a secret is not shown.
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

/// Places in the file.
struct Places<'a> {
    name: &'a str,
    text: &'a [u8],
    index: LineIndex,
}

impl Places<'_> {
    /// What is written there.
    fn written(&self, span: std::ops::Range<usize>) -> &str {
        let part = self.text.get(span).unwrap_or_default();
        std::str::from_utf8(part).unwrap_or_default()
    }

    fn place(&self, at: usize) -> (u32, u32) {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.index.line_col(self.text, at)
    }

    fn line(&self, at: usize) -> usize {
        self.place(at).0 as usize
    }

    /// A message about the place of this byte.
    fn at(&self, at: usize, message: &str) -> String {
        let (line, column) = self.place(at);
        format!("{}:{line}:{column}: {message}", self.name)
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Default => f.write_str("default"),
            From::Option => f.write_str("option"),
            From::Line(line) => write!(f, "line {line}"),
        }
    }
}
