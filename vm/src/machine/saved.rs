//! Serialization of a suspended machine, and its restore from untrusted bytes.
//!
//! Frame offsets, destinations, nesting depths and byte counts follow from the programs and
//! are not written: a frame is its pc and its registers. A restored machine pays charge by
//! charge until its next block, so that nothing is prepaid.

use super::call_all::{PREPARED_BYTES, Prepared};
use super::{
    Caught, Frame, FrameKind, LoadedProgram, MAX_HELPER_DEPTH, Machine, Request, Requests, WINDOW,
    frame_size,
};
use crate::atom::{MAX_WARNINGS, RestoreState, SavedLocals};
use crate::convert::copy_bytes;
use crate::heap::Val;
use crate::heap::saved::{ValCheck, put_val, put_vals};
use crate::link::{Executable, LinkError};
use crate::options::RunOptions;
use crate::pace::Host;
use crate::wire::SnapshotError;
use crate::wire::{Reader, Taken, Writer};
use a99_core::artifact::{DecodeOptions, EncodeOptions};
use a99_core::fuel::Fuel;
use a99_core::program::{Count, Op, Reg};
use a99_core::suspend::codes;
use a99_core::value::Value;
use a99_core::verify::Artifact;
use std::sync::Arc;

/// Decoded bytes of a program per byte of its file.
const DECODED: usize = 8;

/// Longer memo keys are digests.
const MAX_MEMO_KEY: usize = 512;

/// What a restore needs of its host, besides the options of the run.
pub(crate) struct RestoringHost<'a> {
    /// Recreates the run state of atoms.
    pub(crate) state: Option<RestoreState>,
    /// Links a program that was loaded at run time.
    pub(crate) link: &'a dyn Fn(&Artifact) -> Result<Arc<Executable>, LinkError>,
}

impl Machine {
    pub(crate) fn main_program(&self) -> Option<&Arc<Executable>> {
        self.programs.first().map(|loaded| &loaded.exe)
    }

    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Writes the run.
    pub(crate) fn save(&self, w: &mut Writer) -> Result<(), SnapshotError> {
        w.i64(self.budget);
        w.i64(self.exact_fuel());
        w.bool(self.started);
        w.u64(self.unpaid as u64);
        if w.is_some(self.retried.as_ref())
            && let Some((frames, pc)) = self.retried
        {
            w.len(frames);
            w.u32(pc);
        }
        if w.is_some(self.caught.as_ref())
            && let Some(caught) = &self.caught
        {
            w.bytes(&caught.message);
            w.bytes(caught.op.as_bytes());
        }
        let mut quotas: Vec<_> = self.options.quotas.iter().collect();
        quotas.sort_unstable_by_key(|(op, _)| *op);
        w.len(quotas.len());
        for (op, quota) in quotas {
            w.bytes(op.as_bytes());
            w.u64(quota.used());
        }
        self.save_locals(w);
        self.heap.save(w);
        w.len(self.programs.len());
        for (at, loaded) in self.programs.iter().enumerate() {
            if at > 0 {
                let file = loaded.exe.artifact().to_bytes(&EncodeOptions::default());
                let file = file.map_err(|error| {
                    SnapshotError::new(codes::SNAPSHOT_TOO_LARGE, error.to_string())
                })?;
                w.bytes(&file);
            }
            put_vals(w, &loaded.args);
        }
        w.len(self.frames.len());
        for frame in &self.frames {
            let (_, _, f) = self.program_of(*frame);
            let base = frame.base as usize;
            w.u8(frame.kind as u8);
            w.u32(frame.pc);
            put_vals(w, &self.stack[base..base + frame_size(f)]);
        }
        w.len(self.prepared.len());
        for one in &self.prepared {
            save_prepared(&one.request, one.pc, w);
        }
        let mut memo: Vec<_> = self.memo.iter().collect();
        memo.sort_unstable_by_key(|(key, _)| *key);
        w.len(memo.len());
        for (key, val) in memo {
            w.bytes(key);
            put_val(w, *val);
        }
        if let Some(tracer) = &self.tracer {
            tracer.save(w);
        }
        Ok(())
    }

