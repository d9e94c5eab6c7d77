//! What is there and what is missing, with the command that helps.
//!
//! Nothing is changed or fetched. The image is read in full, and a guest is
//! started from it.

mod image;
mod system;

use super::cache::Cache;
use super::error::ImageError;
use super::machine::Machine;
use super::{Options, tools};

/// The check of the cache folder, which comes first.
const CACHE: &str = "cache folder";

/// How a check ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Fine,
    /// Guests run, but something is missing or will take longer.
    Warning,
    /// No guest runs, or none can be built.
    Problem,
}

impl Status {
    /// The status as text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Fine => "ok",
            Status::Warning => "warning",
            Status::Problem => "problem",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check's name, which never changes.
    pub check: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found.
    pub text: String,
    /// What helps.
    pub help: Option<String>,
}

impl Finding {
    fn new(check: &'static str, status: Status, text: impl Into<String>) -> Finding {
        Finding {
            check,
            status,
            text: text.into(),
            help: None,
        }
    }

    fn fine(check: &'static str, text: impl Into<String>) -> Finding {
        Finding::new(check, Status::Fine, text)
    }

    fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// A failure as a finding.
    fn of(check: &'static str, status: Status, error: &ImageError) -> Finding {
        let text = format!(
            "{}: {} ({})",
            error.subject,
            error.reason,
            error.code.name()
        );
        Finding {
            help: error.help.clone(),
            ..Finding::new(check, status, text)
        }
    }
}

/// Runs all checks. A cache that cannot be used is a finding of its own.
pub fn examine(
    cache: Result<Cache, ImageError>,
    options: &Options,
    machine: &dyn Machine,
) -> Vec<Finding> {
    let cache = match cache {
        Ok(cache) => cache,
        Err(error) => {
            return vec![
                Finding::of(CACHE, Status::Problem, &error),
                build_tools(Status::Warning),
            ];
        }
    };
    let root = cache.root();
    let mut findings = vec![Finding::fine(CACHE, root.display().to_string())];
    let state = image::state(&cache, machine, &mut findings);
    if let image::State::Built = state {
        findings.push(image::freshness(&cache, options, machine));
    }
    // Whoever has an image needs no tools to build one.
    let severity = match state {
        image::State::Missing => Status::Problem,
        image::State::Built | image::State::Imported => Status::Warning,
    };
    findings.push(build_tools(severity));
    findings.extend(system::checks(root));
    findings
}

/// Whether an image can be built here.
fn build_tools(severity: Status) -> Finding {
    let check = "build tools";
    if !super::apt::exists() {
        return Finding::of(check, severity, &tools::no_apt());
    }
    let missing = tools::missing();
    match missing.is_empty() {
        true => Finding::fine(check, "all there"),
        false => Finding::new(check, severity, format!("missing: {}", missing.join(" ")))
            .help(tools::install_command(&missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_their_code_and_advice() {
        let finding = Finding::of("build tools", Status::Problem, &tools::no_apt());
        assert!(finding.text.contains("image.no_apt"), "{finding:?}");
        assert!(finding.help.unwrap().contains("image import"));
    }

    #[test]
    fn missing_tools_matter_only_where_there_is_no_image() {
        for severity in [Status::Warning, Status::Problem] {
            let finding = build_tools(severity);
            assert!([Status::Fine, severity].contains(&finding.status));
            assert_eq!(finding.help.is_none(), finding.status == Status::Fine);
        }
    }
}
