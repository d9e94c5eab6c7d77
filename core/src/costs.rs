//! What things cost: the prices that are not those of single atoms.
//!
//! Fuel is counted in micro-units (D17). Every operation has a static price;
//! in the metered model (D18) an operation whose work grows with its operands
//! pays a proportional part too, **before** the work, from the sizes that a
//! [`Formula`] names. `docs/costs.md` is generated from these tables.

use crate::fuel::Fuel;

/// Micro-units in one unit of fuel.
pub const MICRO: i64 = 1_000_000;
/// The version of the prices in this crate: of what is charged, and of how
/// much. It is part of what a precompiled program is recognised by; the test
/// `prices` of `tests/tests/it` says when it must rise.
pub const PRICE_VERSION: u32 = 5;
/// The most microseconds of CPU time that a unit of fuel buys in the metered
/// model, on one core of an ordinary machine; `cargo xtask rates` measures it.
pub const MICROSECONDS_A_UNIT: u32 = 50;
/// An expression node with a `$expr` tag (language section 3.1), and a nested
/// node in a literal (D13), in the flat model.
pub const NODE: i64 = 10_000;
/// The same in the metered model: a node takes nanoseconds, and pays so.
pub const NODE_METERED: i64 = 1_000;
/// One turn of `while`, taken before its body (language section 4.2), in the flat model.
pub const LOOP_TURN: i64 = 100_000;
/// What a step that is work of the machine alone pays in the metered model:
/// the flat price divided by this. Turns of loops are such work.
pub const WORK_SHARE: i64 = 20;
/// What `cache` pays to store a value after a miss (language section 4.9).
pub const CACHE_STORE: i64 = 5 * MICRO;
/// Proportional price of a UTF-16 unit: 0.0001 fuel.
pub const UNIT: i64 = 100;
/// Proportional price of an array element or object key: 0.0004 fuel.
pub const ELEMENT: i64 = 400;
/// A nanosecond of searching a full heap for garbage, where what was allocated
/// since the last time has not paid for it.
pub const COMPACTION: i64 = 40;
/// A part of a schema that meets a value.
pub const SCHEMA_NODE: i64 = 5_000;
/// A part of a schema that is read while a program runs.
pub const SCHEMA_READ: i64 = 30_000;
/// The elements that a value of an `enum` counts for that is read then.
pub const SCHEMA_ALLOWED: usize = 12;
/// The elements that a name of `required` counts for that is read then.
pub const SCHEMA_REQUIRED: usize = 4;
/// A position of a regular expression, its size with repetitions written out,
/// that is compiled.
pub const REGEX_POSITION: i64 = 2_000;
/// A position of a regular expression that meets a UTF-16 unit of a text.
pub const REGEX_STEP: i64 = 200;
/// What a position of a regular expression whose groups are noted counts for when it
/// meets a unit: so many ways, and one more for each group.
pub const REGEX_WAYS: u64 = 8;
/// Such a way.
pub const REGEX_WAY: i64 = 65;
/// The elements that a part counts for that a regular expression splits off or puts
/// into a replacement.
pub const REGEX_PART: usize = 8;
/// A second that a command runs on a computer of the `shell` capability, in
/// both models: the default budget buys its own default time limit (10 ms for
/// a unit, D22) ten times over.
pub const COMMAND_SECOND: i64 = 10 * MICRO;
/// A byte that goes to such a computer or comes from it, in both models; as a
/// [`UNIT`] of text.
pub const COMMAND_BYTE: i64 = UNIT;
/// A byte of the documents that a store looks at to answer a query, of which each counts 256
/// more, in both models.
pub const STORE_BYTE: i64 = 200;

/// What a regular expression of so many positions costs beyond the reading of
/// pattern and text, for a text of so many UTF-16 units; in the metered model.
#[must_use]
pub fn regex_price(positions: u64, units: u64) -> i64 {
    let steps = i64::try_from(positions.saturating_mul(units)).unwrap_or(i64::MAX);
    let positions = i64::try_from(positions).unwrap_or(i64::MAX);
    let matching = steps.saturating_mul(REGEX_STEP);
    positions
        .saturating_mul(REGEX_POSITION)
        .saturating_add(matching)
}

