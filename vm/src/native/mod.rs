//! The interface for code inside one instruction: heap, meter, and errors.
//!
//! A builtin or atom body with a [`Cx`] follows three rules. It charges from the sizes of its
//! operands **before** it works (D18). It makes every allocation and every charge before it
//! changes program-visible state, because the machine may run the instruction a second time
//! after a compaction or when fuel runs short. And it calls [`Cx::work`] in loops whose
//! length the program controls, so that an abort or a deadline stops it within a millisecond
//! (D23).

mod copies;
mod draft;

pub use crate::pace::{FLAT_MAX_ELEMENTS, FLAT_MAX_UNITS, Fault, Host, Meter, StopReason, Thrown};

pub use draft::ObjDraft;

use crate::heap::{Heap, KeyId, Str, Val};
use crate::pace::Clock;
use a99_core::costs::{Formula, READ, SHORT_TEXT, Sizes, name_units};

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
        (self.heap, Clock::new(self.meter, self.host))
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
