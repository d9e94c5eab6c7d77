//! `mathCalc` texts: trees, run-time refusals and the reference's error texts.

use super::show;
use crate::compat::parse_math;

#[track_caller]
fn same(text: &str, shown: &str) {
    match parse_math(text) {
        Ok(expr) => assert_eq!(show(&expr), shown, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn operators_follow_the_table() {
    same("1 + 2 * 3 - 4 / 2", "((1 + (2 * 3)) - (4 / 2))");
    same("a == b > c", "(a == (b > c))");
    same("a gt 1 and b gt 1 or c", "(((a > 1) && (b > 1)) || c)");
    same("a == 1 and b == 2", "((a == 1) && (b == 2))");
    same("!!name", "(! (! name))");
    same("band + gtx", "(band + gtx)");
    same("user['__pro' + 'to__']", "user[(\"__pro\" + \"to__\")]");
    same("préfix + .25 * 1.5e3", "(préfix + (0.25 * 1500))");
    same("'abc'[1]", "\"abc\"[1]");
    same("ghost?.x.y?.[0]", "ghost.x.y[0]");
    same("[1 2]", "[1 2]");
    same("[1,2,]", "[1 2]");
    same("(1;)", "1");
    same("'😀\\😀'", "\"😀😀\"");
    same(" \t", "undefined");
    same("", "undefined");
}

#[test]
fn what_has_no_evaluation_fails_when_reached() {
    same("a === b", "<Unknown binary operator: ===: a b>");
    same(
        "2 ** 3 ** 4",
        "<Unknown binary operator: **: 2 <Unknown binary operator: **: 3 4>>",
    );
    same("a ?? 1", "<Unknown binary operator: ??: a 1>");
    same("5 & 3", "<Unknown binary operator: &: 5 3>");
    same("1 >>> 2", "<Unknown binary operator: >>>: 1 2>");
    same("+a", "<Unknown unary operator: +: a>");
    same(
        "f(1) + 1",
        "(<Function calls not supported in expressions: > + 1)",
    );
    same("a.b(1)", "<Function calls not supported in expressions: >");
    same("a ? 1 : 2", "<Unknown node type: ConditionalExpression: >");
    same(
        "a ? 1 : b ? 2 : 3",
        "<Unknown node type: ConditionalExpression: >",
    );
    same("a b", "<Unknown node type: Compound: >");
    same("a, b", "<Unknown node type: Compound: >");
    same("a and", "<Unknown node type: Compound: >");
    same("(a b)", "<Unknown node type: SequenceExpression: >");
    same("this", "<Unknown node type: ThisExpression: >");
    same(
        "false && f()",
        "(false && <Function calls not supported in expressions: >)",
    );
}

#[test]
fn parser_errors_have_the_texts_of_the_reference() {
    for (text, message) in [
        ("a = 1", "Unexpected \"=\" at character 2"),
        ("x => x", "Unexpected \"=\" at character 2"),
        ("1 +", "Expected expression after + at character 3"),
        ("1 # 2", "Unexpected \"#\" at character 2"),
        ("a[0", "Unclosed [ at character 3"),
        ("1.2.3", "Unexpected period at character 3"),
        ("/a/", "Unexpected \"/\" at character 0"),
        ("(a", "Unclosed ( at character 2"),
        ("(", "Unclosed ( at character 1"),
        ("'abc", "Unclosed quote after \"abc\" at character 4"),
        ("-", "missing unaryOp argument at character 1"),
        ("1e", "Expected exponent (1e) at character 2"),
        (
            "1a",
            "Variable names cannot start with a number (1a) at character 1",
        ),
        ("f(a", "Expected ) at character 3"),
        ("[1", "Expected ] at character 2"),
        ("f(1,)", "Unexpected token ) at character 5"),
        ("f(,1)", "Unexpected token , at character 3"),
        ("f(1,2 3)", "Expected comma at character 6"),
        ("a ? 1", "Expected : at character 5"),
        ("a ? : 1", "Expected expression at character 4"),
        ("a.1", "Unexpected 1 at character 2"),
        ("a[]", "Unexpected \"]\" at character 2"),
        ("ä😀 = 1", "Unexpected \"=\" at character 4"),
        ("1 + )", "Expected expression after + at character 4"),
    ] {
        let given = parse_math(text)
            .map(|expr| show(&expr))
            .map_err(|error| error.message);
        assert_eq!(given, Err(message.to_owned()), "{text}");
    }
}

#[test]
fn offsets_are_bytes() {
    let error = parse_math("ä😀 = 1").expect_err("an assignment");
    assert_eq!(error.offset, 7);
}

#[test]
fn nesting_and_length_are_limited() {
    for text in [
        "(".repeat(60_000),
        "!".repeat(60_000),
        "[".repeat(60_000),
        "a?".repeat(30_000),
        "a[".repeat(30_000),
        "f(".repeat(30_000),
        "1?2:".repeat(15_000),
    ] {
        let error = parse_math(&text).expect_err("too deep");
        assert!(error.message.contains("nests deeper"), "{error}");
    }
    assert!(parse_math(&" ".repeat(100_000)).is_err());
    let chain = "a+".repeat(30_000) + "a";
    assert_eq!(parse_math(&chain).map(|expr| expr.depth()), Ok(30_001));
}
