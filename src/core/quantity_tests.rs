//! The quantity grammar against the examples of Kubernetes' documentation and its own tests, and laws as properties.

use proptest::prelude::*;

use super::{Format, Quantity};

fn canonical(text: &str) -> String {
    Quantity::parse(text).unwrap_or_else(|wrong| panic!("{wrong}")).to_string()
}

#[test]
fn examples_print_canonically() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("1.5Gi", "1536Mi"),
        ("1.5", "1500m"),
        ("128974848", "128974848"),
        ("129e6", "129e6"),
        ("129M", "129M"),
        ("123Mi", "123Mi"),
        ("128974848000m", "128974848"),
        ("1Ki", "1Ki"),
        ("1000Ki", "1000Ki"),
        ("1024Ki", "1Mi"),
        ("1023", "1023"),
        ("0.5Ki", "512"),
        ("1.Ki", "1Ki"),
        (".5Mi", "512Ki"),
        ("+5", "5"),
        ("-5m", "-5m"),
        ("9E", "9E"),
        ("1E3", "1e3"),
        ("1e-3", "1e-3"),
        ("1e0", "1"),
        ("1000", "1k"),
        ("1000000n", "1m"),
        ("100u", "100u"),
        ("0.0001Ki", "102400u"),
        ("9Ei", "9223372036854775807"),
        ("1e40", "9223372036854775807"),
        ("0.0000000001", "1n"),
        ("1e-40", "1e-9"),
    ] {
        assert_eq!(canonical(text), expected, "of {text}");
    }
}

#[test]
fn texts_that_are_no_quantities_say_so() {
    for text in [
        "", "-", "+", ".", "1.5.2Gi", "1Zi", "1 Gi", "Gi", "1e", "1e1.5", "--1", "1ki", "0x10", "1Gi ", "1,5", "e3",
        "١",
    ] {
        let wrong = Quantity::parse(text).err().unwrap_or_else(|| panic!("{text:?} was accepted"));
        assert!(wrong.to_string().contains("is not a quantity"), "{wrong}");
    }
}

#[test]
fn requests_round_up_and_capacities_down() {
    let fine = Quantity::parse("1500u").unwrap();
    assert_eq!((fine.milli_up(), fine.milli_down()), (2, 1));
    let negative = Quantity::parse("-1500u").unwrap();
    assert_eq!((negative.milli_up(), negative.milli_down()), (-1, -2));
    let huge = Quantity::parse("9Ei").unwrap();
    assert_eq!((huge.milli_up(), huge.milli_down()), (i64::MAX, i64::MAX));
}

proptest! {
    #[test]
    fn printing_and_reading_gives_the_amount_back(milli in -1_000_000_000_000_000_i64..1_000_000_000_000_000, format in 0..3) {
        let format = [Format::Binary, Format::Decimal, Format::Exponent][usize::try_from(format).unwrap()];
        let quantity = Quantity::from_milli(milli, format);
        let again = Quantity::parse(&quantity.to_string()).unwrap();
        prop_assert_eq!(again, quantity);
        prop_assert_eq!(again.milli_up(), milli);
        prop_assert_eq!(again.milli_down(), milli);
    }

    #[test]
    fn nothing_makes_it_panic(text in "[-+0-9.eEinumkKMGTP]{0,60}") {
        let _ = Quantity::parse(&text).map(|quantity| (quantity.to_string(), quantity.milli_up(), quantity.approximate()));
    }
}
