//! Arguments of a run: the values of a program's argument keys.

use crate::convert::{self, BoundaryLimits};
use crate::heap::{Heap, Val};
use crate::link::Executable;
use crate::native::{Cx, Fault, Thrown};
use a99_core::error::ErrorCode;
use a99_core::program::{ArgFallback, ArgKey, Const, Program, TextRange};
use a99_core::value::Value;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Rejects arguments that violate the program's schema.
pub(super) fn check_args(cx: &mut Cx<'_>, exe: &Executable, args: &Value) -> Result<(), Fault> {
    let Some(schema) = &exe.input_schema else {
        return Ok(());
    };
    let Err(error) = crate::schema::check_host(cx, args, schema, false)? else {
        return Ok(());
    };
    let declared = exe.program().input_schema.as_ref();
    let declared = declared.unwrap_or(&Value::Undefined);
    Err(Fault::Throw(Box::new(Thrown {
        code: ErrorCode::ArgsInvalid,
        message: b"Input validation failed: args do not match expected schema".to_vec(),
        help: Some(crate::mismatch::help(&error, declared, args)),
        details: None,
        op: None,
        host_code: None,
    })))
}

/// The values of a program's argument keys (D15). Each root is converted once, so that paths
/// into it share its arrays.
pub(super) fn host_args(
    cx: &mut Cx<'_>,
    program: &Program,
    args: &Value,
    limits: &BoundaryLimits,
) -> Result<Vec<Val>, Fault> {
    if program.args.iter().any(ArgKey::is_all) {
        let all = convert::from_value(cx, args, limits)?;
        return guest_args(cx, program, all);
    }
    let mut roots = ProgramRoots::default();
    let mut out = Vec::with_capacity(program.args.len());
    for key in &program.args {
        let val = arg_value(cx, program, key, &mut |cx, name| {
            let name = program.text(name);
            if let Some(val) = roots.get(name) {
                return Ok(Some(val));
            }
            let Some(value) = args.as_object().and_then(|o| o.get_bytes(name)) else {
                return Ok(None);
            };
            let val = convert::from_value(cx, value, limits)?;
            roots.insert(name, val);
            Ok(Some(val))
        })?;
        out.push(val);
    }
    Ok(out)
}

/// Number of roots that are scanned linearly.
const FEW_ROOTS: usize = 16;

/// The arguments converted so far, as a linearly scanned list: hashing a few names costs more
/// than the rest of their conversion.
#[derive(Default)]
struct ProgramRoots<'p> {
    few: SmallVec<[(&'p [u8], Val); FEW_ROOTS]>,
    many: HashMap<&'p [u8], Val>,
}

impl<'p> ProgramRoots<'p> {
    fn get(&self, name: &[u8]) -> Option<Val> {
        let found = self.few.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, val)| *val)
            .or_else(|| self.many.get(name).copied())
    }

    fn insert(&mut self, name: &'p [u8], val: Val) {
        if self.few.len() < FEW_ROOTS {
            self.few.push((name, val));
        } else {
            self.many.insert(name, val);
        }
    }
}

/// The values of argument keys, if the arguments are a value of the run.
pub(super) fn guest_args(cx: &mut Cx<'_>, program: &Program, args: Val) -> Result<Vec<Val>, Fault> {
    let mut out = Vec::with_capacity(program.args.len());
    for key in &program.args {
        if key.is_all() {
            out.push(args);
            continue;
        }
        out.push(arg_value(cx, program, key, &mut |cx, name| {
            Ok(match args {
                Val::Obj(r) => cx.heap.get_text(r, program.text(name)),
                _ => None,
            })
        })?);
    }
    Ok(out)
}

/// Finds an argument by its name, given as a range of the program's text.
type Lookup<'f> = dyn FnMut(&mut Cx<'_>, TextRange) -> Result<Option<Val>, Fault> + 'f;

/// The value of an argument key.
pub(super) fn arg_value(
    cx: &mut Cx<'_>,
    program: &Program,
    key: &ArgKey,
    get: &mut Lookup<'_>,
) -> Result<Val, Fault> {
    if let Some(val) = get(cx, key.flat)? {
        return Ok(val);
    }
    if let Some(path) = &key.path
        && let Some((root, rest)) = path.split_first()
        && let Some(mut val) = get(cx, *root)?
    {
        for segment in rest {
            val = plain_member(cx.heap, val, program.text(*segment));
        }
        return Ok(val);
    }
    Ok(match key.fallback {
        ArgFallback::Undefined => Val::Undefined,
        ArgFallback::Unbound => Val::Unbound,
        ArgFallback::Builtin(b) => Val::Builtin(b),
        ArgFallback::Const(k) => match program.consts[k as usize] {
            Const::Null => Val::Null,
            Const::Bool(b) => Val::Bool(b),
            Const::Number(n) => Val::Num(n),
            _ => Val::Undefined,
        },
    })
}

/// A member of argument data: own members of objects, elements and `length`.
fn plain_member(heap: &Heap, val: Val, name: &[u8]) -> Val {
    match val {
        Val::Obj(r) => heap.get_text(r, name).unwrap_or(Val::Undefined),
        Val::Arr(r) if name == b"length" => Val::Num(heap.len(r) as f64),
        Val::Arr(r) => crate::heap::array_index(name)
            .and_then(|i| heap.items(r).get(i as usize).copied())
            .unwrap_or(Val::Undefined),
        Val::Str(s) if name == b"length" => Val::Num(s.units() as f64),
        _ => Val::Undefined,
    }
}
