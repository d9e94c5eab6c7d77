//! Charges for work on a whole value, in advance.

use super::{BoundaryLimits, too_deep};
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{CostModel, Formula, Sizes};

/// Work to read a value.
const VALUE_WORK: i64 = 16;

/// Charges for reading a value with all nested ones: elements, members and units. Shared
/// parts count once per path, as in a copy.
///
/// # Errors
/// Fuel (in the flat model, the caps), a stop; more levels than may cross the boundary, for
/// instance a cycle.
pub(crate) fn charge_read(cx: &mut Cx<'_>, v: Val, formula: Formula) -> Result<(), Fault> {
    let limits = BoundaryLimits::default();
    let mut total = Sizes::default();
    let mut path: Vec<(Ref, usize)> = Vec::new();
    let mut next = Some(v);
    loop {
        match next {
            Some(Val::Str(s)) => pay(cx, formula, &mut total, Sizes::units(s.units()))?,
            Some(Val::Arr(r) | Val::Set(r) | Val::Obj(r)) => {
                if path.len() >= limits.max_depth as usize {
                    return Err(too_deep(&limits));
                }
                let len = cx.heap.len(r);
                pay(cx, formula, &mut total, Sizes::elements(len))?;
                path.push((r, 0));
            }
            _ => {}
        }
        let Some((r, at)) = path.last_mut() else {
            return Ok(());
        };
        next = cx.heap.items(*r).get(*at).copied();
        *at += 1;
        if next.is_none() {
            path.pop();
        }
        cx.work(VALUE_WORK)?;
    }
}

fn pay(cx: &mut Cx<'_>, formula: Formula, total: &mut Sizes, part: Sizes) -> Result<(), Fault> {
    total.in_units = total.in_units.saturating_add(part.in_units);
    total.in_elements = total.in_elements.saturating_add(part.in_elements);
    // The flat model's caps apply to the whole operation.
    let sizes = if cx.meter.model == CostModel::Flat {
        *total
    } else {
        part
    };
    cx.charge(formula, sizes)
}
