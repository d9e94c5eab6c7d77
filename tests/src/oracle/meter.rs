//! Fuel of the oracle (decisions D17, D18): integer micro-units, checked after
//! every charge.
//!
//! Each run has a thread, so its remaining fuel is a thread-local: nested conversions of values
//! pay for themselves with [`pay`].

use super::value::{Fail, OVal, Res};
use a99_core::builtins::Reads;
use a99_core::costs::{
    COMPARED_PIECE, CROSSING_RESULT, CostModel, Formula, READ, SHORT_TEXT, Sizes, WRITTEN,
    compared_units, crossing_list, crossing_object, crossing_text, formatted_units, name_units,
    sorted_units,
};
use a99_core::error::ErrorCode;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Size caps of one operation in the flat model (decision D18).
const FLAT_MAX_UNITS: u64 = 32 << 20;
const FLAT_MAX_ELEMENTS: u64 = 8 << 20;

/// Deepest nesting of a value that is read as a whole.
const MAX_DEPTH: usize = 512;

thread_local! {
    static FUEL: Cell<i64> = const { Cell::new(i64::MAX) };
    static MODEL: Cell<CostModel> = const { Cell::new(CostModel::Flat) };
    static FORMATTED: Cell<usize> = const { Cell::new(0) };
    static PAYS: Cell<Pays> = const { Cell::new(Pays::Now) };
    static LATER: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

/// Permission to spend the fuel of this thread's run.
pub(super) struct Meter(());

impl Meter {
    /// Starts the run of this thread.
    pub(super) fn start(fuel: i64, model: CostModel) -> Meter {
        FUEL.set(fuel);
        PAYS.set(Pays::Now);
        LATER.take();
        FORMATTED.set(0);
        MODEL.set(model);
        Meter(())
    }

    /// Micro-units left, negative after an overdraft.
    pub(super) fn fuel(&self) -> i64 {
        FUEL.get()
    }

    /// Cost model of the run.
    pub(super) fn model(&self) -> CostModel {
        MODEL.get()
    }

    /// Takes `micro`; fails when nothing is left.
    pub(super) fn take(&mut self, micro: i64) -> Res<()> {
        take(micro)
    }

    /// As [`pay`].
    pub(super) fn charge(&mut self, formula: Formula, sizes: Sizes) -> Res<()> {
        pay(formula, sizes)
    }

    /// Pays for the values that an operation reads.
    pub(super) fn reads(
        &mut self,
        formula: Formula,
        what: Reads,
        receiver: Option<&OVal>,
        args: &[OVal],
    ) -> Res<()> {
        let mut sizes = Sizes::default();
        let mut add = |value: &OVal| {
            let (units, elements) = size(value);
            sizes.in_units += units;
            sizes.in_elements += elements;
        };
        receiver.into_iter().for_each(&mut add);
        match what {
            Reads::First => args.iter().take(1).for_each(add),
            Reads::All => args.iter().for_each(add),
            Reads::Count => sizes = Sizes::elements(args.len()),
            Reads::Deep => return args.iter().try_for_each(|arg| pay_deep(formula, arg, 0)),
        }
        if formula.reads() {
            pay(formula, sizes)
        } else {
            Ok(())
        }
    }

    /// Pays for the result of an operation.
    pub(super) fn writes(&mut self, formula: Formula, result: &OVal) -> Res<()> {
        match formula {
            _ if formula.writes() => {
                let (units, elements) = size(result);
                let sizes = Sizes::default();
                pay(
                    WRITTEN,
                    sizes
                        .out_units(units as usize)
                        .out_elements(elements as usize),
                )
            }
            _ => Ok(()),
        }
    }
}

/// When prices are paid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pays {
    Now,
    /// They were paid earlier.
    Never,
    /// They are recorded for [`later`].
    Later,
}

pub(super) fn pays(when: Pays) {
    PAYS.set(when);
}

/// Takes the prices recorded for later.
pub(super) fn later() -> Vec<i64> {
    LATER.take()
}

pub(super) fn take(micro: i64) -> Res<()> {
    match PAYS.get() {
        Pays::Now => take_used(micro),
        Pays::Never => Ok(()),
        Pays::Later => {
            LATER.with_borrow_mut(|later| later.push(micro));
            Ok(())
        }
    }
}

