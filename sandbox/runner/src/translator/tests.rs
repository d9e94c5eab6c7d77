//! Tests of the translator's cache, without an emulator.

use super::*;
use a99_sandbox_cache::SealKey;
use a99_sandbox_guest::translate::VERSION;
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory of the emulator that the layout is for.
const MEMORY: usize = 1 << 20;

/// A layout with its parts at an address.
fn words(at: u32) -> [u32; LAYOUT_WORDS] {
    let mut words = [at; LAYOUT_WORDS];
    let [.., types, low, high] = &mut words;
    (*types, *low, *high) = (0, VERSION as u32, (VERSION >> 32) as u32);
    words
}

/// A page with a loop (addi a0, a0, -1; bnez a0, .-4; ret) after so many no-operations.
fn page(before: usize) -> Vec<u8> {
    let mut words = vec![0x0000_0013u32; before];
    words.extend([0xfff5_0513, 0xfe05_1ee3, 0x0000_8067]);
    let mut page: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    page.resize(PAGE_BYTES, 0);
    page
}

fn compiler(folder: Option<&Path>) -> Compiler {
    let engine = crate::engine().expect("an engine");
    let key = SealKey::from_bytes(&[7; 64]).expect("a key's length");
    Compiler::new(&engine, folder.map(|folder| CodeStore::new(folder, key)))
}

fn guest(compiler: &Compiler) -> Translating {
    let mut guest = Translating::new(compiler);
    guest.start(&words(4096), MEMORY);
    guest
}

/// The answer to a request that was accepted.
fn answer(guest: &mut Translating) -> (u32, Vec<Delivery>) {
    let start = Instant::now();
    loop {
        if let Some(answer) = guest.next() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no answer");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_page_is_compiled_once_for_all_guests() {
    let compiler = compiler(None);
    let (mut first, mut second) = (guest(&compiler), guest(&compiler));
    assert!(
        !first.request((&page(0), false), vec![], 1),
        "nothing is known"
    );
    assert!(first.request((&page(0), false), vec![0], 2));
    let (ticket, deliveries) = answer(&mut first);
    assert_eq!((ticket, deliveries.len()), (2, 1));
    assert_eq!(deliveries[0].entries, [(0, 0)]);
    assert!(matches!(first.find(&deliveries[0]), Some(Place::Module(_))));
    assert_eq!(first.note(&deliveries[0], vec![9]), Some(9));
    assert!(matches!(first.find(&deliveries[0]), Some(Place::Known(9))));
    // Another guest has it at its first sample, a guest with another layout does not.
    assert!(second.request((&page(0), false), vec![], 1));
    assert_eq!(answer(&mut second).1[0].place, deliveries[0].place);
    assert!(
        !second.request((&page(1), false), vec![], 2),
        "another page"
    );
    assert!(!second.request((&page(0), true), vec![], 3), "another mode");
    for (ticket, next) in [(4, [0, 0]), (5, [0, 1])] {
        let more = [&page(0)[..], &next].concat();
        assert!(!second.request((&more, false), vec![], ticket), "more code");
        assert!(second.request((&more, false), vec![0], ticket));
        assert_eq!(answer(&mut second).0, ticket);
    }
    let mut other = Translating::new(&compiler);
    other.start(&words(8192), MEMORY);
    assert!(
        !other.request((&page(0), false), vec![], 1),
        "another layout"
    );
    assert_eq!(compiler.translations().compiled, 3);
    assert_eq!(compiler.translations().failed, 0);
}

#[test]
fn code_is_kept_for_the_next_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = compiler(Some(folder.path()));
    let mut of_first = guest(&first);
    for (ticket, before) in [(1, 0), (2, 1), (3, 2)] {
        assert!(of_first.request((&page(before), false), vec![0], ticket));
        answer(&mut of_first);
    }
    drop(of_first);
    let next = compiler(Some(folder.path()));
    let mut of_next = guest(&next);
    for (ticket, before) in [(1, 0), (2, 1), (3, 2)] {
        assert!(of_next.request((&page(before), false), vec![], ticket));
        let (_, deliveries) = answer(&mut of_next);
        assert!(of_next.find(&deliveries[0]).is_some());
    }
    assert!(!of_next.request((&page(3), false), vec![], 4));
    let done = next.translations();
    assert_eq!((done.compiled, done.failed), (0, 0));
    assert!((1..=3).contains(&done.loaded), "{done:?}");
}

#[test]
fn s08_lies_of_an_emulator_are_harmless() {
    let compiler = compiler(None);
    let mut liar = guest(&compiler);
    let many = vec![0; MAX_ENTRIES + 1];
    assert!(
        !liar.request((&page(0), false), many, 1),
        "too many entries"
    );
    assert!(!liar.request((&page(0)[1..], false), vec![0], 1), "no page");
    let long = [&page(0)[..], &[0; 3]].concat();
    assert!(!liar.request((&long, false), vec![0], 1), "no page");
    for (ticket, root) in [(1, 1), (2, 4096), (3, u16::MAX), (4, 2048)] {
        assert!(liar.request((&page(0), false), vec![root], ticket));
        let (answered, deliveries) = answer(&mut liar);
        assert_eq!((answered, deliveries.len()), (ticket, 0), "entry {root}");
    }
    // The code of honest entries is what it would be without the lies.
    assert!(liar.request((&page(0), false), vec![0], 5));
    assert_eq!(answer(&mut liar).1[0].entries, [(0, 0)]);
    // Without an end.
    for ticket in 0..2 * MAX_REQUESTS as u32 {
        liar.request((&page(0), false), vec![], ticket);
    }
    assert_eq!(liar.waiting.len(), MAX_REQUESTS);
    let mut wrong = words(4096);
    wrong[LAYOUT_WORDS - 2] ^= 1;
    for words in [words(MEMORY as u32 - 7), words(u32::MAX), wrong] {
        let mut liar = Translating::new(&compiler);
        liar.start(&words, MEMORY);
        assert!(!liar.request((&page(0), false), vec![0], 1));
    }
}
