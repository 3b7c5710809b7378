//! `provisioner`: takes a snapshot, has it solved, has the plan checked, and creates the NodeClaims.

mod life;

mod left;
mod tell;

pub(super) use life::Provisioner;
