//! Incremental growth costs work proportional to the pieces, for any number of values that
//! grow in turn, including compactions.

use super::*;
use crate::pace::Clock;

const LIMIT: usize = 512 << 20;

/// A heap with a count of its work.
struct Run {
    heap: Heap,
    roots: Vec<Val>,
    /// Bytes allocated by growth, nanoseconds of compaction.
    allocated: usize,
    compacted: usize,
}

impl Run {
    fn new() -> Run {
        let mut heap = Heap::default();
        heap.reset(&Arc::from([]), &Arc::new(StaticShapes::default()), LIMIT);
        Run {
            heap,
            roots: Vec::new(),
            allocated: 0,
            compacted: 0,
        }
    }

    /// The work of a yield point.
    fn yield_point(&mut self) {
        if self.heap.wants_compaction() {
            self.allocated += self.heap.allocated();
            let roots = &mut self.roots;
            self.compacted += self.heap.compact_from(false, roots);
        }
    }

    fn work(mut self) -> usize {
        self.allocated += self.heap.allocated();
        self.allocated / 4 + self.compacted
    }
}

fn arr(val: Val) -> Ref {
    match val {
        Val::Arr(r) => r,
        _ => panic!("an array"),
    }
}

fn str_of(val: Val) -> Str {
    match val {
        Val::Str(s) => s,
        _ => panic!("a text"),
    }
}

/// The work per iteration of a loop with 16 times the iterations is at most twice as high.
fn is_linear(name: &str, turns: usize, work: impl Fn(usize) -> usize) {
    let (few, many) = (work(turns), work(16 * turns));
    let ratio = many as f64 / few as f64;
    assert!(ratio < 32.0, "{name}: {few} and {many}, {ratio:.1} times");
}

#[test]
fn a14_arrays_that_grow_in_turn_are_linear() {
    for arrays in [1, 2, 3, 7, 50] {
        let work = |turns: usize| {
            let mut run = Run::new();
            for _ in 0..arrays {
                let r = run.heap.alloc_arr(&[]).unwrap();
                run.roots.push(Val::Arr(r));
            }
            for turn in 0..turns {
                let r = arr(run.roots[turn % arrays]);
                run.heap.push(r, Val::Num(turn as f64)).unwrap();
                run.yield_point();
            }
            for (i, root) in run.roots.iter().enumerate() {
                let items = run.heap.items(arr(*root));
                assert!(matches!(items[1], Val::Num(n) if n as usize == arrays + i));
                assert_eq!(items.len(), (turns - i).div_ceil(arrays));
            }
            run.work()
        };
        is_linear(&format!("{arrays} arrays"), 40_000, work);
    }
}

#[test]
fn a14_objects_that_grow_in_turn_are_linear() {
    for objects in [1, 2, 7] {
        let work = |turns: usize| {
            let mut run = Run::new();
            for _ in 0..objects {
                let r = run.heap.alloc_obj_keys(&[], &[]).unwrap();
                run.roots.push(Val::Obj(r));
            }
            for turn in 0..turns {
                let Val::Obj(r) = run.roots[turn % objects] else {
                    panic!("an object")
                };
                let key = run.heap.intern(format!("k{turn}").as_bytes()).unwrap();
                let set = |clock: &mut Clock<'_>| run.heap.set_member(r, key, Val::Null, clock);
                Clock::with(set).unwrap();
                run.yield_point();
            }
            run.work()
        };
        is_linear(&format!("{objects} objects"), 10_000, work);
    }
}

