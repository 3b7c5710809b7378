//! The page as a browser gets it.

use std::sync::Arc;

use super::*;
use crate::sim::outcome::tests::day;
use crate::sim::outcome::{Outcome, Sample, Unplaced};

/// The report of an outcome; a copy goes to `$JOINER_SHOW_REPORT/<name>.html` for people who want to look at it.
fn shown(name: &str, outcome: &Outcome) -> String {
    let page = render(outcome).expect("a report");
    if let Ok(directory) = std::env::var("JOINER_SHOW_REPORT") {
        let file = std::path::Path::new(&directory).join(name).with_extension("html");
        std::fs::write(file, &page).expect("a directory that can be written to");
    }
    page
}

/// Elements without an end tag.
const VOID: [&str; 1] = ["meta"];

/// Checks that every element is closed by its own end tag, in order. Returns how many elements there are.
fn check_nesting(page: &str) -> usize {
    let mut open = Vec::new();
    let mut elements = 0;
    for (at, _) in page.match_indices('<') {
        let tag = page.get(at + 1..).and_then(|rest| rest.split_once('>')).expect("a tag that ends").0;
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default();
        if tag.starts_with('!') || tag.ends_with('/') || VOID.contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "at {}", page.get(at..at + 60).unwrap_or_default());
        } else {
            elements += 1;
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    elements
}

#[test]
fn the_page_has_all_sections_and_needs_nothing_else() {
    let outcome = day(300);
    let page = shown("day", &outcome);
    assert!(page.starts_with("<!DOCTYPE html>"));
    for id in ["verdict", "unplaced", "pods", "nodes", "resources", "price", "pools", "summary"] {
        assert_eq!(page.matches(&format!("<section id=\"{id}\"")).count(), 1, "{id}");
    }
    assert_eq!(page.matches("<svg ").count(), 8);
    assert!(check_nesting(&page) > 300);
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    assert!(!page.contains("\"#01"), "a colour that is not the style sheet's");
    let labels = page.matches("time since start [h]").count();
    assert_eq!(labels, 7, "charts over time have their axis named");
}

#[test]
fn the_verdict_comes_first() {
    let mut outcome = day(50);
    let page = |outcome: &Outcome| render(outcome).expect("a report");
    let bad = page(&outcome);
    assert!(bad.contains("15 of 615 pods found no node."), "{bad}");
    assert!(bad.find("found no node.") < bad.find("<svg"));
    assert!(bad.contains("<section id=\"verdict\" class=\"bad\">"));

    outcome.unplaced.clear();
    outcome.pods_total = outcome.pods_bound;
    let good = page(&outcome);
    assert!(good.contains("All 600 pods found a node.") && good.contains("class=\"good\""));
    assert!(!good.contains("Pods without a node</h2>"));

    outcome.violations.push("node a & node b have the same machine".to_owned());
    let broken = page(&outcome);
    assert!(broken.contains("class=\"bad\"") && broken.contains("node a &amp; node b have the same machine"));
}

#[test]
fn names_from_outside_cannot_break_the_page() {
    let mut outcome = day(12);
    outcome.title = "<script>alert(1)</script> & \"co\"".to_owned();
    outcome.nodes[0].name = "<b>\"x\"".into();
    outcome.nodes[1].instance_type = "<i>'type'".into();
    let page = render(&outcome).expect("a report");
    check_nesting(&page);
    for raw in ["<script", "<b>", "<i>", "<cart>"] {
        assert!(!page.contains(raw), "{raw}");
    }
    assert!(page.contains("shop/&lt;cart&gt; &amp; co"));
}

#[test]
fn few_nodes_are_named() {
    let outcome = day(25);
    let page = shown("few", &outcome);
    let picture = page
        .split_once("when each node was there")
        .and_then(|(_, rest)| rest.split_once("</svg>"))
        .expect("a picture")
        .0;
    assert!(outcome.nodes.iter().all(|node| picture.contains(&*node.name)));
}

