//! Checks of the resources of runs and sandboxes, with their results.

use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::text::escape_for_terminal;
use serde_json::{Value as Json, json};

/// Result of a check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    /// A run works, but perhaps not as intended.
    Warning,
    /// A run that needs this fails.
    Problem,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Problem => "problem",
        }
    }
}

/// A check with its result.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// Stable name of the check.
    pub check: &'static str,
    pub status: Status,
    pub text: String,
    pub help: Option<String>,
}

impl Check {
    /// A passed check.
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Check {
        Check {
            check,
            status: Status::Ok,
            text: text.into(),
            help: None,
        }
    }

    /// A failed check.
    pub(crate) fn problem(check: &'static str, text: impl Into<String>, help: &str) -> Check {
        Check {
            status: Status::Problem,
            help: (!help.is_empty()).then(|| help.to_owned()),
            ..Check::ok(check, text)
        }
    }

    /// A check with a warning.
    pub(crate) fn warning(check: &'static str, text: impl Into<String>, help: &str) -> Check {
        Check {
            status: Status::Warning,
            ..Check::problem(check, text, help)
        }
    }

    /// A check that a failure of the command ended.
    pub(crate) fn failed(check: &'static str, failure: &Failure) -> Check {
        let (text, help) = failure.told();
        Check::problem(check, text, &help)
    }

    fn to_json(&self) -> Json {
        json!({
            "check": self.check,
            "status": self.status.name(),
            "message": self.text,
            "help": self.help,
        })
    }

    fn to_text(&self) -> String {
        let Check { check, text, .. } = self;
        let text = escape_for_terminal(text);
        let help = self.help.as_ref().map_or(String::new(), |help| {
            format!("{:24}help: {}\n", "", escape_for_terminal(help))
        });
        format!("{:<8}{check:<15} {text}\n{help}", self.status.name())
    }
}

/// Prints checks; the exit code reports whether one found a problem.
pub(crate) fn report(checks: &[Check], json: bool) -> Exit {
    let sound = checks.iter().all(|check| check.status != Status::Problem);
    if json {
        let checks: Vec<Json> = checks.iter().map(Check::to_json).collect();
        let line = json!({"ok": sound, "checks": checks});
        output::out(&format!("{line}\n"));
    } else {
        for check in checks {
            output::out(&check.to_text());
        }
    }
    if sound { Exit::Ok } else { Exit::Error }
}
