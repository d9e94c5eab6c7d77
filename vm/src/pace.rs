//! Time and fuel of a run, and why its work ends early. The heap paces its walks by them, so
//! they stand below it.

use a99_core::costs::{COMPACTION, CostModel, Formula, Sizes};
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

/// An allocation that would exceed the ceiling (or that the system refused).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Oom {
    /// Requested bytes.
    pub wanted: usize,
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
    pub(crate) fn affords(&self, formula: Formula, sizes: Sizes) -> bool {
        self.model != CostModel::Metered || formula.price(sizes) < self.fuel
    }

    /// Pays the proportional price of an operation before the work; in the flat model checks
    /// the size caps instead.
    pub(crate) fn charge(
        &mut self,
        formula: Formula,
        sizes: Sizes,
        host: &dyn Host,
    ) -> Result<(), Fault> {
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
    pub(crate) fn pay(&mut self, price: i64) -> Result<(), Fault> {
        self.fuel = self.fuel.saturating_sub(price.max(0));
        if self.fuel <= 0 {
            Err(Fault::OutOfFuel)
        } else {
            Ok(())
        }
    }

    /// Pays a price, in micro-units, in the metered model only.
    #[inline]
    pub(crate) fn pay_metered(&mut self, price: i64) -> Result<(), Fault> {
        match self.model {
            CostModel::Metered if price > 0 => self.pay(price),
            _ => Ok(()),
        }
    }

    /// Counts `n` units of work and polls the host at the end of a slice.
    #[inline]
    pub(crate) fn work(&mut self, n: i64, host: &dyn Host) -> Result<(), Fault> {
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

    /// As [`Cx::work`](crate::native::Cx::work).
    #[inline]
    pub(crate) fn work(&mut self, n: i64) -> Result<(), Fault> {
        self.meter.work(n, self.host)
    }

    /// As [`Cx::pay_metered`](crate::native::Cx::pay_metered).
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
