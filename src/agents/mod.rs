//! What is known of each agent: how its hooks mark the ends of a turn, where they are set up, how it is run, and
//! whether it is still there.

pub mod adapters;
pub mod edit;
pub mod files;
pub mod fire;
pub mod fork;
pub mod json;
pub mod lenient;
pub mod payload;
pub mod probe;
pub mod process;
pub mod servers;
pub mod setup;
pub mod spawn;
pub mod standing;
pub mod switch;
pub mod talk;
pub mod transcript;
pub mod version;
