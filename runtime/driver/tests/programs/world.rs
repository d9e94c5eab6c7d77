//! A world that counts what is asked of it, and a journal that is cut off.

use a99_capabilities::{BoxFuture, FixedClock, SeededRandom};
use a99_runtime::program::{
    CallJournal, CallRow, MemoryJournal, ProgramHandler, ProgramTurn, START_ROW,
};
use a99_runtime_engine::{JournalStatus, StoreCode, StoreError};
use agent99::{
    AtomBody, AtomDef, AtomError, AtomSet, AtomSig, AtomTimeout, Effect, Engine, HostCall,
    HostReply, Params, Value, all_atoms,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// Calls of the atom `host`, by identity.
#[derive(Debug, Default)]
pub(crate) struct World {
    made: Mutex<BTreeMap<String, u32>>,
    /// How many of the first calls fail.
    pub(crate) failures: Mutex<u32>,
}

impl World {
    pub(crate) fn made(&self) -> BTreeMap<String, u32> {
        self.made.lock().expect("a lock").clone()
    }

    fn answer(&self, call: &HostCall) -> Result<Value, AtomError> {
        *(self.made.lock().expect("a lock"))
            .entry(call.id.to_string())
            .or_default() += 1;
        let mut failures = self.failures.lock().expect("a lock");
        if *failures > 0 {
            *failures -= 1;
            return Err(AtomError::new("the world is down"));
        }
        let input = call.args.first().cloned().unwrap_or(Value::Undefined);
        if input.get("fails").is_some() {
            return Err(AtomError::new("as asked"));
        }
        Ok(input
            .get("gives")
            .cloned()
            .unwrap_or(call.id.step().to_string().into()))
    }
}

/// An atom of the host's that talks to a world.
pub(crate) fn host_atom(world: Arc<World>) -> AtomDef {
    let body = move |call: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        let world = world.clone();
        Box::pin(async move {
            let waits = call.args.first().and_then(|input| input.get("waits"));
            if waits.is_some() {
                std::future::pending::<()>().await;
            }
            world.answer(&call).map(HostReply::from)
        })
    };
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("host"),
            params: Params::Raw,
            timeout: AtomTimeout::Ms(1_000),
            effect: Effect::Unsafe,
            ..AtomSig::new("", "An atom of the host.", 300_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

pub(crate) fn atoms(world: &Arc<World>) -> AtomSet {
    all_atoms().with(host_atom(world.clone()))
}

pub(crate) fn engine(world: &Arc<World>) -> Engine {
    Engine::builder().atoms(atoms(world)).build()
}

pub(crate) fn handler(engine: &Engine) -> ProgramHandler {
    let clock = Arc::new(FixedClock::new(1_700_000_000_000.0));
    ProgramHandler::new(engine.clone(), clock, Arc::new(SeededRandom::new(5)))
}

/// At which moment of a call a turn is cut off.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// When it is looked up.
    Found,
    /// When its start was kept.
    Started,
    /// When it was made, before its answer is kept.
    Made,
    /// When its answer was kept.
    Answered,
}

/// A journal that refuses everything from a moment of a call on.
#[derive(Debug)]
pub(crate) struct CutJournal {
    rows: Arc<MemoryJournal>,
    moment: Moment,
    left: AtomicI64,
}

impl CutJournal {
    /// Cuts off at the `number`th such moment, from 0.
    pub(crate) fn new(rows: Arc<MemoryJournal>, moment: Moment, number: i64) -> CutJournal {
        CutJournal {
            rows,
            moment,
            left: AtomicI64::new(number),
        }
    }

    /// How many such moments there were.
    pub(crate) fn seen(&self) -> i64 {
        i64::MAX - self.left.load(Ordering::Relaxed)
    }

    fn is_cut(&self, moment: Moment) -> bool {
        if self.left.load(Ordering::Relaxed) < 0 {
            return true;
        }
        moment == self.moment && self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

fn cut() -> StoreError {
    StoreError::new(StoreCode::Unavailable, "cut off")
}

impl CallJournal for CutJournal {
    fn find(&self, name: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        if name != START_ROW && self.is_cut(Moment::Found) {
            return Box::pin(std::future::ready(Err(cut())));
        }
        self.rows.find(name)
    }

    fn record(&self, row: CallRow) -> BoxFuture<'_, Result<(), StoreError>> {
        let is_start = row.status == JournalStatus::Started;
        let is_call = row.name != START_ROW;
        if is_call && !is_start && self.is_cut(Moment::Made) {
            return Box::pin(std::future::ready(Err(cut())));
        }
        let after = match is_start {
            true => Moment::Started,
            false => Moment::Answered,
        };
        Box::pin(async move {
            self.rows.record(row).await?;
            match is_call && self.is_cut(after) {
                true => Err(cut()),
                false => Ok(()),
            }
        })
    }
}

pub(crate) fn turn(args: Value, journal: Arc<dyn CallJournal>) -> ProgramTurn {
    ProgramTurn {
        args,
        journal,
        turn: None,
    }
}

/// What must be equal of two ends.
pub(crate) fn shown(end: &a99_runtime::program::ProgramEnd) -> String {
    let outcome = &end.outcome;
    format!(
        "{:?} {:?} {:?} {:?}",
        outcome.result, outcome.error, outcome.fuel_used, outcome.warnings
    )
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}
