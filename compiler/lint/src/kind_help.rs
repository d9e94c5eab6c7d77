//! Help texts for values of the wrong kind, and for unknown members and methods.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use super::origins::Origin;
use a99_core::builtins::Receiver;
use a99_core::diag::excerpt;
use a99_core::json::NodeId;
use a99_core::sig::{AtomInput, JsonKinds};

impl Rules<'_, '_> {
    /// Help for a name or path whose value the input does not accept.
    pub(super) fn help_for_held(
        &self,
        op: &str,
        input: &AtomInput,
        node: NodeId,
        holds: Holds,
    ) -> String {
        let (doc, kinds) = (self.doc, input.kinds);
        let shown = self.shown_value(node);
        let wants_list = kinds.contains(JsonKinds::ARRAY);
        let name = a99_compiler::ir::expr_text(doc, node).unwrap_or(node);
        let one = match doc.str(name).and_then(|name| self.origin_of(name)) {
            Some(Origin::One(all)) => Some(all),
            _ => None,
        };
        match (op, holds) {
            ("len", Holds::Number | Holds::Bool) => "give it a list or a text".to_owned(),
            ("len", Holds::Object(_)) => {
                "ask for its `keys` first: `keys {obj, result}`".to_owned()
            }
            (_, Holds::Object(Members::Chat | Members::Loop))
                if kinds.contains(JsonKinds::STRING) =>
            {
                format!("give it the text: `\"{}.text\"`", excerpt(&shown))
            }
            ("jsonParse", Holds::Object(_) | Holds::List(_)) => {
                "it is a value already: use it without `jsonParse`".to_owned()
            }
            (_, Holds::Object(_)) if wants_list && one.is_some() => {
                format!(
                    "this is one item: `{}` gives all of them",
                    one.unwrap_or_default()
                )
            }
            (_, Holds::Object(Members::Page)) if kinds.contains(JsonKinds::ARRAY) => {
                format!("give it the keys: `\"{}.keys\"`", excerpt(&shown))
            }
            (_, Holds::Object(_)) if kinds.contains(JsonKinds::ARRAY) => {
                "write a list; `Object.values` gives those of an object".to_owned()
            }
            (_, Holds::Text | Holds::OneOf(_) | Holds::Made)
                if kinds.contains(JsonKinds::ARRAY) =>
            {
                "give it a list: `split {str, sep, result}` makes one of a text".to_owned()
            }
            (_, Holds::List(_)) if kinds.contains(JsonKinds::STRING) => {
                "give it a text: one item, `\"xs.0\"`, or all by `join {list, sep, result}`"
                    .to_owned()
            }
            (_, Holds::Number | Holds::Bool) if kinds.contains(JsonKinds::STRING) => {
                "make a text of it: `template {tmpl, vars, result}`".to_owned()
            }
            (_, Holds::Object(Members::Output)) if kinds.contains(JsonKinds::STRING) => {
                format!(
                    "give it what the command wrote: `\"{}.stdout\"`",
                    excerpt(&shown)
                )
            }
            (_, Holds::Object(Members::Match)) if kinds.contains(JsonKinds::STRING) => {
                format!("give it the text: `\"{}.match\"`", excerpt(&shown))
            }
            ("pick" | "omit" | "merge" | "keys", Holds::List(items))
                if matches!(self.item_held(items), Holds::Object(_)) =>
            {
                format!(
                    "give it an object: one item, `\"{}.0\"`, or each of them in a `map {{items, as, \
                     steps, result}}`",
                    excerpt(&shown)
                )
            }
            ("memberDelete", Holds::List(_)) => {
                "of a list make another one: `filter {items, as, condition, result}`".to_owned()
            }
            (_, Holds::Object(_)) if kinds.contains(JsonKinds::STRING) => {
                "give it a text: one of its members, or all by `jsonStringify`".to_owned()
            }
            (_, Holds::Text | Holds::OneOf(_) | Holds::Made)
                if kinds.contains(JsonKinds::NUMBER) =>
            {
                "make a number of it: `{\"$expr\": \"call\", \"callee\": \"parseFloat\", \
                 \"arguments\": [...]}`"
                    .to_owned()
            }
            _ => format!("give it {}", super::steps::wanted(kinds)),
        }
    }

