//! Compares machine code with a simple interpreter of regions.

use crate::{
    Arith, Block, BlockId, Cell, Condition, End, Kind, Meter, Op, Price, Refused, Region, Test,
    compile,
};
use a99_ecma::arith::fmod;
use proptest::prelude::*;

/// A reference interpreter of regions.
fn interpret(region: &Region, cells: &mut [f64], meter: &mut Meter) -> u32 {
    let mut block = &region.blocks[0];
    loop {
        if let Some(price) = block.price {
            let left = meter.work - price.work;
            if meter.fuel <= price.fuel || left <= 0 {
                return price.exit;
            }
            meter.fuel -= price.fuel;
            meter.work = left;
        }
        for op in &block.ops {
            let (dst, value) = value(*op, cells);
            cells[usize::from(dst)] = value;
        }
        let to = match block.end {
            End::Jump(to) => to,
            End::If {
                condition,
                then,
                otherwise,
            } => match holds(condition, cells) {
                true => then,
                false => otherwise,
            },
            End::Exit(exit) => return exit,
        };
        block = &region.blocks[usize::from(to)];
    }
}

fn value(op: Op, cells: &[f64]) -> (Cell, f64) {
    let cell = |cell: Cell| cells[usize::from(cell)];
    let flag = |flag: bool| f64::from(u8::from(flag));
    match op {
        Op::Number { dst, value } => (dst, value),
        Op::Flag { dst, value } => (dst, flag(value)),
        Op::Copy { dst, src } => (dst, cell(src)),
        Op::Arith { op, dst, l, r } => (dst, arith(op, cell(l), cell(r))),
        Op::RemBy { dst, l, divisor } => (dst, fmod(cell(l), divisor)),
        Op::Neg { dst, src } => (dst, -cell(src)),
        Op::Test { dst, condition } => (dst, flag(holds(condition, cells))),
        Op::Not { dst, condition } => (dst, flag(!holds(condition, cells))),
    }
}

fn arith(op: Arith, l: f64, r: f64) -> f64 {
    match op {
        Arith::Add => l + r,
        Arith::Sub => l - r,
        Arith::Mul => l * r,
        Arith::Div => l / r,
        Arith::Rem => fmod(l, r),
    }
}

fn holds(condition: Condition, cells: &[f64]) -> bool {
    let cell = |cell: Cell| cells[usize::from(cell)];
    match condition {
        Condition::Numbers { test, l, r } => {
            let (l, r) = (cell(l), cell(r));
            match test {
                Test::Eq => l == r,
                Test::Ne => l != r,
                Test::Lt => l < r,
                Test::Le => l <= r,
                Test::Gt => l > r,
                Test::Ge => l >= r,
            }
        }
        Condition::Flag(src) => cell(src) != 0.0,
        Condition::Truthy(src) => cell(src) != 0.0 && !cell(src).is_nan(),
    }
}

/// The bits of numbers, with one canonical NaN as in the machine.
fn bits(cells: &[f64]) -> Vec<u64> {
    let bits = |n: &f64| match n.is_nan() {
        true => f64::NAN.to_bits(),
        false => n.to_bits(),
    };
    cells.iter().map(bits).collect()
}

/// Runs a region in both ways and compares the results.
fn compare(region: &Region, cells: &[f64], meter: Meter) -> (u32, Vec<f64>, Meter) {
    let code = compile(region).expect("a sound region");
    let (mut ours, mut theirs) = (cells.to_vec(), cells.to_vec());
    let (mut our_meter, mut their_meter) = (meter, meter);
    let our_exit = code.run(&mut ours, &mut our_meter);
    let their_exit = interpret(region, &mut theirs, &mut their_meter);
    assert_eq!(our_exit, their_exit, "{region:?}");
    assert_eq!(bits(&ours), bits(&theirs), "{region:?}");
    assert_eq!(our_meter, their_meter, "{region:?}");
    (our_exit, ours, our_meter)
}

const ENOUGH: Meter = Meter {
    fuel: i64::MAX,
    work: i64::MAX,
};

/// A region of one block with these instructions.
fn straight(cells: &[Kind], ops: Vec<Op>) -> Region {
    Region {
        cells: cells.to_vec(),
        blocks: vec![Block {
            price: None,
            ops,
            end: End::Exit(0),
        }],
        exits: 1,
    }
}

