//! JSON Schemas of [`Value`] and its parts, for Rust types with such fields.

use super::{Map, Value};
use crate::text::Text;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Schemas that only state the kind of a value.
macro_rules! schemas {
    ($($kind:ident $name:literal: $schema:tt;)*) => {
        $(impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

schemas! {
    Value "AnyValue": {};
    Map "Object": {"type": "object"};
    Text "string": {"type": "string"};
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_say_the_kind() {
        let schema = schemars::schema_for!(Vec<(Value, Map, Text)>).to_value();
        let kinds = json!([{}, {"type": "object"}, {"type": "string"}]);
        assert_eq!(schema["items"]["prefixItems"], kinds);
    }
}
