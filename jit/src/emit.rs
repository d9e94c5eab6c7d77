//! The compiler: from a region to Cranelift's instructions, and from these to machine code.
//!
//! Cells and meter are variables of one function, so the register allocator keeps in machine
//! registers what the loop uses. They are read from memory when the code is entered and
//! written back at one place where it is left.

use crate::code::MachineCode;
use crate::region::{Arith, Condition, End, Kind, Op, Price, Region, Refused, Test};
use crate::{ExitId, Meter};
use a99_ecma::arith::fmod;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F64, I8, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, MemFlagsData, SigRef, Signature, Type, Value,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// The largest divisor that whole numbers are divided by, less one: [`fmod`] divides whole
/// numbers below 2^51.
const WHOLE_BITS: i64 = 51;

/// Adding this shifts a whole number into the lowest bits of the fraction.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// A region as machine code.
#[derive(Debug)]
pub struct CompiledLoop {
    code: MachineCode,
    exits: u32,
}

impl CompiledLoop {
    /// Runs the loop over these cells until it is left, and says where. Cells that the
    /// region writes and the meter hold afterwards what they had there.
    ///
    /// # Panics
    /// Another number of cells than the region has.
    pub fn run(&self, cells: &mut [f64], meter: &mut Meter) -> ExitId {
        let exit = self.code.call(cells, meter);
        debug_assert!(exit < self.exits, "an exit of the region");
        exit
    }

    /// Bytes that its machine code takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.code.bytes()
    }
}

/// The processor that this process runs on.
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

/// Compiles a region that was checked.
pub(crate) fn compile(region: &Region) -> Result<CompiledLoop, Refused> {
    let isa = &**isa().ok_or(Refused::Machine)?;
    // A fault of the compiler is no fault of the run's.
    catch_unwind(AssertUnwindSafe(|| compile_for(region, isa)))
        .ok()
        .flatten()
        .ok_or(Refused::Compiler)
}

fn compile_for(region: &Region, isa: &dyn TargetIsa) -> Option<CompiledLoop> {
    let mut context = Context::new();
    context.func.signature = entry_signature(isa);
    let mut of_builder = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut of_builder);
    Emitter::new(&mut builder, region, isa).emit(region);
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    let compiled = context.compile(isa, &mut ControlPlane::default()).ok()?;
    if !compiled.buffer.relocs().is_empty() {
        return None;
    }
    let code = compiled.code_buffer();
    #[allow(unsafe_code, reason = "what was just compiled is put into memory")]
    // SAFETY: `Emitter` writes a function of that signature. It accesses memory at two
    // addresses, its parameters: cells below the number of the region's, and the two fields
    // of the meter. It calls `remainder`, which does not unwind. `Region::check` was asked, so
    // that each cell, block and exit exists.
    let code = unsafe { MachineCode::new(code, region.cells.len()) }?;
    Some(CompiledLoop {
        code,
        exits: region.exits,
    })
}

fn entry_signature(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    let pointer = isa.pointer_type();
    signature.params = vec![AbiParam::new(pointer), AbiParam::new(pointer)];
    signature.returns = vec![AbiParam::new(I32)];
    signature
}

/// What remainders are that are not of small whole numbers.
extern "C" fn remainder(a: f64, b: f64) -> f64 {
    fmod(a, b)
}

/// Writes the function of a region.
struct Emitter<'b, 'f> {
    builder: &'b mut FunctionBuilder<'f>,
    cells: Vec<Variable>,
    fuel: Variable,
    work: Variable,
    blocks: Vec<Block>,
    /// Where the code is left, with the number of the exit.
    leave: Block,
    pointer: Type,
    /// The signature of [`remainder`].
    remainder: SigRef,
}

