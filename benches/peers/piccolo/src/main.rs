//! The work, done by piccolo: Lua in Rust, by slices of fuel. It has no limit of memory, its
//! libraries lack `gmatch` and `concat`, and its runs that wait share one state.

use a99_benches_work::inputs::{self, TAGS, TenSteps};
use a99_benches_work::protocol::{About, Entry, time};
use a99_benches_work::{Size, Task, list, protocol};
use piccolo::{
    Callback, CallbackReturn, Closure, Context, Executor, ExecutorMode, FromMultiValue, Fuel,
    IntoValue, Lua, StashedClosure, StashedExecutor, Table, Value, Variadic,
};
use std::collections::HashMap;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "piccolo",
    version: "piccolo 0.3.3",
    limits: "fuel in slices, no memory limit",
};

/// Fuel of a slice, as the crate's own driver has it.
const SLICE: i32 = 4_096;

/// A new state takes twenty times as long as a new run of ours.
const STATES: u32 = 20;

const BUDGET: u64 = 1 << 40;

struct State {
    lua: Lua,
    run: StashedClosure,
    executor: StashedExecutor,
    budget: u64,
}

const CONDITION: &str = "local m = ... return m.a*m.b + m.c/m.d - m.e%m.f > 10 and m.name == 'x'";

const FIB: &str = "
    local n = ...
    local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
    return fib(n)";

