//! Answers of calls as texts, without loss.

use a99_capabilities::StoredValue;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::text::hex;
use a99_core::value::{Map, Value};
use a99_run::account::Money;
use a99_vm::atom::{AtomError, HostReply};

/// Maximum bytes of an answer: far more than may cross into a program.
const MAX_BYTES: usize = 1 << 30;

/// The member that marks a text whose value is not plain JSON.
const TAGGED: &str = "$tagged";

/// The use of language models by a call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Tokens of prompts and of answers; `None` if a service did not report them.
    pub tokens: Option<(u64, u64)>,
    /// The money; `None` if a price is unknown.
    pub money: Option<Money>,
}

impl ModelUse {
    /// The sum of both, unknown where one of them is.
    #[must_use]
    pub fn plus(self, other: ModelUse) -> ModelUse {
        let tokens = self.tokens.zip(other.tokens);
        let money = self.money.zip(other.money);
        ModelUse {
            tokens: tokens.map(|(a, b)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            money: money.map(|(a, b)| Money::from_micro(a.micro().saturating_add(b.micro()))),
        }
    }

    fn value(self) -> Value {
        let text = |n: Option<u64>| n.map_or(Value::Null, |n| n.to_string().into());
        let (prompt, answer) = self.tokens.unzip();
        let money = self.money.map(Money::micro);
        vec![text(prompt), text(answer), text(money)].into()
    }

    fn of(value: &Value) -> Option<ModelUse> {
        let Value::Array(parts) = value else {
            return None;
        };
        let part = |at: usize| parts.get(at)?.as_str()?.parse().ok();
        Some(ModelUse {
            tokens: part(0).zip(part(1)),
            money: part(2).map(Money::from_micro),
        })
    }
}

/// The answer of a call.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The reply of the atom, or its error.
    pub result: Result<HostReply, AtomError>,
    /// The fuel that the atom charged to the run.
    pub charged: Fuel,
    /// The time of arrival in milliseconds since the Unix epoch.
    pub at: f64,
    /// Its use of models, if it asked one and its host counts that.
    pub models: Option<ModelUse>,
}

/// Encodes a value as JSON text.
///
/// # Errors
/// The value is too large.
pub fn encode(value: &Value) -> Result<String, String> {
    let stored = StoredValue::of(value, MAX_BYTES).map_err(|error| error.to_string())?;
    match stored {
        StoredValue::Json(bytes) => String::from_utf8(bytes).map_err(|error| error.to_string()),
        StoredValue::Tagged(bytes) => Ok(format!("{{\"{TAGGED}\":\"{}\"}}", hex(&bytes))),
    }
}

/// Decodes the value of such a text.
#[must_use]
pub fn decode(text: &str) -> Option<Value> {
    let start = format!("{{\"{TAGGED}\":\"");
    match text.strip_prefix(&start) {
        None => StoredValue::read(text.as_bytes()),
        Some(rest) => StoredValue::read(&hex_bytes(rest.strip_suffix("\"}")?)?),
    }
}

/// Bytes of hexadecimal digits.
#[must_use]
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|n| u8::try_from(n).ok())
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

fn fuel_text(fuel: Fuel) -> Value {
    fuel.micro().to_string().into()
}

fn fuel_of(value: Option<&Value>) -> Option<Fuel> {
    let micro = value?.as_str()?.parse().ok()?;
    Some(Fuel::from_micro(micro))
}

impl Answered {
    /// Encodes the answer as text.
    ///
    /// # Errors
    /// The answer is too large.
    pub fn encode(&self) -> Result<String, String> {
        let mut map = Map::new();
        map.insert("at", self.at);
        map.insert("charged", fuel_text(self.charged));
        if let Some(used) = self.models {
            map.insert("models", used.value());
        }
        match &self.result {
            Ok(reply) => {
                if let Some(used) = reply.fuel_used {
                    map.insert("used", fuel_text(used));
                }
                if reply.run_inline {
                    map.insert("inline", true);
                }
                map.insert("value", reply.value.0.clone());
            }
            Err(error) => {
                map.insert("code", error.code.as_str());
                map.insert("error", error.message.clone());
                if let Some(help) = &error.help {
                    map.insert("help", help.as_str());
                }
            }
        }
        encode(&Value::Object(map))
    }

    /// Decodes the answer of a text.
    #[must_use]
    pub fn decode(text: &str) -> Option<Answered> {
        let Value::Object(mut map) = decode(text)? else {
            return None;
        };
        let at = map.get("at").and_then(Value::as_f64)?;
        let charged = fuel_of(map.get("charged"))?;
        let result = match map.get("error").map(|text| text.as_text().cloned()) {
            Some(message) => {
                let code = map.get("code").and_then(Value::as_str)?;
                let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code)?;
                let mut error = AtomError::coded(*known, message?);
                error.help = map.get("help").and_then(Value::as_str).map(str::to_owned);
                Err(error)
            }
            None => {
                let value = map.remove("value")?;
                let mut reply = HostReply::from(value);
                reply.fuel_used = fuel_of(map.get("used"));
                reply.run_inline = map.get("inline") == Some(&Value::Bool(true));
                Ok(reply)
            }
        };
        Some(Answered {
            result,
            charged,
            at,
            models: map.get("models").and_then(ModelUse::of),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_answer_is_lost() {
        for value in [
            Value::Undefined,
            Value::Null,
            f64::NAN.into(),
            (-0.0).into(),
            "text".into(),
            vec![Value::Undefined, 1.5.into()].into(),
            Value::Object([(TAGGED, "01")].into_iter().collect()),
        ] {
            let mut reply = HostReply::from(value.clone());
            reply.fuel_used = Some(Fuel::from_micro(7));
            let answered = Answered {
                result: Ok(reply),
                charged: Fuel::from_micro(i64::MAX),
                at: 1.5,
                models: None,
            };
            let text = answered.encode().expect("a text");
            let read = Answered::decode(&text).expect("an answer");
            let reply = read.result.expect("a reply");
            assert_eq!(format!("{:?}", reply.value.0), format!("{value:?}"));
            assert_eq!(reply.fuel_used, Some(Fuel::from_micro(7)));
            assert_eq!((read.charged.micro(), read.at), (i64::MAX, 1.5));
            assert_eq!(read.models, None);
        }
        let error = AtomError::coded(ErrorCode::AtomTimeout, "late").with_help("wait");
        let answered = Answered {
            result: Err(error.clone()),
            charged: Fuel::ZERO,
            at: 0.0,
            models: Some(ModelUse {
                tokens: Some((u64::MAX, 7)),
                money: None,
            }),
        };
        let text = answered.encode().expect("a text");
        let read = Answered::decode(&text).expect("an answer");
        assert_eq!(read.models, answered.models);
        assert_eq!(read.result.expect_err("an error"), error);
        assert!(Answered::decode("{}").is_none() && decode("{\"$tagged\":\"0").is_none());
    }
}
