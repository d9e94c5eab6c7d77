//! Rules for agents: timers, and SQL statements on an agent's tables.
//!
//! Codes: `lint.missing_input`, `lint.wrong_value`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Delays in seconds that authors commonly write.
const SECONDS: &[f64] = &[
    5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 86_400.0,
];

/// Common abbreviations of time zones, with an IANA zone that has the same clock.
#[rustfmt::skip]
const ZONES: &[(&[&str], &str)] = &[
    (&["PST", "PDT", "PT", "PACIFIC"], "America/Los_Angeles"),
    (&["MDT", "MT", "MOUNTAIN"], "America/Denver"),
    (&["CST", "CDT", "CT", "CENTRAL"], "America/Chicago"),
    (&["EDT", "ET", "EASTERN"], "America/New_York"),
    (&["BST", "LONDON"], "Europe/London"),
    (&["CEST", "BERLIN", "PARIS"], "Europe/Berlin"),
    (&["IST", "INDIA"], "Asia/Kolkata"),
    (&["JST", "TOKYO"], "Asia/Tokyo"),
    (&["AEST", "AEDT", "SYDNEY"], "Australia/Sydney"),
    (&["Z", "UTC+0", "GMT+0", "UTC+00:00", "+00:00"], "UTC"),
];

/// Range of each field of a cron expression, from the minute on.
const FIELDS: [(&str, u32, u32); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
];

/// The fault of a cron expression, and its correction.
fn cron_fault(cron: &str) -> Option<(String, String)> {
    const FORM: &str = "five fields are minute, hour, day, month and day of the week, as in \
                        `\"0 9 * * MON-FRI\"`";
    if cron.starts_with('@') {
        let known = [
            "@yearly",
            "@annually",
            "@monthly",
            "@weekly",
            "@daily",
            "@hourly",
        ];
        let fits = known.iter().any(|name| cron.eq_ignore_ascii_case(name));
        let message = "there is no such cron expression".to_owned();
        return (!fits).then(|| (message, FORM.to_owned()));
    }
    let mut fields: Vec<&str> = cron.split_whitespace().collect();
    let signs = |c: char| c.is_ascii_alphanumeric() || "*/,-?#+".contains(c);
    let is_cron = (5..=7).contains(&fields.len())
        && fields.iter().all(|field| {
            field.chars().all(signs)
                && field.contains(|c: char| c.is_ascii_digit() || "*?".contains(c))
                || is_names(field)
        });
    if !is_cron {
        let message = format!("this is no cron expression: it has {} fields", fields.len());
        return Some((message, spoken(cron).unwrap_or_else(|| FORM.to_owned())));
    }
    if fields.len() > 5 {
        fields.remove(0);
    }
    for (field, (name, least, most)) in fields.iter().zip(FIELDS) {
        for part in field.split(',') {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let mut numbers = range.split('-').filter_map(|n| n.parse::<u32>().ok());
            if let Some(n) = numbers.find(|n| !(least..=most).contains(n)) {
                let message = format!("no {name} is {n}: they are {least} to {most}");
                return Some((message, FORM.to_owned()));
            }
            if step == "0" {
                let message = format!("a step of 0 never comes in the {name}s");
                return Some((message, "write a step from 1 on, as in `*/5`".to_owned()));
            }
        }
    }
    None
}

/// Whether a field consists of names of months or days.
fn is_names(field: &str) -> bool {
    field.split([',', '-']).all(|name| {
        (name.len() == 3 || name.len() == 4 && name.ends_with('L'))
            && name.chars().all(|c| c.is_ascii_alphabetic())
    }) || field == "L"
}

/// The cron expression for a time in words.
fn spoken(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let cron = match lower.as_str() {
        "hourly" | "every hour" => "0 * * * *".to_owned(),
        "daily" | "every day" | "midnight" => "0 0 * * *".to_owned(),
        "weekly" | "every week" => "0 0 * * 0".to_owned(),
        "monthly" | "every month" => "0 0 1 * *".to_owned(),
        "every minute" => "* * * * *".to_owned(),
        _ => {
            let rest = lower
                .strip_prefix("every ")
                .or_else(|| lower.strip_prefix("rate("))?;
            let mut words = rest.trim_end_matches(')').split_whitespace();
            let n: u32 = words.next()?.parse().ok()?;
            match words.next()? {
                "minute" | "minutes" | "min" | "mins" => format!("*/{n} * * * *"),
                "hour" | "hours" => format!("0 */{n} * * *"),
                "day" | "days" => format!("0 0 */{n} * *"),
                _ => return None,
            }
        }
    };
    Some(format!("write `\"cron\": \"{cron}\"`"))
}

