//! How we are seen.
