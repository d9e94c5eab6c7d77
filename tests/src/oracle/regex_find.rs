//! Finding by regular expressions, with groups (decision D72), by the matcher of `regex_run`.
//! The price of a search depends on the units that any attempt consumed, that of a pattern which
//! looks around or refers back on the steps (D125).

use super::meter::{pay, pay_metered};
use super::regex::{Flags, Groups, Node, points, read};
use super::regex_run::{Search, run};
use super::value::{Fail, OVal, Obj, Res, js};
use a99_core::costs::{
    READ, REGEX_POSITION, REGEX_PROPERTY, Sizes, UNIT, WRITTEN, regex_found, regex_ways,
    regex_weight, taken_apart,
};

const MAX_PATTERN: usize = 1_000;
const MAX_TEXT: usize = 1_000_000;
const MAX_WEIGHT: u64 = 160_000_000;
/// Units skipped and paid for at once.
const PASSED: usize = 4_096;

/// Start and end of the match and of its groups.
pub(super) type Places = Vec<Option<(usize, usize)>>;

/// Possible first units of a match.
struct Begin {
    ascii: [bool; 128],
    others: bool,
    /// Whether the units are unknown, because a group stands there again.
    unknown: bool,
}

impl Begin {
    fn has(&self, unit: u32) -> bool {
        let ascii = self.ascii.get(unit as usize);
        *ascii.unwrap_or(&self.others)
    }

    /// Adds the possible first units of a node; true if it can match the empty text.
    fn add(&mut self, node: &Node) -> bool {
        match node {
            Node::Unit(set) => {
                for unit in 0..128u32 {
                    self.ascii[unit as usize] |= set.has(unit);
                }
                self.others |= match set.unicode {
                    false => (128..=0xFFFF).any(|unit| set.lists(unit)),
                    // K and S are alike to letters beyond ASCII.
                    true => {
                        (128..=0x10_FFFF).any(|unit| set.lists(unit))
                            || set.folds && (set.has(0x4B) || set.has(0x53))
                    }
                };
                false
            }
            Node::Sequence(parts) => parts.iter().all(|part| self.add(part)),
            Node::Either(ways) => ways.iter().fold(false, |empty, way| self.add(way) | empty),
            Node::Repeat(_, _, Some(0), _) => true,
            Node::Repeat(inner, least, ..) => self.add(inner) | (*least == 0),
            Node::Group(_, inner) => self.add(inner),
            Node::Again(_) => {
                self.unknown = true;
                true
            }
            _ => true,
        }
    }
}

/// True if a pattern looks around or refers back to a group.
fn goes_back(node: &Node) -> bool {
    match node {
        Node::Sequence(parts) | Node::Either(parts) => parts.iter().any(goes_back),
        Node::Group(_, inner) | Node::Repeat(inner, ..) => goes_back(inner),
        Node::Again(_) | Node::Look(..) => true,
        _ => false,
    }
}

/// True if an optional repetition has a possibly empty part.
fn repeats_nothing(node: &Node) -> bool {
    match node {
        Node::Sequence(parts) | Node::Either(parts) => parts.iter().any(repeats_nothing),
        Node::Group(_, inner) | Node::Look(.., inner) => repeats_nothing(inner),
        Node::Repeat(_, _, Some(0), _) => false,
        Node::Repeat(inner, least, most, _) => {
            let mut begin = Begin {
                ascii: [false; 128],
                others: false,
                unknown: false,
            };
            repeats_nothing(inner) || (*most != Some(*least) && begin.add(inner))
        }
        _ => false,
    }
}

/// A parsed and paid pattern.
pub(super) struct Pattern {
    tree: Node,
    pub(super) groups: Groups,
    flags: Flags,
    /// `y`
    sticky: bool,
    /// Whether it looks around or refers back.
    goes_back: bool,
    begin: Option<Begin>,
    price: i64,
    weight: u64,
    pub(super) global: bool,
}

