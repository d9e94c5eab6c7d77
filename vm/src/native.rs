//! What code inside one instruction may do: the heap, the meter, and the ways
//! to fail.
//!
//! A builtin or atom body that gets a [`Cx`] follows three rules. It charges
//! from the sizes of its operands **before** it works (D18). It makes every
//! allocation and every charge before it changes anything that the program
//! could see, because the machine may run the instruction a second time after
//! a compaction or when fuel runs short. And it calls [`Cx::work`] in loops
//! whose length the program chooses, so that an abort or a deadline stops it
//! within a millisecond (D23).

use crate::atom::AtomError;
use crate::heap::{Heap, KeyId, Oom, Str, Val};
use a99_core::costs::{COMPACTION, CostModel, Formula, READ, SHORT_TEXT, Sizes, name_units};
use a99_core::error::{ErrorCode, HostCode};
use a99_core::value::Value;

/// Why an instruction did not finish.
#[derive(Debug)]
pub enum Fault {
    /// The heap ceiling; the machine compacts and tries once more.
    Oom(Oom),
    /// Fuel does not cover a proportional price. In fast mode part of the
    /// budget is prepaid, so the machine tries again in precise mode.
    OutOfFuel,
    /// The host asked the run to stop.
    Stop(StopReason),
    /// An error that the program may catch.
    Throw(Box<Thrown>),
}

/// Every instruction returns a result with it: two words, so that it fits into
/// registers.
const _: () = assert!(size_of::<Fault>() <= 16);

impl From<StopReason> for Fault {
    fn from(reason: StopReason) -> Fault {
        Fault::Stop(reason)
    }
}

impl From<Oom> for Fault {
    fn from(oom: Oom) -> Fault {
        Fault::Oom(oom)
    }
}

/// An error raised by an instruction; the machine adds op and place.
#[derive(Debug, Clone)]
pub struct Thrown {
    /// Stable code.
    pub code: ErrorCode,
    /// The host's own code, if it gave one.
    pub host_code: Option<HostCode>,
    /// The text a program sees, WTF-8.
    pub message: Vec<u8>,
    /// A suggestion for people, never part of the message (D24).
    pub help: Option<String>,
    /// Details for who sees the run from outside.
    pub details: Option<Box<Value>>,
    /// Who failed, where that is not the step that ran (`console.error`).
    pub op: Option<&'static str>,
}

impl Fault {
    /// A catchable error with this text.
    #[cold]
    pub fn throw(message: impl Into<String>) -> Fault {
        Fault::coded(ErrorCode::Program, message)
    }

    /// A catchable error with a code of its own.
    #[cold]
    pub fn coded(code: ErrorCode, message: impl Into<String>) -> Fault {
        Fault::Throw(Box::new(Thrown {
            code,
            host_code: None,
            message: message.into().into_bytes(),
            help: None,
            details: None,
            op: None,
        }))
    }

    /// The error with a suggestion for people.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Fault {
        if let Fault::Throw(thrown) = &mut self {
            thrown.help = Some(help.into());
        }
        self
    }

    /// Code that contradicts itself in a way that only shows when it runs: the
    /// verifier proves that registers hold values, not which kind.
    #[cold]
    pub(crate) fn invalid(what: &str) -> Fault {
        Fault::coded(ErrorCode::Invalid, format!("Invalid program: {what}"))
    }

    /// A call of an atom that the compiler did not know and the host does not have.
    #[cold]
    pub(crate) fn unknown_atom(name: &[u8]) -> Fault {
        let name = a99_core::text::wtf8_to_string_lossy(name);
        Fault::throw(format!("Unknown Atom: {name}"))
    }

    /// A catchable error in the name of another op.
    #[cold]
    pub fn by(op: &'static str, message: impl Into<Vec<u8>>) -> Fault {
        let message = message.into();
        Fault::Throw(Box::new(Thrown {
            code: ErrorCode::Program,
            host_code: None,
            message,
            help: None,
            details: None,
            op: Some(op),
        }))
    }

    /// The refusal of a forbidden name (D16).
    #[cold]
    pub fn forbidden(name: &str) -> Fault {
        Fault::coded(
            ErrorCode::Security,
            a99_core::builtins::forbidden_text(name),
        )
    }
}

