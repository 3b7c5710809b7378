//! Instance types for clouds that have none of their own: read from a file in the format of Karpenter's KWOK provider, or generated.

mod build;
mod entry;
mod file;
mod generated;

pub use build::{INSTANCE_CPU, INSTANCE_FAMILY, INSTANCE_MEMORY, INSTANCE_SIZE, KWOK_LABEL_KEYS};
pub use file::{CatalogError, read, read_file};
pub use generated::generated;

#[cfg(test)]
mod tests;
