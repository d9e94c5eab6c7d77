//! Fuel of the oracle (decisions D17, D18): integer micro-units, checked after
//! every charge.

use super::value::{Fail, OVal, Res};
use a99_core::costs::{CostModel, Formula, Sizes};
use a99_core::error::ErrorCode;

/// Size caps of one operation in the flat model (decision D18).
const FLAT_MAX_UNITS: u64 = 32 << 20;
const FLAT_MAX_ELEMENTS: u64 = 8 << 20;

/// Fuel left and how it is spent.
pub struct Meter {
    /// Micro-units left, negative after an overdraft.
    pub fuel: i64,
    /// Which prices hold.
    pub model: CostModel,
}

impl Meter {
    /// Takes `micro` and fails when nothing is left.
    pub fn take(&mut self, micro: i64) -> Res<()> {
        self.fuel = self.fuel.saturating_sub(micro);
        if self.fuel <= 0 {
            return Err(Fail::coded(ErrorCode::OutOfFuel, "Out of Fuel"));
        }
        Ok(())
    }

    /// Takes the proportional price of an operation in the metered model; in
    /// the flat one checks the caps.
    pub fn charge(&mut self, formula: Formula, sizes: Sizes) -> Res<()> {
        match self.model {
            CostModel::Metered => match formula.price(sizes) {
                0 => Ok(()),
                price => self.take(price),
            },
            CostModel::Flat => {
                let units = sizes.in_units.max(sizes.out_units);
                let elements = sizes.in_elements.max(sizes.out_elements);
                if units > FLAT_MAX_UNITS || elements > FLAT_MAX_ELEMENTS {
                    return Err(Fail::new(
                        "Operation too large: the flat cost model limits one operation to \
                         33554432 text units and 8388608 elements",
                    ));
                }
                Ok(())
            }
        }
    }
}

/// Units and elements of one operand.
pub fn size(value: &OVal) -> (u64, u64) {
    match value {
        OVal::Str(s) => (s.len() as u64, 0),
        OVal::Arr(items) | OVal::Set(items) => (0, items.borrow().len() as u64),
        OVal::Obj(obj) => (0, obj.len() as u64),
        _ => (0, 0),
    }
}

/// The sizes of an operation that reads these operands and gives this result.
pub fn sizes<'a>(read: impl IntoIterator<Item = &'a OVal>, written: &OVal) -> Sizes {
    let mut s = Sizes::default();
    for value in read {
        let (units, elements) = size(value);
        s.in_units += units;
        s.in_elements += elements;
    }
    (s.out_units, s.out_elements) = size(written);
    s
}
