//! `pick`, `omit`, `merge` and `keys` (language section 2.5), over own members only (D16) and in
//! the language's enumeration order (D37); `memberSet` and `memberDelete` (D66).

use crate::def::{Adjust, Input, Kind, native, req};
use a99_core::costs::{MEMBERS, MICRO, READ, Sizes};
use a99_core::sig::{Effect, Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::builtins::members;
use a99_vm::coerce::{to_str, truthy};
use a99_vm::heap::{KeyId, Oom, Ref, Val};
use a99_vm::native::{Cx, Fault, ObjDraft};
use smallvec::SmallVec;
use std::collections::HashSet;

pub(crate) fn atoms() -> Vec<AtomDef> {
    const OBJ: Input = req("obj", Kind::Record, "Object that members are taken from.");
    let pair = |docs| [OBJ, req("keys", Kind::Texts, docs)];
    vec![
        native(
            "pick",
            "An object of the listed members.",
            MICRO,
            &pair("Names of the members to keep, in the order of the new object."),
            pick,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::OBJECT))
        .metered(MEMBERS),
        native(
            "omit",
            "An object without the listed members.",
            MICRO,
            &pair("Names of the members to leave out."),
            omit,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::OBJECT))
        .metered(MEMBERS),
        native(
            "merge",
            "An object of the members of both; those of b win.",
            MICRO,
            &[
                req("a", Kind::Record, "Object whose members come first."),
                req(
                    "b",
                    Kind::Record,
                    "Object whose members win if both have them.",
                ),
            ],
            merge,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::OBJECT))
        .metered(MEMBERS),
        native(
            "keys",
            "The names of an object's members.",
            MICRO,
            &[req(
                "obj",
                Kind::Record,
                "Object whose member names are listed.",
            )],
            keys,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::ARRAY))
        .metered(MEMBERS),
        native(
            "memberSet",
            "Sets a member of an object, or an item of a list, in place and returns the object or \
             list.",
            MICRO,
            &[
                TARGET,
                req(
                    "key",
                    Kind::Key,
                    "Name of the member; for a list the index of an item, or its length to append.",
                ),
                req("value", Kind::Any, "The new value."),
            ],
            member_set,
        )
        .listed(ShortPrompts::Json)
        .effect(Effect::Mutates)
        .metered(READ),
        native(
            "memberDelete",
            "Deletes a member of an object in place and returns whether it existed.",
            MICRO,
            &[
                req(
                    "object",
                    Kind::Record,
                    "Object to change, usually a variable.",
                )
                .subject(),
                req("key", Kind::Key, "Name of the member."),
            ],
            member_delete,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Mutates)
        .gives(Gives::always(JsonKinds::BOOLEAN))
        .metered(READ),
    ]
}

const TARGET: Input = req(
    "object",
    Kind::Data,
    "Object or list to change, usually a variable.",
)
.subject();

/// Estimated bytes per member of an object under construction: copied out of its object, then in
/// the draft, and in the draft's index, which growth briefly duplicates.
const DRAFT_BYTES: usize = 128;

/// Missing members are present as `undefined`, like in the reference.
fn pick(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut draft = ObjDraft::new();
    if let (true, Val::Arr(list)) = (truthy(cx.heap, args[0]), args[1]) {
        let n = cx.heap.len(list);
        charge_members(cx, n)?;
        draft = ObjDraft::with_room(n);
        for i in 0..n {
            cx.work(ObjDraft::MEMBER_WORK)?;
            let key = key_at(cx, list, i)?;
            let value = member(cx, args[0], key)?;
            draft.set(key, value);
        }
    }
    draft.finish(cx)
}

