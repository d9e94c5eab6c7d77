//! Every complaint of `#[atom]`, and where it points to. What compiles is in
//! the other modules.
//!
//! Each file under `ui` gathers many complaints, since all of them are told at
//! once and every file is a compilation. `TRYBUILD=overwrite` writes the
//! expected texts anew.

#[test]
fn complaints() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
