//! Texts of dates for people in the one locale, en-US: `toLocaleString`, `toLocaleDateString`,
//! `toLocaleTimeString` and `Intl.DateTimeFormat` (ECMA-402 §11, patterns of CLDR).
//!
//! Combinations of fields for which CLDR has no pattern of its own are refused, and so are names
//! of time zones.

use super::zone::Zone;
use super::{Fields, MS_PER_DAY, fields};
use std::fmt::Write as _;

/// What a text has without options for fields.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// Date and time: `toLocaleString`.
    All,
    /// The date, which is always there: `toLocaleDateString`.
    Date,
    /// The time, which is always there: `toLocaleTimeString`.
    Time,
    /// The date: `Intl.DateTimeFormat`.
    Format,
}

/// The options that are read, in the order of their reading.
pub const OPTIONS: [&str; 12] = [
    "weekday",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "hour12",
    "hourCycle",
    "timeZone",
    "dateStyle",
    "timeStyle",
];

/// Options of ECMA-402 that are refused.
pub const REFUSED: [&str; 6] = [
    "era",
    "dayPeriod",
    "fractionalSecondDigits",
    "timeZoneName",
    "calendar",
    "numberingSystem",
];

/// The width of a field.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Width {
    Numeric,
    TwoDigits,
    Long,
    Short,
    Narrow,
}

/// How hours are counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Cycle {
    H11,
    #[default]
    H12,
    H23,
    H24,
}

/// Validated options.
#[derive(Clone, Debug, Default)]
pub struct DateOptions {
    weekday: Option<Width>,
    year: Option<Width>,
    month: Option<Width>,
    day: Option<Width>,
    hour: Option<Width>,
    minute: Option<Width>,
    second: Option<Width>,
    cycle: Cycle,
    zone: Zone,
    /// `full` or `long`: the time follows after `at`.
    is_long: bool,
}

fn width(option: &str, text: &str, is_text: bool, is_number: bool) -> Result<Width, String> {
    Ok(match text {
        "numeric" if is_number => Width::Numeric,
        "2-digit" if is_number => Width::TwoDigits,
        "long" if is_text => Width::Long,
        "short" if is_text => Width::Short,
        "narrow" if is_text => Width::Narrow,
        _ => return Err(format!("Value {text} out of range for the option {option}")),
    })
}

impl DateOptions {
    /// Reads options by their names; `hour12` is `true` or `false`.
    ///
    /// # Errors
    /// The message of a wrong or unsupported value.
    pub fn new(
        defaults: Defaults,
        mut get: impl FnMut(&str) -> Option<String>,
    ) -> Result<DateOptions, String> {
        let mut options = DateOptions::default();
        let mut hour12 = None;
        let (mut date_style, mut time_style) = (None, None);
        for name in OPTIONS {
            let Some(text) = get(name) else { continue };
            match name {
                "weekday" => options.weekday = Some(width(name, &text, true, false)?),
                "year" => options.year = Some(width(name, &text, false, true)?),
                "month" => options.month = Some(width(name, &text, true, true)?),
                "day" => options.day = Some(width(name, &text, false, true)?),
                "hour" => options.hour = Some(width(name, &text, false, true)?),
                "minute" => options.minute = Some(width(name, &text, false, true)?),
                "second" => options.second = Some(width(name, &text, false, true)?),
                "hour12" => hour12 = Some(text == "true"),
                "hourCycle" => {
                    options.cycle = match &*text {
                        "h11" => Cycle::H11,
                        "h12" => Cycle::H12,
                        "h23" => Cycle::H23,
                        "h24" => Cycle::H24,
                        _ => {
                            return Err(format!("Value {text} out of range for the option {name}"));
                        }
                    }
                }
                "timeZone" => {
                    options.zone = Zone::named(&text)
                        .ok_or_else(|| format!("Invalid time zone specified: {text}"))?;
                }
                "dateStyle" => date_style = Some(text),
                _ => time_style = Some(text),
            }
        }
        match hour12 {
            Some(true) => options.cycle = Cycle::H12,
            Some(false) => options.cycle = Cycle::H24,
            None => {}
        }
        match (date_style, time_style) {
            (None, None) => options.add_defaults(defaults),
            (date, time) => options.style(defaults, date.as_deref(), time.as_deref())?,
        }
        options.check()?;
        Ok(options)
    }

