//! The backtracking matcher of ECMA-262 §22.2.2 with continuations, word for word.

use super::meter::pay_metered;
use super::regex::{Flags, Node, at_line, is_word};
use super::regex_find::{Places, too_costly};
use super::regex_set::Set;
use super::value::{Fail, Res};
use a99_core::costs::{REGEX_BACK, REGEX_WAY};
use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex};

/// The upper case of a unit under the flag `i` without `u`.
fn canonical(unit: u32) -> u32 {
    let c = char::from_u32(unit).map(|c| c.to_uppercase().collect::<Vec<char>>());
    match c.as_deref() {
        Some([one]) if unit < 128 || (128..=0xFFFF).contains(&u32::from(*one)) => (*one).into(),
        _ => unit,
    }
}

static CLASSES: LazyLock<HashMap<u32, Vec<u32>>> = LazyLock::new(|| {
    let mut classes: HashMap<u32, Vec<u32>> = HashMap::new();
    (0..=0xFFFF).for_each(|unit| classes.entry(canonical(unit)).or_default().push(unit));
    classes
});

/// The units equal to one except for case, including itself.
pub(super) fn alike(unit: u32, unicode: bool) -> Vec<u32> {
    if !unicode {
        return CLASSES[&canonical(unit)].clone();
    }
    // Simple case folding, by the crate `regex`.
    let Some(c) = char::from_u32(unit) else {
        return vec![unit];
    };
    static KNOWN: Mutex<BTreeMap<char, Vec<u32>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("no panic under the lock");
    let find = || {
        let same = regex::Regex::new(&format!("(?i)^\\u{{{unit:X}}}$"));
        let same = same.expect("a pattern of one character");
        // No letter beyond has cases.
        let all = '\0'..='\u{1FFFF}';
        let has = |c: &char| same.is_match(c.encode_utf8(&mut [0; 4]));
        let mut found: Vec<u32> = all.filter(has).map(u32::from).collect();
        if found.is_empty() {
            found.push(unit);
        }
        found
    };
    known.entry(c).or_insert_with(find).clone()
}

/// A search in progress.
pub(super) struct Search<'t> {
    pub(super) text: &'t [u32],
    /// Units that any attempt consumed.
    pub(super) taken: Vec<bool>,
    pub(super) groups: Places,
    /// Whether the text is matched backwards.
    behind: bool,
    /// How units are compared with those of a group.
    flags: Flags,
    /// Steps of a pattern that goes back: those to pay, the work left, and why it ended.
    steps: u64,
    pub(super) left: u64,
    pub(super) fault: Option<Fail>,
    /// Whether the pattern goes back, so that steps are paid.
    pub(super) counts: bool,
}

/// Steps that are paid at once.
const BATCH: u64 = 256;

impl Search<'_> {
    pub(super) fn new(text: &[u32], groups: usize, flags: Flags, left: u64) -> Search<'_> {
        Search {
            text,
            taken: vec![false; text.len()],
            groups: vec![None; groups + 1],
            behind: false,
            flags,
            steps: 0,
            left,
            fault: None,
            counts: false,
        }
    }

    /// Counts steps of a pattern that goes back.
    fn step(&mut self, steps: u64) {
        self.steps += if self.counts { steps } else { 0 };
    }

    /// Pays for the steps so far.
    pub(super) fn pay_steps(&mut self) -> Res<()> {
        let ways = std::mem::take(&mut self.steps) * REGEX_BACK;
        let ways = ways * (1 + u64::from(self.flags.ignore_case));
        pay_metered(ways as i64 * REGEX_WAY)?;
        self.left = self.left.checked_sub(ways).ok_or_else(too_costly)?;
        Ok(())
    }

    fn same(&self, one: u32, other: u32) -> bool {
        one == other || self.flags.ignore_case && alike(one, self.flags.unicode).contains(&other)
    }

    /// Groups as they were, if `done` is false.
    fn restore(&mut self, done: bool, before: Places) -> bool {
        if !done {
            self.groups = before;
        }
        done
    }
}

