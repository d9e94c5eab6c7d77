//! Engines: the language's atoms, and those that the host runs.

use crate::failure::{Failure, codes};
use crate::options::{Members, micro_units, timeout};
use a99_core::diag::suggest;
use a99_core::schema::{Schema, validate};
use a99_core::sig::DEFAULT_ATOM_TIMEOUT_MS;
use agent99::{
    AtomBody, AtomDef, AtomError, AtomSet, AtomSig, AtomTimeout, Effect, HostCall, HostReply,
    Params, Value, all_atoms,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::ready;

const CONFIG: &[&str] = &["aliases", "atoms", "only", "without"];

const ATOM: &[&str] = &[
    "op",
    "docs",
    "input",
    "output",
    "effect",
    "cost",
    "costFn",
    "timeoutMs",
    "inputs",
    "direct",
];

/// The schemas by which calls of an atom of the host are checked.
pub(crate) struct Checks {
    /// Place among the atoms of the host.
    pub(crate) place: usize,
    /// Whether the host may answer at once.
    pub(crate) is_direct: bool,
    input: Option<Schema>,
    output: Option<Schema>,
}

impl Checks {
    fn of(place: usize, atom: &Value) -> Checks {
        let schema = |name| match atom.get(name) {
            None | Some(Value::Undefined | Value::Null | Value::Bool(true)) => None,
            Some(schema) => Some(Schema::parse(schema)),
        };
        let is_raw = atom.get("inputs").and_then(Value::as_str) == Some("raw");
        Checks {
            place,
            is_direct: atom.get("direct").and_then(Value::as_bool) != Some(false),
            input: schema("input").filter(|_| !is_raw),
            output: schema("output"),
        }
    }

    /// The error of inputs that do not match; the host is not asked then.
    pub(crate) fn input(&self, op: &str, inputs: &Value) -> Result<(), AtomError> {
        check(self.input.as_ref(), "Input", op, inputs)
    }

    /// The error of an answer that does not match (D46). An undefined one binds nothing.
    pub(crate) fn output(&self, op: &str, answer: &Value) -> Result<(), AtomError> {
        match answer {
            Value::Undefined => Ok(()),
            answer => check(self.output.as_ref(), "Output", op, answer),
        }
    }
}

fn check(schema: Option<&Schema>, what: &str, op: &str, value: &Value) -> Result<(), AtomError> {
    let checked = schema.map_or(Ok(()), |schema| validate(value, schema));
    checked.map_err(|error| AtomError::new(format!("{what} validation failed for '{op}': {error}")))
}

/// The atoms of an engine, and which of them the host prices.
pub(crate) struct ReadAtoms {
    pub(crate) set: AtomSet,
    /// Names of the atoms that the host runs.
    pub(crate) host_atoms: HashMap<String, Checks>,
    pub(crate) cost_fns: Vec<String>,
}

/// Reads the configuration of an engine.
pub(crate) fn read(config: Option<&Value>) -> Result<ReadAtoms, Failure> {
    let config = Members::of("the configuration", CONFIG, config)?;
    let mut set = all_atoms();
    let only = config.texts("only")?;
    let without = config.texts("without")?;
    for name in only.iter().chain(&without) {
        known(&set, name)?;
    }
    let mut removed: Vec<&str> = without.iter().map(String::as_str).collect();
    let all = set.clone();
    if !only.is_empty() {
        let names = all.iter().map(|atom| &*atom.sig.name);
        removed.extend(names.filter(|name| !only.iter().any(|kept| kept == name)));
    }
    set = set.without(&removed);
    for (name, op) in config.texts_by_name("aliases")? {
        let renamed = |atom: &AtomDef, name: String| {
            let mut atom = atom.clone();
            atom.sig.name = Cow::Owned(name);
            atom
        };
        // The guard of an atom checks its inputs before the others are evaluated.
        let guard = format!("guard:{name}");
        set = match all.get(&format!("guard:{op}")) {
            Some(of) => set.with(renamed(of, guard)),
            None => set.without(&[&guard]),
        };
        set.insert(renamed(known(&all, &op)?, name));
    }
    let (mut host_atoms, mut cost_fns) = (HashMap::new(), Vec::new());
    let atoms = config.get("atoms").map(|atoms| {
        let message = "`atoms` of the configuration must be a list";
        let list = atoms.as_array();
        list.ok_or_else(|| Failure::new(codes::BAD_OPTION, message))
    });
    let atoms = atoms.transpose()?.unwrap_or_default();
    for (place, atom) in atoms.iter().enumerate() {
        let checks = Checks::of(place, atom);
        let (atom, is_priced_by_host) = read_atom(atom)?;
        if is_priced_by_host {
            cost_fns.push(atom.sig.name.to_string());
        }
        host_atoms.insert(atom.sig.name.to_string(), checks);
        set.insert(atom);
    }
    Ok(ReadAtoms {
        set,
        host_atoms,
        cost_fns,
    })
}

/// An atom of the language.
fn known<'a>(set: &'a AtomSet, name: &str) -> Result<&'a AtomDef, Failure> {
    if let Some(atom) = set.get(name) {
        return Ok(atom);
    }
    let failure = Failure::new(codes::BAD_OPTION, format!("there is no atom `{name}`"));
    let names = set.iter().map(|atom| &*atom.sig.name);
    Err(match suggest(name, names) {
        Some(near) => failure.with_help(format!("did you mean `{near}`?")),
        None => failure,
    })
}

