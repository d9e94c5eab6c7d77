//! Counting: which pages run much, and where in them.

/// Pages that are watched at a time.
const PAGES: usize = 512;

/// Places of a page that are told apart.
const PLACES: usize = 16;

/// Samples that make a place an entry of its hot page's region.
const WARM: u16 = 3;

/// Samples of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    number: u32,
    total: u16,
    /// Offsets and samples.
    places: [(u16, u16); PLACES],
}

/// Samples by page; see the module. Pages share slots: the last one wins.
#[derive(Debug, Default)]
pub struct Hot {
    pages: Vec<Page>,
}

impl Hot {
    fn page(&mut self, number: u32) -> &mut Page {
        if self.pages.is_empty() {
            self.pages = vec![Page::default(); PAGES];
        }
        let page = &mut self.pages[number as usize % PAGES];
        if page.number != number {
            *page = Page {
                number,
                ..Page::default()
            };
        }
        page
    }

    /// Counts a sample; the answer is how many the page has.
    pub fn sample(&mut self, page: u32, offset: u16) -> u16 {
        let page = self.page(page);
        page.total = page.total.saturating_add(1);
        // Its place, else the coldest, which may be empty.
        let is_it = |place: &(u16, u16)| place.0 == offset && place.1 > 0;
        let rank = |place: &&mut (u16, u16)| (!is_it(place), place.1);
        if let Some(place) = page.places.iter_mut().min_by_key(rank) {
            if !is_it(place) {
                *place = (offset, 0);
            }
            place.1 += 1;
        }
        page.total
    }

    /// Forgets a page.
    pub fn forget(&mut self, page: u32) {
        *self.page(page) = Page {
            number: page,
            ..Page::default()
        };
    }

    /// The hot places of a page, in order; its count begins anew.
    pub fn take(&mut self, page: u32) -> Vec<u16> {
        let places = self.page(page).places;
        self.forget(page);
        let most = places.iter().map(|place| place.1).max().unwrap_or(0);
        let hot = places
            .iter()
            .filter(|place| place.1 > 0 && place.1 >= WARM.min(most));
        let mut offsets: Vec<u16> = hot.map(|place| place.0).collect();
        offsets.sort_unstable();
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_hot_where_it_runs() {
        let mut hot = Hot::default();
        for sample in 1..64 {
            let offset = if sample % 2 == 0 { 8 } else { 2 * sample };
            assert_eq!(hot.sample(7, offset), sample);
        }
        assert_eq!(hot.take(7), [8]);
        assert_eq!(hot.sample(7, 8), 1);
    }

    #[test]
    fn a_page_forgets_when_another_takes_its_place() {
        let mut hot = Hot::default();
        assert_eq!((hot.sample(3, 0), hot.sample(3, 0)), (1, 2));
        assert_eq!(hot.sample(3 + PAGES as u32, 4), 1);
        assert_eq!(hot.sample(3, 0), 1);
        assert_eq!(hot.take(3), [0]);
    }
}
