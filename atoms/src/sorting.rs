//! `sort`, `groupBy`, `unique` and `sum` (language section 2.5, D73).

use crate::def::{Adjust, Input, Kind, native, opt, req};
use a99_core::costs::{Formula, MEMBERS, MICRO, READ};
use a99_core::sig::{Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::builtins::by_key::{self, By, MAX_KEYS, SortKey, UNIQUE};
use a99_vm::coerce::to_str;
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

const ITEMS: Input = req("items", Kind::List, "List of items; a set counts as one.").subject();

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "sort",
            "A sorted copy of a list; missing values come last.",
            MICRO,
            &[
                ITEMS,
                opt(
                    "by",
                    Kind::TextOrData,
                    "Path of the member to sort by, or a list of `{by, order}`.",
                )
                .literal(),
                opt("order", Kind::Text, "`desc` for the largest first.")
                    .literal()
                    .values(&["asc", "desc"])
                    .default(r#""asc""#),
            ],
            sort,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::ARRAY))
        .metered(Formula::Sort),
        native(
            "groupBy",
            "An object with a list of items for each value of a member.",
            MICRO,
            &[
                ITEMS,
                req("by", Kind::Text, "Path of the member that names the group.").literal(),
            ],
            group_by,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::OBJECT))
        .metered(MEMBERS),
        native(
            "unique",
            "The items of a list without duplicates.",
            MICRO,
            &[
                ITEMS,
                opt("by", Kind::Text, "Path of the member to compare items by.").literal(),
            ],
            unique,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ARRAY))
        .metered(UNIQUE),
        native(
            "sum",
            "The sum of the numbers of a list.",
            MICRO,
            &[
                ITEMS,
                opt("by", Kind::Text, "Path of the member to add.").literal(),
            ],
            sum,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::NUMBER))
        .metered(READ),
    ]
}

/// Parses a path from text. A missing or empty path denotes the item itself.
fn path(cx: &mut Cx<'_>, by: Val) -> Result<By, Fault> {
    match by {
        Val::Null | Val::Undefined | Val::Unbound => Ok(None),
        other => Ok(Some(to_str(cx, other)?).filter(|by| !by.is_empty())),
    }
}

/// True if an order is descending.
fn descends(cx: &mut Cx<'_>, order: Val, default: bool) -> Result<bool, Fault> {
    let text = match order {
        Val::Null | Val::Undefined | Val::Unbound => return Ok(default),
        other => to_str(cx, other)?,
    };
    match cx.bytes(text) {
        b"asc" => Ok(false),
        b"desc" => Ok(true),
        other => {
            let shown: String = String::from_utf8_lossy(other).chars().take(40).collect();
            Err(Fault::throw(format!(
                "sort: order is 'asc' or 'desc', not '{shown}'"
            )))
        }
    }
}

fn sort(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let default = descends(cx, args[2], false)?;
    let mut keys = Vec::new();
    let Val::Arr(list) = args[1] else {
        let (by, order) = key(cx, args[1])?;
        keys.push(SortKey {
            by,
            descending: descends(cx, order, default)?,
        });
        return by_key::sort(cx, args[0], &keys);
    };
    let n = cx.heap.len(list);
    if n > MAX_KEYS {
        return Err(Fault::throw(format!(
            "sort: by has {n} members, at most {MAX_KEYS} are looked at"
        )));
    }
    for at in 0..n {
        let (by, order) = key(cx, cx.heap.items(list)[at])?;
        keys.push(SortKey {
            by,
            descending: descends(cx, order, default)?,
        });
    }
    by_key::sort(cx, args[0], &keys)
}

/// Parses a path, or an object of path and order.
fn key(cx: &mut Cx<'_>, by: Val) -> Result<(By, Val), Fault> {
    let Val::Obj(key) = by else {
        return Ok((path(cx, by)?, Val::Undefined));
    };
    let part = |cx: &Cx<'_>, name: &[u8]| cx.heap.get_text(key, name).unwrap_or(Val::Undefined);
    let (by, order) = (part(cx, b"by"), part(cx, b"order"));
    Ok((path(cx, by)?, order))
}

fn group_by(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let by = path(cx, args[1])?;
    by_key::group_by(cx, args[0], by)
}

fn unique(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let by = path(cx, args[1])?;
    by_key::unique(cx, args[0], by)
}

fn sum(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let by = path(cx, args[1])?;
    by_key::sum(cx, args[0], by)
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, run};

    #[test]
    fn lists_are_sorted_by_kind() {
        for (args, expected) in [
            ("[[3, 10, 2]]", "[2,3,10]".to_owned()),
            (
                r#"[["b", 1, null, "a", true, 0]]"#,
                r#"[0,1,"a","b",true,null]"#.into(),
            ),
            (
                r#"[["b", 1, null, "a"], null, "desc"]"#,
                r#"["b","a",1,null]"#.into(),
            ),
            (
                r#"[[{"a":{"n":2}},{},{"a":{"n":1}}], "a.n"]"#,
                r#"[{"a":{"n":1}},{"a":{"n":2}},{}]"#.into(),
            ),
            (
                r#"[[[1,"x"],[2,"x"],[1,"y"]], [{"by":"1","order":"desc"},"0"]]"#,
                r#"[[1,"y"],[1,"x"],[2,"x"]]"#.into(),
            ),
        ] {
            assert_eq!(run("sort", args), expected, "{args}");
        }
        assert_eq!(
            fails("sort", r#"[[1], null, "down"]"#),
            "sort: order is 'asc' or 'desc', not 'down'"
        );
        assert_eq!(
            fails("sort", r#"["ab"]"#),
            "sort wants a list of items, got string"
        );
    }

    #[test]
    fn lists_are_grouped_and_summed() {
        assert_eq!(
            run("groupBy", r#"[[{"k":"b","n":1},{"k":"a"},{"k":"b"}], "k"]"#),
            r#"{"b":[{"k":"b","n":1},{"k":"b"}],"a":[{"k":"a"}]}"#
        );
        assert_eq!(run("unique", "[[1, 2, 1, 0, -0]]"), "[1,2,0]");
        assert_eq!(
            run("unique", r#"[[{"k":1},{"k":2},{"k":1}], "k"]"#),
            r#"[{"k":1},{"k":2}]"#
        );
        assert_eq!(run("sum", r#"[[1, null, "2.5"]]"#), "3.5");
        assert_eq!(run("sum", r#"[[{"n":1},{},{"n":2}], "n"]"#), "3");
        assert_eq!(
            fails("sum", r#"[[1, "x"]]"#),
            "sum: item 1 is a text, no number"
        );
    }
}