fn omit(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let source = spread(cx, args[0])?;
    charge_members(cx, source.len(cx))?;
    let mut listed = HashSet::new();
    if let Val::Arr(list) = args[1] {
        let n = cx.heap.len(list);
        charge_members(cx, n)?;
        listed.try_reserve(n).map_err(|_| Oom { wanted: n })?;
        for i in 0..n {
            cx.work(ObjDraft::MEMBER_WORK)?;
            listed.insert(key_at(cx, list, i)?);
        }
    }
    let mut draft = ObjDraft::with_room(source.len(cx));
    source.copy_to(cx, &mut draft, |key| !listed.contains(&key))?;
    draft.finish(cx)
}

fn merge(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let (a, b) = (spread(cx, args[0])?, spread(cx, args[1])?);
    charge_members(cx, a.len(cx).saturating_add(b.len(cx)))?;
    let mut draft = ObjDraft::with_room(a.len(cx).saturating_add(b.len(cx)));
    a.copy_to(cx, &mut draft, |_| true)?;
    b.copy_to(cx, &mut draft, |_| true)?;
    draft.finish(cx)
}

fn keys(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let source = match args[0] {
        // The member names of a text need no array of its units.
        Val::Str(text) => Source::Indices(text.units()),
        other => spread(cx, other)?,
    };
    let n = source.len(cx);
    charge_members(cx, n)?;
    let out = cx.list_with_room(n)?;
    match source {
        Source::Nothing => {}
        Source::Object(r) => {
            each_member(cx, r, |cx, key, _| {
                cx.work(4)?;
                let name = cx.key_name(key)?;
                Ok(cx.heap.push(out, name)?)
            })?;
        }
        Source::Array(_) | Source::Indices(_) => {
            for i in 0..n {
                cx.work(4)?;
                let name = cx.str(i.to_string().as_bytes())?;
                cx.heap.push(out, name)?;
            }
        }
    }
    Ok(Val::Arr(out))
}

fn member_set(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    members::set(cx, args[0], args[1], args[2])
}

fn member_delete(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    members::delete(cx, args[0], args[1])
}

/// Members that a value spreads to.
enum Source {
    Nothing,
    Object(Ref),
    /// Members named by index.
    Array(Ref),
    /// Only the names of this many indices.
    Indices(usize),
}

/// Spreads a value: objects by member, arrays and text by index, other values to no members
/// (ECMA-262 §7.3.26). Sets and dates have no members (D34).
fn spread(cx: &mut Cx<'_>, v: Val) -> Result<Source, Fault> {
    Ok(match v {
        Val::Obj(r) => Source::Object(r),
        Val::Arr(r) => Source::Array(r),
        Val::Str(s) if !s.is_empty() => {
            match crate::strings::call(cx, "split", &[v, Val::Str(a99_vm::heap::Str::EMPTY)])? {
                Val::Arr(r) => Source::Array(r),
                _ => Source::Nothing,
            }
        }
        _ => Source::Nothing,
    })
}

impl Source {
    fn len(&self, cx: &Cx<'_>) -> usize {
        match self {
            Source::Nothing => 0,
            Source::Object(r) | Source::Array(r) => cx.heap.len(*r),
            Source::Indices(n) => *n,
        }
    }

    /// Copies the members that `keep` admits.
    fn copy_to(
        &self,
        cx: &mut Cx<'_>,
        draft: &mut ObjDraft,
        keep: impl Fn(KeyId) -> bool,
    ) -> Result<(), Fault> {
        match self {
            Source::Object(r) => {
                each_member(cx, *r, |cx, key, value| {
                    cx.work(ObjDraft::MEMBER_WORK)?;
                    if keep(key) {
                        draft.set(key, value);
                    }
                    Ok(())
                })?;
            }
            Source::Array(r) => {
                for i in 0..cx.heap.len(*r) {
                    cx.work(ObjDraft::MEMBER_WORK)?;
                    let key = cx.heap.intern(i.to_string().as_bytes())?;
                    if keep(key) {
                        draft.set(key, cx.heap.items(*r)[i]);
                    }
                }
            }
            Source::Nothing | Source::Indices(_) => {}
        }
        Ok(())
    }
}

