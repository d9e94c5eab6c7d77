//! Finding by regular expressions, with groups (decision D72): the backtracking matcher of
//! ECMA-262 §22.2.2 with continuations, word for word and without a bound. The price of a
//! search depends on the units that any attempt consumed.

use super::coerce::{to_num, to_str};
use super::expr::name_of;
use super::machine::{Machine, ScopeRef};
use super::meter::{pay, pay_metered};
use super::regex::{Flags, Groups, Node, at_line, is_word, read};
use super::steps::Node as Step;
use super::value::{Fail, JsStr, OVal, Obj, Res, from_wtf8, js};
use a99_core::costs::{
    READ, REGEX_PART, REGEX_POSITION, Sizes, UNIT, WRITTEN, regex_found, regex_ways, regex_weight,
    taken_apart,
};
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

const MAX_PATTERN: usize = 1_000;
const MAX_TEXT: usize = 1_000_000;
const MAX_WEIGHT: u64 = 160_000_000;
/// Units skipped and paid for at once.
const PASSED: usize = 4_096;

/// The upper case of a unit under the flag `i` without `u`.
fn canonical(unit: u16) -> u16 {
    let text = String::from_utf16(&[unit]).unwrap_or_default();
    let upper: Vec<u16> = text.to_uppercase().encode_utf16().collect();
    match upper[..] {
        [one] if unit < 128 || one >= 128 => one,
        _ => unit,
    }
}

static CLASSES: LazyLock<HashMap<u16, Vec<u16>>> = LazyLock::new(|| {
    let mut classes: HashMap<u16, Vec<u16>> = HashMap::new();
    (0..=u16::MAX).for_each(|unit| classes.entry(canonical(unit)).or_default().push(unit));
    classes
});

/// The units equal to one except for case, including itself.
pub(super) fn alike(unit: u16) -> impl Iterator<Item = u16> {
    CLASSES[&canonical(unit)].iter().copied()
}

/// Start and end of the match and of its groups.
type Places = Vec<Option<(usize, usize)>>;

/// Possible first units of a match.
struct Begin {
    ascii: [bool; 128],
    others: bool,
}

impl Begin {
    fn has(&self, unit: u16) -> bool {
        let ascii = self.ascii.get(usize::from(unit));
        *ascii.unwrap_or(&self.others)
    }

    /// Adds the possible first units of a node; true if it can match the empty text.
    fn add(&mut self, node: &Node) -> bool {
        match node {
            Node::Unit(set) => {
                for unit in 0..128u16 {
                    self.ascii[usize::from(unit)] |= set.has(unit);
                }
                self.others |= (128..=u16::MAX).any(|unit| set.lists(unit));
                false
            }
            Node::Sequence(parts) => parts.iter().all(|part| self.add(part)),
            Node::Either(ways) => ways.iter().fold(false, |empty, way| self.add(way) | empty),
            Node::Repeat(_, _, Some(0), _) => true,
            Node::Repeat(inner, least, ..) => self.add(inner) | (*least == 0),
            Node::Group(_, inner) => self.add(inner),
            _ => true,
        }
    }
}

/// True if an optional repetition has a possibly empty part.
fn repeats_nothing(node: &Node) -> bool {
    match node {
        Node::Sequence(parts) | Node::Either(parts) => parts.iter().any(repeats_nothing),
        Node::Group(_, inner) => repeats_nothing(inner),
        Node::Repeat(_, _, Some(0), _) => false,
        Node::Repeat(inner, least, most, _) => {
            let mut begin = Begin {
                ascii: [false; 128],
                others: false,
            };
            repeats_nothing(inner) || (*most != Some(*least) && begin.add(inner))
        }
        _ => false,
    }
}

/// A search in progress.
struct Search<'t> {
    text: &'t [u16],
    /// Units that any attempt consumed.
    taken: Vec<bool>,
    groups: Places,
}

