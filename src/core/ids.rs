//! Names and identifiers, each with a type of its own, cheap to clone.

use std::fmt;
use std::sync::Arc;

/// Declares newtypes over a shared string.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text as Kubernetes or the cloud writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

ids! {
    /// `metadata.uid` of a Pod.
    PodUid;
    /// `metadata.uid` of a NodeClaim; also the idempotency token of its machine.
    ClaimUid;
    /// `metadata.uid` of a NodePool.
    PoolUid;
    /// `metadata.uid` of a Node.
    NodeUid;
    /// `metadata.name` of a Node.
    NodeName;
    /// `metadata.name` of a NodeClaim.
    ClaimName;
    /// `metadata.name` of a NodePool.
    PoolName;
    /// The name a cloud gives to an instance type.
    InstanceTypeName;
    /// `spec.providerID` of a Node and `status.providerID` of a NodeClaim: the cloud's identity of a machine.
    ProviderId;
}

/// What IDs of machines begin with that exist in a dry run only.
const IMAGINED: &str = "dry-run:///";

impl ProviderId {
    /// The ID of a machine that a dry run would have made.
    pub fn imagined(zone: &str, claim: &ClaimName) -> Self {
        Self::from(format!("{IMAGINED}{zone}/{claim}"))
    }

    /// Whether there is such a machine in a dry run only.
    pub fn is_imagined(&self) -> bool {
        self.as_str().starts_with(IMAGINED)
    }
}

/// Namespace and name of a namespaced object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// Names an object.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Group, kind and name of the NodeClass that a NodePool or NodeClaim refers to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassRef {
    /// API group, for instance `karpenter.kwok.sh`.
    pub group: Arc<str>,
    /// Kind, for instance `KWOKNodeClass`.
    pub kind: Arc<str>,
    /// Name of the cluster-scoped object.
    pub name: Arc<str>,
}

impl ClassRef {
    /// The label that nodes and NodeClaims of this class carry: `<group>/<lower-case kind>`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.group, self.kind.to_lowercase())
    }
}

impl fmt::Display for ClassRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}
