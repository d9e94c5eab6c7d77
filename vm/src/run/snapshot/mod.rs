//! Snapshots: suspended runs as bytes.
//!
//! `docs/snapshot.md` describes the format: a header with the hash of the content, the
//! binding to program and atoms, then the run. The same state gives the same bytes. Snapshots
//! need no trust: every index, length, kind and text is checked before it is used, and memory
//! is counted before it is taken.

use super::host::deadline;
use super::session::host_of;
use super::waiting::{Outstanding, Several, State, Waiting};
use super::{Run, Session, earlier, limit_of};
use crate::atom::{Answered, AtomError, AtomSet, HostReply, ReplyValue};
use crate::link::Executable;
use crate::machine::{Request, RestoringHost, save_prepared};
use crate::options::{Equality, RunOptions};
use crate::vm::Vm;
use crate::wire::{Reader, SnapshotError, Taken, Writer};
use a99_core::artifact::instruction_set;
use a99_core::call_id::CallId;
use a99_core::costs::CostModel;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::sig::Signatures as _;
use a99_core::suspend::codes;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// The first bytes of a snapshot: not text, and damaged by line-end conversion.
pub(crate) const MAGIC: [u8; 8] = *b"\0a99s\r\n\x1a";

/// The version of the format. A reader refuses all others.
pub(crate) const FORMAT_VERSION: u32 = 2;

/// Magic, version, length, hash.
pub(crate) const HEADER_BYTES: usize = 8 + 4 + 8 + 32;

/// Memory that a snapshot may take beyond the ceilings of heap and trace: this plus a quarter
/// of the heap's ceiling.
const ROOM_BYTES: usize = 1 << 20;

/// SHA-256 of the names and fingerprints of a set of atoms, by name.
fn fingerprint(atoms: &AtomSet) -> [u8; 32] {
    let mut names: Vec<&str> = atoms.op_names().collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for name in names {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(atoms.fingerprint(name).unwrap_or(0).to_le_bytes());
    }
    hash.finalize().into()
}

fn model_number(model: CostModel) -> u8 {
    match model {
        CostModel::Metered => 0,
        CostModel::Flat => 1,
    }
}

