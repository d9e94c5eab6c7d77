//! Character tables that are filled lazily, page by page.

use std::sync::{LazyLock, OnceLock};

/// A page of a table, filled on first use.
type Page<T> = OnceLock<Box<[Option<T>; PAGE]>>;

/// A lazily cached mapping of characters. A look-up takes a few nanoseconds, many times less
/// than a search of the standard library's tables.
pub(crate) struct Pages<T: 'static> {
    pages: LazyLock<Box<[Page<T>]>>,
    map: fn(char) -> Option<T>,
}

/// Characters per page.
const PAGE: usize = 256;

/// Number of pages: those of the planes that have letters with two cases.
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
