//! The table of time zones agrees with `chrono-tz`; `BLESS=1` writes it.

#![allow(
    clippy::disallowed_methods,
    reason = "the rule against file access is for the product"
)]

use a99_ecma::date::zone::{FIRST, LAST_YEAR, Zone};
use chrono::{DateTime, NaiveDateTime, Offset as _, TimeZone as _};
use chrono_tz::{TZ_VARIANTS, Tz};
use std::collections::HashMap;

const DAY: i64 = 86_400;

/// 1880-01-01; earlier times are local mean times.
const START: i64 = -2_840_140_800;

fn time(seconds: i64) -> NaiveDateTime {
    DateTime::from_timestamp(seconds, 0)
        .expect("in range")
        .naive_utc()
}

/// The end of the table.
fn end() -> i64 {
    let year = LAST_YEAR as i32 + 1;
    let date = chrono::NaiveDate::from_ymd_opt(year, 1, 1).expect("a day");
    date.and_hms_opt(0, 0, 0)
        .expect("midnight")
        .and_utc()
        .timestamp()
}

fn offset(zone: Tz, seconds: i64) -> i32 {
    let offset = zone.offset_from_utc_datetime(&time(seconds));
    offset.fix().local_minus_utc()
}

/// The first offset of a zone, and its changes.
fn changes(zone: Tz) -> (i32, Vec<(i64, i32)>) {
    let first = offset(zone, START);
    let (mut now, mut found) = (first, Vec::new());
    let mut at = START;
    while at < end() {
        let next = at + DAY / 2;
        if offset(zone, next) != now {
            let (mut low, mut high) = (at, next);
            while high - low > 1 {
                let middle = i64::midpoint(low, high);
                match offset(zone, middle) == now {
                    true => low = middle,
                    false => high = middle,
                }
            }
            now = offset(zone, high);
            found.push((high, now));
            at = high;
            continue;
        }
        at = next;
    }
    (first, found)
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn table() -> Vec<u8> {
    let mut zones: Vec<&Tz> = TZ_VARIANTS.iter().collect();
    zones.sort_by_key(|zone| zone.name().to_ascii_lowercase());
    let found: Vec<_> = zones.iter().map(|zone| changes(**zone)).collect();
    // Frequent offsets have small numbers.
    let mut counts: HashMap<i32, usize> = HashMap::new();
    for (first, changes) in &found {
        for offset in changes.iter().map(|change| &change.1).chain([first]) {
            *counts.entry(*offset).or_default() += 1;
        }
    }
    let mut offsets: Vec<i32> = counts.keys().copied().collect();
    offsets.sort_by_key(|offset| (std::cmp::Reverse(counts[offset]), *offset));
    let number_of = |offset: i32| {
        let at = offsets.iter().position(|known| *known == offset);
        at.expect("a known offset") as u64
    };
    let mut lists: Vec<Vec<u8>> = Vec::new();
    for (first, changes) in found {
        let mut out = Vec::new();
        number(&mut out, number_of(first));
        number(&mut out, changes.len() as u64);
        let mut last = FIRST;
        for (at, offset) in changes {
            let since = (at - last) as u64;
            number(
                &mut out,
                if since.is_multiple_of(900) {
                    since / 900 * 2
                } else {
                    since * 2 + 1
                },
            );
            number(&mut out, number_of(offset));
            last = at;
        }
        lists.push(out);
    }
    let head = 4 + 4 * offsets.len();
    let (mut rows, mut body) = (Vec::new(), Vec::new());
    let start = head + 9 * zones.len();
    let mut places: HashMap<&[u8], u32> = HashMap::new();
    for (zone, list) in zones.iter().zip(&lists) {
        rows.extend(((start + body.len()) as u32).to_le_bytes());
        rows.push(zone.name().len() as u8);
        body.extend(zone.name().bytes());
        let place = *places.entry(list).or_insert_with(|| {
            let at = (start + body.len()) as u32;
            body.extend(list);
            at
        });
        rows.extend(place.to_le_bytes());
    }
    let mut out = (offsets.len() as u16).to_le_bytes().to_vec();
    out.extend((zones.len() as u16).to_le_bytes());
    out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    out.extend(rows);
    out.extend(body);
    out
}

#[test]
fn the_table_is_that_of_chrono_tz() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/date/zones.bin");
    let table = table();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &table).expect("written");
    }
    let is_same = std::fs::read(path).expect("the table") == table;
    assert!(
        is_same,
        "`BLESS=1 cargo test -p a99-ecma --test zones` writes the table again"
    );
}

#[test]
fn offsets_are_those_of_chrono_tz() {
    for zone in TZ_VARIANTS {
        let ours = Zone::named(zone.name()).expect("a zone");
        for step in 0..4_000 {
            let seconds = START + step * 1_386_991;
            let expected = f64::from(offset(zone, seconds));
            assert_eq!(
                ours.offset(seconds as f64 * 1000.0),
                expected,
                "{zone} {seconds}"
            );
        }
    }
}