impl From<AtomError> for Fault {
    /// What a program sees of a host's error. Codes that no program may catch are
    /// the engine's to give, and an error without a text shows the name of its
    /// kind.
    #[cold]
    fn from(error: AtomError) -> Fault {
        let code = match error.code.is_catchable() {
            true => error.code,
            false => ErrorCode::Program,
        };
        let message = match error.message.is_empty() {
            true => b"Error".to_vec(),
            false => error.message.as_bytes().to_vec(),
        };
        Fault::Throw(Box::new(Thrown {
            code,
            host_code: error.host_code,
            message,
            help: error.help,
            details: error.details,
            op: None,
        }))
    }
}

/// Who stopped a run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The caller's abort signal.
    Aborted,
    /// The run's deadline.
    Deadline,
}

/// What the driver lets the machine ask at yield points. Reading a clock or a
/// flag is the driver's business.
pub trait Host: Send + Sync {
    /// Whether the run must stop now.
    fn stop(&self) -> Option<StopReason>;
    /// Whether it must because the host says so, whatever the time.
    fn is_aborted(&self) -> bool {
        self.stop() == Some(StopReason::Aborted)
    }
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> f64;
    /// Fills a buffer with random bytes.
    fn random(&self, out: &mut [u8]);
}

/// In the flat model an operation refuses operands and results above this
/// many UTF-16 units (D18: hard caps instead of proportional prices).
pub const FLAT_MAX_UNITS: u64 = 32 << 20;

/// In the flat model an operation refuses operands and results above this
/// many elements or keys.
pub const FLAT_MAX_ELEMENTS: u64 = 8 << 20;

/// Units of work between two looks at the host, about 20 microseconds.
pub(crate) const WORK_SLICE: i64 = 16_384;

/// Fuel and time of a run, as an instruction sees them.
///
/// `fuel` and `slice` are written one by one for each block: if they lay side by side, reading
/// both at once (`mark`) would wait for these writes.
#[derive(Debug)]
#[repr(C)]
pub struct Meter {
    /// Micro-units left; in fast mode the current block is already paid.
    pub(crate) fuel: i64,
    /// How low `slice` may fall within one instruction until the host is
    /// asked again.
    pub(crate) look: i64,
    /// Work left until the run gives way to others; below zero it is overdue.
    pub(crate) slice: i64,
    pub(crate) model: CostModel,
    /// How long a slice is.
    size: i64,
}

/// A reading of a [`Meter`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    fuel: i64,
    slice: i64,
}

impl Meter {
    /// A meter with this budget in micro-units.
    pub fn new(fuel: i64, model: CostModel) -> Meter {
        Meter {
            fuel,
            model,
            slice: WORK_SLICE,
            look: 0,
            size: WORK_SLICE,
        }
    }

    /// Sets how long slices are.
    pub(crate) fn set_slice(&mut self, size: i64) {
        self.size = size.clamp(1, WORK_SLICE);
        self.slice = self.slice.min(self.size);
    }

    /// Begins a slice of at least so much work: others had their turn.
    pub(crate) fn new_slice(&mut self, least: i64) {
        self.slice = self.size.max(least);
        self.look = 0;
    }

    /// Notes work that was done without looking at the host.
    pub(crate) fn did(&mut self, n: usize) {
        self.slice = self
            .slice
            .saturating_sub(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Pays for nanoseconds of compaction that no allocation paid for.
    pub(crate) fn compacted(&mut self, work: usize) {
        if self.model == CostModel::Metered {
            let price = i64::try_from(work).unwrap_or(i64::MAX);
            let price = price.saturating_mul(COMPACTION);
            self.fuel = self.fuel.saturating_sub(price);
        }
    }

    /// Where the meter stands.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            fuel: self.fuel,
            slice: self.slice,
        }
    }

