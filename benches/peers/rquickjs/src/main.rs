//! The work, done by QuickJS: a runtime and a context for each isolated run. Bytecode is
//! read by unsafe functions only, so that there is no fresh run of a compiled agent.

use a99_benches_work::inputs::{self, TAGS, TenSteps};
use a99_benches_work::protocol::{About, Entry, time};
use a99_benches_work::{Size, Task, list, protocol};
use rquickjs::function::IntoArgs;
use rquickjs::{Context, Ctx, FromJs, Function, Object, Persistent, Promise, Runtime};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const ABOUT: About = About {
    name: "rquickjs",
    version: "QuickJS-ng of rquickjs 0.14.0",
    limits: "interrupt handler for budget and deadline, memory limit of 64 MiB, stack limit",
};

/// A new state takes a hundred times as long as a new run of ours.
const STATES: u32 = 40;

const BUDGET: u64 = 1 << 40;
const TIMEOUT: Duration = Duration::from_secs(600);

/// A state with its limits on, and a function in it.
struct State {
    // Dropped in this order: a value before its runtime.
    run: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
}

fn limited() -> (Runtime, Context) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.set_memory_limit(64 << 20);
    runtime.set_max_stack_size(256 << 10);
    let (mut budget, deadline) = (BUDGET, Instant::now() + TIMEOUT);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        budget -= 1;
        budget == 0 || Instant::now() >= deadline
    })));
    let context = Context::full(&runtime).expect("a context");
    (runtime, context)
}

impl State {
    fn new(text: &str) -> State {
        let (runtime, context) = limited();
        let run = context.with(|ctx| {
            host(&ctx).expect("functions of the host");
            let run: Function<'_> = ctx.eval(text).expect("a function");
            Persistent::save(&ctx, run)
        });
        State {
            run,
            context,
            runtime,
        }
    }

    /// Calls the function and looks at what it returns.
    fn call<R>(
        &self,
        call: impl for<'js> FnOnce(&Ctx<'js>, Function<'js>) -> rquickjs::Result<R>,
    ) -> R {
        self.context.with(|ctx| {
            let run = self.run.clone().restore(&ctx).expect("of this runtime");
            call(&ctx, run).expect("it returns")
        })
    }
}

/// The synchronous function, and the one that gives a promise that is kept already.
fn host(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let globals = ctx.globals();
    globals.set("inc", Function::new(ctx.clone(), |x: f64| x + 1.0)?)?;
    globals.set("incLater", Function::new(ctx.clone(), inc_later)?)
}

fn inc_later<'js>(ctx: Ctx<'js>, x: f64) -> rquickjs::Result<Promise<'js>> {
    let (promise, resolve, _) = ctx.promise()?;
    resolve.call::<_, ()>((x + 1.0,))?;
    Ok(promise)
}

const TEN_STEPS: &str = "({ name, price, quantity, tags }) => {
    const total = price * quantity
    let discount = 0
    if (total > 100) discount = 0.1
    const net = total * (1 - discount)
    const count = tags.length
    const text = `${name} owes ${net}`
    const label = name.toUpperCase()
    const joined = tags.join(',')
    return { net, count, text, label, joined }
}";

const ROWS: &str = "(n, tags) => {
    const rows = []
    for (let i = 0; i < n; i++) {
        rows.push({ id: i, price: i % 97 + 0.5, qty: i % 5 + 1, tag: tags[i % 4] })
    }
    const totals = rows.map((row) => ({ id: row.id, tag: row.tag, total: row.price * row.qty }))
    const large = totals.filter((t) => t.total > 50)
    const sum = large.reduce((sum, t) => sum + t.total, 0)
    const counts = {}
    for (const t of large) counts[t.tag] = (counts[t.tag] ?? 0) + 1
    return { sum, counts }
}";

const WORDS: &str = "(text) => text.split(' ').map((word) => `<li>${word}</li>`).join('\\n')";

const ORDERS: &str = "(text) => JSON.stringify(JSON.parse(text).map((order) => {
    const picked = { id: order.id, customer: order.customer, total: order.total }
    const fields = Object.keys(order).length
    return { ...picked, ...{ seen: true, fields } }
}))";

const FIB: &str = "(n) => {
    const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2)
    return fib(n)
}";

