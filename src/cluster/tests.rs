//! The client against an API server in a box.
