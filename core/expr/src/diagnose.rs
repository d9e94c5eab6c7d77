//! Messages and suggestions of errors in condition texts.

use std::ops::Range;

use super::arena::{BinOp, Infix};
use super::condition::{Bracket, infix_kind};
use super::error::ParseError;
use super::grammar::{Builder, Kind, Tok};
use super::token::Raw;

/// Maximum characters of quoted source in a message.
const MAX_QUOTED_CHARS: usize = 24;

/// Quotes the source of a token.
fn quote(builder: &Builder<'_>, tok: Tok) -> String {
    let source = builder.source(tok);
    match source.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((cut, _)) => format!("`{}…`", &source[..cut]),
        None => format!("`{source}`"),
    }
}

/// A suggestion instead of a function, given the text before it: `xs.map(x`.
fn arrow_help(before: &str) -> &'static str {
    // Longer than a method with the names of some parameters.
    const LONGEST: usize = 120;
    let from = before.len().saturating_sub(LONGEST);
    let from = (from..=before.len()).find(|at| before.is_char_boundary(*at));
    let mut head = &before[from.unwrap_or(before.len())..];
    // The parenthesis of the parameters, then that of the call.
    for _ in 0..2 {
        let Some(at) = head.rfind('(') else { break };
        head = &head[..at];
        let start = head
            .rfind(|c: char| !c.is_ascii_alphanumeric())
            .map_or(0, |at| {
                at + head[at..].chars().next().map_or(1, char::len_utf8)
            });
        if !head[..start].ends_with('.') {
            continue;
        }
        return match &head[start..] {
            "map" | "flatMap" | "forEach" => {
                "use the atom `map {items, as, steps, result}` in a step before, or `forEach`"
            }
            "filter" => "use the atom `filter {items, as, condition, result}` in a step before",
            "find" | "findIndex" | "some" | "findLast" => {
                "use the atom `find {items, as, condition, result}` in a step before"
            }
            "every" => {
                "use the atom `filter {items, as, condition, result}` in a step before, and compare \
                 lengths"
            }
            "reduce" | "reduceRight" => {
                "use the atom `reduce {items, as, accumulator, initial, steps, result}` in a step \
                 before; `sum {items, by, result}` adds"
            }
            "sort" | "toSorted" => {
                "use the atom `sort {items, by, order, result}` in a step before"
            }
            _ => break,
        };
    }
    "use `>=` to compare, or the map, filter and reduce atoms"
}

/// The error of a token that no condition may contain, and the role to continue with.
pub(super) fn refused(
    builder: &Builder<'_>,
    raw: Option<Raw>,
    after_operand: bool,
    start: u32,
    end: u32,
) -> (ParseError, Option<Kind>) {
    let span = start..end;
    let source = &builder.text[start as usize..end as usize];
    let compare = after_operand.then_some(infix_kind(Infix::Binary(BinOp::Eq)));
    let unsupported = |message: String, help: &str| {
        ParseError::unsupported(message, span.clone()).with_help(help)
    };
    match raw {
        Some(Raw::Assign) => {
            let message = format!("`{source}` assigns, which a condition cannot do");
            (unsupported(message, "use `==` to compare"), compare)
        }
        Some(Raw::Arrow) => {
            let help = arrow_help(builder.text.get(..start as usize).unwrap_or_default());
            (
                unsupported("Arrow functions are not supported".into(), help),
                compare,
            )
        }
        Some(Raw::Bitwise) => {
            let help = match source {
                "&" => "use `&&` for a logical and",
                "|" => "use `||` for a logical or",
                "^" => "use `**` for a power, or `!=` for an exclusive or",
                _ => "multiply or divide by a power of two",
            };
            (
                unsupported(
                    format!("The bitwise operator `{source}` is not supported"),
                    help,
                ),
                compare,
            )
        }
        Some(Raw::Tilde) => {
            let message = "The bitwise operator `~` is not supported".into();
            (unsupported(message, "use `!` for a logical not"), None)
        }
        Some(Raw::Backtick) => {
            let help = "use single or double quotes, and `+` to join texts";
            (
                unsupported("Template strings are not supported".into(), help),
                None,
            )
        }
        Some(Raw::Brace) => {
            let help = "use parentheses for grouping; objects come from variables";
            (
                unsupported(format!("`{source}` is not supported in a condition"), help),
                None,
            )
        }
        Some(Raw::Semicolon) => {
            let help = "write one expression; join tests with `&&` or `||`";
            (
                unsupported("A condition is one expression, without `;`".into(), help),
                None,
            )
        }
        Some(Raw::Spread) => {
            let help = "name the elements one by one";
            (
                unsupported("`...` is not supported in a condition".into(), help),
                None,
            )
        }
        Some(Raw::UnclosedString) => {
            let quote = &source[..1];
            let error = ParseError::syntax(format!("Unclosed quote {quote}"), span.clone())
                .with_help(format!("close the text with {quote}"));
            // A text role avoids a second error about a missing operand.
            (error, Some(Kind::String))
        }
        _ => {
            let error = ParseError::syntax(format!("Unknown character `{source}`"), span.clone())
                .with_help("remove it, or put it in quotes if it is text");
            (error, None)
        }
    }
}

