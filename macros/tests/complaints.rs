//! Errors of `#[atom]`, and their places. The facade, which the expansion refers to, tests
//! functions that compile.
//!
//! Each file under `ui` has many errors, since all are reported at once and every file is a
//! compilation. `TRYBUILD=overwrite` rewrites the expected texts.

#[test]
fn complaints() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