/// Calls `visit` with each member of an object in enumeration order. The object must not change
/// meanwhile.
fn each_member(
    cx: &mut Cx<'_>,
    r: Ref,
    mut visit: impl FnMut(&mut Cx<'_>, KeyId, Val) -> Result<(), Fault>,
) -> Result<(), Fault> {
    /// Most members that are copied without an allocation.
    const FEW: usize = 16;
    let few = match cx.heap.len(r) <= FEW {
        true => cx
            .heap
            .plain_entries(r)
            .map(SmallVec::<[_; FEW]>::from_iter),
        false => None,
    };
    if let Some(members) = few {
        let mut members = members.iter();
        return members.try_for_each(|(key, value)| visit(cx, *key, *value));
    }
    let mut members = cx.members(r)?.into_iter();
    members.try_for_each(|(key, value)| visit(cx, key, value))
}

/// The array index that a name in canonical form denotes.
pub(crate) fn array_index(name: &[u8]) -> Option<usize> {
    let canonical = matches!(name, [b'0'] | [b'1'..=b'9', ..]);
    std::str::from_utf8(name)
        .ok()
        .filter(|_| canonical)?
        .parse()
        .ok()
}

/// Charges for reading `n` members and checks that a draft of them fits.
fn charge_members(cx: &mut Cx<'_>, n: usize) -> Result<(), Fault> {
    cx.charge(MEMBERS, Sizes::elements(n))?;
    Ok(cx.heap.check(n.saturating_mul(DRAFT_BYTES))?)
}

/// A key from a list, interned.
fn key_at(cx: &mut Cx<'_>, list: Ref, i: usize) -> Result<KeyId, Fault> {
    // Converting an element to text runs no code of the program, so the list keeps its length.
    let item = cx.heap.items(list)[i];
    let name = to_str(cx, item)?;
    cx.charge_name(name)?;
    cx.intern_name(name)
}

/// Reads an own member: of objects by name, of arrays and text by index and `length`.
fn member(cx: &mut Cx<'_>, obj: Val, key: KeyId) -> Result<Val, Fault> {
    let name = cx.heap.shapes.key_text(key);
    let index = || array_index(name);
    Ok(match obj {
        Val::Obj(r) => cx.own_member(r, key).unwrap_or(Val::Undefined),
        Val::Arr(r) if name == b"length" => Val::Num(cx.heap.len(r) as f64),
        Val::Arr(r) => {
            let item = index().and_then(|i| cx.heap.items(r).get(i).copied());
            item.unwrap_or(Val::Undefined)
        }
        Val::Str(s) if name == b"length" => Val::Num(s.units() as f64),
        Val::Str(s) => match index().filter(|i| *i < s.units()) {
            Some(i) => crate::strings::call(cx, "charAt", &[obj, Val::Num(i as f64)])?,
            None => Val::Undefined,
        },
        _ => Val::Undefined,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fails, fuel_for, run};

    #[test]
    fn pick_keeps_the_order_of_the_list() {
        assert_eq!(
            run("pick", r#"[{"a":1,"b":2,"c":3}, ["c","a"]]"#),
            r#"{"c":3,"a":1}"#
        );
        assert_eq!(
            run("pick", r#"[["x","y"], ["1","length"]]"#),
            r#"{"1":"y","length":2}"#
        );
        assert_eq!(run("pick", r#"[["x"], ["+0", "00"]]"#), "{}");
        assert_eq!(run("pick", r#"[null, ["a"]]"#), "{}");
        assert_eq!(run("pick", r#"[{"a":1}, "a"]"#), "{}");
        assert_eq!(
            run("pick", r#"["ab", [1, "length"]]"#),
            r#"{"1":"b","length":2}"#
        );
    }

    #[test]
    fn names_of_the_prototype_are_data() {
        assert_eq!(run("pick", r#"[{"a":1}, ["toString","a"]]"#), r#"{"a":1}"#);
        let data = r#"[{"__proto__":{"x":1}}, ["__proto__"]]"#;
        assert_eq!(run("pick", data), r#"{"__proto__":{"x":1}}"#);
        assert_eq!(
            run("merge", r#"[{"__proto__":1},{"b":2}]"#),
            r#"{"__proto__":1,"b":2}"#
        );
    }

    #[test]
    fn omit_leaves_the_rest() {
        assert_eq!(
            run("omit", r#"[{"a":1,"b":2,"c":3}, ["b"]]"#),
            r#"{"a":1,"c":3}"#
        );
        assert_eq!(run("omit", r#"[null, ["b"]]"#), "{}");
    }

    #[test]
    fn merge_spreads_both() {
        let order = r#"[{"b":1,"a":2}, {"5":0,"c":3,"b":9}]"#;
        assert_eq!(run("merge", order), r#"{"5":0,"b":9,"a":2,"c":3}"#);
        assert_eq!(run("merge", r#"["ab", [7]]"#), r#"{"0":7,"1":"b"}"#);
        assert_eq!(run("merge", "[null, 5]"), "{}");
    }

    #[test]
    fn keys_of_everything() {
        assert_eq!(
            run("keys", r#"[{"9":4,"10":3,"b":1,"a":2}]"#),
            r#"["9","10","b","a"]"#
        );
        assert_eq!(run("keys", "[[7,8]]"), r#"["0","1"]"#);
        assert_eq!(run("keys", r#"["hey"]"#), r#"["0","1","2"]"#);
        assert_eq!(run("keys", "[null]"), "[]");
        assert_eq!(run("keys", "[5]"), "[]");
    }

    #[test]
    fn members_are_set_and_deleted() {
        for (args, expected) in [
            (r#"[{"a":1}, "b", 2]"#, r#"{"a":1,"b":2}"#),
            (r#"[{"a":1,"b":2}, "a", 3]"#, r#"{"a":3,"b":2}"#),
            (r#"[{"b":1}, 7, 2]"#, r#"{"7":2,"b":1}"#),
            (r#"[{}, "constructor", 1]"#, r#"{"constructor":1}"#),
            (r#"[[1, 2], 1, 3]"#, "[1,3]"),
            (r#"[[1, 2], "2", 3]"#, "[1,2,3]"),
        ] {
            assert_eq!(run("memberSet", args), expected, "{args}");
        }
        assert_eq!(run("memberDelete", r#"[{"a":1}, "a"]"#), "true");
        assert_eq!(run("memberDelete", r#"[{"a":1}, "b"]"#), "false");
        for (op, args, expected) in [
            (
                "memberSet",
                "[[1], 2, 0]",
                "memberSet: index 2 is beyond the end of a list of 1",
            ),
            (
                "memberSet",
                r#"[[1], "length", 0]"#,
                "memberSet: 'length' is no index of a list",
            ),
            (
                "memberSet",
                r#"["text", 0, 0]"#,
                "memberSet wants an object or a list, got string",
            ),
            ("memberSet", "[{}, null, 0]", "memberSet: there is no key"),
            (
                "memberSet",
                "[{}, [], 0]",
                "Property key must be a string or number",
            ),
            (
                "memberDelete",
                "[[1], 0]",
                "memberDelete wants an object, got a list",
            ),
        ] {
            assert_eq!(fails(op, args), expected, "{args}");
        }
    }

    #[test]
    fn members_are_paid() {
        assert_eq!(
            fuel_for("keys", r#"[{"a":1,"b":2}]"#),
            MEMBERS.price(Sizes::elements(2))
        );
        assert_eq!(
            fuel_for("merge", r#"[{"a":1,"b":2},{"a":3}]"#),
            MEMBERS.price(Sizes::elements(3))
        );
    }
}