const ENTRIES: &[Entry] = &[
    (list::W1_MAP, |size| {
        let state = State::new("(m) => m.a*m.b + m.c/m.d - m.e%m.f > 10 && m.name == 'x'");
        let numbers = HashMap::from(inputs::CONDITION);
        Task::all(size.evaluations, move || {
            state.call(|ctx, run| {
                for _ in 0..size.evaluations {
                    let map = Object::new(ctx.clone())?;
                    for (key, number) in &numbers {
                        map.set(*key, *number)?;
                    }
                    map.set("name", "x")?;
                    assert!(run.call::<_, bool>((map,))?);
                }
                Ok(())
            });
        })
    }),
    (list::W1_BOUND, |size| {
        let state = State::new("(a, b, c, d, e, f, name) => a*b + c/d - e%f > 10 && name == 'x'");
        Task::all(size.evaluations, move || {
            state.call(|_, run| {
                for _ in 0..size.evaluations {
                    let args = (3.5, 4.0, 9.0, 2.0, 7.0, 4.0, "x");
                    assert!(run.call::<_, bool>(args)?);
                }
                Ok(())
            });
        })
    }),
    (list::W1_LOOP, |size| {
        let body = "if (a*b + c/d - e%f > 10 && name == 'x') s = s + 1";
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
        let (n, wanted) = (size.fib, inputs::fibonacci(size.fib));
        gives(
            FIB,
            inputs::fibonacci_calls(size.fib),
            move || (n,),
            move |found: f64| {
                assert_eq!(found, wanted);
            },
        )
    }),
    (list::W4, rows),
    (list::W5, |size| {
        let text = inputs::text(size.words);
        let page = inputs::page(&text);
        gives(
            WORDS,
            u64::from(size.words),
            move || (text.clone(),),
            move |found: String| {
                assert!(found == page, "another page");
            },
        )
    }),
    (list::W6, |size| {
        let text = inputs::orders(size.orders);
        let bytes = text.len() as u64;
        let mut first: Option<String> = None;
        gives(
            ORDERS,
            bytes,
            move || (text.clone(),),
            move |found: String| {
                let first = first.get_or_insert_with(|| {
                    inputs::check_orders(&found, size.orders);
                    found.clone()
                });
                assert!(found == *first, "another result");
            },
        )
    }),
    (list::W7_SYNC, |size| {
        let n = f64::from(size.turns);
        let (calls, rest) = (loop_calls("s = inc(i)", size, n), loop_calls("", size, 0.0));
        Task::Net {
            operations: u64::from(size.turns),
            run: Box::new(calls),
            rest: Box::new(rest),
        }
    }),
    (list::W7_ASYNC, |size| {
        let n = f64::from(size.turns);
        let text = "async (n) => { let i = 0, s = 0; while (i < n) { BODY; i = i + 1 } return s }";
        let finished = |body: &str, wanted: f64| {
            let state = State::new(&text.replace("BODY", body));
            move || {
                state.call(|_, run| {
                    let promise: Promise<'_> = run.call((n,))?;
                    assert_eq!(promise.finish::<f64>()?, wanted);
                    Ok(())
                });
            }
        };
        Task::Net {
            operations: u64::from(size.turns),
            run: Box::new(finished("s = await incLater(i)", n)),
            rest: Box::new(finished("", 0.0)),
        }
    }),
    (list::W8_COMPILE, |size| {
        let (runtime, context) = limited();
        Task::all(size.compiles, move || {
            let _alive = &runtime;
            for _ in 0..size.compiles {
                context
                    .with(|ctx| drop(ctx.eval::<Function<'_>, _>(TEN_STEPS).expect("a function")));
            }
        })
    }),
    (list::W8_COLD, |size| {
        let size = size.few_states(STATES);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                State::new(TEN_STEPS).call(once);
            }
        })
    }),
    (list::W9_START, |size| {
        let size = size.few_states(STATES);
        Task::all(size.waiting, move || drop(waiting(size.waiting)))
    }),
    (list::W9_BYTES, |size| {
        let count = size.few_states(STATES).waiting;
        Task::Figure(Box::new(move || {
            let used = |(_, state): &Waiting| state.runtime.memory_usage().malloc_size;
            let bytes: i64 = waiting(count).iter().map(used).sum();
            bytes as f64 / f64::from(count)
        }))
    }),
    (list::W9_RESUME, |size| {
        let size = size.few_states(STATES);
        Task::Part {
            operations: u64::from(size.waiting),
            run: Box::new(move || {
                let waiting = waiting(size.waiting);
                // Each function ends; their states do after the time was taken.
                time(|| waiting.iter().for_each(resumed))
            }),
        }
    }),
];

