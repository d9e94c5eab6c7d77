//! Effective configuration of a run, from options and `agent99.toml`.
//!
//! Options win over the file, the file over the defaults. A file that another user may have placed
//! is not read, and a file that was found and not named sends no secrets (security P08).

mod advice;
pub(crate) mod file;
pub(crate) mod models;

use crate::args::{ConfigArgs, KEYS, Key, Settings};
use crate::failure::{Failure, USAGE};
use crate::files::CONFIGURATION as FILE;
use crate::input::STDIN;
use advice::{example, form_of};
pub(crate) use file::ConfigFile;
use models::{SECTION, Section};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The configuration file is not TOML.
pub(crate) const SYNTAX: &str = "config.syntax";
/// The configuration file has an unknown key.
pub(crate) const UNKNOWN_KEY: &str = "config.unknown_key";
/// The value of a key in the configuration file is invalid.
pub(crate) const BAD_VALUE: &str = "config.bad_value";

/// Source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Default,
    Option,
    Line(usize),
}

/// The effective settings of a run.
#[derive(Debug)]
pub(crate) struct EffectiveConfig {
    pub set: Settings,
    /// Language models, unless `llm` names one.
    pub models: Option<Section>,
    pub warnings: Vec<String>,
    from: HashMap<&'static str, From>,
    file: Option<ConfigFile>,
}

impl EffectiveConfig {
    /// Merges these options with the file found for this program.
    pub(crate) fn of(
        args: &ConfigArgs,
        program: Option<&Path>,
    ) -> Result<EffectiveConfig, Failure> {
        let mut warnings = Vec::new();
        let file = match (&args.config, args.no_config) {
            (Some(path), _) => Some(ConfigFile::read(path, true)?),
            (None, true) => None,
            (None, false) => found(program, &mut warnings)
                .map(|path| ConfigFile::read(&path, false))
                .transpose()?,
        };
        EffectiveConfig::of_file(&args.set, file, warnings)
    }