/// Takes the host's usage on behalf of the run, which is never deferred.
pub(super) fn take_used(micro: i64) -> Res<()> {
    FUEL.set(FUEL.get().saturating_sub(micro));
    if FUEL.get() <= 0 {
        return Err(Fail::coded(ErrorCode::OutOfFuel, "Out of Fuel"));
    }
    Ok(())
}

/// Takes a price of the metered model.
pub(super) fn pay_metered(micro: i64) -> Res<()> {
    match MODEL.get() {
        CostModel::Metered => take(micro),
        CostModel::Flat => Ok(()),
    }
}

/// Like [`pay_metered`], for work that cannot fail inside: [`settle`] afterwards checks that
/// the fuel sufficed.
pub(super) fn owe(micro: i64) {
    match (MODEL.get(), PAYS.get()) {
        (CostModel::Flat, _) | (_, Pays::Never) => {}
        (_, Pays::Now) => FUEL.set(FUEL.get().saturating_sub(micro)),
        (_, Pays::Later) => LATER.with_borrow_mut(|later| later.push(micro)),
    }
}

/// Records the units of a formatted number or the like, which are paid with the surrounding
/// text.
pub(super) fn formatted(units: usize) {
    FORMATTED.set(FORMATTED.get() + formatted_units(units));
}

/// Forgets the record for a text that could not be made.
pub(super) fn unformatted<T>(made: Res<T>) -> Res<T> {
    if made.is_err() {
        FORMATTED.set(0);
    }
    made
}

/// Fails if more was owed than was left.
pub(super) fn settle() -> Res<()> {
    match MODEL.get() {
        CostModel::Metered => take(0),
        CostModel::Flat => Ok(()),
    }
}

/// Owes for comparing two texts: piece by piece up to the first difference. For equality alone,
/// texts of different lengths are not read.
pub(super) fn owe_compare(a: &[u16], b: &[u16], equality: bool) {
    if equality && a.len() != b.len() {
        return;
    }
    let (a, b) = (super::value::to_wtf8(a), super::value::to_wtf8(b));
    if equality && a.len() != b.len() {
        return;
    }
    let n = a.len().min(b.len());
    let mut at = 0;
    while at < n {
        let end = n.min(if at == 0 {
            SHORT_TEXT
        } else {
            at + COMPARED_PIECE
        });
        if at > 0 {
            owe(READ.price(Sizes::units(compared_units(end - at))));
        }
        if a[at..end] != b[at..end] {
            return;
        }
        at = end;
    }
}

/// Owes for sorting long texts, above the basic price of sorting.
pub(super) fn owe_sort<'a>(n: usize, texts: impl Iterator<Item = &'a [u16]>) {
    for text in texts {
        let bytes = super::value::to_wtf8(text).len();
        owe(READ.price(Sizes::units(sorted_units(n, bytes))));
    }
}

/// Takes the price of looking up a computed name.
pub(super) fn pay_name(name: &[u16]) -> Res<()> {
    let bytes = super::value::to_wtf8(name).len();
    match READ.price(Sizes::units(name_units(bytes))) {
        0 => Ok(()),
        price => pay_metered(price),
    }
}