/// The error of a JavaScript keyword that conditions do not support.
pub(super) fn reserved_word(word: &str, start: u32, end: u32) -> Option<ParseError> {
    let help = match word {
        "new" => "call `Date(…)` or `Set(…)` without `new`",
        "function" | "class" | "async" => "conditions call builtins only",
        "await" | "yield" => "run the step first and test its result",
        "void" | "delete" | "let" | "const" | "var" | "return" | "throw" | "if" | "else"
        | "while" | "for" | "do" | "switch" | "case" => "a condition is one expression",
        _ => return None,
    };
    Some(
        ParseError::unsupported(
            format!("`{word}` is not supported in a condition"),
            start..end,
        )
        .with_help(help),
    )
}

/// The error of `in` and `instanceof` as operators.
pub(super) fn refused_infix_word(word: &str, start: u32, end: u32) -> ParseError {
    let help = if word == "in" {
        "use `list.includes(x)`, or compare the member with null"
    } else {
        "use `typeof`"
    };
    ParseError::unsupported(
        format!("The operator `{word}` is not supported"),
        start..end,
    )
    .with_help(help)
}

/// The error of a number or name adjacent to a number, as in `1.2.3` and `5apples`, or of a
/// number adjacent to a name, as in `a.5`.
pub(super) fn glued_number(
    builder: &Builder<'_>,
    previous: Option<Tok>,
    start: u32,
    end: u32,
) -> Option<ParseError> {
    let previous = previous.filter(|tok| tok.end == start)?;
    let source = &builder.text[start as usize..end as usize];
    if previous.kind == Kind::Number {
        let whole = &builder.text[previous.start as usize..end as usize];
        let error = ParseError::syntax(format!("`{whole}` is not a number"), previous.start..end);
        return Some(if source.starts_with('.') {
            error.with_help("write one decimal point, or quotes around a version or date")
        } else {
            error.with_help("put an operator between the number and the name")
        });
    }
    if source.starts_with('.') && previous.kind.ends_operand() {
        let digits = source.trim_start_matches('.');
        return Some(
            ParseError::syntax("A member name cannot start with a digit", start..end)
                .with_help(format!("use an index, as in `[{digits}]`")),
        );
    }
    None
}

/// The error of the grammar at token `at` of a bracket with the range `whole`.
pub(super) fn grammar_error(
    builder: &Builder<'_>,
    toks: &[Tok],
    at: usize,
    bracket: Bracket,
    whole: Range<u32>,
) -> ParseError {
    let previous = at.checked_sub(1).and_then(|i| toks.get(i)).copied();
    let Some(found) = toks.get(at).copied() else {
        return at_end(builder, previous, bracket, whole);
    };
    let span = found.start..found.end;
    let quoted = quote(builder, found);
    let after_operand = previous.is_some_and(|tok| tok.kind.ends_operand());
    match found.kind {
        Kind::Comma if after_operand => {
            ParseError::syntax("Only one expression can stand here", span)
                .with_help("join tests with `&&` or `||`")
        }
        Kind::Prefix(_) if after_operand => {
            ParseError::syntax(format!("{quoted} cannot follow an operand"), span)
                .with_help(format!("write {quoted} before the operand"))
        }
        _ if previous.is_some_and(|tok| matches!(tok.kind, Kind::Dot | Kind::OptionalDot)) => {
            after_dot(found, quoted)
        }
        Kind::Number | Kind::String | Kind::Ident | Kind::Node(_) if after_operand => {
            let before = previous.map_or("", |tok| builder.source(tok));
            let error = ParseError::syntax(format!("Expected an operator before {quoted}"), span);
            if before == "not" {
                error.with_help("use `!` for a logical not")
            } else {
                error.with_help("put an operator such as `==`, `&&` or `+` between the operands")
            }
        }
        Kind::Infix(..) | Kind::Question | Kind::Colon | Kind::Comma => match previous {
            Some(before) => {
                let before = quote(builder, before);
                ParseError::syntax(
                    format!("Missing operand between {before} and {quoted}"),
                    span,
                )
                .with_help(format!("write an expression before {quoted}"))
            }
            None => ParseError::syntax(format!("Missing operand before {quoted}"), span)
                .with_help(format!("write an expression before {quoted}")),
        },
        _ => ParseError::syntax(format!("Unexpected {quoted}"), span)
            .with_help(format!("write an expression before {quoted}")),
    }
}

/// The error of a bracket whose tokens end too early.
fn at_end(
    builder: &Builder<'_>,
    previous: Option<Tok>,
    bracket: Bracket,
    whole: Range<u32>,
) -> ParseError {
    let Some(previous) = previous else {
        let what = if bracket == Bracket::Index {
            "index"
        } else {
            "expression"
        };
        return ParseError::syntax(format!("Missing {what} in the brackets"), whole)
            .with_help("write an expression between the brackets");
    };
    let span = previous.start..previous.end;
    let quoted = quote(builder, previous);
    match previous.kind {
        Kind::Dot | Kind::OptionalDot => {
            ParseError::syntax(format!("Missing member name after {quoted}"), span)
                .with_help("write a name after the dot")
        }
        _ => ParseError::syntax(format!("Missing operand after {quoted}"), span)
            .with_help(format!("write an expression after {quoted}")),
    }
}

/// The error of a token other than a name after a dot.
fn after_dot(found: Tok, quoted: String) -> ParseError {
    let span = found.start..found.end;
    if matches!(found.kind, Kind::Node(_) | Kind::Args(_)) {
        return ParseError::unsupported("Optional calls are not supported", span)
            .with_help("call the method directly, as in `object?.method(x)`");
    }
    ParseError::syntax(format!("Expected a member name but found {quoted}"), span)
        .with_help("write a name after the dot, or an index in `[ ]`")
}
