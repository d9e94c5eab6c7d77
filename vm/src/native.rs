//! The interface for code inside one instruction: heap, meter, and errors.
//!
//! A builtin or atom body with a [`Cx`] follows three rules. It charges from the sizes of its
//! operands **before** it works (D18). It makes every allocation and every charge before it
//! changes program-visible state, because the machine may run the instruction a second time
//! after a compaction or when fuel runs short. And it calls [`Cx::work`] in loops whose
//! length the program controls, so that an abort or a deadline stops it within a millisecond
//! (D23).

use crate::atom::AtomError;
use crate::heap::{Heap, KeyId, Oom, Str, Val};
use a99_core::costs::{COMPACTION, CostModel, Formula, READ, SHORT_TEXT, Sizes, name_units};
use a99_core::error::{ErrorCode, HostCode};
use a99_core::value::Value;

/// Why an instruction did not complete.
#[derive(Debug)]
pub enum Fault {
    /// The heap ceiling is reached; the machine compacts and retries once.
    Oom(Oom),
    /// Fuel does not cover a proportional price. In fast mode a part of the budget is
    /// prepaid, so the machine retries in precise mode.
    OutOfFuel,
    /// The host stops the run.
    Stop(StopReason),
    /// An error that the program may catch.
    Throw(Box<Thrown>),
}

/// Every instruction returns a `Result` with it: two words fit into registers.
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
    /// A code of the host, if it set one.
    pub host_code: Option<HostCode>,
    /// The message that a program sees, WTF-8.
    pub message: Vec<u8>,
    /// A suggestion for people, never part of the message (D24).
    pub help: Option<String>,
    /// Details for observers of the run.
    pub details: Option<Box<Value>>,
    /// The failed op, if it is not the op of the running step (`console.error`).
    pub op: Option<&'static str>,
}

impl Fault {
    /// A catchable error with this message.
    #[cold]
    pub fn throw(message: impl Into<String>) -> Fault {
        Fault::coded(ErrorCode::Program, message)
    }

    /// A catchable error with a code.
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

    /// Adds a suggestion for people.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Fault {
        if let Fault::Throw(thrown) = &mut self {
            thrown.help = Some(help.into());
        }
        self
    }

    /// The error of code with operands of the wrong kind. The verifier proves that registers
    /// hold values, not their kinds, so this shows only at run time.
    #[cold]
    pub(crate) fn invalid(what: &str) -> Fault {
        Fault::coded(ErrorCode::Invalid, format!("Invalid program: {what}"))
    }

    /// The error of a call to an atom unknown to both compiler and host.
    #[cold]
    pub(crate) fn unknown_atom(name: &[u8]) -> Fault {
        let name = a99_core::text::wtf8_to_string_lossy(name);
        Fault::throw(format!("Unknown Atom: {name}"))
    }

    /// A catchable error attributed to another op.
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

    /// The error of a forbidden name (D16).
    #[cold]
    pub fn forbidden(name: &str) -> Fault {
        Fault::coded(
            ErrorCode::Security,
            a99_core::builtins::forbidden_text(name),
        )
    }
}

impl From<AtomError> for Fault {
    /// Converts a host's error to the program's view. Only the engine may use codes that
    /// programs cannot catch. An error without a message gets the name of its kind.
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

/// The cause of a stop.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The caller's abort signal.
    Aborted,
    /// The run's deadline.
    Deadline,
}

/// The environment that the driver gives the machine, used at yield points. Only the driver
/// reads clocks and flags.
pub trait Host: Send + Sync {
    /// Whether the run must stop now, and why.
    fn stop(&self) -> Option<StopReason>;
    /// Whether the run is aborted, regardless of time.
    fn is_aborted(&self) -> bool {
        self.stop() == Some(StopReason::Aborted)
    }
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> f64;
    /// Fills a buffer with random bytes.
    fn random(&self, out: &mut [u8]);
}

/// Maximum UTF-16 units of an operand or a result in the flat model (D18: hard caps replace
/// proportional prices).
pub const FLAT_MAX_UNITS: u64 = 32 << 20;

