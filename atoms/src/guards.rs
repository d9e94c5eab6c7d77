//! Guards: checks that some atoms make before they resolve all of their inputs. The compiler calls
//! these internal atoms and resolves the rest only if they return true. The atoms themselves check
//! again and produce the error.

use crate::def::{Input, Kind, native, opt, req};
use a99_capabilities::{Capabilities, StoreMethod};
use a99_vm::atom::{AtomDef, NativeFn, Scope};
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

/// Names of the guards.
pub(crate) const NAMES: &[&str] = &[
    "guard:split",
    "guard:join",
    "guard:template",
    "guard:llmPredict",
    "guard:xmlParse",
    "guard:agentRun",
    "guard:storeQuery",
    "guard:storeVectorSearch",
    "guard:storeSearch",
    "guard:storeCreateCollection",
    "guard:storeVectorAdd",
    "guard:storeVectorize",
    "guard:llmPredictBattery",
    "guard:llmVision",
];

pub(crate) fn atoms() -> Vec<AtomDef> {
    const K: Input = opt("k", Kind::Any, "As of the search.");
    let bodies: [(&[Input], NativeFn); NAMES.len()] = [
        (&[req("str", Kind::Any, "As of `split`.")], present),
        (&[req("list", Kind::Any, "As of `join`.")], present),
        (&[req("tmpl", Kind::Any, "As of `template`.")], text),
        (&[], |_, s, _| has(s, |c| c.llm.is_some() || c.ai.is_some())),
        (&[], |_, s, _| has(s, |c| c.xml.is_some())),
        (&[req("agentId", Kind::Any, "As of `agentRun`.")], agent),
        (&[], |_, s, _| store(s, StoreMethod::Query)),
        (&[K], searches),
        (&[K], searches),
        (&[], |_, s, _| store(s, StoreMethod::CreateCollection)),
        (&[], |_, s, _| store(s, StoreMethod::VectorAdd)),
        (&[], |_, s, _| has(s, |c| c.embedder.is_some())),
        (&[], chats),
        (&[], chats),
    ];
    const DOCS: &str = "Whether an atom gets as far as its other inputs.";
    let defs = NAMES.iter().zip(bodies);
    defs.map(|(name, (inputs, body))| native(name, DOCS, 0, inputs, body))
        .collect()
}

/// Methods can be looked up on all values except null and undefined.
fn present(_: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(!args[0].is_nullish()))
}

fn text(_: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(matches!(args[0], Val::Str(_))))
}

fn has(scope: &Scope<'_>, granted: impl Fn(&Capabilities) -> bool) -> Result<Val, Fault> {
    let all = scope.options.grants.as_ref();
    let all = all.and_then(|g| g.downcast_ref::<Capabilities>());
    Ok(Val::Bool(all.is_some_and(granted)))
}

fn store(scope: &Scope<'_>, method: StoreMethod) -> Result<Val, Fault> {
    has(scope, |c| {
        c.store.as_ref().is_some_and(|store| store.supports(method))
    })
}

fn searches(_: &mut Cx<'_>, scope: &mut Scope<'_>, _: &[Val]) -> Result<Val, Fault> {
    store(scope, StoreMethod::VectorSearch)
}

fn chats(_: &mut Cx<'_>, scope: &mut Scope<'_>, _: &[Val]) -> Result<Val, Fault> {
    has(scope, |c| c.llm_battery.is_some() || c.ai.is_some())
}

/// Programs and tokens of stored programs run without the capability.
fn agent(cx: &mut Cx<'_>, scope: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let inline = match args[0] {
        Val::Obj(r) => cx.heap.get_text(r, b"op").is_some(),
        Val::Str(s) => cx.bytes(s).starts_with(b"proc_"),
        _ => false,
    };
    if inline {
        return Ok(Val::Bool(true));
    }
    has(scope, |c| c.agent.is_some())
}