    /// Merges these options with this file.
    pub(crate) fn of_file(
        options: &Settings,
        file: Option<ConfigFile>,
        mut warnings: Vec<String>,
    ) -> Result<EffectiveConfig, Failure> {
        let mut set = Settings::default();
        let mut from = HashMap::new();
        let mut refused = Vec::new();
        for key in KEYS {
            let said = |settings: &Settings| !key.shown(settings).is_empty();
            let line = file.as_ref().filter(|file| said(&file.settings));
            let source = match line {
                _ if said(options) => {
                    key.take(&mut set, options);
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
                "`{}` of {} is not taken: what uses secrets, or decides who gets them, needs \
                 `--config {}`",
                refused.join("`, `"),
                file.name,
                file.name
            ));
        }
        let embeds = set.embed.as_deref().is_some_and(crate::address::is_address);
        let reaches = !set.allow.is_empty() || set.llm.is_some() || models.is_some() || embeds;
        if !reaches {
            for (name, there) in [("ca", set.ca.is_some()), ("header", !set.header.is_empty())] {
                if there {
                    let without = "`allow`, `llm`, `[models]` or the address of an `embed`";
                    warnings.push(format!("`{name}` has no effect without {without}"));
                }
            }
        }
        let mut config = EffectiveConfig {
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

    /// Refuses an incomplete model or embedding, and one that would send a key to an address of a
    /// file that `--config` did not name.
    fn check_models(&mut self) -> Result<(), Failure> {
        let set = &self.set;
        let is_unnamed = |name: &str| {
            let unnamed = self.file.as_ref().is_some_and(|file| !file.named);
            unnamed && matches!(self.from.get(name), Some(From::Line(_)))
        };
        if set.llm.is_some() && set.model.is_none() {
            if let Some(model) = set
                .llm
                .as_deref()
                .filter(|url| !url.contains(['/', ':', '.']))
            {
                let why = format!("`{model}` is no address of a service");
                let help =
                    format!("write both, as in `--llm http://localhost:11434/v1 --model {model}`");
                return Err(self.wrong("llm", 0, &why, &help));
            }
            let help = "add the model to ask for, as in `--model llama3.2`";
            return Err(self.wrong("llm", 0, "it needs a model to ask for", help));
        }
        for (name, url) in [("llm", &set.llm), ("embed", &set.embed)] {
            // Messages, logs and `a99 config` show URLs.
            if url.as_deref().is_some_and(crate::address::has_login) {
                let why = "an address has no user and no password in it";
                let help = "send a key by `--llm-key-env VARIABLE` or `--header`";
                return Err(self.wrong(name, 0, why, help));
            }
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

    pub(crate) fn from(&self, key: &Key) -> From {
        self.from.get(key.name).cloned().unwrap_or(From::Default)
    }

    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// Network grants of the file: its name, and settings with their values.
    pub(crate) fn granted_by_file(&self) -> Option<(&str, Vec<(&'static str, String)>)> {
        let file = self.file.as_ref()?;
        let keys = KEYS.iter().filter(|key| key.grants);
        let keys = keys.filter(|key| matches!(self.from(key), From::Line(_)));
        let models = self.models.iter();
        let shown: Vec<_> = keys
            .map(|key| (key.name, key.shown(&self.set).join(", ")))
            .chain(models.map(|models| (SECTION, models.shown())))
            .collect();
        (!shown.is_empty()).then_some((&file.name, shown))
    }

    /// A setting's value as messages name it: by its option, or its position in the file.
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

    /// Whether an option sets it, and not a file.
    pub(crate) fn is_option(&self, name: &str) -> bool {
        matches!(self.from.get(name), Some(From::Option))
    }

    /// Whether a script's answers replace this setting. They do for a setting of a file; an option
    /// and a script exclude each other.
    pub(crate) fn yields(&self, name: &str, scripted: bool) -> bool {
        scripted && !self.is_option(name)
    }

    /// The failure of a setting's value that a run refuses, with help.
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

/// Finds the file for a program: in its folder or above. Only trusted places count; a skipped file
/// gives a warning.
fn found(program: Option<&Path>, warnings: &mut Vec<String>) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let start = match program.filter(|program| *program != Path::new(STDIN)) {
        Some(program) => program.canonicalize().ok()?.parent()?.to_path_buf(),
        None => here.clone(),
    };
    for folder in start.ancestors() {
        let path = folder.join(FILE);
        if !path.is_file() && !path.is_symlink() {
            continue;
        }
        let why = match here.starts_with(folder) {
            false => Some("it lies beside a program that is not in the working folder"),
            true => strangers(&path, folder),
        };
        match why {
            // Use the shorter form that the user would write.
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

/// The file that [`EffectiveConfig::of`] would find.
pub(crate) fn found_for(args: &ConfigArgs, program: &Path) -> Option<PathBuf> {
    match (&args.config, args.no_config) {
        (None, false) => found(Some(program), &mut Vec::new()),
        _ => None,
    }
}

/// Why another user may have placed the file. It and its folder must belong to the user or root,
/// and only the user and the user's group may write them. The owner of a link proves nothing.
#[cfg(unix)]
fn strangers(path: &Path, folder: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(file), Ok(within)) = (path.symlink_metadata(), folder.metadata()) else {
        return Some("it cannot be looked at");
    };
    if file.is_symlink() {
        return Some("it is a link");
    }
    // `/proc/self` belongs to the user; without it, use the folder's owner.
    let me = Path::new("/proc/self").metadata();
    let me = me.as_ref().unwrap_or(&within);
    let is_foreign = |of: &std::fs::Metadata| of.uid() != me.uid() && of.uid() != 0;
    let is_open = |of: &std::fs::Metadata| {
        of.mode() & 0o002 != 0 || of.mode() & 0o020 != 0 && of.gid() != me.gid()
    };
    // A sticky folder protects files of others from removal, but not from new hard links.
    let is_kept = within.mode() & 0o1000 != 0 && file.nlink() == 1;
    match () {
        () if is_foreign(&file) => Some("it belongs to somebody else"),
        () if is_open(&file) => Some("others may write to it"),
        () if is_foreign(&within) => Some("its folder belongs to somebody else"),
        () if is_open(&within) && !is_kept => Some("others may write to its folder"),
        () => None,
    }
}

#[cfg(not(unix))]
fn strangers(_: &Path, _: &Path) -> Option<&'static str> {
    None
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
