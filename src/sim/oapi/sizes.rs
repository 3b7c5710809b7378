//! How large a VM of a type is.

use crate::clouds::outscale::oapi::wire::VmType;

/// Cores and GiB.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Size {
    pub(super) cores: u32,
    pub(super) memory: f64,
}

/// The size of a type: one of the fixed, or `tinavW.cXrY` with or without `pZ`. Nothing when there is no such type.
pub(super) fn size(vm_type: &str, fixed: &[VmType]) -> Option<Size> {
    if let Some(known) = fixed.iter().find(|known| known.vm_type_name == vm_type) {
        return Some(Size { cores: known.vcore_count?, memory: known.memory_size? });
    }
    let (generation, rest) = vm_type.strip_prefix("tinav")?.split_once(".c")?;
    let (cores, rest) = rest.split_once('r')?;
    let (memory, performance) = rest.split_once('p').unwrap_or((rest, "2"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = [generation, cores, memory].into_iter().all(is_number) && matches!(performance, "1" | "2" | "3");
    let (cores, memory) = (cores.parse().ok()?, memory.parse().ok()?);
    (known && cores > 0 && memory > 0.0).then_some(Size { cores, memory })
}

/// The word for the performance of a type.
pub(super) fn performance(vm_type: &str) -> &'static str {
    match vm_type.rsplit_once('p') {
        Some((_, "1")) => "highest",
        Some((_, "3")) => "medium",
        _ => "high",
    }
}