    fn save_locals(&self, w: &mut Writer) {
        let saved = self.locals.saved();
        w.i64(saved.charges);
        w.len(saved.warnings.len());
        saved.warnings.iter().for_each(|t| w.bytes(t.as_bytes()));
        w.len(saved.log.len());
        for (op, value) in &saved.log {
            w.bytes(op.as_bytes());
            w.value(value);
        }
        if w.is_some(saved.store.as_ref())
            && let Some(store) = &saved.store
        {
            w.value(store);
        }
    }

    /// Reads a run of this program.
    pub(crate) fn restore(
        &mut self,
        by: &RestoringHost<'_>,
        exe: &Arc<Executable>,
        options: Arc<RunOptions>,
        r: &mut Reader<'_>,
    ) -> Taken<()> {
        self.heap
            .reset(&exe.statics, &exe.shapes, options.limits.heap_bytes);
        let traced = options.trace || options.trace_to.is_some();
        self.clean(options);
        self.load_meter(r)?;
        self.load_quotas(r)?;
        self.load_locals(by, r)?;
        self.heap.load(r)?;
        let mut held = 0;
        self.load_programs(by, exe, r)?;
        self.load_frames(r, &mut held)?;
        self.load_prepared(r)?;
        self.load_memo(r, &mut held)?;
        if traced {
            self.load_trace(r, &mut held)?;
        }
        held += self.locals.bytes();
        self.locals_counted = self.locals.bytes();
        // A count above the ceiling comes from a forged file or a lower ceiling.
        self.heap
            .add_external(held)
            .map_err(|_| SnapshotError::too_large())
    }

    fn load_meter(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        let (budget, fuel) = (r.i64()?, r.i64()?);
        if fuel < 0 || fuel > budget {
            return r.wrong("the fuel is not of its budget");
        }
        if budget > self.budget {
            let text = format!(
                "its run was given {} units of fuel, more than the {} of these options",
                Fuel::from_micro(budget).to_f64(),
                Fuel::from_micro(self.budget).to_f64()
            );
            return Err(SnapshotError::new(codes::OTHER_OPTIONS, text));
        }
        (self.budget, self.meter.fuel) = (budget, fuel);
        self.started = r.bool()?;
        // Bound of a compaction's work: the bytes of the heap, once per pass.
        let most = self.options.limits.heap_bytes.saturating_mul(4);
        self.unpaid = usize::try_from(r.u64()?).map_or(most, |unpaid| unpaid.min(most));
        if r.bool()? {
            self.retried = Some((r.u32()? as usize, r.u32()?));
        }
        if r.bool()? {
            let message = r.wtf8()?.to_vec();
            let op = r.text()?;
            self.caught = Some(Box::new(Caught { message, op }));
        }
        Ok(())
    }

    /// Fuel at which the run ends, regardless of outstanding charges: a forged count cannot
    /// report more.
    pub(crate) fn fuel_to_end(&self) -> i64 {
        self.meter.fuel.saturating_add(1)
    }

    /// Reads quotas, which count at least the run's previous use.
    fn load_quotas(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        for _ in 0..r.len(12, 0)? {
            let op = r.text()?;
            let used = r.u64()?;
            let quota = op.to_str().and_then(|op| self.options.quotas.get(op));
            if let Some(quota) = quota {
                quota.raise(used);
            }
        }
        Ok(())
    }

