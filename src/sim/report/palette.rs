//! Colours by their role. The page's style sheet gives each its value, one for light and one for dark.

use plotters::style::RGBColor;

/// Instance types with a colour of their own; the rest share [`Colour::Other`].
pub(super) const SERIES: usize = 8;

/// A role that a colour plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    /// Text and axes.
    Ink,
    /// Lines behind the data.
    Grid,
    /// What the page is printed on; parts layers of an area.
    Paper,
    /// What is left when the series have run out.
    Other,
    /// One of [`SERIES`], told apart also by eyes that see red and green alike.
    Series(usize),
}

impl Colour {
    /// Every colour.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [Self::Ink, Self::Grid, Self::Paper, Self::Other].into_iter().chain((0..SERIES).map(Self::Series))
    }

    /// The colour of the nth series.
    pub(super) fn of(rank: usize) -> Self {
        if rank < SERIES { Self::Series(rank) } else { Self::Other }
    }

    /// Its variable in the style sheet.
    pub(super) fn variable(self) -> String {
        match self {
            Self::Ink => "var(--ink)".to_owned(),
            Self::Grid => "var(--grid)".to_owned(),
            Self::Paper => "var(--paper)".to_owned(),
            Self::Other => "var(--other)".to_owned(),
            Self::Series(rank) => format!("var(--s{})", rank + 1),
        }
    }

    /// A stand-in for plotters, which knows no variables: nobody sees it, [`dress`] puts the variable in its place.
    pub(super) fn stand_in(self) -> RGBColor {
        let (kind, rank) = match self {
            Self::Ink => (1, 0),
            Self::Grid => (2, 0),
            Self::Paper => (3, 0),
            Self::Other => (4, 0),
            Self::Series(rank) => (5, u8::try_from(rank).unwrap_or(u8::MAX)),
        };
        RGBColor(1, kind, rank)
    }
}

/// Puts the style sheet's variables in the place of the stand-ins.
pub(super) fn dress(svg: &str) -> String {
    Colour::all().fold(svg.to_owned(), |svg, colour| {
        let RGBColor(red, green, blue) = colour.stand_in();
        svg.replace(&format!("\"#{red:02X}{green:02X}{blue:02X}\""), &format!("\"{}\"", colour.variable()))
    })
}
