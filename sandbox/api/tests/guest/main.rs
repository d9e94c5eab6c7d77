//! Guests at work, from the image that was built last; one file for each thing
//! that is promised.
//!
//! What needs the image (`cargo xtask guest`) is run by name, a module or a test,
//! or all of it by `cargo xtask guest-test`:
//! `cargo test --profile sandbox -p a99-sandbox --features build,testing --test guest
//! library:: -- --ignored`.

#[path = "../common/alone.rs"]
mod alone;
mod aot;
mod attacks;
mod commands;
mod common;
mod image;
mod isolation;
mod library;
mod proofs;
mod soak;
mod translate;
mod world;
