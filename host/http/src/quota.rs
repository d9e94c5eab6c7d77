//! Quotas of a grant: requests, including redirects, and distinct hosts (security N11).

use crate::error::{FetchCode, FetchError};
use crate::target::Host;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The used part of the quotas.
#[derive(Debug, Default)]
pub(crate) struct Quota(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    requests: u64,
    hosts: HashSet<Host>,
}

impl Quota {
    /// Takes a request to a host, before its name is looked up.
    pub(crate) fn take(
        &self,
        host: &Host,
        max_requests: Option<u64>,
        max_hosts: Option<usize>,
    ) -> Result<(), FetchError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(max) = max_requests.filter(|max| used.requests >= *max) {
            let text = format!("Fetch denied: the grant allows {max} requests, and they were made");
            return Err(FetchError::new(FetchCode::Quota, text));
        }
        if !used.hosts.contains(host) {
            if let Some(max) = max_hosts.filter(|max| used.hosts.len() >= *max) {
                let text =
                    format!("Fetch denied: the grant allows {max} hosts, and this is another");
                return Err(FetchError::new(FetchCode::Quota, text));
            }
            // Without a limit there is no need to remember hosts.
            if max_hosts.is_some() {
                used.hosts.insert(host.clone());
            }
        }
        used.requests += 1;
        Ok(())
    }
}