const ROWS: &str = "
    local n, tags = ...
    local rows = {}
    for i = 0, n - 1 do
      rows[i + 1] = { id = i, price = i % 97 + 0.5, qty = i % 5 + 1, tag = tags[i % 4 + 1] }
    end
    local totals = {}
    for at, row in ipairs(rows) do
      totals[at] = { id = row.id, tag = row.tag, total = row.price * row.qty }
    end
    local large = {}
    for _, t in ipairs(totals) do
      if t.total > 50 then large[#large + 1] = t end
    end
    local sum = 0.0
    for _, t in ipairs(large) do sum = sum + t.total end
    local counts = {}
    for _, t in ipairs(large) do counts[t.tag] = (counts[t.tag] or 0) + 1 end
    return sum, counts[tags[1]] or 0, counts[tags[2]] or 0, counts[tags[3]] or 0,
      counts[tags[4]] or 0";

const TEN_STEPS: &str = "
    local a = ...
    local name, price, quantity, tags = a.name, a.price, a.quantity, a.tags
    local total = price * quantity
    local discount = 0.0
    if total > 100 then discount = 0.1 end
    local net = total * (1 - discount)
    local count = #tags
    local text = name .. ' owes ' .. net
    local label = string.upper(name)
    local joined = ''
    for at, tag in ipairs(tags) do
      if at > 1 then joined = joined .. ',' end
      joined = joined .. tag
    end
    return net, count, text, label, joined";

const ENTRIES: &[Entry] = &[
    (list::W1_MAP, |size| {
        let mut state = State::new(CONDITION);
        let numbers = HashMap::from(inputs::CONDITION);
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                let found: bool = state.call(|ctx| {
                    let map = Table::new(&ctx);
                    for (key, number) in &numbers {
                        map.set(ctx, *key, *number).expect("a member");
                    }
                    map.set(ctx, "name", "x").expect("a member");
                    vec![map.into_value(ctx)]
                });
                assert!(found);
            }
        })
    }),
    (list::W1_BOUND, |size| {
        let text = "local a, b, c, d, e, f, name = ...
            return a*b + c/d - e%f > 10 and name == 'x'";
        let mut state = State::new(text);
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                let found: bool = state.call(|ctx| {
                    let numbers = inputs::CONDITION.iter().map(|(_, n)| Value::Number(*n));
                    let name = Value::String(ctx.intern(b"x"));
                    numbers.chain([name]).collect()
                });
                assert!(found);
            }
        })
    }),
    (list::W1_LOOP, |size| {
        let body = "if a*b + c/d - e%f > 10 and name == 'x' then s = s + 1 end";
        looped(body, size, f64::from(size.turns))
    }),
    (list::W2, |size| {
        looped(
            "s = s + i * i % 7",
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    (list::W2D, |size| {
        looped("s = s + i * i", size, inputs::sum_of_squares(size.turns))
    }),
    (list::W3, |size| {
        let mut state = State::new(FIB);
        let (n, wanted) = (f64::from(size.fib), inputs::fibonacci(size.fib));
        Task::all(inputs::fibonacci_calls(size.fib), move || {
            assert_eq!(state.call::<f64>(|_| vec![Value::Number(n)]), wanted);
        })
    }),
    (list::W4, |size| {
        let mut state = State::new(ROWS);
        let wanted = inputs::rows(size.rows);
        Task::all(size.rows, move || {
            let (sum, a, b, c, d) = state.call::<(f64, f64, f64, f64, f64)>(|ctx| {
                vec![Value::Integer(i64::from(size.rows)), table(ctx, TAGS)]
            });
            let counts = [a, b, c, d];
            assert_eq!(inputs::Rows { sum, counts }, wanted);
        })
    }),
    (list::W7_SYNC, |size| {
        let n = f64::from(size.turns);
        let (mut calls, mut rest) = (loops("s = inc(i)", size), loops("", size));
        Task::Net {
            operations: u64::from(size.turns),
            run: Box::new(move || assert_eq!(calls(), n)),
            rest: Box::new(move || assert_eq!(rest(), 0.0)),
        }
    }),
    (list::W8_COMPILE, |size| {
        let mut lua = Lua::core();
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                lua.enter(|ctx| {
                    Closure::load(ctx, None, TEN_STEPS.as_bytes()).expect("a chunk");
                });
            }
        })
    }),
    (list::W8_COLD, |size| {
        let size = size.few_states(STATES);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                once(&mut State::new(TEN_STEPS));
            }
        })
    }),
    (list::W9_START, |size| {
        let mut state = State::new(WAITS);
        Task::all(size.waiting, move || drop(state.waiting(size.waiting)))
    }),
    (list::W9_BYTES, |size| {
        Task::Figure(Box::new(move || {
            let mut state = State::new(WAITS);
            state.lua.gc_collect();
            let before = state.lua.total_memory();
            let waiting = state.waiting(size.waiting);
            state.lua.gc_collect();
            let bytes = state.lua.total_memory() - before;
            drop(waiting);
            bytes as f64 / f64::from(size.waiting)
        }))
    }),
    (list::W9_RESUME, |size| {
        let mut state = State::new(WAITS);
        Task::Part {
            operations: u64::from(size.waiting),
            run: Box::new(move || {
                let waiting = state.waiting(size.waiting);
                time(|| {
                    for executor in &waiting {
                        state.lua.enter(|ctx| {
                            let executor = ctx.fetch(executor);
                            executor.resume(ctx, 2.0).expect("it waits");
                            steps(ctx, executor, &mut state.budget);
                            let answer = executor.take_result::<f64>(ctx).expect("it ended");
                            assert_eq!(answer.ok(), Some(2.0));
                        });
                    }
                })
            }),
        }
    }),
];

const WAITS: &str = "local i = 1 local answer = coroutine.yield(i) return answer";

fn main() -> ExitCode {
    protocol::main(ABOUT, ENTRIES)
}

/// Slices until the executor has no more to do.
fn steps<'gc>(ctx: Context<'gc>, executor: Executor<'gc>, budget: &mut u64) -> bool {
    let mut fuel = Fuel::with(SLICE);
    let is_done = executor.step(ctx, &mut fuel);
    *budget = budget
        .checked_sub(SLICE as u64)
        .expect("a budget that lasts");
    is_done
}

