//! `template` (language section 2.5): `{{name}}` in a text replaced by values.

use crate::def::{Adjust, Input, Kind, native, opt, req};
use crate::objects::array_index;
use a99_core::costs::{BOTH, FEW_HOLES, HOLE, MICRO, READ, Sizes, WRITTEN};
use a99_core::sig::{Binding, ShortPrompts};
use a99_core::sig::{Gives, JsonKinds};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::builtins::unknown_method;
use a99_vm::coerce::to_str;
use a99_vm::heap::template::{Hole, Holes, opening};
use a99_vm::heap::{Oom, Str, Val};
use a99_vm::member::walk_own;
use a99_vm::native::{Cx, Fault};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) fn atoms() -> Vec<AtomDef> {
    let vars = opt(
        "vars",
        Kind::Record,
        "A value or reference for each name in `tmpl`; a name that is missing or null shows as \
         nothing. A text with a `{{name}}` needs it.",
    )
    .bound(Binding::TemplateVars { template: 0 });
    const TMPL: Input = req("tmpl", Kind::Text, "As of `template`.");
    vec![
        native(
            "template",
            "Replaces each {{name}} in a text by the value of that name.",
            MICRO,
            &[
                req(
                    "tmpl",
                    Kind::Text,
                    "Text with names in double braces, of letters, digits and `_`: `{{name}}`.",
                ),
                vars,
            ],
            template,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::STRING))
        .metered(BOTH),
        native(
            "template:fill",
            "A template whose holes show these texts, first to last.",
            0,
            &[TMPL, req("shown", Kind::Texts, "What the holes show.")],
            fill,
        )
        .metered(BOTH),
        native(
            "template:text",
            "What a hole of a template shows for a value.",
            0,
            &[req("value", Kind::Any, "What is shown.")],
            shown,
        ),
        native(
            "template:names",
            "Which of these names a template has holes of.",
            0,
            &[TMPL, req("names", Kind::Texts, "Names to look for.")],
            names,
        ),
        native(
            "template:paths",
            "A template whose holes may be paths.",
            0,
            &[TMPL, vars],
            template_paths,
        )
        .metered(BOTH),
        native(
            "template:fillPaths",
            "A template whose holes, which may be paths, show these texts, first to last.",
            0,
            &[TMPL, req("shown", Kind::Texts, "What the holes show.")],
            fill_paths,
        )
        .metered(BOTH),
        native(
            "template:roots",
            "Which of these names the paths of a template begin with.",
            0,
            &[TMPL, req("names", Kind::Texts, "Names to look for.")],
            roots,
        ),
    ]
}

/// Elements charged for each name of a path after the first.
const PATH_NAME: usize = 3;

/// Replaces the holes. All values are converted and their sizes added before the result is charged,
/// checked against the heap and built (C11).
fn template(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    if let Val::Str(text) = args[0]
        && let Some(template) = cx.heap.template(text)
    {
        let holes = SmallVec::<[Hole; 8]>::from_slice(&template.holes);
        let rest = template.rest;
        return linked(cx, text, &holes, rest, args[1]);
    }
    replace(cx, args[0], Holes::Names, |cx, text, hole, _| {
        let value = lookup(cx, args[1], text, hole)?;
        show(cx, value)
    })
}

/// Fills a constant template, whose holes and the text after them are precomputed.
fn linked(cx: &mut Cx<'_>, text: Str, holes: &[Hole], rest: Str, vars: Val) -> Result<Val, Fault> {
    cx.charge(BOTH, Sizes::units(text.units()))?;
    if holes.len() > FEW_HOLES {
        let more = HOLE * (holes.len() - FEW_HOLES);
        cx.charge(READ, Sizes::elements(more))?;
    }
    let mut filled = Filled::default();
    for hole in holes {
        let value = match (vars, hole.key) {
            (Val::Obj(r), Some(key)) => cx.own_member(r, key).unwrap_or(Val::Undefined),
            _ => lookup(cx, vars, text, &hole.name())?,
        };
        let value = show(cx, value)?;
        filled.keep(cx, hole.before)?;
        filled.keep(cx, value)?;
        cx.work(32)?;
    }
    filled.keep(cx, rest)?;
    filled.text(cx)
}

/// Replaces holes with paths: own members of the variable's value.
fn template_paths(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    replace(cx, args[0], Holes::Paths, |cx, text, hole, _| {
        let path = cx.bytes(text)[hole.clone()].to_vec();
        let mut names = path.split(|b| *b == b'.');
        let root = names.next().map_or(0, <[u8]>::len);
        let value = lookup(cx, args[1], text, &(hole.start..hole.start + root))?;
        let rest: Vec<&[u8]> = names.collect();
        cx.work(16 * rest.len() as i64)?;
        let value = walk_own(cx, value, &rest)?;
        show(cx, value)
    })
}

/// Fills holes with texts that were computed hole by hole.
fn fill(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    filled(cx, args, Holes::Names)
}

fn fill_paths(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    filled(cx, args, Holes::Paths)
}

