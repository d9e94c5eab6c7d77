//! Case folding, for JavaScript's flag `i` (ECMA-262 §22.2.2.7.3). Without the flag `u` units
//! with the same single-unit upper case are equivalent, and no unit beyond ASCII is equivalent
//! to an ASCII one. With it, code points with the same simple case folding are.

use std::sync::LazyLock;

/// A unit with its equivalents.
#[derive(Copy, Clone, Debug)]
pub(super) struct Folded {
    units: [u32; Folded::MOST],
    len: u8,
}

impl Folded {
    /// Maximum size of an equivalence class.
    const MOST: usize = 4;

    /// A unit without equivalents.
    #[inline]
    pub(super) fn only(unit: u32) -> Folded {
        Folded {
            units: [unit; Folded::MOST],
            len: 1,
        }
    }

    /// A unit with all its equivalents.
    pub(super) fn of(unit: u32, unicode: bool) -> Folded {
        let mut found = Folded::only(unit);
        let mut add = |other: u32| {
            if other != unit && usize::from(found.len) < Folded::MOST {
                found.units[usize::from(found.len)] = other;
                found.len += 1;
            }
        };
        let common = common(unit, unicode);
        add(common);
        let ascii = u8::try_from(common).ok().filter(u8::is_ascii);
        if let Some(byte) = ascii {
            add(byte.to_ascii_lowercase().into());
        }
        if !unicode && ascii.is_some() {
            return found;
        }
        let others = if unicode { &*POINTS } else { &*UNITS };
        let from = others.partition_point(|(of, _)| *of < common);
        let alike = others[from..].iter().take_while(|(of, _)| *of == common);
        alike.for_each(|(_, other)| add(*other));
        found
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &u32> {
        self.units[..usize::from(self.len)].iter()
    }
}

/// Units beyond ASCII that are not the common form of their class: that form and unit, sorted.
static UNITS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| others(u16::MAX.into(), false));

/// The same for code points.
static POINTS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| others(0x1_FFFF, true));

fn others(most: u32, unicode: bool) -> Vec<(u32, u32)> {
    let mut list: Vec<(u32, u32)> = (0x80..=most)
        .map(|unit| (common(unit, unicode), unit))
        .filter(|(common, unit)| common != unit)
        .collect();
    list.sort_unstable();
    list
}

/// The form that stands for all equivalents of a unit.
#[inline]
pub(super) fn common(unit: u32, unicode: bool) -> u32 {
    match u8::try_from(unit) {
        Ok(byte) if byte < 0x80 => byte.to_ascii_uppercase().into(),
        _ if unicode => upper_of_point(unit),
        _ => upper_beyond_ascii(unit),
    }
}

fn upper_beyond_ascii(unit: u32) -> u32 {
    let upper = single(unit, char::to_uppercase);
    match (0x80..=u16::MAX.into()).contains(&upper) {
        true => upper,
        false => unit,
    }
}

/// The upper case of the simple case folding of a code point.
fn upper_of_point(point: u32) -> u32 {
    match point {
        // Turkish letters, which fold only there.
        0x130 | 0x131 => point,
        // These fold to letters whose upper case is not one letter.
        0x1FD3 => 0x390,
        0x1FE3 => 0x3B0,
        0xFB05 => 0xFB06,
        _ => {
            let lower = single(point, char::to_lowercase);
            single(lower, char::to_uppercase)
        }
    }
}

/// The other case of a unit, if that is one character, else the unit.
fn single<I: Iterator<Item = char>>(unit: u32, other: impl Fn(char) -> I) -> u32 {
    let Some(mut found) = char::from_u32(unit).map(other) else {
        return unit;
    };
    match (found.next(), found.next()) {
        (Some(one), None) => one.into(),
        _ => unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The common form of a common form is itself, and no more units are alike than there is
    /// room for.
    #[test]
    fn units_are_alike_in_classes() {
        for (most, unicode) in [(u16::MAX.into(), false), (char::MAX.into(), true)] {
            let mut classes: HashMap<u32, Vec<u32>> = HashMap::new();
            for unit in 0..=most {
                let common = common(unit, unicode);
                assert_eq!(super::common(common, unicode), common, "{unit:x}");
                classes.entry(common).or_default().push(unit);
            }
            for class in classes.values() {
                for unit in class {
                    let mut alike: Vec<u32> = Folded::of(*unit, unicode).iter().copied().collect();
                    alike.sort_unstable();
                    assert_eq!(alike, *class, "{unit:x}");
                }
            }
        }
    }

    #[test]
    fn ascii_is_alike_to_ascii_only() {
        let alike = |unit: u32| Folded::of(unit, false).iter().copied().collect::<Vec<_>>();
        assert_eq!(alike(0x6B), [0x6B, 0x4B]);
        assert_eq!(alike(0x17F), [0x17F]);
        assert_eq!(alike(0xE4), [0xE4, 0xC4]);
        assert_eq!(alike(0xDF), [0xDF]);
    }

    #[test]
    fn code_points_fold_simply() {
        let alike = |unit: u32| Folded::of(unit, true).iter().copied().collect::<Vec<_>>();
        assert_eq!(alike(0x17F), [0x17F, 0x53, 0x73]);
        assert_eq!(alike(0x6B), [0x6B, 0x4B, 0x212A]);
        assert_eq!(alike(0xDF), [0xDF, 0x1E9E]);
        assert_eq!(alike(0x10400), [0x10400, 0x10428]);
        assert_eq!(alike(0x130), [0x130]);
    }
}
