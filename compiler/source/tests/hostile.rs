//! Tests hostile sources: each ends with a program or with findings, in little time and on the
//! available stack.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the product reads no clock, its tests do"
)]

use a99_core::diag::Diagnostics;
use a99_source::{MAX_BYTES, Program, codes, read};
use std::time::{Duration, Instant};

fn lower(source: &str) -> Result<Program, Diagnostics> {
    read(source, &a99_atoms::all_atoms())
}

/// Maximum time for one source in a build without optimisation, on a busy machine.
const MOST: Duration = Duration::from_secs(60);

/// Parts of a nested source: prefix, opening part (repeated), centre, closing part (repeated).
const NESTED: [(&str, &str, &str, &str); 42] = [
    // Each level may be types, or parameters with defaults.
    ("x = ", "a<(b=(", "1", "))"),
    ("x = ", "(b=(a<", "1", "))"),
    ("x = ", "(a=b<", "1", ")"),
    ("x = ", "(a=[b<(", "1", ")])"),
    ("x = ", "(a={b:c<(", "1", ")})"),
    ("x = ", "`${a<(b=", "1", ")}`"),
    ("x = ", "f(a<(b=", "1", "))"),
    ("x = ", "a?b<(c=(", "1", ")):1"),
    ("", "(", "1", ")"),
    ("", "[", "1", "]"),
    ("", "{", "", "}"),
    ("x = ", "{a:", "1", "}"),
    ("x = ", "{[", "1", "]: 1}"),
    ("x = ", "`${", "1", "}`"),
    ("x = ", "!", "1", ""),
    ("x = ", "- ", "1", ""),
    ("x = ", "-+", "1", ""),
    ("x = ", "typeof ", "1", ""),
    ("x = ", "await ", "1", ""),
    ("x = ", "new ", "A", ""),
    ("x = ", "a => ", "1", ""),
    ("x = ", "async a => ", "1", ""),
    ("x = ", "(a = ", "1", ") => 1"),
    ("x = ", "a ? 1 : ", "1", ""),
    ("x = ", "a ? ", "1", " : 1"),
    ("x = ", "2 ** ", "1", ""),
    ("", "x = ", "1", ""),
    ("", "if (a) ", ";", ""),
    ("", "if (a) {} else ", ";", ""),
    ("", "while (a) ", ";", ""),
    ("", "for (;;) ", ";", ""),
    ("", "do ", ";", " while (a)"),
    ("", "a: ", ";", ""),
    ("", "function f() {", "", "}"),
    ("", "class A { m() {", "", "}}"),
    ("let x: ", "A<", "B", ">"),
    ("let x: ", "keyof ", "B", ""),
    ("let x: ", "(", "B", ")"),
    ("let x: ", "{ a: ", "B", "}"),
    ("x = ", "a<", "b", ""),
    ("x = ", "f(", "1", ")"),
    ("x = ", "async (", "1", ")"),
];

/// Parts of a long source: prefix, part (repeated), suffix.
const LONG: [(&str, &str, &str); 28] = [
    (
        "const g = (k) => k(1)\nfunction agent() {",
        " g((x) => x);",
        " }",
    ),
    ("function agent() { return 1", " + 1", " }"),
    ("function agent() { return 1", " && 1", " }"),
    ("function agent() { return 1", " ?? 1", " }"),
    ("function agent({ a }) { return a", ".b", " }"),
    ("function agent({ a }) { return a", "?.b", " }"),
    ("function agent({ a }) { return a", "[0]", " }"),
    ("function agent({ a }) { return a", ".trim()", " }"),
    ("function agent({ a }) { return a", ".slice()", " }"),
    ("function agent({ a }) { return a", ".at(0)", " }"),
    (
        "function agent({ a }) { return new Date(a) - (a",
        " && a",
        ") }",
    ),
    ("function agent({ a }) { return a", "!", " }"),
    ("function agent() {", " let x = 1;", " }"),
    ("function agent() {", " if (a) { b() }", " }"),
    ("function agent({ a }) {", " { const x = a; }", " }"),
    ("function agent() { return [", "1,", "] }"),
    ("function agent() { return [", "...a,", "] }"),
    ("function agent() { return {", "a: 1,", "} }"),
    ("function agent({ ", "a,", " }) { }"),
    ("function agent() { f(", "a,", ") }"),
    ("function agent() { switch (1) {", " case 1:", " } }"),
    ("", "function f() { f() }\n", ""),
    ("", "const x = 'a';\n", ""),
    ("function agent() { return `", "${1}", "` }"),
    ("function agent() { return '", "\u{1F600}", "' }"),
    ("function agent() { return /", "(a+)+", "/.test('a') }"),
    ("function agent(x: ", "| 'a' ", ") { }"),
    ("// ", "\u{202e}", "\nfunction agent() { }"),
];