/// How many ways a unit counts for that a regular expression of so many positions and
/// groups looks at when its groups are noted: twice as many where case is ignored, and
/// twice as many where what is repeated may be empty.
#[must_use]
pub const fn regex_weight(
    positions: u64,
    groups: u64,
    ignores_case: bool,
    repeats_nothing: bool,
) -> u64 {
    let ways = positions.saturating_mul(groups.saturating_add(REGEX_WAYS));
    ways.saturating_mul((1 + ignores_case as u64) * (1 + repeats_nothing as u64))
}

/// What so many ways cost, in the metered model.
#[must_use]
pub fn regex_ways(weight: u64) -> i64 {
    i64::try_from(weight)
        .unwrap_or(i64::MAX)
        .saturating_mul(REGEX_WAY)
}

/// The elements that the value of a match with so many groups and names counts for.
#[must_use]
pub const fn regex_found(groups: usize, names: usize) -> usize {
    groups
        .saturating_mul(8)
        .saturating_add(names.saturating_mul(16))
        .saturating_add(60)
}

/// Compiling an element or a member of a program that arrives at run time, or of
/// a helper that it needs, in the metered model: 0.02 fuel.
pub const COMPILE_ELEMENT: i64 = 20_000;
/// Compiling a UTF-16 unit of its texts: 0.001 fuel.
pub const COMPILE_UNIT: i64 = 1_000;

/// Bytes of two texts that are compared, and of a name that is looked up, for
/// nothing beyond the price of the operation.
pub const SHORT_TEXT: usize = 256;
/// Bytes at a time that longer texts are compared in, each piece paid before
/// it is looked at.
pub const COMPARED_PIECE: usize = 4_096;

/// The units that comparing a further piece of two texts counts for.
#[must_use]
pub const fn compared_units(bytes: usize) -> usize {
    bytes / 16
}

/// The units that a text of so many bytes counts for when `n` texts are sorted,
/// beyond being read once.
#[must_use]
pub const fn sorted_units(n: usize, bytes: usize) -> usize {
    if n < 2 || bytes <= SHORT_TEXT {
        return 0;
    }
    compared_units(bytes).saturating_mul((n - 1).ilog2() as usize + 1)
}

/// The units that taking a text beyond ASCII apart into its units counts for,
/// beyond the reading of it.
#[must_use]
pub const fn taken_apart(units: usize) -> usize {
    units.saturating_mul(5)
}

/// The units that normalizing a text beyond ASCII counts for, beyond the reading of it, where
/// what it gives has so many: some characters become many, which are sorted.
#[must_use]
pub const fn normalized_units(units: usize, given: usize) -> usize {
    let more = given.saturating_sub(units);
    units
        .saturating_mul(8)
        .saturating_add(more.saturating_mul(2))
}

/// The units that looking for a text in one of so many units beyond ASCII counts for, beyond
/// the reading of it: `halves` where the text that is looked for begins or ends with half of a
/// surrogate pair.
#[must_use]
pub const fn searched_units(units: usize, halves: bool) -> usize {
    if halves { taken_apart(units) } else { units }
}

/// Holes of a template that its other prices pay for.
pub const FEW_HOLES: usize = 32;
/// The elements that each further hole counts for.
pub const HOLE: usize = 4;

/// Digits of a number that are found without long arithmetic.
pub const FEW_DIGITS: usize = 17;
/// Digits of a number in another base than ten that are found without it.
pub const FEW_RADIX_DIGITS: usize = 64;
/// The text of a number with more digits.
pub const MANY_DIGITS: i64 = 50_000;

/// The units that looking up a name of so many bytes counts for.
#[must_use]
pub const fn name_units(bytes: usize) -> usize {
    if bytes > SHORT_TEXT { bytes / 4 } else { 0 }
}

