//! `cargo xtask guest` and tasks with the guest: tests, repeated boots, network load.
//!
//! `a99` builds the image. It is compiled here with the feature `sandbox`, so that other tasks need
//! no wasmtime.

use crate::shell::{Failed, cargo, failed, root, run, target, works};
use crate::stage::{Outcome, Progress};
use serde_json::Value;
use std::process::Command;

/// The profile of all builds with wasmtime.
const PROFILE: [&str; 2] = ["--profile", "sandbox"];

/// The packages that depend on wasmtime or its compiler. They are always built together: cargo then
/// resolves the same features of all dependencies, and compiles wasmtime once.
const PACKAGES: [&str; 14] = [
    "-p",
    "a99-cli",
    "-p",
    "a99-sandbox",
    "-p",
    "a99-sandbox-runner",
    "-p",
    "a99-sandbox-c2w",
    "-p",
    "a99-shell",
    "-p",
    "a99-jit",
    "--features",
    "a99-cli/sandbox,a99-sandbox/build,a99-sandbox/c2w,a99-sandbox/testing,a99-shell/sandbox",
];

/// All packages except those whose code or tests need wasmtime: these are in [`with_wasmtime`].
/// They are always built together, too. Code that needs a PostgreSQL server at run time is included
/// where it is only compiled.
pub(crate) const WITHOUT_WASMTIME: &[&str] = &[
    "--workspace",
    "--features",
    "a99-cli/full,a99-sandbox-oci/registry",
    "--exclude",
    "a99-jit",
    "--exclude",
    "a99-sandbox",
    "--exclude",
    "a99-sandbox-c2w",
    "--exclude",
    "a99-sandbox-runner",
];

/// Checks of `a99 sandbox doctor` that decide whether this machine can build an image and run
/// guests, with the statuses that count as able.
const ABLE: [(&str, &[&str]); 2] = [
    ("build tools", &["ok"]),
    ("address space", &["ok", "warning"]),
];

/// Default number of boots in a row.
const BOOTS: &str = "200";

/// The test that boots.
const BOOT: &str = "proofs::boots::boots_reach_a_shell_without_a_warning_and_are_all_different";

/// The test of the network under load.
const SOAK: &str = "soak::the_network_does_not_stall";

/// The packs of programs, and the tests of what people do with them.
const PACK_NAMES: &str = "build,node,py,tools";
const PACKS: [&str; 6] = [
    "containers::dynamic_programs_of_musl_run_without_a_shell_and_as_any_user",
    "packs::a_pack_is_built_listed_used_and_copied",
    "packs::build_compiles_links_and_makes",
    "packs::node_runs_scripts_and_npm_works_offline",
    "packs::py_computes_and_draws",
    "packs::tools_do_their_work",
];

/// Default seconds of load on the network.
const SOAK_SECONDS: &str = "600";

/// A cargo command for all packages with wasmtime.
pub(crate) fn with_wasmtime(command: &str) -> Command {
    let mut cargo = cargo(command);
    cargo.args(PROFILE).args(PACKAGES);
    cargo
}

/// Calls `a99 sandbox build` with these flags, from the build with all packages that use wasmtime:
/// other features would compile it a second time.
pub(crate) fn build(flags: &[&str]) -> Result<(), Failed> {
    run(with_wasmtime("test").args(["--no-run", "--test", "named"]))?;
    build_with(sandbox("build")?.args(flags))
}

/// A command of the compiled `a99 sandbox`. It ends with this task: a killed build of the image
/// leaves no process behind.
pub(crate) fn sandbox(command: &str) -> Result<Command, Failed> {
    let a99 = target()?.join(PROFILE[1]).join("a99");
    let mut sandbox = match works(Command::new("setpriv").arg("--version")) {
        true => {
            let mut wrapper = Command::new("setpriv");
            wrapper.args(["--pdeathsig", "TERM", "--"]).arg(a99);
            wrapper
        }
        false => Command::new(a99),
    };
    sandbox.args(["sandbox", command]);
    Ok(sandbox)
}