#[test]
fn many_nodes_share_rows() {
    let page = shown("crowd", &day(2500));
    assert!(page.contains("each row stands for 7 nodes"), "2500 nodes in at most 400 rows");
    assert!(page.contains("2,500 NodeClaims, of which the first 400 are listed"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    check_nesting(&page);
}

#[test]
fn a_world_in_which_nothing_happened_has_a_page_too() {
    let page = render(&Outcome::default()).expect("a report");
    check_nesting(&page);
    assert!(page.contains("No pod wanted a node."));
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    let one = Outcome { simulated_seconds: 30.0, samples: vec![Sample::default()], ..day(1) };
    assert!(render(&one).expect("a report").contains("time since start [s]"));
}

#[test]
fn time_is_marked_in_the_unit_that_suits_the_span() {
    let marks = |span: f64| {
        let axis = axis::time(span);
        let words = axis.marks.iter().map(|mark| mark.1.clone()).collect::<Vec<_>>().join(" ");
        format!("{words} {}", axis.title.rsplit(' ').next().unwrap_or_default())
    };
    assert_eq!(marks(90.0), "0 10 20 30 40 50 60 70 80 90 [s]");
    assert_eq!(marks(3600.0), "0 5 10 15 20 25 30 35 40 45 50 55 60 [min]");
    assert_eq!(marks(86_400.0), "0 2 4 6 8 10 12 14 16 18 20 22 24 [h]");
    assert_eq!(marks(14.0 * 86_400.0), "0 2 4 6 8 10 12 14 [d]");
    assert_eq!(marks(5000.0 * 86_400.0), "0 500 1000 1500 2000 2500 3000 3500 4000 4500 5000 [d]");
}

#[test]
fn amounts_are_marked_with_round_numbers() {
    let words = |axis: axis::Axis| axis.marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>();
    assert_eq!(words(axis::counts(2.0, "")), ["0", "1", "2"]);
    assert_eq!(words(axis::counts(0.0, "")), ["0", "1"]);
    assert_eq!(words(axis::counts(11_000.0, "")), ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]);
    assert_eq!(words(axis::decimals(0.9, "")), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
    assert_eq!(words(axis::waits(4.0, 800.0)), ["2s", "5s", "10s", "30s", "1m", "2m", "5m", "10m", "30m"]);
}

#[test]
fn thinning_keeps_peaks_and_the_end() {
    let mut outcome = Outcome { simulated_seconds: 100_000.0, ..Outcome::default() };
    outcome.samples = (0..100_000)
        .map(|second| Sample {
            at_seconds: f64::from(second),
            pending: match second {
                31_415 => 900,
                99_999 => 3,
                _ => 1,
            },
            ..Sample::default()
        })
        .collect();
    let course = series::course(&outcome, |sample| sample.pending as f64);
    assert!(course.len() < 3000, "{} corners", course.len());
    assert!(course.contains(&(31_415.0, 900.0)), "the peak of one second is there");
    assert_eq!(course.last(), Some(&(100_000.0, 3.0)));
}

#[test]
fn layers_add_up_to_all_nodes() {
    let outcome = day(300);
    let ranked = series::ranked_types(&outcome);
    assert_eq!(ranked.len(), 10);
    let layers = series::layers(&outcome, &ranked);
    assert_eq!(layers.len(), palette::SERIES + 1);
    let top = &layers.last().expect("layers").upper;
    let peak = top.iter().map(|corner| corner.1).fold(0.0, f64::max);
    assert!((peak - outcome.nodes_peak as f64).abs() < 1e-9);
    assert!(layers.windows(2).all(|pair| pair[0].upper == pair[1].lower));
    let bottom: Arc<str> = Arc::clone(&ranked[0]);
    assert!(layers[0].upper.iter().any(|corner| corner.1 > 0.0), "{bottom} has nodes");
}

#[test]
fn reasons_without_number_do_not_flood_the_page() {
    let mut outcome = day(10);
    outcome.unplaced = (0..3000)
        .map(|at| Unplaced { pod: format!("default/p{at}"), reasons: vec![format!("needs {at} cores more")] })
        .collect();
    let page = render(&outcome).expect("a report");
    check_nesting(&page);
    assert!(page.contains("and 2,950 more pods for 2,950 other reasons"));
    assert!(!page.contains("needs 51 cores more"));
}

#[test]
fn a_report_that_cannot_be_written_names_the_file() {
    let nowhere = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml/report.html");
    let error = write(&nowhere, &day(1)).expect_err("a file is not a directory").to_string();
    assert!(error.contains("Cargo.toml/report.html") && error.contains("directory that you may write to"), "{error}");
}