    fn has_date(&self) -> bool {
        let fields = [self.weekday, self.year, self.month, self.day];
        fields.iter().any(Option::is_some)
    }

    fn has_time(&self) -> bool {
        [self.hour, self.minute, self.second]
            .iter()
            .any(Option::is_some)
    }

    fn add_defaults(&mut self, defaults: Defaults) {
        let (date, time) = (self.has_date(), self.has_time());
        let (adds_date, adds_time) = match defaults {
            Defaults::All => (!date && !time, !date && !time),
            Defaults::Date => (!date, false),
            Defaults::Time => (false, !time),
            Defaults::Format => (!date && !time, false),
        };
        let numeric = Some(Width::Numeric);
        if adds_date {
            (self.year, self.month, self.day) = (numeric, numeric, numeric);
        }
        if adds_time {
            (self.hour, self.minute, self.second) = (numeric, numeric, numeric);
        }
    }

    fn style(
        &mut self,
        defaults: Defaults,
        date: Option<&str>,
        time: Option<&str>,
    ) -> Result<(), String> {
        let wrong = |name: &str, text: &str| {
            Err(format!("Value {text} out of range for the option {name}"))
        };
        if self.has_date() || self.has_time() {
            return Err("Can't set options of fields when dateStyle or timeStyle is used".into());
        }
        match defaults {
            Defaults::Date if time.is_some() => return Err("Invalid option : timeStyle".into()),
            Defaults::Time if date.is_some() => return Err("Invalid option : dateStyle".into()),
            _ => {}
        }
        if let Some(date) = date {
            let (weekday, month, year) = match date {
                "full" => (Some(Width::Long), Width::Long, Width::Numeric),
                "long" => (None, Width::Long, Width::Numeric),
                "medium" => (None, Width::Short, Width::Numeric),
                "short" => (None, Width::Numeric, Width::TwoDigits),
                _ => return wrong("dateStyle", date),
            };
            self.is_long = month == Width::Long;
            self.weekday = weekday;
            (self.month, self.year) = (Some(month), Some(year));
            self.day = Some(Width::Numeric);
        }
        if let Some(time) = time {
            let numeric = Some(Width::Numeric);
            (self.hour, self.minute) = (numeric, numeric);
            match time {
                "medium" => self.second = numeric,
                "short" => {}
                "full" | "long" => {
                    return Err(format!(
                        "timeStyle {time} names the time zone, which is not supported"
                    ));
                }
                _ => return wrong("timeStyle", time),
            }
        }
        Ok(())
    }

    /// Refuses combinations without a pattern.
    fn check(&self) -> Result<(), String> {
        let is_odd = self.year.is_some() && self.day.is_some() && self.month.is_none()
            || self.hour.is_some() && self.second.is_some() && self.minute.is_none()
            || self.weekday.is_some()
                && (self.year.is_some() || self.month.is_some())
                && !(self.month.is_some() && self.day.is_some());
        match is_odd {
            true => Err("this combination of fields has no pattern".into()),
            false => Ok(()),
        }
    }

    /// The text of a time value; `None` for the invalid date.
    #[must_use]
    pub fn text(&self, ms: f64) -> Option<String> {
        if ms.is_nan() {
            return None;
        }
        let fields = local(ms + self.zone.offset(ms) * 1000.0);
        let (date, time) = (self.date(&fields), self.time(&fields));
        if date.is_empty() || time.is_empty() {
            return Some(date + &time);
        }
        let is_weekday = self.weekday.is_some()
            && self.year.is_none()
            && self.month.is_none()
            && self.day.is_none();
        let is_hour = self.hour.is_some()
            && (self.minute.is_some() || matches!(self.cycle, Cycle::H11 | Cycle::H12));
        let between = match self.month {
            Some(Width::Long) => " at ",
            _ if is_weekday && is_hour => " ",
            _ => ", ",
        };
        Some(date + between + &time)
    }