    fn load_locals(&mut self, by: &RestoringHost<'_>, r: &mut Reader<'_>) -> Taken<()> {
        let mut saved = SavedLocals {
            charges: r.i64()?,
            ..SavedLocals::default()
        };
        if saved.charges < 0 {
            return r.wrong("a charge gives fuel");
        }
        saved.charges = saved.charges.min(self.fuel_to_end());
        let n = r.len(4, size_of::<a99_core::text::Text>())?;
        if n > MAX_WARNINGS {
            return r.wrong("there are too many warnings");
        }
        for _ in 0..n {
            saved.warnings.push(r.text()?);
        }
        for _ in 0..r.len(5, 64)? {
            saved.log.push((r.text()?, r.value()?));
        }
        let mut store = None;
        if r.bool()? {
            let value = r.value()?;
            store = by.state.and_then(|restore| restore(&value));
            value.dispose();
            if store.is_none() {
                return r.wrong("the state of atoms is none that this host knows");
            }
        }
        self.locals.restore(saved, store);
        Ok(())
    }

    fn load_programs(
        &mut self,
        by: &RestoringHost<'_>,
        exe: &Arc<Executable>,
        r: &mut Reader<'_>,
    ) -> Taken<()> {
        let n = r.len(4, 0)?;
        if n == 0 {
            return r.wrong("no program runs");
        }
        for at in 0..n {
            let exe = match at {
                0 => exe.clone(),
                _ => self.load_program(by, r)?,
            };
            let args = self.heap.val_check().vals(r)?;
            if args.len() != exe.program().args.len() {
                return r.wrong("a program has other arguments");
            }
            let own_prices = super::prices::own_prices(&exe, &self.options);
            self.programs.push(LoadedProgram {
                exe,
                main: at == 0,
                own_prices,
                args,
            });
        }
        Ok(())
    }

    /// Reads a program loaded at run time.
    fn load_program(&self, by: &RestoringHost<'_>, r: &mut Reader<'_>) -> Taken<Arc<Executable>> {
        let file = r.bytes()?;
        r.take_room(file.len().saturating_mul(DECODED))?;
        let artifact = Artifact::from_bytes(file, &DecodeOptions::default())
            .map_err(|error| r.fault(&format!("a program is refused: {error}")))?;
        (by.link)(&artifact).map_err(|error| r.fault(&format!("a program is refused: {error}")))
    }

    fn load_frames(&mut self, r: &mut Reader<'_>, held: &mut usize) -> Taken<()> {
        let Machine {
            heap,
            stack,
            frames,
            programs,
            options,
            ..
        } = self;
        let check = heap.val_check();
        stack.clear();
        let mut next_program = 1;
        for at in 0..r.len(9, size_of::<Frame>())? {
            let (kind, pc) = (r.u8()?, r.u32()?);
            let Some(mut frame) = below(frames.last(), programs, kind, &mut next_program) else {
                return r.wrong("a frame does not follow from the one below");
            };
            let loaded = &programs[frame.program as usize];
            let f = &loaded.exe.program().functions[frame.function as usize];
            if pc as usize >= f.code.len()
                || frame.helper_depth > MAX_HELPER_DEPTH
                || options.depth.saturating_add(frame.agent_depth) > options.limits.agent_depth
            {
                return r.wrong("a frame is nowhere, or too deep");
            }
            let size = frame_size(f);
            if check.vals_into(r, stack)? != size {
                return r.wrong("a frame has another number of registers");
            }
            let slots = size.saturating_sub(WINDOW) * size_of::<Val>();
            let program = match frame.kind {
                FrameKind::Code | FrameKind::Agent => loaded.exe.bytes(),
                FrameKind::Main | FrameKind::Helper => 0,
            };
            (frame.pc, frame.counted) = (pc, slots + program);
            *held = held.saturating_add(frame.counted);
            debug_assert!((at == 0) == (frame.kind == FrameKind::Main));
            frames.push(frame);
        }
        match !frames.is_empty() && next_program == programs.len() {
            true => Ok(()),
            false => r.wrong("programs and frames do not fit"),
        }
    }