/// Maximum elements or keys of an operand or a result in the flat model.
pub const FLAT_MAX_ELEMENTS: u64 = 8 << 20;

/// Units of work between two yield points, about 20 microseconds.
pub(crate) const WORK_SLICE: i64 = 16_384;

/// Fuel and time of a run, as an instruction sees them.
///
/// Each block writes `fuel` and `slice` separately. If they were adjacent, a combined load of
/// both (`mark`) would wait for these stores.
#[derive(Debug)]
#[repr(C)]
pub struct Meter {
    /// Micro-units left; in fast mode the current block is already paid.
    pub(crate) fuel: i64,
    /// Value of `slice` at which the host is polled next within one instruction.
    pub(crate) look: i64,
    /// Work left until the run yields; negative if it is overdue.
    pub(crate) slice: i64,
    pub(crate) model: CostModel,
    /// Length of a slice, in units of work.
    size: i64,
}

/// A saved state of a [`Meter`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    fuel: i64,
    slice: i64,
}

impl Meter {
    /// Creates a meter with a budget in micro-units.
    pub fn new(fuel: i64, model: CostModel) -> Meter {
        Meter {
            fuel,
            model,
            slice: WORK_SLICE,
            look: 0,
            size: WORK_SLICE,
        }
    }

    /// Sets the length of slices.
    pub(crate) fn set_slice(&mut self, size: i64) {
        self.size = size.clamp(1, WORK_SLICE);
        self.slice = self.slice.min(self.size);
    }

    /// Begins a slice of at least this much work, after the run has yielded.
    pub(crate) fn new_slice(&mut self, least: i64) {
        self.slice = self.size.max(least);
        self.look = 0;
    }

    /// Counts finished work without polling the host.
    pub(crate) fn did(&mut self, n: usize) {
        self.slice = self
            .slice
            .saturating_sub(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Charges nanoseconds of compaction that no allocation paid for.
    pub(crate) fn compacted(&mut self, work: usize) {
        if self.model == CostModel::Metered {
            let price = i64::try_from(work).unwrap_or(i64::MAX);
            let price = price.saturating_mul(COMPACTION);
            self.fuel = self.fuel.saturating_sub(price);
        }
    }

    /// Saves the state.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            fuel: self.fuel,
            slice: self.slice,
        }
    }

    /// Restores the state, before an instruction runs again.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.fuel = mark.fuel;
        self.slice = mark.slice;
        self.look = self.look.max(mark.slice.saturating_sub(WORK_SLICE)).min(0);
    }

    /// Fuel left, in micro-units.
    pub fn fuel(&self) -> i64 {
        self.fuel
    }

    /// Whether the budget covers a price.
    fn affords(&self, formula: Formula, sizes: Sizes) -> bool {
        self.model != CostModel::Metered || formula.price(sizes) < self.fuel
    }

    /// Pays the proportional price of an operation before the work; in the flat model checks
    /// the size caps instead.
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

    /// Pays a price, in micro-units, in the metered model only.
    #[inline]
    fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        match self.model {
            CostModel::Metered if price > 0 => self.pay(price),
            _ => Ok(()),
        }
    }

    /// Counts `n` units of work and polls the host at the end of a slice.
    #[inline]
    fn work(&mut self, n: i64, host: &dyn Host) -> Result<(), Fault> {
        self.slice = self.slice.saturating_sub(n);
        if self.slice <= self.look {
            self.end_slice(host)
        } else {
            Ok(())
        }
    }

    /// Polls the host. The slice stays overdue, so that the run yields after this instruction
    /// (C22).
    #[cold]
    fn end_slice(&mut self, host: &dyn Host) -> Result<(), Fault> {
        self.look = self.slice.saturating_sub(WORK_SLICE);
        host.stop()
            .map_or(Ok(()), |reason| Err(Fault::Stop(reason)))
    }
}

/// Stoppable work that is neither paid nor part of an instruction.
pub(crate) struct Watch<'h> {
    host: &'h dyn Host,
    left: usize,
}