/// The units that comparing two different texts for people counts for, beyond
/// the reading of both: three times as many if one is beyond ASCII.
#[must_use]
pub const fn collated_units(units: usize, ascii: bool) -> usize {
    units.saturating_mul(if ascii { 15 } else { 45 })
}

/// A text, array, set, object or date that is copied between a program and its
/// host, besides what is in it.
pub const CROSSING_VALUE: i64 = 12 * ELEMENT;
/// An element of an array or set that is copied between them.
pub const CROSSING_ELEMENT: i64 = 10 * ELEMENT;
/// A member of an object that is copied between them.
pub const CROSSING_MEMBER: i64 = 48 * ELEMENT;
/// What of the copy of its result a run does not pay for.
pub const CROSSING_RESULT: i64 = MICRO;

/// What copying a text of so many units between a program and its host costs.
#[must_use]
pub const fn crossing_text(units: usize) -> i64 {
    times(units, UNIT).saturating_add(CROSSING_VALUE)
}

/// What copying an array or set costs, beyond the copies of its elements.
#[must_use]
pub const fn crossing_list(elements: usize) -> i64 {
    times(elements, CROSSING_ELEMENT).saturating_add(CROSSING_VALUE)
}

/// What copying an object costs, beyond the copies of its members' values and
/// its names by [`name_units`].
#[must_use]
pub const fn crossing_object(members: usize) -> i64 {
    times(members, CROSSING_MEMBER).saturating_add(CROSSING_VALUE)
}

/// A price so many times.
const fn times(n: usize, price: i64) -> i64 {
    (n as i64).saturating_mul(price)
}

/// What the text of a number, a date or the like counts for beyond its units
/// where it is made for an element of an array or a value in JSON text.
#[must_use]
pub const fn formatted_units(units: usize) -> usize {
    2 * units
}

/// The elements that sorting so many counts for beyond [`Formula::Sort`] where
/// a function of the program compares.
#[must_use]
pub const fn comparator_steps(n: usize) -> usize {
    if n < 2 {
        return 0;
    }
    let steps = n.saturating_mul((n - 1).ilog2() as usize + 1);
    steps.saturating_mul(4 * SORT_STEP as usize)
}

/// The elements that copying an array, set, object or date within a run counts
/// for, for each that is not shared with the original.
#[must_use]
pub const fn copied(len: usize) -> usize {
    len.saturating_add(8).saturating_mul(4)
}

/// The elements that an array of so many elements counts for in JSON text.
#[must_use]
pub const fn json_list(elements: usize) -> usize {
    elements.saturating_mul(2).saturating_add(2)
}

/// The elements that an object of so many members counts for in JSON text.
#[must_use]
pub const fn json_object(members: usize) -> usize {
    members.saturating_mul(16).saturating_add(2)
}

/// The elements that an entry of the array counts for that `JSON.stringify`
/// gets as its second argument, when it is read.
pub const JSON_LISTED: usize = 8;
/// The elements that a value counts for that a function replaces in JSON text.
pub const JSON_REPLACED: usize = 24;
/// The elements that an array or object counts for that JSON text is read to,
/// besides its units.
pub const PARSED_CONTAINER: usize = 4;

/// Which prices a run pays (D18).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum CostModel {
    /// Static prices plus proportional ones; the default.
    #[default]
    Metered,
    /// The references' table exactly; hard size caps stand in for proportional
    /// prices.
    Flat,
}

/// The nodes that a literal array or object of a program counts for in the
/// metered model, besides those in it.
#[must_use]
pub const fn data_nodes(is_object: bool, len: usize) -> usize {
    let each = if is_object { 4 } else { 1 };
    len.saturating_mul(each).saturating_add(1)
}

/// The nodes that the members of an object expression count for in the metered
/// model, besides those of their values.
#[must_use]
pub const fn object_nodes(members: usize) -> usize {
    members.saturating_mul(2)
}

