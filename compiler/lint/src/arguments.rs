//! Rules for arguments: those that a function or method ignores, misses or cannot use.
//!
//! Codes: `lint.constant_condition`, `lint.wrong_arguments`.

use super::Rules;
use super::kinds::Holds;
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins::{self, FUNCTIONS, Takes};
use a99_core::diag::{codes, excerpt};

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

pub(super) fn counted(n: usize) -> String {
    match n {
        0 => "no argument".to_owned(),
        1 => "one argument".to_owned(),
        n => format!("{n} arguments"),
    }
}

/// Help for a date in a national format, or in words.
fn date_help(text: &str) -> Option<String> {
    let text = text.trim();
    let word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    if matches!(text.to_ascii_lowercase().as_str(), "now" | "today") {
        return Some("write `Date()` for now".to_owned());
    }
    if word && !text.contains(' ') {
        return Some("write a date, as in `2024-12-31` or `2024-12-31T08:00:00Z`".to_owned());
    }
    // `5th`: no format has ordinals.
    let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| {
        text.split([' ', ','])
            .filter_map(|word| word.strip_suffix(end))
            .any(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
    });
    if ordinal {
        return Some("write the date with numbers, as in `2024-12-31`".to_owned());
    }
    let separator = if text.contains('/') { '/' } else { '.' };
    let parts: Vec<&str> = text.split(separator).collect();
    let numbers: Vec<u32> = parts.iter().map_while(|part| part.parse().ok()).collect();
    match numbers[..] {
        // `1/2/2026` is the second of January.
        [day, _, year] if separator == '/' && (day <= 12 || year < 1000) => None,
        [day, month, year] if parts.len() == 3 && day <= 31 && month <= 12 && year >= 1000 => Some(
            format!("write the year first: `{year:04}-{month:02}-{day:02}`"),
        ),
        _ => None,
    }
}