impl Run {
    /// Writes the run as bytes, at a pause or while a call is pending.
    /// [`Vm::restore`](crate::Vm::restore) resumes it, in this process or another. The run
    /// itself can continue too.
    ///
    /// The snapshot holds all values that the program made and received. Of the host it holds
    /// only answers: no capability, context, price or limit. An unanswered call is made
    /// again, with the same id. Time between suspension and restore does not count.
    ///
    /// # Errors
    /// The run has ended.
    pub fn snapshot(&self) -> Result<Vec<u8>, SnapshotError> {
        let over = || SnapshotError::new(codes::OVER, "the run has ended");
        let session = self.session.as_ref().ok_or_else(over)?;
        if session.machine.is_over() {
            return Err(over());
        }
        let mut w = Writer::default();
        session.save_binding(&self.vm, &mut w)?;
        w.u64(session.step);
        let used = session.before.saturating_add(self.now);
        w.u64(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX));
        session.machine.save(&mut w)?;
        match &self.waiting {
            None => w.u8(0),
            Some(Waiting::One(waiting)) => {
                w.u8(1);
                save_moment(waiting.deadline, session, &mut w);
                if w.is_some(waiting.answer.as_ref())
                    && let Some(answer) = &waiting.answer
                {
                    save_answer(answer, &mut w);
                }
                w.f64(waiting.now_ms);
            }
            Some(Waiting::Several(several)) => {
                w.u8(2);
                w.len(several.calls.len());
                for call in &several.calls {
                    save_prepared(&call.request, call.pc, &mut w);
                }
                for call in &several.calls {
                    match &call.state {
                        State::Queued => w.u8(0),
                        State::UnderWay(waiting) => {
                            w.u8(1);
                            save_moment(waiting.deadline, session, &mut w);
                        }
                        State::Answered(answer) => {
                            w.u8(2);
                            save_answer(answer, &mut w);
                        }
                    }
                }
            }
        }
        let body = w.out;
        let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&Sha256::digest(&body));
        out.extend_from_slice(&body);
        Ok(out)
    }

    /// Restores a run from a snapshot.
    pub(crate) fn restore(
        vm: Arc<Vm>,
        exe: &Arc<Executable>,
        bytes: &[u8],
        options: Arc<RunOptions>,
    ) -> Result<Run, SnapshotError> {
        if let Some(unknown) = vm.unknown_op(&options) {
            let (why, _) = Vm::misnamed(unknown);
            return Err(SnapshotError::new(codes::OTHER_OPTIONS, why));
        }
        let limits = &options.limits;
        let room = limits
            .heap_bytes
            .saturating_add(limits.heap_bytes / 4)
            .saturating_add(limits.trace_bytes)
            .saturating_add(ROOM_BYTES);
        let body = body(bytes, room)?;
        let mut r = Reader::new(body, room);
        check_binding(&vm, exe, &options, &mut r)?;
        let step = r.count()?;
        let before = Duration::from_nanos(r.u64()?);
        let timed = deadline(&options);
        let mut session = Session::new(vm.machine(exe), &options);
        session.step = step;
        session.before = before;
        let host = RestoringHost {
            state: vm.state(),
            link: &|artifact| vm.link(artifact),
        };
        session.machine.restore(&host, exe, options, &mut r)?;
        session.deadline = timed.map(|at| at.saturating_sub(before));
        let mut run = Run {
            vm: vm.clone(),
            session: Some(session),
            waiting: None,
            now: Duration::ZERO,
        };
        match r.u8()? {
            0 if run
                .session
                .as_ref()
                .is_some_and(|s| s.machine.is_at_pause()) => {}
            0 => return r.wrong("the program is nowhere where a run pauses"),
            1 => run.load_call(&mut r)?,
            2 => run.load_calls(&mut r)?,
            _ => return r.wrong("a run waits for nothing of this kind"),
        }
        r.end()?;
        Ok(run)
    }

    /// Reads the pending call, and makes it again.
    fn load_call(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        let Some((session, step)) = suspended(&mut self.session) else {
            return r.wrong("the run made no call");
        };
        let saved = load_moment(session, r)?;
        let answer = match r.bool()? {
            false => None,
            true => Some(load_answer(r, &mut session.machine.fuel_to_end())?),
        };
        let zero = Duration::ZERO;
        let host = host_of(
            &session.signal,
            &session.environment,
            session.deadline,
            &self.vm,
            &zero,
        );
        let mut request = session.machine.call_again(r, &host)?;
        request.call.id = CallId::new(session.parent.clone(), step, 0);
        request.call.waited_ms = (host.environment.now_ms() - request.call.now_ms).max(0.0);
        let mut waiting = Outstanding::of(&request, still(session, &request, saved));
        waiting.answer = answer;
        waiting.again = waiting.answer.is_none().then(|| Arc::new(request));
        self.waiting = Some(Waiting::One(waiting));
        Ok(())
    }

    /// Reads the pending calls.
    fn load_calls(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        let Some((session, step)) = suspended(&mut self.session) else {
            return r.wrong("the run made no calls");
        };
        let zero = Duration::ZERO;
        let host = host_of(
            &session.signal,
            &session.environment,
            session.deadline,
            &self.vm,
            &zero,
        );
        let mut requests = session.machine.calls_again(r, &host)?;
        for one in &mut requests.calls {
            one.request.call.id = CallId::new(session.parent.clone(), step, one.place);
        }
        let mut several = Several::of(requests);
        let mut fuel = session.machine.fuel_to_end();
        for number in 0..several.calls.len() {
            let state = match r.u8()? {
                0 => State::Queued,
                1 => {
                    let saved = load_moment(session, r)?;
                    let request = &mut several.calls[number].request;
                    let call = &mut Arc::make_mut(request).call;
                    call.waited_ms = (host.environment.now_ms() - call.now_ms).max(0.0);
                    let mut waiting = Outstanding::of(request, still(session, request, saved));
                    waiting.again = Some(request.clone());
                    State::UnderWay(waiting)
                }
                2 => State::Answered(load_answer(r, &mut fuel)?),
                _ => return r.wrong("a call is in no state"),
            };
            several.restore(number, state, &host);
        }
        if !several.is_within_limit() {
            return r.wrong("more calls are under way than may be");
        }
        self.waiting = Some(Waiting::Several(Box::new(several)));
        Ok(())
    }
}

/// The session of a run suspended by a call, and the number of that suspension.
fn suspended(session: &mut Option<Session>) -> Option<(&mut Session, u64)> {
    let session = session.as_mut()?;
    let step = session.step.checked_sub(1)?;
    Some((session, step))
}

/// Writes a moment of the run, as time since its original start.
fn save_moment(at: Option<Duration>, session: &Session, w: &mut Writer) {
    let at = at.map(|at| at.saturating_add(session.before).as_nanos());
    w.u64(at.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(u64::MAX)));
}

fn load_moment(session: &Session, r: &mut Reader<'_>) -> Taken<Duration> {
    Ok(Duration::from_nanos(r.u64()?).saturating_sub(session.before))
}

/// The latest time of an answer to a repeated call: never later than for a call made now.
fn still(session: &Session, request: &Request, saved: Duration) -> Option<Duration> {
    let machine = &session.machine;
    let own = limit_of(machine, machine.atom_of(request));
    earlier(own.map(|own| own.min(saved)), session.deadline)
}