    /// Forgets what an instruction charged that is run again.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.fuel = mark.fuel;
        self.slice = mark.slice;
        self.look = self.look.max(mark.slice.saturating_sub(WORK_SLICE)).min(0);
    }

    /// Micro-units left.
    pub fn fuel(&self) -> i64 {
        self.fuel
    }

    /// Pays the proportional price of an operation before it works; in the
    /// flat model checks the size caps instead.
    /// Whether fuel is left after that price.
    fn affords(&self, formula: Formula, sizes: Sizes) -> bool {
        self.model != CostModel::Metered || formula.price(sizes) < self.fuel
    }

    fn charge(&mut self, formula: Formula, sizes: Sizes, host: &dyn Host) -> Result<(), Fault> {
        match self.model {
            CostModel::Metered => {
                let price = formula.price(sizes);
                if price > 0 {
                    self.fuel = self.fuel.saturating_sub(price);
                    if self.fuel <= 0 {
                        return Err(Fault::OutOfFuel);
                    }
                }
            }
            CostModel::Flat => {
                if sizes.in_units.max(sizes.out_units) > FLAT_MAX_UNITS
                    || sizes.in_elements.max(sizes.out_elements) > FLAT_MAX_ELEMENTS
                {
                    return Err(Fault::throw(
                        "Operation too large: the flat cost model limits one operation to \
                         33554432 text units and 8388608 elements",
                    ));
                }
            }
        }
        let total =
            sizes.in_units.max(sizes.out_units) / 16 + sizes.in_elements.max(sizes.out_elements);
        self.work(total.min(i64::MAX as u64 / 2) as i64, host)
    }

    /// Pays a price in micro-units.
    fn pay(&mut self, price: i64) -> Result<(), Fault> {
        self.fuel = self.fuel.saturating_sub(price.max(0));
        if self.fuel <= 0 {
            Err(Fault::OutOfFuel)
        } else {
            Ok(())
        }
    }

    /// Pays a price of the metered model in micro-units.
    #[inline]
    fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        match self.model {
            CostModel::Metered if price > 0 => self.pay(price),
            _ => Ok(()),
        }
    }

    /// Notes `n` units of work and asks the host when a slice is done.
    #[inline]
    fn work(&mut self, n: i64, host: &dyn Host) -> Result<(), Fault> {
        self.slice = self.slice.saturating_sub(n);
        if self.slice <= self.look {
            self.end_slice(host)
        } else {
            Ok(())
        }
    }

    /// The slice itself stays overdue, so that the run gives way to others
    /// after this instruction (C22).
    #[cold]
    fn end_slice(&mut self, host: &dyn Host) -> Result<(), Fault> {
        self.look = self.slice.saturating_sub(WORK_SLICE);
        host.stop()
            .map_or(Ok(()), |reason| Err(Fault::Stop(reason)))
    }
}

/// Work that is neither paid nor part of an instruction, and stops like one.
pub(crate) struct Watch<'h> {
    host: &'h dyn Host,
    left: usize,
}

impl<'h> Watch<'h> {
    pub(crate) fn new(host: &'h dyn Host) -> Watch<'h> {
        let left = WORK_SLICE as usize;
        Watch { host, left }
    }

    /// Notes `n` units of work (about a nanosecond each) and asks the host
    /// when a slice is done.
    ///
    /// # Errors
    /// It says stop.
    #[inline]
    pub(crate) fn work(&mut self, n: usize) -> Result<(), StopReason> {
        match self.left.checked_sub(n) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), StopReason> {
        self.left = WORK_SLICE as usize;
        self.host.stop().map_or(Ok(()), Err)
    }
}

/// What long work tells of its pieces.
pub(crate) trait Pace {
    /// Why the work ends early.
    type Stop;
    /// Notes `n` units of work (about a nanosecond each).
    ///
    /// # Errors
    /// The host says stop.
    fn work(&mut self, n: usize) -> Result<(), Self::Stop>;
}

impl Pace for Watch<'_> {
    type Stop = StopReason;

    #[inline]
    fn work(&mut self, n: usize) -> Result<(), StopReason> {
        Watch::work(self, n)
    }
}

impl Pace for Clock<'_> {
    type Stop = Fault;

    #[inline]
    fn work(&mut self, n: usize) -> Result<(), Fault> {
        Clock::work(self, n as i64)
    }
}

/// The time of a run without its heap: for walks that hold a part of the heap
/// while they work.
pub(crate) struct Clock<'m> {
    meter: &'m mut Meter,
    host: &'m dyn Host,
}

impl<'m> Clock<'m> {
    pub(crate) fn new(meter: &'m mut Meter, host: &'m dyn Host) -> Clock<'m> {
        Clock { meter, host }
    }

    /// As [`Cx::work`].
    #[inline]
    pub(crate) fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }

    /// As [`Cx::pay_metered`].
    #[inline]
    pub(crate) fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay_metered(price)
    }
}

impl Clock<'_> {
    /// A clock that nobody stops, for tests of the heap.
    #[cfg(test)]
    pub(crate) fn with<T>(run: impl FnOnce(&mut Clock<'_>) -> T) -> T {
        let mut meter = Meter::new(i64::MAX, CostModel::Metered);
        run(&mut Clock {
            meter: &mut meter,
            host: &crate::builtins::testing::Still,
        })
    }
}

