//! Tables of characters that are filled while they are used.

use std::sync::{LazyLock, OnceLock};

/// What a table has for each code point of a page, once the page was asked for.
type Page<T> = OnceLock<Box<[Option<T>; PAGE]>>;

/// What characters map to, in pages that are made when a character of theirs is met: looking
/// one up takes a few nanoseconds, searching the tables of the standard library many.
pub(crate) struct Pages<T: 'static> {
    pages: LazyLock<Box<[Page<T>]>>,
    map: fn(char) -> Option<T>,
}

/// Characters of a page.
const PAGE: usize = 256;

/// Pages that are kept: of the planes that have letters with two cases.
const PAGES: usize = 0x2_0000 / PAGE;

impl<T: Copy> Pages<T> {
    pub(crate) const fn new(map: fn(char) -> Option<T>) -> Pages<T> {
        Pages {
            pages: LazyLock::new(|| (0..PAGES).map(|_| OnceLock::new()).collect()),
            map,
        }
    }

    #[inline]
    pub(crate) fn of(&self, c: char) -> Option<T> {
        let at = c as usize;
        let Some(page) = self.pages.get(at / PAGE) else {
            return (self.map)(c);
        };
        page.get_or_init(|| self.page(at / PAGE))[at % PAGE]
    }

    fn page(&self, page: usize) -> Box<[Option<T>; PAGE]> {
        let mapped = |at: usize| {
            let c = char::from_u32((page * PAGE + at) as u32);
            c.and_then(|c| (self.map)(c))
        };
        Box::new(std::array::from_fn(mapped))
    }
}
