//! Price list: prices of public services' models as shipped with this crate (`prices.json`,
//! which names its currency and, for each service, the day of reading).

use crate::price::{LongPrice, Price};
use crate::wire::parse;
use a99_core::value::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The currency of the list.
pub const CURRENCY: &str = "USD";

/// A price of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPrice {
    /// The price.
    pub price: Price,
    /// The day on which the service charged it, `YYYY-MM-DD`.
    pub date: &'static str,
}

/// The prices of a service, and their day.
struct Listed {
    date: String,
    models: BTreeMap<String, Price>,
}

/// All listed services, by host.
fn list() -> &'static BTreeMap<String, Listed> {
    static LIST: OnceLock<BTreeMap<String, Listed>> = OnceLock::new();
    LIST.get_or_init(|| parse(include_str!("prices.json")).map_or_else(BTreeMap::new, read))
}

fn read(list: Value) -> BTreeMap<String, Listed> {
    let services = list.get("services").and_then(Value::as_object);
    let services = services.into_iter().flat_map(|map| map.iter());
    let service = services.map(|(host, service)| {
        let date = service.get("date").and_then(Value::as_str);
        let models = service.get("models").and_then(Value::as_object);
        let models = models.into_iter().flat_map(|map| map.iter());
        let models = models.map(|(name, of)| (name.to_string_lossy().into_owned(), price(of)));
        let listed = Listed {
            date: date.unwrap_or_default().to_owned(),
            models: models.collect(),
        };
        (host.to_string_lossy().into_owned(), listed)
    });
    service.collect()
}

fn price(of: &Value) -> Price {
    let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_f64);
    let long = of.get("long").map(|long| LongPrice {
        from: number(long, "from").unwrap_or_default() as u64,
        prompt: number(long, "prompt").unwrap_or_default(),
        cached: number(long, "cached"),
        written: number(long, "written"),
        completion: number(long, "completion").unwrap_or_default(),
    });
    Price {
        prompt: number(of, "prompt").unwrap_or_default(),
        cached: number(of, "cached"),
        written: number(of, "written"),
        completion: number(of, "completion").unwrap_or_default(),
        fuel: 0.0,
        long,
    }
}

/// The listed price of a model at an address, by its name or its name without the release date
/// (`gpt-5-2025-08-07`, `claude-haiku-4-5-20251001`, `mistral-small-2506`). Models at unlisted
/// addresses have no price, whatever their names.
#[must_use]
pub fn list_price(url: &str, model: &str) -> Option<ListPrice> {
    let authority = url.split("://").nth(1)?.split(['/', '?', '#']).next()?;
    let host = authority.strip_suffix(":443").unwrap_or(authority);
    let (_, listed) = list()
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(host))?;
    let model = model.strip_prefix("models/").unwrap_or(model);
    let found = listed
        .models
        .get(model)
        .or_else(|| listed.models.get(undated(model)?))?;
    Some(ListPrice {
        price: found.clone(),
        date: &listed.date,
    })
}

/// A name without the day, month or preview suffix.
fn undated(model: &str) -> Option<&str> {
    let (name, last) = model.rsplit_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(last) {
        return None;
    }
    match last.len() {
        4 | 6 | 8 => Some(name),
        // `-2025-08-07`.
        2 => {
            let (name, month) = name.rsplit_once('-')?;
            let (name, year) = name.rsplit_once('-')?;
            (is_number(month) && month.len() == 2 && is_number(year) && year.len() == 4)
                .then_some(name)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_public_models_have_prices_and_a_day() {
        let of = |url: &str, model: &str| list_price(url, model).map(|found| found.price);
        const OPENAI: &str = "https://api.openai.com/v1";
        let five = of(OPENAI, "gpt-5").unwrap();
        assert_eq!(
            (five.prompt, five.cached, five.completion),
            (1.25, Some(0.125), 10.0)
        );
        assert_eq!(of(OPENAI, "gpt-5-2025-08-07"), Some(five));
        // A release with a separate price.
        assert_eq!(of(OPENAI, "gpt-4o-2024-05-13").unwrap().completion, 15.0);
        // One that was dearer than the release that the name without a day means.
        assert_eq!(of(OPENAI, "gpt-3.5-turbo-0613").unwrap().completion, 2.0);
        const CLAUDE: &str = "https://API.anthropic.com:443/v1";
        assert_eq!(
            of(CLAUDE, "claude-haiku-4-5-20251001").unwrap().completion,
            5.0
        );
        assert_eq!(
            of(OPENAI, "text-embedding-3-small").unwrap().completion,
            0.0
        );
        for (url, model) in [
            (OPENAI, "gpt-5-of-mine"),
            (OPENAI, "gpt-5-12"),
            (OPENAI, "claude-haiku-4-5"),
            ("http://localhost:1234/v1", "gpt-5"),
            ("https://api.openai.com.evil.example/v1", "gpt-5"),
            ("", "gpt-5"),
        ] {
            assert_eq!(of(url, model), None, "{url} {model}");
        }
        let text = parse(include_str!("prices.json")).unwrap();
        assert_eq!(text.get("currency").and_then(Value::as_str), Some(CURRENCY));
        assert!(list().len() >= 7);
        for listed in list().values() {
            assert!(listed.date.len() == 10 && listed.date.starts_with("20"));
            for (name, price) in &listed.models {
                price.check().unwrap();
                assert!(price.prompt > 0.0, "{name}");
                let answers = !name.contains("embed");
                assert_eq!(price.completion > 0.0, answers, "{name}");
                if let Some(long) = &price.long {
                    assert!(long.prompt >= price.prompt, "{name}");
                    assert!(long.completion >= price.completion, "{name}");
                }
            }
        }
    }

    /// A name that goes along with the newest model costs as much as the dearest of its kind.
    #[test]
    fn d3_names_that_move_have_the_dearest_price() {
        let google = &list()["generativelanguage.googleapis.com"].models;
        let mut moving = 0;
        for (name, price) in google {
            let kind = name.strip_prefix("gemini-");
            let Some(kind) = kind.and_then(|name| name.strip_suffix("-latest")) else {
                continue;
            };
            moving += 1;
            for (other, dear) in google {
                let versioned = other
                    .strip_prefix("gemini-")
                    .and_then(|of| of.split_once('-'));
                let own =
                    versioned.is_some_and(|(_, of)| of == kind || of == format!("{kind}-preview"));
                if own {
                    assert!(price.prompt >= dear.prompt, "{name} {other}");
                    assert!(price.completion >= dear.completion, "{name} {other}");
                    assert!(
                        price.long.is_some() || dear.long.is_none(),
                        "{name} {other}"
                    );
                }
            }
        }
        assert_eq!(moving, 3);
    }
}