    fn date(&self, fields: &Fields) -> String {
        let mut out = String::new();
        let is_text = matches!(self.month, Some(Width::Long | Width::Short | Width::Narrow));
        if let Some(month) = self.month {
            out = named(MONTHS, fields.month as usize - 1, month, fields.month);
        }
        if let Some(day) = self.day {
            if !out.is_empty() {
                out.push(if is_text { ' ' } else { '/' });
            }
            push_number(&mut out, fields.day, day == Width::TwoDigits);
        }
        if let Some(year) = self.year {
            if !out.is_empty() {
                out.push_str(match is_text {
                    true if self.day.is_some() => ", ",
                    true => " ",
                    false => "/",
                });
            }
            // Years before the first count back from 1 BC.
            let of_era = match fields.year > 0.0 {
                true => fields.year,
                false => 1.0 - fields.year,
            };
            match year {
                Width::TwoDigits => push_number(&mut out, of_era % 100.0, true),
                _ => push_number(&mut out, of_era, false),
            }
        }
        let Some(width) = self.weekday else {
            return out;
        };
        let weekday = named(DAYS, fields.weekday as usize, width, fields.weekday);
        match (out.is_empty(), self.month.is_some() && self.day.is_some()) {
            (true, _) => weekday,
            (false, true) => format!("{weekday}, {out}"),
            (false, false) => format!("{out} {weekday}"),
        }
    }

    fn time(&self, fields: &Fields) -> String {
        let mut out = String::new();
        if let Some(width) = self.hour {
            let hour = match self.cycle {
                Cycle::H11 => fields.hours % 12.0,
                Cycle::H12 => (fields.hours + 11.0) % 12.0 + 1.0,
                Cycle::H23 => fields.hours,
                Cycle::H24 => (fields.hours + 23.0) % 24.0 + 1.0,
            };
            let is_short = matches!(self.cycle, Cycle::H11 | Cycle::H12);
            push_number(&mut out, hour, width == Width::TwoDigits || !is_short);
        }
        let parts = [(self.minute, fields.minutes), (self.second, fields.seconds)];
        let is_alone =
            self.hour.is_none() && parts.iter().filter(|part| part.0.is_some()).count() < 2;
        for (_, value) in parts.iter().filter(|part| part.0.is_some()) {
            if !out.is_empty() {
                out.push(':');
            }
            push_number(&mut out, *value, !is_alone);
        }
        if self.hour.is_some() && matches!(self.cycle, Cycle::H11 | Cycle::H12) {
            out.push_str(if fields.hours < 12.0 { " AM" } else { " PM" });
        }
        out
    }
}

/// The fields of a local time, which may be beyond the range of time values.
fn local(ms: f64) -> Fields {
    let found = fields(ms);
    if !found.year.is_nan() {
        return found;
    }
    // Only the first and the last day of the range are reached.
    let day = MS_PER_DAY.copysign(ms);
    let near = fields(ms - day);
    Fields {
        day: near.day + day.signum(),
        weekday: (near.weekday + 7.0 + day.signum()) % 7.0,
        ..near
    }
}

fn push_number(out: &mut String, value: f64, two: bool) {
    // Writing to a text cannot fail.
    let _ = match two {
        true => write!(out, "{:02}", value as i64),
        false => write!(out, "{}", value as i64),
    };
}

fn named(names: &[&str], at: usize, width: Width, number: f64) -> String {
    let name = names.get(at).copied().unwrap_or_default();
    let mut out = String::new();
    match width {
        Width::Numeric => push_number(&mut out, number, false),
        Width::TwoDigits => push_number(&mut out, number, true),
        Width::Long => out.push_str(name),
        Width::Short => out.push_str(name.get(..3).unwrap_or(name)),
        Width::Narrow => out.push_str(name.get(..1).unwrap_or(name)),
    }
    out
}

/// `toUTCString` (ECMA-262 §21.4.4.43); `None` for the invalid date.
#[must_use]
pub fn to_utc_string(ms: f64) -> Option<String> {
    let f = fields(ms);
    (!ms.is_nan()).then(|| {
        let (day, month) = (DAYS[f.weekday as usize], MONTHS[f.month as usize - 1]);
        format!(
            "{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
            &day[..3],
            f.day,
            &month[..3],
            year(f.year),
            f.hours,
            f.minutes,
            f.seconds
        )
    })
}

/// `toDateString` (ECMA-262 §21.4.4.35); `None` for the invalid date.
#[must_use]
pub fn to_date_string(ms: f64) -> Option<String> {
    let f = fields(ms);
    (!ms.is_nan()).then(|| {
        let (day, month) = (DAYS[f.weekday as usize], MONTHS[f.month as usize - 1]);
        format!(
            "{} {} {:02} {}",
            &day[..3],
            &month[..3],
            f.day,
            year(f.year)
        )
    })
}