/// All work before the first search.
pub(super) fn prepare(pattern: &[u16], flags: &[u16], text: &[u16], whole: bool) -> Res<Pattern> {
    for (units, max, what) in [
        (pattern.len(), MAX_PATTERN, "pattern"),
        (text.len(), MAX_TEXT, "input"),
    ] {
        if units > max {
            return Err(Fail::new(format!(
                "Regex {what} too long ({units} > {max})"
            )));
        }
    }
    // A search from an index on pays for the units that it passes.
    let passed = if whole { text.len() } else { 0 };
    pay(READ, Sizes::units(pattern.len() + flags.len() + passed))?;
    let (mut known, mut global, mut sticky) = (Flags::default(), false, false);
    for c in String::from_utf16_lossy(flags).chars() {
        match c {
            'g' => global = true,
            'i' => known.ignore_case = true,
            'm' => known.multiline = true,
            's' => known.dot_all = true,
            'u' => known.unicode = true,
            'y' => sticky = true,
            other => {
                return Err(Fail::new(format!(
                    "Invalid regular expression flags: '{other}' is none of g, i, m, s, u and y"
                )));
            }
        }
    }
    let (tree, groups) = read(pattern, known)
        .map_err(|why| Fail::new(format!("Invalid regular expression: {why}")))?;
    let (positions, properties) = super::pattern::positions(pattern, known.unicode)?;
    let size = positions + properties * REGEX_PROPERTY;
    pay_metered((size as i64).saturating_mul(REGEX_POSITION))?;
    if text.iter().any(|unit| *unit >= 128) {
        pay_metered(READ.price(Sizes::units(taken_apart(text.len()))))?;
    }
    let mut begin = Begin {
        ascii: [false; 128],
        others: false,
        unknown: false,
    };
    let empty = begin.add(&tree) || begin.unknown;
    let (count, turns) = (groups.count as u64, repeats_nothing(&tree));
    let weight = regex_weight(positions, count, known.ignore_case, turns);
    Ok(Pattern {
        goes_back: goes_back(&tree),
        flags: known,
        sticky,
        tree,
        begin: (!empty).then_some(begin),
        price: regex_ways(weight),
        weight,
        groups,
        global,
    })
}

impl Pattern {
    /// The first match from a place on, or just there; pays for it.
    fn find(&self, text: &[u32], from: usize, left: &mut u64, sticky: bool) -> Res<Option<Places>> {
        let mut search = Search::new(text, self.groups.count, self.flags, *left);
        search.counts = self.goes_back;
        let mut found = None;
        let mut start = from;
        while start <= text.len() {
            if self.goes_back && !sticky {
                search.left = start_of(self, text, &mut start, search.left)?;
            }
            search.groups.fill(None);
            let hit = run(&mut search, &self.tree, start, &mut |s, end| {
                s.groups[0] = Some((start, end));
                true
            });
            if let Some(fault) = search.fault.take() {
                return Err(fault);
            }
            if self.goes_back {
                search.pay_steps()?;
            }
            if hit {
                found = Some(search.groups.clone());
                break;
            }
            if sticky {
                break;
            }
            start += 1;
        }
        if self.goes_back {
            *left = search.left;
            return Ok(found);
        }
        let start = found.as_ref().and_then(|places| places[0]);
        self.pay(&search, from, start.map(|(start, _)| start), left, sticky)?;
        Ok(found)
    }

    /// A unit is cheap if no attempt is active and no match starts with it.
    fn pay(
        &self,
        search: &Search<'_>,
        from: usize,
        start: Option<usize>,
        left: &mut u64,
        sticky: bool,
    ) -> Res<()> {
        let (mut at, mut under_way) = (from, false);
        loop {
            if sticky && !under_way && at > from {
                return Ok(());
            }
            if !under_way && !sticky {
                if start.is_some_and(|start| at > start) {
                    return Ok(());
                }
                *left = start_of(self, search.text, &mut at, *left)?;
            }
            if at >= search.text.len() {
                return Ok(());
            }
            *left = left.checked_sub(self.weight).ok_or_else(too_costly)?;
            pay_metered(self.price)?;
            under_way = search.taken[at];
            at += 1;
        }
    }

    /// All matches, in the order of `matchAll`.
    pub(super) fn find_all(&self, text: &[u16]) -> Res<Vec<Places>> {
        let whole = self.characters(text);
        let (mut all, mut left, mut from) = (Vec::new(), MAX_WEIGHT, 0);
        while from <= whole.len() {
            let Some(places) = self.find(&whole, from, &mut left, self.sticky)? else {
                break;
            };
            let (start, end) = places[0].unwrap_or_default();
            all.push(places);
            from = end + usize::from(start == end);
        }
        Ok(self.in_units(&whole, all))
    }