/// The price of an expression node.
pub const fn node(model: CostModel) -> i64 {
    match model {
        CostModel::Metered => NODE_METERED,
        CostModel::Flat => NODE,
    }
}

/// The price of a turn of `while`.
pub const fn loop_turn(model: CostModel) -> i64 {
    work(LOOP_TURN, model)
}

/// What work of the machine alone costs whose price in the flat model is this.
pub const fn work(flat: i64, model: CostModel) -> i64 {
    match model {
        CostModel::Metered if flat > 0 => (flat - 1) / WORK_SHARE + 1,
        _ => flat,
    }
}

/// How large the operands and results of an operation are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Sizes {
    /// UTF-16 units read.
    pub in_units: u64,
    /// Array elements or object keys read.
    pub in_elements: u64,
    /// UTF-16 units written.
    pub out_units: u64,
    /// Array elements or object keys written.
    pub out_elements: u64,
}

impl Sizes {
    /// Only units read.
    pub fn units(n: usize) -> Sizes {
        Sizes {
            in_units: n as u64,
            ..Sizes::default()
        }
    }

    /// Only elements read.
    pub fn elements(n: usize) -> Sizes {
        Sizes {
            in_elements: n as u64,
            ..Sizes::default()
        }
    }

    /// With units written.
    pub fn out_units(self, n: usize) -> Sizes {
        Sizes {
            out_units: n as u64,
            ..self
        }
    }

    /// With elements written.
    pub fn out_elements(self, n: usize) -> Sizes {
        Sizes {
            out_elements: n as u64,
            ..self
        }
    }

    /// With units read.
    pub fn in_units(self, n: usize) -> Sizes {
        Sizes {
            in_units: n as u64,
            ..self
        }
    }
}

/// The proportional price of an operation in the metered model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Work does not grow with the operands.
    Free,
    /// The sizes at [`UNIT`] and [`ELEMENT`], each so many times.
    Linear {
        /// How many times what is read is charged.
        read: i64,
        /// How many times what is written is charged.
        written: i64,
    },
    /// Units and elements read, each as so many elements; what is written, once:
    /// for what makes keys or elements of everything it reads.
    Keys(i64),
    /// `n * ceil(log2 n)` elements [`SORT_STEP`] times, plus the units compared
    /// once.
    Sort,
}

/// How many elements a step of a sort is charged as.
pub const SORT_STEP: i64 = 8;

/// Charges what is read.
pub const READ: Formula = read(1);
/// Charges what is written.
pub const WRITTEN: Formula = Formula::Linear {
    read: 0,
    written: 1,
};
/// Charges both.
pub const BOTH: Formula = both(1);
/// What `split` charges: its pieces are often single units.
pub const SPLIT: Formula = both(5);
/// What `join` charges.
pub const JOIN: Formula = both(2);
/// What making an object of members that are only known then charges for each:
/// their names are looked up, and noted if they are new.
pub const MEMBERS: Formula = read(50);
/// What making text of an array charges, besides the text.
pub const LIST_TEXT: Formula = read(8);
/// What a line of `console` charges: numbers and dates are short to read and long to write.
pub const LINE: Formula = read(8);
/// What reading JSON charges.
pub const PARSE: Formula = both(4);
/// What writing JSON charges.
pub const STRINGIFY: Formula = both(1);
/// What digesting text charges.
pub const DIGEST: Formula = read(2);
/// What reading XML charges: every four units may be an element, and what is not
/// well-formed gives no answer that pays.
pub const XML: Formula = read(8);
/// What reading a number or a date from text charges.
pub const NUMERAL: Formula = read(2);
/// Charges nothing.
pub const FREE: Formula = Formula::Free;

/// Charges what is read, so many times.
pub const fn read(times: i64) -> Formula {
    Formula::Linear {
        read: times,
        written: 0,
    }
}

/// Charges what is read, so many times, and what is written once.
pub const fn both(times: i64) -> Formula {
    Formula::Linear {
        read: times,
        written: 1,
    }
}

