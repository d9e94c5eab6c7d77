//! Parses expression texts to nodes.

use a99_compiler::expr::{parse_condition, to_expr_json};
use a99_core::diag::{Diagnostic, Diagnostics, codes};

/// Parses an expression text to the expression node that a step's input takes. The grammar is
/// that of the conditions of `if` and `while` (language section 1.5).
///
/// ```
/// use agent99::{expression, json};
///
/// let node = expression("n > 1")?;
/// assert_eq!(node["$expr"], "binary");
/// assert_eq!(node["right"], json!({"$expr": "literal", "value": 1}));
/// # Ok::<(), agent99::Diagnostics>(())
/// ```
///
/// # Errors
/// Every error of the text, with places in it (`compile.bad_condition`). Blank text is an
/// error.
pub fn expression(text: &str) -> Result<serde_json::Value, Diagnostics> {
    let found: Diagnostics = match parse_condition(text) {
        Ok(parsed) => match to_expr_json(&parsed) {
            serde_json::Value::Null => {
                let finding = "the expression is blank, or nested too deeply";
                Diagnostic::error(codes::BAD_CONDITION, finding, "").into()
            }
            node => return Ok(node),
        },
        Err(errors) => errors.0.into_iter().map(finding).collect(),
    };
    let mut found = found;
    found.locate(text.as_bytes());
    Err(found)
}

fn finding(error: a99_compiler::expr::ParseError) -> Diagnostic {
    let finding = Diagnostic::error(codes::BAD_CONDITION, error.message, "").with_span(error.span);
    match error.help {
        Some(help) => finding.with_help(help),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_expression_is_told_with_its_place() {
        let found = expression("1 +\n )").unwrap_err();
        let last = found.iter().last().unwrap();
        assert_eq!(last.code, codes::BAD_CONDITION);
        assert_eq!(
            last.region.map(|r| (r.line, r.column)),
            Some((2, 2)),
            "{found}"
        );
        assert!(expression("").is_err());
        assert!(expression("  ").is_err());
    }
}