fn year(year: f64) -> String {
    match year < 0.0 {
        true => format!("-{:04}", -year),
        false => format!("{year:04}"),
    }
}

const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: &[&str] = &[
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

#[cfg(test)]
mod tests {
    use super::{DateOptions, Defaults, to_date_string, to_utc_string};

    /// 2024-01-05T09:05:09.123Z, a Friday.
    const TIME: f64 = 1_704_445_509_123.0;

    fn shown(defaults: Defaults, given: &[(&str, &str)]) -> Result<String, String> {
        let get = |name: &str| {
            let found = given.iter().find(|(key, _)| *key == name);
            found.map(|(_, text)| (*text).to_owned())
        };
        DateOptions::new(defaults, get).map(|options| options.text(TIME).unwrap_or_default())
    }

    /// Results of V8.
    #[test]
    fn texts() {
        type Given<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Defaults, Given<'_>, &str)] = &[
            (Defaults::All, &[], "1/5/2024, 9:05:09 AM"),
            (Defaults::Date, &[], "1/5/2024"),
            (Defaults::Time, &[], "9:05:09 AM"),
            (Defaults::Format, &[("hour", "numeric")], "9 AM"),
            (Defaults::Date, &[("hour", "numeric")], "1/5/2024, 9 AM"),
            (Defaults::All, &[("hour12", "false")], "1/5/2024, 09:05:09"),
            (
                Defaults::Date,
                &[
                    ("weekday", "long"),
                    ("month", "long"),
                    ("day", "numeric"),
                    ("year", "numeric"),
                ],
                "Friday, January 5, 2024",
            ),
            (
                Defaults::Date,
                &[("month", "short"), ("day", "2-digit")],
                "Jan 05",
            ),
            (
                Defaults::Date,
                &[("weekday", "short"), ("day", "numeric")],
                "5 Fri",
            ),
            (
                Defaults::Date,
                &[("year", "2-digit"), ("month", "2-digit")],
                "01/24",
            ),
            (
                Defaults::All,
                &[
                    ("dateStyle", "full"),
                    ("timeStyle", "short"),
                    ("timeZone", "America/New_York"),
                ],
                "Friday, January 5, 2024 at 4:05 AM",
            ),
            (
                Defaults::All,
                &[
                    ("dateStyle", "short"),
                    ("timeStyle", "medium"),
                    ("timeZone", "asia/kolkata"),
                ],
                "1/5/24, 2:35:09 PM",
            ),
            (
                Defaults::All,
                &[("weekday", "long"), ("hour", "numeric")],
                "Friday 9 AM",
            ),
            (Defaults::All, &[("minute", "2-digit")], "5"),
        ];
        for (defaults, given, text) in cases {
            assert_eq!(shown(*defaults, given).as_deref(), Ok(*text), "{given:?}");
        }
        assert_eq!(
            to_utc_string(TIME).as_deref(),
            Some("Fri, 05 Jan 2024 09:05:09 GMT")
        );
        assert_eq!(
            to_date_string(-62_200_000_000_000.0).as_deref(),
            Some("Thu Dec 17 -0002")
        );
        assert_eq!(to_utc_string(f64::NAN), None);
    }

    #[test]
    fn wrong_options() {
        for given in [
            ("weekday", "lng"),
            ("month", "x"),
            ("year", "long"),
            ("timeZone", "Foo/Bar"),
            ("timeStyle", "full"),
            ("dateStyle", "tiny"),
            ("hourCycle", "h25"),
        ] {
            assert!(shown(Defaults::All, &[given]).is_err(), "{given:?}");
        }
        assert!(shown(Defaults::Date, &[("timeStyle", "short")]).is_err());
        assert!(shown(Defaults::Time, &[("dateStyle", "short")]).is_err());
        assert!(shown(Defaults::All, &[("dateStyle", "short"), ("day", "numeric")]).is_err());
        assert!(shown(Defaults::All, &[("year", "numeric"), ("day", "numeric")]).is_err());
    }

    #[test]
    fn the_ends_of_the_range() {
        let get = |name: &str| (name == "timeZone").then(|| "Asia/Tokyo".to_owned());
        let options = DateOptions::new(Defaults::All, get).expect("options");
        assert_eq!(
            options.text(8.64e15).as_deref(),
            Some("9/13/275760, 9:00:00 AM")
        );
        assert_eq!(options.text(f64::NAN), None);
    }
}