    /// Help for a member that a value lacks, by its name.
    pub(super) fn help_for_member(&mut self, object: &str, holds: Holds, name: &str) -> String {
        let names = self.members_of(holds);
        let near = self.nearest(name, names.iter().map(String::as_str));
        match (holds, name) {
            (Holds::Answered, _) => {
                "the answer is the text itself: leave the member out; a text of JSON becomes an \
                 object by `jsonParse {str, result}`"
                    .to_owned()
            }
            (Holds::List(Items::Answers), _) => {
                "take one by its number: `.0.value` is what the first call gave".to_owned()
            }
            (Holds::Object(Members::Match), _) if name.bytes().all(|b| b.is_ascii_digit()) => {
                match name.parse::<u32>() {
                    Ok(n) if n > 0 => {
                        format!("write `.groups.{}`: groups are numbered from 0", n - 1)
                    }
                    _ => "write `.match` for the whole match".to_owned(),
                }
            }
            (Holds::Object(Members::Output), _) => {
                "what it wrote is its `stdout`, how it ended its `exitCode`".to_owned()
            }
            (Holds::Object(Members::Answer), _) => {
                "the answer is its `value`; where the call failed it has `error` instead".to_owned()
            }
            (
                Holds::Object(Members::Response),
                "data" | "json" | "text" | "content" | "payload",
            ) => "what was fetched is its `body`".to_owned(),
            (Holds::Object(Members::Response), "ok" | "statusCode" | "code") => {
                "ask for its `status`, as in `r.status == 200`".to_owned()
            }
            (Holds::List(Items::Objects | Items::Calls), _)
                if !matches!(
                    name,
                    "embedding"
                        | "vector"
                        | "data"
                        | "values"
                        | "items"
                        | "results"
                        | "documents"
                        | "matches"
                        | "hits"
                        | "rows"
                ) =>
            {
                format!(
                    "take one of them, `.0.{name}`, or go through them by `forEach {{items, as, steps}}`"
                )
            }
            (Holds::Number, "length")
                if object.starts_with("push") || object.starts_with("unshift") =>
            {
                "it is the new length already; a longer list is `xs.concat([x])`".to_owned()
            }
            (Holds::List(Items::Texts), _) if object.ends_with(".groups") => format!(
                "groups without a name are numbered, `{0}.0`; named ones stand in `{1}.named.{2}`",
                excerpt(object),
                excerpt(object.trim_end_matches(".groups")),
                excerpt(name)
            ),
            (Holds::List(Items::Schema(schema)), _)
                if self
                    .doc
                    .get(schema, "properties")
                    .is_some_and(|all| self.doc.get(all, name).is_some()) =>
            {
                match self.is_source() {
                    true => format!(
                        "take one item, `[0].{name}`, or all of them: `.map((x) => x.{name})`"
                    ),
                    false => format!(
                        "take one item, `{}.0.{name}`, or go through them by `map {{items, as, steps, result}}`",
                        excerpt(object)
                    ),
                }
            }
            (Holds::Object(Members::Call), "arguments" | "args" | "parameters" | "function") => {
                "what the model gives the tool is its `input`, an object".to_owned()
            }
            (Holds::List(_), "match" | "groups" | "index" | "named" | "name" | "id" | "value") => {
                format!(
                    "take one item, `.0.{name}`, or go through them by `map {{items, as, steps, result}}`"
                )
            }
            (
                Holds::List(_) | Holds::Text | Holds::OneOf(_) | Holds::Made,
                "size" | "len" | "count",
            ) => "write `.length`".to_owned(),
            (Holds::Set, "length" | "len" | "count") => "write `.size`".to_owned(),
            (
                Holds::List(_),
                "embedding" | "vector" | "data" | "values" | "items" | "results" | "documents"
                | "matches" | "hits" | "rows",
            ) => {
                format!("it is the list itself: write `\"{}\"`", excerpt(object))
            }
            (Holds::List(_), "first" | "head") => {
                format!("write `\"{}.0\"`", excerpt(object))
            }
            (Holds::List(_) | Holds::Text | Holds::Made, _) if name.starts_with('-') => {
                format!("write `.at({})` in an expression", excerpt(name))
            }
            (Holds::Number, "length") => {
                "use the number as it is; its digits are counted by `String(n).length`".to_owned()
            }
            (
                Holds::Object(Members::Unknown | Members::Written(_) | Members::Schema(_)),
                "length" | "size",
            ) if near.is_none() => format!(
                "write `Object.keys({}).length`, or use `keys {{obj, result}}` and `len`",
                excerpt(object)
            ),
            (Holds::List(_), "last") => "write `.at(-1)` in an expression".to_owned(),
            (_, name) if name.contains('(') => {
                let method = name.split('(').next().unwrap_or(name);
                format!(
                    "a path calls nothing: use the node `{{\"$expr\": \"methodCall\", \"object\": ..., \
                     \"method\": \"{}\", \"arguments\": [...]}}`, or an atom",
                    excerpt(method)
                )
            }
            (Holds::Text | Holds::OneOf(_), _)
                if near.is_none() && !name.contains(char::is_whitespace) =>
            {
                format!("it has `length` alone: use `{}` as it is", excerpt(object))
            }
            (Holds::Bool, _) => "it has no members: test it as it is".to_owned(),
            (Holds::Number, _) => "use the number as it is".to_owned(),
            (Holds::Made, "body" | "data" | "status" | "headers") => {
                "for these ask with `\"responseType\": \"response\"`; a text of JSON becomes an \
                 object by `jsonParse`"
                    .to_owned()
            }
            (Holds::Made, _) => "a text of JSON becomes an object by `jsonParse`".to_owned(),
            _ if name.contains(char::is_whitespace) => {
                "a text that begins with a variable's name and a dot is a path: write `{\"$expr\": \
                 \"literal\", \"value\": ...}`"
                    .to_owned()
            }
            _ => match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has `{}`", excerpt(&names.join("`, `"))),
            },
        }
    }

    /// Help for a method that a value of this kind lacks.
    pub(super) fn help_for_receiver(
        &self,
        holds: Holds,
        name: &str,
        on: &[Receiver],
    ) -> &'static str {
        match (holds, name) {
            (Holds::Text | Holds::OneOf(_) | Holds::Made, "reverse" | "toReversed")
                if self.is_source() =>
            {
                "turn its letters round: `[...s].reverse().join('')`"
            }
            (Holds::Text | Holds::OneOf(_) | Holds::Made, "reverse" | "toReversed") => {
                "turn its letters round: `s.split('').toReversed().join('')`"
            }
            (Holds::Text | Holds::OneOf(_) | Holds::Made, "push" | "unshift") => {
                "join texts with `+`, or make a list by `split`"
            }
            (Holds::List(_), _) if on == [Receiver::Text] => {
                "call it for each item: `map {items, as, steps, result}`"
            }
            (Holds::Number, _) if on.contains(&Receiver::Text) => {
                "make a text of it before: `.toString()`"
            }
            (Holds::Object(_), "push" | "unshift" | "concat") => {
                "where it is set, begin with a list: `[]`; a member of an object is set by its name"
            }
            (Holds::Object(_), _) => "take a member of it, or `Object.values(o)`",
            (Holds::Number | Holds::Text | Holds::OneOf(_) | Holds::Made, _)
                if on.contains(&Receiver::Date) =>
            {
                match name {
                    "format" => {
                        "join texts with `+`, a template literal or `template {tmpl, vars, result}`; of a date make one first, `Date(x)`"
                    }
                    _ => "make a date of it first: `Date(x)`, in a source `new Date(x)`",
                }
            }
            (Holds::Text | Holds::OneOf(_) | Holds::Made, "join") => {
                "it is called on the list: `xs.join(', ')`"
            }
            (Holds::List(_), "has") => "write `.includes(x)`",
            (Holds::List(_), "add") => "write `.push(x)`",
            (Holds::Set, "push") => "write `.add(x)`",
            (Holds::Set, "includes") => "write `.has(x)`",
            _ => "call it on a value of that kind",
        }
    }
}