fn filled(cx: &mut Cx<'_>, args: &[Val], holes: Holes) -> Result<Val, Fault> {
    let texts = args[1];
    replace(cx, args[0], holes, |cx, _, _, n| {
        Ok(match texts {
            Val::Arr(r) => match cx.heap.items(r).get(n) {
                Some(Val::Str(text)) => *text,
                _ => Str::EMPTY,
            },
            _ => Str::EMPTY,
        })
    })
}

fn shown(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    show(cx, args[0]).map(Val::Str)
}

fn show(cx: &mut Cx<'_>, value: Val) -> Result<Str, Fault> {
    match value {
        v if v.is_nullish() => Ok(Str::EMPTY),
        v => to_str(cx, v),
    }
}

/// Takes one pass over the text for any number of names.
fn names(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    named(cx, args, Holes::Names)
}

fn roots(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    named(cx, args, Holes::Paths)
}

fn named(cx: &mut Cx<'_>, args: &[Val], kind: Holes) -> Result<Val, Fault> {
    let (Val::Str(text), Val::Arr(names)) = (args[0], args[1]) else {
        return Ok(Val::Undefined);
    };
    cx.work((text.len_bytes() / 16) as i64)?;
    let count = cx.heap.len(names);
    cx.work(count as i64 * 16)?;
    cx.heap
        .check(count * (size_of::<Val>() + size_of::<(&[u8], usize)>()))?;
    let mut found = vec![Val::Bool(false); count];
    let mut holes = Vec::new();
    let mut from = 0;
    while let Some(hole) = next_hole(cx, text, from, kind)? {
        from = hole.end + 2;
        cx.work(16)?;
        cx.heap.check(holes.len() * 4 * size_of::<Range<usize>>())?;
        holes.push(hole);
    }
    let bytes = cx.bytes(text);
    let wanted: HashMap<&[u8], usize> = (0..count)
        .filter_map(|i| match cx.heap.items(names)[i] {
            Val::Str(name) => Some((cx.bytes(name), i)),
            _ => None,
        })
        .collect();
    for hole in holes {
        let name = bytes[hole].split(|b| *b == b'.').next();
        if let Some(i) = name.and_then(|name| wanted.get(name)) {
            found[*i] = Val::Bool(true);
        }
    }
    Ok(Val::Arr(cx.list(&found)?))
}

