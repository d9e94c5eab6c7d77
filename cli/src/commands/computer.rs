//! Sandbox of a run, the computer that `a99 run --sandbox` grants. It starts with the first command
//! and ends with the run.
//!
//! Without the feature `sandbox`, this module only explains errors that need one.

use crate::args::RunArgs;
use crate::failure::Failure;
use agent99::{Capabilities, Capability, ErrorCode, RunError, all_atoms};

#[cfg(feature = "sandbox")]
use super::sandbox::{builder, packaged};
#[cfg(feature = "sandbox")]
use crate::failure::USAGE;
#[cfg(feature = "sandbox")]
use crate::sandbox_args::SettingsArgs;
#[cfg(feature = "sandbox")]
use a99_sandbox::cache::Cache;
#[cfg(feature = "sandbox")]
use a99_shell::sandbox::SandboxShell;

/// The computer of a run, if granted.
#[derive(Debug)]
pub(crate) struct Computer {
    #[cfg(feature = "sandbox")]
    sandbox: Option<SandboxShell>,
}

#[cfg(feature = "sandbox")]
impl Computer {
    /// From the options. Starts and reads nothing until a program needs it.
    pub(crate) fn of(args: &RunArgs) -> Result<Computer, Failure> {
        if !args.sandbox && args.settings != SettingsArgs::default() {
            // Help for an option that needs `--sandbox`.
            let help = match args.settings.limits.memory {
                Some(_) => "add `--sandbox`; for the program's own memory it is `--heap-mib 64`",
                None => "add `--sandbox`",
            };
            let why = "there is no sandbox to be set up without --sandbox";
            return Err(Failure::coded(USAGE[0], why, help));
        }
        if args.sandbox && args.settings.image.is_none() {
            // Without a cache the sandbox itself reports why it does not start.
            let cache = Cache::of_user().ok();
            let prepared = cache.as_ref().map_or(Ok(()), packaged::prepare);
            prepared.map_err(|error| Failure::about("the sandbox's image", error))?;
        }
        let failed = |error: a99_sandbox::VmError| {
            let help = "`a99 sandbox image ls` lists container images";
            Failure::coded(USAGE[0], error.text, help)
        };
        let new = || builder(&args.settings).map(SandboxShell::new);
        let sandbox = args.sandbox.then(new).transpose();
        Ok(Computer {
            sandbox: sandbox.map_err(failed)?,
        })
    }

    /// Adds the computer.
    pub(crate) fn grant(&self, set: Capabilities) -> Result<Capabilities, Failure> {
        match &self.sandbox {
            Some(_) if set.shell.is_some() => Err(Failure::usage(
                "--sandbox and the script's `shell` exclude each other",
            )),
            Some(sandbox) => Ok(set.with_shell(sandbox.clone())),
            None => Ok(set),
        }
    }

    /// Waits until mounts are flushed.
    pub(crate) async fn stop(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.stop().await;
        }
    }

    fn remedy(&self) -> String {
        match self.sandbox.as_ref().map(SandboxShell::failure) {
            Some(Some(failure)) => failure.text,
            Some(None) => "the sandbox stopped working; try again".to_owned(),
            None => "`a99 run --sandbox` gives the program a Linux sandbox".to_owned(),
        }
    }
}

#[cfg(not(feature = "sandbox"))]
impl Computer {
    /// No computer; an option for one fails with the way to install it.
    pub(crate) fn of(args: &RunArgs) -> Result<Computer, Failure> {
        match args.sandbox {
            true => Err(Failure::missing_feature("`a99 run --sandbox`", "sandbox")),
            false => Ok(Computer {}),
        }
    }

    pub(crate) fn grant(&self, set: Capabilities) -> Result<Capabilities, Failure> {
        Ok(set)
    }

    pub(crate) async fn stop(&self) {}

    fn remedy(&self) -> String {
        "`--script FILE` names what commands answer, under `shell`; a real Linux is the feature \
         `sandbox`: `cargo install --path cli --features sandbox`"
            .to_owned()
    }
}

impl Computer {
    /// Adds help to the error of a missing computer.
    pub(crate) fn explain(&self, error: &mut RunError) {
        let op = error.op.to_string_lossy();
        let atoms = all_atoms();
        let needs = atoms.get(&op).and_then(|atom| atom.sig.capability);
        let asks = error.code == ErrorCode::Capability && needs == Some(Capability::Shell);
        if asks && error.help.is_none() {
            error.help = Some(self.remedy());
        }
    }
}
