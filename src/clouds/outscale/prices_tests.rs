//! Prices out of catalogue rows and files.

use super::*;

fn row(kind: &str, price: f64) -> CatalogEntry {
    CatalogEntry {
        service: Some("TinaOS-FCU".to_owned()),
        operation: Some("RunInstances-OD".to_owned()),
        kind: Some(kind.to_owned()),
        unit_price: Some(price),
        ..CatalogEntry::default()
    }
}

fn usual_rows() -> Vec<CatalogEntry> {
    vec![row("CustomCore:v6-p2", 0.035), row("CustomCore:v7-p1", 0.043), row("CustomRam", 0.005)]
}

fn price(prices: &Prices, name: &str) -> Option<f64> {
    // Figures of a list have four digits.
    prices.of(&VmType::parse(name)?, false).map(|price| (price * 1e6).round() / 1e6)
}

#[test]
fn a_custom_type_costs_its_cores_and_its_memory() {
    let (prices, left_out) = Prices::read("test", &usual_rows()).unwrap();
    assert_eq!(left_out, Vec::<String>::new());
    assert_eq!(price(&prices, "tinav6.c4r8p2"), Some(0.18));
    assert_eq!(price(&prices, "tinav7.c4r8p1"), Some(0.212));
    assert_eq!(price(&prices, "tinav7.c4r8p2"), None, "a type without a price of its cores is not offered");
    assert_eq!(price(&Prices::built_in(), "tinav6.c4r8p2"), Some(0.18));
    let dedicated = prices.of(&VmType::parse("tinav6.c4r8p2").unwrap(), true).unwrap();
    assert!((dedicated - 0.198).abs() < 1e-9, "{dedicated}");
}

#[test]
fn own_hardware_costs_as_much_more_as_its_row_says() {
    let surplus = |price: f64| CatalogEntry {
        operation: Some("RunInstances".to_owned()),
        ..row("DedicatedInstanceSurplus", price)
    };
    let dedicated = |price: f64| {
        let rows: Vec<CatalogEntry> = usual_rows().into_iter().chain([surplus(price)]).collect();
        let (prices, left_out) = Prices::read("test", &rows).unwrap();
        let price = prices.of(&VmType::parse("tinav6.c4r8p2").unwrap(), true).unwrap();
        ((price * 1e6).round() / 1e6, left_out.len())
    };
    assert_eq!(dedicated(0.02), (0.216, 0));
    assert_eq!(dedicated(0.0), (0.18, 0));
    // What cannot be leaves the usual tenth.
    assert_eq!(dedicated(-0.1), (0.198, 1));
    assert_eq!(dedicated(20.0), (0.198, 1));
}

#[test]
fn monthly_rows_are_turned_into_hours_and_foreign_rows_do_not_count() {
    let mut rows = usual_rows();
    rows.push(CatalogEntry { flags: Some("PER_MONTH".to_owned()), ..row("CustomCore:v5-p1", 29.2) });
    rows.push(CatalogEntry { service: Some("TinaOS-LBU".to_owned()), ..row("CustomCore:v6-p2", 0.3) });
    rows.push(CatalogEntry { operation: Some("RunInstances-0002-OD".to_owned()), ..row("CustomCore:v6-p2", 0.3) });
    let (prices, _) = Prices::read("test", &rows).unwrap();
    assert_eq!(price(&prices, "tinav5.c1r1p1"), Some(0.045));
    assert_eq!(price(&prices, "tinav6.c1r1p2"), Some(0.04));
}

#[test]
fn prices_that_cannot_be_are_left_out_and_named() {
    for wrong in [0.0, -0.035, 0.4, 0.003, f64::NAN, f64::INFINITY] {
        let mut rows = usual_rows();
        rows.push(row("CustomCore:v8-p1", wrong));
        let (prices, left_out) = Prices::read("test", &rows).unwrap();
        assert_eq!(price(&prices, "tinav8.c1r1p1"), None, "{wrong}");
        assert!(left_out[0].starts_with("CustomCore:v8-p1"), "{left_out:?}");
    }
    for rows in [vec![], vec![row("CustomRam", 0.005)], vec![row("CustomCore:v6-p2", 0.035)]] {
        let error = Prices::read("https://api", &rows).unwrap_err().to_string();
        assert!(error.starts_with("https://api: Catalog.Entries: "), "{error}");
    }
}

