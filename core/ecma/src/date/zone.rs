//! Offsets of time zones, from a table of the IANA database.
//!
//! The table is a file that a test of `runtime/driver` writes and checks. It has the changes of
//! each zone up to the end of 2055; later years have the changes of one of the last 28 years that
//! begins on the same weekday and is as long.

use super::{Fields, fields, from_fields};

/// The table: counts of offsets and zones (two bytes each, little endian as all numbers), the
/// offsets in seconds (four bytes), and for each zone the start and length of its name (four
/// bytes, one) and the start of its changes (four). Zones are in the order of their lower-case
/// names. Changes are the number of the first offset, the count, and for each the seconds since the
/// one before, and the number of the new offset. These numbers are groups of seven bits, the lowest
/// first; seconds are doubled and one is added, or are quarters of an hour, doubled.
const TABLE: &[u8] = include_bytes!("zones.bin");

/// Seconds from which the first change of a zone counts.
pub const FIRST: i64 = -8_589_934_592;

/// The last year in the table.
pub const LAST_YEAR: f64 = 2055.0;

/// A time zone; the default is UTC.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Start of its changes in the table; `None` for UTC.
    changes: Option<u32>,
}

fn u16_at(at: usize) -> usize {
    let bytes = TABLE.get(at..at + 2).unwrap_or(&[0; 2]);
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8
}

fn u32_at(at: usize) -> u32 {
    (u16_at(at) | u16_at(at + 2) << 16) as u32
}

/// Reads groups of seven bits.
fn number(at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = TABLE.get(*at).copied().unwrap_or(0);
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 || shift > 56 {
            return value;
        }
    }
}

impl Zone {
    /// The zone of this name of the IANA database, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Zone> {
        const ZONE: usize = 9;
        let name = name.to_ascii_lowercase();
        if matches!(&*name, "utc" | "gmt" | "etc/utc") {
            return Some(Zone::default());
        }
        let zones = 4 + 4 * u16_at(0);
        let name_of = |zone: usize| {
            let row = zones + zone * ZONE;
            let start = u32_at(row) as usize;
            let len = usize::from(*TABLE.get(row + 4)?);
            str::from_utf8(TABLE.get(start..start + len)?).ok()
        };
        let (mut low, mut high) = (0, u16_at(2));
        while low < high {
            let middle = usize::midpoint(low, high);
            let found = name_of(middle)?.to_ascii_lowercase();
            match found.cmp(&name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let changes = Some(u32_at(zones + middle * ZONE + 5));
                    return Some(Zone { changes });
                }
            }
        }
        None
    }

    /// Seconds that local time is ahead of UTC at a time value in milliseconds.
    #[must_use]
    pub fn offset(self, ms: f64) -> f64 {
        let Some(changes) = self.changes else {
            return 0.0;
        };
        let wanted = (in_table(ms) / 1000.0).floor() as i64;
        let mut at = changes as usize;
        let mut offset = number(&mut at);
        let mut time = FIRST;
        for _ in 0..number(&mut at) {
            let since = number(&mut at);
            time += match since % 2 {
                0 => (since / 2 * 900) as i64,
                _ => (since / 2) as i64,
            };
            if time > wanted {
                break;
            }
            offset = number(&mut at);
        }
        f64::from(u32_at(4 + 4 * offset as usize) as i32)
    }
}

/// A time at which the offset is the same, at the latest in the last year of the table.
fn in_table(ms: f64) -> f64 {
    let found = fields(ms);
    if found.year.is_nan() || found.year <= LAST_YEAR {
        return ms;
    }
    let start = |year: f64| from_fields(year, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0);
    let kind = |year: f64| {
        let Fields { weekday, .. } = fields(start(year));
        (weekday, start(year + 1.0) - start(year))
    };
    let wanted = kind(found.year);
    let mut years = (0..28).map(|back| LAST_YEAR - f64::from(back));
    let year = years.find(|year| kind(*year) == wanted);
    ms - start(found.year) + start(year.unwrap_or(LAST_YEAR))
}

#[cfg(test)]
mod tests {
    use super::Zone;
    use crate::date::parse;

    fn hours(zone: &str, time: &str) -> f64 {
        let ms = parse(time.as_bytes()).expect("a time");
        Zone::named(zone).expect("a zone").offset(ms) / 3600.0
    }

    #[test]
    fn offsets() {
        for (zone, time, expected) in [
            ("UTC", "2024-07-01T00:00:00Z", 0.0),
            ("America/New_York", "2024-03-10T06:59:59Z", -5.0),
            ("America/New_York", "2024-03-10T07:00:00Z", -4.0),
            ("america/new_york", "2024-11-03T05:59:59Z", -4.0),
            ("America/New_York", "2024-11-03T06:00:00Z", -5.0),
            ("Europe/Berlin", "1975-07-01T00:00:00Z", 1.0),
            ("Europe/Berlin", "2124-07-01T00:00:00Z", 2.0),
            ("Europe/Berlin", "2124-12-01T00:00:00Z", 1.0),
            ("Asia/Kolkata", "2024-07-01T00:00:00Z", 5.5),
            ("Asia/Kathmandu", "2024-07-01T00:00:00Z", 5.75),
            ("Australia/Lord_Howe", "2024-07-01T00:00:00Z", 10.5),
            ("Etc/GMT+5", "2024-07-01T00:00:00Z", -5.0),
        ] {
            assert_eq!(hours(zone, time), expected, "{zone} {time}");
        }
        assert_eq!(Zone::named("Foo/Bar"), None);
        assert_eq!(Zone::named("+02:00"), None);
        assert_eq!(Zone::named(""), None);
    }
}
