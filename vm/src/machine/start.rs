//! Start of a run, and support code of single instructions.

use super::args::{check_args, host_args};
use super::json_args::text_args;
use super::operands::stored_by_parts;
use super::{Frame, FrameKind, LoadedProgram, Machine, clear_frame, frame_size};
use crate::args::Args;
use crate::convert;
use crate::digest;
use crate::heap::{Heap, Oom, Ref, ShapeId, Val};
use crate::link::{Executable, LiteralOp};
use crate::native::{Cx, Fault, Host, Meter};
use crate::options::RunOptions;
use crate::pace::Clock;
use a99_core::costs::{DIGEST, Sizes};
use a99_core::error::{ErrorCode, RunError};
use a99_core::program::{Const, ConstIdx, LitOp, LiteralIdx, MemoIdx, Program, Reg, ShapeIdx};
use a99_core::schema::Schema;
use a99_core::text::Text;
use a99_ecma::wtf8;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Estimated bytes of a memo entry beyond key and value: its share of the table, with empty
/// and duplicated parts during growth, and allocator overhead of the key.
pub(super) const MEMO_ENTRY_BYTES: usize = 160;

/// The longest `join` of a keyless memo's free values that is hashed at once.
const MEMO_HASH_RESERVE: usize = 256;

impl Machine {
    /// Prepares a run; [`Machine::resume`] starts it.
    pub fn start(
        &mut self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: Arc<RunOptions>,
        host: &dyn Host,
    ) {
        let args = args.into();
        self.heap
            .reset(&exe.statics, &exe.shapes, options.limits.heap_bytes);
        self.clean(options);
        let begun = self.begin(exe, &args, host);
        let disposed = match args {
            Args::Value(args) => {
                // Arguments may be nested to any depth (M09).
                let mut clock = Clock::new(&mut self.meter, host);
                self.heap.discard(vec![args], &mut clock)
            }
            Args::Json(_) => Ok(()),
        };
        if let Err(fault) = begun.and(disposed) {
            self.end_begun(fault);
        }
    }

    /// Ends a run before it has started.
    pub(crate) fn refuse(&mut self, options: Arc<RunOptions>, end: impl FnOnce(&mut Machine)) {
        let limit = options.limits.heap_bytes;
        self.heap.reset(&Arc::default(), &Arc::default(), limit);
        self.clean(options);
        end(self);
    }

    /// Ends the run because of its options.
    pub(crate) fn end_refused(&mut self, code: ErrorCode, why: String, help: Option<String>) {
        let mut error = RunError::new(code, "vm.run", why);
        error.help = help;
        self.end_error(error);
    }

    /// Prepares the machine for a run with these options.
    pub(crate) fn clean(&mut self, options: Arc<RunOptions>) {
        self.tracer = super::Tracer::of(&options);
        self.options = options;
        self.programs.clear();
        self.keeps = false;
        self.forget();
        self.locals.set_logging(self.tracer.is_some());
    }

    /// Resets the state of the previous run, with the same options.
    pub(super) fn forget(&mut self) {
        self.budget = self.options.fuel.micro();
        self.meter = Meter::new(self.budget, self.options.cost_model);
        self.frames.clear();
        self.caught = None;
        self.memo.clear();
        self.locals.renew();
        self.locals_counted = 0;
        self.calls = 0;
        self.prepaid = None;
        self.call = None;
        self.waiting = None;
        self.prepared.clear();
        self.outcome = None;
        self.retried = None;
        self.skip_charges = false;
        self.unpaid = 0;
        self.faulting_step = None;
        self.started = false;
    }

    /// Ends a run that did not reach its first instruction.
    pub(super) fn end_begun(&mut self, fault: Fault) {
        let (code, message, help) = match fault {
            Fault::Stop(reason) => return self.fail_stopped(reason),
            Fault::OutOfFuel => (ErrorCode::OutOfFuel, Text::from(super::OUT_OF_FUEL), None),
            Fault::Throw(t) => (t.code, Text::from_wtf8(t.message), t.help),
            _ => (
                ErrorCode::HeapLimit,
                Text::from("Heap limit exceeded: the arguments do not fit"),
                None,
            ),
        };
        let mut error = RunError::new(code, "vm.run", message);
        error.help = help;
        self.end_error(error);
    }

