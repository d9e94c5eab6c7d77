//! The compiler: lowers a region to Cranelift IR, and that to machine code.
//!
//! Cells and meter are variables of one function, so that the register allocator keeps the
//! loop's state in machine registers. They are loaded at the entry and stored at a single
//! exit block.

use crate::code::{LoopCode, Pages};
use crate::region::{Arith, Condition, End, Kind, Op, Price, Refused, Region, Test};
use crate::{ExitId, Meter};
use a99_ecma::arith::fmod;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F64, I8, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, MemFlagsData, SigRef, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// Bound of the whole numbers whose remainders are computed inline.
const WHOLE_LIMIT: f64 = (1u64 << 51) as f64;

/// The machine code of a region.
#[derive(Debug)]
pub struct CompiledLoop {
    code: LoopCode,
    exits: u32,
}

impl CompiledLoop {
    /// Runs the loop over these cells and returns its exit. Written cells and the meter are
    /// updated.
    ///
    /// # Panics
    /// The number of cells differs from the region's.
    pub fn run(&self, cells: &mut [f64], meter: &mut Meter) -> ExitId {
        let exit = self.code.call(cells, meter);
        debug_assert!(exit < self.exits, "an exit of the region");
        exit
    }

    /// Size of the machine code in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.code.bytes()
    }
}

/// The processor of this process.
fn isa() -> Option<&'static OwnedTargetIsa> {
    static ISA: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    let make = || {
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            ("enable_verifier", "false"),
            ("unwind_info", "false"),
            ("enable_probestack", "false"),
        ] {
            flags.set(name, value).ok()?;
        }
        let builder = cranelift_native::builder().ok()?;
        builder.finish(settings::Flags::new(flags)).ok()
    };
    ISA.get_or_init(make).as_ref()
}

/// Compiles a checked region.
pub(crate) fn compile(region: &Region) -> Result<CompiledLoop, Refused> {
    let isa = &**isa().ok_or(Refused::Machine)?;
    // A fault of the compiler must not fail the run.
    catch_unwind(AssertUnwindSafe(|| compile_for(region, isa)))
        .ok()
        .flatten()
        .ok_or(Refused::Compiler)
}

fn compile_for(region: &Region, isa: &dyn TargetIsa) -> Option<CompiledLoop> {
    let pointer = isa.pointer_type();
    let mut signature = signature(CallConv::SystemV, &[pointer, pointer]);
    signature.returns = vec![AbiParam::new(I32)];
    let remainder = of_remainder(isa)?.address();
    let pages = function(isa, signature, |builder| {
        Emitter::new(builder, region, (pointer, remainder)).emit(region);
    })?;
    #[allow(unsafe_code, reason = "what was just compiled is code of a loop")]
    // SAFETY: `Emitter` generates a function of that signature. It accesses memory only
    // through its two parameters (cells below the region's number, and the fields of the
    // meter) and on its stack. It calls the code of `of_remainder`, which does not unwind.
    // `Region::check` has verified that each cell, block and exit exists.
    let code = unsafe { LoopCode::new(pages, region.cells.len()) };
    Some(CompiledLoop {
        code,
        exits: region.exits,
    })
}

fn signature(convention: CallConv, params: &[Type]) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = params.iter().copied().map(AbiParam::new).collect();
    signature
}

/// Compiles a function that `write` generates.
fn function(
    isa: &dyn TargetIsa,
    signature: Signature,
    write: impl FnOnce(&mut FunctionBuilder<'_>),
) -> Option<Pages> {
    let mut context = Context::new();
    context.func.signature = signature;
    let mut of_builder = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut of_builder);
    write(&mut builder);
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    let compiled = context.compile(isa, &mut ControlPlane::default()).ok()?;
    if !compiled.buffer.relocs().is_empty() {
        return None;
    }
    Pages::new(compiled.code_buffer())
}

/// Replaces the first of two numbers by their remainder.
extern "C" fn remainder(pair: &mut [f64; 2]) {
    pair[0] = fmod(pair[0], pair[1]);
}

