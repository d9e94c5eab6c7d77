//! Images of container2wasm, and other modules that are not ours: at work, under
//! attack, and made to do harm. And the engine as a module of WebAssembly (`engine`),
//! which stands here because wasmtime is linked here.
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
