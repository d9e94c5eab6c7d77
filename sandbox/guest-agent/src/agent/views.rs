//! View of the system for commands: in a guest that of [`World`]; elsewhere the agent's
//! own.

use super::launch::{Variables, variables};
use super::world::{ROOT_HOME, ROOT_VARIABLES, USER_VARIABLES, World};
use crate::protocol::{Identity, User};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::Rlimit;
use rustix::pty::OpenptFlags;
use std::io;
use std::rc::Rc;

/// Settings of commands by user; see the module.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Whether children must give up the agent's protection from the out-of-memory killer.
    pub mortal: bool,
    /// Descriptor limit of children, if the agent raised its own.
    pub descriptors: Option<Rlimit>,
    /// The world of commands, in a guest.
    pub world: Option<World>,
    /// Who the ordinary user is, if not that of our image.
    pub identity: Option<Rc<Identity>>,
}

impl Views {
    /// Rights of a command.
    pub(super) fn rights(&self, user: User) -> Option<(User, Rc<OwnedFd>)> {
        let world = self.world.as_ref()?;
        Some((user, Rc::clone(&world.rules)))
    }

    /// Variables of a command.
    pub(super) fn variables(&self, user: User, clear: bool, more: &Variables) -> Variables {
        let own = match (&self.world, user) {
            (None, _) => &[],
            (Some(_), User::Root) => ROOT_VARIABLES,
            (Some(_), User::Ordinary | User::Files) => USER_VARIABLES,
        };
        variables(clear, own, more)
    }

    /// Default working directory; `None` is the agent's, which in a guest is the home of
    /// the ordinary user.
    pub(super) fn home(&self, user: User) -> Option<&[u8]> {
        match (&self.identity, user) {
            (Some(identity), _) => Some(&identity.folder),
            (None, User::Root) if self.world.is_some() => Some(ROOT_HOME.as_bytes()),
            _ => None,
        }
    }

    /// Opens the agent's side of a new terminal.
    pub(super) fn new_terminal(&self) -> io::Result<OwnedFd> {
        let Some(world) = &self.world else {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            return Ok(rustix::pty::openpt(flags)?);
        };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &world.terminals,
            "ptmx",
            flags,
            Mode::empty(),
        )?)
    }

    /// Whether the process is the first of the world of commands, which ends with it.
    pub(super) fn ends_with(&self, process: rustix::process::Pid) -> bool {
        let world = self.world.as_ref();
        world.is_some_and(|world| world.first == process)
    }
}
