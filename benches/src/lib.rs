//! Shared parts of the benchmarks: programs, inputs, and the limits that are active while they run.
//!
//! This crate measures nothing; the files under `benches/` do.

#![warn(unreachable_pub)]

pub mod pairs;
pub mod programs;
pub mod rates;
pub mod search;
pub mod stops;
pub mod turns;
pub mod work;

use a99_vm::atom::Scope;
use a99_vm::coerce::to_number;
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};
use agent99::{
    Agent, AtomBody, AtomDef, AtomSig, Binding, Capabilities, Engine, HostReply, Param, Params,
    RunOptions, RunProfile, Value, all_atoms, atom,
};

/// A budget that no benchmark uses up: large but finite, so that fuel is counted.
pub const FUEL: f64 = 1e12;

/// A deadline that no benchmark reaches: far but finite, so that it is checked.
pub const TIMEOUT_MS: u64 = 600_000;

/// The heap ceiling of every engine, in bytes.
pub const HEAP_BYTES: usize = 64 << 20;

/// Price of the trivial host function, in micro-units of fuel.
const ATOM_MICRO: i64 = 10_000;

/// Metered prices with all limits active and out of reach.
///
/// # Panics
/// Never: the budget is a constant.
pub fn limits() -> RunOptions {
    RunOptions::new()
        .fuel(FUEL)
        .expect("a finite budget")
        .timeout_ms(TIMEOUT_MS)
        .heap_bytes(HEAP_BYTES)
}

/// An engine with all atoms of the language and four of the host: `inc` and `incTyped`
/// (synchronous, the second by `#[atom]`), `incLater` (asynchronous, ready at once) and `wait`
/// (never answers).
pub fn engine() -> Engine {
    let mut atoms = all_atoms();
    for atom in host_atoms() {
        atoms.insert(atom);
    }
    let engine = Engine::builder().atoms(atoms.with(INC_TYPED));
    // Rows of the interpreter exclude the compiled tier.
    #[cfg(feature = "jit")]
    let engine = engine.compiled_tier(agent99::CompiledTier::Off);
    engine.build()
}

/// A trivial host function.
#[atom(cost = 0.01)]
fn inc_typed(x: f64) -> f64 {
    x + 1.0
}

/// Compiles a program of this crate.
///
/// # Panics
/// If the program is refused: the benchmark is wrong.
pub fn compiled(engine: &Engine, program: &str) -> Agent {
    engine
        .compile(program)
        .unwrap_or_else(|refused| panic!("{refused:?}"))
}

/// Runs an agent with [`limits`] and returns its result.
///
/// # Panics
/// If the run fails: the benchmark is wrong.
pub fn run(engine: &Engine, agent: &Agent, args: &Value) -> Value {
    let outcome = engine.run_sync(agent, args.clone(), limits());
    if let Some(error) = outcome.error {
        panic!("{error:?}");
    }
    outcome.result
}

/// The options of [`run`] for many runs, without grants.
///
/// # Panics
/// Never: the options name no op.
pub fn profile(engine: &Engine) -> RunProfile {
    let profile = engine.profile(limits(), Capabilities::none());
    profile.unwrap_or_else(|refused| panic!("{refused:?}"))
}

fn host_atoms() -> [AtomDef; 3] {
    const X: &[Param] = &[Param {
        name: "x",
        binding: Binding::Value,
    }];
    let sig = |name| AtomSig {
        params: Params::Named(X.into()),
        ..AtomSig::new(name, "A host function for benches.", ATOM_MICRO)
    };
    [
        AtomDef {
            sig: sig("inc"),
            body: AtomBody::Native(inc),
            dynamic_cost: None,
        },
        AtomDef {
            sig: sig("incLater"),
            body: AtomBody::Async(|call| {
                Box::pin(async move {
                    let x = call
                        .args
                        .first()
                        .and_then(Value::as_f64)
                        .unwrap_or(f64::NAN);
                    Ok(HostReply::from(Value::from(x + 1.0)))
                })
            }),
            dynamic_cost: None,
        },
        AtomDef {
            sig: sig("wait"),
            body: AtomBody::Async(|_| Box::pin(std::future::pending())),
            dynamic_cost: None,
        },
    ]
}

fn inc(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Num(to_number(cx, args[0])? + 1.0))
}
