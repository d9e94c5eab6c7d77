//! Prices of all operations except single atoms.
//!
//! Fuel is counted in micro-units (D17). Every operation has a static price. In the metered model
//! (D18), an operation whose work grows with its operands also pays a proportional part, **before**
//! the work, from the sizes that a [`Formula`] names. `docs/costs.md` is generated from these
//! tables.

use crate::fuel::Fuel;

/// Micro-units in one unit of fuel.
pub const MICRO: i64 = 1_000_000;
/// Version of the prices in this crate: of the charges and their amounts. Precompiled programs are
/// identified by it. The test `prices` of `tests/tests/it` says when it must rise.
pub const PRICE_VERSION: u32 = 5;
/// Upper bound on the microseconds of CPU time that a unit of fuel buys in the metered model, on
/// one core of an ordinary machine. `cargo xtask rates` measures it.
pub const MICROSECONDS_A_UNIT: u32 = 50;
/// Price of an expression node with a `$expr` tag (language section 3.1) and of a nested node in a
/// literal (D13), in the flat model.
pub const NODE: i64 = 10_000;
/// Price of such a node in the metered model; a node takes nanoseconds.
pub const NODE_METERED: i64 = 1_000;
/// Price of one turn of `while`, charged before its body (language section 4.2), in the flat model.
pub const LOOP_TURN: i64 = 100_000;
/// Divisor of the flat price for steps that are work of the machine alone, in the metered model.
/// Turns of loops are such work.
pub const WORK_SHARE: i64 = 20;
/// Price of storing a value after a `cache` miss (language section 4.9).
pub const CACHE_STORE: i64 = 5 * MICRO;
/// Proportional price of a UTF-16 unit: 0.0001 fuel.
pub const UNIT: i64 = 100;
/// Proportional price of an array element or object key: 0.0004 fuel.
pub const ELEMENT: i64 = 400;
/// Price of a nanosecond of garbage search in a full heap, unless allocations since the last search
/// paid for it.
pub const COMPACTION: i64 = 40;
/// Price of checking a value against a part of a schema.
pub const SCHEMA_NODE: i64 = 5_000;
/// Price of reading a part of a schema while a program runs.
pub const SCHEMA_READ: i64 = 30_000;
/// Elements charged for reading an `enum` value at run time.
pub const SCHEMA_ALLOWED: usize = 12;
/// Elements charged for reading a `required` name at run time.
pub const SCHEMA_REQUIRED: usize = 4;
/// Price of compiling a position of a regular expression. Positions count with repetitions
/// expanded.
pub const REGEX_POSITION: i64 = 2_000;
/// Price of matching a position of a regular expression against a UTF-16 unit of a text.
pub const REGEX_STEP: i64 = 200;
/// Ways that a position counts for when it meets a unit, in a regular expression that captures
/// groups. Each group adds one way.
pub const REGEX_WAYS: u64 = 8;
/// Ways of a step of backtracking, in a regular expression that looks around or refers back to
/// groups. Ignoring case doubles them.
pub const REGEX_BACK: u64 = 8;
/// Positions that a `\p{...}` counts for when a regular expression is compiled.
pub const REGEX_PROPERTY: u64 = 100;
/// Price of a way.
pub const REGEX_WAY: i64 = 65;
/// Elements charged for a part that a regular expression splits off or puts into a replacement.
pub const REGEX_PART: usize = 8;
/// Price of a second that a command runs on a computer of the `shell` capability, in both models.
/// The default budget buys ten times its default time limit (10 ms for a unit, D22).
pub const COMMAND_SECOND: i64 = 10 * MICRO;
/// Price of a byte that goes to such a computer or comes from it, in both models; the same as a
/// [`UNIT`] of text.
pub const COMMAND_BYTE: i64 = UNIT;
/// Price of a document byte that a store scans to answer a query, in both models. Each document
/// counts 256 bytes more.
pub const STORE_BYTE: i64 = 200;

/// Price of matching a regular expression of `positions` against `units` UTF-16 units, on top of
/// reading pattern and text; in the metered model.
#[must_use]
pub fn regex_price(positions: u64, units: u64) -> i64 {
    let steps = i64::try_from(positions.saturating_mul(units)).unwrap_or(i64::MAX);
    let positions = i64::try_from(positions).unwrap_or(i64::MAX);
    let matching = steps.saturating_mul(REGEX_STEP);
    positions
        .saturating_mul(REGEX_POSITION)
        .saturating_add(matching)
}

/// Ways charged for each unit by a regular expression that captures groups. Ignoring case doubles
/// them, and so does a repeated part that may match the empty text.
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

/// Price of `weight` ways, in the metered model.
#[must_use]
pub fn regex_ways(weight: u64) -> i64 {
    i64::try_from(weight)
        .unwrap_or(i64::MAX)
        .saturating_mul(REGEX_WAY)
}

/// Elements charged for a match value with this many groups and names.
#[must_use]
pub const fn regex_found(groups: usize, names: usize) -> usize {
    groups
        .saturating_mul(8)
        .saturating_add(names.saturating_mul(16))
        .saturating_add(60)
}

