//! Findings of the compiler in bounded memory: the first of each severity, and the number of
//! the rest.

use a99_core::diag::{Diagnostic, Diagnostics, Severity, codes};
use std::cell::{Cell, RefCell};

/// Errors that are kept, and as many warnings: more than a reader needs.
const MAX_KEPT: usize = 100;

/// Findings under construction.
#[derive(Default)]
pub(crate) struct Findings {
    kept: RefCell<Diagnostics>,
    errors: Cell<usize>,
    warnings: Cell<usize>,
}

impl Findings {
    fn seen(&self, severity: Severity) -> usize {
        match severity {
            Severity::Error => self.errors.get(),
            Severity::Warning => self.warnings.get(),
        }
    }

    /// Whether another finding of this severity would only be counted, so that its text is not
    /// needed.
    pub(crate) fn is_full(&self, severity: Severity) -> bool {
        self.seen(severity) >= MAX_KEPT
    }

    pub(crate) fn push(&self, finding: Diagnostic) {
        let severity = finding.severity;
        let seen = match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        };
        if !self.is_full(severity) {
            self.kept.borrow_mut().push(finding);
        }
        seen.set(seen.get() + 1);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors.get() > 0
    }

    /// The findings; if some were left out, the last one counts them.
    pub(crate) fn finish(self) -> Diagnostics {
        let left = |seen: usize| seen.saturating_sub(MAX_KEPT);
        let (errors, warnings) = (left(self.errors.get()), left(self.warnings.get()));
        let mut kept = self.kept.into_inner();
        if errors > 0 {
            let text = format!("... and {} more findings", errors + warnings);
            kept.push(Diagnostic::error(codes::MORE_ERRORS, text, ""));
        } else if warnings > 0 {
            let text = format!("... and {warnings} more findings");
            kept.push(Diagnostic::warning(codes::MORE_WARNINGS, text, ""));
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a11_findings_are_counted_not_kept() {
        let found = Findings::default();
        for _ in 0..50_000 {
            found.push(Diagnostic::warning(codes::UNKNOWN_ATOM, "x", ""));
        }
        assert!(!found.has_errors() && found.is_full(Severity::Warning));
        found.push(Diagnostic::error(codes::FORBIDDEN_NAME, "y", ""));
        let all = found.finish();
        assert_eq!(all.len(), MAX_KEPT + 2);
        let last = all.iter().last().map(|d| (d.code, d.message.as_str()));
        assert_eq!(
            last,
            Some((codes::MORE_WARNINGS, "... and 49900 more findings"))
        );
        assert!(all.has_errors());
    }
}
