//! Event loop of the guest's agent: one thread that waits for the host, for its children
//! and for their pipes.
//!
//! Every command is a process with separate pipes and, in a guest, a separate control
//! group; scripts run one at a time in the session's shell. Only `poll` blocks.

#![allow(clippy::print_stderr, reason = "the guest's console")]

mod disk;
mod drive;
mod group;
mod launch;
mod life;
mod memory;
mod mounts;
mod network;
mod port;
mod root;
mod session;
mod session_dir;
mod streams;
mod sys;
mod task;
mod views;
mod world;

use crate::protocol::{Ending, Exec, Exited, Report, Request, Resume, VERSION};
use group::{Group, Groups};
use mounts::Mounts;
use port::Port;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};
use session::{ScriptEnd, Session};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use streams::discard;
use task::{Failure, Task};
use views::Views;
use world::World;

/// Process id 1, which the out-of-memory killer never kills.
const FIRST_PROCESS: i32 = 1;

/// Silence of running commands after which their groups are tidied: short commands have
/// ended by then, undelayed.
const TIDY_AFTER: Duration = Duration::from_millis(20);

/// The agent; see the module.
#[derive(Debug)]
pub struct Agent {
    port: Port,
    /// Receives a byte for each death of a child.
    deaths: OwnedFd,
    groups: Option<Groups>,
    session: Session,
    tasks: Vec<Task>,
    /// Outputs of ended tasks that other processes may still write to: they are read and
    /// discarded, so that the writer neither blocks nor dies.
    orphans: Vec<OwnedFd>,
    views: Views,
    mounts: Mounts,
    /// Whether the system is a guest, which the agent sets up.
    in_guest: bool,
    env: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Time for which a busy pipe is left to fill.
const FILL_TIME: Duration = Duration::from_micros(200);

#[derive(Clone, Copy, Debug)]
enum Event {
    Request,
    PortRoom,
    Death,
    Status,
    Orphan,
    Output,
    Input(usize),
}

impl Agent {
    /// Creates the agent of a guest, on its port, with control groups and an isolated world
    /// for commands.
    ///
    /// # Errors
    /// Those of the system: commands need all of it.
    pub fn in_guest() -> io::Result<Self> {
        let mortal = std::process::id() != FIRST_PROCESS as u32;
        if mortal {
            std::fs::write("/proc/self/oom_score_adj", "-1000")?;
        }
        let groups = Groups::new()?;
        let opened = world::Opened::new()?;
        let port = Port::open()?;
        let mut world = opened.close()?;
        let session_dir = world.session_dir.take();
        let mut agent = Self::on(port, Session::new(session_dir)?)?;
        agent.in_guest = true;
        agent.groups = Some(groups);
        agent.views.mortal = mortal;
        agent.views.world = Some(world);
        Ok(agent)
    }

    /// Creates an agent on the socket that is its standard input.
    ///
    /// # Errors
    /// Those of the system.
    pub fn on_stdin() -> io::Result<Self> {
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        Self::on(Port::new(socket)?, Session::new(None)?)
    }

    fn on(port: Port, session: Session) -> io::Result<Self> {
        // Orphans of commands become the agent's children.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        sys::default_signals();
        let (deaths, writer) = streams::pipe()?;
        port::set_nonblocking(&deaths)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, writer)?;
        Ok(Self {
            port,
            deaths,
            groups: None,
            session,
            tasks: Vec::new(),
            orphans: Vec::new(),
            views: Views {
                descriptors: sys::raise_descriptors(),
                ..Views::default()
            },
            mounts: Mounts::default(),
            in_guest: false,
            env: Vec::new(),
        })
    }