/// The content after the header, if the header matches it.
fn body(bytes: &[u8], room: usize) -> Result<&[u8], SnapshotError> {
    if !bytes.starts_with(&MAGIC) {
        let text = "not a snapshot: the first bytes are others";
        return Err(SnapshotError::new(codes::NO_SNAPSHOT, text));
    }
    let mut r = Reader::new(&bytes[MAGIC.len()..], usize::MAX);
    let short = |_| SnapshotError::new(codes::SNAPSHOT_LENGTH, "it ends inside its header");
    let version = r.u32().map_err(short)?;
    if version != FORMAT_VERSION {
        let text = format!("it has version {version} of the format, not {FORMAT_VERSION}");
        return Err(SnapshotError::new(codes::SNAPSHOT_VERSION, text));
    }
    let length = r.u64().map_err(short)?;
    let hash: [u8; 32] = r.array().map_err(short)?;
    let body = &bytes[HEADER_BYTES..];
    if length != body.len() as u64 {
        let text = format!("it says {length} bytes and has {}", body.len());
        return Err(SnapshotError::new(codes::SNAPSHOT_LENGTH, text));
    }
    if body.len() > room {
        return Err(SnapshotError::too_large());
    }
    if hash != <[u8; 32]>::from(Sha256::digest(body)) {
        let text = "its content does not have the hash that its header says";
        return Err(SnapshotError::new(codes::SNAPSHOT_HASH, text));
    }
    Ok(body)
}

impl Session {
    /// Writes the binding of the snapshot.
    fn save_binding(&self, vm: &Vm, w: &mut Writer) -> Result<(), SnapshotError> {
        let over = || SnapshotError::new(codes::OVER, "the run has not begun");
        let exe = self.machine.main_program().ok_or_else(over)?;
        w.out.extend_from_slice(&exe.program().identity());
        w.out.extend_from_slice(&fingerprint(vm.atoms()));
        w.u64(instruction_set());
        let options = self.machine.options();
        w.u8(model_number(options.cost_model));
        w.bool(options.equality == Equality::Exact);
        w.bool(options.trace);
        w.bool(options.trace || options.trace_to.is_some());
        Ok(())
    }
}

/// Checks the binding of a snapshot.
fn check_binding(vm: &Vm, exe: &Executable, options: &RunOptions, r: &mut Reader<'_>) -> Taken<()> {
    if r.array::<32>()? != exe.program().identity() {
        let text = "it is of a run of another program";
        return Err(SnapshotError::new(codes::OTHER_PROGRAM, text));
    }
    if r.array::<32>()? != fingerprint(vm.atoms()) || r.u64()? != instruction_set() {
        let text = "it is of an engine with other atoms or instructions";
        return Err(SnapshotError::new(codes::OTHER_ATOMS, text));
    }
    let same = [
        ("cost model", r.u8()? == model_number(options.cost_model)),
        (
            "meaning of `==`",
            r.bool()? == (options.equality == Equality::Exact),
        ),
        ("keeping of a trace", r.bool()? == options.trace),
        (
            "writing of a trace",
            r.bool()? == (options.trace || options.trace_to.is_some()),
        ),
    ];
    match same.iter().find(|(_, same)| !same) {
        Some((what, _)) => {
            let text = format!("its run began with another {what} than these options say");
            Err(SnapshotError::new(codes::OTHER_OPTIONS, text))
        }
        None => Ok(()),
    }
}

fn save_answer(answer: &Answered, w: &mut Writer) {
    w.bool(answer.is_ok());
    match answer {
        Ok(reply) => {
            w.value(&reply.value.0);
            w.i64(reply.fuel_used.map_or(-1, |fuel| fuel.micro().max(0)));
            w.bool(reply.run_inline);
        }
        Err(error) => {
            w.bytes(error.code.as_str().as_bytes());
            w.bytes(error.message.as_bytes());
            w.bytes(error.help.as_deref().unwrap_or_default().as_bytes());
        }
    }
}

/// Reads an answer, whose fuel must not exceed the fuel left.
fn load_answer(r: &mut Reader<'_>, left: &mut i64) -> Taken<Answered> {
    if r.bool()? {
        let value = ReplyValue(r.value()?);
        let fuel = r.i64()?.min(*left);
        *left -= fuel.max(0);
        return Ok(Ok(HostReply {
            value,
            fuel_used: (fuel >= 0).then(|| Fuel::from_micro(fuel)),
            run_inline: r.bool()?,
        }));
    }
    let code = r.bytes()?;
    let code = ErrorCode::ALL
        .iter()
        .find(|c| c.as_str().as_bytes() == code);
    let Some(code) = code else {
        return r.wrong("an error has no code");
    };
    let error = AtomError::coded(*code, r.text()?);
    let help = r.text()?;
    Ok(Err(match help.is_empty() {
        true => error,
        false => error.with_help(help.to_string()),
    }))
}
