//! The life of one NodeClaim's machine, from launch to confirmed gone, as a pure state machine.
