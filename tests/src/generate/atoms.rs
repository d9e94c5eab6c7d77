//! Atoms that the generator leaves out.

/// Their names, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("random", "gives another number each time"),
    ("uuid", "gives another text each time"),
    ("storeProcedure", "gives another token each time"),
    (
        "runCode",
        "the oracle looks for the transpiler before `args`",
    ),
    (
        "storeSearch",
        "the oracle resolves `k` before the step begins",
    ),
    ("llmToolLoop", "recorded vectors judge it, not the oracle"),
];