/// The usual rows as they would be in yen.
fn rows_in_yen() -> Vec<CatalogEntry> {
    usual_rows()
        .into_iter()
        .map(|row| CatalogEntry { unit_price: row.unit_price.map(|price| price * 165.0), ..row })
        .collect()
}

#[test]
fn a_list_in_another_currency_is_read_as_it_is_and_told() {
    let boxed = row("BoxUsage:tinav6.c4r8p2", 0.17 * 165.0);
    let rows = [rows_in_yen(), vec![boxed]].concat();
    let (prices, left_out) = Prices::read("public price list", &rows).unwrap();
    assert_eq!(left_out, Vec::<String>::new());
    assert_eq!(price(&prices, "tinav7.c4r8p1"), Some(34.98), "0.212 EUR, and nothing is converted");
    assert_eq!(price(&prices, "tinav6.c4r8p2"), Some(28.05));
    let told = "public price list, which is in another currency than EUR (about 165 times the usual figures of eu-west-2; they are not converted)";
    assert_eq!((&*prices.source, &prices.doubt), (told, &None));
    // Dollars are too near to tell, and plans are the same.
    let in_dollars =
        usual_rows().into_iter().map(|row| CatalogEntry { unit_price: row.unit_price.map(|price| price * 1.2), ..row });
    let (prices, _) = Prices::read("public price list", &in_dollars.collect::<Vec<_>>()).unwrap();
    assert_eq!((&*prices.source, price(&prices, "tinav6.c4r8p2")), ("public price list", Some(0.216)));
}

#[test]
fn a_mistake_in_a_list_of_another_currency_is_one_beside_the_other_rows() {
    for wrong in [0.0, 0.035, 0.043 * 165.0 * 20.0, -5.0] {
        let rows = [rows_in_yen(), vec![row("CustomCore:v8-p1", wrong), row("BoxUsage:tinav6.c4r8p2", 0.18)]].concat();
        let (prices, left_out) = Prices::read("test", &rows).unwrap();
        assert_eq!(price(&prices, "tinav8.c1r1p1"), None, "{wrong}");
        assert_eq!(price(&prices, "tinav6.c4r8p2"), Some(29.7), "a price in EUR among those in yen");
        assert!(left_out.len() == 2 && left_out[0].starts_with("CustomCore:v8-p1"), "{left_out:?}");
    }
    // Which of two is the mistake nobody can say.
    let rows = [row("CustomCore:v6-p2", 0.035), row("CustomRam", 0.005 * 165.0)];
    assert!(Prices::read("test", &rows).unwrap_err().to_string().contains("CustomRam"));
}