/// Replaces each hole with the result of `show`, which gets the hole and its number.
fn replace(
    cx: &mut Cx<'_>,
    text: Val,
    kind: Holes,
    show: impl Fn(&mut Cx<'_>, Str, &Range<usize>, usize) -> Result<Str, Fault>,
) -> Result<Val, Fault> {
    let Val::Str(text) = text else {
        return Err(unknown_method(cx, text, "replace"));
    };
    cx.charge(BOTH, Sizes::units(text.units()))?;
    let mut filled = Filled::default();
    let mut done = 0;
    let mut from = 0;
    let mut holes = 0;
    while let Some(hole) = next_hole(cx, text, from, kind)? {
        if kind == Holes::Paths {
            let names = cx.bytes(text)[hole.clone()].iter();
            let dots = names.filter(|b| **b == b'.').count();
            cx.charge(READ, Sizes::elements(PATH_NAME * dots))?;
        }
        if holes >= FEW_HOLES {
            cx.charge(READ, Sizes::elements(HOLE))?;
        }
        let value = show(cx, text, &hole, holes)?;
        holes += 1;
        let before = part(cx, text, done..hole.start - 2)?;
        filled.keep(cx, before)?;
        filled.keep(cx, value)?;
        done = hole.end + 2;
        from = done;
        cx.work(32)?;
    }
    if done == 0 {
        cx.charge(WRITTEN, Sizes::default().out_units(text.units()))?;
        return Ok(Val::Str(text));
    }
    let rest = part(cx, text, done..text.len_bytes())?;
    filled.keep(cx, rest)?;
    filled.text(cx)
}

/// Range of the name of the next `{{name}}` at or after `from`.
fn next_hole(
    cx: &mut Cx<'_>,
    text: Str,
    from: usize,
    kind: Holes,
) -> Result<Option<Range<usize>>, Fault> {
    /// Bytes scanned between two polls of the host.
    const PIECE: usize = 16 << 10;
    let len = text.len_bytes().saturating_sub(from);
    if len <= PIECE {
        let found = kind.next(cx.bytes(text), from);
        // Only the scanned part counts: there may be thousands of holes.
        let looked = found.as_ref().map_or(len, |hole| hole.end - from);
        cx.work(looked as i64 / 2)?;
        return Ok(found);
    }
    let mut at = from;
    // Start of the name after the current opening braces.
    let mut word: Option<usize> = None;
    while at < text.len_bytes() {
        let end = text.len_bytes().min(at + PIECE);
        let before = at;
        // One byte more, so a pair of braces is not split.
        let bytes = &cx.bytes(text)[..text.len_bytes().min(end + 1)];
        match word {
            None => match opening(&bytes[at..]) {
                Some(found) => {
                    at += found + 2;
                    word = Some(at);
                }
                None => at = end,
            },
            Some(start) => {
                let more = bytes[at..end].iter().take_while(|b| kind.has(**b)).count();
                at += more;
                if at == end && end < text.len_bytes() {
                    cx.work(1 + more as i64 / 2)?;
                    continue;
                }
                let bytes = cx.bytes(text);
                if bytes[at..].starts_with(b"}}") && kind.is_named(&bytes[start..at]) {
                    return Ok(Some(start..at));
                }
                // The last two braces of `{{{a}}` may open the hole.
                at = start - 1;
                word = None;
            }
        }
        cx.work(1 + at.saturating_sub(before) as i64 / 2)?;
    }
    Ok(None)
}

/// The value of a name among the variables; own members only (D16).
fn lookup(cx: &mut Cx<'_>, vars: Val, text: Str, name: &Range<usize>) -> Result<Val, Fault> {
    let name = &cx.bytes(text)[name.clone()];
    let found = match vars {
        Val::Obj(r) => cx.heap.get_text(r, name),
        Val::Arr(r) if name == b"length" => Some(Val::Num(cx.heap.len(r) as f64)),
        Val::Arr(r) => array_index(name).and_then(|i| cx.heap.items(r).get(i).copied()),
        Val::Undefined | Val::Unbound | Val::Null => {
            let kind = if matches!(vars, Val::Null) {
                "null"
            } else {
                "undefined"
            };
            return Err(Fault::throw(format!(
                "{kind} is not an object (evaluating 'vars[key]')"
            )));
        }
        _ => None,
    };
    Ok(found.unwrap_or(Val::Undefined))
}

/// Parts of a text whose holes are being filled, with their total size.
#[derive(Default)]
struct Filled {
    /// Most templates have few parts.
    parts: SmallVec<[Str; 8]>,
    bytes: usize,
    units: usize,
}

impl Filled {
    fn keep(&mut self, cx: &mut Cx<'_>, part: Str) -> Result<(), Fault> {
        if part.is_empty() {
            return Ok(());
        }
        if self.parts.len() == self.parts.capacity() {
            let more = self.parts.len();
            let wanted = (self.parts.len() + more) * size_of::<Str>();
            cx.heap.check(wanted)?;
            let reserved = self.parts.try_reserve_exact(more);
            reserved.map_err(|_| Oom { wanted })?;
        }
        self.bytes = self.bytes.saturating_add(part.len_bytes());
        self.units = self.units.saturating_add(part.units());
        self.parts.push(part);
        Ok(())
    }

    fn text(&self, cx: &mut Cx<'_>) -> Result<Val, Fault> {
        cx.charge(WRITTEN, Sizes::default().out_units(self.units))?;
        let text = cx.concat_all(&self.parts, self.bytes, self.units)?;
        Ok(Val::Str(text))
    }
}

/// Extracts a part of a text between two ASCII characters.
fn part(cx: &mut Cx<'_>, text: Str, range: Range<usize>) -> Result<Str, Fault> {
    let units = cx.units_of(text, range.clone())?;
    Ok(text.view(range.start, range.end, units))
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, fuel_for, run};

    #[test]
    fn holes_are_words_in_double_braces() {
        let forms = r#"["{{ a }} {a} {{{a}}} {{a-b}} {{}} {{a}}{{a}} {{A}} {{a_1}} {{1}}",
                        {"1": "Z", "a": "X", "a_1": "Y", "a-b": "no"}]"#;
        assert_eq!(
            run("template", forms),
            r#""{{ a }} {a} {X} {{a-b}} {{}} XX  Y Z""#
        );
        assert_eq!(
            run("template", r#"["{{0}}-{{1}}", ["a", "b"]]"#),
            r#""a-b""#
        );
        assert_eq!(
            run("template", r#"["¿{{q}}? 👍", {"q": "漢字"}]"#),
            r#""¿漢字? 👍""#
        );
    }

    #[test]
    fn values_become_text() {
        let types = r#"["{{a}}|{{b}}|{{c}}|{{d}}|{{e}}", {"a":[1,[2,null]],"b":{"x":1},"c":1e21,"d":null}]"#;
        assert_eq!(run("template", types), r#""1,2,|[object Object]|1e+21||""#);
        assert_eq!(
            run("template", r#"["{{toString}}{{__proto__}}", {}]"#),
            r#""""#
        );
    }

    #[test]
    fn surrogate_halves_meet() {
        let halves = r#"["{{h}}{{l}}", {"h": "\ud83d", "l": "\udc4d"}]"#;
        assert_eq!(run("template", halves), r#""👍""#);
    }

    #[test]
    fn missing_vars_matter_only_for_holes() {
        assert_eq!(run("template", r#"["plain"]"#), r#""plain""#);
        let text = "undefined is not an object (evaluating 'vars[key]')";
        assert_eq!(fails("template", r#"["{{x}}"]"#), text);
    }

    #[test]
    fn reading_and_writing_are_paid() {
        assert_eq!(fuel_for("template", r#"["0123456789"]"#), (10 + 10) * 100);
        assert_eq!(
            fuel_for("template", r#"["{{a}}{{a}}", {"a": "xyz"}]"#),
            (10 + 6) * 100
        );
    }
}
