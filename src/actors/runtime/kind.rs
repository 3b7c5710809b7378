//! The kinds of actor there are.

use std::fmt;

/// A kind of actor. All but [`Kind::Claim`] exist once per joiner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The supervisor of all others.
    Supervisor,
    /// Holds the lease, or says that nobody may write.
    Leader,
    /// Folds facts into snapshots.
    State,
    /// Knows instance types, prices and what is sold out.
    Catalog,
    /// Parent of the claim actors.
    Claims,
    /// Owns one NodeClaim's machine.
    Claim,
    /// Evicts pods from nodes that are draining.
    Evictor,
    /// Nominates planned pods, and lets nodes open.
    Nominator,
    /// Gathers pending pods into batches.
    Batcher,
    /// Solves, and creates NodeClaims.
    Provisioner,
    /// Keeps NodePool status.
    Pools,
    /// Gives static NodePools their number of NodeClaims.
    Statics,
    /// Compares machines, NodeClaims and Nodes.
    Auditor,
    /// Works out what NodeClasses come to.
    Classes,
}

impl Kind {
    /// Every kind, in the order in which they are started.
    pub const ALL: [Self; 14] = [
        Self::Supervisor,
        Self::Leader,
        Self::State,
        Self::Catalog,
        Self::Claims,
        Self::Claim,
        Self::Evictor,
        Self::Nominator,
        Self::Batcher,
        Self::Provisioner,
        Self::Pools,
        Self::Statics,
        Self::Auditor,
        Self::Classes,
    ];

    /// Lower-case name, as in metrics and on the actor page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Leader => "leader",
            Self::State => "state",
            Self::Catalog => "catalog",
            Self::Claims => "claims",
            Self::Claim => "claim",
            Self::Evictor => "evictor",
            Self::Nominator => "nominator",
            Self::Batcher => "batcher",
            Self::Provisioner => "provisioner",
            Self::Pools => "pools",
            Self::Statics => "statics",
            Self::Auditor => "auditor",
            Self::Classes => "classes",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
