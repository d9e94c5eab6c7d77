//! Compares objects that change in place with a model, a list of members.

use super::*;
use crate::pace::Clock;

fn heap() -> Heap {
    let mut heap = Heap::default();
    heap.reset(
        &Arc::from([]),
        &Arc::new(StaticShapes::default()),
        MAX_HEAP_LIMIT,
    );
    heap
}

fn obj(val: Val) -> Ref {
    match val {
        Val::Obj(r) => r,
        _ => panic!("an object"),
    }
}

fn set(heap: &mut Heap, r: Ref, name: &str, val: f64) {
    let key = heap.intern(name.as_bytes()).unwrap();
    Clock::with(|clock| heap.set_member(r, key, Val::Num(val), clock)).unwrap();
}

fn delete(heap: &mut Heap, r: Ref, name: &str) -> bool {
    let Some(key) = heap.shapes.find_key(name.as_bytes()) else {
        return false;
    };
    Clock::with(|clock| heap.delete_member(r, key, clock)).unwrap()
}

fn number(val: Val) -> f64 {
    match val {
        Val::Num(n) => n,
        _ => panic!("a number"),
    }
}

type Members = Vec<(String, f64)>;

fn entries(heap: &Heap, r: Ref) -> Members {
    let name = |key| String::from_utf8(heap.shapes.key_text(key).to_vec()).unwrap();
    let entries = heap.entries(r);
    entries.map(|(key, val)| (name(key), number(val))).collect()
}

/// The members in slot order, as copying walks see them.
fn slots(heap: &Heap, r: Ref) -> Members {
    let keys = heap.shapes.keys(heap.shape(r)).iter();
    let name = |key| String::from_utf8(heap.shapes.key_text(key).to_vec()).unwrap();
    keys.zip(heap.items(r))
        .map(|(key, val)| (name(*key), number(*val)))
        .collect()
}

/// Numbers first, ascending, then names as they came.
fn enumerated(model: &Members) -> Members {
    let int = |name: &str| array_index(name.as_bytes());
    let mut ints: Members = model.clone();
    ints.retain(|(name, _)| int(name).is_some());
    ints.sort_by_key(|(name, _)| int(name));
    let names = model.iter().filter(|(name, _)| int(name).is_none());
    ints.extend(names.cloned());
    ints
}

#[test]
fn members_are_those_that_were_set_in_the_order_in_which_they_were() {
    for (seed, names) in [(1u64, 6), (2, 40), (3, 400), (4, 3000)] {
        let mut state = seed;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        let mut heap = heap();
        let mut roots = [Val::Obj(heap.alloc_obj_keys(&[], &[]).unwrap())];
        let mut model: Members = Vec::new();
        for turn in 0..20_000u32 {
            let n = below(names);
            let name = if n % 3 == 0 {
                n.to_string()
            } else {
                format!("k{n}")
            };
            let r = obj(roots[0]);
            let at = model.iter().position(|(known, _)| *known == name);
            // Phases in which it grows and shrinks.
            if below(10) < 7 - 4 * u64::from(turn / 4_000 % 2) {
                set(&mut heap, r, &name, f64::from(turn));
                match at {
                    Some(at) => model[at].1 = f64::from(turn),
                    None => model.push((name, f64::from(turn))),
                }
            } else {
                assert_eq!(delete(&mut heap, r, &name), at.is_some());
                at.map(|at| model.remove(at));
            }
            assert_eq!(heap.len(r), model.len());
            if turn % 997 == 0 {
                heap.compact_from(turn % 2 == 0, &mut roots);
            }
            let r = obj(roots[0]);
            if turn % 501 == 0 {
                assert_eq!(entries(&heap, r), enumerated(&model), "{seed}: {turn}");
                for (name, val) in &model {
                    let found = heap.get_text(r, name.as_bytes()).map(number);
                    assert_eq!(found, Some(*val));
                }
            }
            if turn % 1999 == 0 {
                Clock::with(|clock| heap.settle(r, clock)).unwrap();
                assert_eq!(slots(&heap, r), model, "{seed}: {turn}");
            }
        }
        delete_all(&mut heap, obj(roots[0]), &model);
        heap.compact_from(true, &mut roots);
        assert!(
            heap.shapes.bytes() < 6_000,
            "entries of what was deleted go"
        );
    }
}

fn delete_all(heap: &mut Heap, r: Ref, model: &Members) {
    for (name, _) in model {
        assert!(delete(heap, r, name));
    }
    assert!(heap.is_empty(r) && entries(heap, r).is_empty());
}

#[test]
fn an_object_that_grows_has_its_keys_to_itself() {
    let mut heap = heap();
    let key = |heap: &mut Heap, n: usize| heap.intern(format!("k{n}").as_bytes()).unwrap();
    let keys: Vec<KeyId> = (0..30).map(|n| key(&mut heap, n)).collect();
    let vals = [Val::Null; 30];
    let (a, b) = (
        heap.alloc_obj_keys(&keys, &vals).unwrap(),
        heap.alloc_obj_keys(&keys, &vals).unwrap(),
    );
    assert_eq!(heap.shape(a), heap.shape(b));
    set(&mut heap, a, "more", 1.0);
    assert!(delete(&mut heap, a, "k3"));
    assert_eq!((heap.len(a), heap.len(b)), (30, 30));
    assert!(heap.get_text(b, b"more").is_none() && heap.get_text(b, b"k3").is_some());
    let copy = Clock::with(|clock| {
        heap.settle(a, clock)?;
        let vals = heap.items(a).to_vec();
        heap.object_like(a, &vals, clock)
    });
    let copy = copy.unwrap();
    set(&mut heap, a, "again", 2.0);
    assert_eq!((heap.len(a), heap.len(copy)), (31, 30));
    assert!(heap.get_text(copy, b"again").is_none());
}

/// Small objects with the same keys share a shape, in any history.
#[test]
fn small_objects_share_shapes_when_they_grow() {
    let mut heap = heap();
    let make = |heap: &mut Heap| heap.alloc_obj_keys(&[], &[]).unwrap();
    let (a, b) = (make(&mut heap), make(&mut heap));
    for name in ["x", "y", "z"] {
        set(&mut heap, a, name, 0.0);
    }
    for name in ["x", "more", "y", "z"] {
        set(&mut heap, b, name, 0.0);
    }
    assert!(delete(&mut heap, b, "more"));
    assert_eq!(heap.shape(a), heap.shape(b));
}
