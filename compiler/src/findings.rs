//! Findings of the compiler in bounded memory: the first of each severity, and the number of
//! the rest.

use a99_core::diag::{Diagnostic, Diagnostics, Severity, codes};

/// Errors that are kept, and as many warnings: more than a reader needs.
const MAX_KEPT: usize = 100;

/// Findings under construction.
#[derive(Default)]
pub(crate) struct Findings {
    kept: Diagnostics,
    errors: usize,
    warnings: usize,
}

impl Findings {
    fn seen(&self, severity: Severity) -> usize {
        match severity {
            Severity::Error => self.errors,
            Severity::Warning => self.warnings,
        }
    }

    /// Whether another finding of this severity would only be counted, so that its text is not
    /// needed.
    pub(crate) fn is_full(&self, severity: Severity) -> bool {
        self.seen(severity) >= MAX_KEPT
    }

    pub(crate) fn push(&mut self, finding: Diagnostic) {
        if !self.is_full(finding.severity) {
            self.kept.push(finding.clone());
        }
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The findings; if some were left out, the last one counts them.
    pub(crate) fn finish(mut self) -> Diagnostics {
        let left = |seen: usize| seen.saturating_sub(MAX_KEPT);
        let (errors, warnings) = (left(self.errors), left(self.warnings));
        if errors > 0 {
            let text = format!("... and {} more findings", errors + warnings);
            self.kept
                .push(Diagnostic::error(codes::MORE_ERRORS, text, ""));
        } else if warnings > 0 {
            let text = format!("... and {warnings} more findings");
            self.kept
                .push(Diagnostic::warning(codes::MORE_WARNINGS, text, ""));
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a11_findings_are_counted_not_kept() {
        let mut found = Findings::default();
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
