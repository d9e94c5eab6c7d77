//! Tests warnings about likely mistakes, and texts that are not sources.

/// Valid JavaScript with a likely mistake: its code, its place, its advice.
#[test]
fn slips_are_told() {
    let atoms = a99_atoms::all_atoms();
    for (code, kind, offending, help) in [
        (
            "a.sort; return a",
            "lint.dropped_result",
            "a.sort",
            "call it",
        ),
        (
            "a == 3; return a",
            "lint.dropped_result",
            "a == 3",
            "one `=`",
        ),
        (
            "a + 1; return a",
            "lint.dropped_result",
            "a + 1",
            "`return` it",
        ),
        (
            "a.trim(); return a",
            "lint.dropped_result",
            "a.trim()",
            "`a = a.trim(...)`",
        ),
        (
            "Math.round(a); return a",
            "lint.dropped_result",
            "Math.round(a)",
            "const value",
        ),
        (
            "return a.map((x) => { x * 2 })",
            "lint.missing_result",
            "a.map((x) => { x * 2 })",
            "leave out the braces",
        ),
        (
            "return a.toSorted((x, y) => x.n < y.n)",
            "lint.wrong_kind",
            "x.n < y.n",
            "`x.n - y.n`",
        ),
        (
            "a.forEach((x) => { if (x > 3) return x }); return a",
            "lint.return_in_body",
            "return",
            "`some`",
        ),
        (
            "if (!a in {}) return 1; return a",
            "lint.constant_condition",
            "!a in {}",
            "`!(a in {})`",
        ),
        (
            "if (a) { return\n a + 1 } return a",
            "lint.no_result",
            "return",
            "same line",
        ),
        (
            "let n; for (const x of a) n += x; return n",
            "lint.bad_arithmetic",
            "n",
            "`let n = 0`",
        ),
        (
            "if (a = 'done') return 1; return a",
            "lint.constant_condition",
            "a = 'done'",
            "`a === 'done'`",
        ),
        (
            "while (a = 0) a = 1; return a",
            "lint.constant_condition",
            "a = 0",
            "`a === 0`",
        ),
        (
            "let t = 0; for (let i = a.length; i > 0; i--) t += a[i]; return t",
            "lint.unknown_member",
            "i = a.length",
            "`let i = a.length - 1`",
        ),
        (
            "let b = [1]; b = b.push(2); return b",
            "lint.wrong_kind",
            "b = b.push(2)",
            "`b.push(...)`",
        ),
        (
            "return a.map(parseInt)",
            "lint.wrong_arguments",
            "parseInt",
            "`Number`",
        ),
        (
            "const rs = await Promise.allSettled(a.map((key) => storeGet({ key }))); return rs.map((r) => r.error)",
            "lint.unknown_member",
            "error",
            "`reason`",
        ),
        (
            "let t = 0; const o = { b: 1 }; for (const v of o) t += v; return t",
            "lint.wrong_kind",
            "o",
            "`Object.values(o)`",
        ),
    ] {
        let source = format!("async function agent({{ a }}) {{\n  {code}\n}}");
        let read = a99_source::read(&source, &atoms).expect(code);
        let found = read.warnings.iter().find(|found| found.code == kind);
        let found = found.unwrap_or_else(|| panic!("{code}: {}", read.warnings));
        assert_eq!(found.offending, offending, "{code}");
        let told = found.help.as_deref().unwrap_or_default();
        assert!(told.contains(help), "{code}: {told}");
    }
    for plain in [
        "function agent({ a }) { a.sort(); a.push(1); return a }",
        "function agent({ a }) { a.forEach((x) => { if (x) return; x.n = 1 }); return 1 }",
        "function agent({ a }) { return a.map((x) => { return x * 2 }) }",
        "function agent({ a }) { return a.toSorted((x, y) => x - y) }",
        "function agent({ a }) { let n; n = 1; n += a; return n }",
        "function agent({ a }) { let n; while (n = a.pop()) a = [n]; return a }",
        "function agent({ a }) { let m; if (m = a.match(/b/)) return 1; return 2 }",
        "function agent({ a }) { let t = 0; for (let i = a.length; i > 0; i--) t += a[i - 1]; return t }",
        "function agent({ a }) { let b = [1]; let n = b.push(2); return { n, a } }",
        "function agent({ a }) { return a.map(Number) }",
        "function agent({ a }) { let n = 0; n = +a; return n }",
        "function agent({ a }) { return `{${a}}` + `{b}` + `\\{a}` }",
        "function agent({ a }) { return new Date(2024, 11, 25).getTime() + a }",
        "function agent({ a }) { return a.reduce((sum, x) => sum + x) }",
        "function agent({ a }) { return a.reduce((sum, x) => sum + x.n, 0) }",
        "function agent({ a }) { return a.toSorted((x, y) => y.n - x.n) }",
        "function agent({ a }) { a.forEach((x) => console.log(x)); return a }",
        "function agent({ a }) { const d = new Date(a); return d.getTime() === 5 }",
        "function agent({ a }) { let i = 0; for (let j = 0; j < 3; i++) { j += 1 } return i + a }",
        "async function agent({ a }) { const rs = await Promise.allSettled([uuid()]); return rs[0].value + a }",
        "function agent({ a }) { const o = [1]; let t = a; for (const v of o) t += v; return t }",
        "function agent({ a }) { if (!('b' in a)) return 1; return }",
        "function agent({ a }) { a.map((x) => { if (x) return 1; return 2 }); return a }",
    ] {
        let read = a99_source::read(plain, &atoms).expect(plain);
        assert!(read.warnings.is_empty(), "{plain}: {}", read.warnings);
    }
}

/// A text in another format is reported by the name of the format.
#[test]
fn other_formats_are_told() {
    let atoms = a99_atoms::all_atoms();
    for (text, name, help) in [
        ("{\"op\": \"seq\", \"steps\": []}", "JSON", "`.json`"),
        ("def agent(n):\n    return n\n", "Python", "export default"),
        ("op: seq\nsteps:\n  - op: uuid\n", "YAML", "export default"),
    ] {
        let found = a99_source::read(text, &atoms).expect_err(text);
        let first = &found.0[0];
        assert_eq!(first.message, format!("this is {name}, not JavaScript"));
        assert!(
            first
                .help
                .as_deref()
                .is_some_and(|told| told.contains(help))
        );
    }
}
