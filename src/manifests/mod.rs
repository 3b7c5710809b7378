//! Ordinary Kubernetes manifests: what is written in files, as the facts and workloads that a rehearsal or a plan begins with.
//!
//! `documents` takes text apart, `nulls` settles what is null by what kinds look like (`schemas`), `admission` writes into pods what the API server would
//! (`limits` what LimitRanges say), `refused` knows what it would not keep and `unknown` what it would drop, `read` makes objects of it all, `gather` reads
//! whole files and directories and names what is wrong in them.

mod admission;
mod classes;
mod documents;
mod gather;
mod limits;
mod nulls;
mod object;
mod refused;
mod refused_containers;
mod refused_pods;
mod schemas;
mod selector;
mod unknown;
mod volumes;
mod workload;

mod read;

pub use admission::Admission;
pub use classes::{LABEL_KEYS, RESTRICTED_DOMAINS, kwok_class, outscale_class};
pub use documents::{Document, documents};
pub use gather::{Gathered, Placed, Source, Trouble, Unread, gather};
pub use object::{Found, Invalid, Object, Owned, Secret};
pub use read::{examine, read_object};
pub use volumes::{VolumeSource, claims_of};
pub use workload::{Workload, WorkloadKind};