/// Continuation after a node.
type Next<'n> = &'n mut dyn FnMut(&mut Search<'_>, usize) -> bool;

fn run(s: &mut Search<'_>, node: &Node, at: usize, next: Next<'_>) -> bool {
    let holds = match node {
        Node::Unit(set) => {
            let fits = s.text.get(at).is_some_and(|unit| set.has(*unit));
            if fits {
                s.taken[at] = true;
            }
            return fits && next(s, at + 1);
        }
        Node::Sequence(parts) => return sequence(s, parts, at, next),
        Node::Either(ways) => return ways.iter().any(|way| run(s, way, at, next)),
        Node::Repeat(..) => return repeat(s, node, (0, at), next),
        Node::Group(n, inner) => {
            return run(s, inner, at, &mut |s, end| {
                let before = s.groups[*n].replace((at, end));
                let done = next(s, end);
                if !done {
                    s.groups[*n] = before;
                }
                done
            });
        }
        Node::Start => at == 0,
        Node::End => at == s.text.len(),
        Node::LineStart | Node::LineEnd => at_line(node, at, s.text),
        Node::Boundary(wanted) => {
            let before = at.checked_sub(1).and_then(|at| s.text.get(at));
            (is_word(before) != is_word(s.text.get(at))) == *wanted
        }
    };
    holds && next(s, at)
}

fn sequence(s: &mut Search<'_>, parts: &[Node], at: usize, next: Next<'_>) -> bool {
    match parts {
        [] => next(s, at),
        [first, rest @ ..] => run(s, first, at, &mut |s, at| sequence(s, rest, at, next)),
    }
}

/// RepeatMatcher (§22.2.2.3.1) after this many turns.
fn repeat(s: &mut Search<'_>, node: &Node, (turns, at): (u64, usize), next: Next<'_>) -> bool {
    let Node::Repeat(inner, least, most, how) = node else {
        return false;
    };
    if most.is_some_and(|most| turns >= most) {
        return next(s, at);
    }
    let needed = turns < *least;
    if !needed && how.lazy && next(s, at) {
        return true;
    }
    let before: Places = s.groups[how.groups.clone()].to_vec();
    s.groups[how.groups.clone()].fill(None);
    let done = run(s, inner, at, &mut |s, end| {
        (needed || end != at) && repeat(s, node, (turns + 1, end), next)
    });
    if done {
        return true;
    }
    s.groups[how.groups.clone()].clone_from_slice(&before);
    !needed && !how.lazy && next(s, at)
}

/// A parsed and paid pattern.
struct Pattern {
    tree: Node,
    groups: Groups,
    begin: Option<Begin>,
    price: i64,
    weight: u64,
    global: bool,
}

/// All work before the first search.
fn prepare(pattern: &[u16], flags: &[u16], text: &[u16]) -> Res<Pattern> {
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
    pay(READ, Sizes::units(pattern.len() + flags.len() + text.len()))?;
    let (mut known, mut global) = (Flags::default(), false);
    for c in String::from_utf16_lossy(flags).chars() {
        match c {
            'g' => global = true,
            'i' => known.ignore_case = true,
            'm' => known.multiline = true,
            's' => known.dot_all = true,
            other => {
                return Err(Fail::new(format!(
                    "Invalid regular expression flags: '{other}' is none of g, i, m and s"
                )));
            }
        }
    }
    let (tree, groups) = read(pattern, known)
        .map_err(|why| Fail::new(format!("Invalid regular expression: {why}")))?;
    let positions = super::pattern::positions(pattern)?;
    pay_metered((positions as i64).saturating_mul(REGEX_POSITION))?;
    if text.iter().any(|unit| *unit >= 128) {
        pay_metered(READ.price(Sizes::units(taken_apart(text.len()))))?;
    }
    let mut begin = Begin {
        ascii: [false; 128],
        others: false,
    };
    let empty = begin.add(&tree);
    let (count, turns) = (groups.count as u64, repeats_nothing(&tree));
    let weight = regex_weight(positions, count, known.ignore_case, turns);
    Ok(Pattern {
        tree,
        begin: (!empty).then_some(begin),
        price: regex_ways(weight),
        weight,
        groups,
        global,
    })
}

impl Pattern {
    /// The first match from a place on; pays for it.
    fn find(&self, text: &[u16], from: usize, left: &mut u64) -> Res<Option<Places>> {
        let mut search = Search {
            text,
            taken: vec![false; text.len()],
            groups: vec![None; self.groups.count + 1],
        };
        let mut found = None;
        for start in from..=text.len() {
            search.groups.fill(None);
            let hit = run(&mut search, &self.tree, start, &mut |s, end| {
                s.groups[0] = Some((start, end));
                true
            });
            if hit {
                found = Some(search.groups.clone());
                break;
            }
        }
        let start = found.as_ref().and_then(|places| places[0]);
        self.pay(&search, from, start.map(|(start, _)| start), left)?;
        Ok(found)
    }

    /// A unit is cheap if no attempt is active and no match starts with it.
    fn pay(
        &self,
        search: &Search<'_>,
        from: usize,
        start: Option<usize>,
        left: &mut u64,
    ) -> Res<()> {
        let (mut at, mut under_way) = (from, false);
        loop {
            if !under_way {
                if start.is_some_and(|start| at > start) {
                    return Ok(());
                }
                let passed = search.text[at..]
                    .iter()
                    .take_while(|unit| self.begin.as_ref().is_some_and(|b| !b.has(**unit)))
                    .count();
                for part in std::iter::repeat_n(PASSED, passed / PASSED).chain([passed % PASSED]) {
                    *left = left.checked_sub(part as u64).ok_or_else(too_costly)?;
                    pay_metered(part as i64 * UNIT)?;
                }
                at += passed;
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
    fn find_all(&self, text: &[u16]) -> Res<Vec<Places>> {
        let (mut all, mut left, mut from) = (Vec::new(), MAX_WEIGHT, 0);
        while from <= text.len() {
            let Some(places) = self.find(text, from, &mut left)? else {
                break;
            };
            let (start, end) = places[0].unwrap_or_default();
            all.push(places);
            from = end + usize::from(start == end);
        }
        Ok(all)
    }

    fn find_first(&self, text: &[u16]) -> Res<Vec<Places>> {
        let found = self.find(text, 0, &mut { MAX_WEIGHT })?;
        Ok(found.into_iter().collect())
    }

    /// §22.2.6.14, with a search from each place instead of an attempt at it.
    fn borders(&self, text: &[u16], limit: usize) -> Res<Vec<Places>> {
        let (mut all, mut left) = (Vec::new(), MAX_WEIGHT);
        let (mut part, mut from) = (0, 0);
        while from < text.len() && all.len() < limit {
            let Some(places) = self.find(text, from, &mut left)? else {
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
        Ok(all)
    }

    fn shown(&self, text: &[u16], places: &Places) -> OVal {
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

    fn pay_found(&self, found: usize) -> Res<()> {
        let each = regex_found(self.groups.count, self.groups.names.len());
        pay(WRITTEN, Sizes::default().out_elements(found * each))
    }
}

fn too_costly() -> Fail {
    Fail::new("Regex too costly: one call may look at 160000000 ways through its text")
}

/// The text of a group, `null` if it did not participate.
fn part(text: &[u16], place: Option<(usize, usize)>) -> OVal {
    place.map_or(OVal::Null, |(start, end)| {
        OVal::units(text[start..end].to_vec())
    })
}

/// A part of a replacement text.
enum Piece {
    Text(Vec<u16>),
    Group(usize),
    Before,
    After,
}

/// GetSubstitution (§22.1.3.19.1), parsed beforehand.
fn pieces(with: &[u16], groups: &Groups) -> Vec<Piece> {
    let (mut list, mut plain, mut rest) = (Vec::new(), Vec::new(), with);
    let mut put = |plain: &mut Vec<u16>, piece: Option<Piece>| {
        if !plain.is_empty() {
            list.push(Piece::Text(std::mem::take(plain)));
        }
        list.extend(piece);
    };
    while let [unit, after @ ..] = rest {
        let c = |n: usize| after.get(n).and_then(|u| char::from_u32((*u).into()));
        let digit = |n: usize| c(n).and_then(|c| c.to_digit(10)).map(|d| d as usize);
        let known = |n: &usize| (1..=groups.count).contains(n);
        let special = (*unit == 36).then(|| match c(0)? {
            '$' => Some((Some(Piece::Text(vec![36])), 1)),
            '&' => Some((Some(Piece::Group(0)), 1)),
            '`' => Some((Some(Piece::Before), 1)),
            '\'' => Some((Some(Piece::After), 1)),
            '<' if !groups.names.is_empty() => {
                let length = after.iter().position(|u| *u == 62)?;
                let name = String::from_utf16_lossy(&after[1..length]);
                let group = groups.names.iter().find(|(known, _)| *known == name);
                Some((group.map(|(_, n)| Piece::Group(*n)), length + 1))
            }
            _ => {
                let one = digit(0)?;
                match digit(1).map(|two| 10 * one + two) {
                    Some(n) if n <= groups.count => known(&n).then_some((Some(Piece::Group(n)), 2)),
                    _ => known(&one).then_some((Some(Piece::Group(one)), 1)),
                }
            }
        });
        match special.flatten() {
            Some((piece, length)) => {
                put(&mut plain, piece);
                rest = &after[length..];
            }
            None => {
                plain.push(*unit);
                rest = after;
            }
        }
    }
    put(&mut plain, None);
    list
}

fn replaced(text: &[u16], pattern: &Pattern, found: &[Places], with: &[u16]) -> Res<OVal> {
    let dollars = with.iter().filter(|unit| **unit == 36).count();
    pay(READ, Sizes::elements(dollars * REGEX_PART))?;
    let pieces = pieces(with, &pattern.groups);
    let parts = found.len() * (pieces.len() + 1);
    pay(READ, Sizes::elements(parts * REGEX_PART))?;
    let (mut out, mut at) = (Vec::new(), 0);
    for places in found {
        let (start, end) = places[0].unwrap_or_default();
        out.extend_from_slice(&text[at..start]);
        for piece in &pieces {
            let from: &[u16] = match piece {
                Piece::Text(text) => text,
                Piece::Before => &text[..start],
                Piece::After => &text[end..],
                Piece::Group(n) => places[*n].map_or(&[], |(a, b)| &text[a..b]),
            };
            out.extend_from_slice(from);
        }
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    pay(WRITTEN, Sizes::default().out_units(out.len()))?;
    Ok(OVal::units(out))
}

fn parts(text: &[u16], pattern: &Pattern, limit: usize) -> Res<OVal> {
    let mut list = Vec::new();
    if text.is_empty() {
        // Splitting the empty text by a pattern that matches it leaves nothing.
        let found = pattern.find_first(text)?;
        list.extend(found.is_empty().then(|| OVal::units(Vec::new())));
    } else {
        let mut at = 0;
        for places in pattern.borders(text, limit)? {
            let (start, end) = places[0].unwrap_or_default();
            list.push(part(text, Some((at, start))));
            list.extend(places[1..].iter().map(|place| part(text, *place)));
            at = end;
        }
        list.push(part(text, Some((at, text.len()))));
    }
    list.truncate(limit);
    let elements = list.len() * REGEX_PART;
    pay(WRITTEN, Sizes::default().out_elements(elements))?;
    Ok(OVal::array(list))
}

fn literal(step: Step<'_>, key: &str) -> JsStr {
    match step.get(key) {
        Value::Undefined | Value::Null => js(""),
        Value::String(text) => from_wtf8(text.as_bytes()),
        other => name_of(other),
    }
}

impl Machine<'_> {
    /// `regexFind`, `regexFindAll`, `regexReplace` and `regexSplit`.
    pub(super) fn regex_atom(&mut self, op: &str, step: Step<'_>, scope: &ScopeRef) -> Res<OVal> {
        let text = self.input(step, "text", scope)?;
        let (source, flags) = (literal(step, "pattern"), literal(step, "flags"));
        let with = match op {
            "regexReplace" => self.input(step, "replacement", scope)?,
            _ => OVal::Undef,
        };
        let option = match op {
            "regexReplace" => self.input(step, "all", scope)?,
            "regexSplit" => self.input(step, "limit", scope)?,
            _ => OVal::Undef,
        };
        let text = to_str(&text)?;
        match op {
            "regexFind" => {
                let pattern = prepare(&source, &flags, &text)?;
                let found = pattern.find_first(&text)?;
                pattern.pay_found(found.len())?;
                let first = found.first();
                Ok(first.map_or(OVal::Null, |places| pattern.shown(&text, places)))
            }
            "regexFindAll" => {
                let pattern = prepare(&source, &flags, &text)?;
                let found = pattern.find_all(&text)?;
                pattern.pay_found(found.len())?;
                let found = found.iter().map(|places| pattern.shown(&text, places));
                Ok(OVal::array(found.collect()))
            }
            "regexReplace" => {
                let with = to_str(&with)?;
                pay(READ, Sizes::units(with.len()))?;
                let pattern = prepare(&source, &flags, &text)?;
                let all = match option {
                    OVal::Undef | OVal::Null => pattern.global,
                    other => other.truthy(),
                };
                let found = match all {
                    true => pattern.find_all(&text)?,
                    false => pattern.find_first(&text)?,
                };
                replaced(&text, &pattern, &found, &with)
            }
            _ => {
                let limit = match option {
                    OVal::Undef | OVal::Null => usize::MAX,
                    other => to_num(&other)? as usize,
                };
                let pattern = prepare(&source, &flags, &text)?;
                parts(&text, &pattern, limit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: &str, text: &str) -> Option<Vec<Option<String>>> {
        let (tree, groups) = read(&js(pattern), Flags::default()).expect("a pattern");
        let text = js(text);
        let mut search = Search {
            text: &text,
            taken: vec![false; text.len()],
            groups: vec![None; groups.count + 1],
        };
        (0..=text.len()).find_map(|start| {
            search.groups.fill(None);
            let hit = run(&mut search, &tree, start, &mut |s, end| {
                s.groups[0] = Some((start, end));
                true
            });
            let shown = |place: &Option<(usize, usize)>| {
                place.map(|(a, b)| String::from_utf16_lossy(&text[a..b]))
            };
            hit.then(|| search.groups.iter().map(shown).collect())
        })
    }

    /// Examples of ECMA-262 §22.2.2.3.1, and peculiarities of JavaScript.
    #[test]
    fn as_the_standard_says() {
        for (pattern, text, expected) in [
            ("a[a-z]{2,4}?", "abcdefghi", "abc"),
            ("(aa|aabaac|ba|b|c)*", "aabaac", "aaba,ba"),
            ("(z)((a+)?(b+)?(c))*", "zaacbbbcac", "zaacbbbcac,z,ac,a,-,c"),
            ("(a*)*", "b", ",-"),
            ("(?:a?b??)*", "ab", "ab"),
            ("(|a)+", "a", "a,a"),
        ] {
            let found = first(pattern, text).expect("a match");
            let shown: Vec<String> = found
                .into_iter()
                .map(|part| part.unwrap_or("-".into()))
                .collect();
            assert_eq!(shown.join(","), expected, "{pattern}");
        }
    }
}
