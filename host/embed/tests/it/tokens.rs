//! Texts as tokens, by a table.

use crate::small::Small;
use a99_embed::{EmbedModel, MAX_TOKENS, Precision};
use proptest::prelude::*;
use std::sync::LazyLock;

static SMALL: LazyLock<Small> = LazyLock::new(|| Small::new(1));
static MODEL: LazyLock<EmbedModel> = LazyLock::new(|| SMALL.load(Precision::Int8));

/// The pieces of a text, with blanks between them and without those of beginning and end.
fn pieces(text: &str) -> String {
    let tokens = MODEL.tokens(text);
    let pieces: Vec<&str> = tokens
        .iter()
        .map(|token| SMALL.vocabulary[*token as usize].as_str())
        .collect();
    let [first, middle @ .., last] = &pieces[..] else {
        panic!("{text:?} has no beginning and end");
    };
    assert_eq!((*first, *last), ("[CLS]", "[SEP]"), "{text:?}");
    middle.join(" ")
}

/// Hangul is taken apart, so its syllables have pieces.
#[test]
fn corner_cases() {
    let table = [
        // Nothing.
        ("", ""),
        (" ", ""),
        (" \t\r\n\u{a0}\u{2003}\u{3000}\u{2028}\u{2029} ", ""),
        ("\0\u{fffd}\u{7}\u{7f}\u{85}", ""),
        ("\u{301}\u{302}", ""),
        // Words and pieces.
        ("the cat", "the cat"),
        ("unaffable", "un ##aff ##able"),
        ("embedding embeddings", "embed ##ding embed ##ding ##s"),
        ("thecats", "the ##c ##a ##t ##s"),
        ("zß", "[UNK]"),
        // Case and accents.
        ("HELLO World", "hello world"),
        ("Café ÉLAN élan", "cafe elan elan"),
        ("cafe\u{301} e\u{323}\u{307}lan", "cafe elan"),
        ("İSTANBUL", "istanbul"),
        ("ẞ ß SS", "ß ß ss"),
        ("ПРИВЕ\u{301}Т", "привет"),
        ("\u{2126} Ω", "ω ω"),
        ("ﬁ", "ﬁ"),
        // Punctuation.
        ("the,cat", "the , cat"),
        ("the\u{2014}cat", "the [UNK] cat"),
        ("a+b=$1^~`", "a + b = $ 1 ^ ~ `"),
        ("“the”", "“ the ”"),
        ("cat€", "[UNK]"),
        ("€", "€"),
        ("...", ". . ."),
        ("##s", "# # s"),
        // What is said is no special token.
        ("[CLS] [SEP]", "[ c ##l ##s ] [ s ##e ##p ]"),
        // Ideographs stand alone; other scripts of the east do not.
        ("我喜我", "我 喜 我"),
        ("the我cat", "the 我 cat"),
        ("\u{f900}", "豈"),
        ("\u{2f800}", "[UNK]"),
        ("はは", "[UNK]"),
        ("한", "ᄒ ##ᅡ ##ᆫ"),
        // Controls leave, and do not part words.
        ("th\0e c\u{7}at", "the cat"),
        ("th\u{200b}e c\u{200d}a\u{ad}t\u{feff}", "the cat"),
        ("\u{202e}cat\u{202c}", "cat"),
        ("c\u{e000}a\u{f0000}t", "cat"),
        ("the\tcat\nthe\r\ncat\u{a0}the", "the cat the cat the"),
        // Emoji.
        ("the 🦀 cat", "the [UNK] cat"),
        ("🦀cat", "[UNK]"),
        ("👨\u{200d}👩\u{200d}👧", "[UNK]"),
        ("❤\u{fe0f}", "[UNK]"),
    ];
    for (text, expected) in table {
        assert_eq!(pieces(text), expected, "{text:?}");
    }
}

#[test]
fn a_word_of_more_than_a_hundred_characters_is_unknown() {
    let pieces_of = |text: String| pieces(&text);
    let hundred = ["x", &" ##x".repeat(99)].concat();
    assert_eq!(pieces_of("x".repeat(100)), hundred);
    assert_eq!(pieces_of("x".repeat(101)), "[UNK]");
    assert_eq!(pieces_of("x".repeat(1_000_000)), "[UNK]");
    // Characters count after normalisation, and punctuation parts words.
    assert_eq!(pieces_of("x\u{301}".repeat(100)), hundred);
    assert_eq!(pieces_of(format!("{}!cat", "x".repeat(101))), "[UNK] ! cat");
    assert_eq!(pieces_of("한".repeat(34)), "[UNK]");
}

#[test]
fn what_is_beyond_the_last_token_is_cut_off() {
    let the = SMALL.id("the");
    for words in [253, 254, 255, 256, 257, 600, 500_000] {
        let tokens = MODEL.tokens(&"the ".repeat(words));
        assert_eq!(tokens.len(), (words + 2).min(MAX_TOKENS));
        assert_eq!((tokens[0], tokens[1]), (SMALL.id("[CLS]"), the));
        assert_eq!(tokens.last(), Some(&SMALL.id("[SEP]")));
    }
    // In the middle of a word, too.
    let text = ["the ".repeat(253), "unaffable".to_owned()].concat();
    let tokens = MODEL.tokens(&text);
    assert_eq!(
        tokens[MAX_TOKENS - 2..],
        [SMALL.id("un"), SMALL.id("[SEP]")]
    );
}

proptest! {
    #[test]
    fn tokens_are_pieces_and_no_more_than_allowed(text in any::<String>()) {
        let tokens = MODEL.tokens(&text);
        prop_assert!((2..=MAX_TOKENS).contains(&tokens.len()));
        prop_assert!(tokens.iter().all(|token| (*token as usize) < SMALL.vocabulary.len()));
    }

    #[test]
    fn case_and_blanks_do_not_matter(words in prop::collection::vec("[a-z]{1,8}", 0..20)) {
        let tokens = MODEL.tokens(&words.join(" "));
        prop_assert_eq!(&tokens, &MODEL.tokens(&words.join(" \n\t ").to_uppercase()));
    }
}
