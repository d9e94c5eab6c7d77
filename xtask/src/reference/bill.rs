//! Bills of small programs, calculated from the tables: `docs/costs.md`, "Checking `fuel_used` by
//! hand".

use super::price;
use a99_core::costs::{self, BOTH, CostModel, Formula, Sizes, WRITTEN};
use a99_core::sig::{AtomSig, BaseCost};
use std::fmt::Write as _;

/// A sum with one line for each item.
struct Bill {
    lines: String,
    metered: i64,
    flat: i64,
}

impl Bill {
    fn new() -> Bill {
        let lines = String::from("| what | metered | flat |\n|---|---|---|\n");
        Bill {
            lines,
            metered: 0,
            flat: 0,
        }
    }

    /// A static price, `n` times.
    fn fixed(&mut self, what: &str, n: i64, each: impl Fn(CostModel) -> i64) {
        let column = |sum: &mut i64, model| {
            let each = each(model);
            *sum += n * each;
            if n == 1 {
                price(each)
            } else {
                format!("{n} * {} = {}", price(each), price(n * each))
            }
        };
        let metered = column(&mut self.metered, CostModel::Metered);
        let flat = column(&mut self.flat, CostModel::Flat);
        let _ = writeln!(self.lines, "| {what} | {metered} | {flat} |");
    }

    /// A proportional price.
    fn proportional(&mut self, what: &str, formula: Formula, sizes: Sizes) {
        let sum = formula.price(sizes);
        self.metered += sum;
        let _ = writeln!(self.lines, "| {what} | {} | 0 |", price(sum));
    }

    fn finish(self, out: &mut String) {
        let (metered, flat) = (price(self.metered), price(self.flat));
        let _ = write!(
            out,
            "{}| **`fuel_used`** | **{metered}** | **{flat}** |\n\n",
            self.lines
        );
    }
}

pub(super) fn write_examples(out: &mut String, atoms: &[&AtomSig]) {
    let cost = |name: &str| {
        atoms
            .iter()
            .find(|a| a.name == name)
            .map_or(BaseCost::Fixed(0), |a| a.cost)
    };
    let of = |name: &str| {
        let cost = cost(name);
        move |model| cost.fixed_in(model)
    };
    let (seq, set) = (of("seq"), of("varSet"));
    out.push_str(
        "## Checking `fuel_used` by hand\n\nSet `n` to 3, then `while (n > 0) n = n - 1`, all as \
         expression nodes. The condition has three nodes (`>`, `n`, `0`), the subtraction too; \
         an operand without a `$expr` tag would be free.\n\n",
    );
    let mut bill = Bill::new();
    bill.fixed("root `seq`", 1, seq);
    bill.fixed("`varSet` n = 3", 1, set);
    bill.fixed("`while`", 1, of("while"));
    bill.fixed("tests: 4 of 3 nodes", 12, costs::node);
    bill.fixed("turns", 3, costs::loop_turn);
    bill.fixed("bodies, implicit `seq`s", 3, seq);
    bill.fixed("`varSet` n = n - 1", 3, set);
    bill.fixed("subtractions: 3 of 3 nodes", 9, costs::node);
    bill.finish(out);
    out.push_str(
        "Set `t` to `'ab' + 'cd'`, then `u` to `t.toUpperCase()`, again as expression nodes.\n\n",
    );
    let mut bill = Bill::new();
    bill.fixed("root `seq`", 1, seq);
    bill.fixed("`varSet` t", 1, set);
    bill.fixed("nodes of `'ab' + 'cd'`", 3, costs::node);
    bill.proportional("`+` writes 4 units", WRITTEN, Sizes::default().out_units(4));
    bill.fixed("`varSet` u", 1, set);
    bill.fixed("nodes of `t.toUpperCase()`", 2, costs::node);
    let sizes = Sizes::units(4).out_units(4);
    bill.proportional("`toUpperCase` reads and writes 4 units", BOTH, sizes);
    bill.finish(out);
}
