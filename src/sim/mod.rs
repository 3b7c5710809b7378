//! A world in a box, so that joiner can be rehearsed and tested without a socket.

pub mod outcome;

mod figures;

pub mod progress;
pub mod report;
pub mod summary;
