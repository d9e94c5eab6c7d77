//! Sampling profiler: finds hot pages, and hot offsets in them.

/// Pages watched at a time.
const PAGES: usize = 4096;

/// Offsets of a page that are counted separately.
const OFFSETS: usize = 16;

/// Samples that make an offset an entry of its hot page's region.
const ENTRY_THRESHOLD: u16 = 3;

/// Samples of a page.
#[derive(Clone, Copy, Debug, Default)]
struct SampledPage {
    number: u32,
    total: u16,
    /// Offsets and samples.
    offsets: [(u16, u16); OFFSETS],
}

/// Samples by page; see the module. Pages share slots: the last one wins.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    pages: Vec<SampledPage>,
}

impl Sampler {
    fn page(&mut self, number: u32) -> &mut SampledPage {
        if self.pages.is_empty() {
            self.pages = vec![SampledPage::default(); PAGES];
        }
        let page = &mut self.pages[number as usize % PAGES];
        if page.number != number {
            *page = SampledPage {
                number,
                ..SampledPage::default()
            };
        }
        page
    }

    /// Counts a sample; returns the count of the page.
    pub(super) fn sample(&mut self, page: u32, offset: u16) -> u16 {
        let page = self.page(page);
        page.total = page.total.saturating_add(1);
        // Its counter, or else the coldest, which may be empty.
        let is_it = |counter: &(u16, u16)| counter.0 == offset && counter.1 > 0;
        let rank = |counter: &&mut (u16, u16)| (!is_it(counter), counter.1);
        if let Some(counter) = page.offsets.iter_mut().min_by_key(rank) {
            if !is_it(counter) {
                *counter = (offset, 0);
            }
            counter.1 += 1;
        }
        page.total
    }

    /// Drops the samples of a page.
    pub(super) fn flush_page(&mut self, page: u32) {
        *self.page(page) = SampledPage {
            number: page,
            ..SampledPage::default()
        };
    }

    /// Takes the hot offsets of a page, in order, and resets its count.
    pub(super) fn take(&mut self, page: u32) -> Vec<u16> {
        let offsets = self.page(page).offsets;
        self.flush_page(page);
        let most = offsets.iter().map(|counter| counter.1).max().unwrap_or(0);
        let hot = offsets
            .iter()
            .filter(|counter| counter.1 > 0 && counter.1 >= ENTRY_THRESHOLD.min(most));
        let mut offsets: Vec<u16> = hot.map(|counter| counter.0).collect();
        offsets.sort_unstable();
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_hot_where_it_runs() {
        let mut sampler = Sampler::default();
        for sample in 1..64 {
            let offset = if sample % 2 == 0 { 8 } else { 2 * sample };
            assert_eq!(sampler.sample(7, offset), sample);
        }
        assert_eq!(sampler.take(7), [8]);
        assert_eq!(sampler.sample(7, 8), 1);
    }

    #[test]
    fn a_page_is_dropped_when_another_takes_its_slot() {
        let mut sampler = Sampler::default();
        assert_eq!((sampler.sample(3, 0), sampler.sample(3, 0)), (1, 2));
        assert_eq!(sampler.sample(3 + PAGES as u32, 4), 1);
        assert_eq!(sampler.sample(3, 0), 1);
        assert_eq!(sampler.take(3), [0]);
    }
}