fn build_with(command: &mut Command) -> Result<(), Failed> {
    // The command has printed its error.
    run(command.current_dir(root())).map_err(|_| Failed(String::new()))
}

/// Compiles all tests with wasmtime and the `a99` that they need, and builds the image with it. A
/// failure counts, unless the doctor reports that this machine cannot build images or run guests.
pub(crate) fn build_where_possible() -> Result<Outcome, Failed> {
    run(with_wasmtime("test").arg("--no-run"))?;
    let Err(failure) = build_with(&mut sandbox("build")?) else {
        return Ok(Outcome::Passed);
    };
    // It exits with an error if it finds problems, but prints its report.
    let doctor = sandbox("doctor")?.arg("--json").output();
    let doctor = doctor.map_err(|error| failed("a99 sandbox doctor", error))?;
    match unable(&String::from_utf8_lossy(&doctor.stdout)) {
        Some(reason) => Ok(Outcome::Skipped(reason)),
        None => Err(failure),
    }
}

/// The reason why this machine cannot run guests, from the doctor's report.
fn unable(report: &str) -> Option<String> {
    let report: Value = serde_json::from_str(report.trim()).ok()?;
    let checks = report["checks"].as_array()?;
    let reasons = ABLE.iter().filter_map(|(name, fine)| {
        let check = checks.iter().find(|check| check["check"] == *name)?;
        let status = check["status"].as_str()?;
        let text = check["message"].as_str().unwrap_or_default();
        (!fine.contains(&status)).then(|| format!("the doctor says of {name}: {text}"))
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Runs the tests without an image: the engine as WebAssembly, which [`test()`] includes.
pub(crate) fn test_without_image(progress: &Progress) -> Result<(), Failed> {
    let mut engine = with_wasmtime("test");
    progress.tests(engine.args(["--test", "c2w", "--", "engine::"]))
}

/// Runs all tests of the sandbox but those of [`packs`], with the newest image; they fail without
/// one.
pub(crate) fn test(progress: &Progress) -> Result<(), Failed> {
    let mut most = with_wasmtime("test");
    most.args(["--no-fail-fast", "--", "--include-ignored"]);
    most.arg("--exact");
    for name in PACKS.iter().chain([&SOAK]) {
        most.args(["--skip", name]);
    }
    let most = progress.tests(&mut most);
    // It measures times, so it runs alone.
    let soak = progress.tests(&mut one_test(SOAK));
    most.and(soak)
}

/// A cargo command that runs one test of the binary `guest` by its full name.
pub(crate) fn one_test(name: &str) -> Command {
    let mut test = with_wasmtime("test");
    test.args(["--test", "guest", "--"]);
    test.args(["--include-ignored", "--nocapture", "--exact", name]);
    test
}

/// The value of a task's only option, or its default.
fn option<'a>(args: &[&'a str], name: &str, usual: &'a str) -> Result<&'a str, Failed> {
    match *args {
        [] => Ok(usual),
        [given, value] if given == name => Ok(value),
        _ => Err(Failed(format!("expected [{name} N]"))),
    }
}

/// Boots the guest repeatedly.
pub(crate) fn boots(args: &[&str]) -> Result<(), Failed> {
    let count = option(args, "--count", BOOTS)?;
    run(one_test(BOOT).env("A99_BOOTS", count))
}

/// Loads the network of a guest for a long time.
pub(crate) fn soak(args: &[&str]) -> Result<(), Failed> {
    let seconds = option(args, "--seconds", SOAK_SECONDS)?;
    run(one_test(SOAK).env("A99_SOAK_SECONDS", seconds))
}

/// Builds the image and all packs, and runs what people do with these.
pub(crate) fn packs() -> Result<(), Failed> {
    build(&[])?;
    build_with(sandbox("build")?.args(["--locked", "--pack", PACK_NAMES]))?;
    let mut tests = with_wasmtime("test");
    tests.args(["--test", "guest", "--test", "named", "--"]);
    run(tests
        .args(["--include-ignored", "--nocapture", "--exact"])
        .args(PACKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::metadata;
    use crate::tidy::{section, tracked_files};

    #[test]
    fn the_tests_that_tasks_run_exist() {
        for name in [BOOT, SOAK]
            .iter()
            .chain(&crate::cosim::TRANSLATE)
            .chain(&PACKS)
        {
            let (module, test) = name.rsplit_once("::").expect("a module");
            let has = |folder: &str| {
                let file = root().join(format!("{folder}/{}.rs", module.replace("::", "/")));
                let text = std::fs::read_to_string(file).unwrap_or_default();
                text.contains(&format!("fn {test}("))
            };
            let is_there = has("sandbox/api/tests/guest") || has("cli/tests/named");
            assert!(is_there, "{name} does not exist");
        }
    }

    /// Each row of `docs/sandbox.md` that compares the sandbox with others names a test of it.
    #[test]
    fn the_tests_that_the_comparison_names_exist() {
        let page = std::fs::read_to_string(root().join("docs/sandbox.md")).expect("the page");
        let files = tracked_files().expect("the files");
        let tests: Vec<&str> = files
            .iter()
            .filter(|(path, _)| {
                path.starts_with("sandbox/api/tests/guest/") || path.starts_with("cli/tests/named/")
            })
            .map(|(_, text)| text.as_str())
            .collect();
        let rows = section(&page, "## Beside others");
        let names = rows.iter().filter_map(|(_, line)| {
            let (_, last) = line.strip_suffix(" |")?.rsplit_once("| ")?;
            last.strip_prefix('`')?.strip_suffix('`')
        });
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 8, "{names:?}");
        for name in names {
            let test = format!("fn {name}() {{");
            assert!(tests.iter().any(|text| text.contains(&test)), "{name}");
        }
    }

    /// The packages that need wasmtime, tests included, are exactly those excluded elsewhere, and
    /// all of them are tested with it.
    #[test]
    fn wasmtime_is_compiled_only_where_it_is_said() {
        let metadata = metadata().expect("the manifests");
        let packages = metadata["packages"].as_array().expect("packages");
        let mut brings: Vec<&str> = vec![
            "cranelift-codegen",
            "wasmtime",
            "wasmtime-wasi",
            "wasmtime-wizer",
        ];
        let ours = brings.len();
        loop {
            let known = brings.len();
            for package in packages {
                let name = package["name"].as_str().expect("a name");
                let dependencies = package["dependencies"].as_array().expect("a list");
                let needs = dependencies.iter().any(|of| {
                    let of_name = of["name"].as_str().expect("a name");
                    of["optional"] == false && brings.contains(&of_name)
                });
                if needs && !brings.contains(&name) {
                    brings.push(name);
                }
            }
            if brings.len() == known {
                break;
            }
        }
        let mut brings = brings.split_off(ours);
        brings.sort_unstable();
        let pairs = WITHOUT_WASMTIME.windows(2);
        let excluded = pairs.filter_map(|pair| (pair[0] == "--exclude").then_some(pair[1]));
        assert_eq!(brings, excluded.collect::<Vec<_>>());
        for name in brings {
            assert!(PACKAGES.contains(&name), "{name} is tested nowhere");
        }
    }

    #[test]
    fn the_doctor_says_what_a_machine_cannot() {
        let report = |tools: &str, space: &str| {
            format!(
                r#"{{"ok":false,"checks":[
                    {{"check":"image","status":"problem","message":"none"}},
                    {{"check":"build tools","status":"{tools}","message":"no apt"}},
                    {{"check":"address space","status":"{space}","message":"small"}}]}}"#
            )
        };
        assert_eq!(unable(&report("ok", "warning")), None);
        assert_eq!(
            unable(&report("problem", "ok")).as_deref(),
            Some("the doctor says of build tools: no apt")
        );
        assert_eq!(
            unable(&report("ok", "problem")).as_deref(),
            Some("the doctor says of address space: small")
        );
        assert_eq!(unable("no report"), None);
    }
}
