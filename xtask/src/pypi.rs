//! `cargo xtask pypi`: builds the wheel, installs it from its file into an empty environment, and
//! runs the package's tests there.
//!
//! Only maturin and what the tests need come from PyPI, into environments below the target folder.

use crate::shell::{Failed, failed, output, root, run, target, works};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "expected [--profile NAME] [--python FILE] [--command FILE] [--no-tests]";

/// The package, below the workspace.
const PACKAGE: &str = "bindings/python";

const MATURIN: &str = "maturin==1.16.0";

/// What the tests import, and the checkers of types.
const TEST_TOOLS: [&str; 8] = [
    "pytest>=8",
    "trio",
    "pydantic>=2",
    "mypy",
    "pyright",
    // For the examples.
    "pydantic-ai-slim",
    "smolagents",
    "langchain-core",
];

struct Options<'a> {
    profile: &'a str,
    python: &'a str,
    /// The command `a99` that the wheel brings, if any.
    command: Option<PathBuf>,
    tests: bool,
}

impl<'a> Options<'a> {
    fn parse(mut args: &[&'a str]) -> Result<Options<'a>, Failed> {
        let mut options = Options {
            profile: "release",
            python: "python3",
            command: None,
            tests: true,
        };
        loop {
            args = match *args {
                [] => return Ok(options),
                ["--no-tests", ref rest @ ..] => {
                    options.tests = false;
                    rest
                }
                ["--profile", "bench", ..] => {
                    let text = "maturin would build benchmarks; use release or sandbox";
                    return Err(Failed(text.to_owned()));
                }
                ["--profile", name, ref rest @ ..] => {
                    options.profile = name;
                    rest
                }
                ["--python", file, ref rest @ ..] => {
                    options.python = file;
                    rest
                }
                ["--command", file, ref rest @ ..] => {
                    options.command = Some(PathBuf::from(file));
                    rest
                }
                _ => return Err(Failed(USAGE.to_owned())),
            };
        }
    }
}

/// Builds and tests the wheel.
pub(crate) fn pypi(args: &[&str]) -> Result<(), Failed> {
    let options = Options::parse(args)?;
    let folder = target()?.join("pypi");
    let wheel = build(&options, &folder)?;
    println!("{}", wheel.display());
    match options.tests {
        true => test(&options, &folder, &wheel),
        false => Ok(()),
    }
}

/// Makes a virtual environment, unless it exists, and returns its programs' folder.
fn environment(python: &str, at: &Path) -> Result<PathBuf, Failed> {
    if !works(Command::new(at.join("bin/python")).arg("--version")) {
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(at))?;
    }
    Ok(at.join("bin"))
}

fn install(bin: &Path, packages: &[&str]) -> Result<(), Failed> {
    let mut pip = Command::new(bin.join("python"));
    pip.args(["-m", "pip", "install", "--quiet"]);
    run(pip.arg("--disable-pip-version-check").args(packages))
}

fn build(options: &Options<'_>, folder: &Path) -> Result<PathBuf, Failed> {
    let bin = environment(options.python, &folder.join("tools"))?;
    let maturin = bin.join("maturin");
    if !works(Command::new(&maturin).arg("--version")) {
        install(&bin, &[MATURIN])?;
    }
    let wheels = folder.join("wheels");
    clear(&wheels)?;
    let package = root().join(PACKAGE);
    // maturin takes files for the environment's `bin` from here.
    let scripts = package.join("data/scripts");
    clear(&scripts)?;
    if let Some(command) = &options.command {
        let copied = fs::copy(command, scripts.join("a99"));
        copied.map_err(|error| failed(command.display(), error))?;
    }
    let mut build = Command::new(maturin);
    build.args(["build", "--quiet", "--profile", options.profile]);
    build.arg("--manifest-path").arg(package.join("Cargo.toml"));
    run(build.arg("--out").arg(&wheels))?;
    let entries = fs::read_dir(&wheels).map_err(|error| failed(wheels.display(), error))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let wheel = files.find(|file| file.extension().is_some_and(|ext| ext == "whl"));
    wheel.ok_or_else(|| failed(wheels.display(), "maturin made no wheel"))
}

/// Installs the wheel where nothing else is, and runs README's lines, the tests and the checkers.
fn test(options: &Options<'_>, folder: &Path, wheel: &Path) -> Result<(), Failed> {
    let at = folder.join("installed");
    clear(&at)?;
    let bin = environment(options.python, &at)?;
    let wheel = wheel.to_string_lossy();
    install(&bin, &["--no-index", "--no-deps", &wheel])?;
    let python = || {
        let mut python = Command::new(bin.join("python"));
        // No package of the user's, and none of the working folder.
        python.arg("-I").current_dir(folder);
        python
    };
    let package = root().join(PACKAGE);
    let readme = package.join("README.md");
    let text = fs::read_to_string(&readme).map_err(|error| failed(readme.display(), error))?;
    for block in text.split("```python\n").skip(1) {
        let code = block.split("```").next().unwrap_or_default();
        run(python().arg("-c").arg(code))?;
    }
    if options.command.is_some() {
        output(Command::new(bin.join("a99")).arg("--version"))?;
    }
    install(&bin, &TEST_TOOLS)?;
    let config = package.join("pyproject.toml");
    let mut pytest = python();
    pytest.args(["-m", "pytest", "-p", "no:cacheprovider", "-c"]);
    run(pytest.arg(&config).arg(package.join("tests")))?;
    let typed = package.join("tests/typed.py");
    let mut mypy = python();
    mypy.args(["-m", "mypy", "--strict", "--package", "agent99"]);
    run(&mut mypy)?;
    let mut mypy = python();
    run(mypy.args(["-m", "mypy", "--strict"]).arg(&typed))?;
    let mut pyright = Command::new(bin.join("pyright"));
    pyright.arg("--pythonpath").arg(bin.join("python"));
    pyright.arg(package.join("python")).arg(&typed);
    run(pyright.current_dir(folder))
}

/// Makes an empty folder.
fn clear(folder: &Path) -> Result<(), Failed> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed(folder.display(), error))
        }
        _ => fs::create_dir_all(folder).map_err(|error| failed(folder.display(), error)),
    }
}

/// The command that runs vectors with the package that [`pypi`] installed.
pub(crate) fn vectors_driver() -> Result<String, Failed> {
    let python = target()?.join("pypi/installed/bin/python");
    let driver = root().join(PACKAGE).join("tests/vectors.py");
    Ok(format!("{} {}", python.display(), driver.display()))
}