    /// Serves the host until it closes the stream.
    ///
    /// # Errors
    /// Those of the stream, and of `poll`.
    pub fn serve(mut self) -> io::Result<()> {
        let ready = Report::Ready {
            version: VERSION,
            control_groups: self.groups.is_some(),
        };
        self.port.send(0, &ready);
        self.start_session();
        let mut is_streaming = false;
        loop {
            self.port.flush()?;
            let events = self.wait()?;
            let was_streaming = is_streaming;
            is_streaming = events.iter().all(|event| matches!(event, Event::Output));
            if was_streaming && is_streaming {
                // A process that writes chunk after chunk fills its pipe now: one wake-up
                // for many chunks. Yielding would not help, as the agent has priority.
                std::thread::sleep(FILL_TIME);
            }
            for event in events {
                if !self.on_event(event)? {
                    return Ok(());
                }
            }
            self.pump_tasks();
        }
    }

    /// Waits for events; deferred work runs when there are none.
    fn wait(&mut self) -> io::Result<Vec<Event>> {
        loop {
            let untidy = self.groups.as_ref().is_some_and(Groups::is_untidy);
            let timeout = if self.tasks.is_empty() {
                Duration::ZERO
            } else {
                TIDY_AFTER
            };
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: timeout.subsec_nanos().into(),
            };
            let events = self.poll(untidy.then_some(&timeout))?;
            if !events.is_empty() {
                return Ok(events);
            }
            if let Some(groups) = &mut self.groups {
                groups.tidy();
            }
        }
    }

    fn poll(&self, timeout: Option<&Timespec>) -> io::Result<Vec<Event>> {
        let (fds, mut events) = self.interests();
        let mut fds = fds;
        // A signal is the death of a child, which becomes an event: the agent was not idle.
        while let Err(error) = rustix::event::poll(&mut fds, timeout) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        events.retain(|_| found.next().unwrap_or(false));
        Ok(events)
    }

    fn interests(&self) -> (Vec<PollFd<'_>>, Vec<Event>) {
        let mut fds = Vec::new();
        let mut events = Vec::new();
        let mut add = |fd, event| {
            fds.push(fd);
            events.push(event);
        };
        add(PollFd::new(&self.port, PollFlags::IN), Event::Request);
        if self.port.is_pending() {
            add(PollFd::new(&self.port, PollFlags::OUT), Event::PortRoom);
        }
        add(PollFd::new(&self.deaths, PollFlags::IN), Event::Death);
        if let Some(status) = self.session.status() {
            add(PollFd::new(status, PollFlags::IN), Event::Status);
        }
        for orphan in &self.orphans {
            add(PollFd::new(orphan, PollFlags::IN), Event::Orphan);
        }
        for (index, task) in self.tasks.iter().enumerate() {
            if self.port.has_room() {
                for output in task.readable() {
                    add(PollFd::new(output, PollFlags::IN), Event::Output);
                }
            }
            if let Some(input) = task.writable() {
                add(PollFd::new(input, PollFlags::OUT), Event::Input(index));
            }
        }
        (fds, events)
    }

    /// Handles an event; `false` when the host is gone.
    fn on_event(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Request => {
                let open = self.port.receive()?;
                while let Some((id, request)) = self.port.next().map_err(io::Error::other)? {
                    self.handle_request(id, request);
                }
                return Ok(open);
            }
            // Flushed before the next wait; `pump_tasks` moves it on.
            Event::PortRoom | Event::Output => {}
            Event::Death => self.reap()?,
            Event::Status => {
                let end = self.session.poll_status();
                self.end_script(end);
            }
            Event::Orphan => self.orphans.retain(discard),
            Event::Input(index) => {
                if let Some(task) = self.tasks.get_mut(index) {
                    task.pump_input(&mut self.port);
                }
            }
        }
        Ok(true)
    }

    fn handle_request(&mut self, id: u64, request: Request) {
        let failed = match request {
            Request::Resume(resume) => {
                self.resume(id, *resume);
                Ok(())
            }
            Request::Prepare => self.prepare(id),
            Request::Drain => {
                self.end_all(false);
                if self.in_guest {
                    mounts::write_back();
                }
                self.port.send(id, &Report::Drained);
                Ok(())
            }
            Request::Ping => {
                self.port.send(id, &Report::Pong);
                Ok(())
            }
            Request::Exec(exec) => self.start(id, |agent| {
                let exec = agent.with_defaults(exec);
                let task = Task::start(id, &exec, agent.groups.as_mut(), &agent.views)?;
                if let Some(process) = task.inner {
                    let process = process.as_raw_nonzero().get() as u32;
                    agent.port.send(id, &Report::Started(process));
                }
                Ok(task)
            }),
            Request::Script(script) => self.start(id, |agent| {
                let outputs = agent.session.run(id, &script.text)?;
                Ok(Task::script(id, outputs))
            }),
            other => {
                self.control(id, other);
                Ok(())
            }
        };
        if let Err(Failure(reason, errno, text)) = failed {
            self.port.send(id, &Report::Failed(reason, errno, text));
        }
    }

    /// Starts the guest's lifetime with the host's settings.
    fn resume(&mut self, id: u64, resume: Resume) {
        let interrupted = if resume.interrupt {
            self.end_all(true)
        } else {
            0
        };
        let memory = match self.in_guest {
            true => self.add_memory(&resume),
            false => Ok(()),
        };
        let root = if root::is_own(&resume) && self.in_guest {
            self.use_root(&resume)
        } else {
            Ok(())
        };
        self.views.identity = resume.identity.clone().map(Rc::new);
        if let Some(identity) = &self.views.identity
            && self.in_guest
        {
            sys::own_files_as((identity.uid, identity.gid));
        }
        self.start_session();
        // Outside a guest the system is not the agent's to change.
        let failure = if self.in_guest {
            life::resume(&resume, &mut self.mounts)
        } else {
            None
        };
        let world = self.views.world.as_ref();
        let renewed = world.map_or(Ok(()), World::renew_boot_id);
        let failure = failure.or(renewed.err().map(|error| format!("boot id: {error}")));
        let failure = match root {
            Ok(()) => failure,
            Err(error) => Some(format!("root: {error}")),
        };
        let failure = match memory {
            Ok(()) => failure,
            Err(error) => Some(format!("memory: {error}")),
        };
        let groups = self.groups.as_mut();
        let limited = groups.map_or(Ok(()), |groups| groups.set_defaults(&resume.limits));
        let limits = limited.err().map(|error| format!("limits: {error}"));
        let failure = failure.or(limits);
        self.session.adopt(&resume.env, &resume.limits);
        self.env = resume.env;
        let report = Report::Resumed {
            failure,
            interrupted,
        };
        self.port.send(id, &report);
    }

    /// Gives added memory to commands and to the session's shell, and keeps files in memory if
    /// the host wants that.
    fn add_memory(&mut self, resume: &Resume) -> io::Result<()> {
        let more = resume.memory.map_or(Ok(0), memory::add)?;
        if resume.swap_off {
            memory::limit_root(more)?;
        }
        let Some(groups) = &mut self.groups else {
            return Ok(());
        };
        if resume.swap_off {
            groups.swap_off()?;
        }
        if more == 0 {
            return Ok(());
        }
        groups.add_memory(more)?;
        self.session.limit(groups.defaults())
    }

    /// Gives all processes that start from now on the root of the disk and the layers. The
    /// session's shell started before and is ended.
    fn use_root(&mut self, resume: &Resume) -> io::Result<()> {
        root::set_up(resume)?;
        let group = self.session.replace();
        self.end_group(group);
        Ok(())
    }

    /// Ends all commands without reports; returns their number. If a script was one of
    /// them, the session shell is gone too. With `keep_detached`, detached commands run on
    /// unwatched, since the host of a copy knows none of the original's ids.
    fn end_all(&mut self, keep_detached: bool) -> u32 {
        let tasks = std::mem::take(&mut self.tasks);
        let mut count = 0;
        for task in tasks {
            if keep_detached && task.is_detached() {
                self.orphans.extend(task.dissolve().0);
                continue;
            }
            count += 1;
            if self.session.runs(task.id) {
                let group = self.session.abandon();
                self.end_group(group);
            }
            task.kill();
            let (outputs, group) = task.dissolve();
            self.orphans.extend(outputs);
            self.end_group(group);
        }
        count
    }

    /// Adds the variables that every command has.
    fn with_defaults(&self, exec: Exec) -> Exec {
        let mut env = if exec.clear_env {
            Vec::new()
        } else {
            self.env.clone()
        };
        env.extend(exec.env);
        Exec { env, ..exec }
    }

    fn start(
        &mut self,
        id: u64,
        begin: impl FnOnce(&mut Self) -> Result<Task, Failure>,
    ) -> Result<(), Failure> {
        if self.tasks.iter().any(|task| task.id == id) {
            // The other command continues; the host has lost track of its ids.
            eprintln!("agent99-agent: id {id} is in use");
            return Ok(());
        }
        let task = begin(self)?;
        self.tasks.push(task);
        Ok(())
    }

    /// Handles requests about a running command. A command that has ended meanwhile is not
    /// an error: the host did not know yet.
    fn control(&mut self, id: u64, request: Request) {
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else {
            return;
        };
        let script = self.session.runs(id);
        match request {
            Request::Stdin(bytes) => task.feed(&mut self.port, &bytes),
            Request::StdinEnd => task.feed_end(&mut self.port),
            Request::Credit(stream, bytes) => task.grant(stream, bytes),
            Request::Resize(size) => task.resize(size),
            Request::Kill if script => self.session.kill(),
            Request::Kill => task.kill(),
            Request::Signal(number) => {
                let sent = if script {
                    self.session.signal(number)
                } else {
                    task.signal(number)
                };
                if let Err(error) = sent {
                    eprintln!("agent99-agent: signal {number}: {error}");
                }
            }
            Request::Resume(_)
            | Request::Prepare
            | Request::Drain
            | Request::Ping
            | Request::Exec(_)
            | Request::Script(_) => {}
        }
    }

    fn prepare(&mut self, id: u64) -> Result<(), Failure> {
        if let Some(groups) = &mut self.groups {
            groups.tidy();
        }
        let zeroed = life::zero_free_memory();
        let zeroed = zeroed.map_err(|error| Failure::new("zero free memory", &error))?;
        self.port.send(id, &Report::Prepared(zeroed));
        Ok(())
    }

    /// Reaps all ended children.
    fn reap(&mut self) -> io::Result<()> {
        // Drain the notifications before reaping, so that no death is missed.
        discard(&self.deaths);
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if self.views.ends_with(pid) => {
                    return Err(io::Error::other("the first process of commands ended"));
                }
                Ok(Some((pid, status))) => self.child_ended(pid, ending(status)),
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn child_ended(&mut self, pid: Pid, ending: Ending) {
        if self.session.is_shell(pid) {
            let (end, group) = self.session.shell_ended(ending);
            self.end_script(end);
            self.end_group(group);
            self.start_session();
        } else if let Some(task) = self.tasks.iter_mut().find(|t| t.process == Some(pid)) {
            task.process_ended(ending);
        }
    }

    fn end_script(&mut self, end: Option<ScriptEnd>) {
        let Some(end) = end else {
            return;
        };
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == end.id) {
            task.finish(Exited {
                ending: end.ending,
                out_of_memory: end.out_of_memory,
                session_reset: end.session_reset,
            });
        }
    }

    fn end_group(&mut self, group: Option<Group>) {
        if let (Some(groups), Some(group)) = (&mut self.groups, group) {
            groups.end(group);
        }
    }

    fn start_session(&mut self) {
        let started = self
            .session
            .start(self.groups.as_mut(), &self.views, &self.env);
        if let Err(error) = started {
            eprintln!("agent99-agent: no session shell: {error}");
        }
    }

    /// Moves output on and drops finished tasks.
    fn pump_tasks(&mut self) {
        let mut index = 0;
        while index < self.tasks.len() {
            if self.tasks[index].pump(&mut self.port) {
                let (outputs, group) = self.tasks.remove(index).dissolve();
                self.orphans.extend(outputs);
                self.end_group(group);
            } else {
                index += 1;
            }
        }
        // Round-robin: the next step begins with another task.
        if self.tasks.len() > 1 {
            self.tasks.rotate_left(1);
        }
    }
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Code(code as u8),
        (None, Some(signal)) => Ending::Signal(signal as u8),
        (None, None) => Ending::Code(0),
    }
}
