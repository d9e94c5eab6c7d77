//! Doctor: checks the system and the image, and names the commands that fix problems.
//!
//! It changes and fetches nothing. It reads the image in full, and starts a guest from it.

mod image;
mod system;

use super::cache::Cache;
use super::error::ImageError;
use super::machine::Machine;
use super::{Options, tools};

/// Name of the check of the cache folder, which comes first.
const CACHE: &str = "cache folder";

/// Result of a check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The check found no problem.
    Ok,
    /// Guests run, but a part is missing or will take longer.
    Warning,
    /// Guests cannot run, or cannot be built.
    Error,
}

impl Status {
    /// Returns the status as text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Error => "problem",
        }
    }
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the check, which never changes.
    pub check: &'static str,
    /// Result of the check.
    pub status: Status,
    /// Description of the finding.
    pub text: String,
    /// Remedy, if one is known.
    pub help: Option<String>,
}

impl Diagnostic {
    fn new(check: &'static str, status: Status, text: impl Into<String>) -> Diagnostic {
        Diagnostic {
            check,
            status,
            text: text.into(),
            help: None,
        }
    }

    fn ok(check: &'static str, text: impl Into<String>) -> Diagnostic {
        Diagnostic::new(check, Status::Ok, text)
    }

    fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Turns a failure into a diagnostic.
    fn of(check: &'static str, status: Status, error: &ImageError) -> Diagnostic {
        let text = format!(
            "{}: {} ({})",
            error.subject,
            error.reason,
            error.code.name()
        );
        Diagnostic {
            help: error.help.clone(),
            ..Diagnostic::new(check, status, text)
        }
    }
}

/// Runs all checks; an unusable cache becomes a diagnostic.
pub fn examine(
    cache: Result<Cache, ImageError>,
    options: &Options,
    machine: &dyn Machine,
) -> Vec<Diagnostic> {
    let cache = match cache {
        Ok(cache) => cache,
        Err(error) => {
            return vec![
                Diagnostic::of(CACHE, Status::Error, &error),
                build_tools(Status::Warning),
            ];
        }
    };
    let root = cache.root();
    let mut diagnostics = vec![Diagnostic::ok(CACHE, root.display().to_string())];
    let state = image::state(&cache, machine, &mut diagnostics);
    if let image::State::Built = state {
        diagnostics.push(image::freshness(&cache, options, machine));
    }
    // A user who has an image needs no build tools.
    let severity = match state {
        image::State::Missing => Status::Error,
        image::State::Built | image::State::Imported => Status::Warning,
    };
    diagnostics.push(build_tools(severity));
    diagnostics.extend(system::checks(root));
    diagnostics
}

/// Checks whether an image can be built here.
fn build_tools(severity: Status) -> Diagnostic {
    let check = "build tools";
    if !super::apt::exists() {
        return Diagnostic::of(check, severity, &tools::no_apt());
    }
    let missing = tools::missing();
    match missing.is_empty() {
        true => Diagnostic::ok(check, "all there"),
        false => Diagnostic::new(check, severity, format!("missing: {}", missing.join(" ")))
            .help(tools::install_command(&missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_their_code_and_advice() {
        let diagnostic = Diagnostic::of("build tools", Status::Error, &tools::no_apt());
        assert!(diagnostic.text.contains("image.no_apt"), "{diagnostic:?}");
        assert!(diagnostic.help.unwrap().contains("image import"));
    }

    #[test]
    fn missing_tools_matter_only_where_there_is_no_image() {
        for severity in [Status::Warning, Status::Error] {
            let diagnostic = build_tools(severity);
            assert!([Status::Ok, severity].contains(&diagnostic.status));
            assert_eq!(diagnostic.help.is_none(), diagnostic.status == Status::Ok);
        }
    }
}
