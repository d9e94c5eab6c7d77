//! The common price of vector searches.

use a99_core::costs::MICRO;
use a99_core::fuel::cost_from_f64;
use a99_core::sig::BaseCost;
use a99_vm::atom::AtomDef;
use a99_vm::convert::BoundaryLimits;
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

/// Default number of documents that a search returns and charges for.
const DEFAULT_K: f64 = 5.0;

/// Static price: 5 for the call, 1 per document.
pub(super) const SEARCH: i64 = 10 * MICRO;

/// Sets the price of a vector search for an atom whose third input is `k`.
pub(super) fn search_priced(mut def: AtomDef) -> AtomDef {
    def.sig.cost = BaseCost::Dynamic(SEARCH);
    def.dynamic_cost = Some(search_cost);
    def
}

/// `5 + (k ?? 5)` units of fuel if `k` is a valid number, otherwise the static price (F01, D17).
fn search_cost(_: &mut Cx<'_>, args: &[Val], _: &BoundaryLimits) -> Result<f64, Fault> {
    let k = match args.get(2) {
        Some(Val::Num(k)) if cost_from_f64(*k).is_some() => *k,
        _ => DEFAULT_K,
    };
    Ok(5.0 + k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_never_give_fuel() {
        let price = |args: &[Val]| {
            let cost = |cx: &mut Cx<'_>| search_cost(cx, args, &BoundaryLimits::default());
            crate::testing::with_cx(cost).expect("a price")
        };
        let of = |k| price(&[Val::Undefined, Val::Undefined, k]);
        assert_eq!(of(Val::Num(2.0)), 7.0);
        assert_eq!(of(Val::Undefined), 10.0);
        for k in [-1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(of(Val::Num(k)), 10.0);
        }
        assert_eq!(price(&[]), 10.0);
    }
}
