//! Flexible GPUs: reading them, and tying them to their VMs.

use super::envelope::ResponseContext;
use super::tags::ResourceTag;

requests! {
    /// Lists the flexible GPUs that are allocated to the account. They come all at once.
    ReadFlexibleGpus {
        /// Which.
        filters: Option<FlexibleGpuFilters>,
    }

    /// Which flexible GPUs; each list means any of it, an empty one all.
    FlexibleGpuFilters {
        /// GPU IDs.
        flexible_gpu_ids: Vec<String>,
        /// `allocated`, `attaching`, `attached` or `detaching`.
        states: Vec<String>,
        /// VMs that they are attached to.
        vm_ids: Vec<String>,
    }

    /// Changes what becomes of a flexible GPU.
    UpdateFlexibleGpu {
        /// Whether it is deleted when its VM is; false unless said.
        delete_on_vm_deletion: Option<bool>,
        /// The GPU; required.
        flexible_gpu_id: String,
    }
}

answers! {
    /// Flexible GPUs.
    TheFlexibleGpus {
        /// The GPUs.
        flexible_gpus: Vec<FlexibleGpu>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// A changed flexible GPU.
    TheFlexibleGpu {
        /// The GPU.
        flexible_gpu: Option<FlexibleGpu>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// A flexible GPU.
    FlexibleGpu {
        /// Whether it is deleted when its VM is.
        delete_on_vm_deletion: Option<bool>,
        /// Its ID: `fgpu-...`.
        flexible_gpu_id: String,
        /// The processor generation that it goes with: `v5`.
        generation: Option<String>,
        /// `nvidia-p6`, ...
        model_name: Option<String>,
        /// `allocated`, `attaching`, `attached` or `detaching`.
        state: Option<String>,
        /// Where it is.
        subregion_name: Option<String>,
        /// Its tags.
        tags: Vec<ResourceTag>,
        /// The VM that it is attached to, if any.
        vm_id: Option<String>,
    }
}