    /// Reads calls prepared for a `CallAll`, which are already paid.
    fn load_prepared(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        let n = r.len(16, PREPARED_BYTES)?;
        let Some(frame) = self.frames.last().copied() else {
            return r.wrong("no program runs");
        };
        let (exe, _, _) = self.program_of(frame);
        let exe = exe.clone();
        let program = exe.program();
        let f = &program.functions[frame.function as usize];
        let limits = self.options.limits.boundary;
        for _ in 0..n {
            let (pc, now_ms) = (r.u32()?, r.f64()?);
            let Some(Op::PrepareCall { n, site, .. }) = f.code.get(pc as usize) else {
                return r.wrong("a call is prepared nowhere");
            };
            let op = program.sites[site.at()].op;
            let Some(atom) = exe.atoms[op as usize]
                .as_ref()
                .filter(|atom| atom.body.waits())
            else {
                return r.wrong("a call is prepared that does not wait");
            };
            let mut args = Vec::with_capacity(n.at());
            if r.len(1, size_of::<Value>())? != n.at() {
                return r.wrong("a call has another number of inputs");
            }
            let mut bytes = 0;
            for _ in 0..n.at() {
                let arg = r.value()?;
                match copy_bytes(&arg, &limits) {
                    Some(more) => bytes += more,
                    None => return r.wrong("an input of a call is larger than may be"),
                }
                args.push(arg);
            }
            self.heap
                .add_external(bytes + PREPARED_BYTES)
                .map_err(|_| SnapshotError::too_large())?;
            let request = self.request_of((op, atom.sig.name.clone()), args, now_ms);
            self.prepared
                .push(Prepared::of(request, &atom.sig, bytes, pc));
        }
        Ok(())
    }

    fn load_memo(&mut self, r: &mut Reader<'_>, held: &mut usize) -> Taken<()> {
        let n = r.len(5, super::start::MEMO_ENTRY_BYTES)?;
        let check = self.heap.val_check();
        for _ in 0..n {
            let key = r.bytes()?;
            if key.len() > MAX_MEMO_KEY {
                return r.wrong("the key of a result is too long");
            }
            *held += key.len() + super::start::MEMO_ENTRY_BYTES;
            if self.memo.insert(key.into(), check.val(r)?).is_some() {
                return r.wrong("a result is there twice");
            }
        }
        Ok(())
    }

    fn load_trace(&mut self, r: &mut Reader<'_>, held: &mut usize) -> Taken<()> {
        let Machine {
            heap,
            frames,
            programs,
            tracer,
            ..
        } = self;
        let functions: Vec<_> = frames
            .iter()
            .map(|frame| {
                let program = programs[frame.program as usize].exe.program();
                &program.functions[frame.function as usize]
            })
            .collect();
        let check: ValCheck<'_> = heap.val_check();
        match tracer {
            Some(tracer) => *held += tracer.load(r, &functions, &check)?,
            None => return r.wrong("there is no trace"),
        }
        Ok(())
    }

    /// Whether the top frame is at the end of a slice, or at its beginning.
    pub(crate) fn is_at_pause(&self) -> bool {
        let Some(frame) = self.frames.last() else {
            return false;
        };
        let (_, _, f) = self.program_of(*frame);
        let pc = frame.pc as usize;
        let is_head = |pc: usize| matches!(f.code.get(pc), Some(Op::Fuel { .. }));
        pc == 0 || is_head(pc) || is_head(pc - 1)
    }

