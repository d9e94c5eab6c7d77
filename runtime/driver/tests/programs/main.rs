//! Programs as handlers of events: turns that are cut off at every call and run again end as
//! those that nobody cut off.

mod cuts;
mod rules;
mod world;
