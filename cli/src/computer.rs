//! The computer that `a99 run --sandbox` grants a program: a sandbox that starts
//! with the first command and ends with the run.
//!
//! Without the feature `sandbox` there is none, and only an error that asks for
//! one is explained.

use crate::args::RunArgs;
use crate::failure::Failure;
use agent99::{Capabilities, ErrorCode, RunError, shell_atoms};

#[cfg(feature = "sandbox")]
use crate::commands::sandbox::show;
#[cfg(feature = "sandbox")]
use a99_batteries::sandbox::SandboxShell;
#[cfg(feature = "sandbox")]
use a99_sandbox::image::Cache;
#[cfg(feature = "sandbox")]
use a99_sandbox::vm::{Image, Options, Sandbox, VmCode, VmError};

/// The computer of a run, if it is granted one.
#[derive(Debug)]
pub struct Computer {
    #[cfg(feature = "sandbox")]
    sandbox: Option<SandboxShell>,
}

#[cfg(feature = "sandbox")]
impl Computer {
    /// As the options say. Nothing is started or read before a program needs
    /// it.
    pub fn of(args: &RunArgs) -> Computer {
        let sandbox = args.sandbox.then(|| SandboxShell::new(start));
        Computer { sandbox }
    }

    /// What the run is granted with the computer.
    pub fn grant(&self, set: Capabilities) -> Result<Capabilities, Failure> {
        match &self.sandbox {
            Some(_) if set.shell.is_some() => Err(Failure::usage(
                "--sandbox and the script's `shell` exclude each other",
            )),
            Some(sandbox) => Ok(set.with_shell(sandbox.clone())),
            None => Ok(set),
        }
    }

    fn remedy(&self) -> String {
        match self.sandbox.as_ref().map(SandboxShell::failure) {
            Some(Some(failure)) => failure.text,
            Some(None) => "the sandbox stopped working; try again".to_owned(),
            None => "`a99 run --sandbox` gives the program a Linux of its own".to_owned(),
        }
    }
}

/// Starts a sandbox from the image that was built last.
#[cfg(feature = "sandbox")]
fn start() -> Result<Sandbox, VmError> {
    let cache = Cache::of_user().map_err(|error| VmError::new(VmCode::Io, error.to_string()))?;
    Sandbox::start(&Image::current(&cache, &mut show)?, &Options::default())
}

#[cfg(not(feature = "sandbox"))]
impl Computer {
    /// None: there is no option for it.
    pub fn of(_: &RunArgs) -> Computer {
        Computer {}
    }

    /// What the run is granted anyway.
    pub fn grant(&self, set: Capabilities) -> Result<Capabilities, Failure> {
        Ok(set)
    }

    fn remedy(&self) -> String {
        "this a99 was built without the sandbox; a script's `shell` can stand in".to_owned()
    }
}

impl Computer {
    /// Says what to do about a computer that is not there.
    pub fn explain(&self, error: &mut RunError) {
        let op = error.op.to_string_lossy();
        let asks = error.code == ErrorCode::Capability && shell_atoms().get(&op).is_some();
        if asks && error.help.is_none() {
            error.help = Some(self.remedy());
        }
    }
}
