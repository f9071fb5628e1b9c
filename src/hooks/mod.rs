//! What oxundo knows of each agent's hooks: how their events mark the ends of a turn, and
//! where they are set up. All of it is data and pure functions: nothing in here reads a file.

pub mod adapters;
pub mod edit;
pub mod payload;
pub mod setup;