fn main() -> ExitCode {
    protocol::main(ABOUT, ENTRIES)
}

/// A function whose result is looked at.
fn gives<A, R>(
    text: &str,
    operations: u64,
    args: impl Fn() -> A + 'static,
    mut check: impl FnMut(R) + 'static,
) -> Task
where
    A: for<'js> IntoArgs<'js>,
    R: for<'js> FromJs<'js>,
{
    let state = State::new(text);
    Task::all(operations, move || {
        check(state.call(|_, run| run.call(args())));
    })
}

fn loop_calls(body: &str, size: Size, sum: f64) -> impl FnMut() + 'static {
    let text = format!(
        "(n, a, b, c, d, e, f, name) => {{ let i = 0, s = 0; while (i < n) {{ {body}; i = i + 1 }} return s }}"
    );
    let (state, n) = (State::new(&text), f64::from(size.turns));
    move || {
        let found: f64 = state.call(|ctx, run| {
            let mut args = rquickjs::function::Args::new(ctx.clone(), 8);
            args.push_arg(n)?;
            args.push_args(inputs::CONDITION.map(|(_, number)| number))?;
            args.push_arg("x")?;
            run.call_arg(args)
        });
        assert_eq!(found, sum);
    }
}

fn looped(body: &str, size: Size, sum: f64) -> Task {
    Task::all(size.turns, loop_calls(body, size, sum))
}

fn rows(size: Size) -> Task {
    let state = State::new(ROWS);
    let wanted = inputs::rows(size.rows);
    Task::all(size.rows, move || {
        state.call(|_, run| {
            let found: Object<'_> = run.call((size.rows, TAGS.to_vec()))?;
            let counts: Object<'_> = found.get("counts")?;
            let mut each = [0.0; 4];
            for (at, tag) in TAGS.iter().enumerate() {
                each[at] = counts.get::<_, Option<f64>>(*tag)?.unwrap_or_default();
            }
            let found = inputs::Rows {
                sum: found.get("sum")?,
                counts: each,
            };
            assert_eq!(found, wanted);
            Ok(())
        });
    })
}

fn once<'js>(ctx: &Ctx<'js>, run: Function<'js>) -> rquickjs::Result<()> {
    let args = Object::new(ctx.clone())?;
    args.set("name", TenSteps::NAME)?;
    args.set("price", TenSteps::PRICE)?;
    args.set("quantity", TenSteps::QUANTITY)?;
    args.set("tags", TenSteps::TAGS.to_vec())?;
    let found: Object<'_> = run.call((args,))?;
    let found = TenSteps {
        net: found.get("net")?,
        count: found.get("count")?,
        text: found.get("text")?,
        label: found.get("label")?,
        joined: found.get("joined")?,
    };
    found.check();
    Ok(())
}

/// A state whose function waits, and what answers it: `[resolve, the function's promise]`.
type Waiting = (Persistent<rquickjs::Array<'static>>, State);

fn waiting(count: u32) -> Vec<Waiting> {
    let one = |_| {
        let state = State::new("async (answer) => { let i = 1; return await answer }");
        let waits = state.call(|ctx, run| {
            let (answer, resolve, _) = ctx.promise()?;
            let end: Promise<'_> = run.call((answer,))?;
            assert!(end.result::<f64>().is_none(), "it waits");
            let waits = rquickjs::Array::new(ctx.clone())?;
            waits.set(0, resolve)?;
            waits.set(1, end)?;
            Ok(Persistent::save(ctx, waits))
        });
        (waits, state)
    };
    (0..count).map(one).collect()
}

fn resumed((waits, state): &Waiting) {
    state.call(|ctx, _| {
        let waits = waits.clone().restore(ctx)?;
        let resolve: Function<'_> = waits.get(0)?;
        let end: Promise<'_> = waits.get(1)?;
        resolve.call::<_, ()>((2.0,))?;
        assert_eq!(end.finish::<f64>()?, 2.0);
        Ok(())
    });
}