/// Takes the proportional price of an operation in the metered model; checks the caps in the
/// flat one.
pub(super) fn pay(formula: Formula, mut sizes: Sizes) -> Res<()> {
    if formula == WRITTEN {
        let formatted = FORMATTED.take();
        if MODEL.get() == CostModel::Metered {
            sizes.out_units += formatted as u64;
        }
    }
    match MODEL.get() {
        CostModel::Metered => match formula.price(sizes) {
            0 => Ok(()),
            price => take(price),
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

/// Pays for reading a whole value with its contents.
pub(super) fn pay_deep(formula: Formula, value: &OVal, depth: usize) -> Res<()> {
    let (units, elements) = size(value);
    if matches!(value, OVal::Arr(_) | OVal::Set(_) | OVal::Obj(_)) && depth >= MAX_DEPTH {
        return Err(Fail::coded(
            ErrorCode::Boundary,
            format!("Capability boundary rejected: value exceeds depth limit {MAX_DEPTH}"),
        ));
    }
    if formula.reads() {
        pay(
            formula,
            Sizes::elements(elements as usize).in_units(units as usize),
        )?;
    }
    match value {
        OVal::Arr(items) | OVal::Set(items) => {
            let items = items.borrow().clone();
            items
                .iter()
                .try_for_each(|v| pay_deep(formula, v, depth + 1))
        }
        OVal::Obj(obj) => obj
            .values()
            .try_for_each(|v| pay_deep(formula, &v, depth + 1)),
        _ => Ok(()),
    }
}

/// Pays for the texts among values of a set, or in a set's lookup.
pub(super) fn pay_texts(values: &[OVal]) -> Res<()> {
    let units = values.iter().map(|v| match v {
        OVal::Str(s) => s.len(),
        _ => 0,
    });
    pay(READ, Sizes::units(units.sum()))
}

/// Pays for comparing a text with values: those of the same length.
pub(super) fn pay_search(values: &[OVal], wanted: &OVal) -> Res<()> {
    let OVal::Str(wanted) = wanted else {
        return Ok(());
    };
    let alike = values
        .iter()
        .filter(|v| matches!(v, OVal::Str(s) if s.len() == wanted.len()));
    pay(READ, Sizes::units(alike.count() * wanted.len()))
}

/// Pays for a copy between the program and its host.
pub(super) fn pay_crossing(value: &OVal) -> Res<()> {
    crossing(value, &mut 0, &mut Vec::new())
}

/// Like [`pay_crossing`], for the result of the run, part of which is free.
pub(super) fn pay_result(value: &OVal) -> Res<()> {
    crossing(value, &mut { CROSSING_RESULT }, &mut Vec::new())
}

/// `open` are the containers around the value: copying a cyclic one is refused.
fn crossing(value: &OVal, free: &mut i64, open: &mut Vec<usize>) -> Res<()> {
    let mut pay = |price: i64| {
        let part = price.min(*free);
        *free -= part;
        match price - part {
            0 => Ok(()),
            rest => pay_metered(rest),
        }
    };
    let at = match value {
        OVal::Str(s) => return pay(crossing_text(s.len())),
        OVal::Date(ms) => {
            let text = super::dates::iso(**ms);
            return text.map_or(Ok(()), |text| pay(crossing_text(text.len())));
        }
        OVal::Arr(r) | OVal::Set(r) => Rc::as_ptr(r) as usize,
        OVal::Obj(r) => Rc::as_ptr(r) as usize,
        _ => return Ok(()),
    };
    if open.contains(&at) || open.len() >= MAX_DEPTH {
        return Ok(());
    }
    open.push(at);
    let done = match value {
        OVal::Arr(r) | OVal::Set(r) => {
            let items = r.borrow().clone();
            pay(crossing_list(items.len())).and_then(|()| {
                let mut items = items.iter();
                items.try_for_each(|item| crossing(item, free, open))
            })
        }
        OVal::Obj(r) => pay(crossing_object(r.len())).and_then(|()| {
            r.iter().try_for_each(|(key, item)| {
                let bytes = super::value::to_wtf8(&key).len();
                pay_metered(READ.price(Sizes::units(name_units(bytes))))?;
                crossing(&item, free, open)
            })
        }),
        _ => Ok(()),
    };
    open.pop();
    done
}

/// Units and elements of one operand.
pub(super) fn size(value: &OVal) -> (u64, u64) {
    match value {
        OVal::Str(s) => (s.len() as u64, 0),
        OVal::Arr(items) | OVal::Set(items) => (0, items.borrow().len() as u64),
        OVal::Obj(obj) => (0, obj.len() as u64),
        _ => (0, 0),
    }
}

/// The sizes of an operation with these operands and this result.
pub(super) fn sizes<'a>(read: impl IntoIterator<Item = &'a OVal>, written: &OVal) -> Sizes {
    let mut s = Sizes::default();
    for value in read {
        let (units, elements) = size(value);
        s.in_units += units;
        s.in_elements += elements;
    }
    (s.out_units, s.out_elements) = size(written);
    s
}
