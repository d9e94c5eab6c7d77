//! `cargo xtask guest` and what is done with the guest: its tests, boots in a
//! row, load on its network.
//!
//! The command builds the image; it is built here with the sandbox in it, so
//! that other tasks do without wasmtime.

use crate::shell::{Failed, cargo, failed, root, run, target};
use crate::stage::{Outcome, Progress};
use serde_json::Value;
use std::process::Command;

/// The profile of everything with wasmtime in it.
const PROFILE: [&str; 2] = ["--profile", "sandbox"];

/// The packages with wasmtime or its compiler in them, always together: so cargo chooses the
/// same features of all dependencies each time, and compiles wasmtime once.
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

/// All packages but those that cannot do without wasmtime, or whose tests cannot:
/// they are among [`with_wasmtime`]. Always together, as those are. What needs a server of
/// PostgreSQL when it runs is among them where it is only compiled.
pub(crate) const WITHOUT_WASMTIME: &[&str] = &[
    "--workspace",
    "--features",
    "a99-cli/full",
    "--exclude",
    "a99-jit",
    "--exclude",
    "a99-sandbox",
    "--exclude",
    "a99-sandbox-c2w",
    "--exclude",
    "a99-sandbox-runner",
];

/// Checks of `a99 sandbox doctor` that tell whether this machine can build an
/// image and run guests, and the worst that each may say.
const ABLE: [(&str, &[&str]); 2] = [
    ("build tools", &["ok"]),
    ("address space", &["ok", "warning"]),
];

/// Boots in a row unless told otherwise.
const BOOTS: &str = "200";

/// The test that boots.
const BOOT: &str = "proofs::boots::boots_reach_a_shell_without_a_warning_and_are_all_different";

/// The test of the network under load.
const SOAK: &str = "soak::the_network_does_not_stall";

/// Seconds of load on the network unless told otherwise.
const SOAK_SECONDS: &str = "600";

/// A cargo command about all that has wasmtime in it.
pub(crate) fn with_wasmtime(command: &str) -> Command {
    let mut cargo = cargo(command);
    cargo.args(PROFILE).args(PACKAGES);
    cargo
}

/// Calls `a99 sandbox build` with these flags, compiled as all that has wasmtime in it is:
/// with features of its own it would be compiled anew beside that.
pub(crate) fn build(flags: &[&str]) -> Result<(), Failed> {
    run(with_wasmtime("test").args(["--no-run", "--test", "named"]))?;
    build_with(sandbox("build")?.args(flags))
}

/// The command of the sandbox, which was compiled.
fn sandbox(command: &str) -> Result<Command, Failed> {
    let mut sandbox = Command::new(target()?.join(PROFILE[1]).join("a99"));
    sandbox.args(["sandbox", command]);
    Ok(sandbox)
}

fn build_with(command: &mut Command) -> Result<(), Failed> {
    // The command's own last line says what failed.
    run(command.current_dir(root())).map_err(|_| Failed(String::new()))
}

/// Compiles the tests of all that has wasmtime in it, the command as they need it among
/// them, and builds the image with that command. A failure is one, unless the doctor says
/// that this machine cannot build images or run guests.
pub(crate) fn build_where_possible() -> Result<Outcome, Failed> {
    run(with_wasmtime("test").arg("--no-run"))?;
    let Err(failure) = build_with(&mut sandbox("build")?) else {
        return Ok(Outcome::Passed);
    };
    // It fails where it finds problems, and says them all the same.
    let doctor = sandbox("doctor")?.arg("--json").output();
    let doctor = doctor.map_err(|error| failed("a99 sandbox doctor", error))?;
    match unable(&String::from_utf8_lossy(&doctor.stdout)) {
        Some(reason) => Ok(Outcome::Skipped(reason)),
        None => Err(failure),
    }
}

/// Why this machine cannot have guests, from the doctor's report.
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

/// Runs what needs no image: the engine as WebAssembly, which is among [`test()`] too.
pub(crate) fn test_without_image(progress: &Progress) -> Result<(), Failed> {
    let mut engine = with_wasmtime("test");
    progress.tests(engine.args(["--test", "c2w", "--", "engine::"]))
}

/// Runs all tests of the sandbox, with the image that was built last: without
/// one they fail.
pub(crate) fn test(progress: &Progress) -> Result<(), Failed> {
    let mut most = with_wasmtime("test");
    most.args(["--no-fail-fast", "--", "--include-ignored"]);
    let most = progress.tests(most.args(["--exact", "--skip", SOAK]));
    // It looks at how long things take, and so has the machine for itself.
    let soak = progress.tests(&mut one_test(SOAK));
    most.and(soak)
}

/// A cargo command that runs one test of the binary `guest`, by its whole name.
pub(crate) fn one_test(name: &str) -> Command {
    let mut test = with_wasmtime("test");
    test.args(["--test", "guest", "--"]);
    test.args(["--include-ignored", "--nocapture", "--exact", name]);
    test
}

/// The value of the one option that a task has, or the usual one.
fn option<'a>(args: &[&'a str], name: &str, usual: &'a str) -> Result<&'a str, Failed> {
    match *args {
        [] => Ok(usual),
        [given, value] if given == name => Ok(value),
        _ => Err(Failed(format!("expected [{name} N]"))),
    }
}

/// Boots the guest from nothing, many times in a row.
pub(crate) fn boots(args: &[&str]) -> Result<(), Failed> {
    let count = option(args, "--count", BOOTS)?;
    run(one_test(BOOT).env("A99_BOOTS", count))
}

/// Keeps the network of a guest busy, for a long time.
pub(crate) fn soak(args: &[&str]) -> Result<(), Failed> {
    let seconds = option(args, "--seconds", SOAK_SECONDS)?;
    run(one_test(SOAK).env("A99_SOAK_SECONDS", seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::metadata;

    #[test]
    fn the_tests_that_tasks_run_exist() {
        for name in [BOOT, SOAK, crate::cosim::TRANSLATE] {
            let (module, test) = name.rsplit_once("::").expect("a module");
            let file = format!("sandbox/api/tests/guest/{}.rs", module.replace("::", "/"));
            let text = std::fs::read_to_string(root().join(&file)).expect("its file");
            assert!(
                text.contains(&format!("fn {test}(")),
                "{name} is not in {file}"
            );
        }
    }

    /// The packages that cannot do without wasmtime, tests included, are those that are
    /// left out where it is not to be compiled, and all of them are tested with it.
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