/// Code that calls [`remainder`] and preserves every register, so that a loop with rare calls
/// saves none.
fn of_remainder(isa: &dyn TargetIsa) -> Option<&'static Pages> {
    static CODE: OnceLock<Option<Pages>> = OnceLock::new();
    let make = || {
        let pointer = isa.pointer_type();
        let keeping = signature(CallConv::PreserveAll, &[pointer]);
        let usual = signature(CallConv::SystemV, &[pointer]);
        function(isa, keeping, |builder| {
            let entry = builder.create_block();
            builder.append_block_params_for_function_params(entry);
            builder.switch_to_block(entry);
            let pair = builder.block_params(entry)[0];
            let address = remainder as extern "C" fn(&mut [f64; 2]) as usize;
            let address = builder.ins().iconst(pointer, address as i64);
            let usual = builder.import_signature(usual);
            builder.ins().call_indirect(usual, address, &[pair]);
            builder.ins().return_(&[]);
        })
    };
    CODE.get_or_init(make).as_ref()
}

/// Generates the function of a region.
struct Emitter<'b, 'f> {
    builder: &'b mut FunctionBuilder<'f>,
    cells: Vec<Variable>,
    fuel: Variable,
    work: Variable,
    blocks: Vec<Block>,
    /// The exit block, which takes the number of the exit.
    leave: Block,
    pointer: Type,
    /// Address of the code of [`of_remainder`], and its signature.
    remainder: (usize, SigRef),
    /// Stack slot for the two numbers of a remainder.
    pair: StackSlot,
}

impl<'b, 'f> Emitter<'b, 'f> {
    fn new(
        builder: &'b mut FunctionBuilder<'f>,
        region: &Region,
        (pointer, remainder): (Type, usize),
    ) -> Emitter<'b, 'f> {
        let keeping = signature(CallConv::PreserveAll, &[pointer]);
        let pair = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
        let variables = region.cells.iter().map(|kind| match kind {
            Kind::Number => builder.declare_var(F64),
            Kind::Flag => builder.declare_var(I8),
        });
        Emitter {
            cells: variables.collect(),
            fuel: builder.declare_var(I64),
            work: builder.declare_var(I64),
            blocks: region
                .blocks
                .iter()
                .map(|_| builder.create_block())
                .collect(),
            leave: builder.create_block(),
            pointer,
            remainder: (remainder, builder.import_signature(keeping)),
            pair: builder.create_sized_stack_slot(pair),
            builder,
        }
    }

    fn emit(mut self, region: &Region) {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let params = self.builder.block_params(entry);
        let (cells, meter) = (params[0], params[1]);
        self.enter(region, cells, meter);
        for (block, of_region) in self.blocks.clone().into_iter().zip(&region.blocks) {
            self.builder.switch_to_block(block);
            if let Some(price) = of_region.price {
                self.pay(price);
            }
            for op in &of_region.ops {
                self.op(*op);
            }
            self.end(of_region.end);
        }
        self.leave(region, cells, meter);
    }

    fn enter(&mut self, region: &Region, cells: Value, meter: Value) {
        for (at, kind) in region.cells.iter().enumerate() {
            let number = self.load(F64, cells, of_cell(at));
            let value = match kind {
                Kind::Number => number,
                Kind::Flag => {
                    let zero = self.builder.ins().f64const(0.0);
                    self.builder.ins().fcmp(FloatCC::NotEqual, number, zero)
                }
            };
            self.builder.def_var(self.cells[at], value);
        }
        let fuel = self.load(I64, meter, offset_of!(Meter, fuel));
        self.builder.def_var(self.fuel, fuel);
        let work = self.load(I64, meter, offset_of!(Meter, work));
        self.builder.def_var(self.work, work);
        self.builder.ins().jump(self.blocks[0], &[]);
    }

    fn leave(&mut self, region: &Region, cells: Value, meter: Value) {
        let exit = self.builder.append_block_param(self.leave, I32);
        self.builder.set_cold_block(self.leave);
        self.builder.switch_to_block(self.leave);
        let written = region.written();
        for (at, kind) in region.cells.iter().enumerate() {
            if !written[at] {
                continue;
            }
            let value = self.builder.use_var(self.cells[at]);
            let number = match kind {
                Kind::Number => value,
                Kind::Flag => {
                    let wide = self.builder.ins().uextend(I64, value);
                    self.builder.ins().fcvt_from_sint(F64, wide)
                }
            };
            self.store(number, cells, of_cell(at));
        }
        let fuel = self.builder.use_var(self.fuel);
        self.store(fuel, meter, offset_of!(Meter, fuel));
        let work = self.builder.use_var(self.work);
        self.store(work, meter, offset_of!(Meter, work));
        self.builder.ins().return_(&[exit]);
    }