/// The first word of a statement, and the parameters `?` in it outside of texts.
fn statement(sql: &str) -> (String, usize, bool) {
    let first: String = sql
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let (mut quote, mut count, mut plain) = (None, 0, true);
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '?') => {
                count += 1;
                // `?1` may occur several times.
                plain &= !chars.peek().is_some_and(char::is_ascii_digit);
            }
            (None, ':' | '@' | '$') => {
                plain &= !chars.peek().is_some_and(char::is_ascii_alphabetic);
            }
            (None, '-') if chars.peek() == Some(&'-') => plain = false,
            _ => {}
        }
    }
    (first.to_ascii_lowercase(), count, plain)
}

impl Rules<'_, '_> {
    /// Checks an `agentSetTimer`: exactly one of `at`, `after` and `cron` sets its due time.
    pub(super) fn lint_timer(&mut self, step: NodeId) {
        let doc = self.doc;
        let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
        let whens = ["at", "after", "cron"].map(given);
        let mut there = whens.iter().flatten();
        // An unknown key has its own finding and may be the missing input.
        let others = doc.members(step).any(|(key, _)| {
            !matches!(
                key,
                b"op"
                    | b"name"
                    | b"at"
                    | b"after"
                    | b"cron"
                    | b"zone"
                    | b"payload"
                    | b"result"
                    | b"resultConst"
            )
        });
        match (there.next(), there.next()) {
            (None, _) if !others => {
                let message = "nothing says when the timer is due";
                let help = "add `\"after\": 60000`, milliseconds from now, `at` or `cron`";
                self.found(codes::MISSING_INPUT, step, message, "agentSetTimer", help);
            }
            (Some(_), Some(second)) => {
                let message =
                    "one of `at`, `after` and `cron` says when a timer is due: two are refused";
                let help = "keep one of them; `cron` comes again and again";
                self.found(codes::WRONG_VALUE, *second, message, "", help);
            }
            _ => {}
        }
        if let Some(node) = whens[1]
            && let Kind::Number(n) = doc.kind(node)
        {
            if n < 0.0 || n.fract() != 0.0 {
                let message = format!("`after` cannot be {n}");
                let help = "write milliseconds, a whole number from 0 on";
                self.found(codes::WRONG_VALUE, node, message, "", help);
            } else if SECONDS.contains(&n) {
                let message = format!("`after` is in milliseconds: this is {} seconds", n / 1000.0);
                let help = format!("for {n} seconds write {}", n * 1000.0);
                self.found(codes::WRONG_VALUE, node, message, "", help);
            }
        }
        if let Some(node) = whens[0]
            && let Kind::Number(n) = doc.kind(node)
            && n < 1e11
        {
            let message = "`at` is milliseconds since 1970, and this time is long over";
            let help = match n >= 1e8 {
                true => format!("for seconds since 1970 write {}", n * 1000.0),
                false => "for a time from now write `after`".to_owned(),
            };
            self.found(codes::WRONG_VALUE, node, message, "", help);
        }
        if let Some((node, cron)) = self.plain(step, "cron")
            && let Some((message, help)) = cron_fault(&cron)
        {
            self.found(codes::WRONG_VALUE, node, message, &cron, help);
        }
        if let Some((node, zone)) = self.plain(step, "zone") {
            let upper = zone.to_ascii_uppercase();
            let row = ZONES.iter().find(|row| row.0.contains(&&*upper));
            let offset = upper.trim_start_matches("UTC").trim_start_matches("GMT");
            let is_offset = offset.starts_with(['+', '-']);
            if row.is_none() && !is_offset && !zone.contains(' ') {
                return;
            }
            let message = "a time zone has its name of the IANA's";
            let help = match row {
                Some(row) => format!("write `\"{}\"`", row.1),
                None if zone.contains('/') => {
                    format!("write `\"{}\"`", excerpt(&zone.replace(' ', "_")))
                }
                None => {
                    "write a zone such as `\"Europe/Berlin\"`, or leave it out for UTC".to_owned()
                }
            };
            self.found(codes::WRONG_VALUE, node, message, &zone, help);
        }
    }