/// A loop that increments cell 0 by cell 2 up to cell 1, at `price` per iteration. Exit 0 if
/// it cannot be paid, exit 1 at its end.
fn counting(price: i64, work: i64, ops: Vec<Op>) -> Region {
    let mut all = ops;
    all.push(Op::Arith {
        op: Arith::Add,
        dst: 0,
        l: 0,
        r: 2,
    });
    let condition = Condition::Numbers {
        test: Test::Lt,
        l: 0,
        r: 1,
    };
    Region {
        cells: vec![Kind::Number; 5],
        blocks: vec![
            Block {
                price: Some(Price {
                    fuel: price,
                    work,
                    exit: 0,
                }),
                ops: all,
                end: End::If {
                    condition,
                    then: 0,
                    otherwise: 1,
                },
            },
            Block {
                price: None,
                ops: Vec::new(),
                end: End::Exit(1),
            },
        ],
        exits: 2,
    }
}

/// Edge cases of arithmetic.
const ODD: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    7.0,
    -7.0,
    1e-320,
    1e300,
    -1e300,
    2_251_799_813_685_247.0,
    2_251_799_813_685_248.0,
    -2_251_799_813_685_249.0,
    4_503_599_627_370_497.0,
    9_007_199_254_740_993.0,
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

#[test]
fn every_operation_has_the_value_of_the_language() {
    const NUMBERS: [Kind; 3] = [Kind::Number; 3];
    const FLAG: [Kind; 3] = [Kind::Number, Kind::Number, Kind::Flag];
    let (l, r, dst) = (0, 1, 2);
    let mut regions = Vec::new();
    for op in [Arith::Add, Arith::Sub, Arith::Mul, Arith::Div, Arith::Rem] {
        regions.push(straight(&NUMBERS, vec![Op::Arith { op, dst, l, r }]));
    }
    regions.push(straight(&NUMBERS, vec![Op::Neg { dst, src: l }]));
    regions.push(straight(&NUMBERS, vec![Op::Copy { dst, src: l }]));
    let mut conditions = vec![Condition::Truthy(l)];
    for test in [Test::Eq, Test::Ne, Test::Lt, Test::Le, Test::Gt, Test::Ge] {
        conditions.push(Condition::Numbers { test, l, r });
    }
    for condition in conditions {
        regions.push(straight(&FLAG, vec![Op::Test { dst, condition }]));
        regions.push(straight(&FLAG, vec![Op::Not { dst, condition }]));
    }
    for region in &regions {
        for l in ODD {
            for r in ODD {
                compare(region, &[*l, *r, 1.0], ENOUGH);
            }
        }
    }
}

#[test]
fn remainders_by_a_constant_are_those_by_a_variable() {
    for divisor in ODD {
        let region = straight(
            &[Kind::Number; 2],
            vec![Op::RemBy {
                dst: 1,
                l: 0,
                divisor: *divisor,
            }],
        );
        for l in ODD {
            compare(&region, &[*l, 0.0], ENOUGH);
        }
    }
}

#[test]
fn flags_are_one_or_zero() {
    let kinds = [Kind::Flag, Kind::Flag, Kind::Flag];
    let condition = Condition::Flag(0);
    let ops = vec![
        Op::Not { dst: 1, condition },
        Op::Copy { dst: 2, src: 0 },
        Op::Flag {
            dst: 0,
            value: false,
        },
    ];
    let region = straight(&kinds, ops);
    let (_, cells, _) = compare(&region, &[1.0, 1.0, 0.0], ENOUGH);
    assert_eq!(cells, [0.0, 0.0, 1.0]);
    let (_, cells, _) = compare(&region, &[0.0, 0.0, 1.0], ENOUGH);
    assert_eq!(cells, [0.0, 1.0, 0.0]);
}

#[test]
fn a_loop_ends_where_it_does() {
    let region = counting(33, 24, Vec::new());
    let (exit, cells, meter) = compare(&region, &[0.0, 1000.0, 1.0, 0.0, 0.0], ENOUGH);
    assert_eq!((exit, cells[0]), (1, 1000.0));
    assert_eq!(ENOUGH.fuel - meter.fuel, 33_000);
    assert_eq!(ENOUGH.work - meter.work, 24_000);
}