    fn load(&mut self, kind: Type, base: Value, offset: usize) -> Value {
        let flags = MemFlagsData::trusted();
        self.builder.ins().load(kind, flags, base, offset32(offset))
    }

    fn store(&mut self, value: Value, base: Value, offset: usize) {
        let flags = MemFlagsData::trusted();
        self.builder
            .ins()
            .store(flags, value, base, offset32(offset));
    }

    /// Pays for a block, or exits before it.
    fn pay(&mut self, price: Price) {
        let unpaid = self.builder.create_block();
        let affordable = self.builder.create_block();
        let paid = self.builder.create_block();
        self.builder.set_cold_block(unpaid);
        let fuel = self.builder.use_var(self.fuel);
        let takes = self.builder.ins().iconst(I64, price.fuel);
        let is_enough = self
            .builder
            .ins()
            .icmp(IntCC::SignedGreaterThan, fuel, takes);
        self.builder
            .ins()
            .brif(is_enough, affordable, &[], unpaid, &[]);

        self.builder.switch_to_block(affordable);
        let work = self.builder.use_var(self.work);
        let done = self.builder.ins().iconst(I64, price.work);
        let left = self.builder.ins().isub(work, done);
        let is_time = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        self.builder.ins().brif(is_time, paid, &[], unpaid, &[]);

        self.builder.switch_to_block(unpaid);
        self.exit(price.exit);

        self.builder.switch_to_block(paid);
        let rest = self.builder.ins().isub(fuel, takes);
        self.builder.def_var(self.fuel, rest);
        self.builder.def_var(self.work, left);
    }

    fn exit(&mut self, exit: ExitId) {
        let exit = self.builder.ins().iconst(I32, i64::from(exit));
        self.builder
            .ins()
            .jump(self.leave, &[BlockArg::Value(exit)]);
    }

