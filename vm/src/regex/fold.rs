//! Case folding of units, for JavaScript's flag `i` without `u` (ECMA-262 §22.2.2.7.3): units
//! with the same single-unit upper case are equivalent, and no unit beyond ASCII is
//! equivalent to an ASCII one.

use std::sync::LazyLock;

/// A unit with its equivalents.
#[derive(Copy, Clone, Debug)]
pub(super) struct Folded {
    units: [u16; Folded::MOST],
    len: u8,
}

impl Folded {
    /// Maximum size of an equivalence class.
    const MOST: usize = 4;

    /// A unit without equivalents.
    #[inline]
    pub(super) fn only(unit: u16) -> Folded {
        Folded {
            units: [unit; Folded::MOST],
            len: 1,
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &u16> {
        self.units[..usize::from(self.len)].iter()
    }
}

/// Units whose upper case is another unit: upper case and unit, sorted.
static LOWER: LazyLock<Vec<(u16, u16)>> = LazyLock::new(|| {
    let mut list: Vec<(u16, u16)> = (0x80..=u16::MAX)
        .map(|unit| (upper(unit), unit))
        .filter(|(upper, unit)| upper != unit)
        .collect();
    list.sort_unstable();
    list
});

/// The upper case of a unit, if that is one unit.
#[inline]
pub(super) fn upper(unit: u16) -> u16 {
    match u8::try_from(unit) {
        Ok(byte) if byte < 0x80 => byte.to_ascii_uppercase().into(),
        _ => upper_beyond_ascii(unit),
    }
}

fn upper_beyond_ascii(unit: u16) -> u16 {
    let Some(c) = char::from_u32(unit.into()) else {
        return unit;
    };
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => u16::try_from(u32::from(one))
            .ok()
            .filter(|upper| *upper >= 0x80)
            .unwrap_or(unit),
        _ => unit,
    }
}

/// A unit with all its equivalents.
pub(super) fn folded(unit: u16) -> Folded {
    let mut units = [unit; Folded::MOST];
    let mut len = 1;
    let mut add = |other: u16| {
        if other != unit && len < Folded::MOST {
            units[len] = other;
            len += 1;
        }
    };
    let upper = upper(unit);
    add(upper);
    if upper < 0x80 {
        add((upper as u8).to_ascii_lowercase().into());
    } else {
        let from = LOWER.partition_point(|(of, _)| *of < upper);
        let alike = LOWER[from..].iter().take_while(|(of, _)| *of == upper);
        alike.for_each(|(_, lower)| add(*lower));
    }
    Folded {
        units,
        len: len as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The upper case of an upper case is itself, and no more units are alike than
    /// there is room for.
    #[test]
    fn units_are_alike_in_classes() {
        let mut classes: HashMap<u16, Vec<u16>> = HashMap::new();
        for unit in 0..=u16::MAX {
            assert_eq!(upper(upper(unit)), upper(unit), "{unit:x}");
            classes.entry(upper(unit)).or_default().push(unit);
        }
        for class in classes.values() {
            for unit in class {
                let mut alike: Vec<u16> = folded(*unit).iter().copied().collect();
                alike.sort_unstable();
                assert_eq!(alike, *class, "{unit:x}");
            }
        }
    }

    #[test]
    fn ascii_is_alike_to_ascii_only() {
        let alike = |unit: u16| folded(unit).iter().copied().collect::<Vec<_>>();
        assert_eq!(alike(0x6B), [0x6B, 0x4B]);
        assert_eq!(alike(0x17F), [0x17F]);
        assert_eq!(alike(0xE4), [0xE4, 0xC4]);
        assert_eq!(alike(0xDF), [0xDF]);
    }
}