fn check(name: &str, source: &str) {
    let begin = Instant::now();
    if let Err(found) = lower(source) {
        assert!(found.has_errors(), "{name}");
        assert!(
            found.len() <= 64 || name.starts_with("syntax"),
            "{name}: {}",
            found.len()
        );
    }
    let took = begin.elapsed();
    assert!(took < MOST, "{name} took {took:?}");
}

#[test]
fn nesting_ends_in_findings() {
    for (before, open, middle, close) in NESTED {
        for times in [100, 190, 400, MAX_BYTES / (open.len() + close.len()) - 8] {
            let source = format!(
                "{before}{}{middle}{}",
                open.repeat(times),
                close.repeat(times)
            );
            check(&format!("{open} {times} times"), &source);
        }
    }
}

#[test]
fn length_ends_in_findings() {
    for (before, part, after) in LONG {
        for times in [1_000, (MAX_BYTES - 64) / part.len()] {
            check(
                &format!("{part} {times} times"),
                &format!("{before}{}{after}", part.repeat(times)),
            );
        }
    }
}

#[test]
fn longer_sources_are_refused() {
    let found = lower(&" ".repeat(MAX_BYTES + 1)).expect_err("too long");
    assert_eq!(found.0[0].code, codes::TOO_LARGE);
    let deep = format!(
        "function agent() {{ return {}1{} }}",
        "[".repeat(300),
        "]".repeat(300)
    );
    let found = lower(&deep).expect_err("too deep");
    assert_eq!(found.0[0].code, codes::TOO_DEEP);
}

/// Ambiguous tokens must not hide a bracket from the guard.
#[test]
fn ambiguous_texts_are_refused_or_read() {
    let many = "(".repeat(100_000);
    for source in [
        format!("x = a\n/b/{many}"),
        format!("if (a) /[)]/.test({many}"),
        format!("x = {{}} / {many}"),
        format!("x = `${{`}}`}}{many}"),
        format!("x = a++ / {many}"),
        format!("<!-- {many}"),
        format!("x = '\\\n{many}"),
        format!("x = /[/]{many}"),
        format!("x = a // {many}"),
        format!("/* {many}"),
        format!("\u{feff}{many}"),
        format!("x\u{a0}= {many}"),
        format!("i\\u0066 (a) / {many}"),
        format!("a.return / {many}"),
        format!("x = 1e+5{many}"),
        format!("x = of / 2 + {many}"),
    ] {
        check(&source[..source.len().min(20)], &source);
    }
}

/// Functions that pass functions on make copies of copies, up to a maximum.
#[test]
fn copies_of_copies_end_in_findings() {
    let mut source = "const f0 = (k) => k(1)\n".to_owned();
    for index in 1..40 {
        let before = index - 1;
        source +=
            &format!("const f{index} = (k) => f{before}((x) => k(x) + f{before}((y) => k(y)))\n");
    }
    source += "function agent() { return f39((x) => x) }";
    let began = Instant::now();
    let found = lower(&source).expect_err("findings");
    let is_limit = |code| matches!(code, codes::TOO_LARGE | codes::TOO_DEEP);
    assert!(found.iter().any(|found| is_limit(found.code)), "{found}");
    assert!(began.elapsed() < MOST);
}
