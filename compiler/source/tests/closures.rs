//! Tests what closures and classes refuse, with the place, and places in rewritten sources.

use a99_source::codes::{BAD_BINDING, UNSUPPORTED};
use a99_source::read;

/// Statements of an agent with `a`: the code of the finding, the reported text, and a part of the
/// help.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "const o = { f: () => 1 }; return o",
        UNSUPPORTED,
        "o",
        "no data",
    ),
    (
        "const o = { f: () => 1 }; return { o: [o] }",
        UNSUPPORTED,
        "{ o: [o] }",
        "no data",
    ),
    (
        "const o = { f: () => 1 }; return JSON.stringify(o)",
        UNSUPPORTED,
        "JSON.stringify(o)",
        "no data",
    ),
    (
        "const f = () => 1; return `${f}`",
        UNSUPPORTED,
        "f",
        "no data",
    ),
    (
        "const fs = [() => 1]; return fs[0] + 1",
        UNSUPPORTED,
        "fs[0]",
        "no data",
    ),
    (
        "const fs = [() => 1]; await storeSet({ key: 'k', value: fs })",
        UNSUPPORTED,
        "{ key: 'k', value: fs }",
        "no data",
    ),
    (
        "const f = a ?? (() => 1); return f()",
        UNSUPPORTED,
        "f()",
        "apart from data",
    ),
    (
        "a.f = () => 1; return a.f()",
        UNSUPPORTED,
        "() => 1",
        "no data",
    ),
    (
        "const f = (x) => x; const t = [f]; return [t, f.length].length",
        UNSUPPORTED,
        "f",
        "belongs to it",
    ),
    (
        "const f = (x) => x; const t = [f]; return t[0].call(null, 1)",
        UNSUPPORTED,
        "t[0].call(null, 1)",
        "by its name",
    ),
    (
        "class A { m() { return 1 } } const f = new A().m; return f()",
        UNSUPPORTED,
        "new A()",
        "calls it",
    ),
    (
        "class A { #p = 1 } return new A()",
        UNSUPPORTED,
        "new A()",
        "its members",
    ),
    (
        "class A { toJSON() { return 1 } } return new A()",
        UNSUPPORTED,
        "new A()",
        "its members",
    ),
    (
        "class A { toString() { return 'x' } } return '' + new A()",
        UNSUPPORTED,
        "new A()",
        "toString",
    ),
    (
        "class A { static x = 1 } return A.x",
        UNSUPPORTED,
        "class A { static x = 1 }",
        "at the top",
    ),
    (
        "class A { m() { return a } } return new A().m()",
        UNSUPPORTED,
        "a",
        "constructor",
    ),
    (
        "class A { m() {} } class B extends A { m = 1 } return 1",
        UNSUPPORTED,
        "A",
        "no field has the name of a method",
    ),
    (
        "try { a() } catch (e) { const f = [() => e.message]; return f[0]() }",
        UNSUPPORTED,
        "e",
        "e.message",
    ),
    (
        "const fs = []; for (let i = 0; i < 3; i++) { i++; fs.push(() => i) } return fs[0]()",
        UNSUPPORTED,
        "i",
        "within the loop",
    ),
    (
        "const o = { n: 1, f() { return this.n } }; const { f } = o; return f()",
        UNSUPPORTED,
        "f()",
        "object.method",
    ),
    (
        "const n = 1; const f = () => { n = 2 }; f()",
        BAD_BINDING,
        "n",
        "`let`",
    ),
    (
        "const f = [() => nothing]; return f[0]()",
        a99_source::codes::UNKNOWN_NAME,
        "nothing",
        "",
    ),
];

#[test]
fn closures_are_refused_in_place() {
    let atoms = a99_atoms::all_atoms();
    let mut wrong = Vec::new();
    for (code, is, offending, help) in REFUSED {
        let source = format!("export default async function agent({{ a }}) {{\n  {code}\n}}\n");
        let Err(found) = read(&source, &atoms) else {
            wrong.push(format!("accepted: {code}"));
            continue;
        };
        let fits = found.0.iter().any(|one| {
            let at = one.span.clone().unwrap_or_default();
            let written = &source[at.start as usize..at.end as usize];
            let says = one.help.as_deref().unwrap_or_default().contains(help);
            one.code == *is && written == *offending && one.offending == *offending && says
        });
        if !fits {
            let shown = found.render(Some(("a.ajs", source.as_bytes())));
            wrong.push(format!("{code}: `{offending}`, {help}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Each place of a rewritten program is a range of the source as written.
#[test]
fn places_are_those_of_the_source() {
    let atoms = a99_atoms::all_atoms();
    let source = "export default function agent({ list }) {\n  const by = (k) => (a, b) => a[k] - b[k]\n  \
                  let n = 0\n  const t = { add: (x) => { n += x } }\n  list.sort(by('n'))\n  t.add(2)\n  return \
                  n\n}\n";
    let read = read(source, &atoms).expect("a program");
    let json = String::from_utf8(read.json).expect("JSON");
    assert!(json.contains(r#""$fn""#), "{json}");
    for (start, end) in &read.places {
        assert!(
            start <= end && *end as usize <= source.len(),
            "{start}..{end}"
        );
    }
    let texts = read
        .places
        .iter()
        .map(|(start, end)| &source[*start as usize..*end as usize]);
    let texts: Vec<&str> = texts.collect();
    for text in ["n += x", "t.add(2)", "a[k] - b[k]"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}
