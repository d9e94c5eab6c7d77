//! A run without a machine, for tests of builtins.

use crate::heap::{Heap, Val};
use crate::native::{Cx, Fault, Host, Meter, StopReason};
use a99_core::costs::CostModel;

/// A host that never stops a run, with a fixed time and no randomness.
#[derive(Debug)]
pub(crate) struct Still;

impl Host for Still {
    fn stop(&self) -> Option<StopReason> {
        None
    }

    fn now_ms(&self) -> f64 {
        1_700_000_000_000.0
    }

    fn random(&self, out: &mut [u8]) {
        out.fill(0x80);
    }
}

/// A host past its deadline.
#[derive(Debug)]
pub(crate) struct Late;

impl Host for Late {
    fn stop(&self) -> Option<StopReason> {
        Some(StopReason::Deadline)
    }

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self, _: &mut [u8]) {}
}

/// Upper bound that only quadratic time exceeds on the sizes of these tests. It measures
/// nothing.
pub(crate) const HANG: std::time::Duration = std::time::Duration::from_secs(60);

/// The parts of a [`Cx`].
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) heap: Heap,
    pub(crate) meter: Meter,
}

impl Default for Bench {
    fn default() -> Self {
        Bench {
            heap: Heap::default(),
            meter: Meter::new(i64::MAX, CostModel::Metered),
        }
    }
}

impl Bench {
    pub(crate) fn cx(&mut self) -> Cx<'_> {
        Cx {
            heap: &mut self.heap,
            meter: &mut self.meter,
            host: &Still,
        }
    }

    /// A bench with this fuel, in micro-units.
    pub(crate) fn with_fuel(fuel: i64) -> Bench {
        Bench {
            heap: Heap::default(),
            meter: Meter::new(fuel, CostModel::Metered),
        }
    }
}

/// The text of a catchable error.
pub(crate) fn message(fault: Fault) -> String {
    match fault {
        Fault::Throw(thrown) => String::from_utf8_lossy(&thrown.message).into_owned(),
        other => panic!("not a catchable error: {other:?}"),
    }
}

/// A value for comparisons in tests, written like JavaScript.
pub(crate) fn show(cx: &mut Cx<'_>, v: Val) -> String {
    match v {
        Val::Str(s) => format!("{:?}", String::from_utf8_lossy(cx.bytes(s))),
        Val::Num(n) if n == 0.0 && n.is_sign_negative() => "-0".to_owned(),
        Val::Num(n) => a99_ecma::number_text::number_to_string(n),
        Val::Arr(r) | Val::Set(r) => {
            let items: Vec<Val> = cx.heap.items(r).to_vec();
            let parts: Vec<String> = items.into_iter().map(|v| show(cx, v)).collect();
            format!("[{}]", parts.join(","))
        }
        Val::Obj(_) => "{}".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Null => "null".to_owned(),
        Val::Undefined | Val::Unbound => "undefined".to_owned(),
        Val::Map(r) => format!("Map({})", cx.heap.map_len(r)),
        Val::Date(r) => format!("Date({})", cx.heap.date_ms(r)),
        Val::Builtin(n) => format!("Builtin({n})"),
    }
}