#[test]
fn a14_texts_that_grow_in_turn_are_linear() {
    for (texts, front) in [(1, false), (2, false), (1, true), (2, true), (40, false)] {
        let work = |turns: usize| {
            let mut run = Run::new();
            run.roots = vec![Val::Str(Str::EMPTY); texts];
            for turn in 0..turns {
                let piece = [b'a' + (turn / texts % 26) as u8; 4];
                let piece = run.heap.alloc_str(&piece).unwrap();
                let text = str_of(run.roots[turn % texts]);
                let (a, b) = if front { (piece, text) } else { (text, piece) };
                run.roots[turn % texts] = Val::Str(joined(&mut run.heap, a, b));
                run.yield_point();
            }
            for (i, root) in run.roots.iter().enumerate() {
                let text = run.heap.bytes(str_of(*root));
                let pieces = (turns - i).div_ceil(texts);
                assert_eq!(text.len(), 4 * pieces);
                for (n, piece) in text.chunks(4).enumerate() {
                    let n = if front { pieces - 1 - n } else { n };
                    assert_eq!(piece, [b'a' + (n % 26) as u8; 4]);
                }
            }
            run.work()
        };
        is_linear(&format!("{texts} texts, {front}"), 20_000, work);
    }
}

#[test]
fn a14_an_array_grows_up_to_the_ceiling() {
    let mut heap = Heap::default();
    let limit = 1 << 20;
    heap.reset(&Arc::from([]), &Arc::new(StaticShapes::default()), limit);
    let mut roots = [Val::Arr(heap.alloc_arr(&[]).unwrap())];
    let mut n = 0;
    let mut compactions = 0;
    loop {
        if heap.push(arr(roots[0]), Val::Num(f64::from(n))).is_err() {
            compactions += 1;
            heap.compact_from(true, &mut roots);
            if heap.push(arr(roots[0]), Val::Num(f64::from(n))).is_err() {
                break;
            }
        }
        n += 1;
    }
    assert!(n as usize * SLOT_BYTES > limit * 9 / 10, "{n}");
    assert!(compactions < 8, "{compactions}");
}

#[test]
fn a14_long_text_is_counted_out_once() {
    let mut heap = Heap::default();
    heap.reset(&Arc::from([]), &Arc::new(StaticShapes::default()), LIMIT);
    let text = "aé€😀xyz".repeat(3_000);
    let wide: Vec<u16> = text.encode_utf16().collect();
    heap.alloc_str(b"before").unwrap();
    let s = heap.alloc_str(text.as_bytes()).unwrap();
    let mut roots = [Val::Str(s), Val::Str(s.view(0, 7_000, 0))];
    for round in 0..3 {
        let s = str_of(roots[0]);
        for (unit, wide) in wide.iter().enumerate().rev() {
            let (byte, first) = near(&mut heap, s, unit);
            assert!(first <= unit && unit - first <= 128, "{first} for {unit}");
            let found = a99_ecma::wtf8::code_unit_at(&heap.bytes(s)[byte..], unit - first);
            assert_eq!(found, Some(*wide));
        }
        let before = heap.used();
        near(&mut heap, s, wide.len());
        assert_eq!(heap.used(), before, "nothing new is noted");
        if round == 1 {
            // The rest of the text is dropped, with its noted positions.
            roots[0] = Val::Null;
        }
        heap.compact_from(true, &mut roots);
        if round == 1 {
            break;
        }
    }
    assert_eq!(heap.used(), 7_000 + 96 + 4 * heap_places(&heap));
}

fn heap_places(heap: &Heap) -> usize {
    heap.places.noted()
}

#[test]
fn a14_text_that_grows_keeps_its_places() {
    let mut heap = Heap::default();
    heap.reset(&Arc::from([]), &Arc::new(StaticShapes::default()), LIMIT);
    let piece = heap.alloc_str("é😀".as_bytes()).unwrap();
    let mut text = Str::EMPTY;
    for n in 0..2_000 {
        text = joined(&mut heap, text, piece);
        let unit = 3 * n + 2;
        let (byte, first) = near(&mut heap, text, unit);
        let found = a99_ecma::wtf8::code_unit_at(&heap.bytes(text)[byte..], unit - first);
        assert_eq!(found, Some(0xDE00));
    }
}

fn joined(heap: &mut Heap, a: Str, b: Str) -> Str {
    Clock::with(|clock| heap.concat(a, b, clock)).unwrap()
}

fn near(heap: &mut Heap, s: Str, unit: usize) -> (usize, usize) {
    Clock::with(|clock| heap.place_near(s, unit, clock)).unwrap()
}