#[test]
fn a_file_in_another_currency_than_the_list_is_no_secret() {
    let path = std::env::temp_dir().join(format!("joiner-currency-{}.json", std::process::id()));
    let over = |prices: &Prices, text: &str| {
        std::fs::write(&path, text).unwrap();
        prices.clone().overridden(&path).unwrap()
    };
    let (in_yen, _) = Prices::read("price list", &rows_in_yen()).unwrap();
    let euros = [r#"{"gib": 0.004}"#, r#"{"cores": {"v7-p2": 0.04}}"#, r#"{"types": {"tinav6.c4r8p2": 0.2}}"#];
    let yen = [r#"{"gib": 0.7}"#, r#"{"cores": {"v7-p2": 6.2}}"#, r#"{"types": {"tinav6.c4r8p2": 31}}"#];
    for (prices, fitting, other, times) in [
        (&in_yen, yen, euros, ["0.0048", "0.0069", "0.0067"]),
        (&Prices::built_in(), euros, yen, ["140", "177", "172"]),
    ] {
        for text in fitting {
            assert_eq!(over(prices, text).doubt, None, "{text}");
        }
        for (text, times) in other.into_iter().zip(times) {
            let doubt = over(prices, text).doubt.unwrap();
            let told = format!(
                "json are about {times} times as high as those of the {}, as if in another currency",
                prices.source
            );
            assert!(doubt.contains(&told), "{text}: {doubt}");
        }
        assert_eq!(over(prices, r#"{"gpuModels": {"g3": "nvidia-m60"}}"#).doubt, None);
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn gpus_are_paid_for_beside_cores_and_memory() {
    let mut rows = usual_rows();
    rows.push(row("CustomCore:v5-p1", 0.04));
    rows.push(CatalogEntry { operation: Some("AllocateGpu".to_owned()), ..row("Gpu:allocate:nvidia-v100", 1.5) });
    let (prices, _) = Prices::read("test", &rows).unwrap();
    let kind = |family: &str, gpus| VmType {
        name: format!("{family}.large"),
        family: family.to_owned(),
        generation: Some(5),
        performance: Performance::Highest,
        cores: 8,
        memory_mib: 61 * 1024,
        gpus,
    };
    let price = prices.of(&kind("p3", 2), false).unwrap();
    assert!((price - (8.0 * 0.04 + 61.0 * 0.005 + 3.0)).abs() < 1e-9, "{price}");
    assert_eq!(prices.of(&kind("p6", 1), false), None, "its GPU has no price");
    // While it is attached to a machine it may have another price than while it waits for one.
    let attached = CatalogEntry { operation: Some("AllocateGpu".to_owned()), ..row("Gpu:attach:nvidia-v100", 2.0) };
    for rows in [[rows.clone(), vec![attached.clone()]].concat(), [vec![attached], rows.clone()].concat()] {
        let (prices, _) = Prices::read("test", &rows).unwrap();
        let price = prices.of(&kind("p3", 2), false).unwrap();
        assert!((price - (8.0 * 0.04 + 61.0 * 0.005 + 4.0)).abs() < 1e-9, "{price}");
    }
    assert_eq!(prices.of(&kind("g9", 1), false), None, "nobody knows its GPU");
}

#[test]
fn a_gpu_is_known_by_the_name_of_its_family_or_by_a_file() {
    let gpu = |model: &str, price| CatalogEntry {
        operation: Some("AllocateGpu".to_owned()),
        ..row(&format!("Gpu:allocate:nvidia-{model}"), price)
    };
    let rows: Vec<CatalogEntry> =
        usual_rows().into_iter().chain([row("CustomCore:v3-p1", 0.04), gpu("h100", 4.0), gpu("m60", 0.6)]).collect();
    let (prices, _) = Prices::read("test", &rows).unwrap();
    let kind = |name: &str, gpus| {
        let listed = crate::clouds::outscale::oapi::wire::VmType {
            vm_type_name: name.to_owned(),
            vcore_count: Some(8),
            memory_size: Some(15.0),
            gpu: Some(gpus),
            ..Default::default()
        };
        VmType::fixed(&listed).unwrap()
    };
    let hundredths = |prices: &Prices, kind: &VmType| prices.of(kind, false).map(|price| (price * 1e3).round() / 1e3);
    // 8 vCores of generation 7 and the highest performance, 15 GiB, two GPUs.
    assert_eq!(hundredths(&prices, &kind("inference7-h100.large", 2)), Some(8.419));
    for unknown in
        ["inference7-h300.large", "inference9-h100.large", "inference-h100.large", "inference7-.large", "g3.large"]
    {
        assert_eq!(hundredths(&prices, &kind(unknown, 1)), None, "{unknown}");
    }
    let path = std::env::temp_dir().join(format!("joiner-gpus-{}.json", std::process::id()));
    std::fs::write(&path, r#"{"gpuModels": {"g3": "nvidia-m60", "g3.huge": "nvidia-h100"}}"#).unwrap();
    let prices = prices.overridden(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(hundredths(&prices, &kind("g3.large", 1)), Some(0.995));
    assert_eq!(hundredths(&prices, &kind("g3.huge", 1)), Some(4.395));
}

#[test]
fn a_file_wins_over_the_catalogue() {
    let folder = std::env::temp_dir().join(format!("joiner-prices-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("prices.json");
    let over = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Prices::built_in().overridden(&path)
    };
    let prices = over(r#"{"date": "2026-11-01", "cores": {"v7-p2": 0.04}, "types": {"p6.large": 0.9}}"#).unwrap();
    assert_eq!(price(&prices, "tinav7.c4r8p2"), Some(0.2));
    assert_eq!(price(&prices, "tinav6.c4r8p2"), Some(0.18));
    assert!(prices.source.ends_with("prices.json of 2026-11-01"), "{}", prices.source);
    for (text, field) in [
        (r#"{"gib": -1}"#, "gib: -1 is no price"),
        (r#"{"cores": {"6-2": 0.1}}"#, "cores.6-2: write generation and performance as v6-p2"),
        (r#"{"types": {"x": 0}}"#, "types.x: 0 is no price"),
        (r#"{"ram": 1}"#, "file: unknown field `ram`"),
        ("", "file: EOF"),
    ] {
        let error = over(text).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(Prices::built_in().overridden(&path).unwrap_err().to_string().contains("cannot be read"));
}
