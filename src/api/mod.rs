//! What users write: the custom resources of Karpenter's API, as typed values with their schemas.
