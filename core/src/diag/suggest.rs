//! "Did you mean": the known name nearest to a misspelt one.

/// Longest compared name, which bounds the work per candidate. Longer names are unlikely to be
/// mistyped by a letter.
const MAX_NAME: usize = 64;

/// Like [`suggest`], with a budget of comparisons in `left`. Each candidate takes one, which bounds
/// the work for many misspelt names and many candidates.
#[must_use]
pub fn suggest_among<'a>(
    left: &mut usize,
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<String> {
    if name.len() > 4 * MAX_NAME {
        return None;
    }
    let candidates = candidates.map_while(|candidate| {
        *left = left.checked_sub(1)?;
        Some(candidate)
    });
    suggest(name, candidates)
}

/// The candidate nearest to `name` within the edit limit.
///
/// The limit is one edit per three characters (at least one, and never all of them). An edit
/// inserts, removes, replaces or swaps neighbours. Letter case counts only if nothing else differs.
/// The first of equally near candidates wins.
#[must_use]
pub fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let lower = |name: &str| -> Vec<char> {
        name.chars()
            .take(4 * MAX_NAME)
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let wanted = lower(name);
    if wanted.is_empty() || wanted.len() > MAX_NAME {
        return None;
    }
    // Replacing every letter gives an unrelated name.
    let limit = (wanted.len() / 3).max(1).min(wanted.len() - 1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let bound = best.map_or(limit, |(distance, _)| distance.saturating_sub(1));
        let is_same = candidate.eq_ignore_ascii_case(name);
        let distance = if is_same {
            usize::from(candidate != name)
        } else if candidate.len() > 4 * MAX_NAME
            || candidate.is_ascii() && candidate.len().abs_diff(wanted.len()) > bound
        {
            continue;
        } else {
            edit_distance(&wanted, &lower(candidate), bound).unwrap_or(usize::MAX)
        };
        let alike = distance <= bound || is_same && best.is_none();
        if alike && best.is_none_or(|(known, _)| distance < known) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.to_owned())
}

/// The optimal string alignment distance (Damerau-Levenshtein without repeated edits of swapped
/// neighbours); `None` above `bound`.
fn edit_distance(a: &[char], b: &[char], bound: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > bound {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (above[j] + usize::from(x != y))
                .min(above[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        if row.iter().all(|&cost| cost > bound) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|&distance| distance <= bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest() {
        let atoms = ["varSet", "varGet", "map", "reduce", "httpFetch", "while"];
        let near = |name| suggest(name, atoms.into_iter());
        for (name, expected) in [
            ("varset", Some("varSet")),
            ("vraSet", Some("varSet")),
            ("mpa", Some("map")),
            ("httpFech", Some("httpFetch")),
            ("whlie", Some("while")),
            ("redcue", Some("reduce")),
            ("banana", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(near(name).as_deref(), expected, "{name}");
        }
        assert_eq!(near(&"a".repeat(100_000)), None);
        let long = "m".repeat(100_000);
        assert_eq!(suggest("map", [long.as_str()].into_iter()), None);
        // Names of a single letter are never similar.
        assert_eq!(suggest("m", ["n", "kn"].into_iter()), None);
        assert_eq!(suggest("N", ["n"].into_iter()).as_deref(), Some("n"));
    }

    #[test]
    fn a11_comparisons_are_bounded() {
        let mut left = 3;
        let atoms = || ["varSet", "varGet", "map"].into_iter();
        assert_eq!(
            suggest_among(&mut left, "mpa", atoms()).as_deref(),
            Some("map")
        );
        assert_eq!(left, 0);
        assert_eq!(suggest_among(&mut left, "mpa", atoms()), None);
        let mut left = 3;
        assert_eq!(
            suggest_among(&mut left, &"m".repeat(1 << 20), atoms()),
            None
        );
        assert_eq!(left, 3);
    }

    #[test]
    fn distance() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, expected) in [("ab", "ba", 1), ("kitten", "sitting", 3), ("", "ab", 2)] {
            assert_eq!(edit_distance(&chars(a), &chars(b), 5), Some(expected));
        }
        assert_eq!(edit_distance(&chars("kitten"), &chars("sitting"), 2), None);
    }
}
