//! Charts, drawn by plotters into SVG that takes its colours from the page.

use plotters::chart::ChartContext;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, Circle, IntoDrawingArea, IntoFont, PathElement, Polygon, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, ShapeStyle, TextStyle};

use super::axis::{self, Axis};
use super::palette::{Colour, dress};
use super::series::Layer;

/// Width of a chart that has the page to itself, in pixels of a page at its widest; the page scales it.
pub(super) const WIDE: u32 = 1140;
/// Width of a chart that shares a line with another, so that both have text of the same size.
const HALF: u32 = 560;
/// Height of a chart over time.
const HEIGHT: u32 = 260;

/// A chart with axes, ready for its data.
pub(super) type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

/// What plotters can fail with. It draws into memory, so it does not fail.
pub(super) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The frame of a chart.
pub(super) struct Frame {
    /// Time, or another measure.
    pub(super) x: Axis,
    /// What is measured.
    pub(super) y: Axis,
    /// Width in pixels.
    pub(super) width: u32,
    /// Height in pixels.
    pub(super) height: u32,
    /// Room for the words of the y axis.
    pub(super) left: u32,
}

impl Frame {
    /// A frame for one of two charts in a line.
    pub(super) fn half(x: Axis, y: Axis) -> Self {
        Self { x, y, width: HALF, height: HEIGHT, left: 64 }
    }

    /// A frame for a chart that has the page to itself.
    pub(super) fn wide(x: Axis, y: Axis) -> Self {
        Self { x, y, width: WIDE, height: HEIGHT * 5 / 4, left: 64 }
    }
}

/// Draws a chart: the frame, then what `content` puts into it.
pub(super) fn draw(
    frame: &Frame,
    label: &str,
    content: impl FnOnce(&mut Plot<'_>) -> Result<(), Fault>,
) -> Result<String, Fault> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (frame.width, frame.height)).into_drawing_area();
        let mut plot = ChartBuilder::on(&area)
            .margin_top(8)
            .margin_right(16)
            .x_label_area_size(44)
            .y_label_area_size(frame.left)
            .build_cartesian_2d(frame.x.clone(), frame.y.clone())?;
        plot.configure_mesh()
            .axis_style(Colour::Ink.stand_in().mix(0.6))
            .bold_line_style(Colour::Grid.stand_in())
            .light_line_style(plotters::style::TRANSPARENT)
            .label_style(text())
            .axis_desc_style(text())
            .x_desc(frame.x.title.as_str())
            .y_desc(frame.y.title.as_str())
            .x_labels(frame.x.marks.len().max(1))
            .y_labels(frame.y.marks.len().max(1))
            .draw()?;
        content(&mut plot)?;
        drop(plot);
        area.present()?;
    }
    Ok(inline(&svg, label))
}

/// The text of charts; the page's font comes from its style sheet.
pub(super) fn text() -> TextStyle<'static> {
    TextStyle { color: Colour::Ink.stand_in().to_backend_color(), ..("sans-serif", 13).into_font().into() }
}

/// Makes a picture of its own part of a page: scaled by the page, named for those who cannot see it, coloured by the page.
fn inline(svg: &str, label: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let size = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(size, _)| size);
    format!("<svg viewBox=\"{size}\" role=\"img\" aria-label=\"{label}\">{}", dress(body))
}

/// Fills the room under a staircase and draws its edge.
pub(super) fn filled(plot: &mut Plot<'_>, corners: &[(f64, f64)], colour: Colour) -> Result<(), Fault> {
    if let (Some(first), Some(last)) = (corners.first(), corners.last()) {
        let mut outline = corners.to_vec();
        outline.extend([(last.0, 0.0), (first.0, 0.0)]);
        plot.draw_series([Polygon::new(outline, colour.stand_in().mix(0.25))])?;
    }
    line(plot, corners, colour)
}

/// Draws a line.
pub(super) fn line(plot: &mut Plot<'_>, corners: &[(f64, f64)], colour: Colour) -> Result<(), Fault> {
    let style = ShapeStyle::from(&colour.stand_in()).stroke_width(2);
    plot.draw_series([PathElement::new(corners.to_vec(), style)])?;
    Ok(())
}

/// Draws layers on top of each other, parted by thin lines so that neighbours are told apart without colour.
pub(super) fn stacked(plot: &mut Plot<'_>, layers: &[Layer]) -> Result<(), Fault> {
    for layer in layers {
        let mut outline = layer.upper.clone();
        outline.extend(layer.lower.iter().rev());
        plot.draw_series([Polygon::new(outline, Colour::of(layer.rank).stand_in())])?;
    }
    for layer in layers {
        plot.draw_series([PathElement::new(layer.upper.clone(), Colour::Paper.stand_in())])?;
    }
    Ok(())
}

/// Most corners of a distribution curve.
const CURVE: usize = 300;

/// Draws the share of pods that waited at most so long, with some percentiles marked.
pub(super) fn distribution(waits: &[f64], marked: &[(&str, f64, f64)]) -> Result<String, Fault> {
    let (least, most) = (waits.first().copied().unwrap_or(0.0), waits.last().copied().unwrap_or(1.0));
    let shares = (0..=5).map(|fifth| f64::from(fifth) * 20.0).map(|share| (share, format!("{share:.0} %"))).collect();
    let y = Axis { ends: (0.0, 104.0), marks: shares, title: "pods bound by then".to_owned() };
    let frame = Frame::half(axis::waits(least, most), y);
    draw(&frame, "share of pods bound within a waiting time", |plot| {
        let mut corners = vec![(axis::log(least), 0.0)];
        let kept = waits.len().min(CURVE);
        for at in (1..=kept).map(|part| part * waits.len() / kept) {
            let wait = axis::log(waits[at - 1]);
            let before = corners.last().map_or(0.0, |corner| corner.1);
            corners.extend([(wait, before), (wait, 100.0 * at as f64 / waits.len() as f64)]);
        }
        corners.push((frame.x.ends.1, 100.0));
        line(plot, &corners, Colour::Series(0))?;
        for (name, share, wait) in marked {
            let at = (axis::log(*wait), *share);
            plot.draw_series([Circle::new(at, 4, Colour::Series(5).stand_in().filled())])?;
            let beside = Pos::new(HPos::Right, VPos::Bottom);
            plot.draw_series([Text::new(format!("{name}  "), at, text().pos(beside))])?;
        }
        Ok(())
    })
}
