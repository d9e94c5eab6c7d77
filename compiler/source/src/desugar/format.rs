//! Comparisons of texts by options, and numbers in compact notation: functions in the subset that
//! stand behind a source.

use oxc_ast::ast::{Argument, Expression, ObjectExpression, ObjectPropertyKind};

/// Orders the numbers in a text by their value: their digits follow the count of digits.
const NUMBERS: &str = "(text) {
  let key = ''
  let run = ''
  for (const c of [...text, '']) {
    if (c >= '0' && c <= '9') {
      run = run === '0' ? c : run + c
      continue
    }
    if (run !== '') {
      let size = run.length
      while (size > 8) {
        key += '9'
        size -= 8
      }
      key += size + run
      run = ''
    }
    key += c
  }
  return key
}";

const NO_ACCENTS: &str = "(text) {
  let key = ''
  for (const c of text.normalize('NFD')) {
    if (c < '\\u0300' || c > '\\u036f') key += c
  }
  return key
}";

/// ECMA-402: no fraction digits, but two significant digits; halves round away from zero.
const COMPACT: &str = "(given) {
  const value = Number(given)
  if (!Number.isFinite(value)) return value.toLocaleString('en-US')
  const size = Math.abs(value)
  let power = 0
  let rest = size
  if (size >= 1000) {
    while (power < 4 && Math.round(size / 1000 ** power) >= 1000) power++
    const unit = 1000 ** power
    rest = size / unit < 9.95 ? Math.round(size / (unit / 10)) / 10 : Math.round(size / unit)
  } else if (size >= 99.5) {
    rest = Math.round(size)
  } else if (size >= 0.000001) {
    const digits = 1 - Math.floor(Math.log10(size))
    rest = Number(`${Math.round(Number(`${size}e${digits}`))}e${-digits}`)
  } else {
    rest = Number(size.toPrecision(2))
  }
  if (rest === 1000 && power < 4) {
    rest = 1
    power++
  }
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const text = rest < 10000 ? rest.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 }) : rest.toLocaleString('en-US')
  return sign + text + ['', 'K', 'M', 'B', 'T'][power]
}";

/// What a formatter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Compares two texts.
    Collator(Collation),
    /// Writes a number in compact notation.
    Compact,
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Collation {
    is_numeric: bool,
    no_accents: bool,
    no_case: bool,
}

impl Collation {
    /// The text that compares as the options say, and the functions that it calls, by `name`.
    pub(super) fn key(self, name: &mut dyn FnMut(&'static str) -> String) -> (String, String) {
        let (mut before, mut after) = (String::new(), String::new());
        for (is_on, code) in [(self.no_accents, NO_ACCENTS), (self.is_numeric, NUMBERS)] {
            if is_on {
                before = format!("{}({before}", name(code));
                after.push(')');
            }
        }
        if self.no_case {
            after = format!(".toLowerCase(){after}");
        }
        (before, after)
    }
}

/// The function that writes a number in compact notation.
pub(super) fn compact() -> &'static str {
    COMPACT
}

/// True for a locale whose order and formats are those of `en-US`.
pub(super) fn is_english(locale: Option<&Argument<'_>>, own: &[&str]) -> bool {
    match locale.and_then(|one| one.as_expression()) {
        None => locale.is_none(),
        Some(Expression::Identifier(id)) => id.name == "undefined",
        Some(Expression::StringLiteral(text)) => own.contains(&text.value.as_str()),
        Some(Expression::ArrayExpression(list)) => list.elements.is_empty(),
        Some(_) => false,
    }
}

/// Locales with the order of `en`.
pub(super) const ENGLISH: &[&str] = &["en", "en-US", "en-GB"];

/// The options of a comparison; `None` for those without an equivalent.
pub(super) fn collation(options: Option<&Argument<'_>>) -> Option<Collation> {
    let mut collation = Collation::default();
    let Some(options) = options else {
        return Some(collation);
    };
    let Argument::ObjectExpression(object) = options else {
        return None;
    };
    for (key, value) in members(object)? {
        match (key.as_str(), value) {
            ("numeric", Expression::BooleanLiteral(value)) => collation.is_numeric = value.value,
            ("sensitivity", Expression::StringLiteral(value)) => match value.value.as_str() {
                "base" => (collation.no_accents, collation.no_case) = (true, true),
                "accent" => collation.no_case = true,
                "case" => collation.no_accents = true,
                "variant" => {}
                _ => return None,
            },
            ("usage", Expression::StringLiteral(value)) if value.value == "sort" => {}
            _ => return None,
        }
    }
    Some(collation)
}

/// True for options that ask for compact notation only.
pub(super) fn is_compact(options: Option<&Argument<'_>>) -> bool {
    let Some(Argument::ObjectExpression(object)) = options else {
        return false;
    };
    let is = |(key, value): &(String, &Expression<'_>)| {
        let Expression::StringLiteral(value) = value else {
            return false;
        };
        let text = value.value.as_str();
        matches!(
            (key.as_str(), text),
            ("notation", "compact") | ("compactDisplay", "short")
        )
    };
    members(object)
        .is_some_and(|all| all.iter().any(|(key, _)| key == "notation") && all.iter().all(is))
}

fn members<'o, 'a>(object: &'o ObjectExpression<'a>) -> Option<Vec<(String, &'o Expression<'a>)>> {
    let properties = object.properties.iter();
    let members = properties.map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
            Some((property.key.static_name()?.to_string(), &property.value))
        }
        _ => None,
    });
    members.collect()
}

/// Matches `new Intl.Collator(locale, options)`, and `new Intl.NumberFormat` with compact notation.
pub(super) fn format_of(
    expr: &Expression<'_>,
    is_free: &dyn Fn(&Expression<'_>, &str) -> bool,
) -> Option<Format> {
    let Expression::NewExpression(new) = expr.get_inner_expression() else {
        return None;
    };
    let Expression::StaticMemberExpression(member) = &new.callee else {
        return None;
    };
    let args = &new.arguments;
    if !is_free(&member.object, "Intl") || args.len() > 2 {
        return None;
    }
    match member.property.name.as_str() {
        "Collator" if is_english(args.first(), ENGLISH) => {
            Some(Format::Collator(collation(args.get(1))?))
        }
        "NumberFormat" if is_english(args.first(), &["en", "en-US"]) => {
            is_compact(args.get(1)).then_some(Format::Compact)
        }
        _ => None,
    }
}
