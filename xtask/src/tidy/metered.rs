//! Metering rule: code that works for a program takes the meter.
//!
//! Types enforce most of it: only `Copies` makes host copies, and it needs the run's view. A table
//! here covers the rest: functions of ours and of libraries that walk a whole value or text without
//! the meter, and the places of `vm` and `atoms` that may call them, each with the reason why its
//! data is small or paid for. A new place is a diagnostic until it is metered or listed here.

/// Calls that walk a whole value, text or schema without a meter.
const WALKS: [&str; 16] = [
    ".to_json_string(",
    ".write_json(",
    ".encode_utf16(",
    ".held_bytes(",
    ".dispose(",
    "value_bytes(",
    "validate_with(",
    "filter_with(",
    "Schema::parse(",
    "schema::validate(",
    "schema::filter(",
    "schema::from_example(",
    "schema::infer(",
    "doc.to_value(",
    "Document::from_value(",
    "RegexBuilder::new(",
];

/// An exception: file, call of [`WALKS`], number of calls, and reason.
type Entry = (&'static str, &'static str, usize, &'static str);

/// The exceptions.
const ALLOWED: &[Entry] = &[
    (
        "atoms/src/io/cache.rs",
        ".write_json(",
        1,
        "a key that crossed the boundary, in the time of the atom",
    ),
    (
        "atoms/src/io/procedures.rs",
        ".to_json_string(",
        1,
        "a program that crossed the boundary, in the time of the atom",
    ),
    (
        "atoms/src/io/procedures.rs",
        ".encode_utf16(",
        1,
        "the text of that program",
    ),
    (
        "vm/src/regex/parse.rs",
        ".encode_utf16(",
        1,
        "a name in a pattern, which has at most 1,000 units",
    ),
    (
        "vm/src/args.rs",
        ".dispose(",
        1,
        "arguments of a run that does not begin, which the host made",
    ),
    (
        "vm/src/atom.rs",
        ".dispose(",
        1,
        "the host's answer, which the host made",
    ),
    (
        "vm/src/trace.rs",
        "doc.to_value(",
        2,
        "a step's source, for a host that asked for a trace or a price",
    ),
    (
        "vm/src/machine/tracing.rs",
        ".held_bytes(",
        1,
        "an event, which is not larger than the log may be",
    ),
    (
        "vm/src/typed/schema.rs",
        "Schema::parse(",
        1,
        "what a host declares of an atom, once",
    ),
    (
        "vm/src/driver/pool.rs",
        ".dispose(",
        1,
        "the host's arguments of a run that was not let in",
    ),
    (
        "vm/src/run/session.rs",
        ".dispose(",
        1,
        "the host's arguments of a run whose options cannot be",
    ),
    (
        "vm/src/machine/saved.rs",
        ".dispose(",
        1,
        "a store of a snapshot, before the run goes on",
    ),
    (
        "vm/src/trace.rs",
        ".held_bytes(",
        1,
        "an event of a snapshot, which is not larger than that",
    ),
    ("vm/src/describe.rs", ".to_json_string(", 1, "a scalar"),
    (
        "vm/src/trace_lines.rs",
        ".to_json_string(",
        1,
        "a trace, whose values were paid for when they were noted",
    ),
    ("vm/src/trace_lines.rs", ".write_json(", 4, "the same"),
];

/// Whether the rule applies to this file.
fn is_guarded(path: &str) -> bool {
    let product = path.starts_with("vm/src/") || path.starts_with("atoms/src/");
    let name = path.rsplit('/').next().unwrap_or(path);
    let test = name.starts_with("tests") || name.starts_with("testing") || path.contains("/tests/");
    product && !test
}

/// Calls in a file that the table does not list, and stale entries of the table.
pub(crate) fn diagnostics(path: &str, text: &str) -> Vec<String> {
    if !is_guarded(path) {
        return Vec::new();
    }
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let mut diagnostics = Vec::new();
    for walk in WALKS {
        let code = product.lines().filter(|line| {
            let line = line.trim_start();
            !line.starts_with("//") && !line.starts_with("use ")
        });
        let made = code
            .filter(|line| line.contains(walk) && !line.contains(&format!("fn {walk}")))
            .count();
        let allowed = ALLOWED
            .iter()
            .find(|(file, call, ..)| *file == path && *call == walk)
            .map_or(0, |(_, _, times, _)| *times);
        if made > allowed {
            diagnostics.push(format!(
                "{path}: `{walk}` walks a program's data without the meter ({made} of {allowed} \
                 places in xtask/src/tidy/metered.rs)"
            ));
        } else if made < allowed {
            diagnostics.push(format!(
                "{path}: `{walk}` is in xtask/src/tidy/metered.rs {allowed} times and here {made}"
            ));
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_need_an_entry() {
        let code = "fn f(v: &Value) -> usize {\n    v.to_json_string().len()\n}\n";
        assert_eq!(diagnostics("vm/src/x.rs", code).len(), 1);
        assert_eq!(diagnostics("atoms/src/io/x.rs", code).len(), 1);
        assert!(diagnostics("vm/src/x/tests.rs", code).is_empty());
        assert!(diagnostics("core/src/x.rs", code).is_empty());
        let test = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert!(diagnostics("vm/src/x.rs", &test).is_empty());
    }

    #[test]
    fn entries_are_used() {
        let (file, ..) = ALLOWED[0];
        assert_eq!(diagnostics(file, "").len(), 1);
    }

    #[test]
    fn every_entry_names_a_walk() {
        for (file, walk, _, reason) in ALLOWED {
            assert!(WALKS.contains(walk), "{file}: {walk}");
            assert!(!reason.is_empty());
        }
    }
}
