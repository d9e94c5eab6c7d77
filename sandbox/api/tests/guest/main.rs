//! Guests at work, from the image that was built last; one file for each guarantee.
//!
//! Tests that need the image (`cargo xtask guest`) are run by name, a module or a test, or
//! all by `cargo xtask guest-test`:
//! `cargo test --profile sandbox -p a99-sandbox --features build,testing --test guest
//! library:: -- --ignored`.

#[path = "../common/alone.rs"]
mod alone;
mod aot;
mod attacks;
mod commands;
mod common;
mod computer;
mod fork;
mod image;
mod ipv6;
mod isolation;
mod library;
mod packs;
mod proofs;
mod soak;
mod translate;
mod world;