fn read_atom(value: &Value) -> Result<(AtomDef, bool), Failure> {
    let atom = Members::of("an atom", ATOM, Some(value))?;
    let op = atom.text("op")?.filter(|op| !op.is_empty());
    let op = op.ok_or_else(|| Failure::new(codes::BAD_OPTION, "an atom needs `op`, its name"))?;
    let docs = atom.text("docs")?.unwrap_or("An atom of the host.");
    let schema = |name| match atom.get(name) {
        None | Some(Value::Bool(true)) => Cow::Borrowed(""),
        Some(schema) => Cow::Owned(schema.to_json_string()),
    };
    let effect = match atom.text("effect")? {
        None | Some("unsafe") => Effect::Unsafe,
        Some("pure") => Effect::Pure,
        Some("mutates") => Effect::Mutates,
        Some("read") => Effect::Read,
        Some("idempotent") => Effect::Idempotent,
        Some(_) => {
            let message = format!("`effect` of `{op}` is unknown");
            let help = "write `pure`, `mutates`, `read`, `idempotent` or `unsafe`";
            return Err(Failure::new(codes::BAD_OPTION, message).with_help(help));
        }
    };
    let params = match atom.text("inputs")? {
        None | Some("resolved") => Params::Open,
        Some("raw") => Params::Raw,
        Some(_) => {
            let message = format!("`inputs` of `{op}` must be `resolved` or `raw`");
            return Err(Failure::new(codes::BAD_OPTION, message));
        }
    };
    let cost = micro_units(atom.amount("cost")?.unwrap_or(1.0));
    let base = AtomSig::new("", "", cost);
    let input_schema = match schema("input") {
        Cow::Borrowed("") => base.input_schema.clone(),
        schema => schema,
    };
    let sig = AtomSig {
        name: Cow::Owned(op.to_owned()),
        docs: Cow::Owned(docs.to_owned()),
        params,
        input_schema,
        output_schema: schema("output"),
        effect,
        timeout: match atom.amount("timeoutMs")? {
            Some(ms) => timeout(ms),
            None => AtomTimeout::Ms(DEFAULT_ATOM_TIMEOUT_MS),
        },
        ..base
    };
    let def = AtomDef {
        sig,
        body: AtomBody::Async(unanswered),
        dynamic_cost: None,
    };
    Ok((def, atom.bool("costFn")?.unwrap_or(false)))
}

/// The body of the host's atoms, which runs never start: the host answers their calls.
fn unanswered(
    _: HostCall,
) -> agent99::capabilities::BoxFuture<'static, Result<HostReply, AtomError>> {
    Box::pin(ready(Err(AtomError::new("The host answers this atom"))))
}