impl<'a> Rules<'_, 'a> {
    /// Checks a call of a function without a namespace.
    pub(super) fn lint_call_arguments(&mut self, ir: &Ir<'a>, callee: &[u8], args: &[Ir<'a>]) {
        self.lint_count(ir, "", &Self::shown(callee), args);
        if callee == b"Date" {
            self.lint_seconds(args);
        }
        if let (b"isNaN", [first]) = (callee, args)
            && matches!(
                first.kind,
                IrKind::Call {
                    callee: b"Date",
                    ..
                }
            )
            && !self.is_source()
        {
            let message =
                "a date is no number, so this always holds; of what is no date `Date` fails";
            let help = "write `isNaN(Date.parse(x))`";
            self.found(codes::CONSTANT_CONDITION, ir.at, message, "", help);
        }
        if let (b"parseInt", [_, base]) = (callee, args)
            && let IrKind::Lit(Lit::Number(n)) = base.kind
            && n != 0.0
            && !(2.0..=36.0).contains(&n)
        {
            let message = "a base is from 2 to 36: with another one this gives `NaN`";
            let help = "write 10, or leave it out";
            self.found(codes::WRONG_ARGUMENTS, base.at, message, "", help);
        }
        if let (b"Date", [first]) = (callee, args) {
            self.lint_no_such_day(first);
        }
        if let (b"Date", Some(first)) = (callee, args.first())
            && let IrKind::Lit(Lit::Text(text)) = first.kind
            && let Some(help) = date_help(&Self::shown(text))
        {
            let message = "this text is no date, so the call fails";
            let shown = Self::shown(text);
            self.found(codes::WRONG_ARGUMENTS, first.at, message, &shown, help);
        }
    }

    /// Checks a call of a function of a namespace.
    pub(super) fn lint_namespace_arguments(
        &mut self,
        ir: &Ir<'a>,
        space: &str,
        name: &str,
        args: &[Ir<'a>],
    ) {
        if let ("Date", "parse" | "tryParse", [first]) = (space, name, args) {
            self.lint_no_such_day(first);
        }
        if !self.lint_count(ir, space, name, args) && space == "Math" {
            self.lint_numbers(name, args);
        }
    }

    /// Reports arguments of a method that takes none.
    pub(super) fn lint_bare_method(&mut self, name: &[u8], args: &[Ir<'a>]) {
        let shown = Self::shown(name);
        if let (b"substr" | b"substring" | b"slice", Some(extra)) = (name, args.get(2)) {
            let message = format!("`{shown}` takes two arguments, the rest is ignored");
            self.found(codes::WRONG_ARGUMENTS, extra.at, message, "", "remove it");
            return;
        }
        let takes = builtins::method_row(&shown).and_then(|row| row.takes);
        let Some(extra) = args
            .first()
            .filter(|_| takes.is_some_and(|takes| takes.most == 0))
        else {
            return;
        };
        let message = format!("`{shown}` takes no argument, so this is ignored");
        let help = match shown.as_str() {
            "trim" | "trimStart" | "trimEnd" => {
                "it takes white space away; for other signs use the atom `regexReplace {text, \
                 pattern, replacement, all, result}`, or `replaceAll`"
            }
            _ => "remove it",
        };
        self.found(codes::WRONG_ARGUMENTS, extra.at, message, "", help);
    }

    /// Reports a call with more or fewer arguments than the function takes; returns whether it did.
    fn lint_count(&mut self, ir: &Ir<'a>, space: &str, name: &str, args: &[Ir<'a>]) -> bool {
        let row = builtins::function(space, name).map(|at| &FUNCTIONS[usize::from(at)]);
        let Some(Takes { least, most, .. }) = row.and_then(|row| row.takes) else {
            return false;
        };
        let full = match space {
            "" => name.to_owned(),
            _ => format!("{space}.{name}"),
        };
        if let Some(extra) = args.get(most) {
            let what = match space {
                "Math" if most == 1 => "one number".to_owned(),
                _ => counted(most),
            };
            let message = format!("`{full}` takes {what}, the rest is ignored");
            let help = match (space, name) {
                ("Math", "round" | "floor" | "ceil" | "trunc") => {
                    format!("write `x.toFixed(2)` for a text, or `{full}(x * 100) / 100`")
                }
                ("", "Date") => "write a text: `Date('2024-01-31')`".to_owned(),
                ("Math", "random") => {
                    "remove it; `random {min, max, format, result}` takes bounds".to_owned()
                }
                ("", "Set") => "write a list of them".to_owned(),
                ("Math", "log") => "write `Math.log(x) / Math.log(base)`".to_owned(),
                ("" | "Number", "parseFloat") => {
                    "remove it; `parseInt` takes a base, `toFixed` makes decimals".to_owned()
                }
                _ => "remove it".to_owned(),
            };
            self.found(codes::WRONG_ARGUMENTS, extra.at, message, "", help);
            return true;
        }
        if args.len() >= least {
            return false;
        }
        let message = match space {
            "Math" if least == 1 => format!("`{full}` needs a number, without one it gives `NaN`"),
            _ => format!("`{full}` needs {}", counted(least)),
        };
        let help = match least {
            1 => format!("write `{full}(x)`"),
            _ => format!("write `{full}(x, y)`"),
        };
        self.found(codes::WRONG_ARGUMENTS, ir.at, message, name, help);
        true
    }

    /// Reports arguments of `Math` functions that are not numbers.
    fn lint_numbers(&mut self, name: &str, args: &[Ir<'a>]) {
        if builtins::function("Math", name).is_none() {
            return;
        }
        for arg in args {
            let holds = self.holds_of(arg, DEPTH);
            if !matches!(
                holds,
                Holds::List(_) | Holds::Object(_) | Holds::Text | Holds::OneOf(_)
            ) {
                continue;
            }
            let called = self.called(arg);
            let message = format!(
                "`Math.{name}` takes numbers, and `{}` is {}",
                excerpt(&called),
                holds.words()
            );
            let help = match holds {
                Holds::List(_) if self.is_source() => "take the list apart: `Math.max(...xs)`",
                Holds::List(_) => {
                    "over a list use `reduce {items, as, accumulator, initial, steps}`"
                }
                _ => "give it numbers",
            };
            return self.found(codes::WRONG_ARGUMENTS, arg.at, message, &called, help);
        }
    }
}
