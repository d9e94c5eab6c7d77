//! Reading of options: objects with known members of known types.

use crate::failure::{Failure, codes};
use a99_core::diag::suggest;
use agent99::{
    AtomTimeout, CostModel, CostOverride, Equality, Fuel, Map, Quota, RunOptions, Text, Value,
};
use std::collections::HashMap;

/// An object of options; each member is taken once, and leftovers are refused.
pub(crate) struct Members<'a> {
    what: &'static str,
    known: &'static [&'static str],
    map: Option<&'a Map>,
}

/// The kind of a value for messages.
fn kind(value: &Value) -> String {
    match value {
        Value::Number(n) => format!("the number {n}"),
        other => other.kind().to_owned(),
    }
}

impl<'a> Members<'a> {
    /// The members of an object, or of nothing.
    pub(crate) fn of(
        what: &'static str,
        known: &'static [&'static str],
        value: Option<&'a Value>,
    ) -> Result<Members<'a>, Failure> {
        let map = match value {
            None | Some(Value::Undefined | Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(other) => {
                let message = format!("{what} must be an object, not {}", kind(other));
                return Err(Failure::new(codes::BAD_OPTION, message));
            }
        };
        for (name, _) in map.into_iter().flatten() {
            let name = name.to_string_lossy();
            if !known.contains(&&*name) {
                let failure = Failure::new(codes::BAD_OPTION, format!("{what} has no `{name}`"));
                return Err(match suggest(&name, known.iter().copied()) {
                    Some(near) => failure.with_help(format!("did you mean `{near}`?")),
                    None => failure.with_help(format!("it has {}", known.join(", "))),
                });
            }
        }
        Ok(Members { what, known, map })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        debug_assert!(self.known.contains(&name), "{name}");
        let value = self.map?.get(name)?;
        (!value.is_nullish()).then_some(value)
    }

    fn wrong(&self, name: &str, wanted: &str, value: &Value) -> Failure {
        let message = format!(
            "`{name}` of {} must be {wanted}, not {}",
            self.what,
            kind(value)
        );
        Failure::new(codes::BAD_OPTION, message)
    }

    fn read<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let read = read(value).ok_or_else(|| self.wrong(name, wanted, value))?;
        Ok(Some(read))
    }

    pub(crate) fn bool(&self, name: &str) -> Result<Option<bool>, Failure> {
        self.read(name, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Failure> {
        self.read(name, "a text", Value::as_str)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Failure> {
        let texts = self.read(name, "a list of texts", |value| {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(str::to_owned)).collect()
        });
        Ok(texts?.unwrap_or_default())
    }

    /// Texts by name.
    pub(crate) fn texts_by_name(&self, name: &str) -> Result<Vec<(String, String)>, Failure> {
        let texts = self.read(name, "an object of texts", |value| {
            let members = value.as_object()?.iter();
            members
                .map(|(name, text)| {
                    Some((
                        name.to_string_lossy().into_owned(),
                        text.as_str()?.to_owned(),
                    ))
                })
                .collect::<Option<Vec<_>>>()
        });
        Ok(texts?.unwrap_or_default())
    }

    /// A number of fuel units or milliseconds: finite and not negative.
    pub(crate) fn amount(&self, name: &str) -> Result<Option<f64>, Failure> {
        self.read(name, "a finite number of at least 0", amount)
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Option<usize>, Failure> {
        Ok(self.amount(name)?.map(|n| n as usize))
    }

    /// Amounts by the names of atoms.
    fn amounts(&self, name: &str) -> Result<Vec<(String, f64)>, Failure> {
        let wanted = "an object of finite numbers of at least 0";
        let amounts = self.read(name, wanted, |value| {
            let members = value.as_object()?.iter();
            let members = members.filter(|(_, value)| !value.is_nullish());
            members
                .map(|(op, value)| Some((op.to_string_lossy().into_owned(), amount(value)?)))
                .collect::<Option<Vec<_>>>()
        });
        Ok(amounts?.unwrap_or_default())
    }
}

fn amount(value: &Value) -> Option<f64> {
    value.as_f64().filter(|n| n.is_finite() && *n >= 0.0)
}

/// The limit of an atom in milliseconds; 0 stands for no limit.
pub(crate) fn timeout(ms: f64) -> AtomTimeout {
    match ms {
        0.0 => AtomTimeout::None,
        ms => AtomTimeout::Ms(ms.ceil() as u64),
    }
}

/// Members of the options of a run.
const RUN: &[&str] = &[
    "fuel",
    "timeoutMs",
    "costOverrides",
    "costFns",
    "timeoutOverrides",
    "quotas",
    "quotaUsed",
    "context",
    "readableContext",
    "maxHeapBytes",
    "membraneMaxBytes",
    "membraneMaxDepth",
    "trace",
    "costModel",
    "equality",
    "capabilities",
    "depth",
    "events",
];

/// The options of a run, and what its binding needs of them.
pub(crate) struct ReadOptions {
    pub(crate) options: RunOptions,
    /// Atoms whose prices the host decides.
    pub(crate) cost_fns: Vec<String>,
    pub(crate) offered: Vec<String>,
    pub(crate) quotas: Vec<(String, Quota)>,
    /// Whether the host gets the events of the run while it is in progress.
    pub(crate) wants_events: bool,
}

/// Reads the options of a run.
pub(crate) fn run_options(value: Option<&Value>) -> Result<ReadOptions, Failure> {
    let members = Members::of("the options of a run", RUN, value)?;
    let mut options = RunOptions::new();
    if let Some(fuel) = members.amount("fuel")? {
        options.fuel = Fuel::from_decimal(fuel)
            .map_err(|error| Failure::new(codes::BAD_OPTION, format!("fuel: {error}")))?;
    }
    if let Some(ms) = members.amount("timeoutMs")? {
        options.timeout_ms = Some(ms.ceil() as u64);
    }
    for (op, price) in members.amounts("costOverrides")? {
        let micro = micro_units(price);
        options.costs.insert(op, CostOverride::Fixed(micro));
    }
    for (op, ms) in members.amounts("timeoutOverrides")? {
        options.timeouts.insert(op, timeout(ms));
    }
    let used: HashMap<String, f64> = members.amounts("quotaUsed")?.into_iter().collect();
    let mut quotas = Vec::new();
    for (op, calls) in members.amounts("quotas")? {
        let before = used.get(&op).copied().unwrap_or(0.0);
        let quota = Quota::with_used(calls as u64, before as u64);
        options.quotas.insert(op.clone(), quota.clone());
        quotas.push((op, quota));
    }
    if let Some(context) = members.get("context") {
        options = options.context(context.clone());
    }
    let readable = members.texts("readableContext")?;
    if !readable.is_empty() {
        options = options.readable_context(readable);
    }
    let limits = &mut options.limits;
    let boundary = &mut limits.boundary;
    limits.heap_bytes = members.bytes("maxHeapBytes")?.unwrap_or(limits.heap_bytes);
    boundary.max_bytes = members
        .bytes("membraneMaxBytes")?
        .unwrap_or(boundary.max_bytes);
    if let Some(depth) = members.amount("membraneMaxDepth")? {
        boundary.max_depth = depth as u32;
    }
    options.trace = members.bool("trace")?.unwrap_or(false);
    options.depth = members.amount("depth")?.unwrap_or(0.0) as u32;
    options.cost_model = match members.text("costModel")? {
        None | Some("metered") => CostModel::Metered,
        Some("flat") => CostModel::Flat,
        Some(_) => return Err(one_of("costModel", "\"metered\" or \"flat\"")),
    };
    options.equality = match members.text("equality")? {
        None | Some("loose") => Equality::Loose,
        Some("exact") => Equality::Exact,
        Some(_) => return Err(one_of("equality", "\"loose\" or \"exact\"")),
    };
    Ok(ReadOptions {
        options,
        cost_fns: members.texts("costFns")?,
        offered: members.texts("capabilities")?,
        quotas,
        wants_events: members.bool("events")?.unwrap_or(false),
    })
}

/// Micro-units of a price that was checked.
pub(crate) fn micro_units(price: f64) -> i64 {
    a99_core::fuel::cost_from_f64(price).unwrap_or(i64::MAX)
}

fn one_of(name: &str, wanted: &str) -> Failure {
    let message = format!("`{name}` of the options of a run must be {wanted}");
    Failure::new(codes::BAD_OPTION, message)
}

/// A text as a value, for lists of warnings.
pub(crate) fn texts(texts: impl IntoIterator<Item = Text>) -> Value {
    Value::Array(texts.into_iter().map(Value::String).collect())
}
