//! The report of a rehearsal: one self-contained HTML page, readable in light and dark, with nothing to fetch.
//!
//! `page` puts it together, `series` thins and sorts what the charts show, `chart` draws them with plotters.

mod axis;
mod chart;
mod palette;
mod series;

mod gantt;
mod page;
mod tables;

pub use page::{Error, STYLE, render, write};

#[cfg(test)]
mod tests;
