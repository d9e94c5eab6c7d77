//! Agents on a host, with stores of files.

mod attacks;
mod calls;
mod delivery;
mod faults;
mod fencing;
mod hold;
mod hooks;
mod joined;
mod kept;
mod metrics;
mod money;
#[cfg(unix)]
mod process;
mod programs;
mod replayed;
mod run;
mod script;
mod shards;
mod splice;
mod stage;
mod state;
mod support;
mod surface;
mod surface_ai;
mod surface_bus;
mod surface_channel;
mod surface_context;
mod surface_programs;
mod surface_state;
mod surface_storage;
mod tables;
mod timers;