/// Price of compiling an element or member of a program that arrives at run time, or of a helper
/// that it needs, in the metered model: 0.02 fuel.
pub const COMPILE_ELEMENT: i64 = 20_000;
/// Price of compiling a UTF-16 unit of such a program's texts: 0.001 fuel.
pub const COMPILE_UNIT: i64 = 1_000;

/// Bytes of two compared texts, or of a looked-up name, that the price of the operation covers.
pub const SHORT_TEXT: usize = 256;
/// Piece size in bytes for comparing longer texts. Each piece is paid before it is compared.
pub const COMPARED_PIECE: usize = 4_096;

/// Units charged for comparing a further piece of two texts.
#[must_use]
pub const fn compared_units(bytes: usize) -> usize {
    bytes / 16
}

/// Units charged for a text of `bytes` when `n` texts are sorted, in addition to reading it once.
#[must_use]
pub const fn sorted_units(n: usize, bytes: usize) -> usize {
    if n < 2 || bytes <= SHORT_TEXT {
        return 0;
    }
    compared_units(bytes).saturating_mul((n - 1).ilog2() as usize + 1)
}

/// Units charged for splitting a non-ASCII text into its units, in addition to reading it.
#[must_use]
pub const fn taken_apart(units: usize) -> usize {
    units.saturating_mul(5)
}

/// Units charged for normalizing a non-ASCII text into one of `given` units, in addition to reading
/// it. Some characters expand to many, which are sorted.
#[must_use]
pub const fn normalized_units(units: usize, given: usize) -> usize {
    let more = given.saturating_sub(units);
    units
        .saturating_mul(8)
        .saturating_add(more.saturating_mul(2))
}

/// Units charged for searching a non-ASCII text, in addition to reading it. `halves` is set if the
/// searched-for text begins or ends with half of a surrogate pair.
#[must_use]
pub const fn searched_units(units: usize, halves: bool) -> usize {
    if halves { taken_apart(units) } else { units }
}

/// Holes that a template's other prices cover.
pub const FEW_HOLES: usize = 32;
/// Elements charged for each further hole.
pub const HOLE: usize = 4;

/// Digits of a number that need no long arithmetic.
pub const FEW_DIGITS: usize = 17;
/// Digits of a number in a base other than ten that need no long arithmetic.
pub const FEW_RADIX_DIGITS: usize = 64;
/// Price of formatting a number with more digits.
pub const MANY_DIGITS: i64 = 50_000;
/// Price of a date as text for people: its options, and the offset of its time zone.
pub const DATE_TEXT: i64 = 100_000;

/// Units charged for looking up a name of `bytes`.
#[must_use]
pub const fn name_units(bytes: usize) -> usize {
    if bytes > SHORT_TEXT { bytes / 4 } else { 0 }
}

/// Units charged for a locale comparison of two different texts, in addition to reading both: three
/// times as many if one is non-ASCII.
#[must_use]
pub const fn collated_units(units: usize, ascii: bool) -> usize {
    units.saturating_mul(if ascii { 15 } else { 45 })
}

/// Price of copying a text, array, set, object or date between a program and its host, without its
/// content.
pub const CROSSING_VALUE: i64 = 12 * ELEMENT;
/// Price of copying an element of an array or set between a program and its host.
pub const CROSSING_ELEMENT: i64 = 10 * ELEMENT;
/// Price of copying a member of an object between a program and its host.
pub const CROSSING_MEMBER: i64 = 48 * ELEMENT;
/// Free part of the price of copying a run's result to the host.
pub const CROSSING_RESULT: i64 = MICRO;

/// Price of copying a text of `units` between a program and its host.
#[must_use]
pub const fn crossing_text(units: usize) -> i64 {
    times(units, UNIT).saturating_add(CROSSING_VALUE)
}

/// Price of copying an array or set, without the copies of its elements.
#[must_use]
pub const fn crossing_list(elements: usize) -> i64 {
    times(elements, CROSSING_ELEMENT).saturating_add(CROSSING_VALUE)
}

/// Price of copying an object, without the copies of its members' values and without its names,
/// which pay by [`name_units`].
#[must_use]
pub const fn crossing_object(members: usize) -> i64 {
    times(members, CROSSING_MEMBER).saturating_add(CROSSING_VALUE)
}

/// `n` times a price, saturating.
const fn times(n: usize, price: i64) -> i64 {
    (n as i64).saturating_mul(price)
}

/// Units charged for formatting a number, date or similar value for an array element or JSON text,
/// in addition to its units.
#[must_use]
pub const fn formatted_units(units: usize) -> usize {
    2 * units
}

/// Elements charged for sorting `n` elements with a comparator of the program, in addition to
/// [`Formula::Sort`].
#[must_use]
pub const fn comparator_steps(n: usize) -> usize {
    if n < 2 {
        return 0;
    }
    let steps = n.saturating_mul((n - 1).ilog2() as usize + 1);
    steps.saturating_mul(4 * SORT_STEP as usize)
}

/// Elements charged for copying an array, set, object or date within a run, for each that is not
/// shared with the original.
#[must_use]
pub const fn copied(len: usize) -> usize {
    len.saturating_add(8).saturating_mul(4)
}

