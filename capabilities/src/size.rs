//! Estimated memory of host values, for stores that count their contents.

use a99_core::value::Value;

/// Estimated bytes of an object's member, in addition to its key's text and its value: handle,
/// hash, and unused capacity.
const MEMBER_BYTES: usize = 96;

/// Estimated bytes of a text in addition to its content: counters and allocator overhead.
const TEXT_BYTES: usize = 32;

/// Estimated bytes of an array or object that is not empty, in addition to its content.
const CONTAINER_BYTES: usize = 96;

/// Estimated bytes a value takes in memory: the handles of all nested values,
/// the bytes of texts and keys, and a fixed part for each member. Iterative;
/// shared texts count each time.
#[must_use]
pub fn value_bytes(value: &Value) -> usize {
    let mut total = 0usize;
    let mut pending = vec![value];
    while let Some(next) = pending.pop() {
        total = total.saturating_add(size_of::<Value>());
        match next {
            Value::String(text) => {
                total = total.saturating_add(TEXT_BYTES + text.len_bytes());
            }
            Value::Array(items) if !items.is_empty() => {
                total = total.saturating_add(CONTAINER_BYTES);
                pending.extend(items);
            }
            Value::Object(map) => {
                total = total.saturating_add(CONTAINER_BYTES);
                for (key, member) in map {
                    total = total.saturating_add(MEMBER_BYTES + key.len_bytes());
                    pending.push(member);
                }
            }
            _ => {}
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::value::Map;

    #[test]
    fn counts_nested_text() {
        let short = Value::from(vec![Value::from("ab")]);
        let long = Value::from(vec![Value::from("a".repeat(1_002))]);
        assert_eq!(value_bytes(&long) - value_bytes(&short), 1_000);
        let object: Map = [("key", Value::Null)].into_iter().collect();
        assert!(value_bytes(&Value::Object(object)) > 3 + 2 * size_of::<Value>());
    }

    #[test]
    fn deep_values_do_not_recurse() {
        let mut value = Value::Null;
        for _ in 0..100_000 {
            value = Value::Array(vec![value]);
        }
        assert!(value_bytes(&value) >= 100_000 * size_of::<Value>());
        value.dispose();
    }
}
