//! container2wasm images, and other foreign modules: at work, under attack, and malicious
//! ones. Also the engine as a WebAssembly module (`engine`), because this crate links
//! wasmtime.
//!
//! `linux` needs the parts of a built image (`cargo xtask guest`) and is run by
//! name: `cargo test --profile sandbox -p a99-sandbox --features c2w --test c2w
//! linux:: -- --ignored`.

#[path = "../common/alone.rs"]
mod alone;
mod attacks;
mod commands;
mod common;
mod cycles;
mod engine;
mod linux;
mod s7_foreign;