impl State {
    fn new(text: &str) -> State {
        let mut lua = Lua::core();
        let (run, executor) = lua.enter(|ctx| {
            let inc = Callback::from_fn(&ctx, |ctx, _, mut stack| {
                let x: f64 = stack.consume(ctx)?;
                stack.replace(ctx, x + 1.0);
                Ok(CallbackReturn::Return)
            });
            ctx.set_global("inc", inc).expect("a global");
            let run = Closure::load(ctx, None, text.as_bytes()).expect("a chunk");
            (ctx.stash(run), ctx.stash(Executor::new(ctx)))
        });
        State {
            lua,
            run,
            executor,
            budget: BUDGET,
        }
    }

    /// Calls the function with these arguments.
    fn call<R: for<'gc> FromMultiValue<'gc>>(
        &mut self,
        args: impl for<'gc> FnOnce(Context<'gc>) -> Vec<Value<'gc>>,
    ) -> R {
        self.lua.enter(|ctx| {
            let run = ctx.fetch(&self.run);
            let args = Variadic(args(ctx));
            ctx.fetch(&self.executor).restart(ctx, run.into(), args);
        });
        loop {
            let is_done = self
                .lua
                .enter(|ctx| steps(ctx, ctx.fetch(&self.executor), &mut self.budget));
            if is_done {
                break;
            }
        }
        let found = self.lua.try_enter(|ctx| {
            let executor = ctx.fetch(&self.executor);
            executor.take_result::<R>(ctx)?
        });
        found.expect("it returns")
    }

    /// Runs that wait on the host.
    fn waiting(&mut self, count: u32) -> Vec<StashedExecutor> {
        let mut one = |_| {
            self.lua.enter(|ctx| {
                let run = ctx.fetch(&self.run);
                let executor = Executor::start(ctx, run.into(), ());
                assert!(steps(ctx, executor, &mut self.budget));
                let asked = executor.take_result::<f64>(ctx).expect("it yielded");
                assert_eq!(asked.ok(), Some(1.0));
                assert_eq!(executor.mode(), ExecutorMode::Suspended);
                ctx.stash(executor)
            })
        };
        (0..count).map(&mut one).collect()
    }
}

fn table<'gc, const N: usize>(ctx: Context<'gc>, texts: [&'static str; N]) -> Value<'gc> {
    let table = Table::new(&ctx);
    for (at, text) in texts.into_iter().enumerate() {
        table.set(ctx, at as i64 + 1, text).expect("an item");
    }
    table.into_value(ctx)
}

fn loops(body: &str, size: Size) -> impl FnMut() -> f64 + 'static {
    let text = format!(
        "local n, a, b, c, d, e, f, name = ... local i, s = 0.0, 0.0
         while i < n do {body} i = i + 1 end return s"
    );
    let (mut state, n) = (State::new(&text), f64::from(size.turns));
    move || {
        state.call(|ctx| {
            let mut args = vec![Value::Number(n)];
            args.extend(inputs::CONDITION.map(|(_, number)| Value::Number(number)));
            args.push("x".into_value(ctx));
            args
        })
    }
}

fn looped(body: &str, size: Size, sum: f64) -> Task {
    let mut run = loops(body, size);
    Task::all(size.turns, move || assert_eq!(run(), sum))
}

fn once(state: &mut State) {
    let (net, count, text, label, joined) =
        state.call::<(f64, f64, String, String, String)>(|ctx| {
            let args = Table::new(&ctx);
            args.set(ctx, "name", TenSteps::NAME).expect("a member");
            args.set(ctx, "price", TenSteps::PRICE).expect("a member");
            args.set(ctx, "quantity", TenSteps::QUANTITY)
                .expect("a member");
            args.set(ctx, "tags", table(ctx, TenSteps::TAGS))
                .expect("a member");
            vec![args.into_value(ctx)]
        });
    let found = TenSteps {
        net,
        count,
        text,
        label,
        joined,
    };
    found.check();
}
