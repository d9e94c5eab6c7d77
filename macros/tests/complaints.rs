//! Every complaint of `#[atom]`, and where it points to. What compiles
//! is tested with the facade, which the expansion names.
//!
//! Each file under `ui` gathers many complaints, since all of them are told at
//! once and every file is a compilation. `TRYBUILD=overwrite` writes the
//! expected texts anew.

#[test]
fn complaints() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
