//! Guarantees of the arena: exact counts, stable views, and compaction that keeps exactly the
//! reachable values.

use super::*;
use crate::native::ObjDraft;
use crate::pace::Clock;

fn heap(limit: usize) -> Heap {
    let mut heap = Heap::default();
    heap.reset(
        &Arc::from(*b"static"),
        &Arc::new(StaticShapes::default()),
        limit,
    );
    heap
}

fn text(heap: &Heap, val: Val) -> String {
    match val {
        Val::Str(s) => String::from_utf8_lossy(heap.bytes(s)).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_byte_is_counted_and_the_ceiling_holds() {
    let mut heap = heap(1_000);
    assert_eq!(heap.used(), 0);
    heap.alloc_str(b"12345").unwrap();
    assert_eq!(heap.used(), 5);
    let before = heap.used();
    heap.alloc_arr(&[Val::Null; 3]).unwrap();
    assert_eq!(heap.used(), before + 3 * SLOT_BYTES + CELL_BYTES);
    assert!(heap.alloc_str(&[b'x'; 1_000]).is_err());
    assert!(heap.alloc_arr_cap(100).is_err());
    assert!(heap.used() <= 1_000);
}

#[test]
fn concatenation_in_a_loop_is_linear() {
    let mut heap = heap(1 << 20);
    let x = heap.alloc_str(b"x").unwrap();
    let mut s = heap.alloc_str(b"start").unwrap();
    let first = s;
    for _ in 0..10_000 {
        s = joined(&mut heap, s, x);
    }
    assert_eq!(s.units(), 10_005);
    assert!(heap.used() < 20_100, "{}", heap.used());
    // Shorter views of the same bytes are unchanged.
    assert_eq!(heap.bytes(first), b"start");
    let other = joined(&mut heap, first, x);
    assert_eq!(heap.bytes(other), b"startx");
    assert_eq!(heap.bytes(s).len(), 10_005);
}

#[test]
fn surrogates_that_meet_are_joined() {
    let mut heap = heap(1 << 20);
    let high = heap.alloc_str(&[0xed, 0xa0, 0xbd]).unwrap();
    let low = heap.alloc_str(&[0xed, 0xb8, 0x80]).unwrap();
    let pair = joined(&mut heap, high, low);
    assert_eq!(heap.bytes(pair), "\u{1f600}".as_bytes());
    assert_eq!(pair.units(), 2);
}

#[test]
fn compaction_keeps_what_roots_reach() {
    let mut heap = heap(1 << 20);
    let a = heap.str_val(b"kept text").unwrap();
    for _ in 0..100 {
        heap.alloc_str(b"garbage").unwrap();
        heap.alloc_arr(&[a; 8]).unwrap();
    }
    let Val::Str(s) = a else { unreachable!() };
    let view = Val::Str(s.view(5, 9, 4));
    let arr = heap.alloc_arr(&[view, Val::Num(1.0)]).unwrap();
    heap.push(arr, Val::Arr(arr)).unwrap();
    let key = heap.intern(b"k").unwrap();
    let obj = Val::Obj(heap.alloc_obj_keys(&[key], &[Val::Arr(arr)]).unwrap());
    heap.intern(b"unused").unwrap();
    let mut roots = [obj, view, Val::Null];
    heap.compact_from(true, &mut roots);
    assert!(heap.used() < 1_000, "{}", heap.used());
    assert_eq!(text(&heap, roots[1]), "text");
    let Val::Obj(r) = roots[0] else {
        panic!("an object")
    };
    let Some(Val::Arr(arr)) = heap.get_text(r, b"k") else {
        panic!("an array")
    };
    assert_eq!(text(&heap, heap.items(arr)[0]), "text");
    assert!(
        matches!(heap.items(arr)[2], Val::Arr(again) if again == arr),
        "the cycle holds"
    );
    assert!(heap.shapes.find_key(b"unused").is_none());
}

/// The parts of a split text are views, including empty ones, which must be readable after
/// the text is dropped.
#[test]
fn empty_views_outlive_their_text() {
    let mut heap = heap(1 << 20);
    let long = heap.alloc_str(&[b','; 10_000]).unwrap();
    let list = heap
        .alloc_arr(&[Val::Str(long.view(9_000, 9_000, 0))])
        .unwrap();
    let mut roots = [Val::Str(long.view(10_000, 10_000, 0)), Val::Arr(list)];
    heap.compact_from(true, &mut roots);
    assert_eq!(text(&heap, roots[0]), "");
    let Val::Arr(list) = roots[1] else {
        panic!("{:?}", roots[1]);
    };
    assert_eq!(text(&heap, heap.items(list)[0]), "");
}

#[test]
fn compaction_is_idempotent_and_arrays_still_grow() {
    let mut heap = heap(1 << 20);
    let mut roots: Vec<Val> = Vec::new();
    for i in 0..50 {
        let arr = heap.alloc_arr_cap(0).unwrap();
        for j in 0..i {
            heap.push(arr, Val::Num(f64::from(j))).unwrap();
        }
        roots.push(Val::Arr(arr));
        if i % 7 == 0 {
            heap.compact_from(true, &mut roots);
            let used = heap.used();
            heap.compact_from(true, &mut roots);
            assert_eq!(heap.used(), used);
        }
    }
    for (i, root) in roots.iter().enumerate() {
        let Val::Arr(arr) = *root else {
            panic!("an array")
        };
        heap.push(arr, Val::Null).unwrap();
        let items = heap.items(arr);
        assert_eq!(items.len(), i + 1);
        for (j, item) in items[..i].iter().enumerate() {
            assert!(matches!(item, Val::Num(n) if *n == j as f64));
        }
    }
}

#[test]
fn objects_with_the_same_keys_share_a_shape() {
    let mut heap = heap(1 << 20);
    let mut draft = ObjDraft::new();
    let mut make = |heap: &mut Heap| {
        draft.set_text(heap, b"b", Val::Null).unwrap();
        draft.set_text(heap, b"2", Val::Null).unwrap();
        draft.set_text(heap, b"1", Val::Null).unwrap();
        match finished(&mut draft, heap) {
            Val::Obj(r) => r,
            _ => unreachable!(),
        }
    };
    let (x, y) = (make(&mut heap), make(&mut heap));
    assert_eq!(heap.shape(x), heap.shape(y));
    let keys: Vec<_> = heap
        .entries(x)
        .map(|(k, _)| heap.shapes.key_text(k).to_vec())
        .collect();
    assert_eq!(keys, [b"1", b"2", b"b"]);
}

#[test]
fn dictionaries_find_their_members() {
    let mut heap = heap(1 << 22);
    let mut draft = ObjDraft::new();
    for i in 0..1_000 {
        draft
            .set_text(
                &mut heap,
                format!("key{i}").as_bytes(),
                Val::Num(f64::from(i)),
            )
            .unwrap();
    }
    draft.set_text(&mut heap, b"key7", Val::Bool(true)).unwrap();
    let Val::Obj(r) = finished(&mut draft, &mut heap) else {
        unreachable!()
    };
    assert_eq!(heap.len(r), 1_000);
    assert!(matches!(heap.get_text(r, b"key999"), Some(Val::Num(999.0))));
    assert!(matches!(heap.get_text(r, b"key7"), Some(Val::Bool(true))));
    assert!(heap.get_text(r, b"key1000").is_none());
}

fn joined(heap: &mut Heap, a: Str, b: Str) -> Str {
    Clock::with(|clock| heap.concat(a, b, clock)).unwrap()
}

fn finished(draft: &mut ObjDraft, heap: &mut Heap) -> Val {
    let mut meter = crate::pace::Meter::new(i64::MAX, a99_core::costs::CostModel::Metered);
    let mut cx = crate::native::Cx::new(heap, &mut meter, &crate::builtins::testing::Still);
    draft.finish(&mut cx).unwrap()
}
