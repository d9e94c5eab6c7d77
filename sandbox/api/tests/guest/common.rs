//! Shared by the library's tests: the image, and starting from it.

use a99_sandbox::cache::{Cache, Event};
use a99_sandbox::{Builder, Image, Output, Sandbox, block_on};
use std::path::Path;
use std::sync::LazyLock;

/// Loaded once for all tests. `A99_TEST_MODULE` names a compiled module to use instead of
/// the one that was built last.
pub static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let cache = Cache::of_user().expect("a cache");
    if let Ok(path) = std::env::var("A99_TEST_MODULE") {
        return Image::at(&cache, Path::new(&path)).expect("the named module");
    }
    Image::current(&cache, &mut |_: Event<'_>| {}).expect("the built image")
});

/// Builder of a sandbox with the image.
pub fn builder() -> Builder {
    Sandbox::builder().loaded_image(&IMAGE)
}

pub fn start() -> Sandbox {
    builder().start_blocking().expect("a sandbox")
}

/// Runs a script that must succeed; returns its output as text.
#[track_caller]
pub fn sh(sandbox: &Sandbox, text: &str) -> String {
    let output = block_on(sandbox.exec(text)).expect("it runs");
    succeeded(text, output)
}

#[track_caller]
pub fn succeeded(what: &str, output: Output) -> String {
    assert_eq!(output.exit_code(), 0, "{what}: {}", output.stderr_text());
    String::from_utf8(output.stdout).expect("text")
}