    fn end(&mut self, end: End) {
        match end {
            End::Jump(to) => {
                let to = self.blocks[usize::from(to)];
                self.builder.ins().jump(to, &[]);
            }
            End::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.condition(condition);
                let then = self.blocks[usize::from(then)];
                let otherwise = self.blocks[usize::from(otherwise)];
                self.builder.ins().brif(holds, then, &[], otherwise, &[]);
            }
            End::Exit(exit) => self.exit(exit),
        }
    }

    fn get(&mut self, cell: u16) -> Value {
        self.builder.use_var(self.cells[usize::from(cell)])
    }

    fn set(&mut self, cell: u16, value: Value) {
        self.builder.def_var(self.cells[usize::from(cell)], value);
    }

    fn op(&mut self, op: Op) {
        let (dst, value) = match op {
            Op::Number { dst, value } => (dst, self.builder.ins().f64const(value)),
            Op::Flag { dst, value } => (dst, self.builder.ins().iconst(I8, i64::from(value))),
            Op::Copy { dst, src } => (dst, self.get(src)),
            Op::Arith { op, dst, l, r } => {
                let (l, r) = (self.get(l), self.get(r));
                (dst, self.arith(op, l, r))
            }
            Op::RemBy { dst, l, divisor } => {
                let l = self.get(l);
                let r = self.builder.ins().f64const(divisor);
                (dst, self.remainder(l, r, Some(divisor)))
            }
            Op::Neg { dst, src } => {
                let src = self.get(src);
                (dst, self.builder.ins().fneg(src))
            }
            Op::Test { dst, condition } => (dst, self.condition(condition)),
            Op::Not { dst, condition } => {
                let holds = self.condition(condition);
                (dst, self.builder.ins().bxor_imm_u(holds, 1))
            }
        };
        self.set(dst, value);
    }

    fn condition(&mut self, condition: Condition) -> Value {
        match condition {
            Condition::Numbers { test, l, r } => {
                let (l, r) = (self.get(l), self.get(r));
                let code = match test {
                    Test::Eq => FloatCC::Equal,
                    Test::Ne => FloatCC::NotEqual,
                    Test::Lt => FloatCC::LessThan,
                    Test::Le => FloatCC::LessThanOrEqual,
                    Test::Gt => FloatCC::GreaterThan,
                    Test::Ge => FloatCC::GreaterThanOrEqual,
                };
                self.builder.ins().fcmp(code, l, r)
            }
            Condition::Flag(cell) => self.get(cell),
            Condition::Truthy(cell) => {
                let number = self.get(cell);
                let zero = self.builder.ins().f64const(0.0);
                let code = FloatCC::OrderedNotEqual;
                self.builder.ins().fcmp(code, number, zero)
            }
        }
    }

    fn arith(&mut self, op: Arith, l: Value, r: Value) -> Value {
        match op {
            Arith::Add => self.builder.ins().fadd(l, r),
            Arith::Sub => self.builder.ins().fsub(l, r),
            Arith::Mul => self.builder.ins().fmul(l, r),
            Arith::Div => self.builder.ins().fdiv(l, r),
            Arith::Rem => self.remainder(l, r, None),
        }
    }

    /// A remainder, possibly with a known divisor.
    ///
    /// For whole numbers `a` and `b` below 2^51 it is `a - trunc(a / b) * b`, in which only
    /// the quotient is rounded: `a / b` is at least `1 / b` below the next whole number, and
    /// rounding moves it by no more than `a / b` / 2^53, which is less. All other remainders
    /// are computed by [`fmod`].
    fn remainder(&mut self, l: Value, r: Value, divisor: Option<f64>) -> Value {
        let join = self.builder.create_block();
        let slow = self.builder.create_block();
        let result = self.builder.append_block_param(join, F64);
        self.builder.set_cold_block(slow);

        let (dividend, sign) = self.size_and_sign(l);
        self.unless_small_whole(dividend, slow);
        let (size, _) = self.size_and_sign(r);
        if !divisor.is_some_and(is_small_whole) {
            self.unless_small_whole(size, slow);
            let zero = self.builder.ins().f64const(0.0);
            let is_some = self.builder.ins().fcmp(FloatCC::GreaterThan, size, zero);
            self.unless(is_some, slow);
        }
        let quotient = self.builder.ins().fdiv(dividend, size);
        let quotient = self.builder.ins().trunc(quotient);
        let whole = self.builder.ins().fmul(quotient, size);
        let rest = self.builder.ins().fsub(dividend, whole);
        let rest = self.builder.ins().bor(rest, sign);
        self.builder.ins().jump(join, &[BlockArg::Value(rest)]);

        self.builder.switch_to_block(slow);
        let rest = self.call_remainder(l, r);
        self.builder.ins().jump(join, &[BlockArg::Value(rest)]);

        self.builder.switch_to_block(join);
        result
    }

    /// The magnitude of a number, and its sign bit.
    fn size_and_sign(&mut self, number: Value) -> (Value, Value) {
        let bit = self.builder.ins().f64const(-0.0);
        let sign = self.builder.ins().band(number, bit);
        (self.builder.ins().bxor(number, sign), sign)
    }

    /// Jumps unless a non-negative number is whole and below 2^51.
    fn unless_small_whole(&mut self, size: Value, elsewhere: Block) {
        let limit = self.builder.ins().f64const(WHOLE_LIMIT);
        let is_small = self.builder.ins().fcmp(FloatCC::LessThan, size, limit);
        self.unless(is_small, elsewhere);
        let whole = self.builder.ins().trunc(size);
        let code = FloatCC::GreaterThanOrEqual;
        let is_whole = self.builder.ins().fcmp(code, whole, size);
        self.unless(is_whole, elsewhere);
    }

    /// Jumps unless a condition holds.
    fn unless(&mut self, condition: Value, elsewhere: Block) {
        let here = self.builder.create_block();
        self.builder
            .ins()
            .brif(condition, here, &[], elsewhere, &[]);
        self.builder.switch_to_block(here);
    }

    fn call_remainder(&mut self, l: Value, r: Value) -> Value {
        let (address, signature) = self.remainder;
        let (slot, first) = (self.pair, offset32(0));
        let pair = self.builder.ins().stack_addr(self.pointer, slot, first);
        self.store(l, pair, of_cell(0));
        self.store(r, pair, of_cell(1));
        let address = self.builder.ins().iconst(self.pointer, address as i64);
        self.builder
            .ins()
            .call_indirect(signature, address, &[pair]);
        self.load(F64, pair, of_cell(0))
    }
}

/// Whether remainders by this divisor are computed inline.
fn is_small_whole(divisor: f64) -> bool {
    let size = divisor.abs();
    (1.0..WHOLE_LIMIT).contains(&size) && size.fract() == 0.0
}

fn of_cell(at: usize) -> usize {
    at * size_of::<f64>()
}

fn offset32(offset: usize) -> Offset32 {
    Offset32::new(i32::try_from(offset).expect("a few cells"))
}
