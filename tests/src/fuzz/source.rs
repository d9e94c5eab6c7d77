//! Programs in the source form.

use super::{ENGINE, little};
use agent99::{Capabilities, ErrorCode, Outcome};

/// Any text as a source: it is refused with places in it, or its JSON compiles to the same
/// program with the same result.
///
/// # Panics
/// If a finding has no place in the text, or the two forms differ.
pub fn any_text(data: &[u8]) {
    let (document, _) = match ENGINE.read_source(data) {
        Ok(read) => read,
        Err(found) => {
            assert!(found.has_errors());
            for finding in &found {
                let span = finding.span.clone().unwrap_or_default();
                assert!(
                    span.start <= span.end && span.end as usize <= data.len() + 1,
                    "{finding:?}"
                );
            }
            return;
        }
    };
    assert!(document.has_origin());
    let json = document.source().map(<[u8]>::to_vec).unwrap_or_default();
    let (Ok(source), Ok(json)) = (ENGINE.compile_source(data), ENGINE.compile(json)) else {
        // Limits of programs apply to both.
        return;
    };
    let outcomes = [&source, &json].map(|agent| little(agent, Capabilities::none()));
    let [Some(source), Some(json)] = outcomes else {
        return;
    };
    let is_late = |outcome: &Outcome| {
        let error = outcome.error.as_ref();
        error.is_some_and(|error| error.code == ErrorCode::RunTimeout)
    };
    // Error texts quote the source, so that a program that catches one may continue
    // differently.
    let catches = data.windows(5).any(|word| word == b"catch");
    if !is_late(&source) && !is_late(&json) && !catches {
        assert_eq!(source.fuel_used, json.fuel_used);
        let text = |outcome: &Outcome| match &outcome.error {
            Some(error) => error.code.to_string(),
            None => outcome.result.to_json_string(),
        };
        assert_eq!(text(&source), text(&json));
    }
}