#[test]
fn a_block_is_entered_only_if_more_is_left_than_it_takes() {
    let region = counting(33, 24, Vec::new());
    for (fuel, work, turns) in [
        (0, 1_000, 0),
        (33, 1_000, 0),
        (34, 1_000, 1),
        (66, 1_000, 1),
        (67, 1_000, 2),
        (1_000, 24, 0),
        (1_000, 25, 1),
        (1_000, 48, 1),
        (1_000, 49, 2),
        (i64::MIN, 1_000, 0),
        (1_000, -5, 0),
    ] {
        let meter = Meter { fuel, work };
        let (exit, cells, _) = compare(&region, &[0.0, 1e9, 1.0, 0.0, 0.0], meter);
        assert_eq!((exit, cells[0]), (0, f64::from(turns)), "{meter:?}");
    }
}

#[test]
fn prices_may_be_large() {
    let region = counting(i64::MAX - 1, i64::MAX - 1, Vec::new());
    let (exit, cells, meter) = compare(&region, &[0.0, 1e9, 1.0, 0.0, 0.0], ENOUGH);
    assert_eq!((exit, cells[0]), (0, 1.0));
    assert_eq!(meter, Meter { fuel: 1, work: 1 });
}

#[test]
fn code_can_be_run_by_many_threads() {
    let code = compile(&counting(1, 1, Vec::new())).expect("a sound region");
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let code = &code;
            scope.spawn(move || {
                let mut cells = [0.0, f64::from(thread * 1_000), 1.0, 0.0, 0.0];
                let mut meter = ENOUGH;
                assert_eq!(code.run(&mut cells, &mut meter), 1);
                assert_eq!(ENOUGH.fuel - meter.fuel, i64::from(thread * 1_000));
            });
        }
    });
}

#[test]
fn what_is_not_sound_is_refused() {
    let sound = counting(1, 1, Vec::new());
    assert!(compile(&sound).is_ok());
    let with = |change: &dyn Fn(&mut Region)| {
        let mut region = sound.clone();
        change(&mut region);
        compile(&region).err()
    };
    let unsound = Some(Refused::Unsound);
    let add = |dst, l, r| Op::Arith {
        op: Arith::Add,
        dst,
        l,
        r,
    };
    let price = |fuel, work, exit| Some(Price { fuel, work, exit });
    assert_eq!(with(&|r| r.blocks.clear()), unsound);
    assert_eq!(with(&|r| r.blocks[0].ops[0] = add(5, 0, 0)), unsound);
    assert_eq!(with(&|r| r.blocks[0].ops[0] = add(0, 0, 9)), unsound);
    assert_eq!(with(&|r| r.cells[0] = Kind::Flag), unsound);
    assert_eq!(with(&|r| r.blocks[1].end = End::Exit(2)), unsound);
    assert_eq!(with(&|r| r.blocks[1].end = End::Jump(7)), unsound);
    assert_eq!(with(&|r| r.blocks[0].price = price(-1, 1, 0)), unsound);
    assert_eq!(with(&|r| r.blocks[0].price = price(1, 0, 0)), unsound);
    assert_eq!(with(&|r| r.blocks[0].price = price(1, 1, 2)), unsound);
    // An iteration without a price would never end.
    assert_eq!(with(&|r| r.blocks[0].price = None), unsound);
    assert_eq!(with(&|r| r.blocks[1].end = End::Jump(1)), unsound);
    assert_eq!(
        with(&|r| r.cells = vec![Kind::Number; 65]),
        Some(Refused::Size)
    );
}

/// A number, often an edge case or a small whole one.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::sample::select(ODD),
        (-100i32..100).prop_map(f64::from),
        (-(1i64 << 53)..1i64 << 53).prop_map(|n| n as f64),
        any::<f64>(),
    ]
}

/// Number of cells of each kind in generated regions: numbers, then flags.
const NUMBERS: Cell = 4;
const FLAGS: Cell = 2;