    fn begin(&mut self, exe: &Arc<Executable>, args: &Args, host: &dyn Host) -> Result<(), Fault> {
        let program = exe.program();
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let limits = &self.options.limits.boundary;
        let args = match args {
            Args::Value(args) => {
                check_args(&mut cx, exe, args)?;
                host_args(&mut cx, program, args, limits)?
            }
            Args::Json(text) => text_args(&mut cx, exe, text, limits)?,
        };
        let own_prices = super::prices::own_prices(exe, &self.options);
        self.programs.reserve_exact(1);
        self.programs.push(LoadedProgram {
            exe: exe.clone(),
            main: true,
            own_prices,
            args,
        });
        self.enter_main(program)
    }

    /// Pushes the frame of the main program.
    pub(super) fn enter_main(&mut self, program: &Program) -> Result<(), Fault> {
        let size = frame_size(&program.functions[0]);
        if self.stack.is_empty() {
            self.take_spare();
        }
        // Most runs have few frames.
        self.frames.reserve_exact(2);
        let room = self.count_frame(size, 0);
        let counted = room
            .and_then(|counted| clear_frame(&mut self.stack, 0, size).map(|()| counted))
            .map_err(|_| {
                let text = "Heap limit exceeded: the program's variables do not fit";
                Fault::coded(ErrorCode::HeapLimit, text)
            })?;
        self.push_frame(Frame {
            program: 0,
            function: 0,
            kind: FrameKind::Main,
            counted,
            base: 0,
            pc: 0,
            dst: Reg(0),
            precise: self.tracer.is_some(),
            helper_depth: 0,
            agent_depth: 0,
        });
        Ok(())
    }
}

/// Values under construction.
type Stack = SmallVec<[Val; 32]>;

/// Reserves the stack for the steps of a literal.
fn reserve(stack: &mut Stack, heap: &Heap, steps: usize) -> Result<(), Oom> {
    if steps > stack.capacity() {
        let wanted = steps.saturating_mul(size_of::<Val>());
        heap.check(wanted)?;
        stack.try_reserve(steps).map_err(|_| Oom { wanted })?;
    }
    Ok(())
}

/// Stores a fresh copy of a literal of the main program in a register (D33).
pub(super) fn put_literal(
    heap: &mut Heap,
    code: &[LiteralOp],
    register: &mut Val,
) -> Result<(), Fault> {
    // Most literals are objects of scalars.
    if let Some((LiteralOp::Object(shape, n), members)) = code.split_last()
        && members.len() == *n as usize
        && members.iter().all(|op| matches!(op, LiteralOp::Push(_)))
    {
        let scalars = members.iter().map(|op| match op {
            LiteralOp::Push(val) => *val,
            LiteralOp::Array(_) | LiteralOp::Object(..) => Val::Undefined,
        });
        *register = Val::Obj(heap.alloc_obj_of(*shape, scalars)?);
        return Ok(());
    }
    *register = literal(heap, code)?;
    Ok(())
}

fn literal(heap: &mut Heap, code: &[LiteralOp]) -> Result<Val, Fault> {
    let mut stack = Stack::new();
    reserve(&mut stack, heap, code.len())?;
    for op in code {
        let val = match op {
            LiteralOp::Push(val) => *val,
            LiteralOp::Array(n) => {
                let at = stack.len() - *n as usize;
                let arr = heap.alloc_arr(&stack[at..])?;
                stack.truncate(at);
                Val::Arr(arr)
            }
            LiteralOp::Object(shape, n) => {
                let at = stack.len() - *n as usize;
                let obj = heap.alloc_obj(*shape, &stack[at..])?;
                stack.truncate(at);
                Val::Obj(obj)
            }
        };
        stack.push(val);
    }
    Ok(stack.pop().unwrap_or(Val::Undefined))
}

/// Copies a literal of a program whose text and shapes are not the heap's.
pub(super) fn foreign_literal(
    heap: &mut Heap,
    p: &Program,
    literal: LiteralIdx,
) -> Result<Val, Fault> {
    let steps = &p.literals[literal.at()];
    let mut stack = Stack::new();
    reserve(&mut stack, heap, steps.len())?;
    for step in steps {
        let val = match *step {
            LitOp::Const(k) => match p.consts[k as usize] {
                Const::Undefined => Val::Undefined,
                Const::Null => Val::Null,
                Const::Bool(b) => Val::Bool(b),
                Const::Number(n) => Val::Num(n),
                Const::Text(r) => heap.str_val(p.text(r))?,
            },
            LitOp::Array(n) => {
                let at = stack.len() - n as usize;
                let arr = heap.alloc_arr(&stack[at..])?;
                stack.truncate(at);
                Val::Arr(arr)
            }
            LitOp::Object(shape) => {
                let at = stack.len() - p.shapes[shape as usize].len();
                let obj = foreign_obj(heap, p, ShapeIdx(shape), &stack[at..])?;
                stack.truncate(at);
                obj
            }
        };
        stack.push(val);
    }
    Ok(stack.pop().unwrap_or(Val::Undefined))
}

