//! Formulas: sums of products of sizes, with coefficients that are never negative.

use std::cell::Cell;
use std::collections::BTreeMap;

/// Terms that one analysis may write: they are its time and memory.
const MAX_WRITTEN: usize = 2_000_000;

thread_local! {
    /// Terms that the analysis of this thread has written.
    static WRITTEN: Cell<usize> = const { Cell::new(0) };
}

/// Counts terms and kinds that are written; false if there were too many. The formulas are then
/// too low, and the analysis gives up.
pub(crate) fn may_write(terms: usize) -> bool {
    WRITTEN.set(WRITTEN.get().saturating_add(terms));
    !is_exhausted()
}

/// Whether the analysis of this thread has written too many terms.
pub(crate) fn is_exhausted() -> bool {
    WRITTEN.get() > MAX_WRITTEN
}

/// Most terms of a formula. Beyond it, an analysis gives up.
const MAX_TERMS: usize = 400;

/// Most factors of a term.
const MAX_DEGREE: usize = 8;

/// A size that a formula names, of the value at a place of the inputs.
///
/// Each is 0 for values that do not have it, so that a formula holds for a value of any kind.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// 1 if the value is a text, a list, an object, a set or a date, else 0.
    Text,
    /// UTF-16 units of a text, counted as JSON writes them: escaped ones count as their escape.
    Chars,
    /// Elements of a list or members of an object.
    Len,
    /// The value as a number, if it is above 0.
    Value,
    /// The units of all texts and names inside of a list or object.
    Inner,
    /// The units of all numbers, booleans and nulls as text, the value itself included.
    Digits,
    /// The texts, the value itself included.
    Texts,
    /// The lists, objects, sets and dates, the value itself included.
    Objects,
    /// The elements of all lists.
    Elements,
    /// The members of all objects.
    Members,
    /// The units of the whole value as JSON, at least all of the others but `Value`.
    Json,
}

impl Measure {
    /// Its name in formulas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Text => "text",
            Measure::Chars => "chars",
            Measure::Len => "len",
            Measure::Value => "value",
            Measure::Inner => "inner",
            Measure::Digits => "digits",
            Measure::Texts => "texts",
            Measure::Objects => "objects",
            Measure::Elements => "elements",
            Measure::Members => "members",
            Measure::Json => "size",
        }
    }
}

/// A factor of a term.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Factor {
    /// A size of the value at a place.
    Size(Measure, u32),
    /// The logarithm to base 2, rounded up, of a formula of the analysis.
    Log(u32),
    /// The turns of a loop that has no bound.
    Turns(u32),
    /// The tokens that the host allows for a call.
    Tokens,
    /// An unknown of the analysis, which no result contains.
    Unknown(u32),
}

/// A formula.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Poly(pub(crate) BTreeMap<Vec<Factor>, f64>);

/// The formula has too many terms.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Poly {
    pub(crate) fn zero() -> Poly {
        Poly::default()
    }

    pub(crate) fn number(n: f64) -> Poly {
        Poly::term(Vec::new(), n)
    }

    pub(crate) fn of(factor: Factor) -> Poly {
        Poly::term(vec![factor], 1.0)
    }

    fn term(factors: Vec<Factor>, times: f64) -> Poly {
        let mut poly = Poly::zero();
        if times != 0.0 {
            poly.0.insert(factors, times);
        }
        poly
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that the formula is, if it names no size.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self.0.len() {
            0 => Some(0.0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    pub(crate) fn add(mut self, other: &Poly) -> Poly {
        if !may_write(other.0.len()) {
            return self;
        }
        for (factors, times) in &other.0 {
            *self.0.entry(factors.clone()).or_default() += times;
        }
        self
    }

    pub(crate) fn scale(mut self, by: f64) -> Poly {
        if by == 0.0 {
            return Poly::zero();
        }
        self.0.values_mut().for_each(|times| *times *= by);
        self
    }

    /// At least the larger one of both: the larger coefficient of each term.
    pub(crate) fn max(mut self, other: &Poly) -> Poly {
        if !may_write(other.0.len()) {
            return self;
        }
        for (factors, times) in &other.0 {
            let mine = self.0.entry(factors.clone()).or_default();
            *mine = mine.max(*times);
        }
        self
    }

    pub(crate) fn times(&self, other: &Poly) -> Result<Poly, TooLarge> {
        if !may_write(self.0.len().saturating_mul(other.0.len())) {
            return Err(TooLarge);
        }
        let mut product = Poly::zero();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut factors = [a.as_slice(), b].concat();
                factors.sort_unstable();
                // Of an indicator, which is 0 or 1, one is enough.
                factors.dedup_by(|a, b| a == b && matches!(a, Factor::Size(Measure::Text, _)));
                if factors.len() > MAX_DEGREE {
                    return Err(TooLarge);
                }
                *product.0.entry(factors).or_default() += x * y;
            }
        }
        product.checked()
    }

    pub(crate) fn checked(self) -> Result<Poly, TooLarge> {
        match self.0.len() > MAX_TERMS || !may_write(self.0.len()) {
            true => Err(TooLarge),
            false => Ok(self),
        }
    }

    pub(crate) fn has(&self, is: impl Fn(Factor) -> bool) -> bool {
        self.0.keys().flatten().any(|factor| is(*factor))
    }

    /// Splits the formula into the coefficient of a lone factor and the rest; `None` if the factor
    /// also stands in a product.
    pub(crate) fn without(mut self, factor: Factor) -> Option<(f64, Poly)> {
        let times = self.0.remove(&vec![factor]).unwrap_or(0.0);
        (!self.has(|other| other == factor)).then_some((times, self))
    }
}
