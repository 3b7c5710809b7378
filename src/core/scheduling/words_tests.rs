//! Amounts are written as people write them.

use super::amount_text;

#[test]
fn amounts_are_readable() {
    let text = |name: &str, milli| amount_text(&name.into(), milli);
    assert_eq!(text("cpu", 400_100), "400.1 cpu");
    assert_eq!(text("cpu", 100), "100m cpu");
    assert_eq!(text("cpu", 2000), "2 cpu");
    assert_eq!(text("hugepages-2Mi", 4_194_304_000), "4Mi hugepages-2Mi");
    assert_eq!(text("memory", 3_221_225_472_000), "3072Mi memory");
    assert_eq!(text("nvidia.com/gpu", 8000), "8 nvidia.com/gpu");
}