impl<'b, 'f> Emitter<'b, 'f> {
    fn new(
        builder: &'b mut FunctionBuilder<'f>,
        region: &Region,
        isa: &dyn TargetIsa,
    ) -> Emitter<'b, 'f> {
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params = vec![AbiParam::new(F64), AbiParam::new(F64)];
        signature.returns = vec![AbiParam::new(F64)];
        let variables = region.cells.iter().map(|kind| match kind {
            Kind::Number => builder.declare_var(F64),
            Kind::Flag => builder.declare_var(I8),
        });
        Emitter {
            cells: variables.collect(),
            fuel: builder.declare_var(I64),
            work: builder.declare_var(I64),
            blocks: region.blocks.iter().map(|_| builder.create_block()).collect(),
            leave: builder.create_block(),
            pointer: isa.pointer_type(),
            remainder: builder.import_signature(signature),
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

    /// Pays for a block, or leaves before it.
    fn pay(&mut self, price: Price) {
        let unpaid = self.builder.create_block();
        let affordable = self.builder.create_block();
        let paid = self.builder.create_block();
        self.builder.set_cold_block(unpaid);
        let fuel = self.builder.use_var(self.fuel);
        let takes = self.builder.ins().iconst(I64, price.fuel);
        let is_enough = self.builder.ins().icmp(IntCC::SignedGreaterThan, fuel, takes);
        self.builder
            .ins()
            .brif(is_enough, affordable, &[], unpaid, &[]);

        self.builder.switch_to_block(affordable);
        let work = self.builder.use_var(self.work);
        let done = self.builder.ins().iconst(I64, price.work);
        let left = self.builder.ins().isub(work, done);
        let is_time = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
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
                (dst, self.remainder_by(l, divisor))
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
            Arith::Rem => {
                let (whole_l, is_l) = self.small_whole(l);
                let (whole_r, is_r) = self.small_whole(r);
                let is_some = self.builder.ins().icmp_imm_u(IntCC::NotEqual, whole_r, 0);
                let are_whole = self.builder.ins().band(is_l, is_r);
                let is_fast = self.builder.ins().band(are_whole, is_some);
                self.either(is_fast, l, r, |emitter| {
                    emitter.builder.ins().urem(whole_l, whole_r)
                })
            }
        }
    }

    /// A remainder whose divisor is known: no division where it is a small whole number.
    fn remainder_by(&mut self, l: Value, divisor: f64) -> Value {
        let r = self.builder.ins().f64const(divisor);
        let size = divisor.abs();
        let is_small = size >= 1.0 && size < (1u64 << WHOLE_BITS) as f64 && size.fract() == 0.0;
        if !is_small {
            return self.call_remainder(l, r);
        }
        let (whole_l, is_fast) = self.small_whole(l);
        self.either(is_fast, l, r, |emitter| {
            let by = emitter.builder.ins().iconst(I64, size as i64);
            emitter.builder.ins().urem(whole_l, by)
        })
    }

    /// The remainder of two numbers, of whole ones where that is so.
    fn either(
        &mut self,
        is_fast: Value,
        l: Value,
        r: Value,
        whole: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let fast = self.builder.create_block();
        let slow = self.builder.create_block();
        let join = self.builder.create_block();
        let result = self.builder.append_block_param(join, F64);
        self.builder.set_cold_block(slow);
        self.builder.ins().brif(is_fast, fast, &[], slow, &[]);

        self.builder.switch_to_block(fast);
        let rest = whole(self);
        let rest = self.builder.ins().fcvt_from_sint(F64, rest);
        let rest = self.builder.ins().fcopysign(rest, l);
        self.builder.ins().jump(join, &[BlockArg::Value(rest)]);

        self.builder.switch_to_block(slow);
        let rest = self.call_remainder(l, r);
        self.builder.ins().jump(join, &[BlockArg::Value(rest)]);

        self.builder.switch_to_block(join);
        result
    }

    fn call_remainder(&mut self, l: Value, r: Value) -> Value {
        let address = remainder as extern "C" fn(f64, f64) -> f64 as usize;
        let address = self.builder.ins().iconst(self.pointer, address as i64);
        let call = self
            .builder
            .ins()
            .call_indirect(self.remainder, address, &[l, r]);
        self.builder.inst_results(call)[0]
    }

    /// The whole number from 0 to 2^51 - 1 that a number is without its sign, and whether
    /// it is one, as in [`fmod`].
    fn small_whole(&mut self, number: Value) -> (Value, Value) {
        let size = self.builder.ins().fabs(number);
        let shift = self.builder.ins().f64const(SHIFT);
        let shifted = self.builder.ins().fadd(size, shift);
        let bits = self.builder.ins().bitcast(I64, MemFlagsData::new(), shifted);
        let zero = self.builder.ins().iconst(I64, SHIFT.to_bits() as i64);
        let whole = self.builder.ins().isub(bits, zero);
        let back = self.builder.ins().fsub(shifted, shift);
        let is_whole = self.builder.ins().fcmp(FloatCC::Equal, back, size);
        let limit = 1i64 << WHOLE_BITS;
        let is_small = self
            .builder
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThan, whole, limit);
        let is_both = self.builder.ins().band(is_whole, is_small);
        (whole, is_both)
    }
}

fn of_cell(at: usize) -> usize {
    at * size_of::<f64>()
}

fn offset32(offset: usize) -> Offset32 {
    Offset32::new(i32::try_from(offset).expect("a few cells"))
}