/// Continuation after a node.
pub(super) type Next<'n> = &'n mut dyn FnMut(&mut Search<'_>, usize) -> bool;

pub(super) fn run(s: &mut Search<'_>, node: &Node, at: usize, next: Next<'_>) -> bool {
    if s.fault.is_none()
        && s.steps >= BATCH
        && let Err(fault) = s.pay_steps()
    {
        s.fault = Some(fault);
    }
    if s.fault.is_some() {
        return false;
    }
    let holds = match node {
        Node::Unit(set) => return unit(s, set, at, next),
        Node::Sequence(parts) => return sequence(s, parts, at, next),
        Node::Either(ways) => return either(s, ways, at, next),
        Node::Repeat(..) => return repeat(s, node, (0, at), next),
        Node::Group(n, inner) => {
            s.step(1);
            let behind = s.behind;
            return run(s, inner, at, &mut |s, end| {
                s.step(1);
                let place = if behind { (end, at) } else { (at, end) };
                let before = s.groups[*n].replace(place);
                let done = next(s, end);
                if !done {
                    s.groups[*n] = before;
                }
                done
            });
        }
        Node::Again(n) => {
            let (start, end) = s.groups[*n].unwrap_or((at, at));
            let length = end - start;
            s.step(1 + length as u64 / 8);
            let from = match s.behind {
                true => at.checked_sub(length),
                false => Some(at),
            };
            let same = from.is_some_and(|from| {
                from + length <= s.text.len()
                    && (0..length).all(|i| s.same(s.text[start + i], s.text[from + i]))
            });
            let to = if s.behind {
                at.wrapping_sub(length)
            } else {
                at + length
            };
            return same && next(s, to);
        }
        Node::AgainNamed(_) => false,
        Node::Look(behind, negated, inner) => {
            s.step(1);
            let (outside, before) = (s.behind, s.groups.clone());
            s.behind = *behind;
            let seen = run(s, inner, at, &mut |_, _| true);
            s.behind = outside;
            if seen == *negated {
                return s.restore(false, before);
            }
            if *negated {
                s.restore(false, before.clone());
            }
            let done = next(s, at);
            return s.restore(done, before);
        }
        Node::Start => at == 0,
        Node::End => at == s.text.len(),
        Node::LineStart | Node::LineEnd => at_line(node, at, s.text),
        Node::Boundary(wanted, folds) => {
            let before = at.checked_sub(1).and_then(|at| s.text.get(at));
            (is_word(before, *folds) != is_word(s.text.get(at), *folds)) == *wanted
        }
    };
    s.step(1);
    holds && next(s, at)
}

fn unit(s: &mut Search<'_>, set: &Set, at: usize, next: Next<'_>) -> bool {
    s.step(1);
    let place = match s.behind {
        true => at.checked_sub(1),
        false => Some(at),
    };
    let Some(place) = place else {
        return false;
    };
    if s.behind {
        s.step(1);
    }
    let fits = s.text.get(place).is_some_and(|unit| set.has(*unit));
    if !fits {
        return false;
    }
    s.taken[place] = true;
    if s.behind {
        s.step(1);
        return next(s, place);
    }
    next(s, place + 1)
}

fn sequence(s: &mut Search<'_>, parts: &[Node], at: usize, next: Next<'_>) -> bool {
    let split = match s.behind {
        true => parts.split_last(),
        false => parts.split_first(),
    };
    let Some((first, rest)) = split else {
        return next(s, at);
    };
    run(s, first, at, &mut |s, at| sequence(s, rest, at, next))
}

fn either(s: &mut Search<'_>, ways: &[Node], at: usize, next: Next<'_>) -> bool {
    let last = ways.len() - 1;
    ways.iter().enumerate().any(|(n, way)| {
        s.step(u64::from(n < last));
        run(s, way, at, next)
    })
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
    s.step(u64::from(!needed));
    if !needed && how.lazy && next(s, at) {
        return true;
    }
    let groups = how.groups.len() as u64;
    s.step(if groups > 0 { 1 + 2 * groups / 8 } else { 0 });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::regex::{points, read};
    use crate::oracle::value::js;

    fn first(pattern: &str, text: &str) -> Option<Vec<Option<String>>> {
        let (tree, groups) = read(&js(pattern), Flags::default()).expect("a pattern");
        let text = points(&js(text));
        let mut search = Search::new(&text, groups.count, Flags::default(), u64::MAX);
        (0..=text.len()).find_map(|start| {
            search.groups.fill(None);
            let hit = run(&mut search, &tree, start, &mut |s, end| {
                s.groups[0] = Some((start, end));
                true
            });
            let shown = |place: &Option<(usize, usize)>| {
                place.map(|(a, b)| {
                    text[a..b]
                        .iter()
                        .filter_map(|c| char::from_u32(*c))
                        .collect()
                })
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
            ("(?=(a+))a*b\\1", "baaabac", "aba,a"),
            (
                "(.*?)a(?!(a+)b\\2c)\\2(.*)",
                "baaabaac",
                "baaabaac,ba,-,abaac",
            ),
            ("(?<=(\\d+)(\\d+))$", "1053", ",1,053"),
            ("(?<=\\1(\\w))d", "aadd", "d,a"),
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