    /// The first match from a unit on.
    pub(super) fn find_first(&self, text: &[u16], from: usize) -> Res<Vec<Places>> {
        let whole = self.characters(text);
        if from > text.len() {
            return Ok(Vec::new());
        }
        // The character that has the unit.
        let (mut at, mut unit) = (0, 0);
        while let Some(c) = whole.get(at) {
            unit += if *c > 0xFFFF { 2 } else { 1 };
            if unit > from {
                break;
            }
            at += 1;
        }
        let found = self.find(&whole, at, &mut { MAX_WEIGHT }, self.sticky)?;
        Ok(self.in_units(&whole, found.into_iter().collect()))
    }

    /// §22.2.6.14, with a search from each place instead of an attempt at it.
    pub(super) fn borders(&self, text: &[u16], limit: usize) -> Res<Vec<Places>> {
        let text = self.characters(text);
        let (mut all, mut left) = (Vec::new(), MAX_WEIGHT);
        let (mut part, mut from) = (0, 0);
        while from < text.len() && all.len() < limit {
            let Some(places) = self.find(&text, from, &mut left, false)? else {
                break;
            };
            let (start, end) = places[0].unwrap_or_default();
            if start >= text.len() {
                break;
            }
            if end == part {
                from = start + 1;
                continue;
            }
            all.push(places);
            (part, from) = (end, end);
        }
        Ok(self.in_units(&text, all))
    }

    /// The units of a text, or its code points.
    fn characters(&self, text: &[u16]) -> Vec<u32> {
        match self.flags.unicode {
            true => points(text),
            false => text.iter().map(|unit| u32::from(*unit)).collect(),
        }
    }

    /// Places among characters as places among units.
    fn in_units(&self, text: &[u32], mut found: Vec<Places>) -> Vec<Places> {
        let unit = |place: usize| -> usize {
            let before = text[..place].iter();
            before.map(|c| if *c > 0xFFFF { 2 } else { 1 }).sum()
        };
        for place in found.iter_mut().flatten().flatten() {
            *place = (unit(place.0), unit(place.1));
        }
        found
    }

    pub(super) fn shown(&self, text: &[u16], places: &Places) -> OVal {
        let groups: Vec<OVal> = (1..=self.groups.count)
            .map(|n| part(text, places[n]))
            .collect();
        let names = self.groups.names.iter();
        let named: Obj = names
            .map(|(name, n)| (js(name), groups[n - 1].clone()))
            .collect();
        let start = places[0].map_or(0, |(start, _)| start);
        OVal::object(Obj::from_iter([
            (js("match"), part(text, places[0])),
            (js("index"), OVal::Num(start as f64)),
            (js("groups"), OVal::array(groups)),
            (js("named"), OVal::object(named)),
        ]))
    }

    pub(super) fn pay_found(&self, found: usize) -> Res<()> {
        let each = regex_found(self.groups.count, self.groups.names.len());
        pay(WRITTEN, Sizes::default().out_elements(found * each))
    }
}

/// Passes units at which no match begins; pays for them. Returns the work left.
fn start_of(pattern: &Pattern, text: &[u32], at: &mut usize, mut left: u64) -> Res<u64> {
    let passed = text[*at..]
        .iter()
        .take_while(|unit| pattern.begin.as_ref().is_some_and(|b| !b.has(**unit)))
        .count();
    for part in std::iter::repeat_n(PASSED, passed / PASSED).chain([passed % PASSED]) {
        left = left.checked_sub(part as u64).ok_or_else(too_costly)?;
        pay_metered(part as i64 * UNIT)?;
    }
    *at += passed;
    Ok(left)
}

pub(super) fn too_costly() -> Fail {
    Fail::new("Regex too costly: one call may look at 160000000 ways through its text")
}

/// The text of a group, `null` if it did not participate.
pub(super) fn part(text: &[u16], place: Option<(usize, usize)>) -> OVal {
    place.map_or(OVal::Null, |(start, end)| {
        OVal::units(text[start..end].to_vec())
    })
}
