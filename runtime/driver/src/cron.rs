//! Cron expressions: the next due time of a recurring timer.

use crate::error::{AgentError, codes};
use a99_runtime_engine::Millis;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds};

/// Maximum bytes of an expression.
const MAX_BYTES: usize = 256;

fn refused(cron: &str, message: &str) -> AgentError {
    let shown: String = cron.chars().take(60).collect();
    let text = format!(
        "the cron expression {shown:?} is none: {message}; five fields are minute, hour, day, \
         month and day of the week, as in \"0 9 * * MON-FRI\""
    );
    AgentError::new(codes::BAD_TIMER, text).fatal()
}

/// The first occurrence after a moment, in an IANA time zone or UTC. When clocks go forward, an
/// occurrence in the skipped hour comes right after it. When clocks go back, an occurrence
/// comes once.
///
/// # Errors
/// `timer.bad` for an invalid expression or an unknown time zone.
pub fn next(cron: &str, zone: Option<&str>, after: Millis) -> Result<Millis, AgentError> {
    if cron.len() > MAX_BYTES {
        return Err(refused(cron, "it is too long"));
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).build();
    let parsed = parser
        .parse(cron)
        .map_err(|error| refused(cron, &error.to_string()))?;
    let zone: Tz = zone.unwrap_or("UTC").parse().map_err(|_| {
        let shown: String = zone.unwrap_or_default().chars().take(40).collect();
        let text = format!("no time zone is called {shown:?}; one is \"Europe/Berlin\"");
        AgentError::new(codes::BAD_TIMER, text).fatal()
    })?;
    let moment = i64::try_from(after)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_millis);
    let moment = moment.ok_or_else(|| refused(cron, "the present is out of range"))?;
    let next = parsed
        .find_next_occurrence(&moment.with_timezone(&zone), false)
        .map_err(|error| refused(cron, &error.to_string()))?;
    Ok(Millis::try_from(next.timestamp_millis()).unwrap_or(Millis::MAX))
}

#[cfg(test)]
mod tests {
    use super::next;
    use chrono::DateTime;

    fn at(text: &str) -> u64 {
        let time = DateTime::parse_from_rfc3339(text).expect("a time");
        u64::try_from(time.timestamp_millis()).expect("after 1970")
    }

    #[test]
    fn occurrences_follow_the_zone() {
        let after = at("2026-11-26T12:00:00Z");
        assert_eq!(
            next("0 9 * * *", None, after),
            Ok(at("2026-11-27T09:00:00Z"))
        );
        let berlin = next("0 9 * * *", Some("Europe/Berlin"), after);
        assert_eq!(berlin, Ok(at("2026-11-27T08:00:00Z")));
        assert_eq!(next("*/10 * * * * *", None, after), Ok(after + 10_000));
    }

    #[test]
    fn an_hour_that_is_left_out_is_not_forgotten() {
        // On 28 March 2027 clocks in Berlin go from 2:00 to 3:00.
        let before = at("2027-03-28T00:30:00Z");
        let due = next("30 2 * * *", Some("Europe/Berlin"), before).expect("an occurrence");
        assert!(
            due >= at("2027-03-28T01:00:00Z") && due <= at("2027-03-29T00:30:00Z"),
            "{due}"
        );
    }

    #[test]
    fn what_is_none_is_refused_with_a_reason() {
        for (cron, zone) in [
            ("", None),
            ("61 * * * *", None),
            ("* * *", None),
            ("0 9 * * *", Some("Moon/Base")),
        ] {
            let error = next(cron, zone, 0).expect_err(cron);
            assert_eq!(
                (error.code(), error.is_final()),
                ("timer.bad", true),
                "{cron}"
            );
        }
        assert!(next(&"1,".repeat(300), None, 0).is_err());
        // It parses, and never comes.
        assert!(next("0 0 31 2 *", None, 0).is_err());
    }
}