/// The view of a run that works on texts and values of its heap where they
/// lie: it pays and stops like [`Cx`], and changes nothing.
pub(crate) struct Reading<'a> {
    pub(crate) heap: &'a Heap,
    meter: &'a mut Meter,
    host: &'a dyn Host,
}

impl<'a> Reading<'a> {
    /// The heap, for longer than this is borrowed.
    pub(crate) fn heap(&self) -> &'a Heap {
        self.heap
    }

    /// As [`Cx::charge`].
    pub(crate) fn charge(&mut self, formula: Formula, sizes: Sizes) -> Result<(), Fault> {
        self.meter.charge(formula, sizes, self.host)
    }

    /// Pays a price of the metered model in micro-units.
    pub(crate) fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay_metered(price)
    }

    /// As [`Cx::work`].
    #[inline]
    pub(crate) fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }
}

/// The view of a run that builtins and native atoms work with.
pub struct Cx<'a> {
    /// The run's heap.
    pub heap: &'a mut Heap,
    pub(crate) meter: &'a mut Meter,
    pub(crate) host: &'a dyn Host,
}

impl<'a> Cx<'a> {
    /// A view of these parts; hosts need it only to test atoms of their own.
    pub fn new(heap: &'a mut Heap, meter: &'a mut Meter, host: &'a dyn Host) -> Cx<'a> {
        Cx { heap, meter, host }
    }
}

impl Cx<'_> {
    /// Pays the proportional price of an operation before it works; in the
    /// flat model checks the size caps instead.
    pub fn charge(&mut self, formula: Formula, sizes: Sizes) -> Result<(), Fault> {
        self.meter.charge(formula, sizes, self.host)
    }

    /// Ends the run if what was made so far cannot be paid for, and takes nothing
    /// otherwise: for what is made piece by piece and paid as a whole.
    pub(crate) fn foresee(&mut self, formula: Formula, sizes: Sizes) -> Result<(), Fault> {
        match self.meter.affords(formula, sizes) {
            true => Ok(()),
            false => self.charge(formula, sizes),
        }
    }

    /// Pays a price in micro-units, in both models.
    pub fn pay(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay(price)
    }

    /// Pays a price of the metered model in micro-units.
    pub fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay_metered(price)
    }

    /// Notes `n` units of work (about a nanosecond each) and looks at abort
    /// and deadline when a slice of work is done.
    #[inline]
    pub fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }

    /// The heap and the time, to be held at once.
    pub(crate) fn split(&mut self) -> (&mut Heap, Clock<'_>) {
        let clock = Clock {
            meter: self.meter,
            host: self.host,
        };
        (self.heap, clock)
    }

    /// The run with its heap to be read only, for work that borrows from it.
    pub(crate) fn reading(&mut self) -> Reading<'_> {
        Reading {
            heap: self.heap,
            meter: self.meter,
            host: self.host,
        }
    }

    /// Pays for looking up a name that the program made.
    ///
    /// # Errors
    /// Fuel, a stop.
    pub fn charge_name(&mut self, name: Str) -> Result<(), Fault> {
        self.charge_name_of(name.len_bytes())
    }

    /// The text of a member's name as a value, paid for like a name that is looked up.
    ///
    /// # Errors
    /// Fuel, memory, a stop.
    pub fn key_name(&mut self, key: KeyId) -> Result<Val, Fault> {
        self.charge_name_of(self.heap.shapes.key_text(key).len())?;
        Ok(Val::Str(self.heap.key_str(key)?))
    }

    fn charge_name_of(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes <= SHORT_TEXT {
            return Ok(());
        }
        self.charge(READ, Sizes::units(name_units(bytes)))?;
        self.work(bytes as i64)
    }

    /// Milliseconds since the Unix epoch, by the run's clock.
    pub fn now_ms(&self) -> f64 {
        self.host.now_ms()
    }

    /// Random bytes from the run's source.
    pub fn random(&self, out: &mut [u8]) {
        self.host.random(out);
    }

    /// A uniform number in [0, 1) with 53 random bits.
    pub fn random_f64(&self) -> f64 {
        let mut bytes = [0; 8];
        self.random(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The bytes of a string.
    #[inline]
    pub fn bytes(&self, s: Str) -> &[u8] {
        self.heap.bytes(s)
    }
}
