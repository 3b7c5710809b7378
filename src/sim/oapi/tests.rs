//! The fake.
