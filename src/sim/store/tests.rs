//! The API server's rules, one by one.