impl<'h> Watch<'h> {
    pub(crate) fn new(host: &'h dyn Host) -> Watch<'h> {
        let left = WORK_SLICE as usize;
        Watch { host, left }
    }

    /// Counts `n` units of work (about a nanosecond each) and polls the host at the end of a
    /// slice.
    ///
    /// # Errors
    /// The host stops the run.
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

/// Receives the progress of long work.
pub(crate) trait Pace {
    /// The reason for an early end.
    type Stop;
    /// Counts `n` units of work (about a nanosecond each).
    ///
    /// # Errors
    /// The host stops the run.
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

/// The time of a run without its heap, for walks that borrow a part of the heap.
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
    /// A clock that never stops, for tests of the heap.
    #[cfg(test)]
    pub(crate) fn with<T>(run: impl FnOnce(&mut Clock<'_>) -> T) -> T {
        let mut meter = Meter::new(i64::MAX, CostModel::Metered);
        run(&mut Clock {
            meter: &mut meter,
            host: &crate::builtins::testing::Still,
        })
    }
}

/// Read-only view of a run, for work on texts and values in place. It pays and stops like
/// [`Cx`].
pub(crate) struct Reading<'a> {
    pub(crate) heap: &'a Heap,
    meter: &'a mut Meter,
    host: &'a dyn Host,
}

impl<'a> Reading<'a> {
    /// The heap, with the lifetime of the view.
    pub(crate) fn heap(&self) -> &'a Heap {
        self.heap
    }

    /// As [`Cx::charge`].
    pub(crate) fn charge(&mut self, formula: Formula, sizes: Sizes) -> Result<(), Fault> {
        self.meter.charge(formula, sizes, self.host)
    }

    /// Pays a price, in micro-units, in the metered model only.
    pub(crate) fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay_metered(price)
    }

    /// As [`Cx::work`].
    #[inline]
    pub(crate) fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }
}

/// The view of a run for builtins and native atoms.
pub struct Cx<'a> {
    /// The run's heap.
    pub heap: &'a mut Heap,
    pub(crate) meter: &'a mut Meter,
    pub(crate) host: &'a dyn Host,
}

impl<'a> Cx<'a> {
    /// Creates a view from its parts; hosts need it only to test their atoms.
    pub fn new(heap: &'a mut Heap, meter: &'a mut Meter, host: &'a dyn Host) -> Cx<'a> {
        Cx { heap, meter, host }
    }
}

impl Cx<'_> {
    /// Pays the proportional price of an operation before the work; in the flat model checks
    /// the size caps instead.
    pub fn charge(&mut self, formula: Formula, sizes: Sizes) -> Result<(), Fault> {
        self.meter.charge(formula, sizes, self.host)
    }

    /// Ends the run if the price so far is not affordable, without charging otherwise: for
    /// results that are built in pieces and paid as a whole.
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

    /// Pays a price, in micro-units, in the metered model only.
    pub fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        self.meter.pay_metered(price)
    }

    /// Counts `n` units of work (about a nanosecond each) and polls abort and deadline at the
    /// end of a slice.
    #[inline]
    pub fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }

    /// The heap and the clock, borrowed together.
    pub(crate) fn split(&mut self) -> (&mut Heap, Clock<'_>) {
        let clock = Clock {
            meter: self.meter,
            host: self.host,
        };
        (self.heap, clock)
    }

    /// The read-only view, for work that borrows from the heap.
    pub(crate) fn reading(&mut self) -> Reading<'_> {
        Reading {
            heap: self.heap,
            meter: self.meter,
            host: self.host,
        }
    }

    /// Pays for the lookup of a name that the program computed.
    ///
    /// # Errors
    /// Fuel, a stop.
    pub fn charge_name(&mut self, name: Str) -> Result<(), Fault> {
        self.charge_name_of(name.len_bytes())
    }

    /// The name of a member as a value, paid for like a lookup.
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

    /// Fills a buffer with random bytes from the run's source.
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