/// Allocates an object of the main program from fresh values.
#[inline(never)]
pub(super) fn new_obj(heap: &mut Heap, shape: ShapeIdx, vals: &[Val]) -> Result<Ref, Oom> {
    heap.alloc_obj_of(ShapeId(shape.0), vals.iter().map(stored_by_parts))
}

/// Allocates an object with a shape of a program whose shapes are not the heap's.
pub(super) fn foreign_obj(
    heap: &mut Heap,
    p: &Program,
    shape: ShapeIdx,
    vals: &[Val],
) -> Result<Val, Fault> {
    let mut keys = Vec::with_capacity(vals.len());
    for key in &p.shapes[shape.at()] {
        keys.push(heap.intern(p.text(p.keys[*key as usize]))?);
    }
    if keys.len() != vals.len() {
        return Err(Fault::invalid("an object with the wrong number of values"));
    }
    Ok(Val::Obj(heap.alloc_obj_keys(&keys, vals)?))
}

/// Allocates an object from the values of an array.
pub(super) fn wide_obj(
    heap: &mut Heap,
    p: &Program,
    main: bool,
    shape: ShapeIdx,
    arr: Val,
) -> Result<Val, Fault> {
    let vals = list(heap, arr)?;
    if vals.len() != p.shapes[shape.at()].len() {
        return Err(Fault::invalid("an object with the wrong number of values"));
    }
    if main {
        Ok(Val::Obj(heap.alloc_obj(ShapeId(shape.0), &vals)?))
    } else {
        foreign_obj(heap, p, shape, &vals)
    }
}

/// Copies the values of an array out of the heap.
pub(super) fn list(heap: &Heap, arr: Val) -> Result<Vec<Val>, Fault> {
    let Val::Arr(r) = arr else {
        return Err(Fault::invalid("a list without an array"));
    };
    let items = heap.items(r);
    let mut out = Vec::new();
    out.try_reserve_exact(items.len()).map_err(|_| Oom {
        wanted: size_of_val(items),
    })?;
    out.extend_from_slice(items);
    Ok(out)
}

/// The error of a returned value that is not an object (D30).
pub(super) fn not_an_object(val: Val) -> Fault {
    let kind = match val {
        Val::Arr(_) => "array",
        Val::Num(_) => "number",
        Val::Str(_) => "string",
        Val::Bool(_) => "boolean",
        _ => "object",
    };
    Fault::throw(format!("Agent must return an object, got {kind}"))
}

/// The key of a memo site without one (D25).
pub(super) fn memo_key(
    c: &mut Cx<'_>,
    exe: &Executable,
    memo: MemoIdx,
    vals: &[Val],
) -> Result<Val, Fault> {
    let p = exe.program();
    let site = &p.memos[memo.at()];
    let mut text = Vec::with_capacity(MEMO_HASH_RESERVE);
    if site.with_program {
        text.extend_from_slice(exe.program_hash().as_bytes());
    }
    text.extend_from_slice(p.text(site.body));
    for (name, val) in site.free.iter().zip(vals) {
        text.push(0);
        text.extend_from_slice(p.const_text(ConstIdx(*name)));
        text.push(0);
        match val {
            Val::Undefined | Val::Unbound | Val::Builtin(_) => text.extend_from_slice(b"undefined"),
            val => digest::canonical_json(c, *val, &mut text)?,
        }
    }
    let hash = digest::sha256_hex(c, &text)?;
    c.str(hash.as_bytes())
}

/// The memoized results of a run, by the texts of their keys.
pub(super) type Memo = HashMap<Box<[u8]>, Val>;

/// A copy of a memoized result.
pub(super) fn memo_get(c: &mut Cx<'_>, memo: &Memo, key: Val) -> Result<Option<Val>, Fault> {
    let text = memo_text(c, key)?;
    memo.get(&*text)
        .map(|val| convert::copy_deep(c, *val))
        .transpose()
}

/// Memoizes a copy of a value. All fallible work comes first: the instruction may run again.
pub(super) fn memo_put(c: &mut Cx<'_>, memo: &mut Memo, key: Val, val: Val) -> Result<(), Fault> {
    let text = memo_text(c, key)?;
    let copy = convert::copy_deep(c, val)?;
    if !memo.contains_key(&text) {
        let size = text.len() + MEMO_ENTRY_BYTES;
        memo.try_reserve(1).map_err(|_| Oom { wanted: size })?;
        c.heap.add_external(size)?;
    }
    memo.insert(text, copy);
    Ok(())
}