impl Formula {
    /// Whether it charges what is read by its size.
    pub fn reads(self) -> bool {
        matches!(self, Formula::Linear { read: 1.., .. } | Formula::Keys(_))
    }

    /// Whether it charges what is written.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Formula::Linear { written: 1.., .. } | Formula::Keys(_)
        )
    }

    /// The price in micro-units, saturating.
    pub fn price(self, s: Sizes) -> i64 {
        let sum = |units: u64, elements: u64| {
            let units = i64::try_from(units)
                .unwrap_or(i64::MAX)
                .saturating_mul(UNIT);
            let elements = i64::try_from(elements)
                .unwrap_or(i64::MAX)
                .saturating_mul(ELEMENT);
            units.saturating_add(elements)
        };
        match self {
            Formula::Free => 0,
            Formula::Linear { read, written } => {
                let r = sum(s.in_units, s.in_elements).saturating_mul(read);
                let w = sum(s.out_units, s.out_elements).saturating_mul(written);
                r.saturating_add(w)
            }
            Formula::Keys(times) => {
                let parts = s.in_units.saturating_add(s.in_elements);
                let r = sum(0, parts).saturating_mul(times);
                r.saturating_add(sum(s.out_units, s.out_elements))
            }
            Formula::Sort => {
                let n = s.in_elements;
                let log = if n < 2 {
                    0
                } else {
                    u64::from((n - 1).ilog2() + 1)
                };
                let steps = n.saturating_mul(log).saturating_mul(SORT_STEP as u64);
                sum(s.in_units, steps)
            }
        }
    }

    /// The formula as `docs/costs.md` shows it, in units of fuel.
    pub fn describe(self) -> String {
        let fuel = |micro: i64| Fuel::from_micro(micro).to_string();
        let (unit, element) = (fuel(UNIT), fuel(ELEMENT));
        let (read, written) = match self {
            Formula::Free => return "-".to_owned(),
            Formula::Sort => {
                let step = fuel(SORT_STEP * ELEMENT);
                return format!("{step} * n * ceil(log2 n) + {unit} * units of the texts compared");
            }
            Formula::Keys(times) => {
                return format!(
                    "{times} * {element} * (units read + elements read) + {}",
                    WRITTEN.describe()
                );
            }
            Formula::Linear { read, written } => (read, written),
        };
        let part = |what: &str, times: i64| {
            let sum = format!("{unit} * units {what} + {element} * elements {what}");
            match times {
                0 => None,
                1 => Some(sum),
                n => Some(format!("{n} * ({sum})")),
            }
        };
        let parts = [part("read", read), part("written", written)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(" + ")
    }

    /// The formula in the tables of `docs/costs.md`: R for reading, W for
    /// writing, with the number of times where that is not one.
    pub fn code(self) -> String {
        match self {
            Formula::Free => "-".to_owned(),
            Formula::Sort => "S".to_owned(),
            Formula::Keys(times) => format!("{times}K"),
            Formula::Linear { read, written } => {
                let part = |letter: char, times: i64| match times {
                    0 => String::new(),
                    1 => letter.to_string(),
                    n => format!("{n}{letter}"),
                };
                format!("{}{}", part('R', read), part('W', written))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_pays_n_log_n() {
        let price = |n| Formula::Sort.price(Sizes::elements(n));
        assert_eq!(price(0), 0);
        assert_eq!(price(1), 0);
        assert_eq!(price(2), 2 * SORT_STEP * ELEMENT);
        assert_eq!(price(5), 5 * 3 * SORT_STEP * ELEMENT);
        assert_eq!(price(1024), 1024 * 10 * SORT_STEP * ELEMENT);
    }

    #[test]
    fn prices_saturate() {
        let s = Sizes {
            in_units: u64::MAX,
            ..Sizes::default()
        };
        assert_eq!(BOTH.price(s), i64::MAX);
    }
}
