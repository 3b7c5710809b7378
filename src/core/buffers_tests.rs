//! CapacityBuffers.
