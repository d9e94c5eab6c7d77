//! Tests that sources with little nesting are read on the caller's stack: they fit the smallest
//! stack that callers have, in builds without optimisation too.

use a99_source::read;

/// Half of the stack of ordinary threads, which is 2 MiB.
const STACK: usize = 1 << 20;

/// Parts of a nested source: prefix, opening part (repeated), centre, closing part (repeated),
/// suffix.
const NESTED: [[&str; 5]; 28] = [
    ["function agent({ a }) { return ", "(", "a", ")", " }"],
    ["function agent({ a }) { return ", "[", "a", "]", " }"],
    ["function agent({ a }) { return ", "{ b: ", "a", " }", " }"],
    ["function agent({ a }) { return ", "`${", "a", "}`", " }"],
    ["function agent({ a }) { return ", "!", "a", "", " }"],
    ["function agent({ a }) { return ", "a ? 1 : ", "a", "", " }"],
    ["function agent({ a }) { return ", "a ?? (", "a", ")", " }"],
    ["function agent({ a }) { return ", "a + ", "a", "", " }"],
    ["function agent({ a }) { return ", "a.at(", "0", ")", " }"],
    ["function agent({ a }) { return a", ".b", "", "", " }"],
    ["function agent({ a }) { return a", ".slice()", "", "", " }"],
    ["function agent({ a }) { return a", "[0]", "", "", " }"],
    ["function agent({ a }) { return a", " as any", "", "", " }"],
    ["function agent({ a }) { return a", "!", "", "", " }"],
    [
        "function agent({ a }) { let b = a\n",
        "if (a) { ",
        "b = 1",
        " }",
        " return b }",
    ],
    [
        "function agent({ a }) { let b = a\n",
        "if (a) b = 2; else ",
        "b = 1",
        "",
        "\nreturn b }",
    ],
    [
        "function agent({ a }) { let b = a\n",
        "for (const c of a) { ",
        "b = 1",
        " }",
        " return b }",
    ],
    [
        "function agent({ a }) { let b = a\n",
        "while (b) { ",
        "b = 0",
        " }",
        " return b }",
    ],
    [
        "function agent({ a }) { let b = a\n",
        "try { ",
        "b = 0",
        " } finally { b = 1 }",
        " return b }",
    ],
    [
        "function agent({ a }) { let b = a\n",
        "switch (a) { case 1: ",
        "b = 0",
        " }",
        " return b }",
    ],
    [
        "function agent({ a }) { return ",
        "a.map((b) => ",
        "a",
        ")",
        " }",
    ],
    [
        "function agent({ a }) { return ",
        "a.filter((b) => b).map((b) => { return ",
        "a",
        " })",
        " }",
    ],
    [
        "function agent({ a }) { return f(a) }\nconst f = (a) => ",
        "a && f(",
        "a",
        ")",
        "",
    ],
    [
        "const g = (k) => k(1)\nfunction agent({ a }) { return ",
        "g((b) => ",
        "a",
        ")",
        " }",
    ],
    [
        "const g = (k) => k\nfunction agent({ a }) { return ",
        "g(() => ",
        "a",
        ")",
        "() }",
    ],
    [
        "function agent({ a }) { const f = ",
        "() => ",
        "a",
        "",
        "\n return f().length }",
    ],
    [
        "function agent({ a }) { const o = ",
        "{ b: (x) => ",
        "a",
        " }",
        "\n return o.b(1).length }",
    ],
    [
        "class A { b = 1; c(x) { return ",
        "[this.c(",
        "this.b",
        ")]",
        " } }\nfunction agent({ a }) { return new A().b }",
    ],
];

#[test]
fn what_nests_little_fits_a_small_stack() {
    let atoms = a99_atoms::all_atoms();
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(STACK);
        let all = small.spawn_scoped(scope, || {
            let mut accepted = 0;
            for [before, open, middle, close, end] in NESTED {
                for times in 1..=64 {
                    let (open, close) = (open.repeat(times), close.repeat(times));
                    let source = format!("{before}{open}{middle}{close}{end}");
                    accepted += usize::from(read(&source, &atoms).is_ok());
                }
            }
            accepted
        });
        let accepted = all
            .expect("a thread")
            .join()
            .expect("a stack that is enough");
        assert!(accepted > NESTED.len(), "{accepted}");
    });
}

/// A source that nests deeper than the guard's scan shows is read again on a larger stack,
/// without results of the first attempt.
#[test]
fn what_nests_deeper_is_read_again() {
    let atoms = a99_atoms::all_atoms();
    for times in 1..=200 {
        let sum = " + a".repeat(times);
        let source = format!("function agent({{ a }}) {{ return a{sum} }}");
        let read = read(&source, &atoms).expect("a sum");
        assert!(read.warnings.is_empty(), "{times}");
        let json = String::from_utf8(read.json).expect("JSON");
        assert_eq!(json.matches("\"+\"").count(), times);
    }
}
