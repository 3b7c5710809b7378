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

/// `metadata.uid` of a Pod. There are many, and they are looked up all the time: the UUIDs that API servers give are kept as numbers, which compare
/// without a look at other memory, and in the order of their texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodUid(Uid);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Uid {
    /// The upper and the lower half of a UUID.
    Uuid(u64, u64),
    /// Whatever else somebody has named a pod by: manifests have none, placeholders have theirs.
    Text(Arc<str>),
}

/// Where the dashes of a UUID are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// A UUID in the only form in which Kubernetes writes it: 32 hexadecimal digits in lower case, with dashes.
fn uuid(text: &str) -> Option<Uid> {
    if text.len() != 36 {
        return None;
    }
    let mut halves = [0_u64; 2];
    let mut digits = 0;
    for (at, byte) in text.bytes().enumerate() {
        let digit = match byte {
            b'-' if DASHES.contains(&at) => continue,
            _ if DASHES.contains(&at) => return None,
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        let half = &mut halves[digits / 16];
        *half = *half << 4 | u64::from(digit);
        digits += 1;
    }
    Some(Uid::Uuid(halves[0], halves[1]))
}

impl<T: Into<Arc<str>>> From<T> for PodUid {
    fn from(text: T) -> Self {
        let text = text.into();
        Self(uuid(&text).unwrap_or(Uid::Text(text)))
    }
}

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Uid::Uuid(upper, lower) => {
                let (a, b, c) = (upper >> 32, upper >> 16 & 0xffff, upper & 0xffff);
                write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", lower >> 48, lower & 0xffff_ffff_ffff)
            }
            Uid::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PodUid({self})")
    }
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
        class_label(&self.group, &self.kind)
    }

    /// Whether it is of this group and kind.
    pub fn is_of(&self, (group, kind): (&str, &str)) -> bool {
        *self.group == *group && *self.kind == *kind
    }

    /// Whether it is of one of these kinds (group and kind), which a joiner looks after. One that cannot be read is, so that somebody hears of it.
    pub fn is_one_of<'a>(&self, kinds: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        self.kind.is_empty() || kinds.into_iter().any(|kind| self.is_of(kind))
    }
}

/// The label of nodes whose NodeClass is of this group and kind.
pub fn class_label(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}

impl fmt::Display for ClassRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