fn condition() -> impl Strategy<Value = Condition> {
    let test = prop::sample::select(vec![
        Test::Eq,
        Test::Ne,
        Test::Lt,
        Test::Le,
        Test::Gt,
        Test::Ge,
    ]);
    prop_oneof![
        (test, 0..NUMBERS, 0..NUMBERS).prop_map(|(test, l, r)| Condition::Numbers { test, l, r }),
        (NUMBERS..NUMBERS + FLAGS).prop_map(Condition::Flag),
        (0..NUMBERS).prop_map(Condition::Truthy),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let arith = prop::sample::select(vec![
        Arith::Add,
        Arith::Sub,
        Arith::Mul,
        Arith::Div,
        Arith::Rem,
    ]);
    let flag = NUMBERS..NUMBERS + FLAGS;
    prop_oneof![
        (0..NUMBERS, number()).prop_map(|(dst, value)| Op::Number { dst, value }),
        (flag.clone(), any::<bool>()).prop_map(|(dst, value)| Op::Flag { dst, value }),
        (0..NUMBERS, 0..NUMBERS).prop_map(|(dst, src)| Op::Copy { dst, src }),
        (flag.clone(), flag.clone()).prop_map(|(dst, src)| Op::Copy { dst, src }),
        (arith, 0..NUMBERS, 0..NUMBERS, 0..NUMBERS).prop_map(|(op, dst, l, r)| Op::Arith {
            op,
            dst,
            l,
            r
        }),
        (0..NUMBERS, 0..NUMBERS, number()).prop_map(|(dst, l, divisor)| Op::RemBy {
            dst,
            l,
            divisor
        }),
        (0..NUMBERS, 0..NUMBERS).prop_map(|(dst, src)| Op::Neg { dst, src }),
        (flag.clone(), condition()).prop_map(|(dst, condition)| Op::Test { dst, condition }),
        (flag, condition()).prop_map(|(dst, condition)| Op::Not { dst, condition }),
    ]
}

/// A sound region: blocks with arbitrary targets and prices.
fn region() -> impl Strategy<Value = Region> {
    const BLOCKS: BlockId = 6;
    const EXITS: u32 = 8;
    let end = prop_oneof![
        2 => (0..BLOCKS).prop_map(End::Jump),
        5 => (condition(), 0..BLOCKS, 0..BLOCKS).prop_map(|(condition, then, otherwise)| End::If {
            condition,
            then,
            otherwise,
        }),
        1 => (0..EXITS).prop_map(End::Exit),
    ];
    let price = (0..50i64, 1..50i64, 0..EXITS);
    let ops = prop::collection::vec(op(), 0..8);
    let block = (price, ops, end).prop_map(|((fuel, work, exit), ops, end)| Block {
        price: Some(Price { fuel, work, exit }),
        ops,
        end,
    });
    prop::collection::vec(block, usize::from(BLOCKS)).prop_map(|blocks| Region {
        cells: [
            vec![Kind::Number; usize::from(NUMBERS)],
            vec![Kind::Flag; usize::from(FLAGS)],
        ]
        .concat(),
        blocks,
        exits: EXITS,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn regions_do_what_they_say(
        region in region(),
        numbers in prop::collection::vec(number(), usize::from(NUMBERS)),
        flags in prop::collection::vec(any::<bool>(), usize::from(FLAGS)),
        fuel in 0..4_000i64,
        work in 0..4_000i64,
    ) {
        let flags = flags.into_iter().map(|flag| f64::from(u8::from(flag)));
        let cells: Vec<f64> = numbers.into_iter().chain(flags).collect();
        compare(&region, &cells, Meter { fuel, work });
    }
}

#[test]
fn remainders_of_whole_numbers_are_exact() {
    let region = straight(
        &[Kind::Number; 3],
        vec![Op::Arith {
            op: Arith::Rem,
            dst: 2,
            l: 0,
            r: 1,
        }],
    );
    let code = compile(&region).expect("a sound region");
    let border = 1i64 << 51;
    // Next to multiples, where a quotient that is rounded up would show.
    for divisor in [
        1,
        2,
        3,
        7,
        10,
        1_000,
        65_537,
        1 << 25,
        (1 << 26) - 1,
        border / 3,
        border - 1,
    ] {
        for quotient in [0, 1, 2, 3, 1 << 20, border / divisor - 1, border / divisor] {
            for offset in -2..=2 {
                let dividend = quotient.min(border / divisor) * divisor + offset;
                for (a, b) in [
                    (dividend, divisor),
                    (-dividend, divisor),
                    (dividend, -divisor),
                ] {
                    let mut cells = [a as f64, b as f64, 0.0];
                    code.run(&mut cells, &mut ENOUGH.clone());
                    let expected = fmod(cells[0], cells[1]);
                    assert_eq!(bits(&[cells[2]]), bits(&[expected]), "{a} % {b}");
                }
            }
        }
    }
}
