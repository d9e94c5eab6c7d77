//! Name filter: a 24-bit Bloom filter of an object's member names. Most lookups in a step are for
//! absent members; the filter answers them without a search.

/// Bits in a filter.
const BITS: u32 = 24;

/// The bit of a name. The factors separate the names that programs commonly use.
#[inline]
pub(super) fn of(name: &[u8]) -> u32 {
    let first = u32::from(name.first().copied().unwrap_or_default());
    let last = u32::from(name.last().copied().unwrap_or_default());
    // Only the low byte counts, so the truncating cast of the length does no harm.
    let mixed = (first * 47 + last * 39).wrapping_add((name.len() as u32).wrapping_mul(7));
    1 << (((mixed & 0xFF) * BITS) >> 8)
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::json::{Document, Limits};

    #[test]
    fn a_name_has_one_of_24_bits() {
        for len in 0..300 {
            for byte in 0..=255 {
                let bit = of(&vec![byte; len]);
                assert!(bit.is_power_of_two() && bit < 1 << 24, "{byte} {len} times");
            }
        }
    }

    #[test]
    fn members_are_found_among_few_and_many() {
        for count in [0, 1, 5, 12, 13, 32, 33, 300] {
            let members: Vec<String> = (0..count).map(|at| format!("\"k{at}\": {at}")).collect();
            let text = format!("{{{}}}", members.join(", "));
            let read = Document::parse(text, &Limits::default()).expect("a document");
            let made = Document::from_value(&read.to_value(read.root()));
            for doc in [read, made] {
                for at in 0..count + 100 {
                    let found = doc.get(doc.root(), &format!("k{at}"));
                    let number = found.map(|node| doc.to_value(node).as_f64());
                    let wanted = (at < count).then_some(Some(f64::from(at)));
                    assert_eq!(number, wanted, "k{at} of {count}");
                }
            }
        }
    }
}
