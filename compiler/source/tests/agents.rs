//! Tests the choice of the agent's function, and the warnings about differences from JavaScript.

use a99_core::diag::Severity;
use a99_source::codes::*;

#[test]
fn sources_without_an_agent_are_refused() {
    let atoms = a99_atoms::all_atoms();
    for (source, is) in [
        ("", NO_AGENT),
        ("const a = 1", NO_AGENT),
        ("function a() {} function b() {}", NO_AGENT),
        ("f()\nfunction agent() {}", UNSUPPORTED),
        ("import x from 'x'\nfunction agent() {}", UNSUPPORTED),
        ("function agent(a, b) {}", UNSUPPORTED),
        ("function* agent() {}", UNSUPPORTED),
        ("function agent( {", SYNTAX),
        ("function agent() { return 1 +* 2 }", SYNTAX),
        ("function agent() { ) }", SYNTAX),
    ] {
        let found = a99_source::read(source, &atoms).expect_err(source);
        assert_eq!(found.0[0].code, is, "{source}: {found}");
        assert!(found.0[0].help.is_some(), "{source}");
    }
    let found = a99_source::read(b"function agent() { return '\xff' }", &atoms).expect_err("bytes");
    assert_eq!(
        (found.0[0].code, found.0[0].span.clone()),
        (SYNTAX, Some(27..28))
    );
}

/// The agent is the default export, else `agent`, else the only export, else the only function.
#[test]
fn the_agent_is_found() {
    let atoms = a99_atoms::all_atoms();
    for source in [
        "export default function ({ n }) { return n }",
        "export default ({ n }) => n",
        "export default async ({ n }) => { return n }",
        "function agent({ n }) { return n }",
        "function other() {}\nfunction main({ n }) { return n }\nexport default main",
        "const main = async ({ n }) => n\nconst other = () => 1\nexport default main;",
        "const agent = ({ n }) => n",
        "function other({ n }) { return n }",
        "export function main({ n }) { return help(n) }\nfunction help(n) { return n }",
        "export const main = async ({ n }) => n\nconst help = (n) => n",
        "function agent(input: { n: number }) { return input.n }",
        "interface T { n?: T }\nfunction agent({ n }: T) { return n }",
        "function agent({ n }: { n?: () => void, f(): Date }) { return n }",
        "function agent(input) { const { n } = input\n return n }",
    ] {
        let read = a99_source::read(source, &atoms);
        let read = read.unwrap_or_else(|found| panic!("{source}: {found}"));
        let json = String::from_utf8(read.json).expect("UTF-8");
        assert!(
            json.contains(r#""op":"varsImport","keys":"#),
            "{source}: {json}"
        );
    }
}

/// Accepted forms that mean something else in JavaScript give a warning.
#[test]
fn silent_differences_are_warned_of() {
    let atoms = a99_atoms::all_atoms();
    for (code, offending) in [
        ("a.forEach((x) => a.push(x))", "a.forEach((x) => a.push(x))"),
        (
            "return a.filter((x) => a.pop() > x)",
            "a.filter((x) => a.pop() > x)",
        ),
        ("return { m: a.match(/(b)/) }", "a.match(/(b)/)"),
        ("const m = /b/.exec(a); return [m, m[0]]", "m"),
        ("return a.match(/b/)", "a.match(/b/)"),
        (
            "return a.localeCompare('b', 'de')",
            "a.localeCompare('b', 'de')",
        ),
        (
            "const context = (x) => x + a; return context('user.id')",
            "context('user.id')",
        ),
    ] {
        let source = format!("async function agent({{ a }}) {{\n  {code}\n}}");
        let read = a99_source::read(&source, &atoms).expect(code);
        let [found] = &read.warnings.0[..] else {
            panic!("{code}: {}", read.warnings);
        };
        assert_eq!((found.code, found.severity), (DIFFERS, Severity::Warning));
        assert_eq!(found.offending, offending, "{code}");
    }
    for plain in [
        "function agent({ a }) { for (const x of a) a.push(x) }",
        "function agent({ a }) { const m = a.match(/(b)/); return m ? [m[1], ...m] : m === null }",
        "function agent({ a }) { return [a.match(/b/g), isNaN(new Date(a)), isNaN(a)] }",
        "function agent({ a }) { return a.localeCompare('b') }",
    ] {
        let read = a99_source::read(plain, &atoms).expect(plain);
        assert!(read.warnings.is_empty(), "{plain}: {}", read.warnings);
    }
}
