//! Stack of the module, with room to spare for what is nested as deeply as the compiler
//! allows: 2 MiB do for code that is not optimised, 1 MiB, the linker's own choice, for
//! code that is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let family = std::env::var("CARGO_CFG_TARGET_FAMILY");
    if family.is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={}", 4 << 20);
    }
}