    /// Repeats the call at which the top frame is suspended; it is already paid.
    pub(crate) fn call_again(&mut self, r: &mut Reader<'_>, host: &dyn Host) -> Taken<Request> {
        let now_ms = r.f64()?;
        let Some(frame) = self.frames.last().copied() else {
            return r.wrong("no program runs");
        };
        let (exe, program, f) = self.program_of(frame);
        let (dst, base, n, site) = match f.code[frame.pc as usize] {
            Op::CallAtom { dst, base, n, site } => (dst, base, n, site),
            Op::AgentRun {
                dst, base, site, ..
            } => (dst, base, Count(2), site),
            _ => return r.wrong("the program is at no call"),
        };
        let atom = &exe.atoms[program.sites[site.at()].op as usize];
        if !atom.as_ref().is_some_and(|atom| atom.body.waits()) {
            return r.wrong("the program is at no call that waits");
        }
        let fuel = std::mem::replace(&mut self.meter.fuel, i64::MAX / 2);
        let made = self.grown(|machine| machine.host_call(dst, base, n, site, host));
        self.meter.fuel = fuel;
        self.meter.new_slice(0);
        let mut request = made.map_err(|_| SnapshotError::too_large())?;
        request.call.fuel_left = Fuel::from_micro(fuel.max(0));
        request.call.now_ms = now_ms;
        Ok(request)
    }

    /// Repeats the calls at which the top frame is suspended, as they were prepared.
    pub(crate) fn calls_again(&mut self, r: &mut Reader<'_>, host: &dyn Host) -> Taken<Requests> {
        if !self.prepared.is_empty() {
            return r.wrong("calls are prepared for no step");
        }
        self.load_prepared(r)?;
        let Some(frame) = self.frames.last().copied() else {
            return r.wrong("no program runs");
        };
        let (_, _, f) = self.program_of(frame);
        let Op::CallAll { dst, arr, limit } = f.code[frame.pc as usize] else {
            return r.wrong("the program does not make several calls");
        };
        let made = self.grown(|machine| machine.call_all((dst, arr, limit), host));
        self.meter.new_slice(0);
        match made {
            Ok(Some(requests)) => Ok(*requests),
            Ok(None) | Err(_) => r.wrong("the calls are not those of their step"),
        }
    }

    fn grown<T>(&mut self, work: impl FnOnce(&mut Machine) -> T) -> T {
        self.grow_stack();
        work(self)
    }
}

/// Writes a call of an instruction of the top frame.
pub(crate) fn save_prepared(request: &Request, pc: u32, w: &mut Writer) {
    w.u32(pc);
    w.f64(request.call.now_ms);
    w.len(request.call.args.len());
    request.call.args.iter().for_each(|arg| w.value(arg));
}

/// The frame above a suspended one, derived from its instruction.
fn below(
    parent: Option<&Frame>,
    programs: &[LoadedProgram],
    kind: u8,
    next_program: &mut usize,
) -> Option<Frame> {
    let start = Frame {
        program: 0,
        function: 0,
        kind: FrameKind::Main,
        counted: 0,
        base: 0,
        pc: 0,
        dst: Reg(0),
        precise: true,
        helper_depth: 0,
        agent_depth: 0,
    };
    let Some(parent) = parent else {
        return (kind == FrameKind::Main as u8).then_some(start);
    };
    let program = programs[parent.program as usize].exe.program();
    let f = &program.functions[parent.function as usize];
    let base = parent.base.checked_add(frame_size(f) as u32)?;
    let start = Frame { base, ..start };
    let op = f.code.get(parent.pc as usize)?;
    match (kind, op) {
        (1, Op::Call { dst, callee, .. }) => Some(Frame {
            program: parent.program,
            function: callee.0,
            kind: FrameKind::Helper,
            dst: *dst,
            helper_depth: parent.helper_depth + 1,
            agent_depth: parent.agent_depth,
            ..start
        }),
        (2, Op::RunCode { dst, .. }) | (3, Op::AgentRun { dst, .. } | Op::CallAtom { dst, .. }) => {
            let program = *next_program;
            programs.get(program)?;
            *next_program += 1;
            Some(Frame {
                program: program as u32,
                kind: match kind {
                    2 => FrameKind::Code,
                    _ => FrameKind::Agent,
                },
                dst: *dst,
                agent_depth: parent.agent_depth + 1,
                ..start
            })
        }
        _ => None,
    }
}
