//! Stores of agents that live and their channels, in one file of SQLite.

#![warn(unreachable_pub)]
