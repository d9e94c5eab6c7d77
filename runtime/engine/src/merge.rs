//! Merging of JSON objects: settings over defaults, partial states over states.

use serde_json::{Map, Value};

/// Merges `over` into `defaults`: objects merge member by member, at every depth; any other
/// value of `over`, including `null` and lists, replaces the default. Members of only one side
/// remain.
///
/// ```
/// use a99_runtime_engine::deep_merge;
/// use serde_json::json;
///
/// let merged = deep_merge(&json!({"a": {"b": 1, "c": 2}, "d": [1, 2]}), &json!({"a": {"b": 3}, "d": []}));
/// assert_eq!(merged, json!({"a": {"b": 3, "c": 2}, "d": []}));
/// ```
#[must_use]
pub fn deep_merge(defaults: &Value, over: &Value) -> Value {
    let mut merged = defaults.clone();
    deep_merge_into(&mut merged, over);
    merged
}

/// [`deep_merge`] in place. The recursion is as deep as the nesting, which readers of JSON
/// limit to 128.
pub fn deep_merge_into(target: &mut Value, over: &Value) {
    match (target, over) {
        (Value::Object(target), Value::Object(over)) => {
            for (key, value) in over {
                match target.get_mut(key) {
                    Some(old) => deep_merge_into(old, value),
                    None => drop(target.insert(key.clone(), value.clone())),
                }
            }
        }
        (target, over) => *target = over.clone(),
    }
}

/// `over` without the first-level members that `known` lacks: the part of a host's
/// configuration that applies to settings.
#[must_use]
pub fn restricted(over: &Value, known: &Value) -> Value {
    let (Value::Object(over), Value::Object(known)) = (over, known) else {
        return Value::Object(Map::new());
    };
    let kept = over.iter().filter(|(key, _)| known.contains_key(*key));
    Value::Object(
        kept.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::{deep_merge, restricted};
    use serde_json::json;

    #[test]
    fn members_are_merged_at_every_depth() {
        let defaults = json!({"a": 1, "b": {"c": {"d": 1, "e": 2}}});
        let merged = deep_merge(&defaults, &json!({"b": {"c": {"d": 5}}, "f": 6}));
        assert_eq!(
            merged,
            json!({"a": 1, "b": {"c": {"d": 5, "e": 2}}, "f": 6})
        );
        assert_eq!(defaults, json!({"a": 1, "b": {"c": {"d": 1, "e": 2}}}));
    }

    #[test]
    fn null_lists_and_scalars_replace() {
        let state = json!({"a": {"x": 1}, "b": [1, 2, 3], "c": null, "d": 4});
        let merged = deep_merge(
            &state,
            &json!({"a": null, "b": [9], "c": {"y": 1}, "d": {}}),
        );
        assert_eq!(merged, json!({"a": null, "b": [9], "c": {"y": 1}, "d": {}}));
    }

    #[test]
    fn nothing_over_changes_nothing() {
        let state = json!({"a": [1]});
        assert_eq!(deep_merge(&state, &json!({})), state);
        assert_eq!(deep_merge(&json!({}), &state), state);
    }

    #[test]
    fn configuration_is_restricted_to_what_is_known() {
        let kept = restricted(&json!({"a": {"z": 1}, "b": 2}), &json!({"a": 0}));
        assert_eq!(kept, json!({"a": {"z": 1}}));
    }
}
