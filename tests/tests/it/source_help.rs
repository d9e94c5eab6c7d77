//! Help for sources that cannot be false: names, programs to write instead, warnings.

use agent99::capabilities::Capabilities;
use agent99::{Engine, RunError, RunOptions, json};
use serde_json::Value as Json;

/// The error of a body, run with these arguments.
fn error_of(engine: &Engine, body: &str, args: Json) -> RunError {
    let code = format!("export default async function agent(input) {{ {body} }}");
    let agent = engine.compile_source(code.as_str());
    let agent = agent.unwrap_or_else(|found| panic!("{body}\n{found}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let run = engine.run(&agent, args, RunOptions::new(), Capabilities::none());
    let outcome = runtime.block_on(run);
    outcome
        .error
        .unwrap_or_else(|| panic!("{body} gives {:?}", outcome.result.to_json()))
}

/// Help names what is wrong, and never a variable of the program that has an input's name.
#[test]
fn u1_help_names_the_value_and_not_a_word() {
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    let names = "const items = [1, 2]; const object = { a: 1 }; const key = 'k'; const value = 1;";
    for (body, wanted) in [
        (
            "return { r: input.x.map((y) => items.length + y) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.x.filter((y) => items.length > y) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.x.reduce((sum, y) => items.length + y, 0) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.items.reduce((sum, y) => sum + y, 0) }",
            "`input.items` is undefined",
        ),
        (
            "const o = input.o; o.x = object; return { o }",
            "`o` is undefined",
        ),
        (
            "const o = {}; o[input.zz] = key; return { o }",
            "`input.zz` is undefined",
        ),
        (
            "const o = input.o; delete o[key]; return { o, value }",
            "`o` is undefined",
        ),
        (
            "return { h: await hash({ value: 'x' + input.value, algorithm: 'md6' }) }",
            "hash: `algorithm` is the text \"md6\", and wants one of SHA-1, SHA-256",
        ),
    ] {
        let error = error_of(&engine, &format!("{names} {body}"), json!({}));
        let help = error.help.unwrap_or_default();
        assert!(help.starts_with(wanted), "{body}\n{help}");
        assert!(help.matches('`').count() == 2, "{body}\n{help}");
    }
    // A function of the machine that a loop calls has no arguments that stand there.
    for body in [
        "for (const x of input.items) { return x }",
        "const [a] = input.items; return { a }",
    ] {
        let help = error_of(&engine, body, json!({})).help;
        let help = help.unwrap_or_default();
        assert!(!help.contains("argument"), "{body}\n{help}");
    }
}
