//! The engine as a module of WebAssembly: glue between its exports and [`a99_bindings`].
//!
//! | export | what it does |
//! |---|---|
//! | `a99_words(words)` | the address of the buffer of messages, with room for `words` words |
//! | `a99_text(units)` | the address of the buffer of input text, with room for `units` UTF-16 units |
//! | `a99_call(op, words, units)` | does an operation; the units of its text |
//! | `a99_text_out()` | the address of that text |
//! | `a99_pricer(on)` | whether prices are asked of the import `price` |
//! | `a99_caller(on)` | whether calls of atoms are made by the import `call`, at once |
//!
//! The imports are `env.now()`, milliseconds since 1970, `env.random(address, bytes)` and
//! `env.price(op, units, text, units)`, the price of a step whose message is in the buffer of
//! words, and `env.call(place, text, units)`, which answers a call in the same way and returns the
//! units of the text that it wrote. Other targets get no exports.

#![cfg_attr(
    all(target_family = "wasm", target_os = "unknown"),
    allow(unsafe_code, reason = "imports and exports are an interface of C")
)]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod exports;