    /// Reports an `agentSend` to several agents in one text.
    pub(super) fn lint_addressees(&mut self, step: NodeId) {
        let Some((node, at)) = self.plain(step, "at") else {
            return;
        };
        if !at.contains([',', ';']) {
            return;
        }
        let names = at
            .split([',', ';'])
            .map(|name| format!("\"{}\"", name.trim()));
        let names = names.collect::<Vec<_>>().join(", ");
        let message = "this is one handle: several stand in a list";
        let help = format!("write `[{}]`", excerpt(&names));
        self.found(codes::WRONG_VALUE, node, message, &at, help);
    }

    /// Whether a text is the SQL statement of a step.
    pub(super) fn is_sql(&self, node: NodeId) -> bool {
        let doc = self.doc;
        let step = doc.parent(node);
        step.is_some_and(|step| doc.get(step, "sql") == Some(node) && doc.get(step, "op").is_some())
    }

    /// Reports a statement on the agent's tables that needs another atom or other parameters.
    pub(super) fn lint_sql(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let Some((node, sql)) = self.plain(step, "sql") else {
            return;
        };
        let (first, count, plain) = statement(&sql);
        let changes = matches!(first.as_str(), "insert" | "update" | "delete" | "replace");
        let returns = sql.to_ascii_lowercase().contains("returning");
        let asks = matches!(first.as_str(), "select" | "values");
        let is_query = matches!(op, "agentStorageGet" | "agentStorageQuery");
        let other = match op {
            _ if is_query && changes && !returns => "agentStorageRun",
            "agentStorageRun" | "agentStorageExec" if asks => "agentStorageQuery",
            "agentStorageExec" if count > 0 && plain => "agentStorageRun",
            _ => "",
        };
        if !other.is_empty() {
            let message = match (op, asks) {
                (_, true) => format!("`{op}` gives no rows"),
                ("agentStorageExec", _) => format!("`{op}` takes no parameters"),
                _ => format!("this statement gives no rows: `{op}` asks for some"),
            };
            let help = format!("use `{other} {{sql, params, result}}`");
            return self.found(codes::WRONG_VALUE, node, message, &first, help);
        }
        let params = doc
            .get(step, "params")
            .filter(|n| doc.kind(*n) != Kind::Null);
        let given = match params {
            None => 0,
            Some(list) if doc.kind(list) == Kind::Array => doc.len(list),
            Some(_) => return,
        };
        if !plain || given == count || op == "agentStorageExec" {
            return;
        }
        let message =
            format!("the statement has {count} parameters `?`, and `params` {given} values");
        let help = match count > given {
            true => "give a value for each, `\"params\": [...]`, in their order",
            false => "write `?` in the statement where a value is to stand",
        };
        self.found(
            codes::WRONG_VALUE,
            params.unwrap_or(node),
            message,
            "params",
            help,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{cron_fault, spoken, statement};

    #[test]
    fn cron_expressions() {
        for cron in [
            "* * * * *",
            "0 9 * * MON-FRI",
            "*/10 * * * * *",
            "0 0 1,15 * 1-5",
            "@daily",
            "0 12 L * *",
            "0 0 * * 5#2",
            "15 10 ? * FRIL",
        ] {
            assert_eq!(cron_fault(cron), None, "{cron}");
        }
        for cron in [
            "every 5 minutes",
            "60 * * * *",
            "0 25 * * *",
            "* * * *",
            "*/0 * * * *",
            "@noon",
        ] {
            assert!(cron_fault(cron).is_some(), "{cron}");
        }
        assert_eq!(
            spoken("every 5 minutes").as_deref(),
            Some("write `\"cron\": \"*/5 * * * *\"`")
        );
    }

    #[test]
    fn parameters_of_statements() {
        for (sql, wanted) in [
            (
                "SELECT * FROM t WHERE a = ? AND b = '?'",
                ("select", 1, true),
            ),
            ("insert into t values (?, ?)", ("insert", 2, true)),
            ("SELECT ?1, ?1", ("select", 2, false)),
            ("SELECT :name", ("select", 0, false)),
        ] {
            let (first, count, plain) = statement(sql);
            assert_eq!((first.as_str(), count, plain), wanted, "{sql}");
        }
    }
}
