//! Agents that live: hosts, turns, channels, timers.

#![warn(unreachable_pub)]
