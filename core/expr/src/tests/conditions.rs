//! The superset grammar: precedence, words, calls, refusals and limits.

use super::*;

#[track_caller]
fn same(text: &str, shown: &str) {
    match parse_condition(text) {
        Ok(expr) => assert_eq!(show(&expr), shown, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn refused(text: &str) -> Vec<ParseError> {
    match parse_condition(text) {
        Ok(expr) => panic!("{text} was read as {}", show(&expr)),
        Err(errors) => {
            assert!(!errors.0.is_empty());
            errors.0
        }
    }
}

#[test]
fn precedence_is_that_of_jsep() {
    same("a == b > c", "(a == (b > c))");
    same("a or b and c", "((a || b) && c)");
    same("a and b || c && d", "((a && b) || (c && d))");
    same("a || b && c", "(a || (b && c))");
    same("a ?? b || c", "((a ?? b) || c)");
    same("1 + 2 * 3 ** 2 ** 2", "(1 + (2 * (3 ** (2 ** 2))))");
    same("-a ** b", "((- a) ** b)");
    same("!a.b + -c[0]", "((! a.b) + (- c[0]))");
    same("a - b - c", "((a - b) - c)");
    same("a--b", "(a - (- b))");
    same("typeof a === 'x'", "((typeof a) === \"x\")");
}

#[test]
fn words_are_operators_only_after_an_operand() {
    same("a gt 1 and b neq 2", "((a > 1) && (b != 2))");
    same("a le b or a ge b", "((a <= b) || (a >= b))");
    same("a eq (b)", "(a == b)");
    same("band + gtx", "(band + gtx)");
    same("and == or.eq", "(and == or.eq)");
    assert_eq!(refused("a and")[0].message, "Missing operand after `and`");
}

#[test]
fn conditionals_nest_on_both_sides() {
    same("a ? b : c", "(a ? b : c)");
    same("a ? b : c ? d : e", "(a ? b : (c ? d : e))");
    same("a ? b ? c : d : e || f", "(a ? (b ? c : d) : (e || f))");
    same("a || b ? 1 : 2 + 3", "((a || b) ? 1 : (2 + 3))");
    assert_eq!(refused("a ? b")[0].message, "`?` without a `:` after it");
    assert_eq!(refused("a : b")[0].message, "`:` without a `?` before it");
    assert_eq!(
        refused("a ? : b")[0].message,
        "Missing operand between `?` and `:`"
    );
}

#[test]
fn members_indices_and_calls() {
    same("a?.b.c?.[0]", "a?.b.c?.[0]");
    same("a[b[0]]['k']", "a[b[0]][\"k\"]");
    same("(a).b", "a.b");
    same("'abc'.length", "\"abc\".length");
    same("[1, [2], a]", "[1 [2] a]");
    same("[]", "[]");
    same("[1,]", "[1]");
    same("msg.includes('404')", "msg.includes(\"404\")");
    same("o?.name.trim().length > 0", "(o?.name.trim().length > 0)");
    same("Math.max(a, b + 1)", "Math.max(a (b + 1))");
    same("a.true.typeof.and", "a.true.typeof.and");
    same("parseInt('5', 10) > 4", "(parseInt(\"5\" 10) > 4)");
    same("$total > préfix", "($total > préfix)");
}

#[test]
fn literals_follow_jsep() {
    same("1.5e3", "1500");
    same(".25", "0.25");
    same("5.", "5");
    same("'a\\nb\\'\\q'", "\"a\\nb'q\"");
    same("\"it's\"", "\"it's\"");
    same("'ä\\ö'", "\"äö\"");
    same("  \u{A0} ", "undefined");
    same("", "undefined");
    same("a\u{A0}== b", "(a == b)");
}

#[test]
fn accidents_are_refused_with_help() {
    for (text, at, message, help) in [
        ("a = b", 2, "assigns", "=="),
        ("a & b", 2, "bitwise", "&&"),
        ("a | b", 2, "bitwise", "||"),
        ("a ^ b", 2, "bitwise", "**"),
        ("a << b", 2, "bitwise", "power of two"),
        ("~a", 0, "bitwise", "!"),
        ("a => b", 2, "Arrow", ">="),
        ("`t`", 0, "Template", "quotes"),
        ("@a", 0, "Unknown character `@`", "remove"),
        ("{a}", 0, "not supported", "parentheses"),
        ("x == 'abc", 5, "Unclosed quote", "close"),
        ("x == '", 5, "Unclosed quote", "close"),
        ("(a > b", 0, "Unclosed `(`", ")"),
        ("a[0", 1, "Unclosed `[`", "]"),
        ("a > b)", 5, "closes nothing", "remove"),
        ("(a]", 2, "Expected `)`", ")"),
        ("a >", 2, "Missing operand after `>`", "write"),
        ("a &&", 2, "Missing operand after `&&`", "write"),
        ("!", 0, "Missing operand after `!`", "write"),
        ("a++", 2, "Missing operand after `+`", "write"),
        ("* a", 0, "Missing operand before `*`", "write"),
        ("()", 0, "Missing expression", "between"),
        ("a[]", 1, "Missing index", "between"),
        ("a.", 1, "Missing member name", "name"),
        ("a..b", 2, "Expected a member name", "name"),
        ("a.5", 1, "start with a digit", "[5]"),
        ("1.2.3", 0, "`1.2.3` is not a number", "decimal point"),
        ("5apples", 0, "`5apples` is not a number", "operator"),
        (
            "xs.map(x => x)",
            9,
            "Arrow functions are not supported",
            "`map {items",
        ),
        (
            "é.filter((x) => x)",
            14,
            "Arrow functions are not supported",
            "`filter {items",
        ),
        ("a => 5", 2, "Arrow functions are not supported", "`>=`"),
        ("a b", 2, "Expected an operator before `b`", "operator"),
        ("not a", 4, "Expected an operator", "`!`"),
        ("a !", 2, "cannot follow", "before"),
        ("a, b", 1, "one expression", "&&"),
        ("a; b", 1, "without `;`", "one expression"),
        ("new Date", 0, "`new`", "without"),
        ("this", 0, "`this`", "variable"),
        ("'a' in b", 4, "`in`", "includes"),
        ("f(1)", 0, "`f` is not a function", "step"),
        (
            "s.include('x')",
            0,
            "`include` is not a method",
            "`includes`",
        ),
        ("a[0](1)", 0, "named function", "builtin"),
        ("a?.(1)", 3, "Optional calls", "method"),
        ("parseInt(1,)", 10, "Missing operand after `,`", "write"),
        ("a ? b", 2, "without a `:`", "??"),
    ] {
        let errors = refused(text);
        let first = &errors[0];
        assert!(first.message.contains(message), "{text}: {first}");
        assert_eq!(first.span.start, at, "{text}: {first}");
        assert!(
            first.help.as_ref().is_some_and(|h| h.contains(help)),
            "{text}: {first}"
        );
    }
}

#[test]
fn several_errors_are_reported_together() {
    let errors = refused("(a >) && (b @ c) || f(1) = 'x");
    let starts: Vec<u32> = errors.iter().map(|error| error.span.start).collect();
    assert!(errors.len() >= 4, "{errors:?}");
    assert!(starts.is_sorted());
}

#[test]
fn nesting_and_length_are_limited() {
    for text in [
        "(".repeat(60_000),
        "!".repeat(60_000) + "a",
        "[".repeat(30_000) + &"]".repeat(30_000),
        "a?".repeat(30_000) + "a",
        "a?b:".repeat(15_000) + "a",
        "a**".repeat(20_000) + "a",
        "f(".repeat(20_000),
    ] {
        assert!(
            refused(&text)
                .iter()
                .any(|error| error.kind == ParseErrorKind::TooDeep)
        );
    }
    let long = refused(&"!".repeat(1_000_000));
    assert_eq!(long[0].kind, ParseErrorKind::TooLong);
}

#[test]
fn what_is_within_the_limits_is_read() {
    let chain = "a&&".repeat(20_000) + "a";
    assert_eq!(parse_condition(&chain).map(|expr| expr.depth()), Ok(20_001));
    let deep = "(".repeat(MAX_NESTING) + "a" + &")".repeat(MAX_NESTING);
    assert_eq!(parse_condition(&deep).map(|expr| expr.depth()), Ok(1));
    let bangs = "!".repeat(MAX_NESTING) + "a";
    assert_eq!(
        parse_condition(&bangs).map(|expr| expr.depth()),
        Ok(MAX_NESTING + 1)
    );
    let choices = "a?b:".repeat(MAX_NESTING) + "c";
    assert_eq!(
        parse_condition(&choices).map(|expr| expr.depth()),
        Ok(MAX_NESTING + 1)
    );
}

#[test]
fn only_texts_of_version_4_read_the_request_context() {
    let shown = |text: &str| parse_expression(text).map(|expr| show(&expr));
    assert_eq!(
        shown("context + context('user.id')"),
        Ok("(context + context<user.id>)".to_owned())
    );
    assert!(parse_expression("[context(\"a\")]").is_ok_and(|expr| expr.reads_context()));
    assert!(parse_expression("context").is_ok_and(|expr| !expr.reads_context()));
    for text in [
        "context()",
        "context(a)",
        "context('a', 'b')",
        "context('a' + b)",
    ] {
        let found = parse_expression(text).expect_err(text);
        assert!(
            found.0[0].message.starts_with("`context` takes one text"),
            "{text}"
        );
    }
    assert_eq!(
        refused("context('user.id')")[0].message,
        "`context` is not a function that a condition can call"
    );
}

#[test]
fn computed_keys_are_nodes_of_objects() {
    let read = parse_expression("{[k]: 1, a: context('x')}").expect("it is read");
    let node = to_expr_json(&read);
    let expected = serde_json::json!({"$expr": "object", "properties": [
        {"key": {"$expr": "ident", "name": "k"}, "value": {"$expr": "literal", "value": 1}},
        {"key": "a", "value": {"$expr": "context", "path": "x"}},
    ]});
    assert_eq!(node, expected);
}
