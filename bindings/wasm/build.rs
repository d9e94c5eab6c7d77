//! Stack of the module, with room to spare for what is nested as deeply as the compiler allows.
//! The linker's own choice is 1 MiB; code that is not optimised needs more than 2.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let family = std::env::var("CARGO_CFG_TARGET_FAMILY");
    if family.is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={}", 16 << 20);
    }
}
