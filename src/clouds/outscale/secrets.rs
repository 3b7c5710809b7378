//! Where machine configurations are kept: Secrets in joiner's own namespace.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

/// Why a Secret cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretError {
    /// There is none.
    #[error("Secret {0} does not exist; create it")]
    Missing(String),
    /// joiner may not.
    #[error(
        "joiner may not read Secret {0}; name it in the chart's outscale.machineConfigSecrets (the one with the keys in outscale.keysSecret), or give its ServiceAccount a Role in that namespace: apiGroups [\"\"], resources [\"secrets\"], verbs [\"get\"]"
    )]
    Forbidden(String),
    /// Only files are looked at, and none has it.
    #[error("Secret {0} is in none of the files; correct its name, or name its file with -f")]
    NotGiven(String),
    /// No Secrets are looked at.
    #[error("Secret {0} is not looked at")]
    NotAsked(String),
    /// The API server does not answer.
    #[error("Secret {0} cannot be read: {1}")]
    Unreachable(String, String),
}

/// A place for Secrets.
pub trait Secrets: Send + Sync + 'static {
    /// The data of a Secret.
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>>;
}

/// No Secrets at all: where only prices and zones are asked for.
#[derive(Clone, Copy, Debug)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>> {
        async move { Err(SecretError::NotAsked(name.to_owned())) }.boxed()
    }
}

/// Secrets that stand in files, by name.
#[derive(Clone, Default)]
pub struct GivenSecrets(BTreeMap<String, BTreeMap<String, Vec<u8>>>);

impl GivenSecrets {
    /// These Secrets.
    pub fn new(all: impl IntoIterator<Item = (String, BTreeMap<String, Vec<u8>>)>) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Secrets for GivenSecrets {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>> {
        async move { self.0.get(name).cloned().ok_or_else(|| SecretError::NotGiven(name.to_owned())) }.boxed()
    }
}

/// Secrets of a namespace of the cluster.
pub struct KubeSecrets {
    api: Api<Secret>,
    namespace: String,
}

impl KubeSecrets {
    /// The Secrets of a namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }
}

impl Secrets for KubeSecrets {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>> {
        async move {
            let full = format!("{}/{name}", self.namespace);
            match self.api.get(name).await {
                Ok(secret) => {
                    Ok(secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
                }
                Err(kube::Error::Api(status)) if status.code == 404 => Err(SecretError::Missing(full)),
                Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => Err(SecretError::Forbidden(full)),
                Err(error) => Err(SecretError::Unreachable(full, error.to_string())),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_a_secret_is_told_the_charts_value_that_lets_it() {
        let told = SecretError::Forbidden("kube-system/talos".to_owned()).to_string();
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/joiner/values.yaml");
        let values = std::fs::read_to_string(file).unwrap();
        for name in ["machineConfigSecrets", "keysSecret"] {
            assert!(told.contains(&format!("outscale.{name}")), "{told}");
            assert!(values.contains(&format!("  {name}:")), "the chart has no outscale.{name}");
        }
    }
}
