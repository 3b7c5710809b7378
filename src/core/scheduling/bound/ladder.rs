//! What pods can still gain in what is left of a bin, one resource counted in whole pods and the others at their price.
//!
//! A linear program cuts pods: into the room of two cores it puts one pod of 1.5 and a third of another. Step by step of one resource, all
//! combinations of whole pods are weighed; the other resources are paid for, which no filling can be better than.

use super::knapsack::Item;

/// What the rounding of floating-point numbers may have taken from a whole number.
const ROUNDING: f64 = 1e-6;

/// The most that can be gained, for each resource left and each number of items that are still allowed.
pub(super) struct Ladder {
    dimension: usize,
    /// The size of a step.
    step: f64,
    /// Steps in the whole room, and one for none.
    width: usize,
    /// Row by row: what the items from each on gain at most within so many steps.
    gains: Vec<f64>,
}

impl Ladder {
    /// `prices` are those of all resources. Steps are as small as the grain of the resource, as long as they are not too many.
    pub(super) fn new(
        items: &[Item<'_>],
        prices: &[f64],
        (dimension, room, grain): (usize, f64, f64),
        most_steps: usize,
    ) -> Self {
        let is_exact = grain > 0.0 && room / grain <= most_steps as f64;
        let step = if is_exact { grain } else { room / most_steps as f64 };
        let width = whole(room / step + ROUNDING) + 1;
        let mut gains = vec![0.0; width * (items.len() + 1)];
        for (at, item) in items.iter().enumerate().rev() {
            let others = item.need.iter().zip(prices).enumerate().filter(|(other, _)| *other != dimension);
            let gain = item.worth - others.map(|(_, (need, price))| need * price).sum::<f64>();
            let steps = item.need[dimension] / step;
            let steps = whole(if is_exact { steps + 0.5 } else { steps - ROUNDING });
            let (upper, lower) = gains.split_at_mut((at + 1) * width);
            let (row, next) = (&mut upper[at * width..], &lower[..width]);
            row.copy_from_slice(next);
            if gain <= 0.0 {
                continue;
            }
            if steps == 0 {
                for all in row.iter_mut() {
                    *all += gain * item.most;
                }
            } else if item.most <= 1.0 {
                (steps..width).for_each(|left| row[left] = row[left].max(gain + next[left - steps]));
            } else {
                (steps..width).for_each(|left| row[left] = row[left].max(gain + row[left - steps]));
            }
        }
        Self { dimension, step, width, gains }
    }

    /// How many cells were worked out.
    pub(super) fn size(&self) -> usize {
        self.gains.len()
    }

    /// What the items from `at` on can be worth at most in so much room.
    pub(super) fn reach(&self, at: usize, room: &[f64], prices: &[f64]) -> f64 {
        let steps = whole(room[self.dimension].max(0.0) / self.step + ROUNDING).min(self.width - 1);
        let others = room.iter().zip(prices).enumerate().filter(|(other, _)| *other != self.dimension);
        others.map(|(_, (room, price))| room * price).sum::<f64>() + self.gains[at * self.width + steps]
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "steps are few, and counted from nothing")]
fn whole(steps: f64) -> usize {
    steps.max(0.0) as usize
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
