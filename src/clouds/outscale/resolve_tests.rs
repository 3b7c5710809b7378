//! Selectors judged.