/// Elements charged for an array in JSON text.
#[must_use]
pub const fn json_list(elements: usize) -> usize {
    elements.saturating_mul(2).saturating_add(2)
}

/// Elements charged for an object in JSON text.
#[must_use]
pub const fn json_object(members: usize) -> usize {
    members.saturating_mul(16).saturating_add(2)
}

/// Elements charged for reading an entry of the array that `JSON.stringify` gets as its second
/// argument.
pub const JSON_LISTED: usize = 8;
/// Elements charged for a value that a replacer function replaces in JSON text.
pub const JSON_REPLACED: usize = 24;
/// Elements charged for an array or object parsed from JSON text, in addition to its units.
pub const PARSED_CONTAINER: usize = 4;

/// The price model of a run (D18).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum CostModel {
    /// Static prices plus proportional ones; the default.
    #[default]
    Metered,
    /// Exactly the references' table. Hard size caps replace proportional prices.
    Flat,
}

/// Nodes charged for a literal array or object in the metered model, without the nodes in it.
#[must_use]
pub const fn data_nodes(is_object: bool, len: usize) -> usize {
    let each = if is_object { 4 } else { 1 };
    len.saturating_mul(each).saturating_add(1)
}

/// Nodes charged for the members of an object expression in the metered model, without the nodes of
/// their values.
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

/// Price of work of the machine alone, from its price in the flat model.
pub const fn work(flat: i64, model: CostModel) -> i64 {
    match model {
        CostModel::Metered if flat > 0 => (flat - 1) / WORK_SHARE + 1,
        _ => flat,
    }
}

/// Sizes of the operands and results of an operation.
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
    /// Sizes of `n` units read.
    pub fn units(n: usize) -> Sizes {
        Sizes {
            in_units: n as u64,
            ..Sizes::default()
        }
    }

    /// Sizes of `n` elements read.
    pub fn elements(n: usize) -> Sizes {
        Sizes {
            in_elements: n as u64,
            ..Sizes::default()
        }
    }

    /// Sets the units written.
    pub fn out_units(self, n: usize) -> Sizes {
        Sizes {
            out_units: n as u64,
            ..self
        }
    }

    /// Sets the elements written.
    pub fn out_elements(self, n: usize) -> Sizes {
        Sizes {
            out_elements: n as u64,
            ..self
        }
    }

    /// Sets the units read.
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
    /// No proportional price: the work does not grow with the operands.
    Free,
    /// Sizes at [`UNIT`] and [`ELEMENT`], times a factor for each direction.
    Linear {
        /// Factor for the sizes read.
        read: i64,
        /// Factor for the sizes written.
        written: i64,
    },
    /// Each unit and element read counts as this many elements; sizes written count once. For
    /// operations that make keys or elements of everything they read.
    Keys(i64),
    /// `n * ceil(log2 n)` elements [`SORT_STEP`] times, plus the compared units once.
    Sort,
}

/// Elements charged for a step of a sort.
pub const SORT_STEP: i64 = 8;

/// Charges the sizes read.
pub const READ: Formula = read(1);
/// Charges the sizes written.
pub const WRITTEN: Formula = Formula::Linear {
    read: 0,
    written: 1,
};
/// Charges the sizes read and written.
pub const BOTH: Formula = both(1);
/// Price of `split`: its pieces are often single units.
pub const SPLIT: Formula = both(5);
/// Price of `join`.
pub const JOIN: Formula = both(2);
/// Price of building an object from members known only at run time: their names are looked up, and
/// interned if they are new.
pub const MEMBERS: Formula = read(50);
/// Price of converting an array to text, without the text.
pub const LIST_TEXT: Formula = read(8);
/// Price of a `console` line: numbers and dates are short to read and long to write.
pub const LINE: Formula = read(8);
/// Price of parsing JSON.
pub const PARSE: Formula = both(4);
/// Price of writing JSON.
pub const STRINGIFY: Formula = both(1);
/// Price of hashing text.
pub const DIGEST: Formula = read(2);
/// Price of parsing XML: every four units may be an element, and a text that is not well-formed
/// yields no answer to charge for.
pub const XML: Formula = read(8);
/// Price of parsing a number or a date.
pub const NUMERAL: Formula = read(2);
/// Charges nothing.
pub const FREE: Formula = Formula::Free;

/// Charges the sizes read, `times` times.
pub const fn read(times: i64) -> Formula {
    Formula::Linear {
        read: times,
        written: 0,
    }
}

/// Charges the sizes read `times` times, and the sizes written once.
pub const fn both(times: i64) -> Formula {
    Formula::Linear {
        read: times,
        written: 1,
    }
}

impl Formula {
    /// True if the formula charges the sizes read.
    pub fn reads(self) -> bool {
        matches!(self, Formula::Linear { read: 1.., .. } | Formula::Keys(_))
    }

    /// True if the formula charges the sizes written.
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

    /// The formula in the tables of `docs/costs.md`: R for reading, W for writing, with the factor
    /// if it is not 1.
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
