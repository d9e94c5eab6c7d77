//! Random bytes and token soups: no panic, spans inside the text, children before parents.

use super::*;
use crate::compat::{parse_condition_v2, parse_math};

/// A small linear congruential generator (Knuth's MMIX constants), so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

const PIECES: &[&str] = &[
    "a",
    "b.c",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{a: ",
    "${",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "!",
    "~",
    "?",
    ":",
    "?.",
    "??",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "===",
    "!==",
    "=",
    "=>",
    "<<",
    ">>>",
    ",",
    ";",
    ".",
    "..",
    "...",
    "1",
    "2.5",
    ".5",
    "1e",
    "1e5",
    "0x1",
    "'s'",
    "\"",
    "'",
    "\\",
    "`",
    "and",
    "or",
    "gt",
    "eq",
    "typeof",
    "this",
    "new",
    "in",
    "not",
    "true",
    "null",
    "f(",
    "x.trim(",
    "Math.max(",
    " ",
    "\n",
    "é",
    "😀",
    "\u{A0}",
];

fn check_tree(text: &str, expr: &Expr) {
    for (i, node) in expr.nodes.iter().enumerate() {
        assert!(node.span.start <= node.span.end, "{text:?}");
        assert!(
            text.get(node.span.start as usize..node.span.end as usize)
                .is_some(),
            "{text:?}"
        );
        node.kind
            .for_each_child(|child| assert!((child.0 as usize) < i, "{text:?}"));
    }
    assert!(
        expr.root
            .is_none_or(|root| (root.0 as usize) < expr.nodes.len())
    );
    let _ = to_expr_json(expr);
}

fn check(text: &str) {
    let plain = parse_condition(text);
    let with_literals = parse_expression(text);
    if let (Ok(plain), Ok(more)) = (&plain, &with_literals) {
        assert_eq!(plain, more, "{text:?}");
    }
    assert!(plain.is_err() || with_literals.is_ok(), "{text:?}");
    check_condition(text, plain);
    check_condition(text, with_literals);
    check_others(text);
}

fn check_condition(text: &str, parsed: Result<Expr, ParseErrors>) {
    match parsed {
        Ok(expr) => check_tree(text, &expr),
        Err(errors) => {
            assert!(!errors.0.is_empty());
            for error in errors.0 {
                let (start, end) = (error.span.start as usize, error.span.end as usize);
                assert!(text.get(start..end).is_some(), "{text:?}: {error:?}");
            }
        }
    }
}

fn check_others(text: &str) {
    match parse_math(text) {
        Ok(expr) => check_tree(text, &expr),
        Err(error) => assert!(
            text.get(error.offset as usize..).is_some(),
            "{text:?}: {error:?}"
        ),
    }
    if let Ok(expr) = parse_condition_v2(text) {
        check_tree(text, &expr);
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(1);
    for _ in 0..5_000 {
        let length = random.below(40);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        check(&String::from_utf8_lossy(&bytes));
        let ascii: String = (0..length)
            .map(|_| (random.below(96) as u8 + 32) as char)
            .collect();
        check(&ascii);
    }
}

#[test]
fn token_soups_never_panic() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let length = random.below(14);
        let text: String = (0..length)
            .map(|_| PIECES[random.below(PIECES.len())])
            .collect();
        check(&text);
    }
}

#[test]
fn long_inputs_take_linear_time() {
    for piece in PIECES {
        check(&piece.repeat(20_000 / piece.len()));
        check(&format!("{piece} a ").repeat(3_000));
    }
}