/// Longer keys are stored as digests.
const MAX_KEY_TEXT: usize = 256;

/// A memo key as text: its kind and its value.
fn memo_text(c: &mut Cx<'_>, key: Val) -> Result<Box<[u8]>, Fault> {
    let (kind, text) = match key {
        Val::Str(s) if s.len_bytes() > MAX_KEY_TEXT => {
            c.charge(DIGEST, Sizes::units(s.units()))?;
            (b'S', digest::sha256_hex_of(c, s)?.into_bytes())
        }
        Val::Str(s) => (b's', c.bytes(s).to_vec()),
        Val::Arr(_) | Val::Obj(_) | Val::Set(_) | Val::Date(_) | Val::Map(_) => {
            let mut text = Vec::new();
            digest::canonical_json(c, key, &mut text)?;
            match text.len() > MAX_KEY_TEXT {
                true => {
                    c.charge(DIGEST, Sizes::units(wtf8::utf16_len(&text)))?;
                    (b'J', digest::sha256_hex(c, &text)?.into_bytes())
                }
                false => (b'j', text),
            }
        }
        val => {
            let s = crate::coerce::to_str(c, val)?;
            (b'v', c.bytes(s).to_vec())
        }
    };
    let mut out = Vec::with_capacity(text.len() + 1);
    out.push(kind);
    out.extend_from_slice(&text);
    Ok(out.into_boxed_slice())
}

/// The projection of `return`: by the schema if the value conforms, else unchanged (language
/// section 2.1).
pub(super) fn project(c: &mut Cx<'_>, val: Val, schema: &Schema) -> Result<Val, Fault> {
    convert::charge_read(c, val, a99_core::costs::READ)?;
    match crate::schema::conforms(c, val, schema)? {
        true => crate::schema::project(c, val, schema.root()),
        false => Ok(val),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{BoundaryLimits, Copies};
    use a99_core::json::{Document, Limits};
    use a99_core::program::TextRange;
    use a99_core::value::Value;

    /// The steps of a literal, children before their parent.
    fn steps(value: &Value, program: &mut Program, out: &mut Vec<LitOp>) {
        let text = |program: &mut Program, text: &Text| {
            let start = program.text.len() as u32;
            program.text.extend_from_slice(text.as_bytes());
            let end = program.text.len() as u32;
            TextRange { start, end }
        };
        let constant = match value {
            Value::Array(items) => {
                items.iter().for_each(|item| steps(item, program, out));
                return out.push(LitOp::Array(items.len() as u32));
            }
            Value::Object(map) => {
                let mut shape = Vec::new();
                for (key, member) in map.iter() {
                    steps(member, program, out);
                    shape.push(program.keys.len() as u32);
                    let key = text(program, key);
                    program.keys.push(key);
                }
                program.shapes.push(shape.into());
                return out.push(LitOp::Object(program.shapes.len() as u32 - 1));
            }
            Value::Undefined => Const::Undefined,
            Value::Null => Const::Null,
            Value::Bool(b) => Const::Bool(*b),
            Value::Number(n) => Const::Number(*n),
            Value::String(s) => Const::Text(text(program, s)),
        };
        program.consts.push(constant);
        out.push(LitOp::Const(program.consts.len() as u32 - 1));
    }

    #[test]
    fn literals_are_fresh() {
        const SAMPLE: &str = r#"{"a":[1,-2.5,"é\"\n\u0001",null,true],"b":{"c":{}},"d":[[],[[]]]}"#;
        let document = Document::parse(SAMPLE, &Limits::default()).unwrap();
        let mut program = Program::default();
        let mut code = Vec::new();
        steps(&document.to_value(document.root()), &mut program, &mut code);
        program.literals.push(code.into());
        let mut bench = crate::builtins::testing::Bench::default();
        let mut cx = bench.cx();
        let one = foreign_literal(cx.heap, &program, LiteralIdx(0)).unwrap();
        let two = foreign_literal(cx.heap, &program, LiteralIdx(0)).unwrap();
        assert!(!one.is_same(two, cx.heap));
        let defaults = BoundaryLimits::default();
        let mut copies = Copies::new(&mut cx);
        let (one, two) = (
            copies.to_value(one, &defaults).unwrap(),
            copies.to_value(two, &defaults).unwrap(),
        );
        assert_eq!(one, two);
        assert_eq!(one.to_json_string(), SAMPLE);
    }
}
